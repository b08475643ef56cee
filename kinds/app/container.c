/* SPDX-License-Identifier: Apache-2.0
 *
 * The container that an App names: its variables, probes and securityContext. */
#include "kinds/app/container.h"

#include "base/util.h"
#include "kinds/app/run_priv.h"
#include "kube/tree.h"

/* --- security */

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

/* --- variables */

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
    const struct app_spec_config *c = &a->spec.config;
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
    const struct app_spec_health *h = &a->spec.health;
    json_t *p = stw_tree_pack("{s:{s:s,s:I,s:s},s:i}", "httpGet", "path", h->path, "port",
                              (json_int_t)(h->port ? h->port : a->spec.port), "scheme", "HTTP",
                              "successThreshold", 1);
    set_number(p, "initialDelaySeconds", h->initial_delay_s);
    set_number(p, "periodSeconds", h->period_s);
    set_number(p, "timeoutSeconds", h->timeout_s);
    set_number(p, "failureThreshold", h->failure_threshold);
    return p;
}

/* --- the whole */

json_t *app_container(const struct app *a)
{
    json_t *c = stw_tree_pack("{s:s,s:s,s:o,s:[{s:{s:s}}],s:[{s:s,s:I,s:s}],s:o*,s:o}", "name",
                              APP_NAME, "image", a->spec.image, "env", build_env_list(a), "envFrom",
                              "configMapRef", "name", a->config_name, "ports", "name", "http",
                              "containerPort", (json_int_t)a->spec.port, "protocol", "TCP",
                              "resources", stw_manifest_resources(a->spec.resources),
                              "securityContext", security_context(a));
    if (app_has_metrics_port(&a->spec))
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
