/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the status of a DatabaseUser.  No I/O. */
#include "kinds/databaseuser/status/status.h"

#include "base/util.h"
#include "controller/status.h"
#include "kinds/databaseuser/account.h"
#include "kinds/databaseuser/databases.h"
#include "kinds/databaseuser/plan/rotation.h"
#include "kinds/databaseuser/plan/rotation_clock.h"
#include "kinds/databaseuser/plan/strategy.h"
#include "kinds/databaseuser/plan/twin.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/secret/owned_secret.h"
#include "kinds/databaseuser/secret/secret.h"
#include "kinds/databaseuser/status/retry.h"
#include "kinds/databaseuser/target/targets_status.h"
#include "kube/tree.h"

#include <assert.h>
#include <stdio.h>

#define SECRET_AGAIN_MS (5u * 60000)  /* the watch reports a change sooner */
#define TARGET_AGAIN_MS (10u * 60000) /* a new configuration wakes it sooner */
#define CLAIM_AGAIN_MS (5u * 60000)
#define OBJECT_AGAIN_MS 60000 /* a missing database or table of a grant: no watch reports it */
#define FOREIGN_MAX 50

enum { SECRET, TARGET, USER, GRANTS, CONNECTION, ROTATION, DATABASES, ASPECTS };

static const char *const types[] = {
    [SECRET] = "SecretResolved",
    [TARGET] = "TargetReachable",
    [USER] = "UserSynced",
    [GRANTS] = "GrantsSynced",
    [CONNECTION] = "ConnectionSecretSynced", /* only if the spec wants one */
    [ROTATION] = "RotationComplete",         /* the same */
    [DATABASES] = "DatabasesSynced",         /* the same */
};
static_assert(STW_COUNT(types) == ASPECTS, "one type for each aspect");

/* --- meaning of the server's errors */

static const struct {
    int aspect; /* ASPECTS: depends on the step */
    enum stw_level level;
    const char *reason;
} meanings[] = {
    [STW_SQL_FINE] = {ASPECTS, STW_LEVEL_FINE, NULL},
    [STW_SQL_CONNECT] = {TARGET, STW_LEVEL_RETRYING, "ConnectFailed"},
    [STW_SQL_CIRCUIT_OPEN] = {TARGET, STW_LEVEL_RETRYING, "CircuitOpen"},
    [STW_SQL_LOCKED] = {ASPECTS, STW_LEVEL_RETRYING, "StatementTimeout"},
    [STW_SQL_BUSY] = {TARGET, STW_LEVEL_RETRYING, "ConnectFailed"},
    [STW_SQL_AUTH] = {TARGET, STW_LEVEL_RETRYING, "AuthFailed"},
    [STW_SQL_TLS] = {TARGET, STW_LEVEL_RETRYING, "TLSFailed"},
    [STW_SQL_READ_ONLY] = {TARGET, STW_LEVEL_RETRYING, "ReadOnlyServer"},
    [STW_SQL_LOOKUP] = {USER, STW_LEVEL_RETRYING, "LookupFailed"},
    [STW_SQL_EXISTS] = {USER, STW_LEVEL_STALLED, "AlreadyExists"},
    [STW_SQL_NOT_OURS] = {USER, STW_LEVEL_STALLED, "Conflict"},
    [STW_SQL_POLICY] = {USER, STW_LEVEL_STALLED, "PasswordPolicy"},
    [STW_SQL_DENIED] = {ASPECTS, STW_LEVEL_STALLED, NULL},
    [STW_SQL_NO_OBJECT] = {GRANTS, STW_LEVEL_WAITING, "NoSuchObject"},
    [STW_SQL_OWNS_OBJECTS] = {USER, STW_LEVEL_STALLED, "AlterFailed"},
    [STW_SQL_UNSUPPORTED] = {ASPECTS, STW_LEVEL_STALLED, NULL},
    [STW_SQL_NO_PLUGIN] = {USER, STW_LEVEL_STALLED, "PluginNotLoaded"},
    [STW_SQL_FAILED] = {ASPECTS, STW_LEVEL_RETRYING, NULL},
};
static_assert(STW_COUNT(meanings) == STW_SQL_TROUBLES, "one row for each trouble");

static const struct {
    int aspect;
    const char *reason;
} steps[] = {
    [STW_SQL_STEP_CONNECT] = {TARGET, "ConnectFailed"},
    [STW_SQL_STEP_LOOKUP] = {USER, "LookupFailed"},
    [STW_SQL_STEP_CREATE] = {USER, "CreateFailed"},
    [STW_SQL_STEP_ALTER] = {USER, "AlterFailed"},
    [STW_SQL_STEP_GRANT] = {GRANTS, "GrantFailed"},
    [STW_SQL_STEP_REVOKE] = {GRANTS, "RevokeFailed"},
    [STW_SQL_STEP_DROP] = {USER, "AlterFailed"}, /* of a host that is no longer wanted */
};
static_assert(STW_COUNT(steps) == STW_SQL_STEPS, "one row for each step");

static int aspect_of(const struct stw_account_report *r)
{
    int aspect = meanings[r->trouble].aspect;
    return aspect == ASPECTS ? steps[r->step].aspect : aspect;
}

static const char *reason_of(const struct stw_account_report *r)
{
    const char *reason = meanings[r->trouble].reason;
    if (!reason && r->trouble == STW_SQL_DENIED && steps[r->step].aspect == GRANTS)
        return "NotAllowed"; /* the admin lacks the privilege itself */
    return reason ? reason : steps[r->step].reason;
}

/* --- aspects; one that was not checked has no type yet */

static void init_aspect(struct stw_aspect *a, int which)
{
    a->type = types[which];
    a->level = STW_LEVEL_FINE;
    a->truth = STW_TRUE;
    a->reason = STW_REASON_SYNCED;
}

static void set_aspect_stalled(struct stw_aspect *a, const char *reason)
{
    a->level = STW_LEVEL_STALLED;
    a->truth = STW_FALSE;
    a->reason = reason;
    a->again_ms = STW_STALLED_AGAIN_MS;
}

static void set_aspect_waiting(struct stw_aspect *a, const char *reason, uint64_t again_ms)
{
    a->level = STW_LEVEL_WAITING;
    a->truth = STW_FALSE;
    a->reason = reason;
    a->again_ms = again_ms;
}

static const char *without_password(const struct dbu *d)
{
    return dbu_is_created(&d->object) ? "the account keeps the password that it has"
                                      : "the account is created when there is one";
}

static void find_secret(const struct dbu *d, struct stw_aspect *a)
{
    const char *name = d->spec.password.name, *key = d->spec.password.key;
    if (d->secret.state == DBU_SECRET_UNREAD)
        return;
    init_aspect(a, SECRET);
    if (dbu_is_iam(&d->spec)) {
        a->reason = "NoPassword";
        STW_ASPECT_SAY(a,
                       "the account logs in with tokens of IAM: it has no password, and no login "
                       "is tried");
        return;
    }
    a->reason = "Resolved";
    STW_ASPECT_SAY(a, "the password is in Secret \"%s\"", name);
    switch (d->secret.state) {
    case DBU_SECRET_MISSING:
        set_aspect_waiting(a, "SecretNotFound", SECRET_AGAIN_MS);
        STW_ASPECT_SAY(a, "Secret \"%s\" not found; %s", name,
                       dbu_is_created(&d->object) ? "the account keeps the password that it has"
                                                  : "the account is created when it appears");
        break;
    case DBU_SECRET_NO_KEY:
        set_aspect_waiting(a, "KeyNotFound", SECRET_AGAIN_MS);
        STW_ASPECT_SAY(a, "Secret \"%s\" has no key \"%s\"; %s", name, key, without_password(d));
        break;
    case DBU_SECRET_FOREIGN:
        set_aspect_stalled(a, "NameConflict");
        STW_ASPECT_SAY(a,
                       "Secret \"%s\" exists and is not controlled by this object; delete it, or "
                       "name it under spec.password.name; %s",
                       name, without_password(d));
        break;
    case DBU_SECRET_EMPTY:
        set_aspect_waiting(a, "EmptyPassword", SECRET_AGAIN_MS);
        STW_ASPECT_SAY(
            a,
            "the value of \"%s\" in Secret \"%s\" is empty, and no account is ever given "
            "an empty password; %s",
            key, name, without_password(d));
        break;
    case DBU_SECRET_ERROR:
        stw_aspect_error(a, &d->secret.err);
        a->reason = a->level == STW_LEVEL_STALLED ? a->reason : "SecretUnreadable";
        STW_ASPECT_SAY(a, "Secret \"%s\" could not be read: %s", name, d->secret.err.text);
        break;
    default:
        if (!d->secret.newline)
            break;
        a->truth = STW_FALSE; /* only a warning: the account is created anyway */
        a->reason = "PasswordHasNewline";
        STW_ASPECT_SAY(a,
                       "the value of \"%s\" in Secret \"%s\" ends in a newline, which is part of "
                       "the password now; if that was not meant, set spec.password.trimNewline or "
                       "write the value again with `printf` or `echo -n`",
                       key, name);
        break;
    }
}

static void find_target(const struct dbu *d, struct stw_aspect *a)
{
    init_aspect(a, TARGET);
    a->reason = "Reachable";
    if (!d->target) {
        set_aspect_waiting(a, "TargetNotFound", TARGET_AGAIN_MS);
        STW_ASPECT_SAY(
            a,
            "steward's configuration has no target \"%s\"; correct the label \"target\", "
            "or have the target added%s",
            d->label, dbu_is_created(&d->object) ? ". The account is left as it is" : "");
        return;
    }
    STW_ASPECT_SAY(a, "target \"%s\" answers", d->target->name);
    if (d->target_err.code != STW_OK) {
        set_aspect_stalled(a, "Unsupported");
        STW_ASPECT_SAY(a, "%s", d->target_err.text);
    } else if (!d->asked || !d->cluster) {
        a->type = NULL; /* not checked */
    }
}

/* Whether the account exists is unknown. */
static bool is_of_lookup(const struct stw_account_report *r)
{
    return r->trouble == STW_SQL_LOOKUP ||
           ((!meanings[r->trouble].reason || r->trouble == STW_SQL_LOCKED) &&
            r->step == STW_SQL_STEP_LOOKUP);
}

/* The error of a login begins with the target, its address and its account. */
static void say_unusable(const struct dbu *d, struct stw_aspect *a)
{
    const char *text = d->report.err.text;
    if (strncmp(text, "target ", 7) == 0)
        STW_ASPECT_SAY(a, "%s", text);
    else
        STW_ASPECT_SAY(a, "target \"%s\" cannot be used: %s", d->target->name, text);
}

/* The server was not tried again: keeps the previous condition, which has the cause. */
static void keep_cause(const struct dbu *d, struct stw_aspect *a)
{
    const json_t *was =
        stw_condition_find(json_object_get(d->object.status, "conditions"), types[TARGET]);
    const char *message = json_string_value(json_object_get(was, "message"));
    say_unusable(d, a);
    for (size_t i = 0; stw_condition_is(was, STW_FALSE) && i < STW_COUNT(meanings); i++) {
        if (meanings[i].aspect != TARGET ||
            !stw_streq(stw_condition_reason(was), meanings[i].reason) || !message)
            continue;
        a->reason = meanings[i].reason;
        STW_ASPECT_SAY(a, "%s", message);
    }
}

static void find_trouble(const struct dbu *d, struct stw_aspect *a)
{
    const struct stw_account_report *r = &d->report;
    a->level = meanings[r->trouble].level;
    a->truth = is_of_lookup(r) ? STW_UNKNOWN : STW_FALSE;
    a->reason = reason_of(r);
    a->err = &r->err;
    a->again_ms = a->level == STW_LEVEL_WAITING ? OBJECT_AGAIN_MS : STW_STALLED_AGAIN_MS;
    switch (r->trouble) {
    case STW_SQL_CONNECT:
    case STW_SQL_AUTH:
    case STW_SQL_TLS:
    case STW_SQL_READ_ONLY:
        say_unusable(d, a);
        break;
    case STW_SQL_CIRCUIT_OPEN:
        keep_cause(d, a);
        break;
    case STW_SQL_EXISTS:
        STW_ASPECT_SAY(a,
                       dbu_wants_adoption(d)
                           ? "%s; it is left as it is"
                           : "%s; it is left as it is. Set spec.adoptionPolicy to Adopt to take it "
                             "over, if the target allows that, or choose another spec.user",
                       r->err.text);
        break;
    case STW_SQL_NOT_OURS:
        STW_ASPECT_SAY(a, "%s; it is left as it is", r->err.text);
        break;
    case STW_SQL_NO_PLUGIN:
        STW_ASPECT_SAY(a, "%s%s%s%s", r->err.text, d->spec.auth_plugin ? "; have \"" : "",
                       d->spec.auth_plugin ? d->spec.auth_plugin : "",
                       d->spec.auth_plugin ? "\" loaded, or choose another spec.authPlugin" : "");
        break;
    default:
        STW_ASPECT_SAY(a, "%s", r->err.text);
        break;
    }
}

/* Whether the run got past the account to its grants. */
static bool came_to_grants(const struct dbu *d)
{
    return d->asked && (d->report.trouble == STW_SQL_FINE || aspect_of(&d->report) == GRANTS);
}

static void find_user(const struct dbu *d, struct stw_aspect *a)
{
    if (d->claim == DBU_CLAIM_TAKEN) {
        init_aspect(a, USER);
        set_aspect_stalled(a, "Conflict");
        a->again_ms = CLAIM_AGAIN_MS;
        STW_ASPECT_SAY(
            a,
            "account \"%s\" on target \"%s\" is managed by DatabaseUser %s; delete one of "
            "the two",
            d->spec.user, d->label, d->holder);
    } else if (d->claim == DBU_CLAIM_FULL) {
        init_aspect(a, USER);
        set_aspect_stalled(a, STW_REASON_QUOTA);
        a->again_ms = STW_REFUSED_AGAIN_MS;
        STW_ASPECT_SAY(a,
                       "target \"%s\" takes at most %lld accounts, and has them; delete others, or "
                       "have maxUsers raised",
                       d->label, (long long)d->target->max_users);
    } else if (came_to_grants(d)) {
        init_aspect(a, USER);
        STW_ASPECT_SAY(a, d->report.plugin_waits
                              ? "the account is as this object wants it, except for the plugin, "
                                "which is set when the old password is no longer valid"
                              : "the account is as this object wants it");
    }
}

static void find_grants(const struct dbu *d, struct stw_aspect *a)
{
    if (!came_to_grants(d))
        return;
    init_aspect(a, GRANTS);
    STW_ASPECT_SAY(a, "the rights are as this object wants them");
}

static void find_connection(const struct dbu *d, struct stw_aspect *a)
{
    const struct dbu_owned *c = &d->connection;
    const char *name = d->spec.connection.name;
    if (c->state == DBU_OWNED_UNCHECKED)
        return; /* nothing has changed since it was written, or the account is not ready */
    init_aspect(a, CONNECTION);
    STW_ASPECT_SAY(a, "the connection is in Secret \"%s\"", name);
    if (c->state == DBU_OWNED_FOREIGN) {
        set_aspect_stalled(a, "NameConflict");
        STW_ASPECT_SAY(a,
                       "Secret \"%s\" exists and is not controlled by this object; delete it, or "
                       "choose another spec.connectionSecret.name",
                       name);
    } else if (c->state == DBU_OWNED_FAILED) {
        stw_aspect_error(a, &c->err);
        STW_ASPECT_SAY(a, "the connection could not be written: %s", c->err.text);
    }
}

/* An overlap is normal, and leaves the object ready. */
static void find_rotation(const struct dbu *d, struct stw_aspect *a)
{
    char end[STW_TIME_LEN];
    uint64_t in_ms;
    if (!d->asked || !dbu_login_is_done(d))
        return;
    init_aspect(a, ROTATION);
    a->reason = "Complete";
    if (dbu_turns(&d->view, &d->twins.turn)) {
        dbu_twins_find(d, a);
        return;
    }
    STW_ASPECT_SAY(a, "only the current password is valid");
    if (!dbu_rotation_end(d, end, &in_ms) && !d->report.password_next)
        return;
    a->truth = STW_FALSE;
    a->reason = dbu_rotation_is_stuck(d)   ? DBU_NOT_RESTARTED
                : d->report.password_waits ? "NewPasswordWaits"
                                           : "Overlap";
    if (dbu_rotation_is_stuck(d))
        STW_ASPECT_SAY(a, "the old password is valid as long as it is needed");
    else if (d->report.password_next)
        STW_ASPECT_SAY(a, "the password of the Secret is set next");
    else if (d->report.password_waits)
        STW_ASPECT_SAY(a,
                       "the password of the Secret is set when the one before the last is no "
                       "longer valid, at %s; for an earlier change set the strategy InPlace",
                       end);
    else
        STW_ASPECT_SAY(a, "the old password is valid as well, until %s", end);
    dbu_rotation_add_readers(d, a);
}

static bool is_wanted(const struct dbu *d, int aspect)
{
    switch (aspect) {
    case CONNECTION:
        return dbu_connection_wanted(d);
    case ROTATION:
        return dbu_rotation_wanted(d) || dbu_turns(&d->view, &d->twins.turn);
    case DATABASES:
        return dbu_databases_wanted(d) || json_object_get(d->object.status, "databases");
    default:
        return true;
    }
}

static void find_databases(const struct dbu *d, struct stw_aspect *a)
{
    if (!d->databases.asked || !is_wanted(d, DATABASES))
        return;
    init_aspect(a, DATABASES);
    dbu_databases_judge(d, a);
}

static void find_all(const struct dbu *d, struct stw_aspect *all)
{
    for (int i = 0; i < ASPECTS; i++)
        all[i].level = STW_LEVEL_FINE;
    find_secret(d, &all[SECRET]);
    find_target(d, &all[TARGET]);
    find_user(d, &all[USER]);
    find_grants(d, &all[GRANTS]);
    find_connection(d, &all[CONNECTION]);
    find_rotation(d, &all[ROTATION]);
    find_databases(d, &all[DATABASES]);
    if (d->asked && d->report.trouble != STW_SQL_FINE) {
        int which = aspect_of(&d->report);
        init_aspect(&all[which], which);
        find_trouble(d, &all[which]);
    }
}

/* Aspects that were not checked keep their condition. */
static void add_conditions(const struct dbu *d, const struct stw_aspect *all,
                           struct stw_conditions *c)
{
    for (int i = 0; i < ASPECTS; i++) {
        if (!is_wanted(d, i))
            continue;
        if (all[i].type)
            stw_condition_set(c, types[i], all[i].truth, all[i].reason, "%s", all[i].message);
        else if (stw_condition_find(c->old, types[i]))
            stw_condition_keep(c, types[i]);
        else
            stw_condition_set(c, types[i], STW_UNKNOWN, "NotChecked", "not looked at yet");
    }
}

/* --- fields */

static json_t *build_line_list(const struct stw_buf *text, size_t max)
{
    json_t *list = json_array();
    for (const char *p = stw_buf_str(text); *p && json_array_size(list) < max;) {
        size_t len = strcspn(p, "\n");
        (void)json_array_append_new(list, json_stringn(p, len));
        p += len + (p[len] == '\n');
    }
    return list;
}

static void set_lines(json_t *status, const char *key, const struct stw_buf *text, size_t max)
{
    if (text->len > 0)
        (void)json_object_set_new(status, key, build_line_list(text, max));
    else
        (void)json_object_del(status, key);
}

static void add_account(const struct dbu *d, json_t *status)
{
    stw_autobuf struct stw_buf account = STW_BUF_INIT(1024);
    struct stw_json hosts = d->spec.hosts;
    dbu_account_text(d, &account);
    stw_tree_set_text(status, "account", stw_buf_str(&account));
    stw_tree_set_text(status, "target", d->target->name);
    stw_tree_set_text(status, "engine", stw_engine_name(d->target->engine));
    stw_tree_set_text(status, "serverVersion", d->report.server_version);
    stw_tree_set_text(status, "ownershipMark", d->report.mark);
    (void)json_object_set_new(status, "owned", json_boolean(d->report.owned));
    if (d->target->engine != STW_ENGINE_POSTGRESQL)
        (void)json_object_set_new(
            status, "hosts", stw_json_there(hosts) ? stw_tree_read(hosts) : json_pack("[s]", "%"));
}

/* A run that set the password may have been killed before it wrote the status.  Without a new time
 * the next password would be due at once. */
static bool was_set_before(const struct dbu *d)
{
    const char *last = stw_tree_text(d->object.status, "passwordFingerprint");
    return *last && *d->fingerprint && !stw_streq(last, d->fingerprint);
}

/* The password on the server is the one of the Secret, even if the grants failed. */
static void add_password(const struct dbu *d, const struct dbu_memory *m, json_t *status,
                         const char *now)
{
    if (d->report.created || d->report.password_changed)
        stw_tree_set_text(status, "lastRotationTime", now);
    if (m->password_read && *d->named_fingerprint)
        stw_tree_set_text(status, "passwordFingerprint", d->named_fingerprint);
    if (!m->password)
        return;
    if (was_set_before(d))
        stw_tree_set_text(status, "lastRotationTime", now);
    stw_tree_set_text(status, "secretResourceVersion", d->secret.resource_version);
    stw_tree_set_text(status, "passwordFingerprint", d->fingerprint);
}

static void add_connection(const struct dbu *d, json_t *status)
{
    if (!dbu_connection_wanted(d))
        (void)json_object_del(status, "connectionSecret");
    else if (d->connection.state == DBU_OWNED_SYNCED)
        (void)json_object_set_new(status, "connectionSecret",
                                  json_pack("{s:s,s:s,s:s}", "name", d->spec.connection.name,
                                            "resourceVersion", d->connection.version, "inputs",
                                            d->connection.inputs));
}

static void set_login(const struct dbu *d, json_t *status, const char *field, enum dbu_login login)
{
    char name[DBU_LOGIN_MAX];
    dbu_login_make(d->spec.user, login, name);
    if (login == DBU_LOGIN_NONE)
        (void)json_object_del(status, field);
    else
        stw_tree_set_text(status, field, name);
}

static void add_logins(const struct dbu *d, const struct dbu_memory *m, json_t *status)
{
    if (!m->logins)
        return;
    set_login(d, status, "login", m->login);
    set_login(d, status, "previousLogin", m->previous);
    (void)json_object_set_new(status, "rotation", json_integer(m->rotation));
}

/* Also by a run that was killed before it wrote the status. */
static bool has_ended(const struct dbu *d)
{
    if (!dbu_login_is_done(d) || dbu_rotation_begins(d))
        return false;
    if (dbu_turns(&d->view, &d->twins.turn))
        return d->view.retired || (d->twins.published && d->twins.turn.previous == DBU_LOGIN_NONE);
    return !d->report.old_valid;
}

/* When the latest rotation came to which step. */
static void add_steps(const struct dbu *d, json_t *status, const char *now)
{
    const struct dbu_readers *r = &d->readers;
    char published[STW_TIME_LEN];
    json_t *last = json_object_get(status, "lastRotation");
    last = last && !dbu_rotation_begins(d) ? json_deep_copy(last) : json_object();
    dbu_rotation_published(d, published);
    if (dbu_rotation_begins(d))
        stw_tree_set_text(last, "publishedTime", published);
    if (r->looked && !r->unseen)
        (void)json_object_set_new(last, "restarted", json_integer(r->restarted));
    if (r->waits > 0)
        (void)json_object_del(last, "replacedTime");
    else if (r->looked && !r->unseen && !json_object_get(last, "replacedTime"))
        stw_tree_set_text(last, "replacedTime", now);
    if (has_ended(d) && !json_object_get(last, "endTime"))
        stw_tree_set_text(last, "endTime", now);
    if (json_object_get(last, "publishedTime"))
        (void)json_object_set(status, "lastRotation", last);
    json_decref(last);
}

/* Written in the same status as the new fingerprint, so that an old end never counts for it. */
static void add_rotation(const struct dbu *d, const struct dbu_memory *m, json_t *status,
                         const char *now)
{
    char end[STW_TIME_LEN];
    uint64_t in_ms;
    if (!came_to_grants(d))
        return;
    add_logins(d, m, status);
    add_steps(d, status, now);
    if (dbu_rotation_next(d, stw_tree_text(status, "lastRotationTime"), end, &in_ms))
        stw_tree_set_text(status, "nextRotationTime", end);
    else
        (void)json_object_del(status, "nextRotationTime");
    if (dbu_rotation_end(d, end, &in_ms))
        stw_tree_set_text(status, "oldPasswordValidUntil", end);
    else if (m->end == DBU_END_NONE)
        (void)json_object_del(status, "oldPasswordValidUntil");
}

static void add_fields(const struct dbu *d, json_t *status, const char *now)
{
    add_connection(d, status);
    dbu_targets_add_status(d, status);
    dbu_databases_add_status(d, status);
    const struct stw_account_report *r = &d->report;
    struct dbu_memory m;
    dbu_remember(&d->view, &m);
    if (d->claim == DBU_CLAIM_TAKEN)
        (void)json_object_set_new(status, "owned", json_false());
    if (!d->asked)
        return;
    if (m.created || r->created)
        add_account(d, status);
    if (came_to_grants(d)) {
        add_password(d, &m, status, now);
        set_lines(status, "currentGrants", &r->granted, SIZE_MAX);
        set_lines(status, "foreignGrants", &r->foreign, FOREIGN_MAX);
    }
    add_rotation(d, &m, status, now);
}

/* A new lastVerifiedTime alone does not cause a write: it is written with other changes. */
static void set_verified_time(const struct dbu *d, json_t *status, const char *now)
{
    json_t *last = json_object_get(d->object.status, "lastReconcileTime");
    if (!came_to_grants(d))
        return;
    json_auto_t *copy = json_copy(status);
    if (last)
        (void)json_object_set(copy, "lastReconcileTime", last);
    if (copy && !json_equal(copy, d->object.status))
        stw_tree_set_text(status, "lastVerifiedTime", now);
}

static const char *const keep[] = {"account",
                                   "hosts",
                                   "target",
                                   "engine",
                                   "serverVersion",
                                   "secretResourceVersion",
                                   "passwordFingerprint",
                                   "lastRotationTime",
                                   "oldPasswordValidUntil",
                                   "login",
                                   "previousLogin",
                                   "rotation",
                                   "lastRotation",
                                   "nextRotationTime",
                                   "currentGrants",
                                   "foreignGrants",
                                   "owned",
                                   "ownershipMark",
                                   "lastVerifiedTime",
                                   "connectionSecret",
                                   "databases",
                                   "targets",
                                   "targetsLeftOut",
                                   NULL};

uint64_t dbu_resync_ms(const char *key, int64_t resync_seconds, uint64_t now_ms)
{
    const uint64_t seed[] = {stw_hash_bytes(key, strlen(key)).lo, now_ms};
    uint64_t ms = (uint64_t)resync_seconds * 1000;
    return ms - stw_hash_bytes(seed, sizeof(seed)).lo % (ms / 5 + 1);
}

/* D2: the end of an older credential waits for nothing that fails on its own. */
static void limit_wait(const struct dbu *d, struct stw_verdict *v)
{
    char end[STW_TIME_LEN];
    uint64_t in_ms = UINT64_MAX;
    if (!d->asked || v->level == STW_LEVEL_RETRYING)
        return;
    if (!dbu_rotation_end(d, end, &in_ms) && d->report.password_next)
        in_ms = 1;
    v->again_ms = STW_MIN(v->again_ms, in_ms);
    if (dbu_rotation_next(d, NULL, end, &in_ms))
        v->again_ms = STW_MIN(v->again_ms, in_ms);
}

static void say_fine(const struct dbu *d, struct stw_verdict *v)
{
    stw_autobuf struct stw_buf account = STW_BUF_INIT(1024);
    dbu_account_text(d, &account);
    v->reason = "Succeeded";
    v->again_ms = dbu_resync_ms(d->run->key, d->spec.resync_seconds, stw_now_ms(d->run->clock));
    stw_format(v->message, sizeof(v->message), "account \"%.400s\" on target \"%.200s\" is ready",
               stw_buf_str(&account), d->target->name);
}

void dbu_judge(struct dbu *d, struct stw_verdict *v, json_t **ret_status)
{
    struct stw_aspect *all = calloc(ASPECTS, sizeof(*all));
    struct stw_status s;
    *ret_status = NULL;
    if (!all)
        return;
    if (d->asked)
        d->report.err.code = dbu_error_code(d->report.trouble);
    find_all(d, all);
    stw_verdict_of(all, ASPECTS, v);
    if (v->level == STW_LEVEL_FINE)
        say_fine(d, v);
    limit_wait(d, v);
    /* The next step of a rotation relies on it. */
    v->exact = d->view.changed || d->view.retired || dbu_twins_change(d);
    stw_status_begin(&s, d->run, &d->object, keep);
    stw_verdict_conditions(v, &s.conditions);
    add_conditions(d, all, &s.conditions);
    free(all);
    add_fields(d, s.tree, s.now);
    char now[STW_TIME_LEN];
    memcpy(now, s.now, sizeof(now));
    *ret_status = stw_status_end(&s);
    set_verified_time(d, *ret_status, now);
}

/* --- a blocked deletion */

static const char *blocked_reason(enum stw_sql_trouble t)
{
    switch (t) {
    case STW_SQL_EXISTS:
    case STW_SQL_NOT_OURS:
        return "NotOurs";
    case STW_SQL_OWNS_OBJECTS:
        return "OwnsObjects";
    case STW_SQL_LOCKED:
        return "StatementTimeout";
    case STW_SQL_DENIED:
    case STW_SQL_UNSUPPORTED:
    case STW_SQL_NO_PLUGIN:
    case STW_SQL_POLICY:
    case STW_SQL_NO_OBJECT:
    case STW_SQL_FAILED:
        return "DropFailed";
    default:
        return "ServerUnreachable";
    }
}

/* The server was not tried again: keeps the message, since a new one would be reported as a new
 * problem. */
static bool keep_blocked(const struct dbu *d, struct stw_verdict *v)
{
    const json_t *was =
        stw_condition_find(json_object_get(d->object.status, "conditions"), "CleanupBlocked");
    const char *message = json_string_value(json_object_get(was, "message"));
    if (!message || !stw_streq(stw_condition_reason(was), v->reason))
        return false;
    stw_format(v->message, sizeof(v->message), "%s", message);
    return true;
}

static void say_blocked(const struct dbu *d, struct stw_verdict *v)
{
    char forced[STW_OWN_NAME_LEN];
    const struct stw_account_report *r = &d->report;
    bool foreign = r->trouble == STW_SQL_EXISTS || r->trouble == STW_SQL_NOT_OURS;
    bool lock = stw_same(d->spec.deletion_policy, "Lock");
    *v = (struct stw_verdict){.level = foreign ? STW_LEVEL_STALLED : STW_LEVEL_RETRYING,
                              .reason = d->cluster ? blocked_reason(r->trouble) : "LookupFailed",
                              .again_ms = STW_STALLED_AGAIN_MS,
                              .err = &r->err};
    if (r->trouble == STW_SQL_CIRCUIT_OPEN && keep_blocked(d, v))
        return;
    stw_operator_text(d->run->op, STW_FORCE_DELETE, forced);
    stw_format(v->message, sizeof(v->message),
               "the account cannot be %s yet: %s. Annotate %s=true "
               "to remove the object and leave the account",
               lock ? "locked" : "dropped", r->err.text, forced);
}

void dbu_judge_cleanup(struct dbu *d, struct stw_verdict *v, json_t **ret_status)
{
    struct stw_status s;
    enum stw_err code = dbu_error_code(d->report.trouble);
    d->report.err.code = code == STW_OK ? STW_ERR_INTERNAL : code;
    say_blocked(d, v);
    stw_status_begin(&s, d->run, &d->object, keep);
    stw_verdict_conditions(v, &s.conditions);
    for (int i = 0; i < ASPECTS; i++)
        if (i < CONNECTION || stw_condition_find(s.conditions.old, types[i]))
            stw_condition_keep(&s.conditions, types[i]);
    stw_condition_set(&s.conditions, "CleanupBlocked", STW_TRUE, v->reason, "%s", v->message);
    *ret_status = stw_status_end(&s);
}
