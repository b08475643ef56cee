/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotation of a password without a failed login: a server with dual passwords leaves the old one
 * valid while clients change to the new one (twin.c has what other servers do).  The server itself stores whether an old password is
 * valid; the status stores only until when, so that a run that was killed is continued. */
#include "base/util.h"
#include "kinds/databaseuser/run_priv.h"
#include "kube/tree.h"

#define US_PER_S 1000000
#define LOOK_AGAIN_MS 10000 /* at what has not been restarted, in the first ... */
#define OFTEN_S 600         /* ... seconds, and then ... */
#define LOOK_SELDOM_MS 60000

bool dbu_login_is_done(const struct dbuser *d)
{
    return d->report.trouble == STW_SQL_FINE || (d->report.login_done && !dbu_twins_used(d));
}

bool dbu_rotation_wanted(const struct dbuser *d)
{
    return stw_json_there(stw_json_path(d->object.root, "spec.rotation"));
}

bool dbu_rotation_keeps_old(const struct dbuser *d)
{
    const char *strategy = d->spec.rotation.strategy;
    if (!dbu_rotation_wanted(d) || !strategy)
        return false;
    return stw_streq(strategy, "DualPassword") ||
           (stw_streq(strategy, "Auto") && d->target && d->target->engine == STW_ENGINE_MYSQL);
}

bool dbu_password_is_new(const struct dbuser *d)
{
    const json_t *status = d->object.status;
    if (dbu_twins_active(d))
        return d->twins.is_new;
    if (d->secret.state != DBU_SECRET_FOUND || !dbu_is_created(&d->object))
        return false;
    if (*d->fingerprint)
        return !stw_streq(d->fingerprint, stw_tree_text(status, "passwordFingerprint"));
    return !stw_streq(d->secret.resource_version, stw_tree_text(status, "secretResourceVersion"));
}

/* INT64_MIN: none. */
static int64_t stored_end_us(const struct dbuser *d)
{
    int64_t end_us;
    const char *text = stw_tree_text(d->object.status, "oldPasswordValidUntil");
    return *text && stw_time_parse(text, &end_us) == 0 ? end_us : INT64_MIN;
}

/* Applications can read the password of the Secret. */
static bool is_published(const struct dbuser *d)
{
    const struct stw_buf *want = &d->secret.value, *have = &d->published;
    return want->len == have->len && memcmp(want->data, have->data, want->len) == 0;
}

/* A password that was changed on the server by another client is replaced at once.  Without an overlap
 * no older password stays valid, also one that the status does not have: of a run that was killed.
 *
 * A new password is set when the status has no end, which a run before it removes.  Otherwise a run that
 * is killed after it set the password leaves the end of the password before the last, and the next run
 * would count that for the last one, which applications still have. */
void dbu_rotation_plan(const struct dbuser *d, struct stw_account *ret)
{
    int64_t end_us = stored_end_us(d);
    uint64_t left_ms;
    bool keeps = dbu_rotation_keeps_old(d);
    ret->keep_old = keeps && dbu_password_is_new(d);
    ret->set_later = ret->keep_old && end_us != INT64_MIN;
    ret->discard_old = !keeps || (end_us != INT64_MIN && d->readers.waits == 0 &&
                                  dbu_overlap_is_over(d, end_us, &left_ms));
    ret->old_stays = keeps && !ret->discard_old;
    if (keeps && d->published.len > 0 && !is_published(d))
        ret->published =
            (struct stw_sql_secret){.data = d->published.data, .len = d->published.len};
}

/* A step of the clock backwards, and a shorter overlap, do not leave it valid for longer than one
 * overlap from now. */
static int64_t compute_end_us(const struct dbuser *d)
{
    int64_t latest_us = stw_wall_us(d->run->clock) + d->spec.rotation.overlap_seconds * US_PER_S;
    int64_t end_us = stored_end_us(d);
    bool begins = d->report.password_changed || dbu_password_is_new(d) || end_us == INT64_MIN;
    return d->report.password_waits && end_us != INT64_MIN ? STW_MIN(end_us, latest_us)
           : begins                                        ? latest_us
                                                           : STW_MIN(end_us, latest_us);
}

bool dbu_rotation_end(const struct dbuser *d, char ret[STW_TIME_LEN], uint64_t *ret_in_ms)
{
    if (dbu_twins_active(d))
        return dbu_twins_end(d, ret, ret_in_ms);
    bool set = d->report.password_changed || dbu_password_is_new(d);
    bool valid = dbu_login_is_done(d) ? d->report.old_valid : set;
    if (!valid || !dbu_rotation_keeps_old(d) || d->report.password_next)
        return false;
    int64_t end_us = compute_end_us(d);
    stw_time_format(end_us, ret);
    /* The text has whole seconds; a run shortly before the end would find nothing to do. */
    (void)dbu_overlap_is_over(d, end_us / US_PER_S * US_PER_S, ret_in_ms);
    *ret_in_ms = dbu_rotation_look_again_ms(d, *ret_in_ms + 1000);
    return true;
}

bool dbu_rotation_is_over(const struct dbuser *d)
{
    uint64_t left_ms;
    if (dbu_twins_active(d))
        return dbu_twins_is_over(d);
    return dbu_overlap_is_over(d, compute_end_us(d) / US_PER_S * US_PER_S, &left_ms);
}

/* --- what reads the connection Secret */

static const char *stored_step(const struct dbuser *d, const char *step)
{
    return stw_tree_text(json_object_get(d->object.status, "lastRotation"), step);
}

/* The connection Secret could not be written when the password was set. */
static bool is_published_late(const struct dbuser *d)
{
    const char *set = stw_tree_text(d->object.status, "lastRotationTime");
    return d->report.old_valid && strcmp(stored_step(d, "publishedTime"), set) < 0;
}

bool dbu_rotation_begins(const struct dbuser *d)
{
    if (dbu_twins_used(d))
        return d->twins.begins && d->twins.published;
    return dbu_rotation_keeps_old(d) && d->connection.state == DBU_OWNED_SYNCED &&
           !d->report.password_waits && (dbu_password_is_new(d) || is_published_late(d));
}

void dbu_rotation_published(const struct dbuser *d, char ret[STW_TIME_LEN])
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

static void look(struct dbuser *d, const char *credential)
{
    char since[STW_TIME_LEN];
    dbu_rotation_published(d, since);
    dbu_readers_look(d, credential, since);
}

/* Applications cannot read the new password. */
static bool is_blocked(struct dbuser *d)
{
    struct dbu_secret_login found;
    struct dbu_readers *r = &d->readers;
    enum dbu_owned_state state = dbu_connection_look(d, &found);
    if (state != DBU_OWNED_FOREIGN && state != DBU_OWNED_FAILED)
        return false;
    r->waits = 1;
    stw_format(r->first, sizeof(r->first),
               "Secret \"%s\" cannot be written, where applications would read the new one",
               d->spec.connection.name);
    return true;
}

void dbu_rotation_before_end(struct dbuser *d)
{
    int64_t end_us = stored_end_us(d);
    uint64_t left_ms;
    if (!dbu_connection_wanted(d) || !dbu_rotation_keeps_old(d))
        return;
    bool over = end_us != INT64_MIN && dbu_overlap_is_over(d, end_us, &left_ms);
    if (d->secret.state == DBU_SECRET_FOUND && (over || dbu_password_is_new(d)))
        dbu_connection_password(d, &d->published);
    if (over && !is_blocked(d))
        look(d, stw_tree_text(d->object.status, "passwordFingerprint"));
}

static void follow_twins(struct dbuser *d)
{
    char number[24];
    stw_format(number, sizeof(number), "%lld", (long long)d->twins.rotation);
    if (d->twins.previous != DBU_LOGIN_NONE)
        look(d, number);
}

/* Two passwords of one account. */
static void follow_account(struct dbuser *d)
{
    bool known = *d->fingerprint && !d->report.password_waits;
    bool failed =
        d->connection.state == DBU_OWNED_FOREIGN || d->connection.state == DBU_OWNED_FAILED;
    if (dbu_login_is_done(d) && d->report.old_valid && dbu_rotation_keeps_old(d) && !failed)
        look(d, known ? d->fingerprint : stw_tree_text(d->object.status, "passwordFingerprint"));
}

void dbu_rotation_follow(struct dbuser *d)
{
    if (!dbu_connection_wanted(d) || !d->asked)
        return;
    if (dbu_twins_active(d))
        follow_twins(d);
    else
        follow_account(d);
}

bool dbu_rotation_is_stuck(const struct dbuser *d)
{
    return d->readers.waits > 0 && dbu_rotation_is_over(d);
}

void dbu_rotation_add_readers(const struct dbuser *d, struct stw_aspect *a)
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

uint64_t dbu_rotation_look_again_ms(const struct dbuser *d, uint64_t in_ms)
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
