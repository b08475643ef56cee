/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/manifest.h"

#include "base/util.h"
#include "kube/tree.h"
#include "schema/names.h"

/* --- metadata */

/* True for a label value: at most 63 of [A-Za-z0-9-_.], with a letter or digit at both ends. */
static bool is_label_value(const char *s)
{
    static const char alnum[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(s);
    return len > 0 && len <= 63 && strchr(alnum, s[0]) && strchr(alnum, s[len - 1]) &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == len;
}

json_t *stw_manifest_selector(const struct stw_naming *n, const struct stw_owner *owner)
{
    if (owner->selector)
        return json_deep_copy(owner->selector);
    return stw_tree_pack("{s:s,s:s}", "app.kubernetes.io/name", n->app,
                         "app.kubernetes.io/instance", owner->name);
}

json_t *stw_manifest_labels(const struct stw_run *run, const struct stw_owner *owner,
                            const struct stw_naming *n)
{
    char tag[130];
    json_t *all = stw_tree_pack("{s:s,s:s}", "app.kubernetes.io/name", n->app,
                                "app.kubernetes.io/instance", owner->name);
    (void)json_object_set_new(all, "app.kubernetes.io/component", json_string(n->component));
    (void)json_object_set_new(all, "app.kubernetes.io/part-of", json_string(owner->name));
    (void)json_object_set_new(all, STW_MANAGED_BY, json_string(run->op->name));
    stw_image_tag(n->image, tag, sizeof(tag));
    if (is_label_value(tag))
        (void)json_object_set_new(all, "app.kubernetes.io/version", json_string(tag));
    if (owner->selector)
        (void)json_object_update(all, (json_t *)(uintptr_t)owner->selector);
    return all;
}

json_t *stw_manifest_metadata(const struct stw_run *run, const struct stw_owner *owner,
                              const struct stw_naming *n, const char *name)
{
    return stw_tree_pack("{s:s,s:s,s:o,s:[o]}", "name", name, "namespace", owner->ns, "labels",
                         stw_manifest_labels(run, owner, n), "ownerReferences",
                         stw_owner_reference(run->controller->resource, owner));
}

/* --- parts copied from the spec */

/* Removes members that are null: to the API server these are absent. */
static void drop_nulls(json_t *value)
{
    const char *key;
    void *next;
    json_t *member;
    size_t i;
    json_array_foreach (value, i, member)
        drop_nulls(member);
    json_object_foreach_safe(value, next, key, member)
    {
        if (json_is_null(member))
            (void)json_object_del(value, key);
        else
            drop_nulls(member);
    }
}

json_t *stw_manifest_tree(struct stw_json value)
{
    json_t *tree = stw_json_there(value) ? stw_tree_read(value) : NULL;
    if (stw_json_there(value) && !tree)
        stw_tree_note_unread();
    drop_nulls(tree);
    return tree;
}

static json_t *canonical_quantity(const json_t *value)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
    stw_autofree char *number = json_is_number(value) ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    const char *text = number ? number : json_string_value(value);
    if (!text || stw_quantity_canonical(text, &out) != 0 || out.failed)
        return json_deep_copy(value);
    return json_string(stw_buf_str(&out));
}

void stw_manifest_canonical_member(json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (value)
        (void)json_object_set_new(object, key, canonical_quantity(value));
}

void stw_manifest_canonical_resources(json_t *resources)
{
    static const char *const parts[] = {"limits", "requests"};
    for (size_t i = 0; i < STW_COUNT(parts); i++) {
        const char *key;
        void *next;
        json_t *value, *part = json_object_get(resources, parts[i]);
        json_object_foreach_safe(part, next, key, value)
        {
            stw_manifest_canonical_member(part, key);
        }
    }
}

json_t *stw_manifest_resources(struct stw_json resources)
{
    json_t *tree = stw_manifest_tree(resources);
    stw_manifest_canonical_resources(tree);
    return tree;
}
