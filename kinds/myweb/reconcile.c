/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/myweb/reconcile.h"

#include "base/util.h"
#include "controller/outcome.h"
#include "controller/status.h"
#include "kinds/myweb/run_priv.h"

#include <stdio.h>

/* --- claims of node ports */

static void index_port(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    int64_t port;
    (void)ctx;
    if (stw_json_int(stw_json_path(projected, "spec.nodePortNumber"), &port) == 0 && port > 0)
        stw_buf_addf(out, "nodePort:%lld\n", (long long)port);
}

static int64_t port_of(const char *text)
{
    stw_autojson struct stw_json_doc doc = {0};
    int64_t port = 0;
    if (text && stw_json_scan(&doc, text, strlen(text), NULL) == 0)
        (void)stw_json_int(stw_json_path(stw_json_root(&doc), "spec.nodePortNumber"), &port);
    return port;
}

/* Wakes the MyWebs that want a port that was released. */
static void wake_waiting(struct stw_manager *m, int64_t was, int64_t now)
{
    char port[24];
    if (was == 0 || was == now)
        return;
    (void)snprintf(port, sizeof(port), "%lld", (long long)was);
    stw_manager_wake(m, "nodePort", port);
}

/* Wakes the next claimant when a MyWeb no longer claims its port. */
static void myweb_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                          const char *old_text, const char *new_text)
{
    stw_watch_own_changed(m, w, key, old_text, new_text);
    wake_waiting(m, port_of(old_text), port_of(new_text));
}

static bool claims_before(const struct stw_object *other, const char *other_key,
                          const struct myweb *w)
{
    int order = strcmp(other->created, w->object.created); /* RFC 3339 in UTC sorts as text */
    return !other->deleting && (order < 0 || (order == 0 && strcmp(other_key, w->run->key) < 0));
}

/* An older MyWeb that wants the same port has priority, even when its Service does not exist
 * yet. */
static bool find_older_claim(struct myweb *w)
{
    char port[48], name[STW_KEY_LEN];
    size_t at = 0;
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(1u << 20);
    (void)snprintf(port, sizeof(port), "nodePort:%lld", (long long)w->spec.node_port);
    stw_informer_keys(stw_run_cache(w->run, w->run->controller->own), port, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        stw_autoobject struct stw_object other = {0};
        if (stw_streq(key, w->run->key) || stw_object_load_key(w->run, key, &other) != 0 ||
            !claims_before(&other, key, w))
            continue;
        stw_name_to(w->run->key, key, name, sizeof(name));
        (void)snprintf(w->holder, sizeof(w->holder), "MyWeb %s", name);
        return true;
    }
    return false;
}

/* --- children */

static json_t *make_configmap(const void *ctx)
{
    return myweb_configmap(ctx);
}

static json_t *make_deployment(const void *ctx)
{
    return myweb_deployment(ctx);
}

static json_t *make_service(const void *ctx)
{
    return myweb_service(ctx);
}

static const struct {
    const struct stw_watch *watch;
    json_t *(*make)(const void *ctx);
} parts[MYWEB_CHILDREN] = {
    [MYWEB_CONFIGMAP] = {&stw_watch_configmaps, make_configmap},
    [MYWEB_DEPLOYMENT] = {&stw_watch_deployments, make_deployment},
    [MYWEB_SERVICE] = {&stw_watch_services, make_service},
};

/* Children depend only on the identity of the object, its spec and the port. */
static struct stw_hash inputs_of(const struct myweb *w, int64_t port)
{
    char text[128];
    int len = snprintf(text, sizeof(text), "%s %lld %lld", w->object.uid,
                       (long long)w->object.generation, (long long)port);
    return w->object.generation > 0 ? stw_hash_bytes(text, (size_t)len) : (struct stw_hash){0};
}

static void begin_child(struct myweb *w, int child)
{
    stw_child_done(&w->children[child]);
    w->children[child] =
        (struct stw_child){.watch = parts[child].watch,
                           .name = w->owner.name,
                           .make = parts[child].make,
                           .ctx = w,
                           .inputs = inputs_of(w, child == MYWEB_SERVICE ? w->service_port : 0),
                           .applied_before = myweb_was_applied(w, child)};
}

static void ensure_myweb_child(struct myweb *w, int child)
{
    stw_child_ensure(w->run, &w->owner, &w->children[child]);
}

/* For an automatic port we do not apply nodePort, and the API server keeps its choice.  When the
 * user removes nodePortNumber, the Service keeps that port too, but only as long as we go on
 * applying it: servers up to 1.20 choose a new one for a Service whose nodePort field is
 * removed. */
static void keep_automatic_port(struct myweb *w, const struct stw_child_live *live)
{
    struct stw_hash wanted;
    bool ours = stw_streq(live->owner_uid, w->owner.uid) && live->node_port != 0;
    if (!ours || stw_child_wanted(w->run, &w->children[MYWEB_SERVICE], &wanted) != 0 ||
        stw_child_as_wanted(w->run, &stw_watch_services, w->run->key, wanted, live))
        return;
    w->service_port = live->node_port;
    begin_child(w, MYWEB_SERVICE);
}

static void name_port_holder(struct myweb *w)
{
    char port[24], key[512] = "";
    const struct stw_lookup *lookup = w->run->env->lookup;
    (void)snprintf(port, sizeof(port), "%lld", (long long)w->spec.node_port);
    if (lookup && lookup->find(lookup->ctx, "services.nodePort", port, w->run->key, key))
        (void)snprintf(w->holder, sizeof(w->holder), "Service %s", key);
    else
        (void)snprintf(w->holder, sizeof(w->holder), MYWEB_HOLDER_UNSEEN);
}

/* The API server's messages: 422, not 409, for a port that is taken (kubernetes#64466), and 500 for
 * an exhausted range. */
static const struct {
    const char *text;
    enum myweb_port meaning;
} port_refusals[] = {
    {"port is already allocated", MYWEB_PORT_TAKEN},
    {"failed to allocate a nodePort: range is full", MYWEB_PORT_NONE_LEFT},
    {"not in the valid range", MYWEB_PORT_IMPOSSIBLE},
};

static void read_port_refusal(struct myweb *w)
{
    const struct stw_child *c = &w->children[MYWEB_SERVICE];
    for (size_t i = 0; c->state == STW_CHILD_FAILED && i < STW_COUNT(port_refusals); i++)
        if (strstr(c->err.text, port_refusals[i].text))
            w->port = port_refusals[i].meaning;
    if (w->port == MYWEB_PORT_TAKEN)
        name_port_holder(w);
}

/* A working Service is never changed for a port that it cannot get. */
static void ensure_service(struct myweb *w)
{
    struct stw_child_live live;
    (void)stw_child_cached(w->run, &stw_watch_services, w->run->key, &live);
    bool holds = stw_streq(live.owner_uid, w->owner.uid) && live.node_port == w->spec.node_port;
    w->service_port = w->spec.node_port;
    begin_child(w, MYWEB_SERVICE);
    if (w->spec.node_port == 0)
        keep_automatic_port(w, &live);
    if (w->spec.node_port && !holds && find_older_claim(w)) {
        w->port = MYWEB_PORT_TAKEN;
        w->children[MYWEB_SERVICE].state = STW_CHILD_FAILED;
        if (stw_streq(live.owner_uid, w->owner.uid))
            w->children[MYWEB_SERVICE].live = live;
        return;
    }
    ensure_myweb_child(w, MYWEB_SERVICE);
    read_port_refusal(w);
    /* The watch does not report our own changes. */
    if (w->children[MYWEB_SERVICE].state <= STW_CHILD_REPAIRED)
        wake_waiting(w->run->manager, live.node_port, w->children[MYWEB_SERVICE].live.node_port);
}

static void ensure_children(struct myweb *w)
{
    begin_child(w, MYWEB_CONFIGMAP);
    ensure_myweb_child(w, MYWEB_CONFIGMAP); /* first: pods that start must find the page */
    begin_child(w, MYWEB_DEPLOYMENT);
    ensure_myweb_child(w, MYWEB_DEPLOYMENT);
    ensure_service(w);
}

static void forget_children(struct stw_run *run)
{
    stw_child_forget(run, &stw_watch_configmaps, run->key);
    stw_child_forget(run, &stw_watch_deployments, run->key);
    stw_child_forget(run, &stw_watch_services, run->key);
}

static void write_myweb_result(struct myweb *w, struct stw_result *result)
{
    static const char *const numbers[] = {"availableReplicas", NULL};
    struct stw_verdict verdict;
    json_t *status;
    stw_tell_children(w->run, &w->object, w->owner.name, w->children, MYWEB_CHILDREN);
    if (stw_run_interrupted(w->run, w->children, MYWEB_CHILDREN, result))
        return;
    myweb_judge(w, &verdict, &status);
    stw_run_end(w->run, &w->object, &verdict, status, numbers, result);
}

static void reconcile(struct stw_run *run, struct stw_result *result)
{
    struct myweb w = {.run = run};
    stw_autobuf struct stw_buf findings = STW_BUF_INIT(64 * 1024);
    struct stw_error err = {0};
    if (stw_object_load(run, &w.object) != 0 || w.object.deleting) {
        forget_children(run); /* the garbage collector deletes the children */
        stw_object_done(&w.object);
        return;
    }
    w.owner = (struct stw_owner){.kind = stw_kind_myweb.kind,
                                 .ns = run->ns,
                                 .name = run->name,
                                 .uid = w.object.uid,
                                 .adopt = w.object.adopt};
    w.arena = stw_arena_create();
    if (w.object.paused) {
        (void)stw_run_write(run, &w.object, stw_status_paused(run, &w.object), result);
    } else if (stw_object_judge(run, &w.object, &findings) > 0) {
        stw_run_end_invalid(run, &w.object, myweb_status_invalid(&w, stw_buf_str(&findings)),
                            stw_buf_str(&findings), result);
    } else if (!w.arena || stw_kind_decode(&stw_kind_myweb, stw_json_get(w.object.root, "spec"),
                                           w.arena, &w.spec, &err) != 0) {
        stw_run_fail(run, &err, result);
    } else {
        myweb_hash_content(&w);
        ensure_children(&w);
        write_myweb_result(&w, result);
    }
    for (int i = 0; i < MYWEB_CHILDREN; i++)
        stw_child_done(&w.children[i]);
    stw_arena_destroy(w.arena);
    stw_object_done(&w.object);
}

/* --- registration */

static const struct stw_resource myweb_resource = {.group = "operator.k8s-summit.org",
                                                   .version = "v1",
                                                   .kind = "MyWeb",
                                                   .plural = "mywebs",
                                                   .namespaced = true};

static const struct stw_watch own_watch = {
    .resource = &myweb_resource,
    .project = stw_object_project,
    .index = index_port,
    .for_admission = true,
    .changed = myweb_changed,
};

static const struct stw_watch *const watches[] = {&stw_watch_configmaps, &stw_watch_deployments,
                                                  &stw_watch_services, NULL};

/* The garbage collector deletes the children, so the verb delete is not needed.  update on
 * finalizers is required where the API server guards blockOwnerDeletion
 * (OwnerReferencesPermissionEnforcement). */
static const struct stw_rule rules[] = {
    {.resource = &myweb_resource, .verbs = "get,list,watch"},
    {.resource = &myweb_resource, .subresource = "status", .verbs = "patch"},
    {.resource = &myweb_resource, .subresource = "finalizers", .verbs = "update"},
    {.resource = &stw_res_configmap, .verbs = "get,list,watch,create,patch"},
    {.resource = &stw_res_deployment, .verbs = "get,list,watch,create,patch"},
    {.resource = &stw_res_service, .verbs = "get,list,watch,create,patch"},
    {0},
};

static const char *const conditions[] = {
    STW_READY,       STW_RECONCILING,     STW_STALLED, "ConfigMapSynced", "DeploymentAvailable",
    "ServiceSynced", "NodePortAllocated", NULL};

const struct stw_controller stw_controller_myweb = {
    .name = "myweb",
    .field_manager = "steward-myweb",
    .kind = &stw_kind_myweb,
    .resource = &myweb_resource,
    .own = &own_watch,
    .watches = watches,
    .rules = rules,
    .conditions = conditions,
    .reconcile = reconcile,
};
