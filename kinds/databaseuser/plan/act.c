/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries out the steps of the plan, one at a time, and notes in the view what came of each.  Decides
 * nothing. */
#include "kinds/databaseuser/plan/act.h"

#include "base/log.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "controller/finalizer.h"
#include "controller/outcome.h"
#include "kinds/databaseuser/account.h"
#include "kinds/databaseuser/databases.h"
#include "kinds/databaseuser/plan/observe.h"
#include "kinds/databaseuser/plan/rotation.h"
#include "kinds/databaseuser/plan/twin.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/secret/owned_secret.h"
#include "kinds/databaseuser/secret/secret.h"
#include "kube/tree.h"

#include <string.h>

#define STEPS_MAX 64 /* of one run; the plan needs fewer */

/* --- the password */

static void compute_password_fingerprint(struct dbu *d)
{
    struct stw_error err = {0};
    if (d->secret.state == DBU_SECRET_FOUND &&
        dbu_fingerprint(d->state->fingerprints, d->run, d->object.uid, d->secret.value.data,
                        d->secret.value.len, d->fingerprint, &err) != 0)
        stw_log(STW_LOG_WARN, "no fingerprint of a password", STW_STR("error", err.text));
}

static void take_password(struct dbu *d)
{
    compute_password_fingerprint(d);
    dbu_observe_password(d);
    if (!dbu_has_logins(&d->view) || d->secret.state != DBU_SECRET_FOUND || *d->fingerprint)
        return;
    (void)stw_fail(&d->report.err, STW_ERR_UNAVAILABLE,
                   "the key of the fingerprints cannot be read, which show whether a password is "
                   "new");
    d->report.trouble = STW_SQL_LOOKUP;
    d->report.step = STW_SQL_STEP_LOOKUP;
    d->asked = true;
    d->view.password = DBU_PASSWORD_FAILED;
}

static void read_password(struct dbu *d)
{
    d->settled = (struct stw_hash){0};
    if (dbu_is_iam(&d->spec)) {
        d->secret.state = DBU_SECRET_FOUND; /* all that is needed is known */
        dbu_observe_password(d);
        return;
    }
    if (dbu_password_is_generated(&d->object))
        dbu_password_ensure(d);
    else
        dbu_secret_read(d->run, &d->spec.password, &d->secret);
    take_password(d);
}

static void renew_password(struct dbu *d)
{
    d->view.due = false;
    dbu_password_renew(d);
    take_password(d);
}

/* A password that is not stored anywhere, for accounts that are created locked. */
static int draw_password(struct stw_buf *ret, struct stw_error *err)
{
    const struct dbu_spec_generate g = {.length = 32, .alphabet = DBU_ALPHABET};
    return dbu_password_draw(&g, ret, err);
}

/* --- one account */

static bool is_of_grants(const struct stw_account_report *r)
{
    return r->trouble == STW_SQL_FINE || r->step == STW_SQL_STEP_GRANT ||
           r->step == STW_SQL_STEP_REVOKE;
}

/* The first trouble is that of the run. */
static void take_trouble(struct dbu *d, const struct stw_account_report *r)
{
    d->view.stop |= dbu_is_of_server(r->trouble);
    if (d->others.trouble != STW_SQL_FINE || r->trouble == STW_SQL_FINE)
        return;
    d->others.trouble = r->trouble;
    d->others.step = r->step;
    d->others.err = r->err;
}

struct one {
    enum dbu_login which;
    enum stw_account_login login;
    bool if_exists, wait_sessions;
};

/* An account that keeps or loses its login: without its password. */
static void call_one(struct dbu *d, struct stw_pool *pool, const struct one *o,
                     struct stw_account_report *r)
{
    char name[DBU_LOGIN_MAX];
    struct dbu_desired desired;
    stw_autobuf struct stw_buf password = {.max = 256, .secret = true};
    d->asked = true;
    r->trouble = STW_SQL_FAILED;
    r->step = STW_SQL_STEP_CREATE;
    if (draw_password(&password, &r->err) != 0 || dbu_desired_make(d, &desired, &r->err) != 0)
        return;
    struct stw_account *a = &desired.account;
    dbu_login_make(d->spec.user, o->which, name);
    a->user = name;
    a->base = o->which == DBU_LOGIN_BASE ? NULL : d->spec.user;
    a->login = o->login;
    a->if_exists = o->if_exists;
    a->wait_sessions = o->wait_sessions;
    a->settled = (struct stw_hash){0};
    if (!a->iam)
        a->password = (struct stw_sql_secret){stw_buf_str(&password), password.len};
    if (d->view.owner_role && o->which != DBU_LOGIN_BASE)
        dbu_desired_limit_to_membership(a, d->spec.user);
    (void)stw_account_sync(pool, a, r);
    r->err.retry_after_ms = (uint32_t)stw_pool_retry_ms(pool);
    dbu_desired_done(&desired);
}

static void sync_owner(struct dbu *d, struct stw_pool *pool)
{
    struct dbu_login_view *owner = &d->view.owner;
    stw_account_report_done(&d->owner_report);
    d->owner_report = (struct stw_account_report){0};
    call_one(d, pool, &(struct one){DBU_LOGIN_BASE, STW_LOGIN_KEEP, !d->view.owner_role, false},
             &d->owner_report);
    owner->calls++;
    owner->could = d->owner_report.found && d->owner_report.can_login;
    owner->outcome = dbu_find_outcome(&d->owner_report, is_of_grants(&d->owner_report));
    take_trouble(d, &d->owner_report);
}

static void keep_rights(struct dbu *d, struct stw_pool *pool, enum dbu_login which)
{
    struct stw_account_report r = {0};
    struct dbu_login_view *login = &d->view.logins[which];
    call_one(d, pool, &(struct one){which, STW_LOGIN_KEEP, true, true}, &r);
    login->kept = true;
    login->outcome = r.trouble == STW_SQL_FINE && !r.found
                         ? DBU_LOGIN_ABSENT
                         : dbu_find_outcome(&r, r.login_done || is_of_grants(&r));
    d->twins.hidden = r.sessions_hidden;
    take_trouble(d, &r);
    stw_account_report_done(&r);
}

/* A locked account is kept, with the rights that the object has now: it may be the definer of views
 * and routines, and its name is reserved. */
static void lock_login(struct dbu *d, struct stw_pool *pool, const struct dbu_step *s)
{
    struct stw_account_report r = {0};
    struct dbu_login_view *login = &d->view.logins[s->login];
    call_one(d, pool, &(struct one){s->login, STW_LOGIN_NO, !s->needed, s->waits}, &r);
    bool done = r.login_done || is_of_grants(&r);
    login->locked = true;
    login->found = r.found;
    login->sessions = done && r.can_login && !s->waits;
    login->outcome = done ? DBU_AS_WANTED : DBU_LOGIN_FAILED;
    if (s->waits) {
        d->twins.sessions = r.sessions;
        d->twins.hidden = r.sessions_hidden;
        d->view.retired = done && r.sessions == 0;
    }
    take_trouble(d, &r);
    stw_account_report_done(&r);
}

/* What cannot be ended is reported, and goes on: the login itself has ended. */
static void end_sessions(struct dbu *d, struct stw_pool *pool, enum dbu_login which)
{
    char name[DBU_LOGIN_MAX];
    struct dbu_desired desired;
    struct stw_account_report r = {0};
    d->view.logins[which].sessions = false;
    if (dbu_desired_make(d, &desired, &r.err) != 0)
        return;
    dbu_login_make(d->spec.user, which, name);
    desired.account.user = name;
    if (stw_account_end_sessions(pool, &desired.account, &r) != 0)
        stw_object_event(
            d->run, &d->object, true, "SessionsNotEnded", "Rotate",
            "the older password of login \"%s\" has ended, and its open sessions go on: "
            "%s",
            name, r.err.text);
    stw_account_report_done(&r);
    dbu_desired_done(&desired);
}

/* A login may be brought to the plan more than once in a run. */
static void add_earlier(struct stw_account_report *r, const struct stw_account_report *first)
{
    r->created |= first->created;
    r->adopted |= first->adopted;
    r->password_changed |= first->password_changed;
    r->hosts_changed |= first->hosts_changed;
    r->options_changed |= first->options_changed;
    r->plugin_changed |= first->plugin_changed;
    r->old_discarded |= first->old_discarded;
}

static void sync_login(struct dbu *d, struct stw_pool *pool, const struct dbu_step *s)
{
    char name[DBU_LOGIN_MAX];
    struct dbu_desired desired;
    struct dbu_view *v = &d->view;
    struct dbu_login_view *login = &v->logins[s->login];
    struct stw_account_report first = d->report, *r = &d->report;
    d->asked = true;
    *r = (struct stw_account_report){0};
    login->calls++;
    login->outcome = DBU_LOGIN_FAILED;
    if (dbu_desired_make(d, &desired, &r->err) != 0) {
        r->trouble = STW_SQL_FAILED;
        stw_account_report_done(&first);
        return;
    }
    struct stw_account *a = &desired.account;
    dbu_login_make(d->spec.user, s->login, name);
    a->user = name;
    a->base = s->login == DBU_LOGIN_BASE ? NULL : d->spec.user;
    a->password_is_new = s->password_is_new;
    a->keep_old = s->keep_old;
    a->set_later = s->set_later;
    a->discard_old = s->discard_old;
    a->old_stays = s->old_stays;
    if (s->keep_password)
        a->password = (struct stw_sql_secret){0};
    if (v->owner_role && s->login != DBU_LOGIN_BASE)
        dbu_desired_limit_to_membership(a, d->spec.user);
    dbu_desired_add_published(d, a);
    (void)stw_account_sync(pool, a, r);
    r->err.retry_after_ms = (uint32_t)stw_pool_retry_ms(pool);
    dbu_desired_done(&desired);
    dbu_observe_login(v, s->login, r);
    login->sessions = r->password_changed && !s->keep_old;
    r->password_waits |= s->keep_password;
    add_earlier(r, &first);
    stw_account_report_done(&first);
    dbu_remember_password(d);
}

/* --- databases */

/* Rights that were refused may be given now. */
static void ask_again(struct dbu *d, bool may)
{
    if (!may)
        return;
    for (enum dbu_login l = DBU_LOGIN_BASE; l < DBU_LOGINS; l++)
        if (d->view.logins[l].outcome == DBU_RIGHTS_REFUSED)
            d->view.logins[l].outcome = DBU_NOT_ASKED;
    if (d->view.owner.outcome == DBU_RIGHTS_REFUSED)
        d->view.owner.calls = 0;
    d->others.trouble = STW_SQL_FINE;
}

static void create_databases(struct dbu *d, struct stw_pool *pool)
{
    bool created = false, refused = d->report.trouble == STW_SQL_NO_OBJECT;
    d->view.databases_done = true;
    d->view.stop |= !dbu_databases_create(d, pool);
    for (size_t i = 0; i < d->databases.count; i++)
        created |= d->databases.reports[i].created;
    ask_again(d, created && refused);
}

static void add_schemas(struct dbu *d, struct stw_pool *pool)
{
    d->view.schemas_done = true;
    ask_again(d, dbu_databases_add_schemas(d, pool));
}

/* --- the connection Secret */

static void look_at_connection(struct dbu *d)
{
    struct dbu_secret_login found;
    struct dbu_readers *r = &d->readers;
    enum dbu_owned_state state = dbu_connection_look(d, &found);
    dbu_observe_connection(d, state, &found);
    if (state != DBU_OWNED_FOREIGN && state != DBU_OWNED_FAILED)
        return;
    r->waits = 1;
    stw_format(r->first, sizeof(r->first),
               "Secret \"%s\" cannot be written, where applications would read the new one",
               d->spec.connection.name);
}

static void publish(struct dbu *d)
{
    dbu_connection_ensure(d);
    d->view.connection =
        d->connection.state == DBU_OWNED_SYNCED ? DBU_CONNECTION_WRITTEN : DBU_CONNECTION_FAILED;
}

static void follow(struct dbu *d)
{
    dbu_rotation_follow(d);
    d->view.followed = true;
    d->view.readers_wait = d->readers.waits > 0;
}

/* --- the object */

static int add_finalizer(struct dbu *d, struct stw_result *result)
{
    struct stw_error err = {0};
    if (stw_finalizer_add(d->run, &d->object, DBU_FINALIZER, &err) < 0) {
        stw_run_fail(d->run, &err, result);
        return -1;
    }
    d->view.finalizer = true;
    return 0;
}

/* The next run continues with this status. */
static void note_logins(struct dbu *d, struct stw_result *result)
{
    json_t *status = json_deep_copy(d->object.status);
    if (status)
        stw_tree_set_text(status, "login", d->spec.user);
    if (stw_run_write(d->run, &d->object, status, result) < 0)
        return;
    result->outcome = STW_RUN_AFTER;
    result->after_ms = 1;
}

/* The rights on a server with owners are those of the owner role. */
static void finish_report(struct dbu *d)
{
    struct stw_account_report *r = &d->report, *owner = &d->owner_report;
    if (d->view.owner_role && d->view.owner.calls > 0) {
        struct stw_buf granted = r->granted, foreign = r->foreign;
        r->granted = owner->granted;
        r->foreign = owner->foreign;
        owner->granted = granted;
        owner->foreign = foreign;
        r->grants_given += owner->grants_given;
        r->grants_revoked += owner->grants_revoked;
    }
    if (r->trouble == STW_SQL_FINE && d->others.trouble != STW_SQL_FINE) {
        r->trouble = d->others.trouble;
        r->step = d->others.step;
        r->err = d->others.err;
    }
}

/* 1: the run has ended, and `result` is set. */
static int carry_out(struct dbu *d, struct stw_pool *pool, const struct dbu_step *s,
                     struct stw_result *result)
{
    switch (s->act) {
    case DBU_READ_PASSWORD:
        read_password(d);
        break;
    case DBU_RENEW_PASSWORD:
        renew_password(d);
        break;
    case DBU_ADD_FINALIZER:
        return add_finalizer(d, result) != 0;
    case DBU_NOTE_LOGINS:
        note_logins(d, result);
        return 1;
    case DBU_LOOK:
        look_at_connection(d);
        break;
    case DBU_CREATE_DATABASES:
        create_databases(d, pool);
        break;
    case DBU_SYNC_OWNER:
        sync_owner(d, pool);
        break;
    case DBU_SYNC:
        sync_login(d, pool, s);
        break;
    case DBU_KEEP_RIGHTS:
        keep_rights(d, pool, s->login);
        break;
    case DBU_PUBLISH:
        publish(d);
        break;
    case DBU_FOLLOW:
        follow(d);
        break;
    case DBU_LOCK:
        lock_login(d, pool, s);
        break;
    case DBU_END_SESSIONS:
        end_sessions(d, pool, s->login);
        break;
    default:
        add_schemas(d, pool);
        break;
    }
    return 0;
}

int dbu_act(struct dbu *d, struct stw_pool *pool, struct stw_result *result)
{
    struct dbu_step step;
    struct stw_error err = {0};
    for (int i = 0; i < STEPS_MAX; i++) {
        dbu_plan(&d->view, &step);
        dbu_twins_take(d);
        if (step.act == DBU_END_RUN)
            break;
        if (step.act > DBU_READ_PASSWORD && stw_run_check_write(d->run, &err) != 0) {
            stw_run_fail(d->run, &err, result);
            return -1;
        }
        if (carry_out(d, pool, &step, result) != 0)
            return -1;
    }
    finish_report(d);
    return 0;
}
