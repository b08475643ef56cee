/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of autoscaling.metrics: those that the API server has for the metrics of a
 * HorizontalPodAutoscaler (autoscaling/v2). */
#include "base/util.h"
#include "kinds/app/spec_priv.h"
#include "schema/core.h"
#include "schema/names.h"

#include <assert.h>
#include <stdio.h>

#define METRICS "spec.autoscaling.metrics"

enum { UTILIZATION = 1, VALUE = 2, AVERAGE_VALUE = 4 };

/* The member that describes a metric of each type, and the targets that it may have. */
static const struct source {
    const char *type, *field;
    unsigned targets;
} sources[] = {
    {"Resource", "resource", UTILIZATION | AVERAGE_VALUE},
    {"ContainerResource", "containerResource", UTILIZATION | AVERAGE_VALUE},
    {"Pods", "pods", AVERAGE_VALUE},
    {"Object", "object", VALUE | AVERAGE_VALUE},
    {"External", "external", VALUE | AVERAGE_VALUE},
};
static const struct metric_target {
    const char *type, *field;
    unsigned bit;
} targets[] = {
    {"Utilization", "averageUtilization", UTILIZATION},
    {"Value", "value", VALUE},
    {"AverageValue", "averageValue", AVERAGE_VALUE},
};
static_assert(STW_COUNT(targets) == APP_TARGET_TYPES, "a field for each target");

static void check_positive(struct stw_json value, const char *path, struct stw_findings *f)
{
    stw_quantity n;
    if (stw_json_there(value) && stw_quantity_of(value, &n) == 0 && n <= 0)
        stw_findings_at(f, path, STW_INVALID, value, "must be greater than 0");
}

/* Exactly the value that the target's type names. */
static void check_target_value(struct stw_json target, const char *path, struct stw_findings *f)
{
    struct stw_json type = stw_json_get(target, "type");
    char at[160];
    for (size_t i = 0; i < STW_COUNT(targets); i++) {
        struct stw_json value = stw_json_get(target, targets[i].field);
        bool named = stw_json_is(type, targets[i].type);
        stw_format(at, sizeof(at), "%s.%s", path, targets[i].field);
        if (named && !stw_json_there(value))
            stw_findings_add(f, at, STW_REQUIRED, NULL, "the target's type is %s", targets[i].type);
        else if (!named && stw_json_there(value))
            stw_findings_add(f, at, STW_FORBIDDEN, NULL, "is only for a target of type %s",
                             targets[i].type);
        else if (targets[i].bit != UTILIZATION)
            check_positive(value, at, f);
    }
}

static void check_metric_target(const struct source *s, struct stw_json target, const char *path,
                                struct stw_findings *f)
{
    struct stw_json type = stw_json_get(target, "type");
    char at[160];
    for (size_t i = 0; i < STW_COUNT(targets); i++) {
        if (!stw_json_is(type, targets[i].type))
            continue;
        stw_format(at, sizeof(at), "%s.type", path);
        if (s->targets & targets[i].bit)
            check_target_value(target, path, f);
        else
            stw_findings_at(f, at, STW_INVALID, type, "not possible for a metric of type %s",
                            s->type);
    }
}

/* A metric has the member of its type, and no other. */
static void check_source(const struct source *s, struct stw_json metric, uint32_t index,
                         struct stw_findings *f)
{
    struct stw_json source = stw_json_get(metric, s->field);
    bool named = stw_json_is(stw_json_get(metric, "type"), s->type);
    char at[128];
    stw_format(at, sizeof(at), METRICS "[%u].%s", index, s->field);
    if (named && !stw_json_there(source))
        stw_findings_add(f, at, STW_REQUIRED, NULL, "the metric's type is %s", s->type);
    if (!named && stw_json_there(source))
        stw_findings_add(f, at, STW_FORBIDDEN, NULL, "is only for a metric of type %s", s->type);
    if (!named || !stw_json_there(source))
        return;
    stw_format(at, sizeof(at), METRICS "[%u].%s.target", index, s->field);
    check_metric_target(s, stw_json_get(source, "target"), at, f);
}

/* A later Kubernetes may have more types. */
static void warn_of_type(struct stw_json metric, uint32_t index, struct stw_findings *f)
{
    struct stw_json type = stw_json_get(metric, "type");
    char name[64];
    for (size_t i = 0; i < STW_COUNT(sources); i++)
        if (stw_json_is(type, sources[i].type))
            return;
    if (stw_json_type(type) != STW_JSON_STRING || stw_json_size(type) == 0)
        return;
    stw_json_cut(type, name, sizeof(name));
    stw_findings_warn(f,
                      METRICS "[%u].type: unknown type \"%s\", which is passed on unchanged; known "
                              "are Resource, ContainerResource, Pods, Object, External",
                      index, name);
}

bool app_metric_is(struct stw_json metric, const char *resource)
{
    struct stw_json of = stw_json_get(metric, "resource");
    return stw_json_is(stw_json_get(metric, "type"), "Resource") &&
           stw_json_is(stw_json_get(of, "name"), resource) &&
           stw_json_is(stw_json_path(of, "target.type"), "Utilization");
}

/* Whether this metric is a percentage of what the container of the image requests. */
static bool is_share_of(struct stw_json metric, const char *resource)
{
    struct stw_json of = stw_json_get(metric, "containerResource");
    return app_metric_is(metric, resource) ||
           (stw_json_is(stw_json_get(metric, "type"), "ContainerResource") &&
            stw_json_is(stw_json_get(of, "name"), resource) &&
            stw_json_is(stw_json_get(of, "container"), "app") &&
            stw_json_is(stw_json_path(of, "target.type"), "Utilization"));
}

/* One HorizontalPodAutoscaler has one such target: servers that store autoscaling/v1 keep only one,
 * and the simple field is the same. */
static void check_repeated(struct stw_json metric, uint32_t index, const char *resource,
                           const char *field, bool *seen, struct stw_findings *f)
{
    char at[128];
    if (!app_metric_is(metric, resource))
        return;
    stw_format(at, sizeof(at), METRICS "[%u].resource.name", index);
    if (*seen)
        stw_findings_at(f, at, STW_DUPLICATE, stw_json_path(metric, "resource.name"),
                        "there is one target of %s; %s also sets it", resource, field);
    *seen = true;
}

void app_check_metrics(const struct app_spec_autoscaling *s, struct stw_findings *f)
{
    struct stw_json key, metric;
    bool cpu = s->cpu != 0, memory = s->memory != 0;
    uint32_t index = 0;
    stw_json_foreach (s->metrics, key, metric) {
        if (stw_findings_spent(f))
            return;
        for (size_t i = 0; i < STW_COUNT(sources); i++)
            check_source(&sources[i], metric, index, f);
        warn_of_type(metric, index, f);
        check_repeated(metric, index, "cpu", "targetCPUUtilizationPercentage", &cpu, f);
        check_repeated(metric, index, "memory", "targetMemoryUtilizationPercentage", &memory, f);
        index++;
    }
}

bool app_has_share_of(const struct app_spec_autoscaling *s, const char *resource)
{
    struct stw_json key, metric;
    stw_json_foreach (s->metrics, key, metric)
        if (is_share_of(metric, resource))
            return true;
    return false;
}
