/* SPDX-License-Identifier: Apache-2.0
 *
 * The identity of list elements.  The API server identifies them by the keys in its OpenAPI
 * (x-kubernetes-list-map-keys).  fieldsV1 shows those keys, but an object that is not applied yet
 * does not.  Therefore this table has the lists of the types that operators create. */
#include "kube/owned/owned_priv.h"

#include "base/util.h"

struct owned_list {
    const char *name;         /* the member that holds the list */
    const char *keys[3];      /* members of an element; none: the element itself (a set) */
    const char *otherwise[3]; /* the server's default for a key that is not given */
};

/* An element belongs to the first row whose first key it has.  Rows of lists that are atomic in the
 * OpenAPI (NetworkPolicy's ports) do no harm: both sides use this table. */
static const struct owned_list lists[] = {
    {"containers", {"name"}, {0}},
    {"initContainers", {"name"}, {0}},
    {"ephemeralContainers", {"name"}, {0}},
    {"volumes", {"name"}, {0}},
    {"volumeMounts", {"mountPath"}, {0}},
    {"volumeDevices", {"devicePath"}, {0}},
    {"env", {"name"}, {0}},
    {"ports", {"containerPort", "protocol"}, {NULL, "TCP"}},
    {"ports", {"port", "protocol"}, {NULL, "TCP"}},
    {"imagePullSecrets", {"name"}, {0}},
    {"secrets", {"name"}, {0}},
    {"ownerReferences", {"uid"}, {0}},
    {"conditions", {"type"}, {0}},
    {"hostAliases", {"ip"}, {0}},
    {"topologySpreadConstraints", {"topologyKey", "whenUnsatisfiable"}, {0}},
    {"webhooks", {"name"}, {0}},
    {"resourceClaims", {"name"}, {0}},
    {"schedulingGates", {"name"}, {0}},
    {"finalizers", {0}, {0}},
};

static void add_value(struct stw_json v, const char *otherwise, struct stw_buf *out)
{
    size_t len;
    if (!stw_json_there(v)) {
        stw_buf_adds(out, otherwise ? otherwise : "");
    } else if (stw_json_type(v) == STW_JSON_STRING) {
        stw_json_str(v, out);
    } else {
        const char *raw = stw_json_raw(v, &len);
        stw_buf_add(out, raw, len);
    }
}

static const struct owned_list *list_of(const char *name, struct stw_json element)
{
    for (size_t i = 0; i < STW_COUNT(lists); i++) {
        const struct owned_list *l = &lists[i];
        if (l->name[0] != name[0] || !stw_streq(l->name, name))
            continue;
        bool fits = l->keys[0] ? stw_json_there(stw_json_get(element, l->keys[0]))
                               : stw_json_type(element) == STW_JSON_STRING;
        if (fits)
            return l;
    }
    return NULL;
}

void stw_owned_element(const char *name, struct stw_json element, uint32_t index,
                       struct stw_buf *out)
{
    const struct owned_list *l = list_of(name, element);
    if (!l) {
        stw_buf_addc(out, '[');
        stw_buf_addi(out, index);
        stw_buf_addc(out, ']');
        return;
    }
    stw_buf_addc(out, '[');
    if (!l->keys[0])
        add_value(element, NULL, out);
    for (size_t i = 0; i < STW_COUNT(l->keys) && l->keys[i]; i++) {
        stw_buf_adds(out, i > 0 ? "," : "");
        stw_buf_adds(out, l->keys[i]);
        stw_buf_addc(out, '=');
        add_value(stw_json_get(element, l->keys[i]), l->otherwise[i], out);
    }
    stw_buf_addc(out, ']');
}

bool stw_owned_nothing(const char *name, struct stw_json v)
{
    enum stw_json_type type = stw_json_type(v);
    if ((type != STW_JSON_OBJECT && type != STW_JSON_ARRAY) || stw_json_size(v) > 0)
        return false;
    for (size_t i = 0; type == STW_JSON_ARRAY && i < STW_COUNT(lists); i++)
        if (lists[i].name[0] == name[0] && stw_streq(lists[i].name, name))
            return true;
    return type == STW_JSON_OBJECT;
}

bool stw_owned_left_out(unsigned depth, const char *parent, struct stw_json key)
{
    static const char *const top[] = {"apiVersion", "kind"};
    static const char *const meta[] = {"name",
                                       "namespace",
                                       "uid",
                                       "generation",
                                       "managedFields",
                                       "resourceVersion",
                                       "creationTimestamp",
                                       "selfLink"};
    for (size_t i = 0; depth == 0 && i < STW_COUNT(top); i++)
        if (stw_json_is(key, top[i]))
            return true;
    for (size_t i = 0; depth == 1 && stw_streq(parent, "metadata") && i < STW_COUNT(meta); i++)
        if (stw_json_is(key, meta[i]))
            return true;
    return false;
}

bool stw_owned_empty(struct stw_json v)
{
    int64_t n;
    switch (stw_json_type(v)) {
    case STW_JSON_ABSENT:
    case STW_JSON_NULL:
    case STW_JSON_FALSE:
        return true;
    case STW_JSON_STRING:
    case STW_JSON_ARRAY:
    case STW_JSON_OBJECT:
        return stw_json_size(v) == 0;
    case STW_JSON_INT:
        return stw_json_int(v, &n) == 0 && n == 0;
    default:
        return false;
    }
}
