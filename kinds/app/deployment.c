/* SPDX-License-Identifier: Apache-2.0
 *
 * The desired Deployment of an App. */
#include "base/util.h"
#include "kinds/app/run_priv.h"
#include "kube/tree.h"

#include <stdio.h>

#define HASH_ANNOTATION "mycompany.com/config-hash"

/* --- the container */

/* The restricted Pod Security Standard, as far as a container can comply by itself. */
static const char restricted[] = "{\"allowPrivilegeEscalation\":false,"
                                 "\"capabilities\":{\"drop\":[\"ALL\"]},"
                                 "\"runAsNonRoot\":true,"
                                 "\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}";
/* Every image that runs without a securityContext also runs with this. */
static const char baseline[] = "{\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}";

/* The user's fields have precedence.  A privileged container escalates by definition, so
 * allowPrivilegeEscalation is dropped for it. */
json_t *app_security_context(const struct app *a, json_t *given)
{
    json_t *context = json_loads(a->restricted ? restricted : baseline, 0, NULL);
    if (json_is_true(json_object_get(given, "privileged")))
        (void)json_object_del(context, "allowPrivilegeEscalation");
    (void)json_object_update(context, given);
    return context;
}

static json_t *security_context(const struct app *a)
{
    json_auto_t *given = stw_manifest_tree(a->spec.security_context);
    return app_security_context(a, given);
}

static json_t *build_env_entry(const char *name, json_t *value)
{
    return stw_tree_pack("{s:s,s:o}", "name", name, "value", value);
}

/* Sets what the server would default.  A server default has no field manager: it would remain when
 * the other fields of the entry are removed, and would then make the object invalid. */
void app_own_defaults(json_t *entry)
{
    json_t *from = json_object_get(entry, "valueFrom");
    json_t *field = json_object_get(from, "fieldRef");
    json_t *resource = json_object_get(from, "resourceFieldRef");
    if (field && !json_object_get(field, "apiVersion"))
        (void)json_object_set_new(field, "apiVersion", json_string("v1"));
    if (resource && !json_object_get(resource, "divisor"))
        (void)json_object_set_new(resource, "divisor", json_string("0"));
}

static json_t *build_env_list(const struct app *a)
{
    const struct stw_app_config *c = &a->spec.config;
    char port[24];
    json_t *all = json_array();
    json_auto_t *given = stw_manifest_tree(a->spec.env);
    json_t *entry;
    size_t i;
    stw_format(port, sizeof(port), "%lld", (long long)a->spec.port);
    (void)json_array_append_new(all, build_env_entry("PORT", json_string(port)));
    if (c->database_url_ref.name)
        (void)json_array_append_new(all, stw_tree_pack("{s:s,s:{s:{s:s,s:s}}}", "name",
                                                       "DATABASE_URL", "valueFrom", "secretKeyRef",
                                                       "name", c->database_url_ref.name, "key",
                                                       c->database_url_ref.key));
    json_array_foreach (given, i, entry)
        app_own_defaults(entry);
    (void)json_array_extend(all, given);
    return all;
}

/* --- probes: with everything that the server would default, see app_own_defaults() */

static void set_number(json_t *probe, const char *key, int64_t n)
{
    if (n != 0) /* the server omits zeros */
        (void)json_object_set_new(probe, key, json_integer((json_int_t)n));
}

static json_t *build_http_probe(const struct app *a)
{
    const struct stw_app_health *h = &a->spec.health;
    json_t *p = stw_tree_pack("{s:{s:s,s:I,s:s},s:i}", "httpGet", "path", h->path, "port",
                              (json_int_t)(h->port ? h->port : a->spec.port), "scheme", "HTTP",
                              "successThreshold", 1);
    set_number(p, "initialDelaySeconds", h->initial_delay_s);
    set_number(p, "periodSeconds", h->period_s);
    set_number(p, "timeoutSeconds", h->timeout_s);
    set_number(p, "failureThreshold", h->failure_threshold);
    return p;
}

static json_t *build_app_container(const struct app *a)
{
    json_t *c = stw_tree_pack("{s:s,s:s,s:o,s:[{s:{s:s}}],s:[{s:s,s:I,s:s}],s:o*,s:o}", "name",
                              APP_NAME, "image", a->spec.image, "env", build_env_list(a), "envFrom",
                              "configMapRef", "name", a->config_name, "ports", "name", "http",
                              "containerPort", (json_int_t)a->spec.port, "protocol", "TCP",
                              "resources", stw_manifest_resources(a->spec.resources),
                              "securityContext", security_context(a));
    if (stw_app_has_metrics_port(&a->spec))
        (void)json_array_append_new(json_object_get(c, "ports"),
                                    stw_tree_pack("{s:s,s:I,s:s}", "name", APP_METRICS_PORT,
                                                  "containerPort", (json_int_t)a->spec.metrics.port,
                                                  "protocol", "TCP"));
    if (a->spec.health.path)
        (void)json_object_set_new(c, "readinessProbe", build_http_probe(a));
    if (a->spec.health.path && a->spec.health.liveness)
        (void)json_object_set_new(c, "livenessProbe", build_http_probe(a));
    return c;
}

/* --- pod */

/* Spread evenly, but schedule anyway if that is impossible. */
static json_t *soft_spread(const struct app *a, const char *key)
{
    return stw_tree_pack("{s:i,s:s,s:s,s:{s:o}}", "maxSkew", 1, "topologyKey", key,
                         "whenUnsatisfiable", "ScheduleAnyway", "labelSelector", "matchLabels",
                         app_selector(a));
}

static json_t *build_spread_constraints(const struct app *a)
{
    json_t *given = stw_manifest_tree(a->spec.spread), *constraint;
    size_t i;
    if (!given)
        return stw_tree_pack("[o,o]", soft_spread(a, "kubernetes.io/hostname"),
                             soft_spread(a, "topology.kubernetes.io/zone"));
    json_array_foreach (given, i, constraint)
        if (!json_object_get(constraint, "labelSelector"))
            (void)json_object_set_new(constraint, "labelSelector",
                                      stw_tree_pack("{s:o}", "matchLabels", app_selector(a)));
    return given;
}

static void set_if(json_t *to, const char *key, json_t *value)
{
    if (json_array_size(value) > 0 || json_object_size(value) > 0)
        (void)json_object_set(to, key, value);
    json_decref(value);
}

static json_t *pod_spec(const struct app *a)
{
    bool account = a->spec.service_account != NULL;
    json_t *pod =
        stw_tree_pack("{s:b,s:[o],s:I}", "automountServiceAccountToken", account, "containers",
                      build_app_container(a), "terminationGracePeriodSeconds",
                      (json_int_t)a->spec.grace_period_s);
    if (account)
        (void)json_object_set_new(pod, "serviceAccountName", json_string(a->spec.service_account));
    set_if(pod, "imagePullSecrets", stw_manifest_tree(a->spec.image_pull_secrets));
    set_if(pod, "affinity", stw_manifest_tree(a->spec.affinity));
    set_if(pod, "tolerations", stw_manifest_tree(a->spec.tolerations));
    set_if(pod, "topologySpreadConstraints", build_spread_constraints(a));
    return pod;
}

static json_t *build_pod_template(const struct app *a)
{
    json_t *template =
        stw_tree_pack("{s:{s:o,s:{s:s}},s:o}", "metadata", "labels", app_labels(a), "annotations",
                      HASH_ANNOTATION, a->config_hash, "spec", pod_spec(a));
    if (*a->inputs.applied)
        (void)json_object_set_new(
            json_object_get(json_object_get(template, "metadata"), "annotations"),
            APP_INPUTS_ANNOTATION, json_string(a->inputs.applied));
    app_merge_template(a, template);
    return template;
}

/* --- Deployment */

static json_t *read_share_or_default(struct stw_json given, json_t *otherwise)
{
    json_t *value = stw_json_there(given) ? stw_tree_read(given) : NULL;
    if (!value)
        return otherwise;
    json_decref(otherwise);
    if (!json_is_real(value))
        return value;
    double real = json_real_value(value); /* to the API server 1.0 is 1 */
    json_decref(value);
    return json_integer((json_int_t)real);
}

static json_t *build_rollout_strategy(const struct app *a)
{
    if (stw_app_recreates(&a->spec))
        return stw_tree_pack("{s:s}", "type", STW_APP_RECREATE);
    return stw_tree_pack(
        "{s:s,s:{s:o,s:o}}", "type", "RollingUpdate", "rollingUpdate", "maxSurge",
        read_share_or_default(a->spec.strategy.max_surge, json_string(STW_APP_MAX_SURGE)),
        "maxUnavailable", read_share_or_default(a->spec.strategy.max_unavailable, json_integer(0)));
}

json_t *app_deployment(const struct app *a)
{
    json_t *spec = stw_tree_pack("{s:I,s:{s:o},s:o,s:o}", "progressDeadlineSeconds",
                                 (json_int_t)a->spec.strategy.deadline_s, "selector", "matchLabels",
                                 app_selector(a), "strategy", build_rollout_strategy(a), "template",
                                 build_pod_template(a));
    if (a->spec.strategy.min_ready_s > 0)
        (void)json_object_set_new(spec, "minReadySeconds",
                                  json_integer((json_int_t)a->spec.strategy.min_ready_s));
    if (a->spec.strategy.history != STW_APP_HISTORY)
        (void)json_object_set_new(spec, "revisionHistoryLimit",
                                  json_integer((json_int_t)a->spec.strategy.history));
    if (!app_is_scaled(a) || a->begins)
        (void)json_object_set_new(spec, "replicas", json_integer((json_int_t)app_number(a)));
    return stw_tree_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "apps/v1", "kind", "Deployment",
                         "metadata", app_metadata(a, a->owner.name), "spec", spec);
}
