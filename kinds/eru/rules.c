/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of Eru that neither its schema nor CEL can state. */
#include "kinds/eru/spec.h"

#include "base/util.h"
#include "kinds/common/schedule.h"
#include "kinds/eru/workload.h"
#include "schema/names.h"

#include <stdio.h>

static void check_jitter(const struct eru_spec *e, struct stw_findings *f)
{
    char value[24];
    if (e->jitter_seconds < e->starting_deadline_seconds || e->jitter_seconds > 3600)
        return;
    stw_format(value, sizeof(value), "%lld", (long long)e->jitter_seconds);
    stw_findings_add(f, "spec.jitterSeconds", STW_INVALID, value, ERU_JITTER_TOO_LONG " (%lld)",
                     (long long)e->starting_deadline_seconds);
}

/* Refuses a workload that another Eru handles.  Warns about a missing one only when `is_new`. */
static void check_deployment(const struct stw_admission *a, const struct eru_spec *e, bool is_new,
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

static void check_windows(const struct eru_spec *e, struct stw_findings *f)
{
    struct stw_cron cron;
    bool valid = stw_check_windows("spec.windows", e->hours.windows, f);
    if (valid && e->schedule && stw_cron_parse(e->schedule, &cron, NULL) == 0 &&
        !stw_cron_never(&cron) && stw_hours_never(&e->hours, &cron))
        stw_findings_warn(f, "spec.windows: no instant of the schedule is in a window; nothing is "
                             "restarted");
}

/* Refuses both and none. */
static void check_target(const struct stw_admission *a, const struct eru_spec *e,
                         struct stw_findings *f)
{
    bool selects = stw_json_there(stw_json_path(a->object, "spec.selector"));
    if (selects && e->deployment)
        stw_findings_add(f, "spec.selector", STW_FORBIDDEN, NULL, "%s", ERU_ONE_TARGET);
    else if (!selects && !e->deployment)
        stw_findings_add(f, "spec.deploymentname", STW_REQUIRED, NULL, "%s", ERU_ONE_TARGET);
    if (selects)
        eru_check_selector(&e->selector, f);
}

void eru_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                  struct stw_findings *f)
{
    const struct eru_spec *e = spec;
    check_target(a, e, f);
    check_deployment(a, e, !old_spec, f);
    stw_check_schedule("spec.schedule", e->schedule, "restarts", f);
    stw_check_time_zone(a, "spec.timeZone", e->time_zone, f);
    check_jitter(e, f);
    check_windows(e, f);
}

bool eru_is_default(const struct eru_spec *e)
{
    return !e->enabled && stw_streq(e->schedule, ERU_SCHEDULE) &&
           stw_streq(e->time_zone, ERU_TIME_ZONE) && e->starting_deadline_seconds == 600 &&
           stw_streq(e->concurrency_policy, "Forbid") && e->require_healthy &&
           !e->only_if_changed && e->jitter_seconds == 0 && e->rollout_timeout_seconds == 600 &&
           e->history_limit == 5 && stw_streq(e->kind, "Deployment") &&
           stw_json_size(e->hours.exclude_dates) == 0 && stw_json_size(e->hours.windows) == 0;
}
