/* SPDX-License-Identifier: Apache-2.0
 *
 * TwinAccounts: names, condition and events of the logins.  No I/O. */
#include "kinds/databaseuser/plan/twin.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/util.h"
#include "kinds/databaseuser/plan/rotation.h"
#include "kinds/databaseuser/run_priv.h"
#include "kube/tree.h"

#include <assert.h>

/* --- names */

static const char *const suffixes[] = {
    [DBU_LOGIN_NONE] = "",
    [DBU_LOGIN_BASE] = "",
    [DBU_LOGIN_A] = DBU_TWIN_A,
    [DBU_LOGIN_B] = DBU_TWIN_B,
};
static_assert(STW_COUNT(suffixes) == DBU_LOGINS, "one suffix for each login");

void dbu_login_make(const char *user, enum dbu_login which, char out[DBU_LOGIN_MAX])
{
    stw_format(out, DBU_LOGIN_MAX, "%s%s", user, suffixes[which]);
}

enum dbu_login dbu_login_find(const struct dbu *d, const char *name)
{
    char one[DBU_LOGIN_MAX];
    for (enum dbu_login l = DBU_LOGIN_BASE; *name && l < DBU_LOGINS; l++) {
        dbu_login_make(d->spec.user, l, one);
        if (stw_streq(name, one))
            return l;
    }
    return DBU_LOGIN_NONE;
}

static void put_login(const struct dbu *d, enum dbu_login which, char out[DBU_LOGIN_MAX])
{
    dbu_login_make(d->spec.user, which, out);
}

const char *dbu_login_name(struct dbu *d)
{
    char name[DBU_LOGIN_MAX];
    if (!dbu_has_logins(&d->view) || d->twins.turn.next <= DBU_LOGIN_BASE)
        return d->spec.user;
    put_login(d, d->twins.turn.next, name);
    char *copy = stw_arena_alloc(d->arena, strlen(name) + 1);
    if (!copy)
        return d->spec.user;
    memcpy(copy, name, strlen(name) + 1);
    return copy;
}

/* --- what is wanted, and what there is */

void dbu_twins_take(struct dbu *d)
{
    struct dbu_twins *t = &d->twins;
    dbu_turn_of(&d->view, &t->turn);
    t->published = dbu_has_logins(&d->view) && dbu_is_published(&d->view, &t->turn);
}

bool dbu_twins_change(const struct dbu *d)
{
    const struct dbu_turn *t = &d->twins.turn;
    return dbu_has_logins(&d->view) && t->current != DBU_LOGIN_NONE && t->next != t->current;
}

/* --- the condition */

static void say_waiting(const struct dbu *d, struct stw_aspect *a, const char *current)
{
    a->truth = STW_FALSE;
    if (d->twins.turn.blocked) {
        a->reason = "ConnectionSecretBlocked";
        STW_ASPECT_SAY(a,
                       "login \"%s\" stays as it is: Secret \"%s\" cannot be written, where "
                       "applications would read the next one",
                       current, d->spec.connection.name ? d->spec.connection.name : "");
        return;
    }
    a->reason = "NewPasswordWaits";
    STW_ASPECT_SAY(a,
                   "login \"%s\" stays as it is until the one before it has ended; for an earlier "
                   "change set the strategy InPlace",
                   current);
}

void dbu_twins_find(const struct dbu *d, struct stw_aspect *a)
{
    const struct dbu_twins *t = &d->twins;
    char end[STW_TIME_LEN], next[DBU_LOGIN_MAX], previous[DBU_LOGIN_MAX];
    uint64_t in_ms;
    put_login(d, t->published ? t->turn.next : t->turn.current, next);
    put_login(d, t->turn.previous, previous);
    a->reason = "Complete";
    STW_ASPECT_SAY(a, "login \"%s\" is the only one that works", next);
    if (dbu_rotation_is_stuck(d)) {
        a->truth = STW_FALSE;
        a->reason = DBU_NOT_RESTARTED;
        STW_ASPECT_SAY(a, "login \"%s\" is the current one; \"%s\" works as long as it is needed",
                       next, previous);
        dbu_rotation_add_readers(d, a);
    } else if (t->turn.waits) {
        say_waiting(d, a, next);
        dbu_rotation_add_readers(d, a);
    } else if (!t->published) {
        a->truth = STW_FALSE;
        a->reason = "ConnectionSecretBlocked";
        STW_ASPECT_SAY(a,
                       "the next login works, and is not in the connection Secret yet; login "
                       "\"%s\" stays valid",
                       next);
    } else if (t->sessions > 0) {
        a->truth = STW_FALSE;
        a->reason = "OldLoginInUse";
        STW_ASPECT_SAY(a,
                       "login \"%s\" is the current one; \"%s\" still has %u session%s on the "
                       "server, and works until they have ended: restart what uses it",
                       next, previous, t->sessions, t->sessions == 1 ? "" : "s");
    } else if (dbu_rotation_end(d, end, &in_ms)) {
        a->truth = STW_FALSE;
        a->reason = "Overlap";
        STW_ASPECT_SAY(a, "login \"%s\" is the current one; \"%s\" works as well, until %s%s", next,
                       previous, end,
                       t->hidden ? "; its sessions are not waited for, because the server does not "
                                   "show them to steward's admin: give it PROCESS"
                                 : "");
        dbu_rotation_add_readers(d, a);
    }
}

/* --- events */

static void tell_change(const struct dbu *d)
{
    const struct dbu_twins *t = &d->twins;
    char next[DBU_LOGIN_MAX], current[DBU_LOGIN_MAX];
    put_login(d, t->turn.next, next);
    put_login(d, t->turn.current, current);
    stw_object_event(d->run, &d->object, false, t->turn.is_new ? "PasswordRotated" : "LoginChanged",
                     "Rotate", "login \"%s\" on target \"%s\" replaces \"%s\"", next,
                     d->target->name, current);
    stw_log(STW_LOG_INFO, "changed the login of an account", STW_STR("target", d->target->name),
            STW_STR("login", next));
}

static void tell_end(const struct dbu *d)
{
    char previous[DBU_LOGIN_MAX];
    put_login(d, d->twins.turn.previous, previous);
    stw_object_event(d->run, &d->object, false, "OldLoginLocked", "Rotate",
                     "login \"%s\" on target \"%s\" no longer works", previous, d->target->name);
    stw_log(STW_LOG_INFO, "locked the old login of an account", STW_STR("target", d->target->name),
            STW_STR("login", previous));
}

void dbu_twins_tell(const struct dbu *d)
{
    const struct dbu_twins *t = &d->twins;
    if (t->published && dbu_twins_change(d))
        tell_change(d);
    if (d->view.retired)
        tell_end(d);
}
