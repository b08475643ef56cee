/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of a rotation, and what reads the connection Secret.  The server itself stores whether an old
 * password is valid; the status stores only until when, so that a run that was killed is continued. */
#include "kinds/databaseuser/plan/rotation.h"

#include "base/util.h"
#include "kinds/databaseuser/plan/rotation_clock.h"
#include "kinds/databaseuser/plan/strategy.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/secret/readers.h"
#include "kube/tree.h"

#define US_PER_S 1000000
#define LOOK_AGAIN_MS 10000 /* at what has not been restarted, in the first ... */
#define OFTEN_S 600         /* ... seconds, and then ... */
#define LOOK_SELDOM_MS 60000
#define OVERLAP_SECONDS 3600 /* without spec.rotation, on the way back to one account */
#define UNCONFIRMED_MS                                                                             \
    10000 /* the overlap is over, and the connection Secret is not as it should be */
#define CHANGE_AGAIN_MS 100 /* a password waited for the end that has just been */
#define DUE_MS 1000         /* times in the status are whole seconds */

bool dbu_login_is_done(const struct dbu *d)
{
    return dbu_can_log_in(&d->view, &d->twins.turn);
}

bool dbu_password_is_new(const struct dbu *d)
{
    return d->view.created && dbu_is_new(&d->view, &d->twins.turn);
}

int64_t dbu_rotation_stored_end_us(const struct dbu *d)
{
    int64_t end_us;
    const char *text = stw_tree_text(d->object.status, "oldPasswordValidUntil");
    return *text && stw_time_parse(text, &end_us) == 0 ? end_us : INT64_MIN;
}

/* A step of the clock backwards, and a shorter overlap, do not leave a credential valid for longer than
 * one overlap from now. */
static int64_t compute_end_us(const struct dbu *d, enum dbu_end end)
{
    int64_t stored = dbu_rotation_stored_end_us(d), seconds = d->spec.rotation.overlap_seconds;
    if (!dbu_rotation_wanted(d) || seconds <= 0)
        seconds = OVERLAP_SECONDS;
    int64_t latest = stw_wall_us(d->run->clock) + seconds * US_PER_S;
    return end == DBU_END_BEGINS || stored == INT64_MIN ? latest : STW_MIN(stored, latest);
}

static bool is_of_logins(const struct dbu *d)
{
    return dbu_turns(&d->view, &d->twins.turn);
}

bool dbu_rotation_end(const struct dbu *d, char ret[STW_TIME_LEN], uint64_t *ret_in_ms)
{
    struct dbu_memory m;
    dbu_remember(&d->view, &m);
    if (d->view.retired && d->twins.turn.waits)
        *ret_in_ms = CHANGE_AGAIN_MS;
    if (m.end != DBU_END_BEGINS && m.end != DBU_END_STAYS)
        return false;
    int64_t end_us = compute_end_us(d, m.end);
    stw_time_format(end_us, ret);
    /* The text has whole seconds; a run shortly before the end would find nothing to do. */
    bool over = dbu_overlap_is_over(d, end_us / US_PER_S * US_PER_S, ret_in_ms);
    *ret_in_ms = over && is_of_logins(d) ? UNCONFIRMED_MS : *ret_in_ms + DUE_MS;
    *ret_in_ms = dbu_rotation_look_again_ms(d, *ret_in_ms);
    return true;
}

bool dbu_rotation_is_over(const struct dbu *d)
{
    uint64_t left_ms;
    struct dbu_memory m;
    dbu_remember(&d->view, &m);
    int64_t end_us = compute_end_us(d, m.end) / US_PER_S * US_PER_S;
    return m.end != DBU_END_BEGINS && dbu_overlap_is_over(d, end_us, &left_ms);
}

/* --- what reads the connection Secret */

static const char *stored_step(const struct dbu *d, const char *step)
{
    return stw_tree_text(json_object_get(d->object.status, "lastRotation"), step);
}

/* The connection Secret could not be written when the password was set. */
static bool is_published_late(const struct dbu *d)
{
    const char *set = stw_tree_text(d->object.status, "lastRotationTime");
    return d->report.old_valid && strcmp(stored_step(d, "publishedTime"), set) < 0;
}

bool dbu_rotation_begins(const struct dbu *d)
{
    if (dbu_has_logins(&d->view))
        return d->twins.turn.begins && d->twins.published;
    return d->view.strategy == DBU_DUAL_PASSWORD && d->connection.state == DBU_OWNED_SYNCED &&
           !d->report.password_waits && (dbu_password_is_new(d) || is_published_late(d));
}

void dbu_rotation_published(const struct dbu *d, char ret[STW_TIME_LEN])
{
    const char *stored = stored_step(d, "publishedTime");
    const char *text = *stored ? stored : stw_tree_text(d->object.status, "lastRotationTime");
    if (!dbu_rotation_begins(d))
        stw_format(ret, STW_TIME_LEN, "%s", text);
    else if (*d->connection.since)
        stw_format(ret, STW_TIME_LEN, "%s", d->connection.since);
    else
        stw_time_format(stw_wall_us(d->run->clock), ret);
}

static void look(struct dbu *d, const char *credential)
{
    char since[STW_TIME_LEN];
    dbu_rotation_published(d, since);
    dbu_readers_look(d, credential, since);
}

/* A number for logins, a fingerprint for passwords: another one is another restart. */
void dbu_rotation_follow(struct dbu *d)
{
    char number[24];
    stw_format(number, sizeof(number), "%lld", (long long)d->twins.turn.rotation);
    const char *stored = stw_tree_text(d->object.status, "passwordFingerprint");
    bool set = d->asked && *d->fingerprint && !d->report.password_waits;
    look(d, is_of_logins(d) ? number : set ? d->fingerprint : stored);
}

bool dbu_rotation_is_stuck(const struct dbu *d)
{
    return d->readers.waits > 0 && dbu_rotation_is_over(d);
}

void dbu_rotation_add_readers(const struct dbu *d, struct stw_aspect *a)
{
    const struct dbu_readers *r = &d->readers;
    size_t len = strlen(a->message);
    if (r->unseen)
        stw_format(a->message + len, sizeof(a->message) - len,
                   "; what reads the connection Secret is neither restarted nor waited for, "
                   "because steward may not list workloads and pods: update its ClusterRole");
    else if (r->waits > 1)
        stw_format(a->message + len, sizeof(a->message) - len, "; %s (and %u more)", r->first,
                   r->waits - 1);
    else if (r->waits > 0)
        stw_format(a->message + len, sizeof(a->message) - len, "; %s", r->first);
}

uint64_t dbu_rotation_look_again_ms(const struct dbu *d, uint64_t in_ms)
{
    char since[STW_TIME_LEN];
    int64_t since_us;
    uint64_t again = LOOK_AGAIN_MS;
    if (d->readers.waits == 0)
        return in_ms;
    dbu_rotation_published(d, since);
    if (stw_time_parse(since, &since_us) == 0 &&
        stw_wall_us(d->run->clock) - since_us > OFTEN_S * US_PER_S)
        again = LOOK_SELDOM_MS;
    return dbu_rotation_is_over(d) ? again : STW_MIN(in_ms, again);
}
