/* SPDX-License-Identifier: Apache-2.0
 *
 * Which desired fields a live object lacks, as text for people; and the controller of an object. */
#include "kube/owned.h"

#include "base/util.h"
#include "kube/owned/owned_priv.h"

#define PATH_MAX_BYTES 1024

struct diff {
    struct stw_buf path; /* of the current field */
    struct stw_buf *out;
    unsigned max, count;
    uint64_t pairs; /* compared so far */
};

static void add_differing_path(struct diff *d)
{
    if (d->count++ >= d->max)
        return;
    stw_buf_adds(d->out, d->count > 1 ? ", " : "");
    stw_buf_add(d->out, stw_buf_str(&d->path), d->path.len);
}

static void back_to(struct diff *d, size_t len)
{
    if (d->path.data && d->path.len > len) {
        d->path.len = len;
        d->path.data[len] = '\0';
    }
    d->path.failed = false;
}

static void compare_values(struct diff *d, const char *name, unsigned depth, struct stw_json want,
                           struct stw_json live);

static struct stw_json same_element(const char *name, struct stw_json list,
                                    const struct stw_buf *identity)
{
    struct stw_json none, element;
    uint32_t index = 0;
    stw_autobuf struct stw_buf other = STW_BUF_INIT(PATH_MAX_BYTES);
    stw_json_foreach (list, none, element) {
        stw_buf_clear(&other);
        stw_owned_element(name, element, index++, &other);
        if (stw_streq(stw_buf_str(&other), stw_buf_str(identity)))
            return element;
    }
    return STW_JSON_NONE;
}

static void compare_list(struct diff *d, const char *name, unsigned depth, struct stw_json want,
                         struct stw_json live)
{
    struct stw_json none, element;
    uint32_t index = 0;
    size_t len = d->path.len;
    stw_json_foreach (want, none, element) {
        stw_autobuf struct stw_buf identity = STW_BUF_INIT(PATH_MAX_BYTES);
        stw_owned_element(name, element, index++, &identity);
        stw_buf_adds(&d->path, stw_buf_str(&identity));
        compare_values(d, "", depth + 1, element, same_element(name, live, &identity));
        back_to(d, len);
    }
}

static void compare_object(struct diff *d, const char *name, unsigned depth, struct stw_json want,
                           struct stw_json live)
{
    struct stw_json key, v;
    size_t len = d->path.len;
    stw_json_foreach (want, key, v) {
        if (stw_owned_left_out(depth, name, key) || stw_json_type(v) == STW_JSON_NULL)
            continue;
        stw_autofree char *member = stw_json_strdup(key);
        if (!member)
            continue;
        stw_buf_adds(&d->path, len > 0 ? "." : "");
        stw_buf_adds(&d->path, member);
        compare_values(d, member, depth + 1, v, stw_json_get(live, member));
        back_to(d, len);
    }
}

static void compare_values(struct diff *d, const char *name, unsigned depth, struct stw_json want,
                           struct stw_json live)
{
    enum stw_json_type type = stw_json_type(want);
    if (stw_json_equal(want, live) || (stw_owned_empty(want) && stw_owned_empty(live)))
        return;
    if (type != stw_json_type(live) || depth >= STW_OWNED_DEPTH_MAX ||
        (type != STW_JSON_OBJECT && type != STW_JSON_ARRAY) || stw_json_size(want) == 0 ||
        stw_owned_costs_too_much(&d->pairs, want, live))
        add_differing_path(d);
    else if (type == STW_JSON_OBJECT)
        compare_object(d, name, depth, want, live);
    else
        compare_list(d, name, depth, want, live);
}

unsigned stw_owned_diff(struct stw_json desired, struct stw_json live, unsigned max,
                        struct stw_buf *out)
{
    struct diff d = {.path = STW_BUF_INIT(PATH_MAX_BYTES), .out = out, .max = max};
    compare_values(&d, "", 0, desired, live);
    if (d.count > max)
        stw_buf_addf(out, " and %u more", d.count - max);
    stw_buf_done(&d.path);
    return d.count;
}

struct stw_json stw_owner_find(struct stw_json object)
{
    struct stw_json none, reference;
    stw_json_foreach (stw_json_path(object, "metadata.ownerReferences"), none, reference)
        if (stw_json_bool(stw_json_get(reference, "controller"), false))
            return reference; /* an object has at most one */
    return STW_JSON_NONE;
}

bool stw_reference_is_of(struct stw_json reference, const char *group, const char *kind)
{
    char text[253 + 1 + 63 + 1];
    if (!stw_json_is(stw_json_get(reference, "kind"), kind) ||
        stw_json_strcpy(stw_json_get(reference, "apiVersion"), text, sizeof(text)) != 0)
        return false;
    char *slash = strchr(text, '/'); /* the core has none */
    if (slash)
        *slash = '\0';
    return stw_streq(slash ? text : "", group);
}

int stw_owner_controller(struct stw_json object, char *ret_kind, char *ret_name, char *ret_uid)
{
    struct stw_json ref = stw_owner_find(object);
    if (!stw_json_there(ref) ||
        (ret_kind && stw_json_strcpy(stw_json_get(ref, "kind"), ret_kind, 64) != 0) ||
        (ret_name && stw_json_strcpy(stw_json_get(ref, "name"), ret_name, 254) != 0))
        return -1;
    return ret_uid && stw_json_strcpy(stw_json_get(ref, "uid"), ret_uid, 64) != 0 ? -1 : 0;
}
