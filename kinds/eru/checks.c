/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the rollout of a workload is, and whether the workload may be restarted now.  No I/O
 * except through e->ops. */
#include "kinds/eru/checks.h"

#include "kinds/eru/notes.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/state.h"

#include <stdarg.h>
#include <stdio.h>

void eru_skip_for(struct eru_skip *s, const char *reason, const char *fmt, ...)
{
    va_list ap;
    s->reason = reason;
    va_start(ap, fmt);
    stw_vformat(s->why, sizeof(s->why), fmt, ap);
    va_end(ap);
}

/* --- rollouts */

bool eru_is_complete(const struct eru_target *t)
{
    return t->observed_generation >= t->generation && t->updated >= t->to_update &&
           t->replicas == t->updated && t->available >= t->wanted;
}

bool eru_is_rolling(const struct eru_target *t)
{
    return !t->stuck && (t->observed_generation < t->generation || t->updated < t->to_update ||
                         t->replicas > t->updated);
}

bool eru_has_stamp(const struct eru_target *t, int64_t instant)
{
    char stamp[STW_TIME_LEN];
    eru_time_text(instant, stamp);
    return stw_streq(t->stamp, stamp);
}

bool eru_is_restarted_later(const struct eru *e, const struct eru_target *t, int64_t instant)
{
    int64_t us;
    if (stw_time_parse(t->stamp, &us) != 0)
        return false;
    return us / 1000000 > instant && us <= e->now_us;
}

/* --- whether a workload may be restarted */

void eru_check_target(const struct eru *e, struct eru_skip *s)
{
    const struct eru_target *t = &e->target;
    if (!t->there)
        eru_skip_for(s, "SkippedTargetNotFound", "there is no such %s", e->workload->kind);
    else if (t->paused)
        eru_skip_for(s, "SkippedTargetPaused", "its rollouts are paused");
    else if (t->by_hand)
        eru_skip_for(s, "SkippedOnDelete", "its updateStrategy is OnDelete");
    else if (t->to_update == 0)
        eru_skip_for(s, "SkippedScaledToZero", "%s",
                     t->wanted > 0 ? "its partition keeps all pods as they are"
                                   : "it is scaled to zero");
}

void eru_check_hours(const struct eru *e, int64_t instant, struct eru_skip *s)
{
    const int64_t times[] = {instant, e->now_us / 1000000};
    for (size_t i = 0; !s->reason && i < STW_COUNT(times); i++) {
        const char *late = i > 0 ? "it is late, and now " : "";
        enum stw_hours_verdict hours = stw_hours_at(&e->spec.hours, e->zone, times[i]);
        if (hours == STW_HOURS_EXCLUDED)
            eru_skip_for(s, "SkippedExcluded", "%sthe date in %s is one of excludeDates", late,
                         e->spec.time_zone);
        else if (hours == STW_HOURS_OUTSIDE)
            eru_skip_for(s, "SkippedExcluded", "%sthe time in %s is outside of all windows", late,
                         e->spec.time_zone);
    }
}

void eru_check_scheduled(const struct eru *e, bool rolling, struct eru_skip *s)
{
    const struct eru_target *t = &e->target;
    bool forbid = stw_streq(e->spec.concurrency_policy, "Forbid");
    eru_check_target(e, s);
    if (s->reason)
        return;
    if (forbid && (rolling || eru_is_rolling(t)))
        eru_skip_for(s, "SkippedRolloutRunning", "a rollout of it is still running");
    else if (e->spec.require_healthy && !eru_is_rolling(t) && t->available < t->wanted)
        eru_skip_for(s, "SkippedTargetUnhealthy", "%lld of %lld replicas are available",
                     (long long)t->available, (long long)t->wanted);
}

/* --- whether something has changed */

/* Splits ERU_INPUTS: the hash of objects, and that of images. */
struct recorded {
    char objects[STW_HASH_LEN], images[STW_HASH_LEN];
};

static void read_recorded(const char *text, struct recorded *ret)
{
    size_t len = strcspn(text, "-");
    *ret = (struct recorded){0};
    if (stw_format_whole(ret->objects, sizeof(ret->objects), "%.*s", (int)len, text) != 0 ||
        (text[len] &&
         stw_format_whole(ret->images, sizeof(ret->images), "%s", text + len + 1) != 0))
        *ret = (struct recorded){0};
}

/* While a digest is not known, the recorded hash stays: a tag that has moved counts once it is
 * known again. */
static void set_inputs(struct eru *e, const struct eru_inputs *now, const struct recorded *before)
{
    const char *images = *now->unknown ? before->images : now->image_hash;
    stw_format(e->inputs, sizeof(e->inputs), "%s%s%s", now->digest, *images ? "-" : "", images);
}

static void judge_change(const struct eru_inputs *now, const struct recorded *before,
                         struct eru_skip *s)
{
    bool objects = now->count > 0 && !stw_streq(now->digest, before->objects);
    bool images = *now->image_hash && !stw_streq(now->image_hash, before->images);
    if (*now->missing)
        eru_skip_for(s, "SkippedInputNotFound", "%s, which its pods read, does not exist",
                     now->missing);
    else if (objects || images)
        return;
    else if (*now->unknown)
        eru_skip_for(s, "SkippedImageDigestUnknown", "nothing else changed, and of image %.250s",
                     now->unknown);
    else if (now->count == 0 && now->images == 0)
        eru_skip_for(s, ERU_UNCHANGED, "its pods read no ConfigMap and no Secret");
    else
        eru_skip_for(s, ERU_UNCHANGED, "nothing changed that its pods %s",
                     now->images > 0 ? "read or run" : "read");
    s->unchanged = stw_streq(s->reason, ERU_UNCHANGED);
}

static void tell_unknown(struct eru *e, const char *name, const struct eru_inputs *now)
{
    if (!*now->unknown || e->unknown_reported)
        return;
    e->unknown_reported = true;
    eru_plan_event(e, true, "ImageDigestUnknown",
                   "%s \"%.100s\": images are not compared at this instant: %.240s",
                   e->workload->kind, name, now->unknown);
}

/* More objects than are compared may have changed unseen: then each instant restarts. */
int eru_check_changed(struct eru *e, const char *name, int64_t instant, bool manual,
                      struct eru_skip *s, struct stw_error *err)
{
    struct eru_inputs now = {0};
    struct recorded before;
    /* Another Eru of this workload may compare what was recorded. */
    stw_format(e->inputs, sizeof(e->inputs), "%s", e->spec.only_if_changed ? "" : e->target.inputs);
    if (!e->spec.only_if_changed)
        return 0;
    e->inputs_instant = instant;
    if (e->ops->inputs(e, name, &now, err) != 0)
        return -1;
    e->inputs_read += 1 + now.count + now.images;
    if (now.more)
        return 0;
    read_recorded(e->target.inputs, &before);
    set_inputs(e, &now, &before);
    if (!manual)
        judge_change(&now, &before, s);
    if (!s->reason || eru_selects(e)) /* otherwise the skip says it */
        tell_unknown(e, name, &now);
    return 0;
}
