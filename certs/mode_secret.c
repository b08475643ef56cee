/* SPDX-License-Identifier: Apache-2.0
 *
 * Secret mode on the certificate thread.  Watches, each on one object's metadata, only wake it; the
 * state for a decision is always read again. */
#include "certs_priv.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/util.h"
#include "kube/informer.h"

#include <stdio.h>

#define RESYNC_MS ((uint64_t)10 * 60 * 1000) /* read again even if nothing was reported */
#define BACKOFF_MS 1000
#define BACKOFF_MAX_MS 60000

static int call_client(void *ctx, const struct stw_request *req, struct stw_buf *ret,
                       struct stw_error *err)
{
    return stw_client_do(ctx, req, ret, err);
}

/* --- watches */

/* Every version of the object is a change; its content is not kept. */
static void project_resource_version(void *ctx, struct stw_json object, struct stw_buf *out)
{
    size_t len = 0;
    (void)ctx;
    const char *raw = stw_json_raw(stw_json_path(object, "metadata.resourceVersion"), &len);
    if (raw) {
        stw_buf_adds(out, "{\"v\":");
        stw_buf_add(out, raw, len);
        stw_buf_addc(out, '}');
    }
}

static void wake_certs_thread(void *ctx, const char *key, const char *old_text,
                              const char *new_text)
{
    (void)key, (void)old_text, (void)new_text;
    stw_certs_poke(ctx);
}

static int start_object_watch(struct stw_certs *c, unsigned i, const struct stw_resource *resource,
                              const char *name, struct stw_error *err)
{
    if (!name || !*name)
        return 0;
    if (stw_format_whole(c->selectors[i], sizeof(c->selectors[i]), "metadata.name=%s", name) != 0)
        return stw_fail(err, STW_ERR_INVALID, "the name of %s \"%.64s...\" is too long",
                        resource->kind, name);
    const struct stw_informer_config config = {
        .resource = resource,
        .namespaces = resource->namespaced ? c->namespaces : NULL,
        .field_selector = c->selectors[i],
        .metadata_only = true,
        .project = project_resource_version,
        .changed = wake_certs_thread,
        .ctx = c,
    };
    if (stw_informer_create(c->config.client, &config, c->clock, c->metrics, &c->watches[i], err) <
        0)
        return -1;
    return stw_informer_start(c->watches[i], err);
}

/* --- the mode */

static int take_leaf(void *ctx, const char *cert_pem, const char *key_pem, struct stw_error *err)
{
    struct stw_certs *c = ctx;
    if (stw_certs_take(c, cert_pem, key_pem, err) == 0) {
        stw_series_add(c->reads, 1);
        return 0;
    }
    stw_series_add(c->errors, 1);
    stw_log(STW_LOG_WARN, "certificate refused, the old one stays in service",
            STW_STR("error", err->text));
    return -1;
}

static int secret_open(struct stw_certs *c, struct stw_error *err)
{
    const struct stw_certs_config *f = &c->config;
    c->rotation = (struct stw_rotation){
        .config = {.op = f->op,
                   .ns = f->ns,
                   .secret = f->secret,
                   .dns_names = f->dns_names,
                   .ip_addresses = f->ip_addresses,
                   .hook_names = {f->mutating, f->validating},
                   .ca_days = f->ca_days,
                   .leaf_days = f->leaf_days,
                   .times = {.settle_us = (int64_t)f->settle_seconds * 1000000,
                             .overlap_us = (int64_t)f->overlap_seconds * 1000000}},
        .api = {call_client, f->client, f->op},
        .clock = c->clock,
        .serve = take_leaf,
        .ctx = c,
    };
    for (unsigned i = 0; f->crds && f->crds[i]; i++)
        c->rotation.config.hook_names[STW_ROTATION_HOOKS - STW_ROTATION_CRDS + i] = f->crds[i];
    c->namespaces[0] = f->ns;
    if (start_object_watch(c, 0, &stw_res_secret, f->secret, err) != 0)
        return -1;
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++)
        if (start_object_watch(c, 1 + i, stw_hook_resource(i), c->rotation.config.hook_names[i],
                               err) != 0)
            return -1;
    return 0;
}

/* The API server is unreachable or overloaded, which says nothing about the pair in service.  A
 * THROTTLED without a response is our own: another client keeps overwriting a caBundle. */
static bool is_outage(const struct stw_error *err)
{
    return err->code == STW_ERR_UNAVAILABLE || err->code == STW_ERR_TIMEOUT ||
           err->code == STW_ERR_CANCELLED || (err->code == STW_ERR_THROTTLED && err->http > 0);
}

/* In an outage the verdict of the last sync stays; stw_certs_ready checks the expiry itself. */
static uint64_t record_sync_failure(struct stw_certs *c, const struct stw_error *err)
{
    uint64_t wait_ms = stw_backoff(BACKOFF_MS, c->failures++, BACKOFF_MAX_MS);
    if (c->synced_ms == 0 || !is_outage(err))
        stw_certs_set_problem(c, err->text);
    if (err->code != STW_ERR_CANCELLED)
        stw_log(STW_LOG_WARN, "certificate check failed, trying again", STW_STR("error", err->text),
                STW_STR("code", stw_err_name(err->code)));
    return wait_ms;
}

static uint64_t sync_now(struct stw_certs *c)
{
    struct stw_error err = {0};
    uint64_t wait_ms = STW_CERTS_TICK_MS;
    int rc = stw_rotation_sync(&c->rotation, &err);
    if (c->rotation.facts.ca.cert)
        stw_series_set(c->ca_end, (double)c->rotation.facts.ca.not_after_us / 1e6);
    if (rc != 0)
        return record_sync_failure(c, &err);
    c->failures = 0;
    c->synced_ms = stw_now_ms(c->clock);
    stw_certs_set_problem(c, c->rotation.problem);
    (void)stw_rotation_idle(&c->rotation, STW_CERTS_TICK_MS, &wait_ms);
    return wait_ms;
}

static uint64_t secret_step(struct stw_certs *c, bool woken)
{
    uint64_t wait_ms = STW_CERTS_TICK_MS;
    bool old = stw_now_ms(c->clock) - c->synced_ms >= RESYNC_MS;
    if (woken || old || c->failures > 0 ||
        !stw_rotation_idle(&c->rotation, STW_CERTS_TICK_MS, &wait_ms))
        return sync_now(c);
    return wait_ms;
}

static void secret_close(struct stw_certs *c)
{
    for (unsigned i = 0; i < STW_CERTS_WATCHES; i++)
        stw_informer_destroy(c->watches[i]);
    stw_rotation_done(&c->rotation);
}

static int secret_fd(const struct stw_certs *c)
{
    (void)c;
    return -1;
}

const struct stw_certs_mode stw_certs_secret_mode = {
    .open = secret_open,
    .step = secret_step,
    .close = secret_close,
    .fd = secret_fd,
};
