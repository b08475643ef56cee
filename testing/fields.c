/* SPDX-License-Identifier: Apache-2.0
 *
 * The paths of a set are the parts of fieldsV1 ("f:spec", "k:{\"name\":\"web\"}", "v:\"x\""), joined by
 * SEP.  Which lists have keys and which maps are atomic is in the OpenAPI of a server; here it is in tables
 * for the types that operators write. */
#include "testing/fields_priv.h"

#include "base/buf.h"
#include "base/util.h"
#include "testing/tree_priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SEP '\x1f'
#define PATH_MAX_BYTES (64u << 10)
#define KEYS_MAX 2

struct list_type {
    const char *name;
    const char *keys[KEYS_MAX];      /* none: a set */
    const char *otherwise[KEYS_MAX]; /* the default of a key */
    bool whole;                      /* an element is owned as a whole */
    bool everywhere;                 /* also in custom resources */
};

static const struct list_type lists[] = {
    {"containers", {"name"}, {0}, false, false},
    {"initContainers", {"name"}, {0}, false, false},
    {"ephemeralContainers", {"name"}, {0}, false, false},
    {"volumes", {"name"}, {0}, false, false},
    {"volumeMounts", {"mountPath"}, {0}, false, false},
    {"volumeDevices", {"devicePath"}, {0}, false, false},
    {"env", {"name"}, {0}, false, false},
    {"ports", {"containerPort", "protocol"}, {NULL, "TCP"}, false, false},
    {"ports", {"port", "protocol"}, {NULL, "TCP"}, false, false},
    {"imagePullSecrets", {"name"}, {0}, true, false},
    {"secrets", {"name"}, {0}, true, false},
    {"hostAliases", {"ip"}, {0}, false, false},
    {"topologySpreadConstraints", {"topologyKey", "whenUnsatisfiable"}, {0}, false, false},
    {"webhooks", {"name"}, {0}, false, false},
    {"resourceClaims", {"name"}, {0}, false, false},
    {"schedulingGates", {"name"}, {0}, false, false},
    {"ownerReferences", {"uid"}, {0}, true, true},
    {"conditions", {"type"}, {0}, false, true},
    {"finalizers", {0}, {0}, true, true},
};

/* Maps that are owned as a whole. */
static const char *const atomic_maps[] = {
    "selector",    "nodeSelector",     "labelSelector",  "namespaceSelector",
    "podSelector", "objectSelector",   "secretKeyRef",   "configMapKeyRef",
    "fieldRef",    "resourceFieldRef", "scaleTargetRef", "targetRef",
    "roleRef",     "regarding",        "involvedObject", NULL};

static bool is_named(const char *const *names, const char *name)
{
    while (*names && !stw_streq(*names, name))
        names++;
    return *names != NULL;
}

static bool is_granular(bool custom, const char *name, const json_t *v)
{
    return json_is_object(v) && json_object_size(v) > 0 && (custom || !is_named(atomic_maps, name));
}

/* NULL: the list is atomic. */
static const struct list_type *type_of_list(bool custom, const char *name, const json_t *list)
{
    const json_t *first = json_array_get(list, 0);
    for (size_t i = 0; i < STW_COUNT(lists); i++) {
        const struct list_type *t = &lists[i];
        if (!stw_streq(t->name, name) || (custom && !t->everywhere))
            continue;
        if (!first ||
            (t->keys[0] ? json_object_get(first, t->keys[0]) != NULL : json_is_string(first)))
            return t;
    }
    return NULL;
}

/* "k:{...}" or "v:..." of an element; the caller frees it. */
static char *element_part(const struct list_type *t, const json_t *element)
{
    json_auto_t *key = t->keys[0] ? json_object() : json_incref((json_t *)(uintptr_t)element);
    for (size_t i = 0; i < KEYS_MAX && t->keys[i]; i++) {
        json_t *v = json_object_get(element, t->keys[i]);
        if (!v && t->otherwise[i])
            json_object_set_new(key, t->keys[i], json_string(t->otherwise[i]));
        else if (v)
            json_object_set(key, t->keys[i], v);
    }
    stw_autofree char *text = json_dumps(key, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    char *part = NULL;
    return asprintf(&part, "%c:%s", t->keys[0] ? 'k' : 'v', text) < 0 ? NULL : part;
}

/* --- the fields of an object: a set whose values are those of the leaves, and true for elements */

static size_t path_push(struct stw_buf *path, const char *kind, const char *part)
{
    size_t before = path->len;
    if (before > 0)
        stw_buf_addc(path, SEP);
    stw_buf_adds(path, kind);
    stw_buf_adds(path, part);
    return before;
}

static void path_pop(struct stw_buf *path, size_t before)
{
    path->len = before;
    if (path->data)
        path->data[before] = '\0';
}

/* What has no owner. */
static bool is_left_out(const struct stw_buf *path, const char *member)
{
    static const char *const top[] = {"apiVersion", "kind", NULL};
    static const char *const meta[] = {"name",       "namespace",         "uid",
                                       "generation", "managedFields",     "resourceVersion",
                                       "selfLink",   "creationTimestamp", NULL};
    return is_named(path->len == 0                               ? top
                    : stw_streq(stw_buf_str(path), "f:metadata") ? meta
                                                                 : top + 2,
                    member);
}

static void add_fields(json_t *fields, bool custom, struct stw_buf *path, const char *name,
                       const json_t *v)
{
    const struct list_type *t = json_is_array(v) ? type_of_list(custom, name, v) : NULL;
    const char *key;
    json_t *child;
    size_t i;
    if (is_granular(custom, name, v)) {
        json_object_foreach ((json_t *)(uintptr_t)v, key, child) {
            if (is_left_out(path, key))
                continue;
            size_t before = path_push(path, "f:", key);
            add_fields(fields, custom, path, key, child);
            path_pop(path, before);
        }
        return;
    }
    if (!t) {
        json_object_set(fields, stw_buf_str(path), (json_t *)(uintptr_t)v);
        return;
    }
    json_array_foreach (v, i, child) {
        stw_autofree char *part = element_part(t, child);
        size_t before = path_push(path, "", part);
        json_object_set(fields, stw_buf_str(path), t->whole ? child : json_true());
        if (!t->whole)
            add_fields(fields, custom, path, "", child);
        path_pop(path, before);
    }
}

static json_t *fields_of(const json_t *object, bool custom)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    json_t *fields = json_object();
    if (json_object_size(object) > 0)
        add_fields(fields, custom, &path, "", object);
    return fields;
}

/* --- sets */

/* What `after` has that `before` has not, or with another value. */
static json_t *differing(const json_t *after, const json_t *before)
{
    const char *path;
    json_t *v;
    json_t *set = json_object();
    json_object_foreach ((json_t *)(uintptr_t)after, path, v) {
        const json_t *old = json_object_get(before, path);
        if (!old || !json_equal(old, v))
            json_object_set(set, path, v);
    }
    return set;
}

static void add_all(json_t *set, const json_t *more)
{
    json_object_update(set, (json_t *)(uintptr_t)more);
}

static void remove_all(json_t *set, const json_t *less)
{
    const char *path;
    json_t *v;
    json_object_foreach ((json_t *)(uintptr_t)less, path, v)
        json_object_del(set, path);
}

static bool is_at_or_below(const char *path, const char *top)
{
    size_t len = strlen(top);
    return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == SEP);
}

/* The part at `*at`, which then is behind it. */
static const char *next_part(const char **at, size_t *ret_len)
{
    const char *part = *at;
    *ret_len = strcspn(part, (const char[]){SEP, '\0'});
    *at = part + *ret_len + (part[*ret_len] == SEP);
    return part;
}

/* The set as fieldsV1. */
static json_t *to_tree(const json_t *set)
{
    json_t *tree = json_object();
    const char *path;
    json_t *v;
    for (int pass = 0; pass < 2; pass++) { /* the second marks the fields that have fields */
        json_object_foreach ((json_t *)(uintptr_t)set, path, v) {
            json_t *node = tree;
            for (const char *at = path; *at;) {
                size_t len;
                const char *part = next_part(&at, &len);
                stw_autofree char *name = strndup(part, len);
                json_t *next = json_object_get(node, name);
                if (!next)
                    json_object_set_new(node, name, next = json_object());
                node = next;
            }
            if (pass == 1 && json_object_size(node) > 0)
                json_object_set_new(node, ".", json_object());
        }
    }
    return tree;
}

static void from_tree(json_t *set, struct stw_buf *path, json_t *tree)
{
    const char *part;
    json_t *child;
    if (json_object_size(tree) == 0 && path->len > 0)
        json_object_set_new(set, stw_buf_str(path), json_true());
    json_object_foreach (tree, part, child) {
        if (stw_streq(part, ".")) {
            json_object_set_new(set, stw_buf_str(path), json_true());
            continue;
        }
        size_t before = path_push(path, "", part);
        from_tree(set, path, child);
        path_pop(path, before);
    }
}

/* --- metadata.managedFields, each entry with its set in "set" */

static json_t *read_managers(const json_t *object)
{
    json_t *all = json_array(), *entry;
    size_t i;
    json_array_foreach (stw_test_path(object, "metadata.managedFields"), i, entry) {
        stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
        json_t *copy = json_copy(entry), *set = json_object();
        from_tree(set, &path, json_object_get(entry, "fieldsV1"));
        json_object_set_new(copy, "set", set);
        json_array_append_new(all, copy);
    }
    return all;
}

static void write_managers(json_t *object, json_t *all)
{
    json_auto_t *written = json_array();
    json_t *entry;
    size_t i;
    for (int updates = 0; updates < 2; updates++) { /* those of applies come first */
        json_array_foreach (all, i, entry) {
            json_t *set = json_object_get(entry, "set");
            bool update = stw_streq(stw_test_text_of(entry, "operation"), "Update");
            if (update != (updates == 1) || json_object_size(set) == 0)
                continue;
            json_object_set_new(entry, "fieldsV1", to_tree(set));
            json_object_del(entry, "set");
            json_array_append(written, entry);
        }
    }
    json_t *metadata = stw_test_member(object, "metadata");
    if (json_array_size(written) > 0)
        json_object_set(metadata, "managedFields", written);
    else
        json_object_del(metadata, "managedFields");
}

static bool is_entry(const json_t *entry, const struct stw_test_writer *w, const char *operation)
{
    return stw_streq(stw_test_text_of(entry, "manager"), w->manager) &&
           stw_streq(stw_test_text_of(entry, "operation"), operation) &&
           stw_streq(stw_test_text_of(entry, "subresource"), w->sub);
}

/* The writer's own entry, made if there is none. */
static json_t *own_entry(json_t *all, const struct stw_test_writer *w, const char *operation)
{
    json_t *entry;
    size_t i;
    json_array_foreach (all, i, entry)
        if (is_entry(entry, w, operation))
            return entry;
    entry = json_pack("{s:s,s:s,s:s,s:s,s:s,s:{},s:{}}", "manager", w->manager, "operation",
                      operation, "apiVersion", w->api_version, "time", w->now, "fieldsType",
                      "FieldsV1", "fieldsV1", "set");
    if (*w->sub)
        json_object_set_new(entry, "subresource", json_string(w->sub));
    json_array_append_new(all, entry);
    return entry;
}

static bool same_paths(const json_t *a, const json_t *b)
{
    const char *path;
    json_t *v;
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach ((json_t *)(uintptr_t)a, path, v)
        if (!json_object_get(b, path))
            return false;
    return true;
}

/* --- merging, and taking out */

static json_t *find_element(const struct list_type *t, const json_t *list, const char *part,
                            size_t len, size_t *ret_index)
{
    json_t *element;
    size_t i;
    json_array_foreach (list, i, element) {
        stw_autofree char *own = element_part(t, element);
        *ret_index = i;
        if (strlen(own) == len && memcmp(own, part, len) == 0)
            return element;
    }
    return NULL;
}

static json_t *merged_list(bool custom, const struct list_type *t, const json_t *live,
                           const json_t *wanted);

static json_t *merged(bool custom, const char *name, const json_t *live, const json_t *wanted)
{
    const char *key;
    json_t *v;
    if (json_is_object(live) && json_is_object(wanted) &&
        (custom || !is_named(atomic_maps, name))) {
        json_t *all = json_copy((json_t *)(uintptr_t)live);
        json_object_foreach ((json_t *)(uintptr_t)wanted, key, v)
            json_object_set_new(all, key, merged(custom, key, json_object_get(live, key), v));
        return all;
    }
    const struct list_type *t =
        json_is_array(live) && json_is_array(wanted) && json_array_size(live)
            ? type_of_list(custom, name, live)
            : NULL;
    if (!t)
        return json_deep_copy(wanted);
    return merged_list(custom, t, live, wanted);
}

/* The wanted elements in their order; those of others stay where they are. */
static json_t *merged_list(bool custom, const struct list_type *t, const json_t *live,
                           const json_t *wanted)
{
    json_t *all = json_array();
    size_t l = 0, w = 0, at;
    while (l < json_array_size(live) || w < json_array_size(wanted)) {
        json_t *old = json_array_get(live, l), *v = json_array_get(wanted, w);
        stw_autofree char *old_part = old ? element_part(t, old) : NULL;
        stw_autofree char *part = v ? element_part(t, v) : NULL;
        if (old && !find_element(t, wanted, old_part, strlen(old_part), &at)) {
            json_array_append(all, old);
            l++;
        } else if (old && find_element(t, all, old_part, strlen(old_part), &at)) {
            l++;
        } else {
            assert(part); /* an old element that is not wanted, or is in `all`, was handled above */
            old = find_element(t, live, part, strlen(part), &at);
            json_array_append_new(all, old && !t->whole ? merged(custom, "", old, v)
                                                        : json_deep_copy(v));
            w++;
        }
    }
    return all;
}

/* Takes a field out of a copy of the value; what has become empty by that goes, too. */
static json_t *without(bool custom, const char *name, const json_t *v, const char *path)
{
    size_t len, index;
    const char *at = path, *part = next_part(&at, &len);
    const struct list_type *t = json_is_array(v) ? type_of_list(custom, name, v) : NULL;
    stw_autofree char *member = len > 2 ? strndup(part + 2, len - 2) : strdup("");
    json_t *child = json_is_object(v) ? json_object_get(v, member)
                    : t               ? find_element(t, v, part, len, &index)
                                      : NULL;
    json_t *copy = json_copy((json_t *)(uintptr_t)v);
    if (!child)
        return copy;
    json_auto_t *rest = *at ? without(custom, t ? "" : member, child, at) : NULL;
    bool gone = !rest || ((json_is_object(rest) || json_is_array(rest)) &&
                          json_object_size(rest) == 0 && json_array_size(rest) == 0);
    if (t && gone)
        json_array_remove(copy, index);
    else if (t)
        json_array_set(copy, index, rest);
    else if (gone)
        json_object_del(copy, member);
    else
        json_object_set(copy, member, rest);
    return copy;
}

/* "f:name" of an element that has this key stays as long as the element. */
static bool is_key_of_element(const char *path)
{
    const char *last = strrchr(path, SEP), *before = last;
    if (!last)
        return false;
    while (before > path && before[-1] != SEP)
        before--;
    stw_autofree char *quoted = NULL;
    if (strncmp(before, "k:", 2) != 0 || asprintf(&quoted, "\"%s\":", last + 3) < 0)
        return false;
    const char *found = strstr(before, quoted);
    return found && found < last;
}

static bool others_own(const json_t *all, const json_t *mine, const char *path)
{
    const char *one;
    json_t *entry, *v;
    size_t i;
    json_array_foreach (all, i, entry) {
        if (entry == mine)
            continue;
        json_object_foreach (json_object_get(entry, "set"), one, v)
            if (is_at_or_below(one, path))
                return true;
    }
    return false;
}

/* --- apply */

/* ".data.a", ".spec.containers[name=\"web\"].image" */
static json_t *field_name(const char *path)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(PATH_MAX_BYTES);
    for (const char *at = path; *at;) {
        size_t len;
        const char *part = next_part(&at, &len);
        if (part[0] == 'f')
            stw_buf_addf(&out, ".%.*s", (int)len - 2, part + 2);
        else if (part[0] == 'v')
            stw_buf_addf(&out, "[=%.*s]", (int)len - 2, part + 2);
        else {
            stw_autofree char *text = strndup(part + 2, len - 2);
            json_auto_t *keys = json_loads(text, 0, NULL);
            const char *key, *comma = "";
            json_t *v;
            stw_buf_addc(&out, '[');
            json_object_foreach (keys, key, v) {
                stw_autofree char *value = json_dumps(v, JSON_ENCODE_ANY);
                stw_buf_addf(&out, "%s%s=%s", comma, key, value);
                comma = ",";
            }
            stw_buf_addc(&out, ']');
        }
    }
    return json_string(stw_buf_str(&out));
}

/* "\"kubectl\" using apps/v1" */
static json_t *conflict_with(const json_t *entry)
{
    const char *sub = stw_test_text_of(entry, "subresource");
    bool update = stw_streq(stw_test_text_of(entry, "operation"), "Update");
    return json_sprintf("\"%s\"%s%s%s%s%s", stw_test_text_of(entry, "manager"),
                        *sub ? " with subresource \"" : "", sub, *sub ? "\"" : "",
                        update ? " using " : "",
                        update ? stw_test_text_of(entry, "apiVersion") : "");
}

/* Takes what changes from the others, or lists it. */
static void claim(json_t *all, const json_t *mine, const json_t *changed, bool force,
                  json_t *conflicts)
{
    const char *path;
    json_t *entry, *v;
    size_t i;
    json_array_foreach (all, i, entry) {
        json_t *set = json_object_get(entry, "set");
        if (entry == mine)
            continue;
        json_object_foreach ((json_t *)(uintptr_t)changed, path, v)
            if (json_object_get(set, path) && !force)
                json_array_append_new(conflicts, json_pack("{s:o,s:o}", "who", conflict_with(entry),
                                                           "field", field_name(path)));
        if (force)
            remove_all(set, changed);
    }
}

/* What this writer may set: not the status with the object, and nothing else with the status. */
static json_t *applicable(const json_t *wanted, const struct stw_test_writer *w)
{
    json_t *copy = json_deep_copy(wanted);
    const char *key;
    json_t *v;
    void *next;
    json_object_del(json_object_get(copy, "metadata"), "managedFields");
    if (!*w->sub && w->has_status)
        json_object_del(copy, "status");
    json_object_foreach_safe(copy, next, key, v) if (*w->sub && !stw_streq(key, w->sub) &&
                                                     !stw_streq(key, "apiVersion") &&
                                                     !stw_streq(key, "kind"))
        json_object_del(copy, key);
    return copy;
}

static json_t *without_managers(const json_t *object)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)object);
    json_object_set_new(copy, "metadata", json_copy(json_object_get(object, "metadata")));
    json_object_del(json_object_get(copy, "metadata"), "managedFields");
    return copy;
}

static json_t *take_out_left(json_t *object, const json_t *left, const json_t *all,
                             const json_t *mine, bool custom)
{
    const char *path;
    json_t *v;
    json_object_foreach ((json_t *)(uintptr_t)left, path, v) {
        if (others_own(all, mine, path) || is_key_of_element(path))
            continue;
        json_t *rest = without(custom, "", object, path);
        json_decref(object);
        object = rest;
    }
    return object;
}

json_t *stw_test_apply(const json_t *live, const json_t *wanted, const struct stw_test_writer *w,
                       json_t **ret_conflicts)
{
    json_auto_t *base = live ? without_managers(live) : json_object();
    json_auto_t *config = applicable(wanted, w), *set = fields_of(config, w->custom);
    json_auto_t *all = read_managers(live), *conflicts = json_array();
    json_t *object = merged(w->custom, "", base, config);
    json_auto_t *before = fields_of(base, w->custom), *after = fields_of(object, w->custom);
    json_auto_t *changed = differing(after, before);
    json_t *mine = own_entry(all, w, "Apply");
    claim(all, mine, changed, w->force, conflicts);
    if (json_array_size(conflicts) > 0) {
        *ret_conflicts = stw_take(conflicts);
        json_decref(object);
        return NULL;
    }
    json_t *former = json_object_get(mine, "set");
    json_auto_t *left = json_copy(former);
    remove_all(left, set);
    object = take_out_left(object, left, all, mine, w->custom);
    if (live && json_equal(object, base) && same_paths(former, set)) {
        json_decref(object);
        return json_copy((json_t *)(uintptr_t)live);
    }
    json_object_set(mine, "set", set);
    json_object_set_new(mine, "time", json_string(w->now));
    json_object_set_new(mine, "apiVersion", json_string(w->api_version));
    write_managers(object, all);
    return object;
}

/* --- other writes */

/* The maps above what was added, which were not there before: they get no owner but this writer. */
static json_t *new_maps(const json_t *changed, const json_t *before)
{
    json_t *maps = json_object();
    const char *path, *one;
    json_t *v;
    json_object_foreach ((json_t *)(uintptr_t)changed, path, v) {
        for (const char *end = strchr(path, SEP); end; end = strchr(end + 1, SEP)) {
            stw_autofree char *map = strndup(path, (size_t)(end - path));
            bool there = false;
            json_object_foreach ((json_t *)(uintptr_t)before, one, v)
                there = there || is_at_or_below(one, map);
            if (!there)
                json_object_set_new(maps, map, json_true());
        }
    }
    return maps;
}

void stw_test_own_changes(const json_t *live, json_t *object, const struct stw_test_writer *w)
{
    const json_t *given = stw_test_path(object, "metadata.managedFields");
    json_auto_t *all = read_managers(given ? object : live);
    json_auto_t *before = fields_of(live, w->custom), *after = fields_of(object, w->custom);
    json_auto_t *changed = differing(after, before), *removed = json_copy(before);
    json_auto_t *maps = new_maps(changed, before);
    json_t *entry, *mine = own_entry(all, w, "Update");
    size_t i;
    remove_all(removed, after);
    json_array_foreach (all, i, entry) {
        json_t *set = json_object_get(entry, "set");
        if (entry != mine) {
            remove_all(set, changed);
            remove_all(set, maps);
        }
        remove_all(set, removed);
    }
    if (json_object_size(changed) > 0) {
        add_all(json_object_get(mine, "set"), changed);
        json_object_set_new(mine, "time", json_string(w->now));
        json_object_set_new(mine, "apiVersion", json_string(w->api_version));
    }
    write_managers(object, all);
}
