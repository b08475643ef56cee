/* SPDX-License-Identifier: Apache-2.0 */
#include "testing/tree_priv.h"

#include "base/util.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 512

json_t *stw_test_path(const json_t *object, const char *path)
{
    json_t *at = (json_t *)(uintptr_t)object;
    while (at && *path) {
        char name[NAME_MAX_BYTES];
        size_t len = strcspn(path, ".");
        if (stw_format_whole(name, sizeof(name), "%.*s", (int)len, path) != 0)
            return NULL;
        at = json_object_get(at, name);
        path += len + (path[len] == '.');
    }
    return at;
}

const char *stw_test_text_at(const json_t *object, const char *path)
{
    const char *text = json_string_value(stw_test_path(object, path));
    return text ? text : "";
}

const char *stw_test_text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

json_t *stw_test_member(json_t *object, const char *member)
{
    if (!json_is_object(json_object_get(object, member)))
        json_object_set_new(object, member, json_object());
    return json_object_get(object, member);
}

/* --- patches */

json_t *stw_test_merge_patch(const json_t *object, const json_t *patch)
{
    const char *key;
    json_t *v;
    if (!json_is_object(patch))
        return json_deep_copy(patch);
    json_t *copy = json_is_object(object) ? json_copy((json_t *)(uintptr_t)object) : json_object();
    json_object_foreach ((json_t *)(uintptr_t)patch, key, v) {
        if (json_is_null(v))
            json_object_del(copy, key);
        else
            json_object_set_new(copy, key, stw_test_merge_patch(json_object_get(object, key), v));
    }
    return copy;
}

/* "a~1b" is "a/b"; `*at` is behind the part then. */
static void next_pointer_part(const char **at, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    const char *p = *at + 1;
    for (; *p && *p != '/'; p++) {
        char c = *p;
        if (c == '~' && (p[1] == '0' || p[1] == '1'))
            c = *++p == '1' ? '/' : '~';
        if (n + 1 < NAME_MAX_BYTES)
            out[n++] = c;
    }
    out[n] = '\0';
    *at = p;
}

/* -1: not an index of this list; its size for "-". */
static int64_t index_of(const json_t *list, const char *part)
{
    int64_t n;
    if (stw_streq(part, "-"))
        return (int64_t)json_array_size(list);
    return stw_parse_int(part, 0, INT32_MAX, &n) == 0 ? n : -1;
}

static json_t *child_of(const json_t *parent, const char *part)
{
    if (json_is_object(parent))
        return json_object_get(parent, part);
    int64_t i = json_is_array(parent) ? index_of(parent, part) : -1;
    return i < 0 ? NULL : json_array_get(parent, (size_t)i);
}

/* The container of what a pointer names, and the last part of the pointer; NULL: there is none. */
static json_t *container_of(json_t *root, const char *pointer, char last[NAME_MAX_BYTES])
{
    json_t *at = root;
    while (at && *pointer == '/') {
        next_pointer_part(&pointer, last);
        if (!*pointer)
            return json_is_object(at) || json_is_array(at) ? at : NULL;
        at = child_of(at, last);
    }
    return NULL;
}

static json_t *find_pointer(json_t *root, const char *pointer)
{
    char last[NAME_MAX_BYTES];
    json_t *in = container_of(root, pointer, last);
    return !*pointer ? root : in ? child_of(in, last) : NULL;
}

static bool take_out(json_t *root, const char *pointer)
{
    char last[NAME_MAX_BYTES];
    json_t *in = container_of(root, pointer, last);
    if (!in || !child_of(in, last))
        return false;
    return (json_is_object(in) ? json_object_del(in, last)
                               : json_array_remove(in, (size_t)index_of(in, last))) == 0;
}

/* Steals `value`. */
static bool put_in(json_t *root, const char *pointer, json_t *value)
{
    char last[NAME_MAX_BYTES];
    json_t *in = container_of(root, pointer, last);
    if (json_is_object(in))
        return json_object_set_new(in, last, value) == 0;
    int64_t i = in ? index_of(in, last) : -1;
    if (i >= 0 && i <= (int64_t)json_array_size(in))
        return json_array_insert_new(in, (size_t)i, value) == 0;
    json_decref(value);
    return false;
}

static bool run_operation(json_t *root, const json_t *operation)
{
    const char *op = stw_test_text_of(operation, "op"), *path = stw_test_text_of(operation, "path");
    json_t *value = json_object_get(operation, "value");
    json_t *from = find_pointer(root, stw_test_text_of(operation, "from"));
    if (stw_streq(op, "test")) {
        json_t *there = find_pointer(root, path);
        return there ? value && json_equal(there, value) : json_is_null(value);
    }
    if (stw_streq(op, "add"))
        return value && put_in(root, path, json_deep_copy(value));
    if (stw_streq(op, "remove"))
        return take_out(root, path);
    if (stw_streq(op, "replace"))
        return value && take_out(root, path) && put_in(root, path, json_deep_copy(value));
    if (!from || (!stw_streq(op, "move") && !stw_streq(op, "copy")))
        return false;
    json_t *copy = json_deep_copy(from);
    if (stw_streq(op, "move"))
        (void)take_out(root, stw_test_text_of(operation, "from"));
    return put_in(root, path, copy);
}

json_t *stw_test_json_patch(const json_t *object, const json_t *operations)
{
    json_t *copy = json_deep_copy(object), *operation;
    size_t i;
    json_array_foreach (operations, i, operation) {
        if (!run_operation(copy, operation)) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

/* --- selectors */

static bool is_one_of(const char *value, const char *list)
{
    while (*list && *list != ')') {
        list += strspn(list, " ,(");
        size_t len = strcspn(list, " ,)");
        if (len > 0 && strlen(value) == len && memcmp(value, list, len) == 0)
            return true;
        list += len;
    }
    return false;
}

/* One requirement; `value` NULL: there is no such label. */
static bool requirement_fits(const char *text, size_t name_len, const char *value)
{
    const char *op = text + name_len + strspn(text + name_len, " ");
    if (strncmp(op, "!=", 2) == 0)
        return !value || !is_one_of(value, op + 2);
    if (*op == '=')
        return value &&
               (is_one_of(value, op + 1 + (op[1] == '=')) || (!*value && !op[1 + (op[1] == '=')]));
    if (strncmp(op, "in", 2) == 0)
        return value && is_one_of(value, op + 2);
    if (strncmp(op, "notin", 5) == 0)
        return !value || !is_one_of(value, op + 5);
    return value != NULL;
}

typedef const char *get_fn(const json_t *object, const char *name);

static const char *label_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(stw_test_path(object, "metadata.labels"), name));
}

static const char *field_of(const json_t *object, const char *name)
{
    return stw_test_text_at(object, name);
}

static bool all_fit(const json_t *object, const char *selector, get_fn *get)
{
    const char *at = selector ? selector : "";
    while (*at) {
        char one[1024], name[NAME_MAX_BYTES];
        size_t len = 0;
        for (bool in = false; at[len] && (in || at[len] != ','); len++)
            in = at[len] == '(' || (in && at[len] != ')');
        stw_format(one, sizeof(one), "%.*s", (int)len, at);
        at += len + (at[len] == ',');
        const char *text = one + strspn(one, " ");
        bool absent = *text == '!';
        text += absent;
        size_t name_len = strcspn(text, " =!");
        stw_format(name, sizeof(name), "%.*s", (int)name_len, text);
        const char *value = get(object, name);
        if (absent ? value != NULL : !requirement_fits(text, name_len, value))
            return false;
    }
    return true;
}

bool stw_test_labels_fit(const json_t *object, const char *selector)
{
    return all_fit(object, selector, label_of);
}

bool stw_test_fields_fit(const json_t *object, const char *selector)
{
    return all_fit(object, selector, field_of);
}
