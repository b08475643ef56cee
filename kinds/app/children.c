/* SPDX-License-Identifier: Apache-2.0
 *
 * The desired children of an App except the Deployment.  They contain only fields that steward
 * sets, each in the form in which the API server returns it. */
#include "kinds/app/children.h"

#include "base/hex.h"
#include "base/util.h"
#include "kinds/app/run_priv.h"

#include <stdio.h>

json_t *app_selector(const struct app *a)
{
    return stw_manifest_selector(&a->naming, &a->owner);
}

json_t *app_labels(const struct app *a)
{
    json_t *all = stw_manifest_labels(a->run, &a->owner, &a->naming);
    if (!json_object_get(a->owner.selector, "app"))
        (void)json_object_set_new(all, "app", json_string(a->owner.name));
    return all;
}

json_t *app_metadata(const struct app *a, const char *name)
{
    json_t *metadata = stw_manifest_metadata(a->run, &a->owner, &a->naming, name);
    (void)json_object_set_new(metadata, "labels", app_labels(a));
    return metadata;
}

/* --- configuration */

/* The data of the ConfigMap, which the app reads with envFrom. */
static json_t *config_data(const struct app *a)
{
    const struct app_spec_config *c = &a->spec.config;
    json_t *data =
        stw_json_there(c->environment) ? stw_manifest_tree(c->environment) : json_object();
    if (!data) /* out of memory: no variable is left out silently */
        return NULL;
    (void)json_object_set_new(data, "LOG_LEVEL", json_string(c->log_level));
    if (c->database_url && !c->database_url_ref.name)
        (void)json_object_set_new(data, "DATABASE_URL", json_string(c->database_url));
    return data;
}

void app_hash_config(struct app *a)
{
    json_auto_t *data = config_data(a);
    stw_autofree char *text = json_dumps(data, JSON_COMPACT | JSON_SORT_KEYS);
    stw_hash_format(stw_hash_bytes(text ? text : "", text ? strlen(text) : 0), a->config_hash);
    stw_wipe(text, text ? strlen(text) : 0); /* it may hold a password, against our advice */
}

json_t *app_configmap(const struct app *a)
{
    json_t *data = config_data(a);
    if (!data)
        return NULL;
    return stw_tree_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "ConfigMap", "metadata",
                         app_metadata(a, a->config_name), "data", data);
}

/* --- Service */

json_t *app_service(const struct app *a)
{
    json_t *metadata = app_metadata(a, a->owner.name);
    json_t *annotations = stw_manifest_tree(a->spec.service.annotations);
    if (json_object_size(annotations) > 0)
        (void)json_object_set(metadata, "annotations", annotations);
    json_decref(annotations);
    return stw_tree_pack("{s:s,s:s,s:o,s:{s:s,s:o,s:[{s:s,s:I,s:s,s:I}]}}", "apiVersion", "v1",
                         "kind", "Service", "metadata", metadata, "spec", "type",
                         a->spec.service.type, "selector", app_selector(a), "ports", "name", "http",
                         "port", (json_int_t)a->spec.service.port, "protocol", "TCP", "targetPort",
                         (json_int_t)a->spec.port);
}

/* --- Ingress */

json_t *app_ingress(const struct app *a)
{
    return stw_ingress_build(&a->spec.ingress, a->owner.name, app_metadata(a, a->owner.name));
}

/* --- HTTPRoute, PodMonitor */

/* With what the server would default. */
json_t *app_route(const struct app *a)
{
    json_t *parent = stw_tree_pack("{s:s,s:s,s:s,s:s*,s:s*}", "group", "gateway.networking.k8s.io",
                                   "kind", "Gateway", "name", a->spec.route.gateway, "namespace",
                                   a->spec.route.gateway_ns, "sectionName", a->spec.route.listener);
    json_t *spec =
        stw_tree_pack("{s:[o],s:[{s:[{s:{s:s,s:s}}],s:[{s:s,s:s,s:s,s:I,s:i}]}]}", "parentRefs",
                      parent, "rules", "matches", "path", "type", "PathPrefix", "value",
                      a->spec.route.path, "backendRefs", "group", "", "kind", "Service", "name",
                      a->owner.name, "port", (json_int_t)a->spec.service.port, "weight", 1);
    if (a->spec.route.host)
        (void)json_object_set_new(spec, "hostnames", stw_tree_pack("[s]", a->spec.route.host));
    return stw_tree_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "gateway.networking.k8s.io/v1", "kind",
                         "HTTPRoute", "metadata", app_metadata(a, a->owner.name), "spec", spec);
}

json_t *app_monitor(const struct app *a)
{
    const bool own = app_has_metrics_port(&a->spec);
    json_t *endpoint = stw_tree_pack("{s:s,s:s}", "port", own ? APP_METRICS_PORT : "http", "path",
                                     a->spec.metrics.path);
    json_t *metadata = app_metadata(a, a->owner.name);
    json_auto_t *labels = stw_manifest_tree(a->spec.metrics.labels);
    char interval[24];
    if (a->spec.metrics.interval_s > 0) {
        stw_format(interval, sizeof(interval), "%llds", (long long)a->spec.metrics.interval_s);
        (void)json_object_set_new(endpoint, "interval", json_string(interval));
    }
    if (labels)
        (void)json_object_update(json_object_get(metadata, "labels"), labels);
    return stw_tree_pack("{s:s,s:s,s:o,s:{s:{s:o},s:[o]}}", "apiVersion",
                         "monitoring.coreos.com/v1", "kind", "PodMonitor", "metadata", metadata,
                         "spec", "selector", "matchLabels", app_selector(a), "podMetricsEndpoints",
                         endpoint);
}

/* --- PodDisruptionBudget */

bool app_wants_budget(const struct app_spec *spec)
{
    int64_t most = spec->autoscaling.enabled ? spec->autoscaling.max : spec->replicas;
    return spec->pdb.enabled && most > 1;
}

static json_t *build_child_head(const struct app *a, const struct stw_resource *r)
{
    stw_autobuf struct stw_buf version = STW_BUF_INIT(512);
    stw_resource_api_version(r, &version);
    return stw_tree_pack("{s:s,s:s,s:o}", "apiVersion", stw_buf_str(&version), "kind", r->kind,
                         "metadata", app_metadata(a, a->owner.name));
}

/* Servers before 1.27 drop the field. */
#define EVICTION_POLICY_MINOR 27

/* With maxUnavailable instead of minAvailable, so that a drain never waits forever.  For the same reason
 * pods that are not ready may be evicted: they serve no requests. */
json_t *app_budget(const struct app *a, const struct stw_resource *r, int minor)
{
    json_t *budget = build_child_head(a, r);
    (void)json_object_set_new(budget, "spec",
                              stw_tree_pack("{s:i,s:{s:o}}", "maxUnavailable", 1, "selector",
                                            "matchLabels", app_selector(a)));
    if (minor >= EVICTION_POLICY_MINOR)
        (void)json_object_set_new(json_object_get(budget, "spec"), "unhealthyPodEvictionPolicy",
                                  json_string("AlwaysAllow"));
    return budget;
}

/* --- HorizontalPodAutoscaler */

static json_t *build_resource_metric(const char *resource, int64_t percent)
{
    return stw_tree_pack("{s:s,s:{s:s,s:{s:s,s:I}}}", "type", "Resource", "resource", "name",
                         resource, "target", "type", "Utilization", "averageUtilization",
                         (json_int_t)percent);
}

/* A metric of the spec, as the server stores it. */
static json_t *build_metric(struct stw_json metric)
{
    json_t *tree = stw_manifest_tree(metric), *source;
    const char *name;
    json_object_foreach (tree, name, source) {
        json_t *target = json_object_get(source, "target");
        stw_manifest_canonical_member(target, "value");
        stw_manifest_canonical_member(target, "averageValue");
    }
    return tree;
}

/* Appends the metrics of the spec: those of the CPU that servers with autoscaling/v1 return last, or
 * the others. */
static int append_metrics(const struct app_spec_autoscaling *s, bool cpu, json_t *all)
{
    struct stw_json key, metric;
    stw_json_foreach (s->metrics, key, metric)
        if (app_metric_is(metric, "cpu") == cpu &&
            json_array_append_new(all, build_metric(metric)) != 0)
            return -1;
    return 0;
}

/* The CPU last: servers that store autoscaling/v1 return the metrics in this order.  NULL if out of
 * memory. */
static json_t *build_metric_list(const struct app_spec_autoscaling *s)
{
    json_t *all = json_array();
    int64_t cpu = app_cpu_target(s);
    int failed = 0;
    if (s->memory)
        failed |= json_array_append_new(all, build_resource_metric("memory", s->memory));
    failed |= append_metrics(s, false, all);
    if (cpu)
        failed |= json_array_append_new(all, build_resource_metric("cpu", cpu));
    failed |= append_metrics(s, true, all);
    if (!failed)
        return all;
    json_decref(all);
    return NULL;
}

/* What a cluster does by default without a behavior, or NULL if out of memory. */
static json_t *build_default_behavior(void)
{
    return stw_tree_pack(
        "{s:{s:s,s:i,s:[{s:s,s:i,s:i},{s:s,s:i,s:i}]},s:{s:s,s:i,s:[{s:s,s:i,s:i}]}}", "scaleUp",
        "selectPolicy", "Max", "stabilizationWindowSeconds", 0, "policies", "type", "Pods", "value",
        4, "periodSeconds", 15, "type", "Percent", "value", 100, "periodSeconds", 15, "scaleDown",
        "selectPolicy", "Max", "stabilizationWindowSeconds", 300, "policies", "type", "Percent",
        "value", 100, "periodSeconds", 15);
}

/* Servers with v2beta2 keep a behavior that is not applied any more: the autoscaler's controller,
 * which uses v1 there, owns it as an annotation.  So these always get one. */
static json_t *build_behavior(const struct app_spec_autoscaling *s)
{
    static const char *const directions[] = {"scaleUp", "scaleDown"};
    json_t *given;
    if (stw_json_size(s->behavior) == 0)
        return build_default_behavior();
    given = stw_manifest_tree(s->behavior);
    for (size_t i = 0; i < STW_COUNT(directions); i++)
        stw_manifest_canonical_member(json_object_get(given, directions[i]), "tolerance");
    return given;
}

/* autoscaling/v1 supports only CPU, and no behavior. */
static int set_targets(json_t *spec, const struct app_spec_autoscaling *s, const char *version)
{
    int64_t cpu = app_cpu_target(s);
    int failed = 0;
    if (!stw_streq(version, "v1")) {
        failed |= json_object_set_new(spec, "metrics", build_metric_list(s));
        if (stw_json_size(s->behavior) > 0 || stw_streq(version, "v2beta2"))
            failed |= json_object_set_new(spec, "behavior", build_behavior(s));
    } else if (cpu) {
        failed |= json_object_set_new(spec, "targetCPUUtilizationPercentage",
                                      json_integer((json_int_t)cpu));
    }
    return failed;
}

json_t *app_autoscaler(const struct app *a, const struct stw_resource *r)
{
    const struct app_spec_autoscaling *s = &a->spec.autoscaling;
    json_t *scaler = build_child_head(a, r);
    json_t *spec =
        stw_tree_pack("{s:{s:s,s:s,s:s},s:I,s:I}", "scaleTargetRef", "apiVersion", "apps/v1",
                      "kind", "Deployment", "name", a->owner.name, "minReplicas",
                      (json_int_t)s->min, "maxReplicas", (json_int_t)s->max);
    int failed = set_targets(spec, s, r->version); /* no metric is left out silently */
    failed |= json_object_set_new(scaler, "spec", spec);
    if (!failed)
        return scaler;
    json_decref(scaler);
    return NULL;
}
