/* SPDX-License-Identifier: Apache-2.0 */
#include "hooks_priv.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/util.h"
#include "certs/issue.h"
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

void stw_hook_init(struct stw_hook *h, const struct stw_resource *resource, const char *name)
{
    *h = (struct stw_hook){.resource = resource, .name = name};
    h->object = STW_BUF_INIT(OBJECT_MAX_BYTES);
}

void stw_hook_done(struct stw_hook *h)
{
    stw_buf_done(&h->object);
}

static int read_identity(struct stw_hook *h, struct stw_error *err)
{
    struct stw_json_doc stw_autojson doc = {0};
    if (stw_json_scan(&doc, stw_buf_str(&h->object), h->object.len, err) < 0)
        return -1;
    struct stw_json meta = stw_json_get(stw_json_root(&doc), "metadata");
    if (stw_json_strcpy(stw_json_get(meta, "resourceVersion"), h->rv, sizeof(h->rv)) < 0 ||
        stw_json_strcpy(stw_json_get(meta, "uid"), h->uid, sizeof(h->uid)) < 0)
        return stw_fail(err, STW_ERR_INVALID, "the answer has no resourceVersion or uid");
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
    if (api->call(api->ctx, &req, &h->object, &e) == 0 && read_identity(h, &e) == 0) {
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

/* Called for each webhook that a configuration has; false stops the iteration. */
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
        if (!look_at(stw_json_path(hook, "clientConfig.caBundle"), look, ctx))
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

static void add_client_config(const char *bundle, struct stw_buf *out)
{
    stw_buf_adds(out, "\"clientConfig\":{\"caBundle\":\"");
    stw_base64_encode(bundle, strlen(bundle), out);
    stw_buf_adds(out, "\"}");
}

static void add_entries(struct stw_json webhooks, const char *bundle, struct stw_buf *out)
{
    struct stw_json key, hook;
    bool first = true;
    stw_buf_adds(out, "\"webhooks\":[");
    stw_json_foreach (webhooks, key, hook) {
        size_t len = 0;
        const char *name = stw_json_raw(stw_json_get(hook, "name"), &len);
        if (!name)
            continue;
        stw_buf_adds(out, first ? "{\"name\":" : ",{\"name\":");
        stw_buf_add(out, name, len);
        stw_buf_addc(out, ',');
        add_client_config(bundle, out);
        stw_buf_addc(out, '}');
        first = false;
    }
    stw_buf_addc(out, ']');
}

static void add_conversion(const char *bundle, struct stw_buf *out)
{
    stw_buf_adds(out, "\"spec\":{\"conversion\":{\"webhook\":{");
    add_client_config(bundle, out);
    stw_buf_adds(out, "}}}");
}

static int make_body(const struct stw_hook *h, const char *bundle, struct stw_buf *out,
                     struct stw_error *err)
{
    struct stw_json_doc stw_autojson doc = {0};
    if (stw_json_scan(&doc, stw_buf_str(&h->object), h->object.len, err) < 0)
        return -1;
    stw_buf_adds(out, "{\"apiVersion\":\"");
    stw_resource_api_version(h->resource, out);
    stw_buf_addf(out, "\",\"kind\":\"%s\",\"metadata\":{\"name\":", h->resource->kind);
    stw_buf_json_strz(out, h->name);
    stw_buf_adds(out, ",\"uid\":");
    stw_buf_json_strz(out, h->uid);
    stw_buf_adds(out, ",\"resourceVersion\":");
    stw_buf_json_strz(out, h->rv);
    stw_buf_adds(out, "},");
    if (h->resource == &stw_res_crd)
        add_conversion(bundle, out);
    else
        add_entries(stw_json_get(stw_json_root(&doc), "webhooks"), bundle, out);
    stw_buf_addc(out, '}');
    if (out->failed)
        return stw_fail(err, STW_ERR_TOO_LARGE, "its caBundles would become too large");
    return 0;
}

int stw_hook_write(const struct stw_hook *h, const char *bundle, const struct stw_rotation_api *api,
                   struct stw_error *err)
{
    struct stw_buf stw_autobuf path = STW_BUF_INIT(2048);
    struct stw_buf stw_autobuf body = STW_BUF_INIT(OBJECT_MAX_BYTES);
    if (make_body(h, bundle, &body, err) < 0)
        return stw_error_wrap(err, "cannot write %s \"%s\"", h->resource->kind, h->name);
    stw_resource_path(h->resource, NULL, h->name, NULL, &path);
    stw_operator_expand(api->op, "?fieldManager=" STW_HOOK_MANAGER "&force=true", &path);
    const struct stw_request req = {.method = "PATCH",
                                    .path = stw_buf_str(&path),
                                    .content_type = "application/apply-patch+yaml",
                                    .body = stw_buf_str(&body),
                                    .body_len = body.len};
    if (api->call(api->ctx, &req, NULL, err) < 0)
        return stw_error_wrap(err, "cannot write the caBundle of %s \"%s\"", h->resource->kind,
                              h->name);
    return 0;
}
