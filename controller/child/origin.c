/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/origin.h"

#include "base/buf.h"
#include "base/util.h"
#include "kube/tree.h"

#include <ctype.h>

#define STEPS_MAX 32
#define STEP_LEN 128
#define PATH_MAX_LEN 512
#define ELEMENTS_MAX 10000 /* of a list that is searched */

/* --- paths, as the API server writes them: "spec.x[0].y", and of an apply ".spec.x[name=\"a\"].y" */

struct step {
    bool element;        /* it stood in brackets: an index, keys, or the key of a map */
    char text[STEP_LEN]; /* without the brackets */
};

struct steps {
    size_t count;
    struct step all[STEPS_MAX];
};

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* The bytes of "[...]" at `text`; 0: it has no end. */
static size_t bracket_len(const char *text)
{
    bool quoted = false;
    for (size_t i = 1; text[i]; i++) {
        if (text[i] == '\\' && quoted && text[i + 1])
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (text[i] == ']' && !quoted)
            return i + 1;
    }
    return 0;
}

static size_t name_len(const char *text)
{
    size_t n = 0;
    while (is_name_char(text[n]))
        n++;
    return n;
}

/* Appends one step of `len` bytes; false: it does not fit. */
static bool add_step(struct steps *s, bool element, const char *text, size_t len)
{
    if (s->count == STEPS_MAX || len >= STEP_LEN)
        return false;
    struct step *step = &s->all[s->count++];
    step->element = element;
    memcpy(step->text, text, len);
    step->text[len] = '\0';
    return true;
}

/* Reads the path at the beginning of a text.  Returns its bytes; 0: there is none. */
static size_t read_path(const char *text, struct steps *ret)
{
    size_t at = text[0] == '.', len;
    ret->count = 0;
    if (!(len = name_len(text + at)) || !add_step(ret, false, text + at, len))
        return 0;
    for (at += len;; at += len) {
        bool element = text[at] == '[';
        len = element ? bracket_len(text + at) : text[at] == '.' ? name_len(text + at + 1) : 0;
        if (len == 0)
            return element ? 0 : at; /* a text that was cut */
        if (!element)
            len++;
        if (!add_step(ret, element, text + at + 1, len - 1 - element))
            return 0;
    }
}

/* --- elements of lists */

/* Whether the element has these keys: `containerPort=8080,protocol="TCP"`. */
static bool has_keys(const json_t *element, const char *keys)
{
    while (*keys) {
        char key[STEP_LEN];
        const char *equals = strchr(keys, '=');
        if (!equals)
            return false;
        stw_format(key, sizeof(key), "%.*s", (int)(equals - keys), keys);
        json_auto_t *value = json_loads(equals + 1, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
        if (!value || !json_equal(value, json_object_get(element, key)))
            return false;
        keys = equals + 1;
        bool quoted = false;
        for (; *keys && (quoted || *keys != ','); keys++)
            quoted ^= *keys == '"';
        keys += *keys == ',';
    }
    return true;
}

/* The part of the child to which a step leads; NULL: it has none. */
static const json_t *follow_child(const json_t *from, const struct step *s)
{
    const json_t *element;
    size_t i;
    if (!s->element || json_is_object(from))
        return json_object_get(from, s->text);
    if (s->text[0] && s->text[strspn(s->text, "0123456789")] == '\0')
        return json_array_get(from, strtoul(s->text, NULL, 10));
    json_array_foreach (from, i, element)
        if (has_keys(element, s->text))
            return element;
    return NULL;
}

/* Whether all of the user's value is in the child, to which defaults may have been added. */
static bool is_part_of(const json_t *value, const json_t *of)
{
    const char *key;
    json_t *member;
    if (!json_is_object(value) || !json_is_object(of))
        return json_equal(value, of);
    json_object_foreach ((json_t *)(uintptr_t)value, key, member)
        if (!is_part_of(member, json_object_get(of, key)))
            return false;
    return true;
}

/* The index of the user's element from which that of the child is made: by its name, by what it has, or
 * at the same place of a list of the same length.  -1: none. */
static int find_element(struct stw_json list, const json_t *child, const json_t *child_list)
{
    const char *name = stw_tree_text(child, "name");
    struct stw_json key, one;
    size_t n;
    int i = 0;
    json_t *element;
    if (stw_json_type(list) != STW_JSON_ARRAY || stw_json_size(list) > ELEMENTS_MAX || !child)
        return -1;
    stw_json_foreach (list, key, one) {
        json_auto_t *tree = *name ? NULL : stw_tree_read(one);
        if (*name ? stw_json_is(stw_json_get(one, "name"), name) : tree && is_part_of(tree, child))
            return i;
        i++;
    }
    if (!*name && json_array_size(child_list) == stw_json_size(list))
        json_array_foreach (child_list, n, element)
            if (element == child)
                return (int)n;
    return -1;
}

/* --- one row */

struct found {
    char path[PATH_MAX_LEN];
    unsigned missing; /* steps at its end that the object does not have */
};

/* Goes along the row's path in the child.  False: this path is not in it. */
static bool is_below(const struct steps *path, const struct steps *row, const json_t **child)
{
    for (size_t i = 0; i < row->count; i++) {
        const struct step *a = &path->all[i], *b = &row->all[i];
        if (i == path->count || a->element != b->element)
            return false;
        *child = follow_child(*child, a);
        if (!stw_streq(b->element ? stw_tree_text(*child, "name") : a->text, b->text))
            return false;
    }
    return true;
}

/* Adds a member to the path, and goes to it in the object. */
static void go_to_member(struct stw_json *at, const char *name, struct stw_buf *out,
                         unsigned *missing)
{
    *at = stw_json_get(*at, name);
    *missing += !stw_json_there(*at);
    stw_buf_addf(out, "%s%s", out->len ? "." : "", name);
}

/* The path in the object.  False: it has no such element of a list. */
static bool build_own(const struct steps *path, const struct steps *row, const json_t *child,
                      struct stw_json object, const char *own, struct found *ret)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(PATH_MAX_LEN);
    struct steps steps;
    (void)read_path(own, &steps);
    ret->missing = 0;
    for (size_t i = 0; i < steps.count; i++)
        go_to_member(&object, steps.all[i].text, &out, &ret->missing);
    for (size_t i = row->count; i < path->count; i++) {
        const struct step *s = &path->all[i];
        const json_t *list = child;
        child = follow_child(child, s);
        if (!s->element) {
            go_to_member(&object, s->text, &out, &ret->missing);
        } else if (json_is_object(list)) {
            object = stw_json_get(object, s->text);
            ret->missing += !stw_json_there(object);
            stw_buf_addf(&out, "[%s]", s->text);
        } else {
            int index = find_element(object, child, list);
            if (index < 0)
                return false;
            object = stw_json_at(object, (uint32_t)index);
            stw_buf_addf(&out, "[%d]", index);
        }
    }
    stw_format(ret->path, sizeof(ret->path), "%s", stw_buf_str(&out));
    return !out.failed;
}

/* --- texts */

/* The row whose path the object has, or lacks `missing` steps at the end of.  False: none. */
static bool find_own(const struct stw_origin *origins, const json_t *sent, struct stw_json object,
                     const struct steps *path, unsigned missing, struct found *ret)
{
    struct steps row;
    struct found one;
    ret->missing = missing + 1;
    for (; origins->child; origins++) {
        const json_t *child = sent;
        (void)read_path(origins->child, &row);
        if (is_below(path, &row, &child) &&
            build_own(path, &row, child, object, origins->own, &one) && one.missing < ret->missing)
            *ret = one;
    }
    return ret->missing <= missing;
}

/* After the path of a field that is not there. */
static const char required[] = ": Required value";

static bool begins_path(const char *text, const char *at)
{
    return at == text || (!is_name_char(at[-1]) && !strchr("./\"]", at[-1]));
}

void stw_origin_name(const struct stw_origin *origins, const json_t *sent, struct stw_json object,
                     struct stw_error *err)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(sizeof(err->text) * 8);
    struct steps path;
    struct found own;
    if (!origins || !stw_json_there(object))
        return;
    for (const char *at = err->text; *at;) {
        size_t len = begins_path(err->text, at) ? read_path(at, &path) : 0;
        bool absent = strncmp(at + len, required, strlen(required)) == 0;
        if (len > 0 && path.count > 1 && find_own(origins, sent, object, &path, absent, &own)) {
            stw_buf_adds(&out, own.path);
            at += len;
        } else {
            stw_buf_addc(&out, *at++);
        }
    }
    if (!out.failed)
        stw_format(err->text, sizeof(err->text), "%s", stw_buf_str(&out));
}
