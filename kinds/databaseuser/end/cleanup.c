/* SPDX-License-Identifier: Apache-2.0
 *
 * Deletion of a DatabaseUser: drops, locks or releases its account, then removes the finalizer.  An
 * account without this object's own mark is never dropped. */
#include "kinds/databaseuser/end/cleanup.h"

#include "base/log.h"
#include "base/util.h"
#include "controller/finalizer.h"
#include "controller/outcome.h"
#include "kinds/databaseuser/account.h"
#include "kinds/databaseuser/databases.h"
#include "kinds/databaseuser/plan/observe.h"
#include "kinds/databaseuser/plan/twin.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/status/status.h"
#include "kube/tree.h"

#include <stdio.h>

/* Wakes other objects that want the account.  The watch does not report this: the response to our
 * own write removed the object from the cache. */
static void wake_claimants(const struct dbu *d)
{
    stw_autobuf struct stw_buf account = STW_BUF_INIT(2048);
    if (!d->spec.user)
        return;
    dbu_account_key(d->label, d->spec.user, &account);
    stw_manager_wake(d->run->manager, "account", stw_buf_str(&account));
}

static void remove_user_finalizer(struct dbu *d, struct stw_result *result)
{
    struct stw_error err = {0};
    if (stw_finalizer_remove(d->run, &d->object, DBU_FINALIZER, &err) < 0)
        stw_run_fail(d->run, &err, result);
    else
        wake_claimants(d);
}

/* There is no server to ask, now or later. */
static void release_targetless(struct dbu *d, struct stw_result *result)
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

static void release_forced(struct dbu *d, struct stw_result *result)
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
static bool was_never_ours(const struct dbu *d)
{
    enum stw_sql_trouble t = d->report.trouble;
    return (t == STW_SQL_EXISTS || t == STW_SQL_NOT_OURS) &&
           !json_is_true(json_object_get(d->object.status, "owned"));
}

static const struct ending {
    const char *reason, *verb, *advice;
    int (*end)(struct stw_pool *p, const struct stw_account *want, struct stw_account_report *r);
} endings[] = {
    [DBU_END_DROP] = {"Deleted", "dropped", "", stw_account_drop},
    [DBU_END_LOCK] = {"Locked", "locked", "; an object of this name can adopt it",
                      stw_account_lock},
    [DBU_END_RELEASE] = {"Retained", "left", "; it is no longer steward's", stw_account_release},
};

static void tell_done(struct dbu *d)
{
    const struct ending *e = &endings[d->view.ending];
    const char *account = json_string_value(json_object_get(d->object.status, "account"));
    if (!account && (e->end == stw_account_release || !d->report.found))
        return; /* there was no account */
    stw_object_event(d->run, &d->object, false, e->reason, "Delete",
                     "%s account \"%s\" on target \"%s\"%s", e->verb,
                     account ? account : d->spec.user, d->target->name, e->advice);
    stw_log(STW_LOG_INFO, "an account's object is deleted", STW_STR("account", e->verb),
            STW_STR("target", d->target->name));
}

static void write_blocked_status(struct dbu *d, struct stw_result *result)
{
    struct stw_verdict verdict;
    json_t *status;
    dbu_judge_cleanup(d, &verdict, &status);
    stw_run_end(d->run, &d->object, &verdict, status, NULL, result);
}

static void handle_cleanup_outcome(struct dbu *d, struct stw_result *result)
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

static bool is_of_another(enum stw_sql_trouble t)
{
    return t == STW_SQL_EXISTS || t == STW_SQL_NOT_OURS ||
           t == STW_SQL_UNSUPPORTED; /* too long a name: it was never made */
}

/* The account that was created, regardless of the current spec.  Another owner's login does not block;
 * an account of this object's own user is for was_never_ours() to judge. */
static void end_login(struct dbu *d, struct stw_pool *pool, const struct dbu_step *s)
{
    struct dbu_desired desired;
    char made[DBU_NAME_MAX], name[DBU_LOGIN_MAX];
    struct dbu_view *v = &d->view;
    struct stw_account_report *r = &d->report;
    bool found = r->found, lock = s->ending == DBU_END_LOCK && v->ending != DBU_END_LOCK;
    bool is_user = s->login == DBU_LOGIN_BASE && (v->owner_role || !v->has_logins) && !lock;
    v->logins[s->login].locked |=
        s->ending == DBU_END_LOCK || v->owner_role; /* PostgreSQL: before the drop */
    v->logins[s->login].ended = !lock;
    dbu_made_user(&d->object, made);
    stw_account_report_done(r);
    *r = (struct stw_account_report){.found = found};
    if (!*made && !d->spec.user)
        return;
    if (dbu_desired_make(d, &desired, &r->err) != 0) {
        r->trouble = STW_SQL_FAILED;
        return;
    }
    dbu_login_make(*made ? made : d->spec.user, s->login, name);
    desired.account.user = name;
    desired.account.keep = !lock;
    (void)endings[s->ending].end(pool, &desired.account, r);
    r->found |= found;
    r->err.retry_after_ms = (uint32_t)stw_pool_retry_ms(pool);
    dbu_desired_done(&desired);
    if (is_user || !is_of_another(r->trouble))
        return;
    r->trouble = STW_SQL_FINE;
    r->err = (struct stw_error){0};
}

/* Puts the trouble of the last step aside, if it is the first one.  What is of the server ends the run. */
static void keep_trouble(struct dbu *d, struct stw_account_report *first)
{
    struct stw_account_report *r = &d->report;
    if (r->trouble == STW_SQL_FINE)
        return;
    d->view.stop |= dbu_is_of_server(r->trouble) || r->err.code == STW_ERR_CANCELLED;
    if (first->trouble != STW_SQL_FINE)
        return;
    *first = *r;
    *r = (struct stw_account_report){.found = first->found};
}

/* Ends when only the finalizer is left, or when a login or a database cannot be ended: the report has the
 * first reason. */
static void ask_server(struct dbu *d, struct stw_pool *pool)
{
    struct dbu_step step = {0};
    struct stw_account_report first = {0};
    d->view.drops = dbu_databases_are_dropped(d);
    for (;;) {
        dbu_plan(&d->view, &step);
        if (step.act == DBU_END_LOGIN) {
            end_login(d, pool, &step);
            d->view.not_ended |= d->report.trouble != STW_SQL_FINE;
        } else if (step.act == DBU_DROP_DATABASES) {
            d->view.databases_done = true;
            (void)dbu_databases_drop(d, pool);
            d->view.stop |= d->report.trouble != STW_SQL_FINE;
        } else {
            break;
        }
        keep_trouble(d, &first);
    }
    if (first.trouble == STW_SQL_FINE)
        return;
    first.found |= d->report.found;
    stw_account_report_done(&d->report);
    d->report = first;
}

void dbu_cleanup(struct dbu *d, struct stw_result *result)
{
    struct dbu_visit visit;
    dbu_observe_object(d);
    if (!d->target) {
        release_targetless(d, result);
        return;
    }
    if (dbu_identify(d) != 0) {
        handle_cleanup_outcome(d, result);
        return;
    }
    switch (dbu_pools_enter(d->state->pools, d->targets, d->target, d->run->key, &visit,
                            &d->report.err)) {
    case DBU_POOLS_LATER:
        result->outcome = STW_RUN_AFTER;
        result->after_ms = visit.again_ms;
        return;
    case DBU_POOLS_FAILED:
        d->report.trouble = STW_SQL_UNSUPPORTED;
        break;
    case DBU_POOLS_IN:
        ask_server(d, visit.pool);
        dbu_pools_leave(d->state->pools, &visit, d->report.trouble);
        break;
    }
    handle_cleanup_outcome(d, result);
}
