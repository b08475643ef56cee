/* SPDX-License-Identifier: Apache-2.0
 *
 * The digests.  A path is a running hash of its parts; a leaf adds hash(path, value) to the sum. */
#include "kube/owned.h"

#include "base/util.h"
#include "kube/owned_priv.h"

#include <assert.h>
#include <stdio.h>

#define PART_MAX_BYTES 4096

/* The position of a walk.  Parts are member names as in fieldsV1 ("f:spec" without its "f:") and
 * element identities ("[name=web]"). */
struct place {
    struct stw_hash path;
    const char *name; /* of the current member, which identifies lists */
    unsigned depth;
};

struct owned_sum {
    struct stw_hash total;
    struct stw_buf part; /* scratch: one part of a path, or one decoded string */
    struct stw_hash whole[STW_OWNED_WHOLE_MAX]; /* paths of maps that we own as a whole */
    unsigned whole_count;
    bool any;
};

static struct stw_hash hash_tagged_pair(const struct stw_hash *a, char tag,
                                        const struct stw_hash *b)
{
    unsigned char bytes[2 * sizeof(*a) + 1];
    memcpy(bytes, a, sizeof(*a));
    bytes[sizeof(*a)] = (unsigned char)tag;
    memcpy(bytes + sizeof(*a) + 1, b, sizeof(*b));
    return stw_hash_bytes(bytes, sizeof(bytes));
}

static struct place make_place_below(const struct place *at, const char *part, size_t len,
                                     const char *name)
{
    struct stw_hash h = stw_hash_bytes(part, len);
    return (struct place){hash_tagged_pair(&at->path, '/', &h), name, at->depth + 1};
}

/* The decoded text of a string, in the scratch buffer. */
static const char *decode_text(struct owned_sum *s, struct stw_json v, size_t *ret_len)
{
    stw_buf_clear(&s->part);
    stw_json_str(v, &s->part);
    *ret_len = s->part.len;
    return stw_buf_str(&s->part);
}

static void add_leaf(struct owned_sum *s, const struct place *at, struct stw_json v)
{
    size_t len = 0;
    char tag = 'e';
    const char *bytes = "";
    if (!stw_owned_empty(v)) {
        bool string = stw_json_type(v) == STW_JSON_STRING;
        tag = string ? 's' : 'v';
        bytes = string ? decode_text(s, v, &len) : stw_json_raw(v, &len);
    }
    struct stw_hash value = stw_hash_bytes(bytes, len),
                    h = hash_tagged_pair(&at->path, tag, &value);
    s->total.hi += h.hi;
    s->total.lo += h.lo;
    s->any = true;
}

/* --- the desired object: every leaf */

static void flatten_value(struct owned_sum *s, const struct place *at, struct stw_json v);

static void flatten_member(struct owned_sum *s, const struct place *at, struct stw_json key,
                           struct stw_json v)
{
    char name[256];
    size_t len;
    const char *text = decode_text(s, key, &len);
    size_t kept = STW_MIN(len, sizeof(name) - 1);
    memcpy(name, text, kept);
    name[kept] = '\0';
    struct place to = make_place_below(at, text, len, name);
    flatten_value(s, &to, v);
}

static struct place at_element(struct owned_sum *s, const struct place *at, struct stw_json v,
                               uint32_t index)
{
    stw_buf_clear(&s->part);
    stw_owned_element(at->name, v, index, &s->part);
    return make_place_below(at, stw_buf_str(&s->part), s->part.len, "");
}

static void flatten_value(struct owned_sum *s, const struct place *at, struct stw_json v)
{
    struct stw_json key, child;
    uint32_t index = 0;
    enum stw_json_type type = stw_json_type(v);
    bool object = type == STW_JSON_OBJECT;
    bool deep = at->depth >= STW_OWNED_DEPTH_MAX;
    if (stw_owned_nothing(at->name, v) && !deep)
        return;
    if ((!object && type != STW_JSON_ARRAY) || stw_json_size(v) == 0 || deep) {
        add_leaf(s, at, v);
        return;
    }
    stw_json_foreach (v, key, child) {
        if (object &&
            (stw_owned_left_out(at->depth, at->name, key) || stw_json_type(child) == STW_JSON_NULL))
            continue;
        if (object) {
            flatten_member(s, at, key, child);
        } else {
            struct place to = at_element(s, at, child, index++);
            flatten_value(s, &to, child);
        }
    }
}

static struct owned_sum sum_init(void)
{
    return (struct owned_sum){.part = STW_BUF_INIT(16u << 20)};
}

static struct stw_hash sum_take(struct owned_sum *s)
{
    stw_buf_done(&s->part);
    return s->any ? s->total : (struct stw_hash){0};
}

struct stw_hash stw_owned_desired(struct stw_json desired)
{
    struct owned_sum s = sum_init();
    flatten_value(&s, &(struct place){.name = ""}, desired);
    return sum_take(&s);
}

/* --- the live object: the leaves that fieldsV1 names, with their live values */

static void walk_owned_fields(struct owned_sum *s, const struct place *at, struct stw_json fields,
                              struct stw_json live);

struct stw_json stw_owned_find(struct stw_json list, const char *keys, uint32_t *ret_index)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json none, element, key, want, found = STW_JSON_NONE;
    uint32_t index = 0;
    char name[128];
    if (stw_json_scan(&doc, keys, strlen(keys), NULL) != 0)
        return found;
    stw_json_foreach (list, none, element) {
        bool all = true;
        stw_json_foreach (stw_json_root(&doc), key, want)
            all = all && stw_json_strcpy(key, name, sizeof(name)) == 0 &&
                  stw_json_equal(stw_json_get(element, name), want);
        if (all) {
            *ret_index = index;
            return element;
        }
        index++;
    }
    return found;
}

/* "web" or 8 identifies the element of a set that equals it.  The value is not a JSON document by
 * itself. */
static struct stw_json find_by_value(struct stw_json list, const char *value, uint32_t *ret_index)
{
    struct stw_json none, element;
    uint32_t index = 0;
    size_t len;
    stw_json_foreach (list, none, element) {
        const char *raw = stw_json_raw(element, &len);
        if (len == strlen(value) && memcmp(raw, value, len) == 0) {
            *ret_index = index;
            return element;
        }
        index++;
    }
    return STW_JSON_NONE;
}

static struct stw_json find_by_index(struct stw_json list, const char *text, uint32_t *ret_index)
{
    int64_t n;
    if (stw_parse_int(text, 0, UINT32_MAX, &n) != 0)
        return STW_JSON_NONE;
    *ret_index = (uint32_t)n;
    return stw_json_at(list, (uint32_t)n);
}

static void walk_element(struct owned_sum *s, const struct place *at, const char *part,
                         struct stw_json fields, struct stw_json list)
{
    static struct stw_json (*const find[128])(struct stw_json, const char *, uint32_t *) = {
        ['k'] = stw_owned_find, ['v'] = find_by_value, ['i'] = find_by_index};
    uint32_t index = 0;
    unsigned char kind = (unsigned char)part[0];
    if (kind >= 128 || !find[kind])
        return;
    struct stw_json element = find[kind](list, part + 2, &index);
    /* Owned but missing: counts, so that the digest differs from the desired one. */
    struct place to = stw_json_type(element) == STW_JSON_ABSENT
                          ? make_place_below(at, part, strlen(part), "")
                          : at_element(s, at, element, index);
    walk_owned_fields(s, &to, fields, element);
}

/* The guard of creates on old servers (controller/child.c): they drop the field from the new object
 * but record it as ours. */
static bool is_create_guard(const struct place *at, const char *part)
{
    return at->depth == 1 && stw_streq(at->name, "metadata") &&
           stw_streq(part, "f:deletionGracePeriodSeconds");
}

static void walk_child(struct owned_sum *s, const struct place *at, const char *part,
                       struct stw_json fields, struct stw_json live)
{
    if (is_create_guard(at, part))
        return;
    if (strncmp(part, "f:", 2) != 0) {
        if (part[0] != '\0' && part[1] == ':')
            walk_element(s, at, part, fields, live);
        return; /* ".": the parent itself, which its leaves represent */
    }
    struct place to = make_place_below(at, part + 2, strlen(part + 2), part + 2);
    walk_owned_fields(s, &to, fields, stw_json_get(live, part + 2));
}

static bool only_dot(struct stw_json fields)
{
    struct stw_json key;
    (void)stw_json_first(fields, &key);
    return stw_json_size(fields) == 1 && stw_json_is(key, ".");
}

static bool is_whole(const struct owned_sum *s, const struct place *at)
{
    for (unsigned i = 0; i < s->whole_count; i++)
        if (stw_hash_equal(s->whole[i], at->path))
            return true;
    return false;
}

static void walk_owned_fields(struct owned_sum *s, const struct place *at, struct stw_json fields,
                              struct stw_json live)
{
    struct stw_json key, child;
    if (at->depth >= STW_OWNED_DEPTH_MAX)
        return;
    if (stw_json_size(fields) == 0 || only_dot(fields) || is_whole(s, at)) {
        flatten_value(s, at, live);
        return;
    }
    stw_json_foreach (fields, key, child) {
        char few[128];
        bool fits = stw_json_strcpy(key, few, sizeof(few)) == 0;
        stw_autofree char *many = fits ? NULL : stw_json_strdup(key);
        const char *part = fits ? few : many;
        if (part)
            walk_child(s, at, part, child, live);
    }
}

struct stw_json stw_owned_fields(struct stw_json object, const char *manager)
{
    struct stw_json none, entry;
    stw_json_foreach (stw_json_path(object, "metadata.managedFields"), none, entry)
        if (stw_json_is(stw_json_get(entry, "manager"), manager) &&
            stw_json_is(stw_json_get(entry, "operation"), "Apply") &&
            stw_json_size(stw_json_get(entry, "subresource")) == 0)
            return stw_json_get(entry, "fieldsV1");
    return STW_JSON_NONE;
}

const char *stw_owned_whole(unsigned index, bool all_data)
{
    static const char *const paths[] = {"spec.selector", "spec.selector.matchLabels",
                                        "spec.template.spec.nodeSelector", "data"};
    static_assert(STW_COUNT(paths) == STW_OWNED_WHOLE_MAX, "one row each");
    return index < STW_COUNT(paths) - !all_data ? paths[index] : NULL;
}

static void add_whole(struct owned_sum *s, const char *path)
{
    struct place at = {.name = ""};
    for (size_t len; *path; path += len + (path[len] == '.')) {
        len = strcspn(path, ".");
        at = make_place_below(&at, path, len, "");
    }
    s->whole[s->whole_count++] = at.path;
}

struct stw_hash stw_owned_live(struct stw_json object, const char *manager, bool all_data)
{
    struct owned_sum s = sum_init();
    for (const char *path; (path = stw_owned_whole(s.whole_count, all_data));)
        add_whole(&s, path);
    struct stw_json fields = stw_owned_fields(object, manager);
    if (stw_json_size(fields) > 0)
        walk_owned_fields(&s, &(struct place){.name = ""}, fields, object);
    return sum_take(&s);
}

bool stw_owned_has(struct stw_json object, const char *manager, const char *field)
{
    struct stw_json at = stw_owned_fields(object, manager);
    while (*field) {
        char part[128];
        size_t len = strcspn(field, ".");
        if (stw_format_whole(part, sizeof(part), "f:%.*s", (int)len, field) != 0)
            return false;
        at = stw_json_get(at, part);
        field += len + (field[len] == '.');
    }
    return stw_json_there(at);
}
