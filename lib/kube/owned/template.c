/* SPDX-License-Identifier: Apache-2.0
 *
 * What we own of the pod template of a live object.  Elements keep the order that they have there:
 * another order would be another template. */
#include "base/util.h"
#include "kube/owned/owned_priv.h"

#define ELEMENTS_MAX 10000

struct owned_copy {
    struct stw_buf *out;
    uint64_t pairs; /* compared so far */
};

static int add_owned(struct owned_copy *c, struct stw_json fields, struct stw_json live,
                     unsigned depth);

static void add_source(struct stw_json value, struct stw_buf *out)
{
    size_t len;
    const char *raw = stw_json_raw(value, &len);
    stw_buf_add(out, raw, len);
}

static int add_members(struct owned_copy *c, struct stw_json fields, struct stw_json live,
                       unsigned depth)
{
    struct stw_json key, value;
    struct stw_buf *out = c->out;
    bool any = false;
    stw_buf_addc(out, '{');
    stw_json_foreach (live, key, value) {
        stw_autobuf struct stw_buf part = STW_BUF_INIT(64 * 1024);
        if (stw_json_has_nul(key)) /* not one that was applied */
            continue;
        stw_buf_adds(&part, "f:");
        stw_json_str(key, &part);
        struct stw_json owned = stw_json_get(fields, stw_buf_str(&part));
        if (part.failed)
            return -1;
        if (!stw_json_there(owned))
            continue;
        stw_buf_adds(out, any ? "," : "");
        add_source(key, out);
        stw_buf_addc(out, ':');
        any = true;
        if (add_owned(c, owned, value, depth + 1) != 0)
            return -1;
    }
    stw_buf_addc(out, '}');
    return 0;
}

/* Fills `owned` with the fields of each element of the list. */
static void match_elements(struct stw_json fields, struct stw_json list, struct stw_json *owned)
{
    struct stw_json key, child;
    stw_json_foreach (fields, key, child) {
        stw_autofree char *part = stw_json_strdup(key);
        struct stw_json found = STW_JSON_NONE;
        uint32_t index = 0;
        if (part && strncmp(part, "k:", 2) == 0)
            found = stw_owned_find(list, part + 2, &index);
        else if (part && strncmp(part, "v:", 2) == 0)
            found = stw_owned_find_value(list, part + 2, &index);
        if (stw_json_there(found))
            owned[index] = child;
    }
}

static int add_elements(struct owned_copy *c, struct stw_json fields, struct stw_json list,
                        unsigned depth)
{
    struct stw_json none, element;
    struct stw_buf *out = c->out;
    uint32_t count = stw_json_size(list), i = 0;
    bool any = false;
    stw_autofree struct stw_json *owned =
        count > 0 && count <= ELEMENTS_MAX ? calloc(count, sizeof(*owned)) : NULL;
    if (!owned)
        return -1;
    match_elements(fields, list, owned);
    stw_buf_addc(out, '[');
    stw_json_foreach (list, none, element) {
        struct stw_json of = owned[i++];
        if (!stw_json_there(of))
            continue;
        stw_buf_adds(out, any ? "," : "");
        any = true;
        if (add_owned(c, of, element, depth + 1) != 0)
            return -1;
    }
    stw_buf_addc(out, ']');
    return 0;
}

static int add_owned(struct owned_copy *c, struct stw_json fields, struct stw_json live,
                     unsigned depth)
{
    enum stw_json_type type = stw_json_type(live);
    if (depth >= STW_OWNED_DEPTH_MAX || c->out->failed)
        return -1;
    if (stw_json_size(fields) == 0 || stw_owned_only_dot(fields) || stw_json_size(live) == 0 ||
        (type != STW_JSON_OBJECT && type != STW_JSON_ARRAY)) {
        add_source(live, c->out);
        return 0;
    }
    if (stw_owned_costs_too_much(&c->pairs, fields, live))
        return -1;
    return type == STW_JSON_OBJECT ? add_members(c, fields, live, depth)
                                   : add_elements(c, fields, live, depth);
}

int stw_owned_template(struct stw_json object, const char *manager, struct stw_buf *out)
{
    struct stw_json fields = stw_owned_fields(object, manager);
    fields = stw_json_get(stw_json_get(fields, "f:spec"), "f:template");
    struct stw_json live = stw_json_path(object, "spec.template");
    if (stw_json_size(fields) == 0 || stw_json_type(live) != STW_JSON_OBJECT)
        return -1;
    struct owned_copy c = {.out = out};
    return add_owned(&c, fields, live, 0) == 0 && !out->failed ? 0 : -1;
}
