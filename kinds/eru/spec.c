/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/eru/spec.h"

#include "base/util.h"
#include "kinds/common/schedule.h"
#include "kinds/eru/workload.h"
#include "schema/names.h"
#include "schema/rows.h"

#include <stdio.h>

static const char *const policies[] = {"Forbid", "Allow", NULL};
static const char *const target_kinds[] = {"Deployment", "StatefulSet", "DaemonSet", NULL};
static const char *const phases[] = {"Running", "Restarting", "Stoping", "Failed", NULL};
static const char *const results[] = {"Succeeded", "Failed", "Skipped", "Missed", NULL};
static const char *const states[] = {"Pending", "Restarting", "Failed", "Skipped", NULL};

/* --- spec */

static const struct stw_field spec_fields[] = {
    {.name = "deploymentname",
     STW_FIELD(STW_T_STRING, struct stw_eru, deployment),
     .help = "Deployment in the same namespace that is restarted, or another workload: see "
             "targetKind. Either this or selector.",
     .immutable = true,
     STW_RANGE(1, 253),
     .pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
     STW_CHECK_SUBDOMAIN},
    {.name = "targetKind",
     STW_FIELD(STW_T_STRING, struct stw_eru, kind),
     .help = "Kind of the workload that deploymentname names, or of those that selector matches.",
     .immutable = true,
     .def = "\"Deployment\"",
     .values = target_kinds},
    {.name = "selector",
     STW_FIELD(STW_T_OBJECT, struct stw_eru, selector),
     .help = "Labels of the workloads of the same namespace that are restarted, instead of one "
             "name; when more than 100 match, none is restarted.",
     .fields = stw_eru_selector_fields},
    {.name = "enabled",
     STW_FIELD(STW_T_BOOL, struct stw_eru, enabled),
     .help = "Whether restarts are made.",
     .def = "false"},
    {.name = "schedule",
     STW_FIELD(STW_T_STRING, struct stw_eru, schedule),
     .help = "Schedule as in crontab: minute, hour, day of month, month, day of week; or @yearly, "
             "@monthly, @weekly, @daily, @hourly.",
     .def = "\"" STW_ERU_SCHEDULE "\"",
     STW_RANGE(1, STW_CRON_MAX),
     .cel = stw_cel_schedule},
    {.name = "timeZone",
     STW_FIELD(STW_T_STRING, struct stw_eru, time_zone),
     .help = "Time zone of the schedule by its IANA name, such as Europe/Berlin.",
     .def = "\"" STW_ERU_TIME_ZONE "\"",
     STW_RANGE(1, STW_TIME_ZONE_MAX),
     .cel = stw_cel_time_zone},
    {.name = "startingDeadlineSeconds",
     STW_FIELD(STW_T_INT, struct stw_eru, starting_deadline_seconds),
     .help = "How late, in seconds, a restart may still be made; one that is later is missed.",
     .def = "600",
     STW_RANGE(10, 86400),
     .format = "int32"},
    {.name = "concurrencyPolicy",
     STW_FIELD(STW_T_STRING, struct stw_eru, concurrency_policy),
     .help = "What an instant does while a rollout of the workload is still running: Forbid "
             "skips it, Allow restarts nevertheless.",
     .def = "\"Forbid\"",
     .values = policies},
    {.name = "requireHealthy",
     STW_FIELD(STW_T_BOOL, struct stw_eru, require_healthy),
     .help = "Whether a workload without all of its replicas available is left alone.",
     .def = "true"},
    {.name = "onlyIfChanged",
     STW_FIELD(STW_T_BOOL, struct stw_eru, only_if_changed),
     .help = "Whether an instant restarts a workload only if, since it was restarted before, a "
             "ConfigMap or Secret that its pods read has changed, or the image behind a tag whose "
             "registry steward may ask.",
     .def = "false"},
    {.name = "jitterSeconds",
     STW_FIELD(STW_T_INT, struct stw_eru, jitter_seconds),
     .help = "Longest delay of a restart, in seconds; the delay of each Eru is constant; less than "
             "startingDeadlineSeconds.",
     .def = "0",
     STW_RANGE(0, 3600),
     .format = "int32"},
    {.name = "rolloutTimeoutSeconds",
     STW_FIELD(STW_T_INT, struct stw_eru, rollout_timeout_seconds),
     .help = "How long, in seconds, a restart may take before it counts as failed.",
     .def = "600",
     STW_RANGE(30, 7200),
     .format = "int32"},
    {.name = "historyLimit",
     STW_FIELD(STW_T_INT, struct stw_eru, history_limit),
     .help = "How many results status.history keeps.",
     .def = "5",
     STW_RANGE(0, 20),
     .format = "int32"},
    {.name = "excludeDates",
     STW_FIELD(STW_T_LIST, struct stw_eru, hours.exclude_dates),
     .help = "Dates on which nothing is restarted, such as 2026-12-24, in timeZone; at most 366.",
     STW_RANGE(0, STW_EXCLUDE_DATES_MAX),
     .item = &stw_hours_date_item},
    {.name = "windows",
     STW_FIELD(STW_T_LIST, struct stw_eru, hours.windows),
     .help = "Times of the week in which restarts may be made, in timeZone; at most 14. Always, if "
             "absent or empty.",
     STW_RANGE(0, STW_WINDOWS_MAX),
     .item = &stw_hours_window_item},
    {0},
};

/* --- status */

static const struct stw_field active_fields[] = {
    {.name = "schedule", .type = STW_T_STRING, .help = "The schedule."},
    {.name = "timeZone", .type = STW_T_STRING, .help = "Its time zone."},
    {.name = "since",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When it took effect; no instant before counts."},
    {0},
};

static const struct stw_field rollout_fields[] = {
    {.name = "instant",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Instant that the restart was for."},
    {.name = "startTime", .type = STW_T_STRING, .format = "date-time", .help = "When it began."},
    {.name = "generation",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Generation of the workload that the restart made; absent with a selector."},
    {0},
};

static const struct stw_field manual_fields[] = {
    {.name = "token", .type = STW_T_STRING, .help = "The annotation's value."},
    {.name = "instant",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When it was seen, and what the workload was stamped with."},
    {.name = "done", .type = STW_T_BOOL, .help = "Whether it has been handled."},
    {0},
};

static const struct stw_field workload_fields[] = {
    {.name = "name", .type = STW_T_STRING, .help = "Its name."},
    {.name = "uid", .type = STW_T_STRING, .help = "Its uid, while it is Pending or Restarting."},
    {.name = "state",
     .type = STW_T_STRING,
     .help = "Pending: it is restarted next. Restarting: its rollout is running. Failed, Skipped: "
             "see reason.",
     .values = states},
    {.name = "reason", .type = STW_T_STRING, .help = "Why, in CamelCase."},
    {.name = "afterSeconds",
     .type = STW_T_INT,
     .format = "int64",
     .help = "When it was restarted: seconds after currentRollout.startTime."},
    {0},
};

static const struct stw_field workload_item = {
    .name = "", .type = STW_T_OBJECT, .fields = workload_fields};

#define COUNT_ROW(name_, text)                                                                     \
    {                                                                                              \
        .name = (name_), .type = STW_T_INT, .format = "int64", .help = (text)                      \
    }
static const struct stw_field selected_fields[] = {
    {.name = "instant",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Instant that they are restarted for."},
    {.name = "manual", .type = STW_T_BOOL, .help = "Whether it is a restart by hand."},
    COUNT_ROW("matched", "Workloads that matched."),
    COUNT_ROW("restarted", "Workloads that were restarted."),
    COUNT_ROW("succeeded", "Workloads whose rollout is complete."),
    COUNT_ROW("failed", "Workloads that could not be restarted, or whose rollout failed."),
    COUNT_ROW("skipped", "Workloads that were not restarted, for a reason."),
    {.name = "workloads",
     .type = STW_T_LIST,
     .help = "Workloads that are not finished, and of those that failed or were skipped the first "
             "20, failed ones before skipped ones.",
     STW_RANGE(0, STW_ERU_MATCHES_MAX),
     .item = &workload_item},
    {0},
};

static const struct stw_field history_fields[] = {
    {.name = "instant",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Instant of the schedule, or of a restart by hand."},
    {.name = "result", .type = STW_T_STRING, .help = "Its result.", .values = results},
    {.name = "reason", .type = STW_T_STRING, .help = "Why, in CamelCase."},
    {.name = "durationSeconds",
     .type = STW_T_INT,
     .format = "int64",
     .help = "How long the rollout took."},
    {0},
};

static const struct stw_field history_item = {
    .name = "", .type = STW_T_OBJECT, .fields = history_fields};

static const struct stw_field status_fields[] = {
    {.name = "phase",
     .type = STW_T_STRING,
     .help = "Running: restarts are made on schedule. Restarting: one is under way. Stoping: the "
             "Eru is disabled. Failed: it cannot act, see conditions.",
     .values = phases},
    {.name = "lastScheduleTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Latest instant of the schedule that has been handled."},
    {.name = "lastRestartTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the workload was last restarted."},
    {.name = "nextScheduleTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Next instant of the schedule; absent while disabled."},
    {.name = "lastMissedTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Latest instant that was missed."},
    {.name = "missedCount",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Instants missed so far; at most 100 are counted at a time."},
    {.name = "lastResult",
     .type = STW_T_STRING,
     .help = "Result of the latest instant.",
     .values = results},
    {.name = "activeSchedule",
     .type = STW_T_OBJECT,
     .help = "The schedule in effect; absent while disabled.",
     .fields = active_fields},
    {.name = "currentRollout",
     .type = STW_T_OBJECT,
     .help = "The restart that is under way.",
     .fields = rollout_fields},
    COUNT_ROW("matched",
              "Workloads that matched the selector when they were last counted; 101: more than "
              "100."),
    {.name = "selected",
     .type = STW_T_OBJECT,
     .help = "The latest restart of the workloads that matched the selector.",
     .fields = selected_fields},
    {.name = "restartNow",
     .type = STW_T_OBJECT,
     .help = "The latest restart by hand.",
     .fields = manual_fields},
    {.name = "history",
     .type = STW_T_LIST,
     .help = "Latest results, newest first.",
     STW_RANGE(0, 20),
     .item = &history_item},
    {0},
};

static const struct stw_column columns[] = {
    {.name = "Deployment", .type = "string", .json_path = ".spec.deploymentname"},
    {.name = "Kind", .type = "string", .json_path = ".spec.targetKind", .priority = 1},
    {.name = "Matched", .type = "integer", .json_path = ".status.matched", .priority = 1},
    {.name = "Schedule", .type = "string", .json_path = ".spec.schedule"},
    {.name = "TZ", .type = "string", .json_path = ".spec.timeZone"},
    {.name = "Enabled", .type = "boolean", .json_path = ".spec.enabled"},
    {.name = "Last", .type = "date", .json_path = ".status.lastScheduleTime"},
    /* a date column shows an age, which is empty for a time in the future */
    {.name = "Next", .type = "string", .json_path = ".status.nextScheduleTime"},
    {.name = "Phase", .type = "string", .json_path = ".status.phase"},
    {.name = "Result", .type = "string", .json_path = ".status.lastResult"},
    STW_COLUMN_AGE,
    {0},
};

/* --- rules */

#define ONE_TARGET "set exactly one of deploymentname, selector"

static void check_jitter(const struct stw_eru *e, struct stw_findings *f)
{
    char value[24];
    if (e->jitter_seconds < e->starting_deadline_seconds || e->jitter_seconds > 3600)
        return;
    stw_format(value, sizeof(value), "%lld", (long long)e->jitter_seconds);
    stw_findings_add(f, "spec.jitterSeconds", STW_INVALID, value,
                     "must be less than startingDeadlineSeconds (%lld)",
                     (long long)e->starting_deadline_seconds);
}

/* Refuses a workload that another Eru handles.  Warns about a missing one only when `is_new`. */
static void check_deployment(const struct stw_admission *a, const struct stw_eru *e, bool is_new,
                             struct stw_findings *f)
{
    char key[600], self[600], holder[512] = "", index[64];
    const struct eru_workload *workload = eru_workload_of(e->kind);
    const struct stw_lookup *lookup = a->env ? a->env->lookup : NULL;
    if (!lookup || !e->deployment || !stw_is_dns1123_subdomain(e->deployment))
        return;
    stw_format(key, sizeof(key), "%s/%s", a->ns ? a->ns : "", e->deployment);
    stw_format(self, sizeof(self), "%s/%s", a->ns ? a->ns : "", a->name ? a->name : "");
    stw_format(index, sizeof(index), "erus.%s", workload->index);
    if (lookup->find && lookup->find(lookup->ctx, index, key, self, holder)) {
        const char *slash = strchr(holder, '/');
        stw_findings_add(f, "spec.deploymentname", STW_FORBIDDEN, NULL,
                         "%s \"%s\" is already handled by Eru \"%s\"", workload->kind,
                         e->deployment, slash ? slash + 1 : holder);
    }
    if (is_new && !a->quiet && lookup->has &&
        lookup->has(lookup->ctx, workload->resource->plural, key) == 0)
        stw_findings_warn(f, "%s \"%s\" not found; nothing is restarted until it is there",
                          workload->kind, e->deployment);
}

static void check_windows(const struct stw_eru *e, struct stw_findings *f)
{
    struct stw_cron cron;
    bool valid = stw_check_windows("spec.windows", e->hours.windows, f);
    if (valid && e->schedule && stw_cron_parse(e->schedule, &cron, NULL) == 0 &&
        !stw_cron_never(&cron) && stw_hours_never(&e->hours, &cron))
        stw_findings_warn(f, "spec.windows: no instant of the schedule is in a window; nothing is "
                             "restarted");
}

/* Refuses both and none. */
static void check_target(const struct stw_admission *a, const struct stw_eru *e,
                         struct stw_findings *f)
{
    bool selects = stw_json_there(stw_json_path(a->object, "spec.selector"));
    if (selects && e->deployment)
        stw_findings_add(f, "spec.selector", STW_FORBIDDEN, NULL, "%s", ONE_TARGET);
    else if (!selects && !e->deployment)
        stw_findings_add(f, "spec.deploymentname", STW_REQUIRED, NULL, "%s", ONE_TARGET);
    if (selects)
        stw_eru_check_selector(&e->selector, f);
}

static void validate_eru(const struct stw_admission *a, const void *spec, const void *old_spec,
                         struct stw_findings *f)
{
    const struct stw_eru *e = spec;
    check_target(a, e, f);
    check_deployment(a, e, !old_spec, f);
    stw_check_schedule("spec.schedule", e->schedule, "restarts", f);
    stw_check_time_zone(a, "spec.timeZone", e->time_zone, f);
    check_jitter(e, f);
    check_windows(e, f);
}

#define HAS_LABELS "has(self.selector) && has(self.selector.matchLabels)"
#define HAS_EXPRESSIONS "has(self.selector) && has(self.selector.matchExpressions)"
#define OF_EXPRESSIONS(code_, condition, text)                                                     \
    {                                                                                              \
        .at = "selector.matchExpressions", .type = STW_CEL_ENTRIES, .code = (code_),               \
        .rule = "!(" HAS_EXPRESSIONS ") || self.selector.matchExpressions.all(e, " condition ")",  \
        .message = (text),                                                                         \
    }

/* What these functions refuse, in CEL. */
static const struct stw_cel_rule rules[] = {
    {.at = "selector",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.selector) || !has(self.deploymentname)",
     .message = ONE_TARGET},
    {.at = "deploymentname",
     .code = STW_REQUIRED,
     .rule = "has(self.selector) || has(self.deploymentname)",
     .message = ONE_TARGET},
    {.at = "selector",
     .code = STW_REQUIRED,
     .rule = "!has(self.selector) || (" HAS_LABELS " && self.selector.matchLabels.size() > 0) || "
             "(" HAS_EXPRESSIONS " && self.selector.matchExpressions.size() > 0)",
     .message = STW_ERU_SELECTOR_EMPTY},
    STW_CEL_LABELS(HAS_LABELS, "self.selector.matchLabels", "selector.matchLabels"),
    OF_EXPRESSIONS(STW_REQUIRED,
                   "!(e.operator in ['In', 'NotIn']) || (has(e.values) && e.values.size() > 0)",
                   STW_ERU_VALUES_NEEDED),
    OF_EXPRESSIONS(STW_FORBIDDEN,
                   "e.operator in ['In', 'NotIn'] || !has(e.values) || e.values.size() == 0",
                   STW_ERU_VALUES_REFUSED),
    {.at = "jitterSeconds",
     .code = STW_INVALID,
     .rule = "self.jitterSeconds < self.startingDeadlineSeconds",
     .message = "must be less than startingDeadlineSeconds"},
    {0},
};

bool stw_eru_is_default(const struct stw_eru *e)
{
    return !e->enabled && stw_streq(e->schedule, STW_ERU_SCHEDULE) &&
           stw_streq(e->time_zone, STW_ERU_TIME_ZONE) && e->starting_deadline_seconds == 600 &&
           stw_streq(e->concurrency_policy, "Forbid") && e->require_healthy &&
           !e->only_if_changed && e->jitter_seconds == 0 && e->rollout_timeout_seconds == 600 &&
           e->history_limit == 5 && stw_streq(e->kind, "Deployment") &&
           stw_json_size(e->hours.exclude_dates) == 0 && stw_json_size(e->hours.windows) == 0;
}

static const char *const short_names[] = {"eru", NULL};

const struct stw_kind stw_kind_eru = {
    .group = "mtsre.meitu.com",
    .version = "v1",
    .kind = "Eru",
    .plural = "erus",
    .namespaced = true,
    .singular = "eru",
    .short_names = short_names,
    .help = "Eru restarts Deployments, StatefulSets or DaemonSets on a schedule.",
    .spec = spec_fields,
    .spec_size = sizeof(struct stw_eru),
    .status = status_fields,
    .cel = rules,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .validate = validate_eru,
};
