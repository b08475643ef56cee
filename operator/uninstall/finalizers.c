/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/uninstall/uninstall.h"

#include "base/util.h"
#include "kube/pages.h"
#include "operator/main/names.h"

#include <jansson.h>

#define TRIES 20
#define TRY_EVERY_US 250000

static bool has_ours(const struct stw_kind *kind, struct stw_json object)
{
    struct stw_json key, one;
    stw_json_foreach (stw_json_path(object, "metadata.finalizers"), key, one)
        if (kind->finalizer && stw_json_is(one, kind->finalizer))
            return true;
    return false;
}

static int read_name(struct stw_json object, char ns[254], char name[254])
{
    struct stw_json meta = stw_json_get(object, "metadata");
    ns[0] = '\0';
    (void)stw_json_strcpy(stw_json_get(meta, "namespace"), ns, 254);
    return stw_json_strcpy(stw_json_get(meta, "name"), name, 254);
}

static int walk_objects(const struct stw_remote *r, const struct stw_kind *kind, stw_page_fn *fn,
                        void *ctx, struct stw_error *err)
{
    struct stw_error e = {0};
    struct stw_pages q = {.resource = &kind->resource, .timeout_ms = r->timeout_ms};
    int rc = stw_pages_each_after(r->client, &q, fn, ctx, &e);
    if (rc < 0 && e.code == STW_ERR_NOT_FOUND)
        return 0; /* CRD not found */
    if (rc < 0 && err) {
        *err = e;
        (void)stw_error_wrap(err, "cannot list %s", kind->plural);
    }
    return rc;
}

/* --- counting */

struct count {
    const struct stw_kind *kind;
    struct stw_held *to;
};

static int count_one(void *ctx, struct stw_json object)
{
    const struct count *c = ctx;
    char ns[254], name[254];
    c->to->all++;
    if (!has_ours(c->kind, object))
        return 0;
    if (c->to->held++ == 0 && read_name(object, ns, name) == 0)
        stw_format(c->to->first, sizeof(c->to->first), "%s/%s", ns, name);
    return 0;
}

int stw_held_count(const struct stw_remote *r, const struct stw_kind *kind, struct stw_held *ret,
                   struct stw_error *err)
{
    struct count c = {kind, ret};
    *ret = (struct stw_held){0};
    return walk_objects(r, kind, count_one, &c, err);
}

/* --- changing */

struct change {
    const struct stw_remote *remote;
    const struct stw_kind *kind;
    struct stw_error *err;
};

/* A patch of the list without our finalizer, with the resourceVersion that was read. */
static json_t *without_ours(const struct stw_kind *kind, struct stw_json object)
{
    char text[512];
    struct stw_json key, one, meta = stw_json_get(object, "metadata");
    json_t *list = json_array();
    stw_json_foreach (stw_json_get(meta, "finalizers"), key, one)
        if (!stw_json_is(one, kind->finalizer) && stw_json_strcpy(one, text, sizeof(text)) == 0)
            (void)json_array_append_new(list, json_string(text));
    if (stw_json_strcpy(stw_json_get(meta, "resourceVersion"), text, sizeof(text)) != 0)
        text[0] = '\0';
    return json_pack("{s:{s:s,s:o}}", "metadata", "resourceVersion", text, "finalizers", list);
}

static int release_once(const struct change *c, struct stw_json object, const char *ns,
                        const char *name, struct stw_error *err)
{
    json_auto_t *patch = without_ours(c->kind, object);
    char manager[STW_OWN_NAME_LEN];
    stw_operator_text(c->remote->op, STW_UNINSTALL_MANAGER, manager);
    if (!patch)
        return stw_fail_memory(err);
    return stw_kube_merge_patch(c->remote->client, STW_PLACE(&c->kind->resource, ns, name), patch,
                                manager, NULL, err);
}

/* The API server may still call the webhook shortly after its configuration was deleted. */
static bool is_retriable_error(enum stw_err code)
{
    return code == STW_ERR_CONFLICT || code == STW_ERR_UNAVAILABLE || code == STW_ERR_TIMEOUT ||
           code == STW_ERR_THROTTLED;
}

/* Returns 1 on failure, with c->err. */
static int release_held_object(void *ctx, struct stw_json object)
{
    const struct change *c = ctx;
    stw_autoanswer struct stw_answer again = {0};
    char ns[254], name[254];
    struct stw_error err = {0};
    if (!has_ours(c->kind, object) || read_name(object, ns, name) != 0)
        return 0;
    int rc = release_once(c, object, ns, name, &err);
    for (int i = 0; i < TRIES && rc != 0 && is_retriable_error(err.code); i++) {
        (void)usleep(TRY_EVERY_US);
        rc = stw_remote_get(c->remote, &c->kind->resource, ns, name, &again, &err);
        if (rc == 0 && has_ours(c->kind, again.root))
            rc = release_once(c, again.root, ns, name, &err);
    }
    if (rc == 0 || err.code == STW_ERR_NOT_FOUND)
        return 0;
    *c->err = err;
    (void)stw_error_wrap(c->err, "%s %s/%s", c->kind->kind, ns, name);
    return 1;
}

static int delete_held_object(void *ctx, struct stw_json object)
{
    const struct change *c = ctx;
    char ns[254], name[254], uid[64] = "";
    struct stw_json meta = stw_json_get(object, "metadata");
    struct stw_error err = {0};
    if (!has_ours(c->kind, object) || read_name(object, ns, name) != 0 ||
        stw_json_there(stw_json_get(meta, "deletionTimestamp")))
        return 0;
    (void)stw_json_strcpy(stw_json_get(meta, "uid"), uid, sizeof(uid));
    if (stw_kube_delete(c->remote->client, &c->kind->resource, ns, name, *uid ? uid : NULL, NULL,
                        &err) == 0 ||
        err.code == STW_ERR_NOT_FOUND || err.code == STW_ERR_CONFLICT)
        return 0;
    *c->err = err;
    (void)stw_error_wrap(c->err, "%s %s/%s", c->kind->kind, ns, name);
    return 1;
}

static int change_all(const struct stw_remote *r, const struct stw_kind *kind, stw_page_fn *fn,
                      struct stw_error *err)
{
    struct change c = {r, kind, err};
    return kind->finalizer && walk_objects(r, kind, fn, &c, err) != 0 ? -1 : 0;
}

int stw_held_release(const struct stw_remote *r, const struct stw_kind *kind, struct stw_error *err)
{
    return change_all(r, kind, release_held_object, err);
}

int stw_held_delete(const struct stw_remote *r, const struct stw_kind *kind, struct stw_error *err)
{
    return change_all(r, kind, delete_held_object, err);
}
