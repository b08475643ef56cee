/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/app/reconcile.h"

#include "base/util.h"
#include "controller/outcome.h"
#include "controller/secret_watch.h"
#include "controller/status.h"
#include "controller/template_status.h"
#include "kinds/app/children.h"
#include "kinds/app/deployment.h"
#include "kinds/app/run_priv.h"
#include "kinds/app/scale.h"
#include "kinds/app/status.h"
#include "kinds/common/pod_security.h"
#include "kinds/common/product.h"
#include "schema/zones.h"

#include <assert.h>
#include <stdio.h>

#define FINDINGS_MAX (64 * 1024)

/* --- children */

static const struct stw_watch *const watch_of[] = {
    [APP_CONFIGMAP] = &stw_watch_configmaps,   [APP_DEPLOYMENT] = &stw_watch_deployments,
    [APP_SERVICE] = &stw_watch_services,       [APP_BUDGET] = &stw_watch_disruption_budgets,
    [APP_AUTOSCALER] = &stw_watch_autoscalers, [APP_INGRESS] = &stw_watch_ingresses,
    [APP_ROUTE] = &stw_watch_http_routes,      [APP_MONITOR] = &stw_watch_pod_monitors,
};
static_assert(STW_COUNT(watch_of) == APP_CHILDREN, "one watch for each child");

/* Of what the pod template is made from, besides the version of steward. */
static struct stw_hash hash_template_inputs(const struct app *a)
{
    static const char *const others[] = {"replicas", "autoscaling",     "service",
                                         "ingress",  "httpRoute",       "pdb",
                                         "strategy", "restartOnChange", NULL};
    char more[STW_HASH_LEN + 32];
    stw_format(more, sizeof(more), "%s %s", app_profile(a), a->inputs.applied);
    return stw_template_inputs(stw_json_get(a->object.root, "spec"), others, more);
}

/* --- from which fields the children come */

#define TEMPLATE "spec.template"
#define CONTAINER TEMPLATE ".spec.containers[" APP_NAME "]"

static const struct stw_origin of_configmap[] = {{"data", "spec.config.environment"}, {0}};
static const struct stw_origin of_deployment[] = {
    {CONTAINER ".image", "spec.image"},
    {CONTAINER ".resources", "spec.resources"},
    {CONTAINER ".securityContext", "spec.securityContext"},
    {CONTAINER ".env", "spec.env"},
    {TEMPLATE ".spec", "spec"}, /* affinity, tolerations and others have the same names */
    {TEMPLATE, "spec.podTemplate"},
    {"spec.strategy.rollingUpdate", "spec.strategy"},
    {"spec.strategy", "spec.strategy"}, /* what steward does not know has the same name */
    {"spec.progressDeadlineSeconds", "spec.strategy.progressDeadlineSeconds"},
    {"spec.minReadySeconds", "spec.strategy.minReadySeconds"},
    {"spec.revisionHistoryLimit", "spec.strategy.revisionHistoryLimit"},
    {0},
};
static const struct stw_origin of_service[] = {
    {"metadata.annotations", "spec.service.annotations"},
    {"spec.ports[http].targetPort", "spec.port"},
    {"spec.ports[http].port", "spec.service.port"},
    {"spec.type", "spec.service.type"},
    {0},
};
static const struct stw_origin of_ingress[] = {
    {"metadata.annotations", "spec.ingress.annotations"},
    {0},
};
static const struct stw_origin of_monitor[] = {{"metadata.labels", "spec.metrics.labels"}, {0}};
static const struct stw_origin of_autoscaler[] = {{"spec", "spec.autoscaling"}, {0}};

static const struct stw_origin *const origins[APP_CHILDREN] = {
    [APP_CONFIGMAP] = of_configmap, [APP_DEPLOYMENT] = of_deployment,
    [APP_SERVICE] = of_service,     [APP_INGRESS] = of_ingress,
    [APP_MONITOR] = of_monitor,     [APP_AUTOSCALER] = of_autoscaler,
};

static void begin_children(struct app *a)
{
    for (int i = 0; i < APP_CHILDREN; i++) {
        a->children[i] =
            (struct stw_child){.watch = watch_of[i],
                               .origins = origins[i],
                               .name = i == APP_CONFIGMAP ? a->config_name : a->owner.name,
                               .applied_before = app_was_applied(a, i)};
        stw_child_know_template(&a->children[i], a->run, &a->object);
        if (a->in_window)
            stw_child_consent(&a->children[i]);
    }
    a->children[APP_DEPLOYMENT].template.inputs_now = hash_template_inputs(a);
}

/* The API version that is watched. */
static const struct stw_resource *version_of(struct app *a, int child)
{
    return stw_informer_resource(stw_run_cache(a->run, watch_of[child]));
}

/* One that was there before the App stays with a single pod, whose eviction it allows. */
static bool has_adopted_budget(const struct app *a)
{
    struct stw_child_live live;
    return a->spec.pdb.enabled &&
           stw_child_cached(a->run, watch_of[APP_BUDGET], a->run->key, &live) == 0 &&
           live.adopted && stw_streq(live.owner_uid, a->owner.uid);
}

static bool is_wanted(const struct app *a, int child)
{
    switch (child) {
    case APP_INGRESS:
        return a->spec.ingress.host;
    case APP_ROUTE:
        return a->spec.route.gateway;
    case APP_MONITOR:
        return a->spec.metrics.enabled;
    case APP_BUDGET:
        return app_wants_budget(&a->spec) || has_adopted_budget(a);
    case APP_AUTOSCALER:
        return a->spec.autoscaling.enabled;
    default:
        return true;
    }
}

static json_t *build_child(struct app *a, int child)
{
    switch (child) {
    case APP_CONFIGMAP:
        return app_configmap(a);
    case APP_DEPLOYMENT:
        return app_deployment(a);
    case APP_SERVICE:
        return app_service(a);
    case APP_INGRESS:
        return app_ingress(a);
    case APP_ROUTE:
        return app_route(a);
    case APP_MONITOR:
        return app_monitor(a);
    case APP_BUDGET:
        return app_budget(a, version_of(a, APP_BUDGET), a->minor);
    default:
        return app_autoscaler(a, version_of(a, APP_AUTOSCALER));
    }
}

/* NULL: a value of the spec cannot be read, or memory ran out. */
static json_t *build_whole_child(struct app *a, int child)
{
    stw_tree_take_missing(NULL);
    (void)stw_tree_whole(NULL);
    return stw_tree_whole(build_child(a, child));
}

/* Without a manifest it cannot be asked about; then nothing is adopted. */
static void refuse_adoption(struct app *a, int culprit)
{
    for (int i = 0; i < APP_CHILDREN; i++) {
        a->children[i].adoption.answer = STW_ADOPTION_REFUSED;
        (void)stw_fail(&a->children[i].err, STW_ERR_INTERNAL,
                       "nothing is adopted, because the manifest of %s \"%s\" cannot be made",
                       watch_of[culprit]->resource->kind, a->children[culprit].name);
    }
}

/* Before anything is written. */
static void check_adoption(struct app *a)
{
    json_t *built[APP_CHILDREN] = {0};
    if (!a->owner.adopt)
        return;
    for (int i = 0; i < APP_CHILDREN; i++)
        a->children[i].desired = built[i] = is_wanted(a, i) ? build_whole_child(a, i) : NULL;
    stw_children_check_adoption(a->run, &a->owner, a->children, APP_CHILDREN);
    for (int i = 0; i < APP_CHILDREN; i++) {
        if (is_wanted(a, i) && !built[i])
            refuse_adoption(a, i);
        a->children[i].desired = NULL;
        json_decref(built[i]);
    }
    if (a->children[APP_DEPLOYMENT].adoption.answer == STW_ADOPTION_REFUSED)
        a->owner.selector = NULL; /* it stays another one's */
}

static void ensure_app_child(struct app *a, int child)
{
    struct stw_child *c = &a->children[child];
    if (!is_wanted(a, child)) {
        stw_child_remove(a->run, &a->owner, c);
        return;
    }
    c->desired = a->desired[child] = build_whole_child(a, child);
    stw_child_ensure(a->run, &a->owner, c);
}

/* When autoscaling ends, the autoscaler is deleted before the Deployment gets its replicas back;
 * when it starts, it is created after the Deployment has given them up.  The ConfigMap comes before
 * the Deployment: pods that start must find it.  False: the run is over. */
static bool ensure_children(struct app *a, struct stw_result *result)
{
    static const int order[] = {APP_SERVICE, APP_INGRESS, APP_ROUTE, APP_MONITOR, APP_BUDGET};
    bool scaling = a->spec.autoscaling.enabled;
    begin_children(a);
    check_adoption(a);
    if (!scaling)
        ensure_app_child(a, APP_AUTOSCALER);
    ensure_app_child(a, APP_CONFIGMAP);
    if (!app_hand_over(a, result))
        return false;
    ensure_app_child(a, APP_DEPLOYMENT);
    for (size_t i = 0; i < STW_COUNT(order); i++)
        ensure_app_child(a, order[i]);
    if (scaling)
        ensure_app_child(a, APP_AUTOSCALER);
    return true;
}

static void forget_children(struct stw_run *run)
{
    char config[STW_KEY_LEN];
    stw_format(config, sizeof(config), "%.*s-config", STW_KEY_LEN - 16, run->key);
    for (int i = 0; i < APP_CHILDREN; i++)
        stw_child_forget(run, watch_of[i], i == APP_CONFIGMAP ? config : run->key);
}

/* --- Secrets and ConfigMaps that the pods read */

/* The version of the object; false: it does not exist, and no pod starts without it. */
static bool add_version(struct app *a, const struct stw_input *input, struct stw_buf *out)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(256);
    const struct stw_watch *watch =
        stw_input_is_secret(input) ? &stw_watch_secrets : &stw_watch_configmap_versions;
    char key[STW_KEY_LEN];
    stw_key_make(a->run->ns, stw_input_name(input), key);
    bool there = stw_informer_get(stw_run_cache(a->run, watch), key, &text, NULL) == 0;
    stw_buf_addf(out, "%s %s\n", input->name, there ? stw_buf_str(&text) : "-");
    return there || !input->required;
}

/* The ConfigMap of the App itself is not compared: the template has the hash of its contents. */
static bool is_own_config(const struct app *a, const struct stw_input *input)
{
    return !stw_input_is_secret(input) && stw_streq(stw_input_name(input), a->config_name);
}

static void hash_text(const struct stw_buf *text, char out[STW_HASH_LEN])
{
    stw_hash_format(stw_hash_bytes(stw_buf_str(text), text->len), out);
}

static int look_at_inputs(struct app *a, struct app_seen *seen)
{
    stw_autobuf struct stw_buf versions = STW_BUF_INIT(65536), names = STW_BUF_INIT(65536);
    struct stw_inputs all = {0};
    app_names_read(stw_json_get(a->object.root, "spec"), &all);
    for (size_t i = 0; i < all.count; i++) {
        if (is_own_config(a, &all.all[i]))
            continue;
        stw_buf_addf(&names, "%s\n", all.all[i].name);
        if (!add_version(a, &all.all[i], &versions))
            seen->missing = true;
    }
    bool failed = all.failed || versions.failed || names.failed;
    stw_inputs_done(&all);
    hash_text(&versions, seen->digest);
    hash_text(&names, seen->names);
    return failed ? -1 : 0;
}

/* The annotation of the latest restart that the pod template has, or "".  The cache has only a
 * digest of the template. */
static int read_restart(struct app *a, char out[static STW_HASH_LEN], struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    if (app_read_deployment(a, &answer, &doc, err) != 0)
        return -1;
    struct stw_json all = stw_json_path(stw_json_root(&doc), "spec.template.metadata.annotations");
    if (stw_json_strcpy(stw_json_get(all, APP_INPUTS_ANNOTATION), out, STW_HASH_LEN) != 0)
        *out = '\0';
    return 0;
}

/* A Deployment that does not exist is created with the restart: that restarts nothing. */
static int take_back_restart(struct app *a, struct stw_error *err)
{
    char annotation[STW_HASH_LEN];
    if (read_restart(a, annotation, err) != 0)
        return err->code == STW_ERR_NOT_FOUND ? 0 : -1;
    app_inputs_take_back(&a->inputs, annotation);
    return 0;
}

/* False: the run is over. */
static bool follow_inputs(struct app *a, struct stw_result *result)
{
    struct stw_zones *zones = stw_product_zones(a->run->env);
    int64_t now = stw_wall_us(a->run->clock) / 1000000;
    struct app_seen seen = {0};
    struct stw_error err = {0};
    const struct stw_zone *zone =
        a->spec.restart.time_zone && zones ? stw_zones_get(zones, a->spec.restart.time_zone) : NULL;
    a->in_window = app_inputs_in_window(&a->spec, zone, now);
    app_inputs_read(a->object.status, &a->inputs_before);
    a->inputs = a->inputs_before;
    if (app_inputs_is_late(&a->spec, zone, now, &a->inputs) && take_back_restart(a, &err) != 0) {
        stw_run_fail(a->run, &err, result);
        return false;
    }
    if (!a->spec.restart.enabled || look_at_inputs(a, &seen) == 0)
        app_inputs_decide(&a->spec, zone, &seen, now, &a->inputs);
    return true;
}

/* Writes a restart that was decided by this run into the status.  False: the run is over, the next
 * one restarts the pods. */
static bool record_restart(struct app *a, struct stw_result *result)
{
    struct stw_error err = {0};
    if (!a->inputs.restarting || stw_streq(a->inputs.applied, a->inputs_before.applied))
        return true;
    json_auto_t *status = json_deep_copy(a->object.status);
    if (!status)
        (void)stw_fail_memory(&err);
    else
        app_inputs_write(&a->inputs, status);
    if (!status || stw_object_write_state(a->run, &a->object, status, &err) < 0)
        stw_run_fail(a->run, &err, result);
    else
        *result = (struct stw_result){.outcome = STW_RUN_AFTER, .after_ms = 1};
    return false;
}

static void tell_restart(struct app *a)
{
    enum stw_child_state state = a->children[APP_DEPLOYMENT].state;
    if (!a->inputs.restarting)
        return;
    if (state == STW_CHILD_UPDATED)
        stw_object_event(a->run, &a->object, false, "Restarted", "Restart",
                         "restarted the pods, because a Secret or ConfigMap that they read has "
                         "changed");
    a->inputs.restarting = state != STW_CHILD_UPDATED && state != STW_CHILD_SYNCED &&
                           state != STW_CHILD_REPAIRED && state != STW_CHILD_CREATED;
}

/* --- the run */

static void write_app_result(struct app *a, struct stw_result *result)
{
    static const char *const numbers[] = {"phase",         "desiredReplicas",   "replicas",
                                          "readyReplicas", "availableReplicas", "updatedReplicas",
                                          "lastError",     "ServiceReady",      NULL};
    struct stw_verdict verdict;
    json_t *status;
    if (stw_run_interrupted(a->run, a->children, APP_CHILDREN, result))
        return;
    stw_pod_trouble_find(a->run, &a->trouble);
    if (stw_pod_trouble_is_new(&a->trouble, &a->object, "Degraded"))
        stw_object_event(a->run, &a->object, true, a->trouble.reason, "Reconcile", "%s",
                         a->trouble.message);
    app_judge(a, &verdict, &status);
    bool begun = app_begun(a, status);
    stw_run_end(a->run, &a->object, &verdict, status, numbers, result);
    if (begun && result->outcome == STW_RUN_DONE)
        *result = (struct stw_result){.outcome = STW_RUN_AFTER, .after_ms = 1};
}

static json_t *status_unchecked(struct stw_subject *subject, enum stw_unchecked why,
                                const char *findings)
{
    return app_status_phase(stw_status_unchecked(subject, why, findings),
                            why == STW_UNCHECKED_PAUSED ? "Paused" : "Failed");
}

/* Also checked at admission, but the namespace may have changed since. */
static bool is_beyond_namespace(struct app *a, struct stw_result *result)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(FINDINGS_MAX);
    stw_autofindings struct stw_findings f = {0};
    enum stw_pod_level level = stw_pod_level_of(a->run->env, a->run->ns);
    a->restricted =
        level == STW_POD_LEVEL_RESTRICTED ||
        (a->spec.security_profile && stw_streq(a->spec.security_profile, APP_RESTRICTED));
    if (level != STW_POD_LEVEL_PRIVILEGED)
        app_check_security(&a->spec, &f);
    stw_findings_text(&f, &text);
    if (f.error_count == 0)
        return false;
    stw_run_end_invalid(a->run, &a->object,
                        status_unchecked(&a->subject, STW_UNCHECKED_INVALID, stw_buf_str(&text)),
                        stw_buf_str(&text), result);
    return true;
}

/* False: the run is over. */
static bool read_minor(struct app *a, struct stw_result *result)
{
    struct stw_error err = {0};
    if (!is_wanted(a, APP_BUDGET) || stw_kube_minor(a->run->client, &a->minor, &err) == 0)
        return true;
    stw_run_fail(a->run, &err, result);
    return false;
}

static void reconcile_app(struct stw_subject *subject, struct stw_result *result)
{
    struct app *a = (struct app *)subject;
    if (is_beyond_namespace(a, result))
        return;
    a->naming = (struct stw_naming){.app = APP_NAME, .component = APP_NAME, .image = a->spec.image};
    stw_format(a->config_name, sizeof(a->config_name), "%s-config", a->owner.name);
    app_hash_config(a);
    if (!read_minor(a, result) || !follow_inputs(a, result) || !record_restart(a, result))
        return;
    bool whole = ensure_children(a, result);
    stw_tell_children(a->run, &a->object, a->owner.name, a->children, APP_CHILDREN);
    tell_restart(a);
    if (whole)
        write_app_result(a, result);
}

/* The App has no finalizer of ours, but one of another client may keep it. */
static void delete_app(struct stw_subject *subject, struct stw_result *result)
{
    struct app *a = (struct app *)subject;
    const char *phase = json_string_value(json_object_get(a->object.status, "phase"));
    struct stw_error err = {0};
    json_auto_t *status = NULL;
    (void)result;
    if (!a->object.status || (phase && stw_streq(phase, "Terminating")))
        return;
    status = app_status_phase(json_deep_copy(a->object.status), "Terminating");
    if (status)
        (void)stw_object_write_status(a->run, &a->object, status, &err); /* the App may be gone */
}

static void free_run_state(struct stw_subject *subject)
{
    struct app *a = (struct app *)subject;
    for (int i = 0; i < APP_CHILDREN; i++)
        json_decref(a->desired[i]);
}

/* --- registration */

/* "secret:namespace/name", "configmap:namespace/name" */
static void index_inputs(struct stw_json spec, const char *ns, struct stw_buf *out)
{
    struct stw_inputs all = {0};
    app_names_read(spec, &all);
    for (size_t i = 0; i < all.count; i++) {
        char key[STW_KEY_LEN];
        stw_key_make(ns, stw_input_name(&all.all[i]), key);
        stw_index_add(out, stw_input_is_secret(&all.all[i]) ? "secret" : "configmap", key);
    }
    stw_inputs_done(&all);
}

static void index_app(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char ns[64];
    (void)ctx;
    if (stw_json_strcpy(stw_json_path(projected, "metadata.namespace"), ns, sizeof(ns)) == 0)
        stw_index_add(out, "namespace", ns);
    else
        return;
    struct stw_json spec = stw_json_get(projected, "spec");
    if (stw_json_bool(stw_json_path(spec, "restartOnChange.enabled"), false))
        index_inputs(spec, ns, out);
}

static const struct stw_watch own_watch = {
    .resource = &stw_kind_app.resource,
    .project = stw_object_project,
    .index = index_app,
    .for_admission = true,
    .changed = stw_watch_own_changed,
};

static const struct stw_watch *const watches[] = {&stw_watch_configmaps,
                                                  &stw_watch_deployments,
                                                  &stw_watch_services,
                                                  &stw_watch_disruption_budgets,
                                                  &stw_watch_autoscalers,
                                                  &stw_watch_ingresses,
                                                  &stw_watch_http_routes,
                                                  &stw_watch_pod_monitors,
                                                  &stw_watch_pod_troubles,
                                                  &stw_watch_secrets,
                                                  &stw_watch_configmap_versions,
                                                  &stw_watch_namespaces,
                                                  NULL};

/* apps/scale: when autoscaling is switched off, spec.replicas gets the number of replicas that the
 * Deployment has. */
static const struct stw_rule rules[] = {
    {.resource = &stw_kind_app.resource, .subresource = "scale", .verbs = "patch"},
    {.resource = &stw_kind_app.resource, .subresource = "finalizers", .verbs = "update"},
    {.resource = &stw_res_configmap, .verbs = "get,list,watch,create,patch"},
    {.resource = &stw_res_deployment, .verbs = "get,list,watch,create,patch"},
    {.resource = &stw_res_service, .verbs = "get,list,watch,create,patch"},
    {.resource = &stw_res_disruption_budget_v1, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &stw_res_autoscaler_v2, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &stw_res_ingress, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &stw_res_http_route, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &stw_res_pod_monitor, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &stw_res_pod, .verbs = "list,watch"},
    {.resource = &stw_res_secret, .verbs = "list,watch"}, /* only metadata is read */
    STW_RULE_NAMESPACES,
    {0},
};

static const char *const conditions[] = {
    "Available", "Progressing",   "ConfigSynced", "ServiceReady",  "AutoscalingActive",
    "Degraded",  "IngressSynced", "RouteSynced",  "MonitorSynced", NULL};

const struct stw_controller stw_controller_app = {
    STW_CONTROLLER_OF("app", stw_kind_app),
    .all_data = true,
    .own = &own_watch,
    .watches = watches,
    .rules = rules,
    .scales = true,
    .conditions = conditions,
    STW_RUN_STATE(struct app, spec),
    .child_count = APP_CHILDREN,
    .reconcile = reconcile_app,
    .gone = forget_children,
    .deleting = delete_app,
    .status_unchecked = status_unchecked,
    .done = free_run_state,
};
