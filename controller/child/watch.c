/* SPDX-License-Identifier: Apache-2.0
 *
 * The projection of children into the caches.  Keys are short, since each custom object has three
 * children:
 *
 *     u  uid
 *     t  it is being deleted
 *     o  its controller: {k kind, n name (absent when it is the child's name), u uid}
 *     x  the reference to its controller is of a version that is not served
 *     a  it was adopted: `o` is from its annotation, not from its ownerReferences
 *     d  digest of the fields that the controller owns
 *     e  the part of it from the pod template of a Deployment
 *     p  node ports of a Service
 *     r  rollout of a Deployment
 *     s  labels by which a Deployment selects its pods, unless they are the usual ones; {}: others cannot
 *        use them
 *     h  conditions of an autoscaler
 *
 * Runs on the client's thread. */
#include "base/hex.h"
#include "controller/child.h"
#include "controller/child/child_priv.h"

#include <ctype.h>
#include <stdio.h>

#define OBJECT_MAX (4u << 20)

/* `reference` is absent for an adopted object: the annotation that names the kind is ours. */
static const struct stw_controller *find_controller(const struct stw_controller *const *all,
                                                    struct stw_json reference, const char *kind)
{
    bool adopted = !stw_json_there(reference);
    for (; *all; all++)
        if (adopted ? stw_streq((*all)->kind->kind, kind)
                    : stw_reference_is_of(reference, (*all)->kind->group, (*all)->kind->kind))
            return *all;
    return NULL;
}

static void add_raw_member(struct stw_buf *out, const char *key, struct stw_json value)
{
    size_t len;
    const char *raw = stw_json_raw(value, &len);
    if (len == 0)
        return;
    stw_buf_adds(out, ",\"");
    stw_buf_adds(out, key);
    stw_buf_adds(out, "\":");
    stw_buf_add(out, raw, len);
}

/* A text of another controller, cut to what is read back. */
static void add_text_member(struct stw_buf *out, const char *key, struct stw_json value)
{
    char text[sizeof(((struct stw_child_report *)NULL)->message)];
    if (!stw_json_there(value))
        return;
    stw_json_cut(value, text, sizeof(text));
    stw_buf_addf(out, ",\"%s\":", key);
    stw_buf_json_strz(out, text);
}

/* Writes everything except the closing brace; NULL when no kind of ours controls the object. */
static const struct stw_controller *add_ours(const struct stw_operator *op, struct stw_json object,
                                             struct stw_buf *out)
{
    char kind[64], name[254], uid[64], digest[STW_HASH_LEN], manager[STW_OWN_NAME_LEN];
    const struct stw_controller *c;
    struct stw_hash template;
    struct stw_json metadata = stw_json_get(object, "metadata");
    struct stw_json reference = stw_owner_find(object);
    bool adopted = !stw_json_there(reference);
    if ((adopted ? stw_adopted_by(op, object, kind, name, uid)
                 : stw_owner_controller(object, kind, name, uid)) != 0 ||
        !(c = find_controller(op->controllers, reference, kind)))
        return NULL;
    stw_field_manager(op, c, manager);
    stw_hash_format(stw_owned_live_parts(object, manager, c->all_data, &template), digest);
    stw_buf_adds(out, "{\"o\":{\"k\":\"");
    stw_buf_adds(out, kind);
    stw_buf_addc(out, '"');
    if (!stw_json_is(stw_json_get(metadata, "name"), name)) {
        stw_buf_adds(out, ",\"n\":");
        stw_buf_json_strz(out, name);
    }
    stw_buf_adds(out, ",\"u\":");
    stw_buf_json_strz(out, uid);
    stw_buf_adds(out, adopted ? "},\"a\":true,\"d\":\"" : "},\"d\":\"");
    stw_buf_adds(out, digest);
    stw_buf_addc(out, '"');
    if (stw_hash_is_set(template)) {
        stw_hash_format(template, digest);
        stw_buf_adds(out, ",\"e\":\"");
        stw_buf_adds(out, digest);
        stw_buf_addc(out, '"');
    }
    if (!adopted && !stw_reference_is_served(c->kind, reference))
        stw_buf_adds(out, ",\"x\":true");
    add_raw_member(out, "u", stw_json_get(metadata, "uid"));
    if (stw_json_there(stw_json_get(metadata, "deletionTimestamp")))
        stw_buf_adds(out, ",\"t\":true");
    return c;
}

void stw_child_project(const struct stw_operator *op, struct stw_json object, struct stw_buf *out)
{
    if (add_ours(op, object, out))
        stw_buf_addc(out, '}');
}

/* --- Deployments */

static struct stw_json find_condition(struct stw_json conditions, const char *type)
{
    struct stw_json key, condition;
    stw_json_foreach (conditions, key, condition)
        if (stw_json_is(stw_json_get(condition, "type"), type))
            return condition;
    return STW_JSON_NONE;
}

static int read_time(struct stw_json value, int64_t *ret_us)
{
    char text[STW_TIME_LEN];
    return stw_json_strcpy(value, text, sizeof(text)) == 0 ? stw_time_parse(text, ret_us) : -1;
}

/* "2006-01-02T15:04:05Z HASH", as refused.c writes it. */
static int read_retry(struct stw_json value, int64_t *ret_us, char ret_hash[static STW_HASH_LEN])
{
    char text[STW_TIME_LEN + STW_HASH_LEN];
    if (stw_json_strcpy(value, text, sizeof(text)) != 0)
        return -1;
    char *space = strchr(text, ' ');
    if (!space)
        return -1;
    *space = '\0';
    struct stw_hash hash = stw_hash_parse(space + 1);
    if (!stw_hash_is_set(hash) || stw_time_parse(text, ret_us) != 0)
        return -1;
    stw_hash_format(hash, ret_hash);
    return 0;
}

static void add_number(struct stw_buf *out, const char *key, struct stw_json value)
{
    int64_t n = 0;
    (void)stw_json_int(value, &n);
    stw_buf_adds(out, out->len > 0 && out->data[out->len - 1] == '{' ? "\"" : ",\"");
    stw_buf_adds(out, key);
    stw_buf_adds(out, "\":");
    stw_buf_addi(out, n);
}

static bool tells_why(struct stw_json condition)
{
    struct stw_json type = stw_json_get(condition, "type");
    struct stw_json status = stw_json_get(condition, "status");
    return (stw_json_is(type, "Progressing") && stw_json_is(status, "False")) ||
           (stw_json_is(type, "ReplicaFailure") && stw_json_is(status, "True"));
}

static void add_stuck(struct stw_json conditions, struct stw_buf *out)
{
    struct stw_json key, condition;
    stw_json_foreach (conditions, key, condition) {
        if (!tells_why(condition))
            continue;
        if (stw_json_is(stw_json_get(condition, "type"), "Progressing"))
            add_text_member(out, "why", stw_json_get(condition, "reason"));
        else
            stw_buf_adds(out, ",\"why\":\"ReplicaFailure\"");
        add_text_member(out, "msg", stw_json_get(condition, "message"));
        return;
    }
}

/* When its controller is to create the pods again is counted from the latest time that we asked for it. */
static void add_refusal(const struct stw_operator *op, struct stw_json object, struct stw_buf *out)
{
    char annotation[STW_OWN_NAME_LEN], hash[STW_HASH_LEN] = "";
    int64_t at = 1;
    struct stw_json failure =
        find_condition(stw_json_path(object, "status.conditions"), "ReplicaFailure");
    if (!stw_json_is(stw_json_get(failure, "status"), "True") ||
        !stw_json_is(stw_json_get(failure, "reason"), "FailedCreate"))
        return;
    stw_operator_text(op, STW_PODS_RETRIED, annotation);
    struct stw_json retry = stw_json_get(stw_json_path(object, "metadata.annotations"), annotation);
    if (read_retry(retry, &at, hash) != 0)
        (void)read_time(stw_json_get(failure, "lastTransitionTime"), &at);
    stw_buf_adds(out, ",\"f\":");
    stw_buf_addi(out, at);
    if (*hash)
        stw_buf_addf(out, ",\"q\":\"%s\"", hash);
}

/* The labels that a kind gives its pods. */
static bool is_usual_selector(struct stw_json selector, const struct stw_controller *c,
                              const char *owner)
{
    struct stw_json labels = stw_json_get(selector, "matchLabels");
    return stw_json_size(labels) == 2 &&
           stw_json_size(stw_json_get(selector, "matchExpressions")) == 0 &&
           stw_json_is(stw_json_get(labels, "app.kubernetes.io/name"), c->kind->singular) &&
           stw_json_is(stw_json_get(labels, "app.kubernetes.io/instance"), owner);
}

/* A Deployment of ours may have any selector: it was adopted once, even if its mark is gone. */
static void add_selector(const struct stw_operator *op, const struct stw_controller *c,
                         struct stw_json object, struct stw_buf *out)
{
    char name[254] = "";
    struct stw_json labels = stw_adopted_selector(object);
    bool marked = stw_adopted_by(op, object, NULL, NULL, NULL) == 0;
    (void)stw_json_strcpy(stw_json_path(object, "metadata.name"), name, sizeof(name));
    if (!marked && is_usual_selector(stw_json_path(object, "spec.selector"), c, name))
        return;
    if (stw_json_there(labels))
        add_raw_member(out, "s", labels);
    else if (stw_json_there(stw_json_path(object, "spec.selector")))
        stw_buf_adds(out, ",\"s\":{}");
}

static void project_deployment(const struct stw_operator *op, struct stw_json object,
                               struct stw_buf *out)
{
    struct stw_json status = stw_json_get(object, "status");
    const struct stw_controller *c = add_ours(op, object, out);
    int64_t replicas = 1;
    if (!c)
        return;
    stw_buf_adds(out, ",\"r\":{");
    add_number(out, "g", stw_json_path(object, "metadata.generation"));
    add_number(out, "o", stw_json_get(status, "observedGeneration"));
    add_number(out, "n", stw_json_get(status, "replicas"));
    add_number(out, "u", stw_json_get(status, "updatedReplicas"));
    add_number(out, "a", stw_json_get(status, "availableReplicas"));
    if (c->scales) {
        char manager[STW_OWN_NAME_LEN];
        stw_field_manager(op, c, manager);
        add_number(out, "s", stw_json_path(object, "spec.replicas"));
        add_number(out, "y", stw_json_get(status, "readyReplicas"));
        if (stw_owned_has(object, manager, "spec.replicas"))
            stw_buf_adds(out, ",\"m\":true");
    }
    if (stw_json_int(stw_json_path(object, "spec.replicas"), &replicas) == 0 && replicas == 0)
        stw_buf_adds(out, ",\"z\":true");
    add_stuck(stw_json_get(status, "conditions"), out);
    add_refusal(op, object, out);
    stw_buf_addc(out, '}');
    add_selector(op, c, object, out);
    stw_buf_addc(out, '}');
}

/* --- autoscalers */

/* The report that this condition makes; nothing if there is none. */
static void add_report(struct stw_json condition, struct stw_buf *out)
{
    struct stw_json status = stw_json_get(condition, "status");
    if (!stw_json_there(status))
        return;
    stw_buf_addf(out, ",\"h\":{\"up\":%s", stw_json_is(status, "True") ? "true" : "false");
    if (!stw_json_is(status, "True")) {
        add_text_member(out, "why", stw_json_get(condition, "reason"));
        add_text_member(out, "msg", stw_json_get(condition, "message"));
    }
    stw_buf_addc(out, '}');
}

/* autoscaling/v1 has its conditions as text in an annotation. */
static void project_autoscaler(const struct stw_operator *op, struct stw_json object,
                               struct stw_buf *out)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(64 * 1024);
    struct stw_json conditions = stw_json_path(object, "status.conditions");
    if (!add_ours(op, object, out))
        return;
    stw_json_str(stw_json_get(stw_json_path(object, "metadata.annotations"),
                              "autoscaling.alpha.kubernetes.io/conditions"),
                 &text);
    if (!stw_json_there(conditions) && text.len > 0 &&
        stw_json_scan(&doc, text.data, text.len, NULL) == 0)
        conditions = stw_json_root(&doc);
    add_report(find_condition(conditions, "ScalingActive"), out);
    stw_buf_addc(out, '}');
}

/* --- HTTPRoutes */

/* The first condition that is not true, else one that is. */
static struct stw_json find_worst(struct stw_json parents)
{
    static const char *const types[] = {"Accepted", "ResolvedRefs"};
    struct stw_json found = STW_JSON_NONE, key, parent;
    stw_json_foreach (parents, key, parent)
        for (size_t i = 0; i < STW_COUNT(types); i++) {
            struct stw_json one = find_condition(stw_json_get(parent, "conditions"), types[i]);
            if (stw_json_there(one))
                found = one;
            if (stw_json_there(one) && !stw_json_is(stw_json_get(one, "status"), "True"))
                return one;
        }
    return found;
}

static void project_route(const struct stw_operator *op, struct stw_json object,
                          struct stw_buf *out)
{
    if (!add_ours(op, object, out))
        return;
    add_report(find_worst(stw_json_path(object, "status.parents")), out);
    stw_buf_addc(out, '}');
}

/* --- Ingresses */

/* The report is that a controller has given it an address. */
static void project_ingress(const struct stw_operator *op, struct stw_json object,
                            struct stw_buf *out)
{
    if (!add_ours(op, object, out))
        return;
    if (stw_json_size(stw_json_path(object, "status.loadBalancer.ingress")) > 0)
        stw_buf_adds(out, ",\"h\":{\"up\":true}");
    stw_buf_addc(out, '}');
}

/* --- Services */

static unsigned add_ports(struct stw_json object, struct stw_buf *out)
{
    struct stw_json key, port;
    unsigned found = 0;
    stw_json_foreach (stw_json_path(object, "spec.ports"), key, port) {
        int64_t n = 0;
        if (stw_json_int(stw_json_get(port, "nodePort"), &n) != 0 || n == 0)
            continue;
        stw_buf_adds(out, found++ ? "," : "");
        stw_buf_addi(out, n);
    }
    return found;
}

static void project_service(const struct stw_operator *op, struct stw_json object,
                            struct stw_buf *out)
{
    stw_autobuf struct stw_buf ports = STW_BUF_INIT(64 * 1024);
    unsigned found = add_ports(object, &ports);
    bool ours = add_ours(op, object, out) != NULL;
    if (ours)
        stw_buf_adds(out, found ? ",\"p\":[" : "}");
    else if (found)
        stw_buf_adds(out, "{\"p\":[");
    if (found) {
        stw_buf_add(out, ports.data, ports.len);
        stw_buf_adds(out, "]}");
    }
}

static void index_ports(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    struct stw_json key, port;
    int64_t n;
    (void)ctx;
    stw_json_foreach (stw_json_get(projected, "p"), key, port)
        if (stw_json_int(port, &n) == 0)
            stw_buf_addf(out, "nodePort:%lld\n", (long long)n);
}

/* --- enqueueing after a change */

static void enqueue_owner(struct stw_manager *m, const char *key, const char *text)
{
    struct stw_child_live live;
    char ns[STW_KEY_LEN], name[STW_KEY_LEN], owner[STW_KEY_LEN];
    if (!text || stw_child_read(text, strlen(text), &live) != 0 || !*live.owner_kind)
        return;
    stw_key_split(key, ns, name);
    stw_key_make(ns, *live.owner_name ? live.owner_name : name, owner);
    stw_manager_enqueue(m, live.owner_kind, owner);
}

void stw_child_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                       const char *old_text, const char *new_text)
{
    enqueue_owner(m, key, old_text);
    enqueue_owner(m, key, new_text);
    if (!new_text)
        stw_manager_enqueue_namesakes(m, w, key);
}

static bool has_port(struct stw_json ports, int64_t wanted)
{
    struct stw_json key, port;
    int64_t n;
    stw_json_foreach (ports, key, port)
        if (stw_json_int(port, &n) == 0 && n == wanted)
            return true;
    return false;
}

/* Wakes the objects that wait for a node port that is now free. */
static void wake_waiting(struct stw_manager *m, const char *old_text, const char *new_text)
{
    stw_autojson struct stw_json_doc was = {0}, is = {0};
    struct stw_json key, port, now = STW_JSON_NONE;
    char text[24];
    int64_t n;
    if (!old_text || stw_json_scan(&was, old_text, strlen(old_text), NULL) != 0)
        return;
    if (new_text && stw_json_scan(&is, new_text, strlen(new_text), NULL) == 0)
        now = stw_json_get(stw_json_root(&is), "p");
    stw_json_foreach (stw_json_get(stw_json_root(&was), "p"), key, port) {
        if (stw_json_int(port, &n) != 0 || has_port(now, n))
            continue;
        stw_format(text, sizeof(text), "%lld", (long long)n);
        stw_manager_wake(m, "nodePort", text);
    }
}

static void service_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                            const char *old_text, const char *new_text)
{
    stw_child_changed(m, w, key, old_text, new_text);
    wake_waiting(m, old_text, new_text);
}

const struct stw_watch stw_watch_configmaps = {
    .resource = &stw_res_configmap,
    .managed = true,
    .project = stw_child_project,
    .changed = stw_child_changed,
};
const struct stw_watch stw_watch_deployments = {
    .resource = &stw_res_deployment,
    .managed = true,
    .project = project_deployment,
    .changed = stw_child_changed,
};
const struct stw_watch stw_watch_ingresses = {
    .resource = &stw_res_ingress,
    .managed = true,
    .project = project_ingress,
    .changed = stw_child_changed,
};
const struct stw_watch stw_watch_services = {
    .resource = &stw_res_service,
    .project = project_service,
    .index = index_ports,
    .for_admission = true,
    .reports_gone = true, /* another object may wait for its name */
    .changed = service_changed,
};

static const struct stw_resource *const autoscalers[] = {
    &stw_res_autoscaler_v2, &stw_res_autoscaler_v2beta2, &stw_res_autoscaler_v1, NULL};
const struct stw_watch stw_watch_autoscalers = {
    .resource = &stw_res_autoscaler_v2,
    .alternatives = autoscalers,
    .managed = true,
    .project = project_autoscaler,
    .changed = stw_child_changed,
};
static const struct stw_resource *const disruption_budgets[] = {
    &stw_res_disruption_budget_v1, &stw_res_disruption_budget_v1beta1, NULL};
const struct stw_watch stw_watch_disruption_budgets = {
    .resource = &stw_res_disruption_budget_v1,
    .alternatives = disruption_budgets,
    .managed = true,
    .project = stw_child_project,
    .changed = stw_child_changed,
};

const struct stw_watch stw_watch_pod_monitors = {
    .resource = &stw_res_pod_monitor,
    .managed = true,
    .optional = true,
    .project = stw_child_project,
    .changed = stw_child_changed,
};
const struct stw_watch stw_watch_http_routes = {
    .resource = &stw_res_http_route,
    .managed = true,
    .optional = true,
    .project = project_route,
    .changed = stw_child_changed,
};

/* --- decoding */

static void read_report(struct stw_json h, struct stw_child_report *to)
{
    to->reported = stw_json_there(h);
    to->active = stw_json_bool(stw_json_get(h, "up"), false);
    (void)stw_json_strcpy(stw_json_get(h, "why"), to->reason, sizeof(to->reason));
    stw_json_cut(stw_json_get(h, "msg"), to->message, sizeof(to->message));
}

static void read_rollout(struct stw_json r, struct stw_rollout *to)
{
    char hash[STW_HASH_LEN];
    (void)stw_json_int(stw_json_get(r, "g"), &to->generation);
    (void)stw_json_int(stw_json_get(r, "o"), &to->observed_generation);
    (void)stw_json_int(stw_json_get(r, "n"), &to->replicas);
    (void)stw_json_int(stw_json_get(r, "u"), &to->updated);
    (void)stw_json_int(stw_json_get(r, "a"), &to->available);
    (void)stw_json_int(stw_json_get(r, "s"), &to->wanted);
    (void)stw_json_int(stw_json_get(r, "y"), &to->ready);
    to->to_zero = stw_json_bool(stw_json_get(r, "z"), false);
    to->scaled_by_us = stw_json_bool(stw_json_get(r, "m"), false);
    (void)stw_json_strcpy(stw_json_get(r, "why"), to->stuck_reason, sizeof(to->stuck_reason));
    stw_json_cut(stw_json_get(r, "msg"), to->stuck_message, sizeof(to->stuck_message));
    (void)stw_json_int(stw_json_get(r, "f"), &to->refused_us);
    if (stw_json_strcpy(stw_json_get(r, "q"), hash, sizeof(hash)) == 0)
        to->retried_for = stw_hash_parse(hash);
}

int stw_child_read(const char *text, size_t len, struct stw_child_live *ret)
{
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    char digest[STW_HASH_LEN] = "";
    *ret = (struct stw_child_live){0};
    if (stw_json_scan(&doc, text, len, NULL) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc), o = stw_json_get(root, "o");
    (void)stw_json_strcpy(stw_json_get(root, "u"), ret->uid, sizeof(ret->uid));
    (void)stw_json_strcpy(stw_json_get(o, "k"), ret->owner_kind, sizeof(ret->owner_kind));
    (void)stw_json_strcpy(stw_json_get(o, "n"), ret->owner_name, sizeof(ret->owner_name));
    (void)stw_json_strcpy(stw_json_get(o, "u"), ret->owner_uid, sizeof(ret->owner_uid));
    if (stw_json_strcpy(stw_json_get(root, "d"), digest, sizeof(digest)) == 0)
        ret->digest = stw_hash_parse(digest);
    if (stw_json_strcpy(stw_json_get(root, "e"), digest, sizeof(digest)) == 0)
        ret->template = stw_hash_parse(digest);
    ret->terminating = stw_json_bool(stw_json_get(root, "t"), false);
    ret->unserved = stw_json_bool(stw_json_get(root, "x"), false);
    ret->adopted = stw_json_bool(stw_json_get(root, "a"), false);
    (void)stw_json_int(stw_json_at(stw_json_get(root, "p"), 0), &ret->node_port);
    read_rollout(stw_json_get(root, "r"), &ret->rollout);
    read_report(stw_json_get(root, "h"), &ret->report);
    return 0;
}

int stw_child_cached(struct stw_run *run, const struct stw_watch *w, const char *key,
                     struct stw_child_live *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(OBJECT_MAX);
    *ret = (struct stw_child_live){0};
    char rv[STW_RV_LEN] = "";
    if (stw_informer_get(stw_run_cache(run, w), key, &text, rv) != 0)
        return -1;
    int rc = stw_child_read(stw_buf_str(&text), text.len, ret);
    memcpy(ret->resource_version, rv, sizeof(rv));
    return rc;
}
