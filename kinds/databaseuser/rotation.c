/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotation of a password without a failed login: a server with dual passwords leaves the old one
 * valid while clients change to the new one (twin.c has what other servers do).  The server itself stores whether an old password is
 * valid; the status stores only until when, so that a run that was killed is continued. */
#include "base/util.h"
#include "kinds/databaseuser/run_priv.h"
#include "kube/tree.h"

#define US_PER_S 1000000

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

/* A password that was changed on the server by another client is replaced at once. */
void dbu_rotation_plan(const struct dbuser *d, struct stw_account *ret)
{
    int64_t end_us = stored_end_us(d);
    uint64_t left_ms;
    ret->keep_old = dbu_rotation_keeps_old(d) && dbu_password_is_new(d);
    ret->discard_old = end_us != INT64_MIN &&
                       (!dbu_rotation_keeps_old(d) || dbu_overlap_is_over(d, end_us, &left_ms));
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
    bool valid = d->report.trouble == STW_SQL_FINE ? d->report.old_valid : set;
    if (!valid || !dbu_rotation_keeps_old(d))
        return false;
    int64_t end_us = compute_end_us(d);
    stw_time_format(end_us, ret);
    /* The text has whole seconds; a run shortly before the end would find nothing to do. */
    (void)dbu_overlap_is_over(d, end_us / US_PER_S * US_PER_S, ret_in_ms);
    *ret_in_ms += 1000;
    return true;
}
