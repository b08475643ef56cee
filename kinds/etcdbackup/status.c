/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the status of an EtcdBackup.  No I/O. */
#include "kinds/etcdbackup/status.h"

#include "base/util.h"
#include "controller/status.h"
#include "kinds/etcdbackup/plan.h"
#include "kinds/etcdbackup/run.h"
#include "kinds/etcdbackup/state.h"
#include "kube/tree.h"

#include <stdio.h>

#define LOOK_S 600 /* longest wait: the wall clock may be set, the queue's clock is monotonic */

static void say_schedule(const struct eb *e, struct stw_aspect *a)
{
    *a = (struct stw_aspect){
        .type = "ScheduleValid", .level = STW_LEVEL_FINE, .truth = STW_TRUE, .reason = "Valid"};
    if (e->clock.mode == EB_CRON)
        STW_ASPECT_SAY(a, "\"%s\" in %s", e->spec.policy.schedule, e->spec.policy.time_zone);
    else if (e->clock.mode == EB_INTERVAL)
        STW_ASPECT_SAY(a, "every %lld s", (long long)e->clock.interval_s);
    else
        STW_ASPECT_SAY(a, "once");
}

/* By reasons that check_next_backup finds, too. */
static bool was_missing(const struct eb *e, const char *type)
{
    static const char *const reasons[] = {"SecretMissing", "SecretInvalid", "ClusterNotFound"};
    const json_t *c = stw_condition_find(json_object_get(e->object.status, "conditions"), type);
    for (size_t i = 0; i < STW_COUNT(reasons); i++)
        if (stw_streq(stw_tree_text(c, "reason"), reasons[i]))
            return true;
    return false;
}

/* A condition is kept until its subject is checked again.  One that was False by a missing Secret is
 * unknown once that is there.  A result without an endpoint is of a backup that ended before any server
 * was asked: it shows only that the inputs of earlier parts are there. */
static void set_part(const struct eb *e, struct stw_conditions *c, const char *type,
                     enum eb_snapshot_fault fault, const char *message)
{
    const struct eb_snapshot *r = &e->result;
    bool passed = r->fault == EB_SNAPSHOT_FINE ||
                  (fault < r->fault && r->fault != EB_SNAPSHOT_OTHER); /* that one says nothing */
    bool checked = e->checked || (e->collected && passed);
    if ((e->collected || e->lacks) && r->fault == fault)
        stw_condition_set(c, type, STW_FALSE, r->reason, "%s", r->err.text);
    else if (e->collected && passed && *r->endpoint)
        stw_condition_set(c, type, STW_TRUE, "Reachable", "%s", message);
    else if (!(checked && was_missing(e, type)))
        stw_condition_keep(c, type);
}

static void set_verified(const struct eb *e, struct stw_conditions *c)
{
    const struct eb_snapshot *r = &e->result;
    if (!e->collected || (r->fault != EB_SNAPSHOT_FINE && r->fault != EB_SNAPSHOT_CONTENT))
        stw_condition_keep(c, "Verified");
    else if (r->fault == EB_SNAPSHOT_CONTENT)
        stw_condition_set(c, "Verified", STW_FALSE, r->reason, "%s", r->err.text);
    else if (r->verified)
        stw_condition_set(c, "Verified", STW_TRUE, "HashMatches",
                          "the newest backup was read back and is what etcd sent");
    else
        stw_condition_set(c, "Verified", STW_FALSE, "NotVerified",
                          "backups are not read back: spec.verify is None");
}

static void set_retention(const struct eb *e, struct stw_conditions *c)
{
    if (e->spec.policy.max_backups <= 0 && e->spec.policy.max_age_s <= 0)
        return;
    if (!e->collected || e->result.fault != EB_SNAPSHOT_FINE)
        stw_condition_keep(c, "RetentionApplied");
    else if (*e->result.prune_error)
        stw_condition_set(c, "RetentionApplied", STW_FALSE, "PruneFailed",
                          "older backups could not be removed: %s", e->result.prune_error);
    else
        stw_condition_set(c, "RetentionApplied", STW_TRUE, "Applied", "%u older backups removed",
                          e->result.pruned);
}

/* Only where it is not: those that are followed are in status.request. */
static void set_request(const struct eb *e, struct stw_conditions *c)
{
    if (e->clock.mode == EB_ONCE && *e->clock.request)
        stw_condition_set(c, "RequestFollowed", STW_FALSE, "MadeOnce",
                          "the annotation backup-at is ignored: this object makes one backup only; "
                          "create another one");
}

static void set_conditions(const struct eb *e, struct stw_conditions *c)
{
    char message[STW_ETCD_URL_MAX + 64];
    struct stw_aspect *a = calloc(1, sizeof(*a));
    if (a) {
        say_schedule(e, a);
        stw_aspect_conditions(a, 1, c);
    }
    free(a);
    stw_format(message, sizeof(message), "%s was asked", e->result.endpoint);
    set_part(e, c, "SourceReachable", EB_SNAPSHOT_SOURCE, message);
    set_part(e, c, "StoreReachable", EB_SNAPSHOT_STORE, "the store took the newest backup");
    set_verified(e, c);
    set_retention(e, c);
    set_request(e, c);
}

/* --- the whole */

static void set_verdict_level(struct stw_verdict *v, enum stw_level level, const char *reason)
{
    v->level = level;
    v->reason = reason;
}

#define SAY(v, ...) stw_format((v)->message, sizeof((v)->message), __VA_ARGS__)

static void judge_open(const struct eb *e, struct stw_verdict *v)
{
    const struct eb_state *s = &e->state;
    if (*e->stuck) {
        set_verdict_level(v, STW_LEVEL_WAITING, e->stuck);
        SAY(v, "%s", e->waiting);
        return;
    }
    if (s->phase == EB_FAILED) {
        set_verdict_level(v, STW_LEVEL_WAITING, *s->reason ? s->reason : "BackupFailed");
        SAY(v, "%s", s->error);
        return;
    }
    set_verdict_level(v, STW_LEVEL_PROGRESSING, STW_REASON_PROGRESSING);
    SAY(v, "%s",
        *e->waiting                ? e->waiting
        : s->phase == EB_VERIFYING ? "the backup is read back from the store"
                                   : "a backup is being made");
}

static void judge_closed(const struct eb *e, struct stw_verdict *v)
{
    const struct eb_state *s = &e->state;
    char text[STW_TIME_LEN] = "";
    set_verdict_level(v, STW_LEVEL_FINE, s->phase == EB_SUCCEEDED ? "Succeeded" : "Scheduled");
    if (s->next_schedule != EB_NEVER)
        stw_time_format(s->next_schedule * 1000000, text);
    if (s->phase == EB_SUCCEEDED)
        SAY(v, "the newest backup has revision %llu%s%s", (unsigned long long)s->revision,
            *text ? "; the next one is made at " : "", text);
    else if (e->clock.suspend)
        SAY(v, "nothing is done while spec.backupPolicy.suspend is true");
    else
        SAY(v, "the %s backup is made at %s", json_array_size(s->artifacts) > 0 ? "next" : "first",
            text);
}

static void judge_missing(const struct eb *e, struct stw_verdict *v)
{
    char text[STW_TIME_LEN] = "";
    if (e->state.next_schedule != EB_NEVER)
        stw_time_format(e->state.next_schedule * 1000000, text);
    set_verdict_level(v, STW_LEVEL_WAITING, e->result.reason);
    SAY(v, "%s; the backup of %s needs it", e->result.err.text, text);
}

static void compute_backup_verdict(const struct eb *e, struct stw_verdict *v)
{
    if (e->stalled) {
        set_verdict_level(v, STW_LEVEL_STALLED, e->stalled);
        SAY(v, "%s", e->stalled_text);
        v->again_ms = STW_STALLED_AGAIN_MS;
        return;
    }
    if (e->refusal.reason) {
        eb_refusal_verdict(&e->refusal, v);
        return;
    }
    if (eb_plan_open(&e->clock, &e->state) && !eb_plan_suspended(&e->clock, &e->state))
        judge_open(e, v);
    else if (e->lacks)
        judge_missing(e, v);
    else
        judge_closed(e, v);
    if (e->due.wake != EB_NEVER) {
        int64_t wait = e->due.wake - e->clock.now;
        wait = STW_MIN(wait, LOOK_S);
        v->again_ms = wait > 0 ? (uint64_t)wait * 1000 : 1000;
    }
}

void eb_judge(struct eb *e, struct stw_verdict *v, json_t **ret_status)
{
    struct stw_status s;
    stw_status_begin(&s, e->run, &e->object, NULL);
    compute_backup_verdict(e, v);
    stw_verdict_conditions(v, &s.conditions);
    set_conditions(e, &s.conditions);
    eb_state_write(&e->state, s.tree);
    *ret_status = stw_status_end(&s);
}

/* --- events */

void eb_tell(struct eb *e)
{
    const struct eb_snapshot *r = &e->result;
    char text[STW_TIME_LEN];
    if (e->due.missed) {
        stw_time_format(e->due.missed_at * 1000000, text);
        stw_object_event(e->run, &e->object, true, "MissedSchedule", "Backup",
                         "missed the backup of %s: it is more than %lld s late", text,
                         (long long)e->clock.deadline_s);
    }
    if (e->due.ahead) {
        stw_time_format(e->due.ahead_at * 1000000, text);
        stw_object_event(
            e->run, &e->object, true, "ClockWasAhead", "Backup",
            "the latest instant was %s, by a clock that was ahead: the schedule goes on "
            "from now",
            text);
    }
    if (e->due.requested)
        stw_object_event(e->run, &e->object, false, "BackupRequested", "Backup",
                         "a backup is made now, as the annotation backup-at asks");
    if (!e->collected)
        return;
    if (r->fault != EB_SNAPSHOT_FINE) /* the event for Ready reports the failure */
        return;
    stw_object_event(e->run, &e->object, false, "BackupSucceeded", "Backup",
                     "saved revision %llu, %llu bytes, as \"%s\"", (unsigned long long)r->revision,
                     (unsigned long long)r->size_bytes, r->key);
    if (r->pruned > 0)
        stw_object_event(e->run, &e->object, false, "BackupsPruned", "Prune",
                         "removed %u older backups", r->pruned);
    if (*r->prune_error)
        stw_object_event(e->run, &e->object, true, "PruneFailed", "Prune", "%s", r->prune_error);
}
