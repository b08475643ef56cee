/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/myweb/reconcile.h"

#include "base/util.h"
#include "controller/claim.h"
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
    stw_autojson struct stw_json_doc doc = {.trusted = true};
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
    stw_format(port, sizeof(port), "%lld", (long long)was);
    stw_manager_wake(m, "nodePort", port);
}

/* Wakes the next claimant when a MyWeb no longer claims its port.  The list of a start has no old
 * texts, and reads no new ones. */
static void myweb_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                          const char *old_text, const char *new_text)
{
    stw_watch_own_changed(m, w, key, old_text, new_text);
    int64_t was = port_of(old_text);
    if (was != 0)
        wake_waiting(m, was, port_of(new_text));
}

/* An older MyWeb that wants the same port has priority, even when its Service does not exist
 * yet. */
static bool find_older_claim(struct myweb *w)
{
    char port[48], key[STW_KEY_LEN], name[STW_KEY_LEN];
    stw_format(port, sizeof(port), "nodePort:%lld", (long long)w->spec.node_port);
    if (!stw_claim_find(w->run, &w->object, port, NULL, key))
        return false;
    stw_name_to(w->run->key, key, name, sizeof(name));
    stw_format(w->holder, sizeof(w->holder), "MyWeb %s", name);
    return true;
}

/* --- the Service */

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
    stw_children_begin(&w->subject, MYWEB_SERVICE, w->service_port);
}

static void name_port_holder(struct myweb *w)
{
    char port[24], key[512] = "";
    const struct stw_lookup *lookup = w->run->env->lookup;
    stw_format(port, sizeof(port), "%lld", (long long)w->spec.node_port);
    if (lookup && lookup->find(lookup->ctx, "services.nodePort", port, w->run->key, key))
        stw_format(w->holder, sizeof(w->holder), "Service %s", key);
    else
        stw_format(w->holder, sizeof(w->holder), MYWEB_HOLDER_UNSEEN);
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
    stw_children_begin(&w->subject, MYWEB_SERVICE, w->service_port);
    if (w->spec.node_port == 0 && !myweb_is_inside(&w->spec))
        keep_automatic_port(w, &live);
    if (w->spec.node_port && !holds && find_older_claim(w)) {
        w->port = MYWEB_PORT_TAKEN;
        w->children[MYWEB_SERVICE].state = STW_CHILD_FAILED;
        if (stw_streq(live.owner_uid, w->owner.uid))
            w->children[MYWEB_SERVICE].live = live;
        return;
    }
    stw_child_ensure(w->run, &w->owner, &w->children[MYWEB_SERVICE]);
    read_port_refusal(w);
    /* The watch does not report our own changes. */
    if (w->children[MYWEB_SERVICE].state <= STW_CHILD_REPAIRED)
        wake_waiting(w->run->manager, live.node_port, w->children[MYWEB_SERVICE].live.node_port);
}

/* The ConfigMap is first: pods that start must find the page. */
static void ensure_children(struct stw_subject *subject)
{
    struct myweb *w = (struct myweb *)subject;
    myweb_hash_content(w);
    w->service_port = w->spec.node_port;
    stw_children_ensure(subject, MYWEB_CONFIGMAP);
    stw_children_ensure(subject, MYWEB_DEPLOYMENT);
    ensure_service(w);
    stw_children_ensure(subject, MYWEB_INGRESS);
    stw_pod_trouble_find(w->run, &w->trouble);
    if (stw_pod_trouble_is_new(&w->trouble, &w->object, MYWEB_PODS_CONDITION))
        stw_object_event(w->run, &w->object, true, w->trouble.reason, "Reconcile", "%s",
                         w->trouble.message);
}

static json_t *status_unchecked(struct stw_subject *subject, enum stw_unchecked why,
                                const char *findings)
{
    json_t *status = stw_status_unchecked(subject, why, findings);
    if (why == STW_UNCHECKED_INVALID)
        (void)json_object_set_new(status, "completed", json_false());
    return status;
}

/* --- registration */

static const struct stw_watch own_watch = {
    .resource = &stw_kind_myweb.resource,
    .project = stw_object_project,
    .index = index_port,
    .for_admission = true,
    .changed = myweb_changed,
};

static int64_t wanted_replicas(const void *subject)
{
    const struct myweb *w = subject;
    return w->spec.replicas;
}

static bool wants_ingress(const void *subject)
{
    const struct myweb *w = subject;
    return w->spec.ingress.host != NULL;
}

static const char *const outside_template[] = {"replicas", "nodePortNumber", "serviceType",
                                               "ingress", NULL};

#define CONTAINER "spec.template.spec.containers[web]"
static const struct stw_origin of_deployment[] = {
    {CONTAINER ".image", "spec.image"},
    {CONTAINER ".resources", "spec.resources"},
    {CONTAINER ".securityContext", "spec.securityContext"},
    {"spec.template.spec.imagePullSecrets", "spec.imagePullSecrets"},
    {0},
};
static const struct stw_origin of_service[] = {
    {"spec.ports[http].nodePort", "spec.nodePortNumber"},
    {"spec.ports[http].targetPort", "spec.containerPort"},
    {"spec.type", "spec.serviceType"},
    {0},
};
static const struct stw_origin of_ingress[] = {
    {"metadata.annotations", "spec.ingress.annotations"},
    {0},
};

static const struct stw_child_row children[] = {
    [MYWEB_CONFIGMAP] = {"ConfigMapSynced", &stw_watch_configmaps, myweb_configmap,
                         .not_applied = myweb_port_reasons},
    [MYWEB_DEPLOYMENT] = {MYWEB_PODS_CONDITION, &stw_watch_deployments, myweb_deployment,
                          .replicas = wanted_replicas, .not_applied = myweb_port_reasons,
                          .outside_template = outside_template, .origins = of_deployment},
    [MYWEB_SERVICE] = {"ServiceSynced", &stw_watch_services, myweb_service,
                       .not_applied = myweb_port_reasons, .origins = of_service},
    [MYWEB_INGRESS] = {"IngressSynced", &stw_watch_ingresses, myweb_ingress,
                       .wanted = wants_ingress, .origins = of_ingress},
    {0},
};

static const struct stw_watch *const watches[] = {&stw_watch_pod_troubles, NULL};
static const struct stw_rule rules[] = {
    {.resource = &stw_res_pod, .verbs = "list,watch"},
    {0},
};
static const char *const conditions[] = {MYWEB_PORT_CONDITION, NULL};
static const char *const numbers[] = {"availableReplicas", NULL};

const struct stw_controller stw_controller_myweb = {
    STW_CONTROLLER_OF("myweb", stw_kind_myweb),
    .own = &own_watch,
    .watches = watches,
    .rules = rules,
    .conditions = conditions,
    STW_RUN_STATE(struct myweb, spec),
    .children = children,
    .status_unchecked = status_unchecked,
    .ensure = ensure_children,
    .find = myweb_find,
    .aspect_count = 1, /* the port */
    .summarize = myweb_summarize,
    .report = myweb_report,
    .numbers = numbers,
};
