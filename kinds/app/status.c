/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the status of an App.  No I/O. */
#include "kinds/app/status.h"

#include "base/util.h"
#include "controller/status.h"
#include "controller/template_status.h"
#include "kinds/app/replicas.h"
#include "kinds/app/run_priv.h"

#include <assert.h>
#include <stdio.h>

#define PORT_AGAIN_MS 60000
#define SELECTOR_MAX 8192

#define REASON_SUCCEEDED "Succeeded"
#define REASON_NO_REPLICAS "NoReplicas"
#define REASON_TOO_FEW "MinimumReplicasUnavailable"
#define REASON_ROLLING "NewReplicaSet"
#define REASON_COMPLETE "NewReplicaSetAvailable"
#define REASON_SECRET STW_POD_REASON_SECRET
#define REASON_ENDPOINTS "Endpoints"
#define REASON_NO_ENDPOINTS "NoEndpoints"
#define REASON_PORT "PortConflict"
#define REASON_SCALING "ScalingActive"
#define REASON_NO_METRICS "MetricsUnavailable"
#define REASON_SCALING_DISABLED "ScalingDisabled"
#define REASON_NOT_ACCEPTED "RouteNotAccepted"
#define REASON_NO_ADDRESS "NoAddress"
#define REASON_HEALTHY "Healthy"

enum {
    FIND_AVAILABLE,
    FIND_PROGRESS,
    FIND_CONFIG,
    FIND_SERVICE,
    FIND_SCALING,
    FIND_DEGRADED,
    FIND_INGRESS,
    FIND_ROUTE,
    FIND_MONITOR,
    FIND_BUDGET,
    ASPECTS
};

/* The condition of each aspect, and the child that it describes. */
static const struct {
    const char *type;
    int child;
} aspects[] = {
    [FIND_AVAILABLE] = {"Available", APP_DEPLOYMENT},
    [FIND_PROGRESS] = {"Progressing", APP_DEPLOYMENT},
    [FIND_CONFIG] = {"ConfigSynced", APP_CONFIGMAP},
    [FIND_SERVICE] = {"ServiceReady", APP_SERVICE},
    [FIND_SCALING] = {"AutoscalingActive", APP_AUTOSCALER},
    [FIND_DEGRADED] = {"Degraded", -1},
    [FIND_INGRESS] = {"IngressSynced", APP_INGRESS},
    [FIND_ROUTE] = {"RouteSynced", APP_ROUTE},
    [FIND_MONITOR] = {"MonitorSynced", APP_MONITOR},
    [FIND_BUDGET] = {NULL, APP_BUDGET},
};
static_assert(STW_COUNT(aspects) == ASPECTS, "one row for each aspect");

static void set_aspect(struct stw_aspect *a, enum stw_level level, enum stw_truth truth,
                       const char *reason)
{
    a->level = level;
    a->truth = truth;
    a->reason = reason;
}

static bool has_trouble(const struct app *a)
{
    return a->trouble.found && !a->trouble.passing;
}

/* --- Deployment */

static void find_available(const struct app *a, struct stw_aspect *f)
{
    const struct stw_rollout *r = &a->children[APP_DEPLOYMENT].live.rollout;
    int64_t wanted = app_wanted(a), least = wanted - app_max_unavailable(&a->spec, wanted);
    bool enough = wanted > 0 && r->available >= STW_MAX(least, 1);
    set_aspect(f, STW_LEVEL_FINE, enough ? STW_TRUE : STW_FALSE,
               enough        ? STW_REASON_AVAILABLE
               : wanted == 0 ? REASON_NO_REPLICAS
                             : REASON_TOO_FEW);
    if (wanted == 0)
        STW_ASPECT_SAY(f, "scaled to zero");
    else
        STW_ASPECT_SAY(f, "%lld of %lld replicas are available", (long long)r->available,
                       (long long)wanted);
}

/* The condition is True while a rollout is in progress.  The message has what the rollout waits
 * for, followed by the pods' problem. */
static void find_progress(const struct app *a, struct stw_aspect *f)
{
    struct stw_rollout rollout = stw_status_rollout(&a->object, &a->children[APP_DEPLOYMENT]);
    stw_aspect_rollout(f, &rollout, app_wanted(a));
    f->truth = f->level == STW_LEVEL_PROGRESSING ? STW_TRUE : STW_FALSE;
    if (f->level == STW_LEVEL_FINE)
        f->reason = REASON_COMPLETE;
    else if (f->level == STW_LEVEL_PROGRESSING)
        f->reason = REASON_ROLLING;
    else if (strstr(f->message, "exceeded quota"))
        f->reason = STW_REASON_QUOTA;
    if (f->level != STW_LEVEL_FINE && a->trouble.found)
        stw_aspect_append(f, a->trouble.message);
}

/* The Deployment could not be written: its rollout is not the one of this generation. */
static void find_unknown_progress(const struct stw_aspect *available, struct stw_aspect *f)
{
    *f = *available;
    f->level = STW_LEVEL_FINE;
    f->truth = STW_UNKNOWN;
}

static void find_degraded(const struct app *a, const struct stw_aspect *progress,
                          struct stw_aspect *f)
{
    set_aspect(f, STW_LEVEL_FINE, STW_FALSE, REASON_HEALTHY);
    STW_ASPECT_SAY(f, "no pod has a problem");
    if (stw_streq(progress->reason, STW_REASON_QUOTA)) {
        set_aspect(f, STW_LEVEL_FINE, STW_TRUE, STW_REASON_QUOTA);
        STW_ASPECT_SAY(f, "%s", progress->message);
    } else if (has_trouble(a)) {
        set_aspect(f, STW_LEVEL_FINE, STW_TRUE, a->trouble.reason);
        STW_ASPECT_SAY(f, "%s", a->trouble.message);
    }
}

/* --- other children */

static void find_config(const struct app *a, struct stw_aspect *f)
{
    if (f->level != STW_LEVEL_FINE || !a->trouble.found ||
        !stw_streq(a->trouble.reason, REASON_SECRET))
        return;
    set_aspect(f, STW_LEVEL_PROGRESSING, STW_FALSE, REASON_SECRET);
    STW_ASPECT_SAY(f, "%s", a->trouble.message);
}

/* The API server's messages for a node port that is not available. */
static bool lacks_port(const struct stw_child *c)
{
    return c->state == STW_CHILD_FAILED && (strstr(c->err.text, "port is already allocated") ||
                                            strstr(c->err.text, "failed to allocate a nodePort"));
}

static void find_service(const struct app *a, struct stw_aspect *f)
{
    const struct stw_rollout *r = &a->children[APP_DEPLOYMENT].live.rollout;
    if (lacks_port(&a->children[APP_SERVICE])) {
        set_aspect(f, STW_LEVEL_WAITING, STW_FALSE, REASON_PORT);
        f->again_ms = PORT_AGAIN_MS;
    }
    if (f->level != STW_LEVEL_FINE)
        return;
    if (a->children[APP_DEPLOYMENT].state > STW_CHILD_REPAIRED) {
        set_aspect(f, STW_LEVEL_FINE, STW_UNKNOWN, STW_REASON_PROGRESSING);
        STW_ASPECT_SAY(
            f,
            "Deployment \"%s\" is not as this App wants it: whether Service \"%s\" selects "
            "its pods is not known",
            a->owner.name, a->owner.name);
        return;
    }
    bool any = r->ready > 0;
    set_aspect(f, STW_LEVEL_FINE, any ? STW_TRUE : STW_FALSE,
               any ? REASON_ENDPOINTS : REASON_NO_ENDPOINTS);
    if (any)
        STW_ASPECT_SAY(f, "Service \"%s\" has ready pods", a->owner.name);
    else
        STW_ASPECT_SAY(f, "no pod of Service \"%s\" is ready", a->owner.name);
}

/* The App also works in a cluster without metrics, so that is not an error. */
static void find_scaling(const struct app *a, struct stw_aspect *f)
{
    const struct stw_child_report *s = &a->children[APP_AUTOSCALER].live.report;
    bool disabled = stw_streq(s->reason, REASON_SCALING_DISABLED);
    if (f->level != STW_LEVEL_FINE)
        return;
    if (*a->foreign) {
        set_aspect(f, STW_LEVEL_FINE, STW_TRUE, APP_REASON_FOREIGN);
        STW_ASPECT_SAY(f,
                       "HorizontalPodAutoscaler \"%s\", which is not of this App, decides how many "
                       "pods there are; replicas is only the start value",
                       a->foreign);
        return;
    }
    set_aspect(f, STW_LEVEL_FINE, STW_UNKNOWN, STW_REASON_PROGRESSING);
    STW_ASPECT_SAY(f, "HorizontalPodAutoscaler \"%s\" has not looked at the pods yet",
                   a->owner.name);
    if (!s->reported)
        return;
    set_aspect(f, STW_LEVEL_FINE, s->active ? STW_TRUE : STW_FALSE,
               s->active  ? REASON_SCALING
               : disabled ? REASON_SCALING_DISABLED
                          : REASON_NO_METRICS);
    if (s->active)
        STW_ASPECT_SAY(f, "HorizontalPodAutoscaler \"%s\" decides how many pods there are",
                       a->owner.name);
    else
        STW_ASPECT_SAY(f, "%s: %s", s->reason, s->message);
}

/* Without a right on IngressClasses, all that shows that a class has a controller is the address.
 * Some controllers give none, so that this is not an error. */
static void find_ingress(const struct app *a, struct stw_aspect *f)
{
    const struct stw_ingress *i = &a->spec.ingress;
    if (f->level != STW_LEVEL_FINE || !i->host || a->children[APP_INGRESS].live.report.reported)
        return;
    f->reason = REASON_NO_ADDRESS;
    if (i->class_name)
        STW_ASPECT_SAY(f,
                       "no controller has given Ingress \"%s\" an address; check that the "
                       "IngressClass \"%s\" exists and has a controller",
                       a->owner.name, i->class_name);
    else
        STW_ASPECT_SAY(f,
                       "no controller has given Ingress \"%s\" an address; check that the cluster "
                       "has a default IngressClass",
                       a->owner.name);
}

/* What its Gateways say about the route. */
static void find_route(const struct app *a, struct stw_aspect *f)
{
    const struct stw_child_report *r = &a->children[APP_ROUTE].live.report;
    if (f->level != STW_LEVEL_FINE || !a->spec.route.gateway)
        return;
    if (!r->reported) {
        set_aspect(f, STW_LEVEL_FINE, STW_UNKNOWN, STW_REASON_PROGRESSING);
        STW_ASPECT_SAY(f, "no Gateway has accepted HTTPRoute \"%s\" yet", a->owner.name);
    } else if (!r->active) {
        set_aspect(f, STW_LEVEL_FINE, STW_FALSE, REASON_NOT_ACCEPTED);
        STW_ASPECT_SAY(f, "%s: %s", r->reason, r->message);
    } else {
        STW_ASPECT_SAY(f, "HTTPRoute \"%s\" is accepted", a->owner.name);
    }
}

/* The App also works in a cluster without Prometheus, or when the rights of an older version are
 * still in force, so that is not an error. */
static void find_monitor(const struct app *a, struct stw_aspect *f)
{
    enum stw_child_state state = a->children[APP_MONITOR].state;
    if (state == STW_CHILD_NOT_SERVED || state == STW_CHILD_NOT_ALLOWED)
        f->level = STW_LEVEL_FINE;
}

static void find_all(const struct app *a, struct stw_aspect *all)
{
    for (size_t i = 0; i < ASPECTS; i++)
        if (aspects[i].child >= 0)
            stw_aspect_child(&all[i], &a->children[aspects[i].child]);
    if (all[FIND_AVAILABLE].level == STW_LEVEL_FINE) {
        find_available(a, &all[FIND_AVAILABLE]);
        find_progress(a, &all[FIND_PROGRESS]);
    } else {
        find_unknown_progress(&all[FIND_AVAILABLE], &all[FIND_PROGRESS]);
    }
    find_config(a, &all[FIND_CONFIG]);
    find_service(a, &all[FIND_SERVICE]);
    find_scaling(a, &all[FIND_SCALING]);
    find_degraded(a, &all[FIND_PROGRESS], &all[FIND_DEGRADED]);
    find_ingress(a, &all[FIND_INGRESS]);
    find_route(a, &all[FIND_ROUTE]);
    find_monitor(a, &all[FIND_MONITOR]);
    for (size_t i = 0; i < ASPECTS; i++)
        all[i].type = aspects[i].type;
    if (!app_is_scaled(a) && all[FIND_SCALING].level == STW_LEVEL_FINE)
        all[FIND_SCALING].type = NULL;
    if (!a->spec.ingress.host && all[FIND_INGRESS].level == STW_LEVEL_FINE)
        all[FIND_INGRESS].type = NULL;
    if (!a->spec.route.gateway && all[FIND_ROUTE].level == STW_LEVEL_FINE)
        all[FIND_ROUTE].type = NULL;
    if (!a->spec.metrics.enabled && all[FIND_MONITOR].level == STW_LEVEL_FINE)
        all[FIND_MONITOR].type = NULL;
}

/* --- status */

/* While a rollout is in progress, Ready has the reason of the pods' problem, if there is one. */
static void set_verdict(const struct app *a, const struct stw_aspect *all, struct stw_verdict *v)
{
    stw_verdict_of(all, ASPECTS, v);
    if (v->level == STW_LEVEL_FINE) {
        v->reason = REASON_SUCCEEDED;
        v->again_ms = *a->foreign ? STW_FOREIGN_AGAIN_MS : 0;
        stw_format(v->message, sizeof(v->message), "%s", all[FIND_AVAILABLE].message);
    } else if (v->level == STW_LEVEL_PROGRESSING) {
        v->reason = has_trouble(a) ? a->trouble.reason : STW_REASON_PROGRESSING;
        stw_format(v->message, sizeof(v->message), "%s", all[FIND_PROGRESS].message);
    }
}

static void set_wake(const struct app *a, struct stw_verdict *v)
{
    uint64_t wait = app_inputs_wait_ms(&a->inputs, stw_wall_us(a->run->clock) / 1000000);
    if (wait == 0 && a->children[APP_DEPLOYMENT].outdated && app_inputs_has_windows(&a->spec))
        wait = APP_INPUTS_RECHECK_S * 1000;
    if (wait > 0 && (v->again_ms == 0 || wait < v->again_ms))
        v->again_ms = wait;
}

static const char *phase_of(const struct app *a, const struct stw_verdict *v)
{
    const struct stw_rollout *r = &a->children[APP_DEPLOYMENT].live.rollout;
    if (v->level == STW_LEVEL_FINE)
        return has_trouble(a) ? "Degraded" : "Running";
    if (v->level == STW_LEVEL_STALLED)
        return r->available > 0 ? "Degraded" : "Failed";
    if (r->observed_generation == 0)
        return "Pending";
    return has_trouble(a) ? "Degraded" : "Progressing";
}

static void set_number(json_t *status, const char *key, int64_t n)
{
    (void)json_object_set_new(status, key, json_integer((json_int_t)n));
}

static void add_numbers(const struct app *a, json_t *status)
{
    const struct stw_rollout *r = &a->children[APP_DEPLOYMENT].live.rollout;
    set_number(status, "desiredReplicas", app_wanted(a));
    set_number(status, "replicas", r->replicas);
    set_number(status, "readyReplicas", r->ready);
    set_number(status, "availableReplicas", r->available);
    set_number(status, "updatedReplicas", r->observed_generation >= r->generation ? r->updated : 0);
    if (app_is_scaled(a))
        set_number(status, "startReplicas", a->spec.replicas);
}

/* For the scale subresource. */
static json_t *build_selector_text(const struct app *a)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(SELECTOR_MAX);
    const char *key;
    json_t *value;
    if (!a->owner.selector)
        stw_buf_addf(&text, "app.kubernetes.io/instance=%s,app.kubernetes.io/name=" APP_NAME,
                     a->owner.name);
    json_object_foreach ((json_t *)(uintptr_t)a->owner.selector, key, value)
        stw_buf_addf(&text, "%s%s=%s", text.len > 0 ? "," : "", key, json_string_value(value));
    return json_string(stw_buf_str(&text));
}

static void add_texts(const struct app *a, json_t *status)
{
    char text[STW_KEY_LEN + 128];
    (void)json_object_set_new(status, "selector", build_selector_text(a));
    (void)json_object_set_new(status, "configHash", json_string(a->config_hash));
    (void)json_object_set_new(status, "securityProfile", json_string(app_profile(a)));
    stw_format(text, sizeof(text), "http://%s.%s.svc:%lld", a->owner.name, a->owner.ns,
               (long long)a->spec.service.port);
    (void)json_object_set_new(status, "url", json_string(text));
    if (!a->spec.ingress.host)
        return;
    stw_autobuf struct stw_buf url = STW_BUF_INIT(2048);
    stw_buf_addf(&url, "http%s://%s%s", a->spec.ingress.tls_secret ? "s" : "", a->spec.ingress.host,
                 a->spec.ingress.path);
    (void)json_object_set_new(status, "ingressUrl", json_string(stw_buf_str(&url)));
}

static bool is_text(const json_t *object, const char *key, const char *want)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && stw_streq(text, want);
}

/* Records the last configuration that was healthy; with zero replicas nothing has run. */
static void add_last_good(const struct app *a, json_t *status, const char *now)
{
    const json_t *old = json_object_get(a->object.status, "lastGood");
    if (app_wanted(a) == 0 ||
        (is_text(old, "image", a->spec.image) && is_text(old, "configHash", a->config_hash)))
        return;
    (void)json_object_set_new(status, "lastGood",
                              json_pack("{s:s,s:s,s:s}", "image", a->spec.image, "configHash",
                                        a->config_hash, "time", now));
}

void app_judge(struct app *a, struct stw_verdict *v, json_t **ret_status)
{
    static const char *const keep[] = {"repairs", "lastRepair", "lastGood", NULL};
    struct stw_aspect *all = calloc(ASPECTS, sizeof(*all));
    struct stw_status s;
    *ret_status = NULL;
    if (!all)
        return;
    stw_status_begin(&s, a->run, &a->object, keep);
    find_all(a, all);
    set_verdict(a, all, v);
    stw_verdict_conditions(v, &s.conditions);
    stw_aspect_conditions(all, ASPECTS, &s.conditions);
    free(all);
    stw_status_add_templates(&s, a->run, a->children, APP_CHILDREN);
    stw_status_add_repairs(&s, a->children, APP_CHILDREN);
    (void)json_object_set_new(s.tree, "phase", json_string(phase_of(a, v)));
    add_numbers(a, s.tree);
    add_texts(a, s.tree);
    app_inputs_write(&a->inputs, s.tree);
    set_wake(a, v);
    if (v->level == STW_LEVEL_FINE)
        add_last_good(a, s.tree, s.now);
    else if (v->level < STW_LEVEL_PROGRESSING || has_trouble(a))
        (void)json_object_set_new(s.tree, "lastError", json_string(v->message));
    *ret_status = stw_status_end(&s);
}

json_t *app_status_phase(json_t *status, const char *phase)
{
    (void)json_object_set_new(status, "phase", json_string(phase));
    return status;
}

const char *app_profile(const struct app *a)
{
    return a->restricted ? APP_RESTRICTED : APP_BASELINE;
}

/* The children also depend on what the namespace enforces, and an older steward built them
 * otherwise. */
bool app_was_applied(const struct app *a, int child)
{
    static const char *const not_applied[] = {REASON_PORT, STW_REASON_NOT_INSTALLED, NULL};
    if (!is_text(a->object.status, "securityProfile", app_profile(a)) ||
        (child == APP_DEPLOYMENT && a->inputs.restarting))
        return false;
    for (size_t i = 0; i < ASPECTS; i++)
        if (aspects[i].child == child)
            return stw_status_was_applied(&a->object, aspects[i].type ? aspects[i].type : STW_READY,
                                          not_applied);
    return false;
}
