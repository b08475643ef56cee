/* SPDX-License-Identifier: Apache-2.0
 *
 * The digests.  A path is a running hash of its parts; a leaf adds hash(path, value) to the sum. */
#include "kube/owned.h"

#include "base/util.h"
#include "kube/owned/owned_priv.h"

#include <assert.h>

#define SHORT_BYTES 200
#define VISITS_MAX (1u << 18) /* of values, of which some may be owned several times */
#define LONG_TAG 0x80
#define LIST_KEYS_MAX 4 /* no list of Kubernetes has more */

/* The position of a walk.  Parts are member names as in fieldsV1 ("f:spec" without its "f:") and
 * element identities ("[name=web]"). */
struct place {
    struct stw_hash path;
    const char *name; /* of the current member, which identifies lists */
    unsigned depth;
};

struct owned_sum {
    struct stw_hash total, template; /* the part of `total` from spec.template */
    struct stw_buf part;             /* scratch: one part of a path, or one decoded string */
    struct stw_hash whole[STW_OWNED_WHOLE_MAX]; /* paths of maps that we own as a whole */
    unsigned whole_count;
    bool any;
    uint64_t pairs;  /* compared so far */
    uint64_t visits; /* of values so far */
    uint64_t visits_max;
    struct stw_json_doc keys; /* scratch: the keys of an element */
};

/* hash(a, tag, bytes), in one call when they are short. */
static struct stw_hash hash_tagged(const struct stw_hash *a, char tag, const char *bytes,
                                   size_t len)
{
    unsigned char all[sizeof(*a) + 1 + SHORT_BYTES];
    struct stw_hash digest;
    bool is_long = len > SHORT_BYTES;
    if (is_long) {
        digest = stw_hash_bytes(bytes, len);
        bytes = (const char *)&digest;
        len = sizeof(digest);
    }
    memcpy(all, a, sizeof(*a));
    all[sizeof(*a)] = (unsigned char)(is_long ? tag | LONG_TAG : tag);
    memcpy(all + sizeof(*a) + 1, bytes, len);
    return stw_hash_bytes(all, sizeof(*a) + 1 + len);
}

static struct place make_place_below(const struct place *at, const char *part, size_t len,
                                     const char *name)
{
    return (struct place){hash_tagged(&at->path, '/', part, len), name, at->depth + 1};
}

/* The decoded text of a string: in the document, or in the scratch buffer when it has escapes. */
static const char *decode_text(struct owned_sum *s, struct stw_json v, size_t *ret_len)
{
    const char *raw = stw_json_raw(v, ret_len);
    if (stw_json_type(v) == STW_JSON_STRING && stw_json_size(v) + 2 == *ret_len) {
        *ret_len -= 2;
        return raw + 1;
    }
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
    struct stw_hash h = hash_tagged(&at->path, tag, bytes, len);
    s->total.hi += h.hi;
    s->total.lo += h.lo;
    s->any = true;
}

/* --- the desired object: every leaf */

static void flatten_value(struct owned_sum *s, const struct place *at, struct stw_json v);

static bool is_template(const struct place *at, const char *member)
{
    return at->depth == 1 && stw_streq(at->name, "spec") && stw_streq(member, "template");
}

static struct stw_hash sum_since(const struct owned_sum *s, struct stw_hash before)
{
    return (struct stw_hash){.lo = s->total.lo - before.lo, .hi = s->total.hi - before.hi};
}

static void flatten_member(struct owned_sum *s, const struct place *at, struct stw_json key,
                           struct stw_json v)
{
    char name[256];
    size_t len;
    name[0] = '\0';
    const char *text = decode_text(s, key, &len);
    struct place to = make_place_below(at, text, len, name);
    if (stw_json_type(v) >= STW_JSON_ARRAY) { /* only containers need it */
        size_t kept = STW_MIN(len, sizeof(name) - 1);
        memcpy(name, text, kept);
        name[kept] = '\0';
    }
    struct stw_hash before = s->total;
    flatten_value(s, &to, v);
    if (is_template(at, name))
        s->template = sum_since(s, before);
}

static struct place at_element(struct owned_sum *s, const struct place *at, struct stw_json v,
                               uint32_t index)
{
    stw_buf_clear(&s->part);
    stw_owned_element(at->name, v, index, &s->part);
    return make_place_below(at, stw_buf_str(&s->part), s->part.len, "");
}

static bool is_spent(const struct owned_sum *s)
{
    return s->visits > s->visits_max;
}

static void flatten_value(struct owned_sum *s, const struct place *at, struct stw_json v)
{
    struct stw_json key, child;
    uint32_t index = 0;
    s->visits++;
    if (is_spent(s))
        return;
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
    return (struct owned_sum){.part = STW_BUF_INIT(16u << 20), .visits_max = UINT64_MAX};
}

static struct stw_hash sum_take(struct owned_sum *s)
{
    stw_buf_done(&s->part);
    stw_json_done(&s->keys);
    return s->any ? s->total : (struct stw_hash){0};
}

struct stw_hash stw_owned_desired_parts(struct stw_json desired, struct stw_hash *ret_template)
{
    struct owned_sum s = sum_init();
    flatten_value(&s, &(struct place){.name = ""}, desired);
    *ret_template = s.template;
    return sum_take(&s);
}

struct stw_hash stw_owned_desired(struct stw_json desired)
{
    struct stw_hash unused;
    return stw_owned_desired_parts(desired, &unused);
}

/* --- the live object: the leaves that fieldsV1 names, with their live values */

static void walk_owned_fields(struct owned_sum *s, const struct place *at, struct stw_json fields,
                              struct stw_json live);

static bool has_keys(struct stw_json element, struct stw_json keys)
{
    struct stw_json key, want;
    char name[128];
    stw_json_foreach (keys, key, want)
        if (stw_json_strcpy(key, name, sizeof(name)) != 0 ||
            !stw_json_equal(stw_json_get(element, name), want))
            return false;
    return true;
}

static struct stw_json find_by_keys(struct stw_json_doc *doc, struct stw_json list,
                                    const char *keys, uint32_t *ret_index)
{
    struct stw_json none, element;
    uint32_t index = 0;
    doc->trusted = true; /* of two keys of the same name an element must have both values */
    if (stw_json_scan(doc, keys, strlen(keys), NULL) != 0 ||
        stw_json_size(stw_json_root(doc)) > LIST_KEYS_MAX)
        return STW_JSON_NONE;
    stw_json_foreach (list, none, element) {
        if (has_keys(element, stw_json_root(doc))) {
            *ret_index = index;
            return element;
        }
        index++;
    }
    return STW_JSON_NONE;
}

struct stw_json stw_owned_find(struct stw_json list, const char *keys, uint32_t *ret_index)
{
    stw_autojson struct stw_json_doc doc = {0};
    return find_by_keys(&doc, list, keys, ret_index);
}

/* "web" or 8 identifies the element of a set that equals it.  The value is not a JSON document by
 * itself. */
struct stw_json stw_owned_find_value(struct stw_json list, const char *value, uint32_t *ret_index)
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
    uint32_t index = 0;
    struct stw_json element;
    if (part[0] == 'k')
        element = find_by_keys(&s->keys, list, part + 2, &index);
    else if (part[0] == 'v')
        element = stw_owned_find_value(list, part + 2, &index);
    else if (part[0] == 'i')
        element = find_by_index(list, part + 2, &index);
    else
        return;
    /* Owned but missing: counts, so that the digest differs from the desired one. */
    struct place to = stw_json_type(element) == STW_JSON_ABSENT
                          ? make_place_below(at, part, strlen(part), "")
                          : at_element(s, at, element, index);
    walk_owned_fields(s, &to, fields, element);
}

/* The guard of creates on old servers (controller/child/child.c): they drop the field from the new object
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
    struct stw_hash before = s->total;
    walk_owned_fields(s, &to, fields, stw_json_get(live, part + 2));
    if (is_template(at, part + 2))
        s->template = sum_since(s, before);
}

bool stw_owned_only_dot(struct stw_json fields)
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

bool stw_owned_costs_too_much(uint64_t *pairs, struct stw_json fields, struct stw_json live)
{
    uint64_t more = (uint64_t)stw_json_size(fields) * stw_json_size(live);
    if (more > STW_OWNED_PAIRS_MAX - *pairs)
        return true;
    *pairs += more;
    return false;
}

static void walk_owned_fields(struct owned_sum *s, const struct place *at, struct stw_json fields,
                              struct stw_json live)
{
    struct stw_json key, child;
    if (at->depth >= STW_OWNED_DEPTH_MAX || is_spent(s))
        return;
    if (stw_json_size(fields) == 0 || stw_owned_only_dot(fields) || is_whole(s, at) ||
        stw_owned_costs_too_much(&s->pairs, fields, live)) {
        flatten_value(s, at, live);
        return;
    }
    stw_json_foreach (fields, key, child) {
        char few[128];
        size_t len;
        const char *text = decode_text(s, key, &len);
        bool fits = len < sizeof(few) && !stw_json_has_nul(key);
        stw_autofree char *many = fits ? NULL : stw_json_strdup(key);
        if (fits) {
            memcpy(few, text, len);
            few[len] = '\0';
        }
        if (fits || many)
            walk_child(s, at, fits ? few : many, child, live);
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

/* Instead of what is owned, which costs too much: then the object counts as ours as a whole. */
static void flatten_all(struct owned_sum *s, struct stw_json object)
{
    static const char *const members[] = {"spec", "data"};
    const struct place top = {.name = ""};
    s->total = s->template = (struct stw_hash){0};
    s->visits_max = UINT64_MAX;
    for (size_t i = 0; i < STW_COUNT(members); i++) {
        struct place to = make_place_below(&top, members[i], strlen(members[i]), members[i]);
        flatten_value(s, &to, stw_json_get(object, members[i]));
    }
}

struct stw_hash stw_owned_live_parts(struct stw_json object, const char *manager, bool all_data,
                                     struct stw_hash *ret_template)
{
    struct owned_sum s = sum_init();
    for (const char *path; (path = stw_owned_whole(s.whole_count, all_data));)
        add_whole(&s, path);
    struct stw_json fields = stw_owned_fields(object, manager);
    const struct place top = {.name = ""};
    s.visits_max = VISITS_MAX;
    if (stw_json_size(fields) > 0)
        walk_owned_fields(&s, &top, fields, object);
    if (is_spent(&s))
        flatten_all(&s, object);
    *ret_template = s.template;
    return sum_take(&s);
}

struct stw_hash stw_owned_live(struct stw_json object, const char *manager, bool all_data)
{
    struct stw_hash unused;
    return stw_owned_live_parts(object, manager, all_data, &unused);
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
