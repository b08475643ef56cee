/* SPDX-License-Identifier: Apache-2.0
 *
 * TwinAccounts: which login applications use, which one is next, and until when the one before it
 * works.  No I/O. */
#include "kinds/databaseuser/twins_priv.h"

#include "base/log.h"
#include "base/util.h"
#include "kinds/databaseuser/run_priv.h"
#include "kube/tree.h"
#include "schema/arena.h"

#include <assert.h>

#define US_PER_S 1000000
#define OVERLAP_SECONDS 3600 /* without spec.rotation, on the way back to one account */
#define UNCONFIRMED_MS                                                                             \
    10000 /* the overlap is over, and the connection Secret is not as it should be */
#define CHANGE_AGAIN_MS 100 /* a password waited for the end that has just been */
#define DUE_MS 1000         /* times in the status are whole seconds */

/* --- names */

static const char *const suffixes[] = {
    [DBU_LOGIN_NONE] = "",
    [DBU_LOGIN_BASE] = "",
    [DBU_LOGIN_A] = STW_DATABASEUSER_TWIN_A,
    [DBU_LOGIN_B] = STW_DATABASEUSER_TWIN_B,
};
static_assert(STW_COUNT(suffixes) == DBU_LOGINS, "one suffix for each login");

void dbu_login_make(const char *user, enum dbu_login which, char out[DBU_LOGIN_MAX])
{
    stw_format(out, DBU_LOGIN_MAX, "%s%s", user, suffixes[which]);
}

static enum dbu_login find_login(const struct dbuser *d, const char *name)
{
    char one[DBU_LOGIN_MAX];
    for (enum dbu_login l = DBU_LOGIN_BASE; *name && l < DBU_LOGINS; l++) {
        dbu_login_make(d->spec.user, l, one);
        if (stw_streq(name, one))
            return l;
    }
    return DBU_LOGIN_NONE;
}

static void put_login(const struct dbuser *d, enum dbu_login which, char out[DBU_LOGIN_MAX])
{
    dbu_login_make(d->spec.user, which, out);
}

const char *dbu_login_name(struct dbuser *d)
{
    char name[DBU_LOGIN_MAX];
    if (!dbu_twins_used(d) || d->twins.next <= DBU_LOGIN_BASE)
        return d->spec.user;
    put_login(d, d->twins.next, name);
    char *copy = stw_arena_alloc(d->arena, strlen(name) + 1);
    if (!copy)
        return d->spec.user;
    memcpy(copy, name, strlen(name) + 1);
    return copy;
}

/* --- what is wanted, and what there is */

bool dbu_twins_wanted(const struct dbuser *d)
{
    const char *strategy = d->spec.rotation.strategy;
    if (!dbu_rotation_wanted(d) || !strategy || !d->target)
        return false;
    return stw_streq(strategy, "TwinAccounts") ||
           (stw_streq(strategy, "Auto") && d->target->engine != STW_ENGINE_MYSQL);
}

bool dbu_twins_used(const struct dbuser *d)
{
    return dbu_twins_wanted(d) || *stw_tree_text(d->object.status, "login");
}

static enum dbu_login stored_login(const struct dbuser *d, const char *field)
{
    return find_login(d, stw_tree_text(d->object.status, field));
}

bool dbu_twins_active(const struct dbuser *d)
{
    const struct dbu_twins *t = &d->twins;
    if (!dbu_twins_used(d))
        return false;
    return dbu_twins_wanted(d) || t->current != DBU_LOGIN_BASE || t->next != DBU_LOGIN_BASE ||
           t->previous != DBU_LOGIN_NONE;
}

void dbu_twins_recall(struct dbuser *d)
{
    struct dbu_twins *t = &d->twins;
    *t = (struct dbu_twins){.previous = stored_login(d, "previousLogin")};
    t->current = stored_login(d, "login");
    t->rotation = stw_tree_count(d->object.status, "rotation");
    if (t->current == DBU_LOGIN_NONE && dbu_is_created(&d->object))
        t->current = DBU_LOGIN_BASE;
    if (t->current != DBU_LOGIN_NONE)
        stw_format(t->of_current, sizeof(t->of_current), "%s",
                   stw_tree_text(d->object.status, "passwordFingerprint"));
    t->next = t->current;
}

bool dbu_twins_need_password(const struct dbuser *d)
{
    return dbu_twins_used(d) && dbu_twins_wanted(d) == (d->twins.current <= DBU_LOGIN_BASE);
}

/* --- the plan */

/* INT64_MIN: none. */
static int64_t stored_end_us(const struct dbuser *d)
{
    int64_t end_us;
    const char *text = stw_tree_text(d->object.status, "oldPasswordValidUntil");
    return *text && stw_time_parse(text, &end_us) == 0 ? end_us : INT64_MIN;
}

static enum dbu_login choose_login(const struct dbuser *d, bool wanted)
{
    const struct dbu_twins *t = &d->twins;
    if (!wanted)
        return DBU_LOGIN_BASE;
    if (t->current <= DBU_LOGIN_BASE)
        return DBU_LOGIN_A;
    if (!t->is_new)
        return t->current;
    return t->current == DBU_LOGIN_A ? DBU_LOGIN_B : DBU_LOGIN_A;
}

/* A password that has to end at once: the other logins end with it. */
static bool ends_at_once(const struct dbuser *d, bool wanted)
{
    return !wanted && d->twins.is_new && !dbu_rotation_keeps_old(d);
}

/* MySQL: the account has two passwords; the older one ends first. */
static bool has_two_passwords(const struct dbuser *d)
{
    return d->twins.current == DBU_LOGIN_BASE && d->twins.previous == DBU_LOGIN_NONE &&
           stored_end_us(d) > stw_wall_us(d->run->clock);
}

/* The same, for a run that wrote the connection Secret and then no status. */
static bool has_ended_at_once(const struct dbuser *d, bool wanted)
{
    const struct dbu_twins *t = &d->twins;
    return !wanted && !dbu_rotation_keeps_old(d) && t->current == DBU_LOGIN_BASE &&
           !stw_streq(t->of_current, stw_tree_text(d->object.status, "passwordFingerprint"));
}

void dbu_twins_plan(struct dbuser *d)
{
    struct dbu_twins *t = &d->twins;
    bool wanted = dbu_twins_wanted(d);
    enum dbu_login stored = stored_login(d, "login");
    /* The connection Secret was written, and then the status was not. */
    t->begins = stored != DBU_LOGIN_NONE && stored != t->current;
    if (t->begins)
        t->previous = has_ended_at_once(d, wanted) ? DBU_LOGIN_NONE : stored;
    t->next = t->current;
    t->is_new = t->current != DBU_LOGIN_NONE && d->secret.state == DBU_SECRET_FOUND &&
                !stw_streq(d->fingerprint, t->of_current);
    if (d->secret.state != DBU_SECRET_FOUND)
        return;
    enum dbu_login next = choose_login(d, wanted);
    if (next == t->current)
        return;
    bool busy = t->previous != DBU_LOGIN_NONE || has_two_passwords(d);
    t->waits = t->current != DBU_LOGIN_NONE && (t->blocked || (busy && !ends_at_once(d, wanted)));
    if (t->waits)
        return;
    t->begins = t->current != DBU_LOGIN_NONE;
    t->previous = ends_at_once(d, wanted) ? DBU_LOGIN_NONE : t->current;
    t->next = next;
    t->rotation++;
}

bool dbu_twins_change(const struct dbuser *d)
{
    const struct dbu_twins *t = &d->twins;
    return dbu_twins_used(d) && t->current != DBU_LOGIN_NONE && t->next != t->current;
}

/* --- the end of the overlap */

/* A step of the clock backwards, and a shorter overlap, do not leave the login valid for longer than
 * one overlap from now. */
static int64_t compute_end_us(const struct dbuser *d)
{
    int64_t stored = stored_end_us(d), seconds = d->spec.rotation.overlap_seconds;
    if (!dbu_rotation_wanted(d) || seconds <= 0)
        seconds = OVERLAP_SECONDS;
    int64_t latest = stw_wall_us(d->run->clock) + seconds * US_PER_S;
    return d->twins.begins || stored == INT64_MIN ? latest : STW_MIN(stored, latest);
}

/* As the status has it. */
static int64_t whole_end_us(const struct dbuser *d)
{
    return compute_end_us(d) / US_PER_S * US_PER_S;
}

bool dbu_twins_is_over(const struct dbuser *d)
{
    uint64_t left_ms;
    return !d->twins.begins && dbu_overlap_is_over(d, whole_end_us(d), &left_ms);
}

bool dbu_twins_end(const struct dbuser *d, char ret[STW_TIME_LEN], uint64_t *ret_in_ms)
{
    const struct dbu_twins *t = &d->twins;
    if (t->retired && t->waits)
        *ret_in_ms = CHANGE_AGAIN_MS;
    if (t->previous == DBU_LOGIN_NONE || t->retired || !t->published)
        return false;
    stw_time_format(compute_end_us(d), ret);
    bool over = dbu_overlap_is_over(d, whole_end_us(d), ret_in_ms);
    *ret_in_ms = dbu_rotation_look_again_ms(d, over ? UNCONFIRMED_MS : *ret_in_ms + DUE_MS);
    return true;
}

/* --- the condition */

static void say_waiting(const struct dbuser *d, struct stw_aspect *a, const char *current)
{
    a->truth = STW_FALSE;
    if (d->twins.blocked) {
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

void dbu_twins_find(const struct dbuser *d, struct stw_aspect *a)
{
    const struct dbu_twins *t = &d->twins;
    char end[STW_TIME_LEN], next[DBU_LOGIN_MAX], previous[DBU_LOGIN_MAX];
    uint64_t in_ms;
    put_login(d, t->published ? t->next : t->current, next);
    put_login(d, t->previous, previous);
    a->reason = "Complete";
    STW_ASPECT_SAY(a, "login \"%s\" is the only one that works", next);
    if (dbu_rotation_is_stuck(d)) {
        a->truth = STW_FALSE;
        a->reason = DBU_NOT_RESTARTED;
        STW_ASPECT_SAY(a, "login \"%s\" is the current one; \"%s\" works as long as it is needed",
                       next, previous);
        dbu_rotation_add_readers(d, a);
    } else if (t->waits) {
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
    } else if (dbu_twins_end(d, end, &in_ms)) {
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

static void tell_change(const struct dbuser *d)
{
    const struct dbu_twins *t = &d->twins;
    char next[DBU_LOGIN_MAX], current[DBU_LOGIN_MAX];
    put_login(d, t->next, next);
    put_login(d, t->current, current);
    stw_object_event(d->run, &d->object, false, t->is_new ? "PasswordRotated" : "LoginChanged",
                     "Rotate", "login \"%s\" on target \"%s\" replaces \"%s\"", next,
                     d->target->name, current);
    stw_log(STW_LOG_INFO, "changed the login of an account", STW_STR("target", d->target->name),
            STW_STR("login", next));
}

static void tell_end(const struct dbuser *d)
{
    char previous[DBU_LOGIN_MAX];
    put_login(d, d->twins.previous, previous);
    stw_object_event(d->run, &d->object, false, "OldLoginLocked", "Rotate",
                     "login \"%s\" on target \"%s\" no longer works", previous, d->target->name);
    stw_log(STW_LOG_INFO, "locked the old login of an account", STW_STR("target", d->target->name),
            STW_STR("login", previous));
}

void dbu_twins_tell(const struct dbuser *d)
{
    const struct dbu_twins *t = &d->twins;
    if (t->published && dbu_twins_change(d))
        tell_change(d);
    if (t->retired)
        tell_end(d);
}
