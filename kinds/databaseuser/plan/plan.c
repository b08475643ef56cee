/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan: the first rule that has something to do makes the step.  Rules are in the order of their
 * urgency: first what lets in, then what applications read, then what locks out, then the rest. */
#include "kinds/databaseuser/plan/plan.h"

#include <stddef.h>

struct plan {
    const struct dbu_view *v;
    struct dbu_turn t;
    struct dbu_step *step;
};

static bool act(struct plan *p, enum dbu_act a)
{
    p->step->act = a;
    return true;
}

static bool act_on(struct plan *p, enum dbu_act a, enum dbu_login login)
{
    p->step->login = login;
    return act(p, a);
}

/* --- whose turn it is */

bool dbu_has_logins(const struct dbu_view *v)
{
    return v->strategy == DBU_TWINS || v->has_logins;
}

bool dbu_turns(const struct dbu_view *v, const struct dbu_turn *t)
{
    return dbu_has_logins(v) && (v->strategy == DBU_TWINS || t->current != DBU_LOGIN_BASE ||
                                 t->next != DBU_LOGIN_BASE || t->previous != DBU_LOGIN_NONE);
}

static enum dbu_login other_twin(enum dbu_login l)
{
    return l == DBU_LOGIN_A ? DBU_LOGIN_B : DBU_LOGIN_A;
}

static enum dbu_login choose_login(const struct dbu_view *v, const struct dbu_turn *t)
{
    if (v->strategy != DBU_TWINS)
        return DBU_LOGIN_BASE;
    if (t->current <= DBU_LOGIN_BASE)
        return DBU_LOGIN_A;
    if (!t->is_new)
        return t->current;
    return other_twin(t->current);
}

/* A password that has to end at once: the other logins end with it. */
static bool ends_at_once(const struct dbu_view *v, const struct dbu_turn *t)
{
    return v->strategy == DBU_IN_PLACE && t->is_new;
}

/* The same, for a run that wrote the connection Secret and then no status. */
static bool has_ended_at_once(const struct dbu_view *v, const struct dbu_turn *t)
{
    return v->strategy == DBU_IN_PLACE && t->current == DBU_LOGIN_BASE && !v->named_as_status;
}

/* The older credential still works: a server has room for one. */
static bool is_busy(const struct dbu_view *v, const struct dbu_turn *t)
{
    bool two_passwords = t->current == DBU_LOGIN_BASE && v->overlap && !v->over;
    return t->previous != DBU_LOGIN_NONE || two_passwords;
}

static bool cannot_read(const struct dbu_view *v)
{
    return v->connection == DBU_CONNECTION_BLOCKED || v->connection == DBU_CONNECTION_UNKNOWN;
}

/* Another client deleted the connection Secret, or restored an older one.  The password that it should have is
 * not known any more, so that the one that waits has to follow when the overlap is over. */
static bool is_lost_secret(const struct dbu_view *v, const struct dbu_turn *t)
{
    return v->over && !t->confirmed && (v->connection == DBU_CONNECTION_ABSENT || v->there);
}

/* The higher number counts. */
static void find_current(const struct dbu_view *v, struct dbu_turn *t)
{
    bool as_current = v->as_status;
    t->current = v->login;
    t->previous = v->previous;
    t->rotation = v->rotation;
    if (t->current == DBU_LOGIN_NONE && v->created)
        t->current = DBU_LOGIN_BASE;
    if (v->named != DBU_LOGIN_NONE && v->named_rotation >= v->rotation) {
        t->current = v->named;
        t->rotation = v->named_rotation;
        t->confirmed = true;
        as_current = v->as_named;
    }
    /* An account from before steward, which applications use. */
    if (t->current == DBU_LOGIN_NONE && v->owner.calls > 0 && v->owner.could) {
        t->current = DBU_LOGIN_BASE;
        as_current = false;
    }
    t->is_new = t->current != DBU_LOGIN_NONE && v->password == DBU_PASSWORD_KNOWN && !as_current;
}

void dbu_turn_of(const struct dbu_view *v, struct dbu_turn *t)
{
    *t = (struct dbu_turn){.current = DBU_LOGIN_BASE, .next = DBU_LOGIN_BASE};
    if (!dbu_has_logins(v))
        return;
    t->blocked = cannot_read(v);
    find_current(v, t);
    /* The connection Secret was written, and then the status was not. */
    t->begins = v->login != DBU_LOGIN_NONE && v->login != t->current;
    if (t->begins)
        t->previous = has_ended_at_once(v, t) ? DBU_LOGIN_NONE : v->login;
    /* The status is lost: the login before this one may be in use. */
    if (v->login == DBU_LOGIN_NONE && t->confirmed && t->current > DBU_LOGIN_BASE &&
        t->rotation > 1) {
        t->previous = other_twin(t->current);
        t->begins = true;
    }
    t->next = t->current;
    if (v->password != DBU_PASSWORD_KNOWN)
        return;
    enum dbu_login next = choose_login(v, t);
    if (next == t->current)
        return;
    t->waits = t->current != DBU_LOGIN_NONE &&
               (t->blocked || (is_busy(v, t) && !ends_at_once(v, t) && !is_lost_secret(v, t)));
    if (t->waits)
        return;
    t->begins = t->current != DBU_LOGIN_NONE;
    t->previous = ends_at_once(v, t) ? DBU_LOGIN_NONE : t->current;
    t->next = next;
    t->rotation++;
}

bool dbu_is_new(const struct dbu_view *v, const struct dbu_turn *t)
{
    if (dbu_turns(v, t))
        return t->is_new;
    /* A run that wrote the connection Secret may have been killed before it wrote the status. */
    bool other = !v->as_named && (v->readable || !v->over);
    bool shows_other = v->there ? other || !v->created : cannot_read(v);
    return v->password == DBU_PASSWORD_KNOWN && ((v->created && !v->as_status) || shows_other);
}

bool dbu_can_log_in(const struct dbu_view *v, const struct dbu_turn *t)
{
    enum dbu_outcome o = v->logins[t->next].outcome;
    return o == DBU_AS_WANTED || o == DBU_RIGHTS_REFUSED || o == DBU_RIGHTS_FAILED;
}

/* Applications lose nothing by the change.  The owner role and its members have the same rights.
 * Elsewhere a login whose rights are refused is as good as the one before it, if that lacks them as
 * well. */
static bool is_as_good(const struct dbu_view *v, const struct dbu_turn *t)
{
    enum dbu_outcome o = v->logins[t->next].outcome;
    if (o == DBU_AS_WANTED || t->next == t->current || t->current == DBU_LOGIN_NONE)
        return true;
    if (v->owner_role)
        return t->next == DBU_LOGIN_BASE;
    enum dbu_outcome was = v->logins[t->current].outcome;
    return o == DBU_RIGHTS_REFUSED && (was == DBU_RIGHTS_REFUSED || was == DBU_LOGIN_ABSENT);
}

/* Applications can read the credential that they shall use. */
static bool is_confirmed(const struct dbu_view *v, const struct dbu_turn *t)
{
    if (is_lost_secret(v, t) && t->next == t->current)
        return true;
    return !v->publishes || v->connection == DBU_CONNECTION_WRITTEN ||
           v->password == DBU_PASSWORD_SETTLED || (t->confirmed && t->next == t->current);
}

bool dbu_is_published(const struct dbu_view *v, const struct dbu_turn *t)
{
    return dbu_can_log_in(v, t) && is_as_good(v, t) &&
           (t->next == t->current || t->current == DBU_LOGIN_NONE || is_confirmed(v, t));
}

/* --- before the server */

static bool read_password(struct plan *p)
{
    bool unread = p->v->password == DBU_PASSWORD_UNREAD ||
                  (p->v->password == DBU_PASSWORD_SETTLED && p->v->compared);
    return unread && act(p, DBU_READ_PASSWORD);
}

/* Only the password of the account is replaced: a newer one has to reach the server first. */
static bool renew_password(struct plan *p)
{
    return p->v->due && p->v->password == DBU_PASSWORD_KNOWN && p->v->as_status &&
           act(p, DBU_RENEW_PASSWORD);
}

/* There is no password to create the account with, or it is not known whether there is one. */
static bool lack_password(struct plan *p)
{
    bool lacks = p->v->password == DBU_PASSWORD_FAILED ||
                 (p->v->password == DBU_PASSWORD_MISSING && !p->v->created);
    return lacks && act(p, DBU_END_RUN);
}

/* D6 */
static bool add_finalizer(struct plan *p)
{
    return !p->v->finalizer && act(p, DBU_ADD_FINALIZER);
}

/* D5: so that a run that makes the second login and is killed leaves nothing that the next run does not
 * know of. */
static bool note_logins(struct plan *p)
{
    const struct dbu_view *v = p->v;
    return v->strategy == DBU_TWINS && v->created && !v->has_logins && act(p, DBU_NOTE_LOGINS);
}

/* Which credential applications have is asked when another shall follow, or an older one end. */
static bool look_at_connection(struct plan *p)
{
    const struct dbu_view *v = p->v;
    bool ends = v->overlap && v->over;
    bool dual = v->strategy == DBU_DUAL_PASSWORD && (ends || v->password == DBU_PASSWORD_KNOWN);
    bool asked = dual || (dbu_has_logins(v) && v->password != DBU_PASSWORD_SETTLED);
    return v->publishes && asked && v->connection == DBU_CONNECTION_UNREAD && act(p, DBU_LOOK);
}

/* D1: without a status, only the connection Secret says which login applications use. */
static bool stop_without_secret(struct plan *p)
{
    const struct dbu_view *v = p->v;
    return dbu_has_logins(v) && v->login == DBU_LOGIN_NONE &&
           v->connection == DBU_CONNECTION_UNKNOWN && act(p, DBU_END_RUN);
}

/* Two passwords of one account: whether something still has the older one, before that ends. */
static bool look_before_end(struct plan *p)
{
    const struct dbu_view *v = p->v;
    return v->publishes && v->strategy == DBU_DUAL_PASSWORD && !dbu_turns(v, &p->t) && v->overlap &&
           v->over && !v->followed && !cannot_read(v) && act(p, DBU_FOLLOW);
}

/* --- what lets in */

static bool create_databases(struct plan *p)
{
    return p->v->databases && !p->v->databases_done && act(p, DBU_CREATE_DATABASES);
}

/* D2: an account that exists comes before its databases. */
static bool create_databases_first(struct plan *p)
{
    return !p->v->created && create_databases(p);
}

/* A member of an owner role that is not there. */
static bool is_lost(const struct dbu_view *v, const struct dbu_turn *t)
{
    const struct dbu_login_view *next = &v->logins[t->next];
    return v->owner_role && t->next > DBU_LOGIN_BASE && next->calls == 1 &&
           next->outcome == DBU_LOGIN_FAILED;
}

/* The owner role has to be there before its members.  Elsewhere an account without a suffix may be
 * there from before, and applications use it. */
static bool sync_owner_first(struct plan *p)
{
    const struct dbu_view *v = p->v;
    bool first = v->owner_role ? !v->created || is_lost(v, &p->t) : p->t.current == DBU_LOGIN_NONE;
    return dbu_has_logins(v) && first && v->owner.calls == 0 && act(p, DBU_SYNC_OWNER);
}

static bool stop_without_owner(struct plan *p)
{
    return p->v->owner.outcome == DBU_LOGIN_FAILED && act(p, DBU_END_RUN);
}

/* Two passwords of one account: applications can read the newer one.  Where the password of the Secret is
 * readable, the server is asked not to end that one. */
static bool is_shown(const struct dbu_view *v)
{
    bool newer = v->password == DBU_PASSWORD_KNOWN && !v->as_status;
    bool known = v->readable || v->as_named || newer || v->password == DBU_PASSWORD_SETTLED;
    return v->connection == DBU_CONNECTION_ABSENT || (v->there && known);
}

/* One account, which may have two passwords.  A new one is set when the status has no end of an older
 * one, which a run before it removes.  Otherwise a run that is killed after it set the password leaves
 * the end of the password before the last, and the next run would count that for the last one, which
 * applications still have. */
static void choose_passwords(const struct plan *p, struct dbu_step *s)
{
    const struct dbu_view *v = p->v;
    bool keeps = v->strategy == DBU_DUAL_PASSWORD;
    s->keep_old = keeps && dbu_is_new(v, &p->t);
    s->set_later = s->keep_old && v->overlap;
    s->discard_old =
        !keeps || (v->overlap && v->over && !v->readers_wait && (!v->publishes || is_shown(v)));
    s->old_stays = keeps && !s->discard_old;
}

static bool sync_login(struct plan *p)
{
    const struct dbu_view *v = p->v;
    const struct dbu_turn *t = &p->t;
    const struct dbu_login_view *next = &v->logins[t->next];
    bool owner_came = is_lost(v, t) && v->owner.calls > 0;
    if (t->next == DBU_LOGIN_NONE || (next->outcome != DBU_NOT_ASKED && !owner_came))
        return false;
    p->step->password_is_new = !v->created || dbu_is_new(v, t) || t->next != t->current;
    p->step->keep_password = t->waits && t->is_new;
    if (!dbu_has_logins(v) || (t->next == DBU_LOGIN_BASE && t->current == DBU_LOGIN_BASE))
        choose_passwords(p, p->step);
    else if (t->next == DBU_LOGIN_BASE)
        p->step->discard_old = true; /* from a time when the account had two */
    return act_on(p, DBU_SYNC, t->next);
}

static bool stop_at_server(struct plan *p)
{
    return p->v->stop && act(p, DBU_END_RUN);
}

/* --- what applications read */

static bool compare_rights(struct plan *p)
{
    const struct dbu_view *v = p->v;
    enum dbu_login now = p->t.current;
    return p->t.next != now && now != DBU_LOGIN_NONE && !v->owner_role &&
           v->logins[p->t.next].outcome == DBU_RIGHTS_REFUSED && !v->logins[now].kept &&
           act_on(p, DBU_KEEP_RIGHTS, now);
}

/* D1: only a credential that logs in. */
static bool publish(struct plan *p)
{
    const struct dbu_view *v = p->v;
    bool open = v->connection <= DBU_CONNECTION_OURS;
    bool waits = v->waits || (p->t.waits && p->t.is_new);
    return v->publishes && open && v->password == DBU_PASSWORD_KNOWN && !waits &&
           dbu_can_log_in(v, &p->t) && is_as_good(v, &p->t) && act(p, DBU_PUBLISH);
}

static bool follow_readers(struct plan *p)
{
    const struct dbu_view *v = p->v;
    bool failed = cannot_read(v) || v->connection == DBU_CONNECTION_FAILED;
    bool older = dbu_turns(v, &p->t) ? p->t.previous != DBU_LOGIN_NONE && is_confirmed(v, &p->t)
                                     : v->strategy == DBU_DUAL_PASSWORD && v->old_valid && !failed;
    return v->publishes && !v->followed && older && dbu_can_log_in(v, &p->t) && act(p, DBU_FOLLOW);
}

/* --- what locks out */

static bool lock(struct plan *p, enum dbu_login l)
{
    const struct dbu_view *v = p->v;
    bool is_previous = l == p->t.previous;
    bool is_owner = l == DBU_LOGIN_BASE && v->owner_role && !is_previous;
    if (l == p->t.next || v->logins[l].locked)
        return false;
    if (is_owner && (v->owner.calls == 0 || !v->owner.could))
        return false; /* not known yet; or it could not log in before */
    if (is_previous && (p->t.begins || !v->overlap || !v->over || v->readers_wait))
        return false;
    p->step->waits = is_previous;
    p->step->needed = l == DBU_LOGIN_BASE ? v->owner_role : v->strategy == DBU_TWINS;
    return act_on(p, DBU_LOCK, l);
}

/* D1: the login that takes its place works, and applications can read it. */
static bool lock_logins(struct plan *p)
{
    if (!dbu_has_logins(p->v) || p->t.next == DBU_LOGIN_NONE || !dbu_is_published(p->v, &p->t) ||
        !is_confirmed(p->v, &p->t))
        return false;
    if (p->t.previous != DBU_LOGIN_NONE && lock(p, p->t.previous))
        return true;
    for (enum dbu_login l = DBU_LOGIN_BASE; l < DBU_LOGINS; l++)
        if (lock(p, l))
            return true;
    return false;
}

/* D2: after the connection Secret, so that applications that connect again find the new password. */
static bool end_sessions(struct plan *p)
{
    const struct dbu_view *v = p->v;
    if (!v->cuts || (v->publishes && v->connection <= DBU_CONNECTION_OURS))
        return false;
    for (enum dbu_login l = DBU_LOGIN_BASE; l < DBU_LOGINS; l++)
        if (v->logins[l].sessions)
            return act_on(p, DBU_END_SESSIONS, l);
    return false;
}

/* --- rights, which anybody on the server may have made many */

static bool sync_owner(struct plan *p)
{
    return dbu_has_logins(p->v) && p->v->owner_role && p->v->owner.calls == 0 &&
           act(p, DBU_SYNC_OWNER);
}

/* The login before: its rights stay as wanted. */
static bool keep_rights(struct plan *p)
{
    enum dbu_login l = p->t.previous;
    const struct dbu_login_view *login = &p->v->logins[l];
    return l != DBU_LOGIN_NONE && l != p->t.next && !(l == DBU_LOGIN_BASE && p->v->owner_role) &&
           !login->locked && !login->kept && dbu_can_log_in(p->v, &p->t) &&
           act_on(p, DBU_KEEP_RIGHTS, l);
}

/* Without a status there may be more logins than it says. */
static bool lock_strays(struct plan *p)
{
    const struct dbu_view *v = p->v;
    if (v->created || dbu_has_logins(v) || v->logins[DBU_LOGIN_BASE].outcome == DBU_LOGIN_FAILED)
        return false;
    for (enum dbu_login l = DBU_LOGIN_A; l < DBU_LOGINS; l++)
        if (lock(p, l))
            return true;
    return false;
}

static bool add_schemas(struct plan *p)
{
    return p->v->databases && !p->v->schemas_done && act(p, DBU_ADD_SCHEMAS);
}

/* --- deletion */

static bool drops_databases(const struct dbu_view *v)
{
    return v->drops && !v->databases_done;
}

/* D2: a database with much data, and a database or a login that cannot be dropped, keep no login open. */
static bool lock_all(struct plan *p)
{
    if ((!drops_databases(p->v) && !p->v->not_ended) || p->v->ending == DBU_END_RELEASE)
        return false;
    for (enum dbu_login l = DBU_LOGIN_BASE; l < DBU_LOGINS; l++) {
        if (p->v->logins[l].locked)
            continue;
        p->step->ending = DBU_END_LOCK;
        return act_on(p, DBU_END_LOGIN, l);
    }
    return false;
}

static bool drop_databases(struct plan *p)
{
    return p->v->databases && !p->v->databases_done && act(p, DBU_DROP_DATABASES);
}

static bool stop_unless_ended(struct plan *p)
{
    return p->v->not_ended && act(p, DBU_END_RUN);
}

/* On PostgreSQL the logins are members of the account, which is dropped last. */
static bool end_logins(struct plan *p)
{
    static const enum dbu_login order[] = {DBU_LOGIN_A, DBU_LOGIN_B, DBU_LOGIN_BASE};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if (p->v->logins[order[i]].ended)
            continue;
        p->step->ending = p->v->ending;
        return act_on(p, DBU_END_LOGIN, order[i]);
    }
    return false;
}

/* D6 */
static bool remove_finalizer(struct plan *p)
{
    return p->v->finalizer && act(p, DBU_REMOVE_FINALIZER);
}

/* --- the rules */

typedef bool rule_fn(struct plan *p);

static rule_fn *const life[] = {
    read_password,
    lack_password,
    renew_password,
    add_finalizer,
    note_logins,
    look_at_connection,
    stop_without_secret,
    look_before_end,
    stop_at_server,
    create_databases_first,
    sync_owner_first,
    stop_without_owner,
    sync_login,
    compare_rights,
    publish,
    follow_readers,
    lock_logins,
    end_sessions,
    sync_owner,
    lock_logins,
    lock_strays,
    end_sessions,
    create_databases,
    keep_rights,
    add_schemas,
};

static rule_fn *const death[] = {
    stop_at_server, lock_all, stop_unless_ended, drop_databases, end_logins, remove_finalizer,
};

void dbu_plan(const struct dbu_view *v, struct dbu_step *ret)
{
    struct plan p = {.v = v, .step = ret};
    rule_fn *const *rules = v->deleting ? death : life;
    size_t count = v->deleting ? sizeof(death) / sizeof(death[0]) : sizeof(life) / sizeof(life[0]);
    dbu_turn_of(v, &p.t);
    *ret = (struct dbu_step){.act = DBU_END_RUN};
    for (size_t i = 0; i < count; i++)
        if (rules[i](&p))
            return;
}

/* --- the status */

static enum dbu_end end_of_login(const struct dbu_view *v, const struct dbu_turn *t)
{
    if (t->previous == DBU_LOGIN_NONE || v->retired || !dbu_is_published(v, t))
        return dbu_can_log_in(v, t) ? DBU_END_NONE : DBU_END_KEPT;
    return t->begins || !v->overlap ? DBU_END_BEGINS : DBU_END_STAYS;
}

/* Written in the same status as the new fingerprint, so that an old end never counts for it. */
static enum dbu_end end_of_password(const struct dbu_view *v, const struct dbu_turn *t)
{
    bool set = v->changed || dbu_is_new(v, t);
    bool valid = dbu_can_log_in(v, t) ? v->old_valid : v->changed;
    if (!valid || v->strategy != DBU_DUAL_PASSWORD || v->later)
        return dbu_can_log_in(v, t) || v->later ? DBU_END_NONE : DBU_END_KEPT;
    if (v->waits && v->overlap)
        return DBU_END_STAYS;
    return set || !v->overlap ? DBU_END_BEGINS : DBU_END_STAYS;
}

/* Of a run that was killed, and not locked yet: the next run still has to look for them. */
static bool has_strays(const struct dbu_view *v)
{
    return !v->created && !dbu_has_logins(v) &&
           (v->logins[DBU_LOGIN_A].outcome == DBU_LOGIN_FAILED ||
            v->logins[DBU_LOGIN_B].outcome == DBU_LOGIN_FAILED);
}

void dbu_remember(const struct dbu_view *v, struct dbu_memory *ret)
{
    struct dbu_turn t;
    dbu_turn_of(v, &t);
    bool published = dbu_is_published(v, &t), two = dbu_turns(v, &t);
    bool strays = v->logins[DBU_LOGIN_A].found || v->logins[DBU_LOGIN_B].found;
    *ret = (struct dbu_memory){
        .created = dbu_can_log_in(v, &t) && !has_strays(v),
        .password = v->password == DBU_PASSWORD_KNOWN && dbu_can_log_in(v, &t) && !v->waits &&
                    !(t.waits && t.is_new) && (!dbu_has_logins(v) || published),
        .end = two ? end_of_login(v, &t) : end_of_password(v, &t),
    };
    if ((dbu_has_logins(v) && published) || strays) {
        ret->logins = true;
        ret->login = t.next;
        ret->previous = v->retired ? DBU_LOGIN_NONE : t.previous;
        ret->rotation = t.rotation;
        /* The next run may not be able to read the Secret. */
        ret->password_read = t.confirmed && t.next == t.current && !ret->password;
    } else if (dbu_has_logins(v) && !v->has_logins && t.current != DBU_LOGIN_NONE &&
               t.next != t.current) {
        ret->logins = true; /* the next login was made, and applications cannot read it yet */
        ret->login = t.current;
        ret->rotation = v->rotation;
    }
}
