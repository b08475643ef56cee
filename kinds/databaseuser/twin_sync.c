/* SPDX-License-Identifier: Apache-2.0
 *
 * Brings the accounts of TwinAccounts to the plan.  What lets clients in comes first, then the
 * connection Secret, and then what locks them out: a run that was killed in between locks no client
 * out. */
#include "base/util.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/twins_priv.h"

#include <string.h>

static bool has_owner_role(const struct dbuser *d)
{
    return d->target->engine == STW_ENGINE_POSTGRESQL;
}

/* --- one account */

struct one {
    enum dbu_login which;
    enum stw_account_login login;
    bool if_exists, wait_sessions;
};

/* A password that is not stored anywhere, for accounts that are created locked. */
static int draw_password(const struct dbuser *d, struct stw_buf *ret, struct stw_error *err)
{
    const struct stw_databaseuser_generate g = {.length = 32,
                                                .alphabet = STW_DATABASEUSER_ALPHABET};
    (void)d;
    return dbu_password_draw(&g, ret, err);
}

static void limit_to_membership(const struct dbuser *d, struct stw_account *a)
{
    a->grants = NULL;
    a->grant_count = 0;
    a->roles = NULL;
    a->acts_as = d->spec.user;
}

static void sync_one(struct dbuser *d, struct stw_pool *pool, const struct stw_account *wanted,
                     const struct one *o, struct stw_account_report *r)
{
    char name[DBU_LOGIN_MAX];
    stw_autobuf struct stw_buf password = {.max = 256, .secret = true};
    struct stw_account a = *wanted;
    dbu_login_make(d->spec.user, o->which, name);
    a.user = name;
    a.login = o->login;
    a.if_exists = o->if_exists;
    a.wait_sessions = o->wait_sessions;
    if (has_owner_role(d) && o->which != DBU_LOGIN_BASE)
        limit_to_membership(d, &a);
    if (o->login != STW_LOGIN_YES) {
        a.settled = (struct stw_hash){0};
        if (draw_password(d, &password, &r->err) != 0) {
            r->trouble = STW_SQL_FAILED;
            r->step = STW_SQL_STEP_CREATE;
            return;
        }
        a.password = (struct stw_sql_secret){stw_buf_str(&password), password.len};
    }
    (void)stw_account_sync(pool, &a, r);
}

/* --- reports */

/* The rest of the object is done although a right could not be given. */
static bool is_of_grants(const struct stw_account_report *r)
{
    return r->trouble == STW_SQL_FINE || r->step == STW_SQL_STEP_GRANT ||
           r->step == STW_SQL_STEP_REVOKE;
}

/* Takes the trouble of another account, unless there is one. */
static void take_trouble(struct dbuser *d, const struct stw_account_report *r)
{
    if (d->report.trouble != STW_SQL_FINE || r->trouble == STW_SQL_FINE)
        return;
    d->report.trouble = r->trouble;
    d->report.step = r->step;
    d->report.err = r->err;
}

/* The rights are those of the owner role. */
static void take_rights(struct dbuser *d, struct stw_account_report *owner)
{
    struct stw_buf granted = d->report.granted, foreign = d->report.foreign;
    d->report.granted = owner->granted;
    d->report.foreign = owner->foreign;
    owner->granted = granted;
    owner->foreign = foreign;
    d->report.grants_given += owner->grants_given;
    d->report.grants_revoked += owner->grants_revoked;
}

/* --- before the connection */

/* Which login the connection Secret names.  What is not known leaves the one of the status. */
static void look_at_connection(struct dbuser *d)
{
    struct dbu_secret_login found;
    struct dbu_twins *t = &d->twins;
    enum dbu_owned_state state = dbu_connection_look(d, &found);
    t->blocked = state == DBU_OWNED_FOREIGN || state == DBU_OWNED_FAILED;
    if (state != DBU_OWNED_SYNCED || !*found.fingerprint || found.rotation < t->rotation)
        return;
    for (enum dbu_login l = DBU_LOGIN_BASE; l < DBU_LOGINS; l++) {
        char name[DBU_LOGIN_MAX];
        dbu_login_make(d->spec.user, l, name);
        if (!stw_streq(name, found.login))
            continue;
        t->current = l;
        t->rotation = found.rotation;
        t->confirmed = true;
        stw_format(t->of_current, sizeof(t->of_current), "%s", found.fingerprint);
    }
}

/* PostgreSQL's owner role is needed before its members.  Elsewhere an account without a suffix may be
 * there from before, and applications use it. */
static void sync_owner(struct dbuser *d, struct stw_pool *pool, const struct stw_account *wanted,
                       struct stw_account_report *r)
{
    struct dbu_twins *t = &d->twins;
    const struct one owner = {DBU_LOGIN_BASE, STW_LOGIN_KEEP, !has_owner_role(d)};
    if (!has_owner_role(d) && t->current != DBU_LOGIN_NONE)
        return;
    sync_one(d, pool, wanted, &owner, r);
    if (is_of_grants(r) && t->current == DBU_LOGIN_NONE && r->found && r->can_login)
        t->current = DBU_LOGIN_BASE;
}

static void sync_next(struct dbuser *d, struct stw_pool *pool, const struct stw_account *wanted)
{
    const struct dbu_twins *t = &d->twins;
    struct stw_account a = *wanted;
    if (t->waits && t->is_new)
        a.password = (struct stw_sql_secret){0};
    a.password_is_new = t->is_new || t->next != t->current;
    if (t->next == DBU_LOGIN_BASE && t->current == DBU_LOGIN_BASE) {
        dbu_rotation_before_end(d);
        dbu_rotation_plan(d, &a);
    } else if (t->next == DBU_LOGIN_BASE)
        a.discard_old = true; /* from a time when the account had two */
    sync_one(d, pool, &a, &(struct one){t->next, STW_LOGIN_YES, false}, &d->report);
}

/* The login before: its rights stay as wanted. */
static void sync_previous(struct dbuser *d, struct stw_pool *pool, const struct stw_account *wanted)
{
    struct stw_account_report r = {0};
    enum dbu_login previous = d->twins.previous;
    if (previous != DBU_LOGIN_NONE && (previous != DBU_LOGIN_BASE || !has_owner_role(d)))
        sync_one(d, pool, wanted, &(struct one){previous, STW_LOGIN_KEEP, true, true}, &r);
    d->twins.hidden = r.sessions_hidden;
    take_trouble(d, &r);
    stw_account_report_done(&r);
}

static bool lacks_fingerprint(struct dbuser *d)
{
    if (d->secret.state != DBU_SECRET_FOUND || *d->fingerprint)
        return false;
    (void)stw_fail(&d->report.err, STW_ERR_UNAVAILABLE,
                   "the key of the fingerprints cannot be read, which show whether a password is "
                   "new");
    d->report.trouble = STW_SQL_LOOKUP;
    d->report.step = STW_SQL_STEP_LOOKUP;
    return true;
}

void dbu_twins_sync(struct dbuser *d, struct stw_pool *pool, const struct dbu_desired *desired)
{
    struct stw_account_report owner = {0};
    dbu_twins_recall(d);
    if (lacks_fingerprint(d))
        return;
    if (!stw_hash_is_set(d->settled))
        look_at_connection(d);
    sync_owner(d, pool, &desired->account, &owner);
    if (is_of_grants(&owner)) {
        dbu_twins_plan(d);
        sync_next(d, pool, &desired->account);
        if (has_owner_role(d))
            take_rights(d, &owner);
        if (!d->report.password_wanted && is_of_grants(&d->report))
            sync_previous(d, pool, &desired->account);
    }
    take_trouble(d, &owner);
    d->report.password_waits |= d->twins.waits && d->twins.is_new;
    stw_account_report_done(&owner);
}

/* --- after the connection */

/* Applications can read the login that they shall use. */
static bool is_confirmed(const struct dbuser *d)
{
    const struct dbu_twins *t = &d->twins;
    return !dbu_connection_wanted(d) || d->connection.state == DBU_OWNED_SYNCED ||
           stw_hash_is_set(d->settled) || (t->confirmed && t->next == t->current);
}

/* A locked account is kept, with the rights that the object has now: it may be the definer of views
 * and routines, and its name is reserved. */
static void lock_one(struct dbuser *d, struct stw_pool *pool, const struct stw_account *wanted,
                     enum dbu_login which)
{
    struct stw_account_report r = {0};
    bool needed = which == DBU_LOGIN_BASE ? has_owner_role(d) : dbu_twins_wanted(d);
    bool previous = which == d->twins.previous;
    sync_one(d, pool, wanted, &(struct one){which, STW_LOGIN_NO, !needed, previous}, &r);
    if (previous) {
        d->twins.sessions = r.sessions;
        d->twins.hidden = r.sessions_hidden;
        d->twins.retired = is_of_grants(&r) && r.sessions == 0;
    }
    take_trouble(d, &r);
    stw_account_report_done(&r);
}

static bool may_lock(const struct dbuser *d, enum dbu_login which)
{
    const struct dbu_twins *t = &d->twins;
    return which != t->next &&
           (which != t->previous || (dbu_twins_is_over(d) && d->readers.waits == 0));
}

void dbu_twins_finish(struct dbuser *d, struct stw_pool *pool)
{
    struct dbu_desired desired;
    struct dbu_twins *t = &d->twins;
    bool fine = d->asked && is_of_grants(&d->report);
    t->published =
        fine && (t->next == t->current || t->current == DBU_LOGIN_NONE || is_confirmed(d));
    if (!fine || t->next == DBU_LOGIN_NONE || !is_confirmed(d))
        return;
    if (dbu_desired_make(d, &desired, &d->report.err) != 0) {
        d->report.trouble = STW_SQL_FAILED;
        return;
    }
    dbu_rotation_follow(d);
    for (enum dbu_login l = DBU_LOGIN_BASE; l < DBU_LOGINS; l++)
        if (may_lock(d, l))
            lock_one(d, pool, &desired.account, l);
    dbu_desired_done(&desired);
}
