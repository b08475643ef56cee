/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on an App beyond its field table. */
#include "base/arena.h"
#include "base/util.h"
#include "kinds/app/spec_priv.h"
#include "kinds/common/pod_security.h"
#include "kinds/common/schedule.h"
#include "schema/core.h"
#include "schema/names.h"
#include "schema/rule/check.h"

#include <ctype.h>
#include <stdio.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define PRIVILEGED_PORTS 1024

/* --- single values */

const char *app_check_path(const char *path)
{
    if (path[0] != '/')
        return APP_PATH_FORM;
    for (const char *c = path; *c; c++)
        if (*c == ' ' || iscntrl((unsigned char)*c))
            return APP_PATH_BLANK;
    return NULL;
}

/* --- config */

/* "scheme://rest".  The scheme may have parts, as in jdbc:mysql://host. */
static bool is_url(const char *url)
{
    size_t scheme = strspn(url, LETTERS DIGITS "+-.:");
    for (const char *c = url; *c; c++)
        if (*c == ' ' || iscntrl((unsigned char)*c))
            return false;
    return isalpha((unsigned char)url[0]) && scheme >= 2 && url[scheme - 1] == ':' &&
           strncmp(url + scheme, "//", 2) == 0 && url[scheme + 2] != '\0';
}

/* True with user:password@ before the host, or with a "password=" parameter after it. */
static bool has_password(const char *url)
{
    const char *rest = strstr(url, "://") + 3;
    size_t authority = strcspn(rest, "/?#");
    const char *at = memrchr(rest, '@', authority);
    const char *colon = at ? memchr(rest, ':', (size_t)(at - rest)) : NULL;
    return (colon && colon + 1 < at) || strcasestr(rest + authority, "password=");
}

/* The value is never shown in a finding: it may contain a password. */
static void check_database_url(const struct app_spec_config *c, struct stw_findings *f)
{
    const char *path = "spec.config.databaseUrl";
    if (c->database_url && strlen(c->database_url) > APP_URL_MAX)
        stw_findings_add(f, path, STW_INVALID, NULL, "must be at most %d bytes", APP_URL_MAX);
    else if (c->database_url && !is_url(c->database_url))
        stw_findings_add(f, path, STW_INVALID, NULL, APP_URL_FORM);
    else if (c->database_url && has_password(c->database_url))
        stw_findings_warn(f, "%s: credentials end up in a ConfigMap; use databaseUrlSecretRef",
                          path);
    if (c->database_url && c->database_url_ref.name)
        stw_findings_add(f, "spec.config.databaseUrlSecretRef", STW_FORBIDDEN, NULL, APP_ONE_URL);
}

static bool are_both_set_and_equal(const char *a, const char *b)
{
    return a && b && stw_streq(a, b);
}

/* Reading the Secret costs a request, so do it only when the reference is new or has changed. */
static void look_at_secret(const struct stw_admission *a, const struct app_spec_config *c,
                           const struct app_spec *old, struct stw_findings *f)
{
    const struct stw_lookup *l = a->env ? a->env->lookup : NULL;
    struct stw_secret_facts facts = {0};
    const char *name = c->database_url_ref.name, *key = c->database_url_ref.key;
    bool is_new = !old || !are_both_set_and_equal(name, old->config.database_url_ref.name) ||
                  !are_both_set_and_equal(key, old->config.database_url_ref.key);
    if (a->quiet || f->error_count || !is_new || !l || !l->secret || !name || !key || !a->ns ||
        l->secret(l->ctx, a->ns, name, key, &facts) != 0)
        return;
    if (!facts.secret_there)
        stw_findings_warn(f, "Secret \"%s\" not found; the pods start when it appears", name);
    else if (!facts.key_there)
        stw_findings_warn(f, "Secret \"%s\" has no key \"%s\"; the pods start when it appears",
                          name, key);
}

/* Variables that steward sets, and the field each of them comes from. */
static const struct {
    const char *name, *field;
    bool always; /* else only when there is a database */
} own_variables[] = {
    {"PORT", "port", true},
    {"LOG_LEVEL", "config.logLevel", true},
    {"DATABASE_URL", "config.databaseUrl", false},
};

static const char *own_field(const char *name, bool has_database)
{
    for (size_t i = 0; i < STW_COUNT(own_variables); i++)
        if ((own_variables[i].always || has_database) && stw_streq(name, own_variables[i].name))
            return own_variables[i].field;
    return NULL;
}

static void refuse_at(const struct stw_path *at, enum stw_finding_code code, struct stw_json value,
                      const char *message, struct stw_findings *f)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    if (stw_findings_full(f))
        return;
    stw_path_text(at, &path);
    stw_findings_at(f, stw_buf_str(&path), code, value, "%s", message);
    f->failed |= path.failed;
}

static void check_variable(const struct stw_path *at, struct stw_findings *f)
{
    char name[STW_CORE_ENV_NAME_MAX + 2], text[128];
    bool fits = stw_json_strcpy(at->key, name, sizeof(name)) == 0;
    const char *field = fits ? own_field(name, true) : NULL;
    const char *wrong =
        fits ? stw_core_check_env_name(name) : "must be no more than 253 characters";
    if (wrong)
        refuse_at(at, STW_INVALID, at->key, wrong, f);
    if (field) {
        stw_format(text, sizeof(text), "is set by steward from spec.%s", field);
        refuse_at(at, STW_FORBIDDEN, at->key, text, f);
    }
}

static void check_environment(struct stw_json environment, struct stw_findings *f)
{
    const struct stw_path spec = {.name = "spec"}, config = {.up = &spec, .name = "config"},
                          map = {.up = &config, .name = "environment"};
    struct stw_path at = {.up = &map};
    struct stw_json value;
    size_t total = 0;
    stw_json_foreach (environment, at.key, value) {
        if (stw_findings_spent(f))
            return;
        total += stw_json_size(at.key) + stw_json_size(value);
        check_variable(&at, f);
        if (stw_core_variable_is_long(at.key, value))
            refuse_at(&at, STW_INVALID, STW_JSON_NONE, STW_CORE_VARIABLE_TEXT, f);
    }
    if (total > APP_ENVIRONMENT_MAX) /* the value is too large to show */
        stw_findings_add(f, "spec.config.environment", STW_INVALID, NULL,
                         "must be at most %d bytes in total", APP_ENVIRONMENT_MAX);
}

static int by_name(const void *a, const void *b)
{
    struct stw_json x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return stw_json_compare(x, y);
}

/* The names of a map, sorted. */
struct arena_names {
    struct stw_json *all;
    size_t count;
};

static struct arena_names names_of(struct stw_json map, struct stw_arena *arena,
                                   struct stw_findings *f)
{
    struct stw_json key, value;
    struct arena_names n = {stw_arena_alloc(arena, (stw_json_size(map) + 1) * sizeof(*n.all)), 0};
    f->failed |= !n.all;
    if (!n.all)
        return n;
    stw_json_foreach (map, key, value)
        if (stw_json_there(value))
            n.all[n.count++] = key;
    qsort(n.all, n.count, sizeof(*n.all), by_name);
    return n;
}

/* An entry of `env` that hides a variable of the ConfigMap can only be a mistake. */
static void check_env_entry(const struct app_spec *app, const struct arena_names *environment,
                            struct stw_json element, uint32_t index, struct stw_findings *f)
{
    char name[STW_CORE_ENV_NAME_MAX + 2], path[64], text[128];
    struct stw_json name_node = stw_json_get(element, "name");
    const struct app_spec_config *c = &app->config;
    if (stw_json_strcpy(name_node, name, sizeof(name)) != 0)
        return;
    stw_format(path, sizeof(path), "spec.env[%u].name", index);
    const char *field = own_field(name, c->database_url || c->database_url_ref.name);
    if (!field &&
        (environment->count == 0 || !bsearch(&name_node, environment->all, environment->count,
                                             sizeof(*environment->all), by_name)))
        return;
    stw_format(text, sizeof(text), "is set by steward from spec.%s",
               field ? field : "config.environment");
    stw_findings_at(f, path, STW_DUPLICATE, name_node, "%s", text);
}

static void check_env(const struct app_spec *app, struct stw_findings *f)
{
    struct stw_json key, element;
    uint32_t index = 0;
    struct stw_arena arena;
    stw_arena_init(&arena);
    struct arena_names environment = names_of(app->config.environment, &arena, f);
    stw_json_foreach (app->env, key, element) {
        if (stw_findings_spent(f))
            break;
        check_env_entry(app, &environment, element, index++, f);
    }
    stw_arena_done(&arena);
    stw_core_check_env(app->env, "spec.env", f);
}

/* --- resources and autoscaling */

static bool has_entry(struct stw_json resources, const char *name)
{
    return stw_json_there(stw_json_get(stw_json_get(resources, "requests"), name)) ||
           stw_json_there(stw_json_get(stw_json_get(resources, "limits"), name));
}

static bool has_entries(struct stw_json resources)
{
    return stw_json_size(stw_json_get(resources, "limits")) +
               stw_json_size(stw_json_get(resources, "requests")) >
           0;
}

/* Those of the whole pod, in Kubernetes 1.34 and later. */
static struct stw_json pod_resources(const struct app_spec *app)
{
    return stw_json_path(app->pod_template, "spec.resources");
}

static void check_resources(const struct app_spec *app, struct stw_findings *f)
{
    stw_core_check_resources(app->resources, "spec.resources", f);
    stw_core_check_resources(pod_resources(app), "spec.podTemplate.spec.resources", f);
    if (!has_entries(app->resources) && !has_entries(pod_resources(app)))
        stw_findings_warn(f, "no resources are requested or limited: a node short of memory ends "
                             "such pods first (BestEffort)");
}

/* Where no request is given, the limit is used as the request. */
static void check_target(bool targeted, const char *resource, const char *what,
                         const struct app_spec *app, struct stw_findings *f)
{
    char path[64];
    if (!targeted || has_entry(app->resources, resource) || has_entry(pod_resources(app), resource))
        return;
    stw_format(path, sizeof(path), "spec.resources.requests[%s]", resource);
    stw_findings_add(f, path, STW_REQUIRED, NULL, "%s autoscaling needs a %s request", what, what);
}

static void check_autoscaling(const struct stw_admission *a, const struct app_spec *app,
                              struct stw_findings *f)
{
    const struct app_spec_autoscaling *s = &app->autoscaling;
    struct stw_json max = stw_json_path(a->object, "spec.autoscaling.maxReplicas");
    if (!s->enabled)
        return;
    if (s->max == 0 && !stw_json_there(max))
        stw_findings_add(f, "spec.autoscaling.maxReplicas", STW_REQUIRED, NULL, "%s",
                         APP_NEEDS_BOUND);
    else if (s->max < s->min)
        stw_findings_at(f, "spec.autoscaling.maxReplicas", STW_INVALID, max, APP_BOUND_LOW);
    app_check_metrics(s, f);
    check_target(app_cpu_target(s) != 0 || app_has_share_of(s, "cpu"), "cpu", "CPU", app, f);
    check_target(s->memory != 0 || app_has_share_of(s, "memory"), "memory", "memory", app, f);
}

static void advise_on_replicas(const struct app_spec *app, const struct app_spec *old,
                               struct stw_findings *f)
{
    bool is_new = !old || old->replicas != app->replicas || !old->autoscaling.enabled;
    if (app->autoscaling.enabled && app->replicas != 1 && is_new)
        stw_findings_warn(f, "replicas is only the start value while autoscaling is enabled");
}

/* --- strategy */

struct share {
    int64_t n;
    bool percent, good;
};

static struct share share_of(struct stw_json v, struct share otherwise)
{
    struct share s = {0};
    char text[16];
    if (!stw_json_there(v))
        return otherwise;
    if (stw_json_type(v) != STW_JSON_STRING) {
        s.good = stw_field_int(v, &s.n) == 0 && s.n >= 0 && s.n <= INT32_MAX;
        return s;
    }
    s.percent = true;
    s.good = stw_json_strcpy(v, text, sizeof(text)) == 0 && stw_percent_parse(text, &s.n) == 0;
    return s;
}

static struct share surge_of(const struct app_spec *app)
{
    return share_of(app->strategy.max_surge,
                    (struct share){.n = 25, .percent = true, .good = true});
}

static struct share unavailable_of(const struct app_spec *app)
{
    return share_of(app->strategy.max_unavailable, (struct share){.good = true});
}

const char *const app_strategy_members[] = {"type",
                                            "maxSurge",
                                            "maxUnavailable",
                                            "progressDeadlineSeconds",
                                            "minReadySeconds",
                                            "revisionHistoryLimit",
                                            NULL};

static void check_strategy(const struct stw_admission *a, const struct app_spec *app,
                           struct stw_findings *f)
{
    static const char *const shares[] = {"maxSurge", "maxUnavailable"};
    char at[64];
    struct share surge = surge_of(app), unavailable = unavailable_of(app);
    const char *shape = APP_SHARE_FORM;
    if (!surge.good)
        stw_findings_at(f, "spec.strategy.maxSurge", STW_INVALID, app->strategy.max_surge, "%s",
                        shape);
    for (size_t i = 0; i < STW_COUNT(shares); i++) {
        stw_format(at, sizeof(at), "spec.strategy.rollingUpdate.%s", shares[i]);
        if (stw_json_there(stw_json_path(a->object, at)))
            stw_findings_add(f, at, STW_FORBIDDEN, NULL, "is set by steward from spec.strategy.%s",
                             shares[i]);
    }
    if (!unavailable.good)
        stw_findings_at(f, "spec.strategy.maxUnavailable", STW_INVALID,
                        app->strategy.max_unavailable, "%s", shape);
    else if (unavailable.percent && unavailable.n > 100)
        stw_findings_at(f, "spec.strategy.maxUnavailable", STW_INVALID,
                        app->strategy.max_unavailable, "must not be greater than 100%%");
    if (!app_recreates(app) && surge.good && unavailable.good && surge.n == 0 && unavailable.n == 0)
        stw_findings_add(f, "spec.strategy", STW_INVALID, NULL, APP_BOTH_ZERO);
    if (app->strategy.min_ready_s > 0 && app->strategy.min_ready_s >= app->strategy.deadline_s) {
        char value[24];
        stw_format(value, sizeof(value), "%lld", (long long)app->strategy.min_ready_s);
        stw_findings_add(f, "spec.strategy.minReadySeconds", STW_INVALID, value, APP_READY_LONG);
    }
}

bool app_recreates(const struct app_spec *app)
{
    return app->strategy.type && stw_streq(app->strategy.type, APP_RECREATE);
}

/* As the Deployment controller computes it (ResolveFenceposts): surge rounds up, unavailable rounds
 * down, and when both are 0, one pod may be unavailable. */
int64_t app_max_unavailable(const struct app_spec *app, int64_t replicas)
{
    struct share surge = surge_of(app), unavailable = unavailable_of(app);
    if (app_recreates(app))
        return replicas;
    int64_t missing = unavailable.percent ? replicas * unavailable.n / 100 : unavailable.n;
    int64_t more = surge.percent ? (replicas * surge.n + 99) / 100 : surge.n;
    return missing == 0 && more == 0 ? 1 : missing;
}

/* --- security */

void app_check_security(const struct app_spec *app, struct stw_findings *f)
{
    stw_pod_check_context(app->security_context, "spec.securityContext", f);
    stw_pod_check_spec(stw_json_get(app->pod_template, "spec"), "spec.podTemplate.spec", f);
}

/* Where the namespace cannot be read, the reconcile decides. */
static void check_security(const struct stw_admission *a, const struct app_spec *app,
                           struct stw_findings *f)
{
    enum stw_pod_level level = stw_pod_level_of(a->env, a->ns);
    if (level == STW_POD_LEVEL_UNKNOWN || level == STW_POD_LEVEL_PRIVILEGED)
        return;
    app_check_security(app, f);
    if (level == STW_POD_LEVEL_RESTRICTED && app->security_profile &&
        stw_streq(app->security_profile, APP_BASELINE))
        stw_findings_warn(f, "the namespace enforces the restricted Pod Security Standard; "
                             "securityProfile Baseline has no effect");
}

/* --- the rest */

/* Labels that every child has. */
static void check_metrics_labels(struct stw_json labels, struct stw_findings *f)
{
    struct stw_json key, value;
    char name[STW_CORE_ENV_NAME_MAX + 64], at[512];
    stw_core_check_labels(labels, "spec.metrics.labels", f);
    stw_json_foreach (labels, key, value) {
        stw_json_cut(key, name, sizeof(name));
        if (stw_findings_spent(f))
            return;
        if (!stw_streq(name, "app") && strncmp(name, "app.kubernetes.io/", 18) != 0)
            continue;
        stw_format(at, sizeof(at), "spec.metrics.labels[%s]", name);
        stw_findings_add(f, at, STW_FORBIDDEN, NULL, APP_BY_STEWARD);
    }
}

static void check_health(const struct app_spec_health *h, struct stw_findings *f)
{
    char value[24];
    if (!h->path || h->timeout_s <= h->period_s)
        return;
    stw_format(value, sizeof(value), "%lld", (long long)h->timeout_s);
    stw_findings_add(f, "spec.healthCheck.timeoutSeconds", STW_INVALID, value, APP_TIMEOUT_LONG);
}

void app_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                  struct stw_findings *f)
{
    const struct app_spec *app = spec;
    if (app->port > 0 && app->port < PRIVILEGED_PORTS && app->security_profile &&
        stw_streq(app->security_profile, APP_RESTRICTED))
        stw_findings_warn(f,
                          "port %lld is below 1024, where a container that does not run as root "
                          "may not be able to listen",
                          (long long)app->port);
    check_database_url(&app->config, f);
    check_environment(app->config.environment, f);
    check_resources(app, f);
    check_health(&app->health, f);
    check_autoscaling(a, app, f);
    advise_on_replicas(app, old_spec, f);
    stw_core_check_annotations(app->service.annotations, "spec.service.annotations", f);
    check_metrics_labels(app->metrics.labels, f);
    check_env(app, f);
    check_strategy(a, app, f);
    stw_check_time_zone(a, "spec.restartOnChange.timeZone", app->restart.time_zone, f);
    (void)stw_check_windows("spec.restartOnChange.windows", app->restart.windows, f);
    app_check_template(app, f);
    check_security(a, app, f);
    look_at_secret(a, &app->config, old_spec, f);
    stw_warn_of_namesake(a, "mywebs", "MyWeb", f);
}
