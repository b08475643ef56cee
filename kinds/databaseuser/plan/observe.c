/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of a DatabaseUser at the start of a run, from its spec, its status, and the caches, and what
 * the two Secrets add to it.  Decides nothing. */
#include "kinds/databaseuser/plan/observe.h"

#include "base/util.h"
#include "controller/finalizer.h"
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
#include "kube/tree.h"

#include <string.h>

/* --- settled accounts */

/* A digest that identifies the wanted password.  It does not contain the password itself. */
static struct stw_hash wanted_password(const struct dbu *d, const char *version)
{
    const struct dbu_spec_password *p = &d->spec.password;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8192);
    stw_buf_addf(&text, "%s\n%s\n%s\n%d\n%s\n%s", d->object.uid, p->name, p->key, p->trim_newline,
                 version, d->target->name);
    return stw_hash_bytes(stw_buf_str(&text), text.len);
}

/* By the status, the password was taken from this version of the Secret. */
static bool is_settled(const struct dbu *d, const char *version)
{
    const json_t *status = d->object.status, *c;
    c = stw_condition_find(json_object_get(status, "conditions"), "SecretResolved");
    const char *taken = json_string_value(json_object_get(status, "secretResourceVersion"));
    const char *reason = stw_condition_reason(c);
    return dbu_is_created(&d->object) && taken && stw_streq(taken, version) &&
           json_object_get(status, "passwordFingerprint") &&
           json_integer_value(json_object_get(c, "observedGeneration")) == d->object.generation &&
           (stw_streq(reason, "Resolved") || stw_streq(reason, "PasswordHasNewline"));
}

/* The login has to change, for which the password is needed. */
static bool changes_login(const struct dbu_view *v)
{
    return dbu_has_logins(v) && (v->strategy == DBU_TWINS) == (v->login <= DBU_LOGIN_BASE);
}

static void recall_password(struct dbu *d)
{
    char version[STW_RV_LEN];
    struct dbu_view *v = &d->view;
    if (!dbu_is_iam(&d->spec) && dbu_secret_version(d->run, d->spec.password.name, version) &&
        is_settled(d, version) && dbu_connection_is_settled(d) && !changes_login(v) && !v->due)
        d->settled = dbu_compared_get(d->state->compared, d->run->key, wanted_password(d, version));
    if (stw_hash_is_set(d->settled))
        v->password = DBU_PASSWORD_SETTLED;
}

void dbu_remember_password(const struct dbu *d)
{
    if (d->secret.state == DBU_SECRET_FOUND && !dbu_is_iam(&d->spec) &&
        stw_hash_is_set(d->report.stored))
        dbu_compared_put(d->state->compared, d->run->key,
                         wanted_password(d, d->secret.resource_version), d->report.stored);
}

/* --- the cluster */

int dbu_identify(struct dbu *d)
{
    if (dbu_cluster_id_get(d->state->cluster, d->run->client, &d->cluster, &d->report.err) == 0)
        return 0;
    d->asked = true;
    d->report.trouble = STW_SQL_LOOKUP;
    d->report.step = STW_SQL_STEP_LOOKUP;
    return -1;
}

/* --- the start of a run */

static enum dbu_ending find_ending(const struct dbu *d)
{
    if (stw_same(d->spec.deletion_policy, "Lock"))
        return DBU_END_LOCK;
    return stw_same(d->spec.deletion_policy, "Retain") ? DBU_END_RELEASE : DBU_END_DROP;
}

void dbu_observe_object(struct dbu *d)
{
    uint64_t left_ms;
    const json_t *status = d->object.status;
    int64_t end_us = dbu_rotation_stored_end_us(d);
    d->view = (struct dbu_view){
        .strategy = dbu_rotation_strategy(d),
        .owner_role = d->target && d->target->engine == STW_ENGINE_POSTGRESQL,
        .publishes = dbu_connection_wanted(d),
        .databases = dbu_databases_wanted(d) || json_object_get(status, "databases"),
        .cuts = dbu_rotation_cuts(d),
        .created = dbu_is_created(&d->object),
        .has_logins = *stw_tree_text(status, "login"),
        .login = dbu_login_find(d, stw_tree_text(status, "login")),
        .previous = dbu_login_find(d, stw_tree_text(status, "previousLogin")),
        .rotation = stw_tree_count(status, "rotation"),
        .overlap = end_us != INT64_MIN,
        .over = end_us != INT64_MIN && dbu_overlap_is_over(d, end_us, &left_ms),
        .finalizer = stw_finalizer_has(&d->object, DBU_FINALIZER),
        .deleting = d->object.deleting,
        .ending = find_ending(d),
    };
}

void dbu_observe(struct dbu *d)
{
    dbu_observe_object(d);
    d->view.due = dbu_password_is_generated(&d->object) && dbu_rotation_is_due(d);
    recall_password(d);
}

/* --- the Secrets */

static bool is_of_status(const struct dbu *d)
{
    const json_t *status = d->object.status;
    if (*d->fingerprint)
        return stw_streq(d->fingerprint, stw_tree_text(status, "passwordFingerprint"));
    return stw_streq(d->secret.resource_version, stw_tree_text(status, "secretResourceVersion"));
}

void dbu_observe_password(struct dbu *d)
{
    struct dbu_view *v = &d->view;
    v->compared = false;
    v->as_status = false;
    v->password = d->secret.state == DBU_SECRET_ERROR   ? DBU_PASSWORD_FAILED
                  : d->secret.state == DBU_SECRET_FOUND ? DBU_PASSWORD_KNOWN
                                                        : DBU_PASSWORD_MISSING;
    if (v->password == DBU_PASSWORD_KNOWN)
        v->as_status = is_of_status(d);
}

void dbu_observe_connection(struct dbu *d, enum dbu_owned_state state,
                            const struct dbu_secret_login *found)
{
    struct dbu_view *v = &d->view;
    v->connection = state == DBU_OWNED_UNCHECKED ? DBU_CONNECTION_ABSENT
                    : state == DBU_OWNED_FOREIGN ? DBU_CONNECTION_BLOCKED
                    : state == DBU_OWNED_FAILED  ? DBU_CONNECTION_UNKNOWN
                                                 : DBU_CONNECTION_OURS;
    v->there = v->connection == DBU_CONNECTION_OURS;
    v->readable = d->published.len > 0;
    v->as_named = v->there && found->shows_wanted;
    if (!v->there || !*found->fingerprint)
        return;
    v->named = dbu_login_find(d, found->login);
    v->named_rotation = found->rotation;
    v->named_as_status =
        stw_streq(found->fingerprint, stw_tree_text(d->object.status, "passwordFingerprint"));
    stw_format(d->named_fingerprint, sizeof(d->named_fingerprint), "%s", found->fingerprint);
    if (dbu_has_logins(v))
        v->as_named = *d->fingerprint && stw_streq(d->fingerprint, found->fingerprint);
}

/* --- the server */

/* The server, not the object, is in trouble. */
bool dbu_is_of_server(enum stw_sql_trouble t)
{
    return t == STW_SQL_AUTH || t == STW_SQL_TLS || t == STW_SQL_READ_ONLY ||
           (stw_sql_is_transient(t) && t != STW_SQL_LOCKED);
}

/* Trying again does not help. */
static bool is_refused(enum stw_sql_trouble t)
{
    return t == STW_SQL_NO_OBJECT || t == STW_SQL_DENIED || t == STW_SQL_UNSUPPORTED;
}

enum dbu_outcome dbu_find_outcome(const struct stw_account_report *r, bool logs_in)
{
    if (r->trouble == STW_SQL_FINE)
        return DBU_AS_WANTED;
    if (!logs_in)
        return DBU_LOGIN_FAILED;
    return is_refused(r->trouble) ? DBU_RIGHTS_REFUSED : DBU_RIGHTS_FAILED;
}

void dbu_observe_login(struct dbu_view *v, enum dbu_login login, const struct stw_account_report *r)
{
    v->logins[login].outcome =
        r->password_wanted ? DBU_NOT_ASKED : dbu_find_outcome(r, r->login_done || r->created);
    v->compared = r->password_wanted;
    v->changed |= r->password_changed;
    v->old_valid = r->old_valid;
    v->waits = r->password_waits;
    v->later = r->password_next;
    v->stop |= dbu_is_of_server(r->trouble);
}
