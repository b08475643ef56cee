/* SPDX-License-Identifier: Apache-2.0
 *
 * The API for other threads: blocking requests, fire and forget, and the verbs on objects. */
#include "base/hex.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "kube/api/discovery.h"
#include "kube/api/dry_run.h"
#include "kube/client/client_priv.h"
#include "kube/owned/shadow_priv.h"
#include "kube/tree.h"

#include <limits.h>

#define TELL_EVERY_MS 60000
#define PATH_MAX_BYTES 3072
#define BODY_MAX_BYTES (16u << 20)
#define BODY_USUAL_BYTES 4096
#define MINOR_KEEP_MS (10u * 60000)

int stw_client_do(struct stw_client *c, const struct stw_request *req, struct stw_buf *ret,
                  struct stw_error *err)
{
    if (!c->shadow || stw_streq(req->method, "GET"))
        return stw_client_ask(c, req, ret, err);
    if (!stw_fence_may_write()) /* as a client that sends it */
        return stw_fail(err, STW_ERR_CANCELLED, "this process no longer leads");
    return stw_shadow_answer(c->shadow, c, req, ret, err);
}

/* --- fire and forget: one block of memory with the call and copies of all texts */

static void free_submitted_call(struct stw_http_call *call)
{
    struct stw_client *c = call->client;
    pthread_mutex_lock(&c->lock);
    c->submitted_bytes -= call->bytes;
    pthread_mutex_unlock(&c->lock);
    stw_buf_done(&call->body);
    free(call);
}

static const char *copy_text(char **at, const char *text, size_t len)
{
    char *to = *at;
    if (!text)
        return NULL;
    memcpy(to, text, len);
    to[len] = '\0';
    *at += len + 1;
    return to;
}

static size_t text_len(const char *text)
{
    return text ? strlen(text) : 0;
}

static struct stw_http_call *copy_request(const struct stw_request *r)
{
    size_t method = strlen(r->method), path = strlen(r->path), type = text_len(r->content_type),
           accept = text_len(r->accept);
    size_t bytes = sizeof(struct stw_http_call) + method + path + type + accept + r->body_len + 5;
    struct stw_http_call *call = calloc(1, bytes);
    if (!call)
        return NULL;
    call->bytes = bytes;
    char *at = (char *)(call + 1);
    call->req = *r;
    call->req.method = copy_text(&at, r->method, method);
    call->req.path = copy_text(&at, r->path, path);
    call->req.content_type = copy_text(&at, r->content_type, type);
    call->req.accept = copy_text(&at, r->accept, accept);
    call->req.body = copy_text(&at, r->body, r->body_len);
    call->background = true;
    call->on_done = free_submitted_call;
    return call;
}

static bool reserve_queue_bytes(struct stw_client *c, size_t bytes)
{
    STW_LOCKED(&c->lock);
    bool room = !c->cancelled && c->submitted_bytes + bytes <= STW_SUBMITTED_MAX_BYTES;
    c->submitted_bytes += room ? bytes : 0;
    return room;
}

static void tell_dropped(struct stw_client *c)
{
    uint64_t now = stw_now_ms(c->clock);
    stw_series_add(c->dropped, 1);
    pthread_mutex_lock(&c->lock);
    bool due =
        !c->cancelled && (c->drop_logged_ms == 0 || now >= c->drop_logged_ms + TELL_EVERY_MS);
    if (due)
        c->drop_logged_ms = now;
    pthread_mutex_unlock(&c->lock);
    if (due)
        stw_log(STW_LOG_WARN, "events are dropped: the API server does not accept them fast "
                              "enough; the metric client_dropped_total counts them");
}

bool stw_client_submit(struct stw_client *c, const struct stw_request *req)
{
    if (!stw_fence_may_write())
        return false;
    if (c->shadow)
        return true; /* an event */
    struct stw_http_call *call = copy_request(req);
    bool taken = call && reserve_queue_bytes(c, call->bytes);
    if (taken) {
        stw_call_start(c, call);
        return true;
    }
    free(call);
    tell_dropped(c);
    return false;
}

bool stw_client_is_submitting(struct stw_client *c)
{
    STW_LOCKED(&c->lock);
    return c->submitted_bytes > 0;
}

/* --- verbs */

struct verb {
    const char *method, *content_type;
    const char *manager; /* NULL: no fieldManager */
    bool force;
    const char *version; /* NULL: the newest */
    bool dry_run;
};

static int send_verb_request(struct stw_client *c, const struct verb *v, const struct stw_place *at,
                             const char *body, struct stw_buf *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    stw_resource_path(at->resource, at->ns, at->name, at->sub, &path);
    if (v->manager) {
        stw_buf_adds(&path, "?fieldManager=");
        stw_url_escape(v->manager, &path);
        stw_buf_adds(&path, v->force ? "&force=true" : "");
    }
    if (v->version) {
        stw_buf_adds(&path, "?resourceVersion=");
        stw_url_escape(v->version, &path);
    }
    if (v->dry_run)
        stw_buf_adds(&path, v->manager ? "&dryRun=All" : "?dryRun=All");
    if (path.failed)
        return stw_fail(err, STW_ERR_INVALID, "the name \"%.64s...\" is too long",
                        at->name ? at->name : "");
    bool secret = at->resource == &stw_res_secret;
    struct stw_request req = {.method = v->method,
                              .path = path.data,
                              .content_type = v->content_type,
                              .body = body,
                              .body_len = body ? strlen(body) : 0,
                              .answer_max = secret && ret ? ret->max : 0,
                              .secret = secret};
    return stw_client_do(c, &req, ret, err);
}

static int run_json(struct stw_client *c, const struct verb *v, const struct stw_place *at,
                    const json_t *object, struct stw_buf *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf body = STW_BUF_INIT(BODY_MAX_BYTES);
    body.secret = at->resource == &stw_res_secret;
    if (!stw_buf_reserve(&body, BODY_USUAL_BYTES) || stw_tree_write(object, &body) != 0)
        return stw_fail(err, STW_ERR_INTERNAL,
                        "cannot write the %s as JSON: it is too large, or "
                        "there is no memory",
                        at->resource->kind);
    return send_verb_request(c, v, at, stw_buf_str(&body), ret, err);
}

int stw_kube_get(struct stw_client *c, const struct stw_resource *r, const char *ns,
                 const char *name, struct stw_buf *ret, struct stw_error *err)
{
    return send_verb_request(c, &(struct verb){.method = "GET"}, STW_PLACE(r, ns, name), NULL, ret,
                             err);
}

int stw_kube_get_since(struct stw_client *c, const struct stw_resource *r, const char *ns,
                       const char *name, const char *version, struct stw_buf *ret,
                       struct stw_error *err)
{
    const struct verb v = {.method = "GET", .version = version};
    return send_verb_request(c, &v, STW_PLACE(r, ns, name), NULL, ret, err);
}

int stw_kube_create(struct stw_client *c, const struct stw_resource *r, const char *ns,
                    const json_t *object, struct stw_buf *ret, struct stw_error *err)
{
    return run_json(c, &(struct verb){.method = "POST"}, STW_PLACE(r, ns), object, ret, err);
}

int stw_kube_delete(struct stw_client *c, const struct stw_resource *r, const char *ns,
                    const char *name, const char *uid, const char *resource_version,
                    struct stw_error *err)
{
    json_auto_t *pre = json_pack("{s:s*, s:s*}", "uid", uid, "resourceVersion", resource_version);
    json_auto_t *options = json_pack("{s:s, s:s, s:s, s:O*}", "apiVersion", "v1", "kind",
                                     "DeleteOptions", "propagationPolicy", "Background",
                                     "preconditions", uid || resource_version ? pre : NULL);
    return run_json(c, &(struct verb){.method = "DELETE"}, STW_PLACE(r, ns, name), options, NULL,
                    err);
}

int stw_kube_apply(struct stw_client *c, const struct stw_place *at, const json_t *object,
                   const char *manager, struct stw_buf *ret, struct stw_error *err)
{
    /* The body is JSON, which is also YAML; servers know no other name for an apply patch. */
    const struct verb v = {"PATCH", "application/apply-patch+yaml", manager, .force = true};
    return run_json(c, &v, at, object, ret, err);
}

int stw_kube_merge_patch(struct stw_client *c, const struct stw_place *at, const json_t *patch,
                         const char *manager, struct stw_buf *ret, struct stw_error *err)
{
    const struct verb v = {"PATCH", "application/merge-patch+json", manager};
    return run_json(c, &v, at, patch, ret, err);
}

/* The API server answers a `test` that fails with 422 and no cause. */
static int send_json_patch(struct stw_client *c, const struct verb *v, const struct stw_place *at,
                           const char *patch, struct stw_buf *ret, struct stw_error *err)
{
    if (send_verb_request(c, v, at, patch, ret, err) == 0)
        return 0;
    if (err->code == STW_ERR_INVALID && strstr(err->text, "due to an error in our request"))
        err->code = STW_ERR_CONFLICT;
    return -1;
}

int stw_kube_json_patch(struct stw_client *c, const struct stw_place *at, const char *patch,
                        const char *manager, struct stw_buf *ret, struct stw_error *err)
{
    const struct verb v = {"PATCH", "application/json-patch+json", manager};
    return send_json_patch(c, &v, at, patch, ret, err);
}

/* --- writes that store nothing */

int stw_dry_run_create(struct stw_client *c, const struct stw_resource *r, const char *ns,
                       const json_t *object, struct stw_error *err)
{
    return run_json(c, &(struct verb){.method = "POST", .dry_run = true}, STW_PLACE(r, ns), object,
                    NULL, err);
}

int stw_dry_run_apply(struct stw_client *c, const struct stw_place *at, const json_t *object,
                      const char *manager, struct stw_error *err)
{
    const struct verb v = {"PATCH", "application/apply-patch+yaml", manager, .force = true,
                           .dry_run = true};
    return run_json(c, &v, at, object, NULL, err);
}

int stw_dry_run_json_patch(struct stw_client *c, const struct stw_place *at, const char *patch,
                           const char *manager, struct stw_error *err)
{
    const struct verb v = {"PATCH", "application/json-patch+json", manager, .dry_run = true};
    return send_json_patch(c, &v, at, patch, NULL, err);
}

/* --- the server's version */

/* The version is unknown when the request is forbidden or the response is not usable. */
static int ask_minor(struct stw_client *c, int *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(64u << 10);
    struct stw_error e = {0};
    const struct stw_request req = {.method = "GET", .path = "/version"};
    int result = stw_client_do(c, &req, &answer, &e);
    bool unreadable = e.code == STW_ERR_FORBIDDEN || e.code == STW_ERR_NOT_FOUND;
    if (result != 0 && !unreadable) {
        *err = e;
        return stw_error_wrap(err, "cannot ask the API server for its version");
    }
    int minor = unreadable ? -1 : stw_discovery_minor(&answer);
    *ret = minor < 0 ? INT_MAX : minor;
    return 0;
}

int stw_kube_minor(struct stw_client *c, int *ret, struct stw_error *err)
{
    uint64_t now = stw_now_ms(c->clock);
    pthread_mutex_lock(&c->lock);
    bool known = now < c->minor_until_ms;
    *ret = c->minor;
    pthread_mutex_unlock(&c->lock);
    if (known)
        return 0;
    if (ask_minor(c, ret, err) != 0)
        return -1;
    pthread_mutex_lock(&c->lock);
    c->minor = *ret;
    c->minor_until_ms = now + MINOR_KEEP_MS;
    pthread_mutex_unlock(&c->lock);
    return 0;
}
