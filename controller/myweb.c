/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/myweb.h"

#include "base/util.h"
#include "controller/ending.h"
#include "controller/myweb_priv.h"
#include "controller/status.h"

#include <stdio.h>

/* --- which MyWebs want a node port */

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

/* A MyWeb that no longer claims a port makes way for the next one that does. */
static void myweb_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                          const char *old_text, const char *new_text)
{
    char value[24];
    int64_t was = port_of(old_text);
    stw_watch_own_changed(m, w, key, old_text, new_text);
    if (was == 0 || was == port_of(new_text))
        return;
    (void)snprintf(value, sizeof(value), "%lld", (long long)was);
    stw_manager_wake(m, "nodePort", value);
}

static bool claims_before(const struct stw_object *other, const char *other_key,
                          const struct myweb *w)
{
    int order = strcmp(other->created, w->object.created); /* RFC 3339 in UTC sorts as text */
    return !other->deleting && (order < 0 || (order == 0 && strcmp(other_key, w->run->key) < 0));
}

/* An older MyWeb that wants the same port has it, even when its Service is not there yet. */
static bool find_older_claim(struct myweb *w)
{
    char port[48];
    size_t at = 0;
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(1u << 20);
    (void)snprintf(port, sizeof(port), "nodePort:%lld", (long long)w->spec.node_port);
    stw_informer_keys(stw_run_cache(w->run, w->run->controller->own), port, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        stw_autoobject struct stw_object other = {0};
        if (stw_streq(key, w->run->key) || stw_object_load_key(w->run, key, &other) != 0 ||
            !claims_before(&other, key, w))
            continue;
        (void)snprintf(w->holder, sizeof(w->holder), "MyWeb %s", key);
        return true;
    }
    return false;
}

/* --- children */

static void begin_child(struct myweb *w, int child, const struct stw_watch *watch, json_t *desired)
{
    w->desired[child] = desired;
    w->children[child] = (struct stw_child){.watch = watch,
                                            .name = w->owner.name,
                                            .desired = desired,
                                            .applied_before = myweb_was_applied(w, child)};
}

static void ensure(struct myweb *w, int child)
{
    struct stw_child *c = &w->children[child];
    if (c->desired) {
        stw_child_ensure(w->run, &w->owner, c);
    } else {
        (void)stw_fail(&c->err, STW_ERR_INTERNAL, "out of memory");
        c->state = STW_CHILD_FAILED;
    }
}

/* With an automatic port the field is not ours and the API server keeps what it chose.  A port that
 * was asked for before and no longer is stays too, but only as long as we go on applying it:
 * servers up to 1.20 give a new one to a Service whose nodePort field goes. */
static json_t *service_with_automatic_port(struct myweb *w, const struct stw_child_live *live)
{
    struct stw_hash digest;
    json_t *plain = myweb_service(w, 0);
    bool ours = stw_streq(live->owner_uid, w->owner.uid) && live->node_port != 0;
    if (!plain || !ours || stw_child_digest(plain, &digest) != 0 ||
        stw_child_as_wanted(w->run, &stw_watch_services, w->run->key, digest, live))
        return plain;
    json_decref(plain);
    return myweb_service(w, live->node_port);
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

/* How the API server says it: 422, not 409, for a port that is taken (kubernetes#64466), and 500
 * for a range that is used up. */
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

/* A Service that works is never touched for the sake of a port it cannot have. */
static void ensure_service(struct myweb *w)
{
    struct stw_child_live live;
    (void)stw_child_cached(w->run, &stw_watch_services, w->run->key, &live);
    bool holds = stw_streq(live.owner_uid, w->owner.uid) && live.node_port == w->spec.node_port;
    json_t *desired = w->spec.node_port ? myweb_service(w, w->spec.node_port)
                                        : service_with_automatic_port(w, &live);
    begin_child(w, MYWEB_SERVICE, &stw_watch_services, desired);
    if (w->spec.node_port && !holds && find_older_claim(w)) {
        w->port = MYWEB_PORT_TAKEN;
        w->children[MYWEB_SERVICE].state = STW_CHILD_FAILED;
        if (stw_streq(live.owner_uid, w->owner.uid))
            w->children[MYWEB_SERVICE].live = live;
        return;
    }
    ensure(w, MYWEB_SERVICE);
    read_port_refusal(w);
}

static void ensure_children(struct myweb *w)
{
    begin_child(w, MYWEB_CONFIGMAP, &stw_watch_configmaps, myweb_configmap(w));
    ensure(w, MYWEB_CONFIGMAP); /* first: pods that start must find the page */
    begin_child(w, MYWEB_DEPLOYMENT, &stw_watch_deployments, myweb_deployment(w));
    ensure(w, MYWEB_DEPLOYMENT);
    ensure_service(w);
}

static void forget_children(struct stw_run *run)
{
    stw_child_forget(run, &stw_watch_configmaps, run->key);
    stw_child_forget(run, &stw_watch_deployments, run->key);
    stw_child_forget(run, &stw_watch_services, run->key);
}

static void finish(struct myweb *w, struct stw_result *result)
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
        forget_children(run); /* the garbage collector sees to the rest */
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
        finish(&w, result);
    }
    for (int i = 0; i < MYWEB_CHILDREN; i++)
        json_decref(w.desired[i]);
    stw_arena_destroy(w.arena);
    stw_object_done(&w.object);
}

/* --- the kind in the table */

static const struct stw_resource myweb_resource = {.group = "operator.k8s-summit.org",
                                                   .version = "v1",
                                                   .kind = "MyWeb",
                                                   .plural = "mywebs",
                                                   .namespaced = true};

static const struct stw_watch own_watch = {
    .resource = &myweb_resource,
    .project = stw_object_project,
    .index = index_port,
    .door = true,
    .changed = myweb_changed,
};

static const struct stw_watch *const watches[] = {&stw_watch_configmaps, &stw_watch_deployments,
                                                  &stw_watch_services, NULL};

/* Children go by the garbage collector, so nothing is ever deleted.  finalizers: the API server
 * asks for it where blockOwnerDeletion is guarded (OwnerReferencesPermissionEnforcement). */
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
