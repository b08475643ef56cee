/* SPDX-License-Identifier: Apache-2.0 */
#include "hooks_priv.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/util.h"
#include "certs/certs.h"
#include "certs/issue.h"
#include "schema/kind.h"
#include "ssl_priv.h"
#include "steps_priv.h"

#include <assert.h>

#define OBJECT_MAX_BYTES ((size_t)4 * 1024 * 1024)

const struct stw_resource *stw_hook_resource(unsigned number)
{
    static const struct stw_resource *const configurations[] = {&stw_res_mutating,
                                                                &stw_res_validating};
    static_assert(STW_COUNT(configurations) + STW_ROTATION_CRDS == STW_ROTATION_HOOKS,
                  "first the webhook configurations, then the CRDs");
    return number < STW_COUNT(configurations) ? configurations[number] : &stw_res_crd;
}

void stw_hook_init(struct stw_hook *h, const struct stw_operator *op,
                   const struct stw_resource *resource, const char *name)
{
    *h = (struct stw_hook){.op = op, .resource = resource, .name = name};
    h->object = STW_BUF_INIT(OBJECT_MAX_BYTES);
}

void stw_hook_done(struct stw_hook *h)
{
    stw_buf_done(&h->object);
}

bool stw_webhook_is_of(struct stw_json hook, const struct stw_kind *kind)
{
    char name[512], own[512];
    stw_format(own, sizeof(own), "%s.%s", kind->singular, kind->group);
    return stw_json_strcpy(stw_json_get(hook, "name"), name, sizeof(name)) == 0 && *name &&
           stw_streq(name + 1, own); /* after m, v or d */
}

/* The entries of other kinds belong to the program that serves them. */
static bool is_ours(const struct stw_hook *h, struct stw_json hook)
{
    for (const struct stw_kind *const *k = h->op->kinds; k && *k; k++)
        if (stw_webhook_is_of(hook, *k))
            return true;
    return false;
}

static bool is_of_our_manager(const struct stw_operator *op, struct stw_json managed)
{
    char own[STW_OWN_NAME_LEN];
    stw_operator_text(op, STW_HOOK_MANAGER, own);
    return stw_json_is(stw_json_get(managed, "manager"), own);
}

static int read_metadata(struct stw_hook *h, struct stw_error *err)
{
    struct stw_json_doc stw_autojson doc = {0};
    struct stw_json key, managed;
    if (stw_json_scan(&doc, stw_buf_str(&h->object), h->object.len, err) < 0)
        return -1;
    struct stw_json meta = stw_json_get(stw_json_root(&doc), "metadata");
    if (stw_json_strcpy(stw_json_get(meta, "resourceVersion"), h->rv, sizeof(h->rv)) < 0)
        return stw_fail(err, STW_ERR_INVALID, "the answer has no resourceVersion");
    h->owned = false;
    stw_json_foreach (stw_json_get(meta, "managedFields"), key, managed)
        h->owned |= is_of_our_manager(h->op, managed);
    return 0;
}

int stw_hook_read(struct stw_hook *h, const struct stw_rotation_api *api, struct stw_error *err)
{
    struct stw_buf stw_autobuf path = STW_BUF_INIT(2048);
    struct stw_error e = {0};
    stw_buf_clear(&h->object);
    h->state = STW_HOOK_NONE;
    if (!h->name || !*h->name)
        return 0;
    stw_resource_path(h->resource, NULL, h->name, NULL, &path);
    const struct stw_request req = {.method = "GET", .path = stw_buf_str(&path)};
    if (api->call(api->ctx, &req, &h->object, &e) == 0 && read_metadata(h, &e) == 0) {
        h->state = STW_HOOK_FOUND;
        return 0;
    }
    stw_buf_clear(&h->object);
    if (e.code == STW_ERR_NOT_FOUND)
        return 0;
    h->state = STW_HOOK_UNKNOWN;
    if (err)
        *err = e;
    return stw_error_wrap(err, "cannot read %s \"%s\"", h->resource->kind, h->name);
}

/* --- reading each caBundle */

/* Called for each webhook of ours that a configuration has; false stops the iteration. */
typedef bool look_fn(void *ctx, const char *ca_bundle);

static bool look_at(struct stw_json ca_bundle, look_fn *look, void *ctx)
{
    struct stw_buf stw_autobuf pem = STW_BUF_INIT(STW_PEM_MAX_BYTES);
    if (stw_base64_json(ca_bundle, &pem) != 0)
        stw_buf_clear(&pem);
    return look(ctx, stw_buf_str(&pem));
}

static bool each_bundle(const struct stw_hook *h, look_fn *look, void *ctx)
{
    struct stw_json_doc stw_autojson doc = {0};
    struct stw_json key, hook;
    if (h->state != STW_HOOK_FOUND)
        return true;
    if (stw_json_scan(&doc, stw_buf_str(&h->object), h->object.len, NULL) < 0)
        return false;
    struct stw_json conversion = stw_json_path(stw_json_root(&doc), "spec.conversion");
    if (h->resource == &stw_res_crd)
        return !stw_json_is(stw_json_get(conversion, "strategy"), "Webhook") ||
               look_at(stw_json_path(conversion, "webhook.clientConfig.caBundle"), look, ctx);
    stw_json_foreach (stw_json_get(stw_json_root(&doc), "webhooks"), key, hook)
        if (is_ours(h, hook) && !look_at(stw_json_path(hook, "clientConfig.caBundle"), look, ctx))
            return false;
    return true;
}

static bool is_same_bundle(void *ctx, const char *ca_bundle)
{
    return stw_streq(ca_bundle, (const char *)ctx);
}

bool stw_hook_exact(const struct stw_hook *h, const char *bundle)
{
    stw_autofree char *copy = strdup(bundle);
    return h->state == STW_HOOK_FOUND && copy && each_bundle(h, is_same_bundle, copy);
}

struct trust {
    const char *leaf;
    struct stw_buf last; /* most configurations have the same text many times */
};

static bool is_leaf_trusted(void *ctx, const char *ca_bundle)
{
    struct trust *t = ctx;
    if (t->last.len > 0 && stw_streq(stw_buf_str(&t->last), ca_bundle))
        return true;
    stw_buf_clear(&t->last);
    stw_buf_adds(&t->last, ca_bundle);
    return stw_cert_signed_by(t->leaf, ca_bundle);
}

bool stw_hook_trusts(const struct stw_hook *h, const char *leaf_pem)
{
    struct trust t = {.leaf = leaf_pem, .last = STW_BUF_INIT(STW_PEM_MAX_BYTES)};
    bool all = each_bundle(h, is_leaf_trusted, &t);
    stw_buf_done(&t.last);
    return all;
}

struct collect {
    int64_t now_us;
    struct stw_buf *bundle;
};

static bool collect_bundle(void *ctx, const char *ca_bundle)
{
    const struct collect *c = ctx;
    stw_bundle_add(c->bundle, ca_bundle, c->now_us);
    return true;
}

void stw_hook_collect(const struct stw_hook *h, int64_t now_us, struct stw_buf *bundle)
{
    struct collect c = {.now_us = now_us, .bundle = bundle};
    (void)each_bundle(h, collect_bundle, &c);
}

/* --- writing */

/* A JSON patch begins with the version that was read: the API server answers a patch of another one
 * with a conflict. */
static void begin_patch(const struct stw_hook *h, struct stw_buf *out)
{
    stw_buf_adds(out, "[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":");
    stw_buf_json_strz(out, h->rv);
    stw_buf_addc(out, '}');
}

static void add_bundle(const char *config_path, const char *bundle, struct stw_buf *out)
{
    stw_buf_addf(out, ",{\"op\":\"add\",\"path\":\"%s/clientConfig/caBundle\",\"value\":\"",
                 config_path);
    stw_base64_encode(bundle, strlen(bundle), out);
    stw_buf_adds(out, "\"}");
}

static void add_entries(const struct stw_hook *h, struct stw_json webhooks, const char *bundle,
                        struct stw_buf *out)
{
    struct stw_json key, hook;
    unsigned i = 0;
    stw_json_foreach (webhooks, key, hook) {
        char path[64];
        stw_format(path, sizeof(path), "/webhooks/%u", i++);
        if (is_ours(h, hook))
            add_bundle(path, bundle, out);
    }
}

static int send_patch(const struct stw_hook *h, const struct stw_buf *body,
                      const struct stw_rotation_api *api, struct stw_error *err)
{
    struct stw_buf stw_autobuf path = STW_BUF_INIT(2048);
    if (body->failed)
        return stw_fail(err, STW_ERR_TOO_LARGE, "the change would become too large");
    stw_resource_path(h->resource, NULL, h->name, NULL, &path);
    stw_operator_expand(api->op, "?fieldManager=" STW_HOOK_MANAGER, &path);
    const struct stw_request req = {.method = "PATCH",
                                    .path = stw_buf_str(&path),
                                    .content_type = "application/json-patch+json",
                                    .body = stw_buf_str(body),
                                    .body_len = body->len};
    return api->call(api->ctx, &req, NULL, err);
}

int stw_hook_write(const struct stw_hook *h, const char *bundle, const struct stw_rotation_api *api,
                   struct stw_error *err)
{
    struct stw_json_doc stw_autojson doc = {0};
    struct stw_buf stw_autobuf body = STW_BUF_INIT(OBJECT_MAX_BYTES);
    if (stw_json_scan(&doc, stw_buf_str(&h->object), h->object.len, err) < 0)
        return stw_error_wrap(err, "cannot write %s \"%s\"", h->resource->kind, h->name);
    begin_patch(h, &body);
    if (h->resource == &stw_res_crd)
        add_bundle("/spec/conversion/webhook", bundle, &body);
    else
        add_entries(h, stw_json_get(stw_json_root(&doc), "webhooks"), bundle, &body);
    stw_buf_addc(&body, ']');
    if (send_patch(h, &body, api, err) < 0)
        return stw_error_wrap(err, "cannot write the caBundle of %s \"%s\"", h->resource->kind,
                              h->name);
    return 0;
}

/* The API server takes an empty list for one that was left out; a list with one empty entry removes
 * all. */
static void add_removals(const struct stw_hook *h, struct stw_json managed, struct stw_buf *out)
{
    struct stw_json key, one;
    uint32_t i = 0, removed = 0, count = stw_json_size(managed);
    bool others = false;
    stw_json_foreach (managed, key, one)
        others |= !is_of_our_manager(h->op, one);
    if (!others && count > 0) {
        stw_buf_adds(out,
                     ",{\"op\":\"replace\",\"path\":\"/metadata/managedFields\",\"value\":[{}]}");
        return;
    }
    stw_json_foreach (managed, key, one) {
        if (is_of_our_manager(h->op, one))
            stw_buf_addf(out, ",{\"op\":\"remove\",\"path\":\"/metadata/managedFields/%u\"}",
                         i - removed++);
        i++;
    }
}

int stw_hook_release(const struct stw_hook *h, const struct stw_rotation_api *api,
                     struct stw_error *err)
{
    struct stw_json_doc stw_autojson doc = {0};
    struct stw_buf stw_autobuf body = STW_BUF_INIT(OBJECT_MAX_BYTES);
    if (stw_json_scan(&doc, stw_buf_str(&h->object), h->object.len, err) < 0)
        return stw_error_wrap(err, "cannot release %s \"%s\"", h->resource->kind, h->name);
    begin_patch(h, &body);
    add_removals(h, stw_json_path(stw_json_root(&doc), "metadata.managedFields"), &body);
    stw_buf_addc(&body, ']');
    if (send_patch(h, &body, api, err) < 0)
        return stw_error_wrap(err, "cannot release the caBundle of %s \"%s\"", h->resource->kind,
                              h->name);
    return 0;
}
