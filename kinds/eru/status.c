/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the status of an Eru.  No I/O. */
#include "kinds/eru/status.h"

#include "base/util.h"
#include "controller/status.h"
#include "kinds/common/product.h"
#include "kinds/eru/notes.h"
#include "kinds/eru/plan.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/state.h"
#include "schema/zones.h"

#include <stdio.h>

#define SCHEDULE_VALID "ScheduleValid"
#define ROLLOUT_COMPLETE "RolloutComplete"

enum { FIND_SCHEDULE, FIND_TARGET, FIND_CONFLICT, FIND_ERROR, ASPECTS };

static void find_schedule(const struct eru *e, struct stw_aspect *a)
{
    *a = (struct stw_aspect){
        .type = SCHEDULE_VALID, .level = STW_LEVEL_FINE, .truth = STW_TRUE, .reason = "Valid"};
    STW_ASPECT_SAY(a, "\"%s\" in %s", e->spec.schedule, e->spec.time_zone);
}

static void judge_target(const struct eru *e, struct stw_aspect *a)
{
    *a = (struct stw_aspect){
        .type = ERU_TARGET_FOUND, .level = STW_LEVEL_FINE, .truth = STW_TRUE, .reason = "Found"};
    STW_ASPECT_SAY(a, "%s \"%s\" is there", e->workload->kind, e->spec.deployment);
    if (e->target_cached)
        return;
    a->truth = STW_FALSE;
    a->reason = e->workload->not_found;
    STW_ASPECT_SAY(a, "there is no %s \"%s\" in namespace \"%s\"", e->workload->kind,
                   e->spec.deployment, e->run->ns);
    if (!e->spec.enabled)
        return;
    a->level = STW_LEVEL_WAITING; /* the watch reports its creation */
    a->again_ms = STW_STALLED_AGAIN_MS;
}

/* What the selector matched when that was last counted. */
static void find_matches(const struct eru *e, struct stw_aspect *a)
{
    bool many = e->state.matched > ERU_MATCHES_MAX;
    *a = (struct stw_aspect){
        .type = ERU_TARGET_FOUND, .level = STW_LEVEL_FINE, .truth = STW_TRUE, .reason = "Found"};
    STW_ASPECT_SAY(a, "%lld %ss match the selector", (long long)e->state.matched,
                   e->workload->kind);
    if (*e->unreadable && !many) {
        a->truth = STW_FALSE;
        a->reason = ERU_UNREADABLE;
        a->level = e->spec.enabled ? STW_LEVEL_WAITING : STW_LEVEL_FINE;
        a->again_ms = e->spec.enabled ? STW_FOREIGN_AGAIN_MS : 0;
        STW_ASPECT_SAY(a, "%lld %ss match the selector; others match and cannot be read: %s",
                       (long long)STW_MAX(e->state.matched, 0), e->workload->kind, e->unreadable);
        return;
    }
    if (e->state.matched > 0 && !many)
        return;
    a->truth = e->state.matched < 0 ? STW_UNKNOWN : STW_FALSE;
    a->reason = e->state.matched < 0 ? STW_REASON_PROGRESSING
                : many               ? "TooManyMatch"
                                     : "NothingMatches";
    if (many)
        STW_ASPECT_SAY(a,
                       "more than %d %ss in namespace \"%s\" match the selector; none is "
                       "restarted",
                       ERU_MATCHES_MAX, e->workload->kind, e->run->ns);
    else
        STW_ASPECT_SAY(a, "no %s in namespace \"%s\" matches the selector", e->workload->kind,
                       e->run->ns);
    if (!e->spec.enabled)
        return;
    a->level = many ? STW_LEVEL_STALLED : STW_LEVEL_WAITING;
    a->again_ms = many ? STW_STALLED_AGAIN_MS : STW_FOREIGN_AGAIN_MS;
}

static void find_conflict(const struct eru *e, struct stw_aspect *a)
{
    const char *slash = strchr(e->holder, '/');
    *a = (struct stw_aspect){.level = STW_LEVEL_FINE};
    if (!*e->holder)
        return;
    a->level = STW_LEVEL_STALLED;
    a->reason = "Conflict";
    a->again_ms = STW_STALLED_AGAIN_MS;
    STW_ASPECT_SAY(a, "%s \"%s\" is already handled by Eru \"%s\", which is older",
                   e->workload->kind, e->spec.deployment, slash ? slash + 1 : e->holder);
}

static void find_error(const struct eru *e, struct stw_aspect *a)
{
    *a = (struct stw_aspect){.level = STW_LEVEL_FINE};
    if (e->err.code == STW_OK)
        return;
    char what[ERU_WHAT_LEN];
    eru_what(e, what);
    stw_aspect_error(a, &e->err);
    STW_ASPECT_SAY(a, "%s could not be restarted: %s", what, e->err.text);
}

static void set_rollout(const struct eru *e, struct stw_conditions *c)
{
    char what[ERU_WHAT_LEN];
    eru_what(e, what);
    if (e->state.rollout.there)
        stw_condition_set(c, ROLLOUT_COMPLETE, STW_FALSE, "RolloutInProgress",
                          "the restart of %s is in progress", what);
    else if (!e->rollout_reason)
        stw_condition_keep(c, ROLLOUT_COMPLETE);
    else if (stw_streq(e->rollout_reason, "Complete"))
        stw_condition_set(c, ROLLOUT_COMPLETE, STW_TRUE, "Complete",
                          "the latest restart of %s is complete", what);
    else
        stw_condition_set(c, ROLLOUT_COMPLETE, STW_FALSE, e->rollout_reason, "%s",
                          e->rollout_message);
}

static void say_fine(const struct eru *e, struct stw_verdict *v)
{
    char what[ERU_WHAT_LEN];
    eru_what(e, what);
    v->reason = e->spec.enabled ? "Active" : "Disabled";
    if (e->spec.enabled && eru_selects(e))
        stw_format(v->message, sizeof(v->message), "%s are restarted by \"%s\" in %s", what,
                   e->spec.schedule, e->spec.time_zone);
    else if (e->spec.enabled)
        stw_format(v->message, sizeof(v->message), "%s is restarted by \"%s\" in %s", what,
                   e->spec.schedule, e->spec.time_zone);
    else
        stw_format(v->message, sizeof(v->message),
                   "nothing is restarted while spec.enabled is false");
}

static void set_wake(const struct eru *e, struct stw_verdict *v)
{
    uint64_t wake = eru_plan_wake_ms(e);
    if (wake > 0 && (v->again_ms == 0 || wake < v->again_ms))
        v->again_ms = wake;
}

/* "Stoping" is spelt as in the first version of this kind. */
static const char *choose_phase(const struct eru *e, const struct stw_verdict *v)
{
    if (v->level == STW_LEVEL_STALLED)
        return "Failed";
    if (e->state.rollout.there)
        return "Restarting";
    return e->spec.enabled ? "Running" : "Stoping";
}

void eru_judge(struct eru *e, struct stw_verdict *v, json_t **ret_status)
{
    struct stw_aspect *all = calloc(ASPECTS, sizeof(*all));
    struct stw_status s;
    *ret_status = NULL;
    if (!all)
        return;
    stw_status_begin(&s, e->run, &e->object, NULL);
    find_schedule(e, &all[FIND_SCHEDULE]);
    if (eru_selects(e))
        find_matches(e, &all[FIND_TARGET]);
    else
        judge_target(e, &all[FIND_TARGET]);
    find_conflict(e, &all[FIND_CONFLICT]);
    find_error(e, &all[FIND_ERROR]);
    stw_verdict_of(all, ASPECTS, v);
    if (v->level == STW_LEVEL_FINE)
        say_fine(e, v);
    if (!*e->holder)
        set_wake(e, v);
    v->exact = e->recorded;
    stw_verdict_conditions(v, &s.conditions);
    stw_aspect_conditions(all, ASPECTS, &s.conditions);
    set_rollout(e, &s.conditions);
    free(all);
    eru_state_write(&e->state, s.tree);
    (void)json_object_set_new(s.tree, "phase", json_string(choose_phase(e, v)));
    *ret_status = stw_status_end(&s);
}

/* --- an invalid spec */

static const char *schedule_trouble(const struct eru *e, struct stw_error *err)
{
    struct stw_cron c;
    struct stw_zones *zones = stw_product_zones(e->run->env);
    if (!e->spec.schedule || stw_cron_parse(e->spec.schedule, &c, err) != 0)
        return "Unparseable";
    if (stw_cron_never(&c)) {
        (void)stw_fail(err, STW_ERR_INVALID, "never matches any date");
        return "NeverMatches";
    }
    if (!e->spec.time_zone || (zones && !stw_zones_get(zones, e->spec.time_zone))) {
        (void)stw_fail(err, STW_ERR_INVALID, "unknown time zone");
        return "UnknownTimeZone";
    }
    return NULL;
}

/* Everything stays, including nextScheduleTime, except the conditions about the spec. */
json_t *eru_status_invalid(struct eru *e, const char *findings)
{
    static const char *const keep[] = {"lastScheduleTime",
                                       "lastRestartTime",
                                       "nextScheduleTime",
                                       "lastMissedTime",
                                       "missedCount",
                                       "lastResult",
                                       "activeSchedule",
                                       "currentRollout",
                                       "restartNow",
                                       "matched",
                                       "selected",
                                       "history",
                                       NULL};
    struct stw_error err = {0};
    struct stw_status s;
    const char *reason = schedule_trouble(e, &err);
    stw_status_begin(&s, e->run, &e->object, keep);
    stw_condition_set(&s.conditions, STW_READY, STW_FALSE, STW_REASON_INVALID_SPEC, "%s", findings);
    stw_condition_set(&s.conditions, STW_STALLED, STW_TRUE, STW_REASON_INVALID_SPEC, "%s",
                      findings);
    if (reason)
        stw_condition_set(&s.conditions, SCHEDULE_VALID, STW_FALSE, reason, "%s", err.text);
    else
        stw_condition_set(&s.conditions, SCHEDULE_VALID, STW_TRUE, "Valid", "\"%s\" in %s",
                          e->spec.schedule, e->spec.time_zone);
    stw_condition_keep(&s.conditions, ERU_TARGET_FOUND);
    stw_condition_keep(&s.conditions, ROLLOUT_COMPLETE);
    (void)json_object_set_new(s.tree, "phase", json_string("Failed"));
    return stw_status_end(&s);
}

/* --- events */

void eru_tell(struct eru *e)
{
    for (unsigned i = 0; i < e->event_count; i++)
        stw_object_event(e->run, &e->object, e->events[i].warning, e->events[i].reason, "Restart",
                         "%s", e->events[i].note);
}
