/* SPDX-License-Identifier: Apache-2.0
 *
 * Deletion of a DatabaseUser: drops, locks or releases its account, then removes the finalizer.  An
 * account without this object's own mark is never dropped. */
#include "base/log.h"
#include "base/util.h"
#include "controller/finalizer.h"
#include "controller/outcome.h"
#include "kinds/databaseuser/run_priv.h"
#include "kube/tree.h"

#include <stdio.h>

#define LATER_MS 20000 /* at the latest: a visit that ends wakes the next key */

/* Wakes other objects that want the account.  The watch does not report this: the response to our
 * own write removed the object from the cache. */
static void wake_claimants(const struct dbuser *d)
{
    stw_autobuf struct stw_buf account = STW_BUF_INIT(2048);
    if (!d->spec.user)
        return;
    stw_databaseuser_account_key(d->label, d->spec.user, &account);
    stw_manager_wake(d->run->manager, "account", stw_buf_str(&account));
}

static void remove_user_finalizer(struct dbuser *d, struct stw_result *result)
{
    struct stw_error err = {0};
    if (stw_finalizer_remove(d->run, &d->object, STW_DATABASEUSER_FINALIZER, &err) < 0)
        stw_run_fail(d->run, &err, result);
    else
        wake_claimants(d);
}

/* There is no server to ask, now or later. */
static void release_targetless(struct dbuser *d, struct stw_result *result)
{
    const char *account = json_string_value(json_object_get(d->object.status, "account"));
    if (account)
        stw_object_event(
            d->run, &d->object, true, "TargetGone", "Delete",
            "steward's configuration has no target \"%s\" any more; if its server still "
            "runs, account \"%s\" is left on it",
            d->label, account);
    stw_log(STW_LOG_WARN, "target removed, leaving the account on the server",
            STW_STR("target", d->label));
    remove_user_finalizer(d, result);
}

static void release_forced(struct dbuser *d, struct stw_result *result)
{
    char forced[STW_OWN_NAME_LEN];
    stw_operator_text(d->run->op, STW_FORCE_DELETE, forced);
    stw_object_event(
        d->run, &d->object, true, "FinalizerForced", "Delete",
        "finalizer removed because of the annotation %s; what is on target \"%s\" is left "
        "there: %s",
        forced, d->label, d->report.err.text);
    stw_log(STW_LOG_WARN, "force-delete: leaving the account on the server",
            STW_STR("target", d->label), STW_STR("error", d->report.err.text));
    remove_user_finalizer(d, result);
}

/* Another owner's account of this name does not block the deletion, unless it was ours once. */
static bool was_never_ours(const struct dbuser *d)
{
    enum stw_sql_trouble t = d->report.trouble;
    return (t == STW_SQL_EXISTS || t == STW_SQL_NOT_OURS) &&
           !json_is_true(json_object_get(d->object.status, "owned"));
}

/* The first is for all other values, as of a spec that cannot be decoded. */
static const struct ending {
    const char *policy, *reason, *verb, *advice;
    int (*end)(struct stw_pool *p, const struct stw_account *want, struct stw_account_report *r);
} endings[] = {
    {"Delete", "Deleted", "dropped", "", stw_account_drop},
    {"Lock", "Locked", "locked", "; an object of this name can adopt it", stw_account_lock},
    {"Retain", "Retained", "left", "; it is no longer steward's", stw_account_release},
};

static const struct ending *find_ending(const struct dbuser *d)
{
    for (size_t i = 1; i < STW_COUNT(endings); i++)
        if (stw_same(d->spec.deletion_policy, endings[i].policy))
            return &endings[i];
    return &endings[0];
}

static void tell_done(struct dbuser *d)
{
    const struct ending *e = find_ending(d);
    const char *account = json_string_value(json_object_get(d->object.status, "account"));
    if (!account && (e->end == stw_account_release || !d->report.found))
        return; /* there was no account */
    stw_object_event(d->run, &d->object, false, e->reason, "Delete",
                     "%s account \"%s\" on target \"%s\"%s", e->verb,
                     account ? account : d->spec.user, d->target->name, e->advice);
    stw_log(STW_LOG_INFO, "an account's object is deleted", STW_STR("account", e->verb),
            STW_STR("target", d->target->name));
}

static void write_blocked_status(struct dbuser *d, struct stw_result *result)
{
    struct stw_verdict verdict;
    json_t *status;
    dbu_judge_cleanup(d, &verdict, &status);
    stw_run_end(d->run, &d->object, &verdict, status, NULL, result);
}

static void handle_cleanup_outcome(struct dbuser *d, struct stw_result *result)
{
    if (d->report.err.code == STW_ERR_CANCELLED) {
        stw_run_fail(d->run, &d->report.err, result);
    } else if (d->report.trouble == STW_SQL_FINE) {
        tell_done(d);
        remove_user_finalizer(d, result);
    } else if (was_never_ours(d)) {
        remove_user_finalizer(d, result);
    } else if (d->object.force_delete) {
        release_forced(d, result);
    } else {
        write_blocked_status(d, result);
    }
}

/* The object has, or once had, another account than the one that is its user. */
static bool is_of_twins(const struct dbuser *d)
{
    return *stw_tree_text(d->object.status, "login");
}

/* A login's account; another owner's does not block. */
static void end_login(struct dbuser *d, struct stw_pool *pool, const struct stw_account *wanted,
                      const char *name)
{
    struct stw_account a = *wanted;
    bool found = d->report.found;
    if (d->report.trouble != STW_SQL_FINE)
        return;
    a.user = name;
    stw_account_report_done(&d->report);
    d->report = (struct stw_account_report){0};
    (void)find_ending(d)->end(pool, &a, &d->report);
    d->report.found |= found;
    if (d->report.trouble != STW_SQL_EXISTS && d->report.trouble != STW_SQL_NOT_OURS &&
        d->report.trouble != STW_SQL_UNSUPPORTED) /* too long a name: it was never made */
        return;
    d->report.trouble = STW_SQL_FINE;
    d->report.err = (struct stw_error){0};
}

/* On PostgreSQL the twins are members of the account, which is dropped last. */
static void end_logins(struct dbuser *d, struct stw_pool *pool, const struct stw_account *wanted)
{
    char made[DBU_NAME_MAX], name[DBU_LOGIN_MAX];
    struct stw_account a = *wanted;
    dbu_made_user(&d->object, made);
    if (*made)
        a.user = made;
    if (!a.user)
        return;
    for (enum dbu_login l = DBU_LOGIN_A; l < DBU_LOGINS; l++) {
        dbu_login_make(a.user, l, name);
        end_login(d, pool, &a, name);
    }
    if (d->report.trouble != STW_SQL_FINE)
        return;
    if (is_of_twins(d) && d->target->engine != STW_ENGINE_POSTGRESQL) {
        end_login(d, pool, &a, a.user);
        return;
    }
    bool found = d->report.found;
    stw_account_report_done(&d->report);
    d->report = (struct stw_account_report){0};
    (void)find_ending(d)->end(pool, &a, &d->report);
    d->report.found |= found;
}

/* Drops the account that was created, regardless of the current spec. */
static void ask_server(struct dbuser *d, struct stw_pool *pool)
{
    struct dbu_desired desired;
    if (!dbu_databases_drop(d, pool))
        return;
    if (dbu_desired_make(d, &desired, &d->report.err) != 0) {
        d->report.trouble = STW_SQL_FAILED;
        return;
    }
    end_logins(d, pool, &desired.account);
    d->report.err.retry_after_ms = (uint32_t)stw_pool_retry_ms(pool);
    dbu_desired_done(&desired);
}

void dbu_cleanup(struct dbuser *d, struct stw_result *result)
{
    struct stw_visit visit;
    if (!d->target) {
        release_targetless(d, result);
        return;
    }
    switch (stw_pools_enter(d->state->pools, d->targets, d->target, d->run->key, &visit,
                            &d->report.err)) {
    case STW_POOLS_LATER:
        result->outcome = STW_RUN_AFTER;
        result->after_ms = LATER_MS;
        return;
    case STW_POOLS_FAILED:
        d->report.trouble = STW_SQL_UNSUPPORTED;
        break;
    case STW_POOLS_IN:
        ask_server(d, visit.pool);
        stw_pools_leave(d->state->pools, &visit, d->report.trouble);
        break;
    }
    handle_cleanup_outcome(d, result);
}
