/* SPDX-License-Identifier: Apache-2.0 */
#include "rotation_priv.h"

#include "base/log.h"
#include "base/util.h"
#include "certs/issue.h"

#include <assert.h>
#include <stdio.h>

#define ROUNDS_MAX 32 /* actions and lost races in one sync; the longest regular sequence takes 6 */
/* caBundles written within a minute before we report that another client keeps overwriting them. */
#define REPAIRS_MAX 20
#define REPAIRS_MS 60000

/* The state that one round has read. */
struct view {
    struct stw_hook hooks[STW_ROTATION_HOOKS];
    struct stw_error hook_err; /* of the first that could not be read */
    struct stw_buf secret;     /* as the server returned it */
    struct stw_content content;
    struct stw_buf bundle;
    struct stw_rotation_facts facts;
    int64_t now_us;
};

static void view_init(struct view *v, const struct stw_rotation *r)
{
    *v = (struct view){.now_us = stw_wall_us(r->clock)};
    v->secret = (struct stw_buf){.max = STW_SECRET_MAX_BYTES, .secret = true};
    v->bundle = STW_BUF_INIT(STW_BUNDLE_MAX_BYTES);
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++)
        stw_hook_init(&v->hooks[i], r->config.op, stw_hook_resource(i), r->config.hook_names[i]);
}

static void view_done(struct view *v)
{
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++)
        stw_hook_done(&v->hooks[i]);
    stw_buf_done(&v->secret);
    stw_content_done(&v->content);
    stw_buf_done(&v->bundle);
}

/* --- reading */

static void say_missing(struct stw_rotation *r, unsigned i, const struct stw_hook *h)
{
    bool missing = h->state == STW_HOOK_NONE && h->name && *h->name;
    if (missing && !r->missing_said[i])
        stw_log(STW_LOG_WARN, "webhook configuration not found, waiting for it",
                STW_STR("kind", h->resource->kind), STW_STR("name", h->name));
    if (h->state != STW_HOOK_UNKNOWN)
        r->missing_said[i] = missing;
}

static void read_hooks(struct stw_rotation *r, struct view *v)
{
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++) {
        struct stw_error e = {0};
        if (stw_hook_read(&v->hooks[i], &r->api, &e) < 0 && v->hook_err.code == STW_OK)
            v->hook_err = e;
        say_missing(r, i, &v->hooks[i]);
    }
}

static int read_secret(struct stw_rotation *r, struct view *v, struct stw_error *err)
{
    struct stw_buf stw_autobuf path = STW_BUF_INIT(2048);
    struct stw_error e = {0};
    stw_resource_path(&stw_res_secret, r->config.ns, r->config.secret, NULL, &path);
    const struct stw_request req = {.method = "GET", .path = stw_buf_str(&path), .secret = true};
    if (r->api.call(r->api.ctx, &req, &v->secret, &e) == 0) {
        if (stw_content_read(stw_buf_str(&v->secret), v->secret.len, &v->content, err) < 0)
            return -1;
        if (v->content.foreign)
            return stw_fail(err, STW_ERR_INVALID,
                            "Secret %s/%s is kept by cert-manager; mount it and use the folder, or "
                            "name another Secret for %s's own certificates",
                            r->config.ns, r->config.secret, r->config.op->name);
        return 0;
    }
    if (e.code == STW_ERR_NOT_FOUND)
        return 0;
    if (err)
        *err = e;
    return stw_error_wrap(err, "cannot read Secret %s/%s", r->config.ns, r->config.secret);
}

static bool all_exact(const struct stw_rotation_facts *f)
{
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++)
        if (f->hooks[i].state == STW_HOOK_UNKNOWN ||
            (f->hooks[i].state == STW_HOOK_FOUND && !f->hooks[i].exact))
            return false;
    return true;
}

/* How long this exact bundle was seen in all of them. */
static int64_t exact_for(struct stw_rotation *r, const struct view *v)
{
    struct stw_hash h = stw_hash_bytes(stw_buf_str(&v->bundle), v->bundle.len);
    uint64_t now = stw_now_ms(r->clock);
    if (!all_exact(&v->facts)) {
        r->exact_since_ms = 0;
        return 0;
    }
    if (r->exact_since_ms == 0 || h.lo != r->exact_bundle.lo || h.hi != r->exact_bundle.hi) {
        r->exact_since_ms = now ? now : 1;
        r->exact_bundle = h;
    }
    return (int64_t)(now - STW_MIN(now, r->exact_since_ms)) * 1000;
}

static void collect_facts(struct stw_rotation *r, struct view *v)
{
    stw_rotation_examine(&v->content, &r->config, v->now_us, &v->facts, &v->bundle);
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++) {
        v->facts.hooks[i].state = v->hooks[i].state;
        v->facts.hooks[i].exact = stw_hook_exact(&v->hooks[i], stw_buf_str(&v->bundle));
    }
    v->facts.exact_for_us = exact_for(r, v);
}

/* --- serving */

/* A leaf that no configuration would trust does not replace one that is trusted. */
static void serve_trusted_leaf(struct stw_rotation *r, const struct view *v)
{
    const char *cert = v->content.slot[STW_SLOT_TLS_CRT], *key = v->content.slot[STW_SLOT_TLS_KEY];
    struct stw_error err = {0};
    if (!v->facts.leaf.pair || (r->served && stw_streq(r->served, cert)) ||
        !stw_cert_signed_by(cert, stw_buf_str(&v->bundle)))
        return;
    if (r->serve(r->ctx, cert, key, &err) < 0)
        return;
    free(r->served);
    r->served = strdup(cert);
}

/* Usually all configurations contain the bundle, and then it need not be checked for each. */
static void note_problem(struct stw_rotation *r, const struct view *v)
{
    bool bundle_trusts = r->served && stw_cert_signed_by(r->served, stw_buf_str(&v->bundle));
    r->problem[0] = '\0';
    for (unsigned i = 0; i < STW_ROTATION_HOOKS && !r->problem[0]; i++) {
        const struct stw_hook *h = &v->hooks[i];
        if (h->state == STW_HOOK_UNKNOWN)
            stw_format(r->problem, sizeof(r->problem), "%s", v->hook_err.text);
        else if (r->served && !(v->facts.hooks[i].exact && bundle_trusts) &&
                 !stw_hook_trusts(h, r->served))
            stw_format(r->problem, sizeof(r->problem),
                       "the caBundle of %s \"%s\" does not hold the CA of the serving "
                       "certificate yet",
                       h->resource->kind, h->name);
    }
}

/* --- acting */

static int put_secret(struct stw_rotation *r, struct view *v, struct stw_error *err)
{
    struct stw_buf stw_autobuf path = STW_BUF_INIT(2048);
    struct stw_buf stw_autobuf body = {.max = STW_SECRET_MAX_BYTES, .secret = true};
    bool exists = v->content.exists;
    if (stw_content_write(r->config.op, &v->content, r->config.ns, r->config.secret,
                          exists ? &v->secret : NULL, &body, err) < 0)
        return -1;
    stw_resource_path(&stw_res_secret, r->config.ns, exists ? r->config.secret : NULL, NULL, &path);
    const struct stw_request req = {.method = exists ? "PUT" : "POST",
                                    .path = stw_buf_str(&path),
                                    .body = stw_buf_str(&body),
                                    .body_len = body.len,
                                    .secret = true};
    struct stw_buf stw_autobuf answer = {.max = STW_SECRET_MAX_BYTES, .secret = true};
    if (r->api.call(r->api.ctx, &req, &answer, err) == 0)
        return 0;
    /* Not a lost race: the namespace does not exist. */
    if (!exists && err && err->code == STW_ERR_NOT_FOUND)
        err->code = STW_ERR_INVALID;
    return stw_error_wrap(err, "cannot write Secret %s/%s", r->config.ns, r->config.secret);
}

/* Without our own CA, the configurations show which CAs other replicas may still be serving.  They
 * are read after the Secret, as other replicas may have continued until it was gone. */
static int find_trusted(struct stw_rotation *r, struct view *v, struct stw_buf *found,
                        struct stw_error *err)
{
    v->hook_err = (struct stw_error){0};
    read_hooks(r, v);
    if (v->hook_err.code != STW_OK) {
        if (err)
            *err = v->hook_err;
        return -1;
    }
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++)
        stw_hook_collect(&v->hooks[i], v->now_us, found);
    return 0;
}

static int change_secret(struct stw_rotation *r, struct view *v, enum stw_rotation_action action,
                         struct stw_error *err)
{
    struct stw_buf stw_autobuf found = STW_BUF_INIT(STW_BUNDLE_MAX_BYTES);
    bool lost = action == STW_ROTATION_STAGE && !v->facts.ca.cert;
    if (lost && find_trusted(r, v, &found, err) < 0)
        return -1;
    if (stw_rotation_change(&v->content, action, &r->config, lost ? stw_buf_str(&found) : NULL,
                            v->now_us, err) < 0)
        return -1;
    return put_secret(r, v, err);
}

static bool may_repair(struct stw_rotation *r)
{
    uint64_t now = stw_now_ms(r->clock);
    if (now - r->repair_since_ms >= REPAIRS_MS) {
        r->repair_since_ms = now;
        r->repairs = 0;
    }
    return r->repairs++ < REPAIRS_MAX;
}

static int write_hooks(struct stw_rotation *r, struct view *v, struct stw_error *err)
{
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++) {
        const struct stw_hook *h = &v->hooks[i];
        if (h->state != STW_HOOK_FOUND || v->facts.hooks[i].exact)
            continue;
        if (!may_repair(r))
            return stw_fail(err, STW_ERR_THROTTLED,
                            "another client keeps overwriting the caBundle of %s \"%s\"; its "
                            "metadata.managedFields show which",
                            h->resource->kind, h->name);
        if (stw_hook_write(h, stw_buf_str(&v->bundle), &r->api, err) < 0)
            return -1;
        stw_log(STW_LOG_INFO, "caBundle written", STW_STR("kind", h->resource->kind),
                STW_STR("name", h->name));
    }
    return 0;
}

/* A policy may refuse it: then admission goes on, and only installers are affected. */
static bool is_refused(const struct stw_error *err)
{
    return err->code == STW_ERR_FORBIDDEN || err->code == STW_ERR_INVALID;
}

static int release_hooks(struct stw_rotation *r, const struct view *v, struct stw_error *err)
{
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++) {
        struct stw_error e = {0};
        const struct stw_hook *h = &v->hooks[i];
        if (h->state != STW_HOOK_FOUND || !h->owned || stw_hook_release(h, &r->api, &e) == 0)
            continue;
        if (!is_refused(&e)) {
            *err = e;
            return -1;
        }
        if (!r->release_said)
            stw_log(STW_LOG_WARN,
                    "the caBundle stays owned: a server-side apply that leaves out webhooks fails",
                    STW_STR("kind", h->resource->kind), STW_STR("name", h->name),
                    STW_STR("error", e.text));
        r->release_said = true;
    }
    return 0;
}

/* Why a new CA or leaf is made: the first reason that applies. */
static const char *find_action_reason(const struct view *v, enum stw_rotation_action action)
{
    const struct stw_rotation_facts *f = &v->facts;
    const struct stw_content *c = &v->content;
    if (action == STW_ROTATION_STAGE)
        return !c->exists                  ? "there is no Secret yet"
               : !c->slot[STW_SLOT_CA_CRT] ? "the Secret holds no CA"
               : !f->ca.cert               ? "the CA in the Secret is unreadable or has expired"
               : !f->ca.key                ? "the CA's key is missing or does not match"
                                           : "two thirds of the CA's life are over";
    if (action == STW_ROTATION_ISSUE)
        return !c->slot[STW_SLOT_TLS_CRT] ? "the Secret holds no certificate"
               : !f->leaf.pair            ? "the pair is unreadable, does not match, or has expired"
               : !f->leaf.covers          ? "the certificate lacks a name that is asked for"
               : !f->leaf.by_ca           ? "the certificate is not of the CA in the Secret"
                                          : "two thirds of its life are over";
    return NULL;
}

static void log_action(const struct stw_rotation *r, enum stw_rotation_action action,
                       const char *why)
{
    static const char *const text[] = {
        [STW_ROTATION_STAGE] = "new certificate authority made, not in use before it is in every "
                               "caBundle",
        [STW_ROTATION_ISSUE] = "new serving certificate issued",
        [STW_ROTATION_PROMOTE] =
            "new certificate authority in use, serving certificate issued by it",
        [STW_ROTATION_STAMP] = "time noted until which former certificate authorities stay trusted",
        [STW_ROTATION_RETIRE] = "former certificate authorities retired",
    };
    static_assert(STW_COUNT(text) == STW_ROTATION_ACTIONS, "one text for each action");
    assert(text[action]);
    stw_log(STW_LOG_INFO, text[action], STW_STR("namespace", r->config.ns),
            STW_STR("secret", r->config.secret), STW_STR("reason", why));
}

/* Returns 1 when an action was done, 0 when there was nothing to do, or -1; -1 also when a
 * configuration could not be read, so that an action may be missing. */
static int perform_action(struct stw_rotation *r, struct view *v, enum stw_rotation_action action,
                          struct stw_error *err)
{
    const char *why = find_action_reason(v, action);
    if (action == STW_ROTATION_NONE && v->hook_err.code != STW_OK) {
        *err = v->hook_err;
        return -1;
    }
    if (action == STW_ROTATION_NONE)
        return release_hooks(r, v, err);
    if (action == STW_ROTATION_WRITE)
        return write_hooks(r, v, err) < 0 ? -1 : 1;
    if (change_secret(r, v, action, err) < 0)
        return -1;
    log_action(r, action, why);
    return 1;
}

/* Returns as perform_action(); `err` is not NULL. */
static int run_round(struct stw_rotation *r, struct stw_error *err)
{
    struct view v;
    view_init(&v, r);
    read_hooks(r, &v);
    int rc = read_secret(r, &v, err);
    if (rc == 0) {
        collect_facts(r, &v);
        serve_trusted_leaf(r, &v);
        note_problem(r, &v);
        r->facts = v.facts;
        rc = perform_action(r, &v, stw_rotation_decide(&v.facts, v.now_us, &r->config.times), err);
    }
    view_done(&v);
    return rc;
}

/* Another client wrote first, or deleted what we had read. */
static bool lost_race(const struct stw_error *err)
{
    return err->code == STW_ERR_CONFLICT || err->code == STW_ERR_EXISTS ||
           err->code == STW_ERR_NOT_FOUND;
}

int stw_rotation_sync(struct stw_rotation *r, struct stw_error *err)
{
    for (unsigned i = 0; i < ROUNDS_MAX; i++) {
        struct stw_error e = {0};
        int rc = run_round(r, &e);
        if (rc == 0)
            return 0;
        if (rc < 0 && !lost_race(&e)) {
            if (err)
                *err = e;
            return -1;
        }
    }
    return stw_fail(
        err, STW_ERR_CONFLICT,
        "Secret %s/%s or a webhook configuration was changed by another client %d times in a row",
        r->config.ns, r->config.secret, ROUNDS_MAX);
}

bool stw_rotation_idle(struct stw_rotation *r, uint64_t max_ms, uint64_t *ret_wait_ms)
{
    struct stw_rotation_facts f = r->facts;
    int64_t now_us = stw_wall_us(r->clock);
    if (r->exact_since_ms > 0)
        f.exact_for_us = (int64_t)(stw_now_ms(r->clock) - r->exact_since_ms) * 1000;
    *ret_wait_ms =
        (uint64_t)stw_rotation_wait_us(&f, &r->config.times, (int64_t)max_ms * 1000) / 1000 + 1;
    return stw_rotation_decide(&f, now_us, &r->config.times) == STW_ROTATION_NONE;
}

void stw_rotation_done(struct stw_rotation *r)
{
    free(r->served);
    r->served = NULL;
}
