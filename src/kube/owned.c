/* SPDX-License-Identifier: Apache-2.0
 *
 * Both sides of the digest flatten to leaves "path = value"; they meet because elements of
 * associative lists get their keys into the path, not their place.  The form of managedFields is
 * that of structured-merge-diff (fieldpath/serialize-pe.go): "f:name", "k:{keys}", "v:value",
 * "i:index", "." for the item itself, and an empty map for a leaf. */
#include "kube/owned.h"

#include "base/util.h"

#include <stdio.h>

#define PATH_MAX_BYTES 4096
#define DEPTH_MAX 64

/* Associative lists of the types that operators create, by the Kubernetes OpenAPI's list-map-keys,
 * keys in order of the alphabet as the API server writes them.  A list of plain values that is a
 * set has no keys.  A list that is missing here, or is another kind of list to some server, costs
 * one needless apply after a restart, never a wrong one. */
static const struct list_type {
    const char *name, *keys[2];
    const char *fallback; /* value of the second key when it is left out */
} list_types[] = {
    {"containers", {"name"}, NULL},
    {"initContainers", {"name"}, NULL},
    {"ephemeralContainers", {"name"}, NULL},
    {"volumes", {"name"}, NULL},
    {"volumeMounts", {"mountPath"}, NULL},
    {"volumeDevices", {"devicePath"}, NULL},
    {"ports", {"containerPort", "protocol"}, "TCP"},
    {"ports", {"port", "protocol"}, "TCP"},
    {"env", {"name"}, NULL},
    {"imagePullSecrets", {"name"}, NULL},
    {"secrets", {"name"}, NULL},
    {"hostAliases", {"ip"}, NULL},
    {"topologySpreadConstraints", {"topologyKey", "whenUnsatisfiable"}, NULL},
    {"ownerReferences", {"uid"}, NULL},
    {"conditions", {"type"}, NULL},
    {"webhooks", {"name"}, NULL},
    {"finalizers", {NULL}, NULL},
};

static bool is_set(const struct list_type *t)
{
    return !t->keys[0];
}

static const struct list_type *list_type(const char *name, struct stw_json element)
{
    for (size_t i = 0; i < STW_COUNT(list_types); i++) {
        const struct list_type *t = &list_types[i];
        if (stw_streq(t->name, name) &&
            (is_set(t) || stw_json_there(stw_json_get(element, t->keys[0]))))
            return t;
    }
    return NULL;
}

static void add_scalar(struct stw_json v, struct stw_buf *out)
{
    size_t len;
    if (stw_json_type(v) == STW_JSON_STRING) {
        stw_json_str(v, out);
    } else {
        const char *raw = stw_json_raw(v, &len);
        stw_buf_add(out, raw, len);
    }
}

/* "[web]", "[80/TCP]": what tells an element from the others of its list; its place where nothing
 * does. */
static void add_element(const char *list, struct stw_json element, uint32_t index,
                        struct stw_buf *path)
{
    const struct list_type *t = list_type(list, element);
    stw_buf_addc(path, '[');
    if (!t) {
        stw_buf_addi(path, index);
    } else if (is_set(t)) {
        add_scalar(element, path);
    } else {
        add_scalar(stw_json_get(element, t->keys[0]), path);
        struct stw_json second = t->keys[1] ? stw_json_get(element, t->keys[1]) : STW_JSON_NONE;
        if (t->keys[1])
            stw_buf_addc(path, '/');
        if (t->keys[1] && stw_json_there(second))
            add_scalar(second, path);
        else if (t->fallback)
            stw_buf_adds(path, t->fallback);
    }
    stw_buf_addc(path, ']');
}

static void add_name(struct stw_json key, struct stw_buf *path)
{
    if (path->len)
        stw_buf_addc(path, '.');
    stw_json_str(key, path);
}

static void cut(struct stw_buf *path, size_t len)
{
    if (path->failed)
        return;
    path->len = len;
    if (path->data)
        path->data[len] = '\0';
}

/* The last name in a path, "ports" of "spec.ports"; a copy, as the path grows. */
static void last_name(const struct stw_buf *path, char out[64])
{
    const char *dot = path->len ? strrchr(path->data, '.') : NULL;
    (void)snprintf(out, 64, "%s", dot ? dot + 1 : stw_buf_str(path));
}

/* --- leaves */

/* What one walk collects: a digest, or the differences to another object. */
struct walk {
    struct stw_buf path;
    struct stw_hash sum;
    bool failed;
};

static void add_leaf(struct walk *w, struct stw_json v)
{
    stw_autobuf struct stw_buf leaf = STW_BUF_INIT(64u << 20);
    static const char marks[] = {
        [STW_JSON_NULL] = 'n',  [STW_JSON_FALSE] = 'b',  [STW_JSON_TRUE] = 'b',
        [STW_JSON_INT] = 'i',   [STW_JSON_REAL] = 'r',   [STW_JSON_STRING] = 's',
        [STW_JSON_ARRAY] = '[', [STW_JSON_OBJECT] = '{',
    };
    enum stw_json_type type = stw_json_type(v);
    stw_buf_add(&leaf, w->path.data, w->path.len);
    stw_buf_addc(&leaf, '\0');
    stw_buf_addc(&leaf, marks[type]);
    if (type < STW_JSON_ARRAY)
        add_scalar(v, &leaf);
    w->failed |= leaf.failed || w->path.failed;
    struct stw_hash h = stw_hash_bytes(leaf.data, leaf.len);
    w->sum.lo += h.lo;
    w->sum.hi += h.hi;
}

static void flatten(struct walk *w, struct stw_json v, unsigned depth);

static void flatten_list(struct walk *w, struct stw_json list, unsigned depth)
{
    struct stw_json key, element;
    char name[64];
    uint32_t index = 0;
    size_t len = w->path.len;
    last_name(&w->path, name);
    stw_json_foreach (list, key, element) {
        add_element(name, element, index++, &w->path);
        flatten(w, element, depth + 1);
        cut(&w->path, len);
    }
}

/* A null is not applied, so it is no leaf. */
static void flatten(struct walk *w, struct stw_json v, unsigned depth)
{
    struct stw_json key, member;
    size_t len = w->path.len;
    if (!stw_json_there(v) || depth > DEPTH_MAX)
        return;
    if (stw_json_type(v) < STW_JSON_ARRAY || stw_json_size(v) == 0) {
        add_leaf(w, v);
        return;
    }
    if (stw_json_type(v) == STW_JSON_ARRAY) {
        flatten_list(w, v, depth);
        return;
    }
    stw_json_foreach (v, key, member) {
        add_name(key, &w->path);
        flatten(w, member, depth + 1);
        cut(&w->path, len);
    }
}

/* --- the live side */

static void owned(struct walk *w, struct stw_json fields, struct stw_json v, unsigned depth);

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

static void owned_element(struct walk *w, struct stw_json fields, const char *keys,
                          struct stw_json list, unsigned depth)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err;
    struct stw_json key, element;
    char name[64];
    uint32_t index = 0;
    size_t len = w->path.len;
    if (stw_json_scan(&doc, keys, strlen(keys), &err) != 0)
        return;
    last_name(&w->path, name);
    stw_json_foreach (list, key, element) {
        if (has_keys(element, stw_json_root(&doc))) {
            add_element(name, element, index, &w->path);
            owned(w, fields, element, depth + 1);
            cut(&w->path, len);
            return;
        }
        index++;
    }
}

/* "v:..." holds the value as JSON text. */
static void owned_value(struct walk *w, const char *text, struct stw_json list)
{
    struct stw_json key, element;
    size_t len = w->path.len, raw_len;
    stw_json_foreach (list, key, element) {
        const char *raw = stw_json_raw(element, &raw_len);
        if (raw_len != strlen(text) || memcmp(raw, text, raw_len) != 0)
            continue;
        stw_buf_addc(&w->path, '[');
        add_scalar(element, &w->path);
        stw_buf_addc(&w->path, ']');
        add_leaf(w, element);
        cut(&w->path, len);
        return;
    }
}

static void owned_index(struct walk *w, struct stw_json fields, const char *text,
                        struct stw_json list, unsigned depth)
{
    int64_t index;
    size_t len = w->path.len;
    if (stw_parse_int(text, 0, UINT32_MAX, &index) != 0)
        return;
    stw_buf_addf(&w->path, "[%lld]", (long long)index);
    owned(w, fields, stw_json_at(list, (uint32_t)index), depth + 1);
    cut(&w->path, len);
}

static void owned_member(struct walk *w, struct stw_json fields, const char *name,
                         struct stw_json object, unsigned depth)
{
    size_t len = w->path.len;
    if (len)
        stw_buf_addc(&w->path, '.');
    stw_buf_adds(&w->path, name);
    owned(w, fields, stw_json_get(object, name), depth + 1);
    cut(&w->path, len);
}

static void owned(struct walk *w, struct stw_json fields, struct stw_json v, unsigned depth)
{
    struct stw_json key, below;
    if (!stw_json_there(v) || depth > DEPTH_MAX)
        return;
    if (stw_json_size(fields) == 0) {
        flatten(w, v, depth);
        return;
    }
    stw_json_foreach (fields, key, below) {
        stw_autofree char *element = stw_json_strdup(key);
        if (!element) {
            w->failed = true;
            return;
        }
        if (strncmp(element, "f:", 2) == 0)
            owned_member(w, below, element + 2, v, depth);
        else if (strncmp(element, "k:", 2) == 0)
            owned_element(w, below, element + 2, v, depth);
        else if (strncmp(element, "v:", 2) == 0)
            owned_value(w, element + 2, v);
        else if (strncmp(element, "i:", 2) == 0)
            owned_index(w, below, element + 2, v, depth);
    }
}

/* Zero says "nothing of ours"; a walk that ran out of memory says so too, and an apply follows. */
static struct stw_hash walk_done(struct walk *w)
{
    bool failed = w->failed || w->path.failed;
    stw_buf_done(&w->path);
    return failed ? (struct stw_hash){0} : w->sum;
}

static bool is_our_entry(struct stw_json entry, const char *manager)
{
    struct stw_json sub = stw_json_get(entry, "subresource");
    return stw_json_is(stw_json_get(entry, "manager"), manager) &&
           stw_json_is(stw_json_get(entry, "operation"), "Apply") &&
           (!stw_json_there(sub) || stw_json_size(sub) == 0);
}

struct stw_hash stw_owned_live(struct stw_json object, const char *manager)
{
    struct stw_json key, entry;
    struct walk w = {.path = STW_BUF_INIT(PATH_MAX_BYTES)};
    stw_json_foreach (stw_json_path(object, "metadata.managedFields"), key, entry)
        if (is_our_entry(entry, manager))
            owned(&w, stw_json_get(entry, "fieldsV1"), object, 0);
    return walk_done(&w);
}

/* --- the desired side */

static bool names_object(struct stw_json key, bool in_metadata)
{
    return in_metadata ? stw_json_is(key, "name") || stw_json_is(key, "namespace") ||
                             stw_json_is(key, "uid") || stw_json_is(key, "resourceVersion")
                       : stw_json_is(key, "apiVersion") || stw_json_is(key, "kind");
}

static void flatten_object(struct walk *w, struct stw_json object, bool metadata)
{
    struct stw_json key, member;
    size_t len = w->path.len;
    stw_json_foreach (object, key, member) {
        if (names_object(key, metadata))
            continue;
        add_name(key, &w->path);
        if (!metadata && stw_json_is(key, "metadata"))
            flatten_object(w, member, true);
        else
            flatten(w, member, 0);
        cut(&w->path, len);
    }
}

struct stw_hash stw_owned_desired(struct stw_json desired)
{
    struct walk w = {.path = STW_BUF_INIT(PATH_MAX_BYTES)};
    flatten_object(&w, desired, false);
    return walk_done(&w);
}

/* --- differences, for people */

struct diff {
    struct stw_buf path, *out;
    unsigned count, max;
};

static void add_difference(struct diff *d)
{
    if (d->count++ >= d->max)
        return;
    if (d->count > 1)
        stw_buf_adds(d->out, ", ");
    stw_buf_add(d->out, d->path.data, d->path.len);
}

static void compare(struct diff *d, struct stw_json want, struct stw_json have, unsigned depth);

/* The element of `list` that has the place in it which `path` ends with. */
static struct stw_json counterpart(const char *name, struct stw_json list,
                                   const struct stw_buf *path, size_t from)
{
    struct stw_json key, element;
    uint32_t index = 0;
    stw_json_foreach (list, key, element) {
        stw_autobuf struct stw_buf id = STW_BUF_INIT(PATH_MAX_BYTES);
        add_element(name, element, index++, &id);
        if (id.len == path->len - from && memcmp(id.data, path->data + from, id.len) == 0)
            return element;
    }
    return STW_JSON_NONE;
}

static void compare_lists(struct diff *d, struct stw_json want, struct stw_json have,
                          unsigned depth)
{
    struct stw_json key, element;
    char name[64];
    uint32_t index = 0;
    size_t len = d->path.len;
    last_name(&d->path, name);
    stw_json_foreach (want, key, element) {
        add_element(name, element, index++, &d->path);
        if (!d->path.failed)
            compare(d, element, counterpart(name, have, &d->path, len), depth + 1);
        cut(&d->path, len);
    }
}

static void compare_members(struct diff *d, struct stw_json want, struct stw_json have,
                            unsigned depth)
{
    struct stw_json key, member;
    size_t len = d->path.len;
    stw_json_foreach (want, key, member) {
        stw_autofree char *name = stw_json_strdup(key);
        if (!name || !stw_json_there(member))
            continue;
        add_name(key, &d->path);
        compare(d, member, stw_json_get(have, name), depth + 1);
        cut(&d->path, len);
    }
}

/* Lists and maps may hold more than we want, except where we want them empty. */
static void compare(struct diff *d, struct stw_json want, struct stw_json have, unsigned depth)
{
    enum stw_json_type type = stw_json_type(want);
    if (depth > DEPTH_MAX)
        return;
    if (type < STW_JSON_ARRAY || stw_json_size(want) == 0) {
        if (!stw_json_equal(want, have))
            add_difference(d);
    } else if (stw_json_type(have) != type) {
        add_difference(d);
    } else if (type == STW_JSON_ARRAY) {
        compare_lists(d, want, have, depth);
    } else {
        compare_members(d, want, have, depth);
    }
}

unsigned stw_owned_diff(struct stw_json desired, struct stw_json live, unsigned max,
                        struct stw_buf *out)
{
    struct diff d = {.path = STW_BUF_INIT(PATH_MAX_BYTES), .out = out, .max = max};
    compare(&d, desired, live, 0);
    if (d.count > max)
        stw_buf_addf(out, " and %u more", d.count - max);
    stw_buf_done(&d.path);
    return d.count;
}

int stw_owner_controller(struct stw_json object, char *ret_kind, char *ret_name, char *ret_uid)
{
    struct stw_json key, owner;
    stw_json_foreach (stw_json_path(object, "metadata.ownerReferences"), key, owner) {
        if (!stw_json_bool(stw_json_get(owner, "controller"), false))
            continue;
        if (ret_kind && stw_json_strcpy(stw_json_get(owner, "kind"), ret_kind, 64) != 0)
            return -1;
        if (ret_name && stw_json_strcpy(stw_json_get(owner, "name"), ret_name, 254) != 0)
            return -1;
        if (ret_uid && stw_json_strcpy(stw_json_get(owner, "uid"), ret_uid, 64) != 0)
            return -1;
        return 0;
    }
    return -1;
}
