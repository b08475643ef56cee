/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides what must be done now, from the status, the spec, the workload and the time.  The stamp
 * on the workload decides whether an instant has been handled, so a run that was interrupted at
 * any point can simply be repeated. */
#include "kinds/eru/plan.h"

#include "base/util.h"
#include "kinds/common/schedule.h"
#include "kinds/eru/checks.h"
#include "kinds/eru/notes.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/selected.h"
#include "kinds/eru/state.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static int64_t get_now_seconds(const struct eru *e)
{
    return e->now_us / 1000000;
}

/* The same in each run of an Eru, and evenly distributed over Erus. */
int64_t eru_plan_jitter(const struct eru *e)
{
    if (e->spec.jitter_seconds <= 0)
        return 0;
    struct stw_hash h = stw_hash_bytes(e->object.uid, strlen(e->object.uid));
    return (int64_t)(h.lo % (uint64_t)(e->spec.jitter_seconds + 1));
}

static bool read_target_once(struct eru *e)
{
    if (!e->looked)
        e->looked = e->ops->look(e, &e->err) == 0;
    return e->looked;
}

/* --- the active schedule */

static int64_t get_created_seconds(const struct eru *e)
{
    int64_t us;
    return stw_time_parse(e->object.created, &us) == 0 ? us / 1000000 : get_now_seconds(e);
}

static int64_t seen_generation(const struct eru *e)
{
    return json_integer_value(json_object_get(e->object.status, "observedGeneration"));
}

static void put_into_force(struct eru *e)
{
    struct eru_state *s = &e->state;
    bool first = json_object_size(e->object.status) == 0 || seen_generation(e) < 1;
    if (!e->spec.enabled) {
        s->active.there = false;
        return;
    }
    if (s->active.there && stw_streq(s->active.schedule, e->spec.schedule) &&
        stw_streq(s->active.time_zone, e->spec.time_zone))
        return;
    s->active.there = true;
    s->active.since =
        STW_MIN(first ? get_created_seconds(e) : e->ops->changed_at(e), get_now_seconds(e));
    stw_format(s->active.schedule, sizeof(s->active.schedule), "%s", e->spec.schedule);
    stw_format(s->active.time_zone, sizeof(s->active.time_zone), "%s", e->spec.time_zone);
}

/* --- the current rollout */

static void end_rollout(struct eru *e, enum eru_result result, const char *reason)
{
    struct eru_state *s = &e->state;
    eru_plan_result(e, s->rollout.instant, result, reason, e->took_ms / 1000);
    s->rollout.there = false;
}

static void rollout_failed(struct eru *e, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void rollout_failed(struct eru *e, const char *reason, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(e->rollout_message, sizeof(e->rollout_message), fmt, ap);
    va_end(ap);
    e->rollout_reason = stw_streq(reason, "RolloutTimeout") ? reason : "RolloutFailed";
    end_rollout(e, ERU_FAILED, reason);
    eru_plan_event(e, true, "RolloutFailed", "%s", e->rollout_message);
}

/* Setting the clock during a rollout neither ends nor prolongs it. */
static void measure_rollout(struct eru *e)
{
    int64_t begin = e->state.rollout.start;
    if (e->state.rollout.there)
        e->took_ms = e->ops->took_ms(e, STW_MAX(get_now_seconds(e) - begin, 0) * 1000);
}

static void follow_rollout(struct eru *e)
{
    struct eru_state *s = &e->state;
    const struct eru_target *t = &e->target;
    const char *kind = e->workload->kind, *name = e->spec.deployment;
    if (!s->rollout.there || !read_target_once(e))
        return;
    if (!t->there) {
        rollout_failed(e, e->workload->not_found, "%s \"%s\" was deleted during its rollout", kind,
                       name);
    } else if (!eru_has_stamp(t, s->rollout.instant)) {
        rollout_failed(e, "Replaced", "%s \"%s\" was replaced or rolled back during its rollout",
                       kind, name);
    } else if (eru_is_complete(t)) {
        end_rollout(e, ERU_SUCCEEDED, "RolloutSucceeded");
        e->rollout_reason = "Complete";
        eru_plan_event(e, false, "RolloutSucceeded", "%s \"%s\" was restarted within %lld s", kind,
                       name, (long long)(e->took_ms / 1000));
    } else if (t->stuck && t->observed_generation >= t->generation) {
        rollout_failed(e, "RolloutFailed", "%s \"%s\": %s", kind, name, t->stuck_message);
    } else if (e->took_ms >= e->spec.rollout_timeout_seconds * 1000) {
        rollout_failed(e, "RolloutTimeout",
                       "%s \"%s\" was not rolled out within %lld s: %lld of %lld replicas "
                       "are up to date, %lld are available",
                       kind, name, (long long)e->spec.rollout_timeout_seconds,
                       (long long)t->updated, (long long)t->to_update, (long long)t->available);
    }
}

/* --- a restart */

static void begin_rollout(struct eru *e, int64_t instant)
{
    struct eru_state *s = &e->state;
    char text[STW_TIME_LEN];
    if (s->rollout.there) /* with concurrencyPolicy Allow */
        end_rollout(e, ERU_FAILED, "Superseded");
    s->rollout.there = true;
    s->rollout.instant = instant;
    s->rollout.start = get_now_seconds(e);
    e->took_ms = 0;
    s->rollout.generation = e->target.generation;
    s->last_restart = get_now_seconds(e);
    eru_time_text(instant, text);
    eru_plan_event(e, false, "Restarted", "restarted %s \"%s\" for %s", e->workload->kind,
                   e->spec.deployment, text);
}

/* Returns true if the workload has the stamp, from this run or an earlier one. */
static bool restart_workload(struct eru *e, int64_t instant)
{
    char stamp[STW_TIME_LEN];
    eru_time_text(instant, stamp);
    if (!eru_has_stamp(&e->target, instant) &&
        e->ops->stamp(e, e->spec.deployment, stamp, &e->err) != 0)
        return false;
    if (!e->state.rollout.there || e->state.rollout.instant != instant)
        begin_rollout(e, instant);
    return true;
}

/* --- instants of the schedule */

static int64_t base_time(const struct eru *e)
{
    return STW_MAX(e->state.last_schedule, e->state.active.since);
}

/* Records the instants before `newest` for which nothing was done. */
static void note_older(struct eru *e, int64_t newest)
{
    struct eru_state *s = &e->state;
    int64_t last;
    unsigned count =
        stw_calendar_count(&e->cron, e->zone, base_time(e), newest - 1, ERU_MISSED_MAX);
    char text[STW_TIME_LEN];
    if (count == 0 || stw_calendar_last(&e->cron, e->zone, newest - 1, &last) != 0)
        return;
    s->missed_count += count;
    s->last_missed = last;
    eru_time_text(last, text);
    eru_plan_event(e, true, "MissedSchedule", "missed %s%u instants, the latest at %s",
                   count == ERU_MISSED_MAX ? "at least " : "", count, text);
}

static void record_missed_instant(struct eru *e, int64_t instant)
{
    struct eru_state *s = &e->state;
    char text[STW_TIME_LEN];
    eru_time_text(instant, text);
    s->missed_count++;
    s->last_missed = instant;
    eru_plan_result(e, instant, ERU_MISSED, "MissedSchedule", -1);
    eru_plan_event(e, true, "MissedSchedule",
                   "missed the restart of %s: it is %lld s late, and %lld s are allowed", text,
                   (long long)(get_now_seconds(e) - instant),
                   (long long)e->spec.starting_deadline_seconds);
}

static bool act_on_selected(struct eru *e, int64_t instant)
{
    struct eru_skip s = {0};
    eru_check_hours(e, instant, &s);
    if (!s.reason && e->state.rollout.there && stw_streq(e->spec.concurrency_policy, "Forbid"))
        eru_skip_for(&s, "SkippedRolloutRunning", "an earlier restart is still running");
    if (!s.reason)
        return eru_selected_begin(e, instant, false);
    eru_plan_skip(e, instant, &s);
    return true;
}

/* An earlier run may have been interrupted after the restart. */
static bool act_on_late(struct eru *e, int64_t instant)
{
    if (!eru_selects(e) && !read_target_once(e))
        return false;
    if (!eru_selects(e) && e->target.there && eru_has_stamp(&e->target, instant))
        return restart_workload(e, instant);
    record_missed_instant(e, instant);
    return true;
}

/* Returns true if the instant has been handled. */
static bool act_on(struct eru *e, int64_t instant)
{
    struct eru_skip s = {0};
    if (get_now_seconds(e) - instant > e->spec.starting_deadline_seconds)
        return act_on_late(e, instant);
    if (stw_hours_at(&e->spec.hours, e->zone, instant) != STW_HOURS_ALLOWED) {
        eru_check_hours(e, instant, &s); /* without a read: there is nothing to restart */
        eru_plan_skip(e, instant, &s);
        return true;
    }
    if (eru_selects(e))
        return act_on_selected(e, instant);
    if (!read_target_once(e))
        return false;
    if (e->target.there && eru_has_stamp(&e->target, instant))
        return restart_workload(e, instant);
    if (e->target.there && eru_is_restarted_later(e, &e->target, instant))
        return true;
    eru_check_hours(e, instant, &s);
    if (!s.reason)
        eru_check_scheduled(e, e->state.rollout.there, &s);
    if (!s.reason && eru_check_changed(e, e->spec.deployment, instant, false, &s, &e->err) != 0)
        return false;
    if (!s.reason)
        return restart_workload(e, instant);
    eru_plan_skip(e, instant, &s);
    return true;
}

/* What a clock that was ahead has recorded counts as now: instants before it would be skipped. */
static void forget_future(struct eru *e, int64_t now)
{
    struct eru_state *s = &e->state;
    int64_t newest = now;
    char text[STW_TIME_LEN];
    if (!stw_schedule_is_ahead(&e->cron, e->zone, base_time(e), now))
        return;
    eru_time_text(base_time(e), text);
    (void)stw_calendar_last(&e->cron, e->zone, now, &newest);
    s->last_schedule = STW_MIN(s->last_schedule, newest);
    s->active.since = STW_MIN(s->active.since, now);
    eru_plan_event(
        e, true, "ClockWasAhead",
        "the latest instant was %s, by a clock that was ahead: the schedule goes on from "
        "now",
        text);
}

static void follow_schedule(struct eru *e)
{
    struct eru_state *s = &e->state;
    int64_t newest, from = get_now_seconds(e) - eru_plan_jitter(e);
    s->next_schedule = ERU_NEVER;
    if (!s->active.there)
        return;
    forget_future(e, from);
    if (stw_calendar_last(&e->cron, e->zone, from, &newest) == 0 && newest > base_time(e)) {
        if (act_on(e, newest)) {
            note_older(e, newest);
            s->last_schedule = newest;
        }
    }
    (void)stw_calendar_next(&e->cron, e->zone, STW_MAX(base_time(e), from), &s->next_schedule);
}

/* --- manual restarts */

/* The stamp has whole seconds: an instant that was used before would change nothing. */
static int64_t new_instant(const struct eru *e)
{
    const struct eru_state *s = &e->state;
    int64_t instant = get_now_seconds(e);
    while (instant == s->manual.instant || instant == s->last_schedule ||
           instant == s->last_restart)
        instant++;
    return instant;
}

static void take_token(struct eru *e)
{
    struct eru_state *s = &e->state;
    if (stw_streq(s->manual.token, e->token))
        return;
    stw_format(s->manual.token, sizeof(s->manual.token), "%s", e->token);
    s->manual.instant = new_instant(e);
    s->manual.done = false;
}

/* The token is first stored in the status, with the instant that will be its stamp; `known`: it is
 * stored.  So it restarts once, even if a process dies in between. */
static void follow_token(struct eru *e, bool known)
{
    struct eru_state *s = &e->state;
    struct eru_skip skip = {0};
    if (s->manual.done || !*s->manual.token || !known)
        return;
    if (eru_selects(e)) {
        s->manual.done = !s->rollout.there && eru_selected_begin(e, s->manual.instant, true);
        return;
    }
    if (!read_target_once(e))
        return;
    if (e->target.there && eru_has_stamp(&e->target, s->manual.instant)) {
        s->manual.done = restart_workload(e, s->manual.instant);
        return;
    }
    eru_check_target(e, &skip);
    if (skip.reason) {
        eru_plan_skip(e, s->manual.instant, &skip);
        s->manual.done = true;
    } else if (!s->rollout.there && !eru_is_rolling(&e->target) &&
               eru_check_changed(e, e->spec.deployment, s->manual.instant, true, &skip, &e->err) ==
                   0) {
        s->manual.done = restart_workload(e, s->manual.instant);
    }
}

/* A restart by hand that was interrupted after the stamp: it is recognized by the stamp, which the
 * next instant of the schedule replaces. */
static void finish_token(struct eru *e)
{
    int64_t instant = e->state.manual.instant;
    if (!eru_plan_waits(e) || eru_selects(e) || !read_target_once(e))
        return;
    if (e->target.there && eru_has_stamp(&e->target, instant))
        e->state.manual.done = restart_workload(e, instant);
}

void eru_plan(struct eru *e)
{
    bool known = stw_streq(e->state.manual.token, e->token);
    put_into_force(e);
    measure_rollout(e);
    if (known)
        finish_token(e);
    if (eru_selects(e))
        eru_selected_follow(e);
    else
        follow_rollout(e);
    if (e->err.code == STW_OK)
        follow_schedule(e);
    if (e->err.code == STW_OK && e->token[0]) {
        take_token(e);
        follow_token(e, known);
    }
    /* The stamp may be from an earlier run.  Its rollout may be complete already, and no further
     * event would report that. */
    if (e->err.code == STW_OK && !eru_selects(e))
        follow_rollout(e);
    if (e->err.code == STW_OK && eru_selects(e))
        eru_selected_look(e, e->object.generation != seen_generation(e));
    measure_rollout(e); /* records the start of a rollout that has just begun */
}

/* --- the next wake-up */

bool eru_plan_waits(const struct eru *e)
{
    return *e->state.manual.token && !e->state.manual.done;
}

static void set_earlier_wake(uint64_t *ms, int64_t wait_ms)
{
    uint64_t wait = (uint64_t)STW_MAX(wait_ms, 0) + 1;
    if (*ms == 0 || wait < *ms)
        *ms = wait;
}

uint64_t eru_plan_wake_ms(const struct eru *e)
{
    const struct eru_state *s = &e->state;
    uint64_t ms = 0;
    if (s->next_schedule != ERU_NEVER)
        set_earlier_wake(&ms,
                         ((s->next_schedule + eru_plan_jitter(e)) * 1000000 - e->now_us) / 1000);
    if (e->selected_wake_ms > 0)
        set_earlier_wake(&ms, (int64_t)e->selected_wake_ms);
    if (s->rollout.there && !eru_selects(e))
        set_earlier_wake(&ms, e->spec.rollout_timeout_seconds * 1000 - e->took_ms);
    /* so far the token is only stored */
    if (eru_plan_waits(e) && (eru_selects(e) ? !s->rollout.there : !e->looked))
        set_earlier_wake(&ms, 0);
    return ms;
}
