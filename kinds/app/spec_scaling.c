/* SPDX-License-Identifier: Apache-2.0
 *
 * autoscaling.metrics and autoscaling.behavior: the metrics and the behavior of a
 * HorizontalPodAutoscaler (autoscaling/v2), with the rules that the API server has for them. */
#include "base/util.h"
#include "kinds/app/spec_priv.h"
#include "schema/core.h"
#include "schema/names.h"

#include <assert.h>
#include <stdio.h>

#define POLICIES_MAX 20
#define METRICS "spec.autoscaling.metrics"

/* --- rows */

static const char *const metric_types[] = {"Resource", "ContainerResource", "Pods",
                                           "Object",   "External",          NULL};
static const char *const target_types[] = {"Utilization", "Value", "AverageValue", NULL};

static const struct stw_field target_fields[] = {
    {.name = "type",
     .type = STW_T_STRING,
     .help = "Which of the values is the target.",
     .required = true,
     .values = target_types},
    {.name = "averageUtilization",
     .type = STW_T_INT,
     .help = "Percent of the request, as the average of the pods.",
     STW_RANGE(1, INT32_MAX),
     .range_text = "must be greater than 0",
     .format = "int32"},
    {.name = "value", .type = STW_T_QUANTITY, .help = "Value of the metric."},
    {.name = "averageValue", .type = STW_T_QUANTITY, .help = "Value of the metric for each pod."},
    {0},
};

#define NAME_ROW(name_, text)                                                                      \
    {                                                                                              \
        .name = (name_), .type = STW_T_STRING, .help = (text), .required = true, STW_RANGE(1, 253) \
    }
#define TARGET_ROW                                                                                 \
    {                                                                                              \
        .name = "target", .type = STW_T_RAW, .open = true, .help = "The target.",                  \
        .required = true, .fields = target_fields                                                  \
    }
#define METRIC_ROW                                                                                 \
    {                                                                                              \
        .name = "metric", .type = STW_T_RAW, .open = true, .help = "The metric.",                  \
        .required = true, .fields = identifier_fields                                              \
    }

static const struct stw_field identifier_fields[] = {
    NAME_ROW("name", "Name of the metric."),
    {.name = "selector",
     .type = STW_T_RAW,
     .help = "Labels of the metric, as a LabelSelector.",
     .known = stw_core_label_selector},
    {0},
};

static const struct stw_field resource_fields[] = {
    NAME_ROW("name", "Name of the resource, such as cpu."), TARGET_ROW, {0}};

static const struct stw_field container_fields[] = {
    NAME_ROW("name", "Name of the resource, such as cpu."),
    NAME_ROW("container", "Name of the container; that of the image is called \"app\"."),
    TARGET_ROW,
    {0}};

static const struct stw_field pods_fields[] = {METRIC_ROW, TARGET_ROW, {0}};

static const struct stw_field described_fields[] = {
    {.name = "apiVersion", .type = STW_T_STRING, .help = "Its apiVersion.", STW_RANGE(0, 253)},
    NAME_ROW("kind", "Its kind."),
    NAME_ROW("name", "Its name."),
    {0},
};

static const struct stw_field object_fields[] = {{.name = "describedObject",
                                                  .type = STW_T_RAW,
                                                  .open = true,
                                                  .help = "The object that has the metric.",
                                                  .required = true,
                                                  .fields = described_fields},
                                                 METRIC_ROW,
                                                 TARGET_ROW,
                                                 {0}};

static const struct stw_field metric_fields[] = {
    {.name = "type",
     .type = STW_T_STRING,
     .help = "Which of the following describes the metric.",
     .required = true,
     .values = metric_types},
    {.name = "resource",
     .type = STW_T_RAW,
     .open = true,
     .help = "Use of a resource by the pods.",
     .fields = resource_fields},
    {.name = "containerResource",
     .type = STW_T_RAW,
     .open = true,
     .help = "Use of a resource by one container of the pods.",
     .fields = container_fields},
    {.name = "pods",
     .type = STW_T_RAW,
     .open = true,
     .help = "A metric of each of the pods.",
     .fields = pods_fields},
    {.name = "object",
     .type = STW_T_RAW,
     .open = true,
     .help = "A metric of another object in the same namespace.",
     .fields = object_fields},
    {.name = "external",
     .type = STW_T_RAW,
     .open = true,
     .help = "A metric from outside of the cluster.",
     .fields = pods_fields},
    {0},
};
const struct stw_field stw_app_metric_item = {
    .name = "", .type = STW_T_RAW, .open = true, .fields = metric_fields};

static const char *const policy_types[] = {"Pods", "Percent", NULL};
static const char *const select_policies[] = {"Max", "Min", "Disabled", NULL};

static const struct stw_field policy_fields[] = {
    {.name = "type",
     .type = STW_T_STRING,
     .help = "Whether value is a number of pods or a percentage of them.",
     .required = true,
     .values = policy_types},
    {.name = "value",
     .type = STW_T_INT,
     .help = "Most pods that one period may add or remove.",
     .required = true,
     STW_RANGE(1, INT32_MAX),
     .range_text = "must be greater than 0",
     .format = "int32"},
    {.name = "periodSeconds",
     .type = STW_T_INT,
     .help = "Seconds of a period.",
     .required = true,
     STW_RANGE(1, 1800),
     .format = "int32"},
    {0},
};
static const struct stw_field policy_item = {
    .name = "", .type = STW_T_RAW, .open = true, .fields = policy_fields};

static const struct stw_field direction_fields[] = {
    {.name = "stabilizationWindowSeconds",
     .type = STW_T_INT,
     .help = "Seconds whose earlier recommendations are considered, so that the number of pods "
             "does not go up and down.",
     STW_RANGE(0, 3600),
     .format = "int32"},
    {.name = "selectPolicy",
     .type = STW_T_STRING,
     .help = "Which policy applies: the one with the most or the fewest pods; Disabled: never "
             "scale in this direction.",
     .values = select_policies},
    {.name = "tolerance",
     .type = STW_T_QUANTITY,
     .help = "Part of the target, such as 0.05, by which a metric may differ without an effect; "
             "Kubernetes 1.35 and later."},
    {.name = "policies",
     .type = STW_T_LIST,
     .help = "How fast the number of pods changes; 1 to 20.",
     STW_RANGE(1, POLICIES_MAX),
     .item = &policy_item},
    {0},
};

const struct stw_field stw_app_behavior[] = {
    {.name = "scaleUp",
     .type = STW_T_RAW,
     .open = true,
     .help = "How pods are added.",
     .fields = direction_fields},
    {.name = "scaleDown",
     .type = STW_T_RAW,
     .open = true,
     .help = "How pods are removed.",
     .fields = direction_fields},
    {0},
};

/* --- rules */

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
static_assert(STW_COUNT(sources) + 1 == STW_COUNT(metric_types), "a source for each type");
static_assert(STW_COUNT(targets) + 1 == STW_COUNT(target_types), "a field for each target");

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

bool stw_app_metric_is(struct stw_json metric, const char *resource)
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
    return stw_app_metric_is(metric, resource) ||
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
    if (!stw_app_metric_is(metric, resource))
        return;
    stw_format(at, sizeof(at), METRICS "[%u].resource.name", index);
    if (*seen)
        stw_findings_at(f, at, STW_DUPLICATE, stw_json_path(metric, "resource.name"),
                        "there is one target of %s; %s also sets it", resource, field);
    *seen = true;
}

void stw_app_check_metrics(const struct stw_app_autoscaling *s, struct stw_findings *f)
{
    struct stw_json key, metric;
    bool cpu = s->cpu != 0, memory = s->memory != 0;
    uint32_t index = 0;
    stw_json_foreach (s->metrics, key, metric) {
        if (stw_findings_spent(f))
            return;
        for (size_t i = 0; i < STW_COUNT(sources); i++)
            check_source(&sources[i], metric, index, f);
        check_repeated(metric, index, "cpu", "targetCPUUtilizationPercentage", &cpu, f);
        check_repeated(metric, index, "memory", "targetMemoryUtilizationPercentage", &memory, f);
        index++;
    }
}

bool stw_app_has_share_of(const struct stw_app_autoscaling *s, const char *resource)
{
    struct stw_json key, metric;
    stw_json_foreach (s->metrics, key, metric)
        if (is_share_of(metric, resource))
            return true;
    return false;
}
