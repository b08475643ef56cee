/* SPDX-License-Identifier: Apache-2.0
 *
 * Restarts of all workloads that a selector matches.
 *
 * When an instant is due, the workloads that match are recorded in the status first, all Pending,
 * together with the instant, which counts as handled from then on.  The runs that follow restart
 * those that are recorded, and no others.  The stamp decides whether one has been restarted, so a
 * run that was interrupted between two restarts can be repeated. */
#include "kinds/eru/selected.h"

#include "base/clock.h"
#include "base/util.h"
#include "kinds/eru/checks.h"
#include "kinds/eru/notes.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/state.h"
#include "kube/tree.h"

#include <stdio.h>

#define BATCH                                                                                      \
    20 /* restarts of one run: then the status is written, and other objects have a turn */
#define ERRORS_MAX 3     /* transient errors of one run */
#define INPUTS_BATCH 100 /* requests of one run for what pods read, before the last workload */
#define INPUTS_MS 5000   /* time of one run for them, before the last workload */
#define CONFLICT_AGAIN_MS 1000
#define POLL_LEAST_MS 2000
#define POLL_MOST_MS 15000

#define PENDING "Pending"
#define RESTARTING "Restarting"
#define FAILED "Failed"
#define SKIPPED "Skipped"
#define SUCCEEDED "Succeeded" /* these are counted only */

/* What a run did, for one event: the number, and names as far as they fit. */
struct tally {
    unsigned count;
    char names[300];
};

struct follow {
    struct eru *e;
    const struct eru_found_list *list;
    struct tally restarted, skipped, unchanged;
    unsigned tried, errors;
    bool conflict;
    bool full;         /* this run has read enough */
    uint64_t begin_ms; /* of this run */
};

static void count_workload(struct tally *t, const char *name, const char *reason)
{
    size_t len = strlen(t->names);
    t->count++;
    if (len + strlen(name) + strlen(reason) + 6 < sizeof(t->names))
        stw_format(t->names + len, sizeof(t->names) - len, "%s%s%s%s%s", len > 0 ? ", " : "", name,
                   *reason ? " (" : "", reason, *reason ? ")" : "");
}

static bool is_open(const json_t *workload)
{
    const char *state = stw_tree_text(workload, "state");
    return stw_streq(state, PENDING) || stw_streq(state, RESTARTING);
}

static const struct eru_found *find_workload(const struct eru_found_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (stw_streq(list->all[i].name, name))
            return &list->all[i];
    return NULL;
}

/* --- the end of one workload */

static void end_workload(struct eru *e, json_t *w, const char *state, const char *reason)
{
    stw_tree_set_text(w, "state", state);
    stw_tree_set_text(w, "reason", reason);
    (void)json_object_del(w, "uid");
    (void)json_object_del(w, "afterSeconds");
    e->state.selected.succeeded += stw_streq(state, SUCCEEDED);
    e->state.selected.failed += stw_streq(state, FAILED);
    e->state.selected.skipped += stw_streq(state, SKIPPED);
    e->recorded = true;
}

static void skip_workload(struct follow *f, json_t *w, const char *reason)
{
    if (stw_streq(reason, ERU_UNCHANGED))
        count_workload(&f->unchanged, stw_tree_text(w, "name"), "");
    else
        count_workload(&f->skipped, stw_tree_text(w, "name"), reason);
    end_workload(f->e, w, SKIPPED, reason);
}

/* --- rollouts */

static bool is_unreadable(const struct eru_found_list *list, const char *name)
{
    size_t i;
    const json_t *one;
    json_array_foreach (list->unreadable, i, one)
        if (stw_streq(json_string_value(one), name))
            return true;
    return false;
}

/* Whether it may match, although it was not found. */
static bool may_match(const struct follow *f, const json_t *w)
{
    return f->list->more || is_unreadable(f->list, stw_tree_text(w, "name"));
}

static void follow_workload(struct follow *f, json_t *w)
{
    struct eru *e = f->e;
    const struct eru_found *found = find_workload(f->list, stw_tree_text(w, "name"));
    int64_t begun_ms = stw_tree_count(w, "afterSeconds") * 1000;
    const struct eru_target *t = found ? &found->target : NULL;
    if (!found && !may_match(f, w))
        end_workload(e, w, FAILED, "NoLongerMatches");
    else if (t && (!eru_has_stamp(t, e->state.selected.instant) ||
                   !stw_streq(t->uid, stw_tree_text(w, "uid"))))
        end_workload(e, w, FAILED, "Replaced");
    else if (t && eru_is_complete(t))
        end_workload(e, w, SUCCEEDED, "");
    else if (t && t->stuck && t->observed_generation >= t->generation)
        end_workload(e, w, FAILED, "RolloutFailed");
    else if (e->took_ms - begun_ms >= e->spec.rollout_timeout_seconds * 1000)
        end_workload(e, w, FAILED, "RolloutTimeout");
}

/* --- restarts */

static void begin_workload(struct follow *f, json_t *w)
{
    struct eru *e = f->e;
    stw_tree_set_text(w, "state", RESTARTING);
    (void)json_object_set_new(w, "afterSeconds", json_integer((json_int_t)(e->took_ms / 1000)));
    e->state.selected.restarted++;
    e->state.last_restart = e->now_us / 1000000;
    e->recorded = true;
    count_workload(&f->restarted, stw_tree_text(w, "name"), "");
}

/* A failed write: other workloads are restarted nevertheless. */
static void judge_error(struct follow *f, json_t *w, const struct stw_error *err)
{
    switch (err->code) {
    case STW_ERR_CONFLICT: /* another client has changed it: it is read again */
        f->conflict = true;
        break;
    case STW_ERR_NOT_FOUND:
        skip_workload(f, w, "SkippedTargetNotFound");
        break;
    case STW_ERR_FORBIDDEN:
        end_workload(f->e, w, FAILED, "Forbidden");
        break;
    case STW_ERR_INVALID:
    case STW_ERR_TOO_LARGE:
        end_workload(f->e, w, FAILED, "ApplyFailed");
        break;
    default:
        f->errors++;
        if (f->e->err.code == STW_OK || err->code == STW_ERR_CANCELLED)
            f->e->err = *err;
        break;
    }
}

/* Checks what can be known without the workload. */
static void check_instant(const struct eru *e, struct eru_skip *s)
{
    int64_t instant = e->state.selected.instant;
    if (e->state.selected.manual)
        return;
    if (!e->spec.enabled)
        eru_skip_for(s, "SkippedDisabled", "%s", "");
    else
        eru_check_hours(e, instant, s);
}

/* True if a restart by hand must wait: as for one workload, a running rollout ends first. */
static bool must_wait(const struct eru *e)
{
    return e->state.selected.manual && eru_is_rolling(&e->target) &&
           e->took_ms < e->spec.rollout_timeout_seconds * 1000;
}

static void check_workload(struct eru *e, const json_t *w, const struct eru_found *found,
                           struct eru_skip *s)
{
    const struct eru_target *t = &e->target;
    bool manual = e->state.selected.manual;
    if (!stw_streq(t->uid, stw_tree_text(w, "uid")) ||
        (!manual && found->created > e->state.selected.instant))
        eru_skip_for(s, "SkippedCreatedLater", "%s", "");
    else if (eru_is_restarted_later(e, t, e->state.selected.instant))
        eru_skip_for(s, "SkippedRestartedLater", "%s", "");
    else if (e->ops->has_own(e, found->name))
        eru_skip_for(s, "SkippedHasOwnEru", "%s", "");
    else if (manual)
        eru_check_target(e, s);
    else
        eru_check_scheduled(e, false, s);
    if (!s->reason && manual && eru_is_rolling(t) && !must_wait(e))
        eru_skip_for(s, "SkippedRolloutRunning", "%s", "");
}

static void restart_workload(struct follow *f, json_t *w, const struct eru_found *found)
{
    struct eru *e = f->e;
    struct eru_skip s = {0};
    struct stw_error err = {0};
    char stamp[STW_TIME_LEN];
    e->target = found->target;
    if (e->target.there && stw_streq(e->target.uid, stw_tree_text(w, "uid")) &&
        eru_has_stamp(&e->target, e->state.selected.instant)) { /* by an earlier run */
        begin_workload(f, w);
        return;
    }
    check_instant(e, &s);
    if (!s.reason)
        check_workload(e, w, found, &s);
    if (s.reason) {
        skip_workload(f, w, s.reason);
        return;
    }
    if (f->tried == BATCH || f->errors == ERRORS_MAX || e->err.code == STW_ERR_CANCELLED ||
        must_wait(e))
        return;
    f->full =
        e->inputs_read >= INPUTS_BATCH || stw_now_ms(&stw_clock_system) - f->begin_ms >= INPUTS_MS;
    if (f->full)
        return;
    if (eru_check_changed(e, found->name, e->state.selected.instant, e->state.selected.manual, &s,
                          &err) != 0) {
        judge_error(f, w, &err);
        return;
    }
    if (s.reason) {
        skip_workload(f, w, s.reason);
        return;
    }
    f->tried++;
    eru_time_text(e->state.selected.instant, stamp);
    if (e->ops->stamp(e, found->name, stamp, &err) == 0)
        begin_workload(f, w);
    else
        judge_error(f, w, &err);
}

static bool is_late(const struct eru *e)
{
    return !e->state.selected.manual &&
           e->now_us / 1000000 - e->state.selected.instant > e->spec.starting_deadline_seconds;
}

static void take_pending(struct follow *f, json_t *w)
{
    const struct eru_found *found = find_workload(f->list, stw_tree_text(w, "name"));
    bool stamped = found && eru_has_stamp(&found->target, f->e->state.selected.instant);
    bool unread =
        !found && may_match(f, w) && f->e->took_ms < f->e->spec.rollout_timeout_seconds * 1000;
    if (!found && !unread)
        skip_workload(f, w, "SkippedTargetNotFound");
    else if (is_late(f->e) && !stamped)
        end_workload(f->e, w, FAILED, "MissedSchedule");
    else if (found)
        restart_workload(f, w, found);
}

/* --- the list in the status */

/* In the order in which finished ones are kept. */
enum finish { FINISH_FAILED, FINISH_SKIPPED, FINISH_UNCHANGED, FINISHES };

static bool has_finished(const json_t *w, enum finish how)
{
    bool unchanged = stw_streq(stw_tree_text(w, "reason"), ERU_UNCHANGED);
    return stw_streq(stw_tree_text(w, "state"), how == FINISH_FAILED ? FAILED : SKIPPED) &&
           unchanged == (how == FINISH_UNCHANGED);
}

/* Keeps of the finished ones some names: failed ones first.  A workload whose restart failed in this
 * run goes to the end, so that it does not keep others from their turn. */
static void order_workloads(struct eru *e, const json_t *failing)
{
    json_t *all = e->state.selected.workloads, *next = json_array(), *w;
    size_t i, named = 0;
    int rc = next ? 0 : -1;
    for (int later = 0; later < 2; later++)
        json_array_foreach (all, i, w)
            if (is_open(w) &&
                (json_object_get(failing, stw_tree_text(w, "name")) != NULL) == (later == 1))
                rc |= json_array_append(next, w);
    for (int k = 0; k < FINISHES; k++)
        json_array_foreach (all, i, w)
            if (has_finished(w, (enum finish)k) && named++ < ERU_NAMED_MAX)
                rc |= json_array_append(next, w);
    json_decref(rc == 0 ? all : next); /* out of memory: all of them stay */
    e->state.selected.workloads = rc == 0 ? next : all;
}

static size_t count_state(const struct eru *e, const char *state)
{
    size_t i, count = 0;
    const json_t *w;
    json_array_foreach (e->state.selected.workloads, i, w)
        count += stw_streq(stw_tree_text(w, "state"), state);
    return count;
}

/* --- the end of all */

/* The reason that all skipped workloads have. */
static const char *common_reason(const struct eru *e)
{
    size_t i;
    const json_t *w;
    const char *first = NULL;
    json_array_foreach (e->state.selected.workloads, i, w) {
        const char *reason = stw_tree_text(w, "reason");
        if (first && !stw_streq(first, reason))
            return "SkippedForSeveralReasons";
        first = reason;
    }
    return first ? first : "SkippedNothingMatches";
}

static void tell_failures(struct eru *e)
{
    struct tally failed = {0};
    size_t i;
    const json_t *w;
    json_array_foreach (e->state.selected.workloads, i, w)
        if (stw_streq(stw_tree_text(w, "state"), FAILED))
            count_workload(&failed, stw_tree_text(w, "name"), stw_tree_text(w, "reason"));
    stw_format(e->rollout_message, sizeof(e->rollout_message), "%lld of %lld %ss failed: %s",
               (long long)e->state.selected.failed, (long long)e->state.selected.matched,
               e->workload->kind, failed.names);
    e->rollout_reason = "RolloutFailed";
    eru_plan_event(e, true, "RolloutFailed", "%s", e->rollout_message);
}

static void end_selected(struct eru *e)
{
    struct eru_state *s = &e->state;
    int64_t instant = s->selected.instant, seconds = e->took_ms / 1000;
    s->rollout.there = false;
    if (s->selected.failed > 0) {
        eru_plan_result(e, instant, ERU_FAILED, "RolloutFailed", seconds);
        tell_failures(e);
    } else if (s->selected.restarted > 0) {
        eru_plan_result(e, instant, ERU_SUCCEEDED, "RolloutSucceeded", seconds);
        e->rollout_reason = "Complete";
        eru_plan_event(e, false, "RolloutSucceeded", "%lld %ss were restarted within %lld s",
                       (long long)s->selected.restarted, e->workload->kind, (long long)seconds);
    } else {
        eru_plan_result(e, instant, ERU_SKIPPED, common_reason(e), -1);
    }
}

/* --- what a run does */

static void tell_run(struct follow *f)
{
    struct eru *e = f->e;
    char text[STW_TIME_LEN];
    eru_time_text(e->state.selected.instant, text);
    if (f->restarted.count > 0)
        eru_plan_event(e, false, "Restarted", "restarted %u of %lld %ss for %s: %s",
                       f->restarted.count, (long long)e->state.selected.matched, e->workload->kind,
                       text, f->restarted.names);
    if (f->skipped.count > 0)
        eru_plan_event(e, true, "SkippedWorkloads", "did not restart %u of %lld %ss at %s: %s",
                       f->skipped.count, (long long)e->state.selected.matched, e->workload->kind,
                       text, f->skipped.names);
    if (f->unchanged.count > 0)
        eru_plan_event(e, false, ERU_UNCHANGED,
                       "nothing changed that the pods of %u of %lld %ss read, at %s: %s",
                       f->unchanged.count, (long long)e->state.selected.matched, e->workload->kind,
                       text, f->unchanged.names);
}

static void set_wake(struct follow *f)
{
    struct eru *e = f->e;
    size_t pending = count_state(e, PENDING), restarting = count_state(e, RESTARTING);
    if (pending + restarting == 0) {
        end_selected(e);
        return;
    }
    e->selected_wake_ms = (uint64_t)STW_MIN(STW_MAX(e->took_ms / 10, POLL_LEAST_MS), POLL_MOST_MS);
    if ((f->tried == BATCH || f->full) && pending > 0)
        e->selected_wake_ms = 1;
    else if (f->conflict)
        e->selected_wake_ms = CONFLICT_AGAIN_MS;
}

static void follow_all(struct follow *f)
{
    json_auto_t *failing = json_object();
    size_t i;
    json_t *w;
    json_array_foreach (f->e->state.selected.workloads, i, w) {
        const char *state = stw_tree_text(w, "state");
        unsigned errors = f->errors;
        if (stw_streq(state, PENDING))
            take_pending(f, w);
        else if (stw_streq(state, RESTARTING))
            follow_workload(f, w);
        if (f->errors > errors)
            (void)json_object_set_new(failing, stw_tree_text(w, "name"), json_true());
    }
    order_workloads(f->e, failing);
}

/* Names what matches and cannot be read. */
static int list_matches(struct eru *e, struct eru_found_list *list)
{
    stw_autobuf struct stw_buf names = STW_BUF_INIT(ERU_MATCHES_MAX * 300);
    size_t i;
    const json_t *one;
    if (e->ops->list(e, list, &e->err) != 0)
        return -1;
    e->looked = true;
    json_array_foreach (list->unreadable, i, one)
        stw_buf_addf(&names, "%s\"%s\"", i > 0 ? ", " : "", json_string_value(one));
    stw_format(e->unreadable, sizeof(e->unreadable), "%s", stw_buf_str(&names));
    return 0;
}

static void free_list(struct eru_found_list *list)
{
    free(list->all);
    json_decref(list->unreadable);
}

void eru_selected_follow(struct eru *e)
{
    struct eru_found_list list = {.only = e->state.selected.workloads};
    struct follow f = {.e = e, .list = &list, .begin_ms = stw_now_ms(&stw_clock_system)};
    if (!e->state.selected.there || e->state.selected.instant != e->state.rollout.instant)
        e->state.rollout.there = false; /* another client has changed the status */
    if (!e->state.rollout.there)
        return;
    if (list_matches(e, &list) == 0) {
        follow_all(&f);
        tell_run(&f);
        set_wake(&f);
    }
    free_list(&list);
}

/* --- a due instant */

static json_t *record_workloads(const struct eru_found_list *list)
{
    json_t *all = json_array();
    for (size_t i = 0; i < list->count; i++)
        if (json_array_append_new(all, json_pack("{s:s,s:s,s:s}", "name", list->all[i].name, "uid",
                                                 list->all[i].target.uid, "state", PENDING)) != 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

static void begin_selected(struct eru *e, json_t *workloads, int64_t instant, bool manual)
{
    struct eru_state *s = &e->state;
    if (s->rollout.there) /* with concurrencyPolicy Allow */
        eru_plan_result(e, s->selected.instant, ERU_FAILED, "Superseded", e->took_ms / 1000);
    json_decref(s->selected.workloads);
    memset(&s->selected, 0, sizeof(s->selected));
    s->selected.there = true;
    s->selected.instant = instant;
    s->selected.manual = manual;
    s->selected.matched = (int64_t)json_array_size(workloads);
    s->selected.workloads = workloads;
    s->rollout.there = true;
    s->rollout.instant = instant;
    s->rollout.start = e->now_us / 1000000;
    s->rollout.generation = 0;
    e->took_ms = 0;
    e->recorded = true;
    e->selected_wake_ms = 1;
}

static int count_matches(struct eru *e, struct eru_found_list *list)
{
    if (list_matches(e, list) != 0)
        return -1;
    e->state.matched = list->more ? ERU_MATCHES_MAX + 1 : (int64_t)list->count;
    return 0;
}

bool eru_selected_begin(struct eru *e, int64_t instant, bool manual)
{
    struct eru_found_list list = {0};
    struct eru_skip skip = {0};
    json_t *workloads = NULL;
    bool handled = false;
    if (count_matches(e, &list) == 0) {
        if (e->state.matched > ERU_MATCHES_MAX)
            eru_skip_for(&skip, "SkippedTooManyMatch", "more than %d match", ERU_MATCHES_MAX);
        else if (e->state.matched == 0)
            eru_skip_for(&skip, "SkippedNothingMatches", "none matches%s",
                         *e->unreadable ? " that can be read" : "");
        handled = true;
        if (skip.reason)
            eru_plan_skip(e, instant, &skip);
        else if ((workloads = record_workloads(&list)))
            begin_selected(e, workloads, instant, manual);
        else
            handled = stw_fail_memory(&e->err) == 0;
    }
    free_list(&list);
    return handled;
}

/* By the status: whether they still are, is looked at in each run. */
static bool some_were_unreadable(const struct eru *e)
{
    const json_t *found =
        stw_condition_find(json_object_get(e->object.status, "conditions"), ERU_TARGET_FOUND);
    return stw_streq(stw_condition_reason(found), ERU_UNREADABLE);
}

void eru_selected_look(struct eru *e, bool spec_changed)
{
    struct eru_found_list list = {0};
    if (e->looked || (!spec_changed && !some_were_unreadable(e) && e->state.matched > 0 &&
                      e->state.matched <= ERU_MATCHES_MAX))
        return;
    (void)count_matches(e, &list);
    free_list(&list);
}
