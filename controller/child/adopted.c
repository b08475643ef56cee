/* SPDX-License-Identifier: Apache-2.0
 *
 * An object that was adopted: the annotation that names its owner, and the selector that it keeps. */
#include "base/util.h"
#include "controller/child/child_priv.h"
#include "kube/tree.h"

#define SELECTOR_MAX 4096

bool stw_reference_is_served(const struct stw_kind *k, struct stw_json reference)
{
    char text[253 + 1 + 63 + 1] = "";
    (void)stw_json_strcpy(stw_json_get(reference, "apiVersion"), text, sizeof(text));
    const char *slash = strchr(text, '/'), *version = slash ? slash + 1 : text;
    for (const struct stw_kind_version *v = k->versions; v && v->name; v++)
        if (stw_streq(version, v->name))
            return true;
    return stw_streq(version, k->version);
}

int stw_adopted_by(const struct stw_operator *op, struct stw_json object, char *ret_kind,
                   char *ret_name, char *ret_uid)
{
    char key[STW_OWN_NAME_LEN], text[64 + 254 + 64] = "";
    stw_operator_text(op, STW_ADOPTED_BY, key);
    struct stw_json all = stw_json_path(object, "metadata.annotations");
    if (stw_json_strcpy(stw_json_get(all, key), text, sizeof(text)) != 0)
        return -1;
    char *name = strchr(text, '/'), *uid = name ? strchr(name + 1, '/') : NULL;
    if (!uid)
        return -1;
    *name++ = *uid++ = '\0';
    if (strlen(text) >= 64 || strlen(name) >= 254 || strlen(uid) >= 64)
        return -1;
    if (ret_kind)
        stw_format(ret_kind, 64, "%s", text);
    if (ret_name)
        stw_format(ret_name, 254, "%s", name);
    if (ret_uid)
        stw_format(ret_uid, 64, "%s", uid);
    return 0;
}

json_t *stw_adopted_tree(const struct stw_operator *op, const json_t *desired)
{
    char key[STW_OWN_NAME_LEN], text[512];
    json_auto_t *copy = json_copy((json_t *)(uintptr_t)desired);
    json_auto_t *metadata = json_copy(json_object_get(desired, "metadata"));
    json_auto_t *given = json_copy(json_object_get(metadata, "annotations"));
    json_auto_t *annotations = given ? json_incref(given) : json_object();
    const json_t *owner = json_array_get(json_object_get(metadata, "ownerReferences"), 0);
    stw_operator_text(op, STW_ADOPTED_BY, key);
    stw_format(text, sizeof(text), "%s/%s/%s", stw_tree_text(owner, "kind"),
               stw_tree_text(owner, "name"), stw_tree_text(owner, "uid"));
    if (json_object_set_new(annotations, key, json_string(text)) != 0 ||
        json_object_set(metadata, "annotations", annotations) != 0 ||
        json_object_set(copy, "metadata", metadata) != 0)
        return NULL;
    (void)json_object_del(metadata, "ownerReferences");
    return stw_take(copy);
}

bool stw_labels_have(struct stw_json labels, const json_t *selector)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)selector, key, value)
        if (!json_is_string(value) ||
            !stw_json_is(stw_json_get(labels, key), json_string_value(value)))
            return false;
    return true;
}

struct stw_json stw_adopted_selector(struct stw_json deployment)
{
    struct stw_json selector = stw_json_path(deployment, "spec.selector");
    struct stw_json labels = stw_json_get(selector, "matchLabels"), key, value;
    size_t len;
    (void)stw_json_raw(labels, &len);
    bool usable = stw_json_size(labels) > 0 && len <= SELECTOR_MAX &&
                  stw_json_size(stw_json_get(selector, "matchExpressions")) == 0 &&
                  !stw_json_there(stw_json_get(labels, STW_MANAGED_BY));
    stw_json_foreach (labels, key, value)
        usable = usable && stw_json_type(value) == STW_JSON_STRING;
    return usable ? labels : STW_JSON_NONE;
}
