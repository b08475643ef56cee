/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/reconcile.h"

#include "base/arena.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "controller/finalizer.h"
#include "controller/outcome.h"
#include "controller/packed.h"
#include "controller/secret_watch.h"
#include "controller/status.h"
#include "kinds/common/product.h"
#include "kinds/common/workloads.h"
#include "kinds/databaseuser/account.h"
#include "kinds/databaseuser/claims.h"
#include "kinds/databaseuser/end/cleanup.h"
#include "kinds/databaseuser/end/sweep.h"
#include "kinds/databaseuser/plan/act.h"
#include "kinds/databaseuser/plan/observe.h"
#include "kinds/databaseuser/plan/rotation.h"
#include "kinds/databaseuser/plan/rotation_clock.h"
#include "kinds/databaseuser/plan/twin.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/secret/owned_secret.h"
#include "kinds/databaseuser/secret/secret.h"
#include "kinds/databaseuser/status/events.h"
#include "kinds/databaseuser/status/state.h"
#include "kinds/databaseuser/status/status.h"
#include "kinds/databaseuser/target/ping.h"
#include "kinds/databaseuser/target/targets_status.h"
#include "sql/core/mark.h"

#include <stdio.h>
#include <strings.h>

#define FINDINGS_MAX (64 * 1024)

#define DOWN_AGAIN_MS 120000

/* --- the watch */

static const char *const labels[] = {DBU_TARGET_LABEL, NULL};

static void project_database_user(const struct stw_operator *op, struct stw_json object,
                                  struct stw_buf *out)
{
    stw_object_project_packed(op, object, labels, out);
}

static int read_label(struct stw_json root, char *out, size_t out_size)
{
    return stw_json_strcpy(stw_json_path(root, "metadata.labels." DBU_TARGET_LABEL), out, out_size);
}

static void index_account(struct stw_json root, const char *target, struct stw_buf *out)
{
    char user[DBU_NAME_MAX];
    stw_autobuf struct stw_buf key = STW_BUF_INIT(2048);
    if (stw_json_strcpy(stw_json_path(root, "spec.user"), user, sizeof(user)) != 0)
        return;
    dbu_account_key(target, user, &key);
    stw_index_add(out, "account", stw_buf_str(&key));
}

static void index_secret(struct stw_json root, const char *path, const char *suffix,
                         struct stw_buf *out)
{
    char ns[STW_KEY_LEN], name[STW_KEY_LEN], key[STW_KEY_LEN];
    if (stw_json_strcpy(stw_json_path(root, "metadata.namespace"), ns, sizeof(ns)) != 0 ||
        stw_json_strcpy(stw_json_path(root, path), name, 254) != 0)
        return;
    stw_format(name + strlen(name), sizeof(name) - strlen(name), "%s", suffix);
    stw_key_make(ns, name, key);
    stw_index_add(out, "secret", key);
}

static void index_secrets(struct stw_json root, struct stw_buf *out)
{
    if (stw_json_there(stw_json_path(root, "spec.password.generate")))
        index_secret(root, "metadata.name", DBU_PASSWORD_SUFFIX, out);
    else
        index_secret(root, "spec.password.name", "", out);
    index_secret(root, "spec.connectionSecret.name", "", out);
}

static void index_all(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char target[DBU_NAME_MAX];
    stw_autobuf struct stw_buf text = {0};
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json root = stw_unpack_root(projected, &text, &doc);
    (void)ctx;
    index_secrets(root, out);
    if (read_label(root, target, sizeof(target)) != 0) {
        stw_index_add(out, "target", DBU_NO_TARGET);
        return;
    }
    stw_lower(target, target, sizeof(target));
    stw_index_add(out, "target", target);
    index_account(root, target, out);
}

static bool is_same_at_path(struct stw_json a, struct stw_json b, const char *path)
{
    struct stw_json x = stw_json_path(a, path), y = stw_json_path(b, path);
    return stw_json_there(x) == stw_json_there(y) && (!stw_json_there(x) || stw_json_equal(x, y));
}

/* Our own writes come back through the watch, often before the response.  A new status or finalizer
 * does not require another check of the account. */
static bool is_news(struct stw_json was, struct stw_json is)
{
    static const char *const of_people[] = {"spec",
                                            "stub.spec",
                                            "metadata.uid",
                                            "metadata.generation",
                                            "metadata.deletionTimestamp",
                                            "metadata.labels",
                                            "metadata.annotations"};
    for (size_t i = 0; i < STW_COUNT(of_people); i++)
        if (!is_same_at_path(was, is, of_people[i]))
            return true;
    return stw_json_size(stw_json_path(is, "metadata.finalizers")) <
           stw_json_size(stw_json_path(was, "metadata.finalizers"));
}

/* Wakes other objects that want the account of one that was deleted.  The response to our own write has
 * removed those from the cache whose finalizer steward took off: this one may have left something. */
static void wake_claimants(struct stw_manager *m, const char *key, struct stw_json gone)
{
    stw_autobuf struct stw_buf account = STW_BUF_INIT(2048);
    char target[DBU_NAME_MAX], user[DBU_NAME_MAX], uid[STW_MARK_UID_LEN];
    const struct dbu_state *state = stw_manager_state(m, &stw_controller_databaseuser);
    if (state && stw_json_strcpy(stw_json_path(gone, "metadata.uid"), uid, sizeof(uid)) == 0)
        dbu_sweep_note_gone(state->sweeps, key, uid);
    if (read_label(gone, target, sizeof(target)) != 0)
        return;
    dbu_sweep_wake(m, target);
    if (stw_json_strcpy(stw_json_path(gone, "spec.user"), user, sizeof(user)) != 0)
        return;
    dbu_account_key(target, user, &account);
    stw_manager_wake(m, "account", stw_buf_str(&account));
}

static void user_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                         const char *old_text, const char *new_text)
{
    stw_autobuf struct stw_buf was_text = {0}, is_text = {0};
    stw_autojson struct stw_json_doc was = {0}, is = {0};
    bool had = old_text && stw_unpack_scan(old_text, strlen(old_text), &was_text, &was) == 0;
    bool has = new_text && stw_unpack_scan(new_text, strlen(new_text), &is_text, &is) == 0;
    if (!had || !has || is_news(stw_json_root(&was), stw_json_root(&is)))
        stw_watch_own_changed(m, w, key, old_text, new_text);
    if (had && !new_text)
        wake_claimants(m, key, stw_json_root(&was));
}

/* --- the run */

static void find_target(struct dbu *d)
{
    const char *made_on = json_string_value(json_object_get(d->object.status, "target"));
    (void)read_label(d->object.root, d->label, sizeof(d->label));
    if (made_on && dbu_is_created(&d->object))
        stw_format(d->made_on, sizeof(d->made_on), "%s", made_on);
    if (d->object.deleting && *d->made_on)
        stw_format(d->label, sizeof(d->label), "%s", d->made_on);
    d->targets = stw_product_targets(d->run->env);
    d->target = stw_targets_find(d->targets, d->label);
}

/* The webhook was not available: gives the object the label that it would have got, so that the
 * indexes have it, too. */
static void write_label(struct dbu *d, struct stw_result *result)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    struct stw_error err = {0};
    const struct stw_target *t =
        dbu_target_without_label(d->targets, stw_json_get(d->object.root, "status"));
    if (!t)
        return; /* the rules refuse the object */
    json_auto_t *body = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "resourceVersion",
                                  d->object.resource_version, "labels", DBU_TARGET_LABEL, t->name);
    int rc = -1;
    if (!body)
        (void)stw_fail_memory(&err);
    else
        rc = stw_kube_merge_patch(
            d->run->client, STW_PLACE(&stw_kind_databaseuser.resource, d->run->ns, d->run->name),
            body, d->run->field_manager, &answer, &err);
    if (rc != 0) {
        stw_run_fail(d->run, &err, result);
        return;
    }
    stw_informer_saw(stw_run_cache(d->run, d->run->controller->own), &answer, NULL);
    result->outcome = STW_RUN_AFTER; /* with the label in the cache */
    result->after_ms = 1;
}

/* An immutable field was changed while the webhook was down.  Following the change would orphan the
 * existing account. */
static bool is_moved(const struct dbu *d, struct stw_buf *out)
{
    char made[DBU_NAME_MAX];
    dbu_made_user(&d->object, made);
    if (*d->made_on && strcasecmp(d->made_on, d->label) != 0)
        stw_buf_addf(out,
                     "metadata.labels[target]: Forbidden: target cannot change from \"%s\" to "
                     "\"%s\": the account would be left behind",
                     d->made_on, d->label);
    else if (*made && !stw_streq(made, d->spec.user))
        stw_buf_addf(out, "spec.user: Forbidden: field is immutable (was \"%s\")", made);
    return out->len > 0;
}

/* For the places at the target. */
static enum stw_sql_trouble find_trouble_of_visit(const struct dbu *d)
{
    if (!d->asked)
        return STW_SQL_BUSY;
    for (size_t i = 0; d->databases.asked && i < d->databases.count; i++)
        if (d->databases.reports[i].trouble == STW_SQL_LOCKED)
            return STW_SQL_LOCKED;
    return d->report.trouble;
}

/* The ping finds out when the server can be used again, and all objects are woken then: they need not find out
 * themselves, each with a write of its status. */
static void leave_retries_to_ping(struct dbu *d, bool was_down)
{
    if (d->target->ping_seconds == 0 || dbu_pools_down_ms(d->state->pools, d->target->name) == 0)
        return;
    d->report.err.retry_after_ms =
        (uint32_t)stw_backoff_ms(d->run->key, 0, DOWN_AGAIN_MS, DOWN_AGAIN_MS);
    if (!was_down)
        dbu_ping_wake(d->run->manager, d->target->name);
}

/* -1: `result` is set. */
static int visit_target(struct dbu *d, struct stw_result *result)
{
    struct dbu_visit visit;
    if (dbu_identify(d) != 0)
        return 0;
    switch (dbu_pools_enter(d->state->pools, d->targets, d->target, d->run->key, &visit,
                            &d->target_err)) {
    case DBU_POOLS_LATER:
        result->outcome = STW_RUN_AFTER;
        result->after_ms = visit.again_ms;
        return -1;
    case DBU_POOLS_FAILED:
        return 0;
    default:
        break;
    }
    bool was_down = dbu_pools_down_ms(d->state->pools, d->target->name) > 0;
    dbu_observe(d);
    int rc = dbu_act(d, visit.pool, result);
    dbu_pools_leave(d->state->pools, &visit, find_trouble_of_visit(d));
    if (dbu_is_of_server(d->report.trouble))
        leave_retries_to_ping(d, was_down);
    return rc;
}

static void write_user_result(struct dbu *d, struct stw_result *result)
{
    struct stw_verdict verdict;
    json_t *status;
    if (d->run->waits) /* for memory; the next run finds what this one has changed */
        return;
    if (d->asked && d->report.err.code == STW_ERR_CANCELLED) {
        stw_run_fail(d->run, &d->report.err, result);
        return;
    }
    if (d->asked)
        dbu_tell(d);
    dbu_judge(d, &verdict, &status);
    stw_run_end(d->run, &d->object, &verdict, status, NULL, result);
    if (d->view.retired || dbu_twins_change(d) || d->report.old_discarded || dbu_rotation_begins(d))
        stw_fault_point("status");
}

/* A generated password is in a Secret whose name follows from the object's. */
static int name_generated(struct dbu *d)
{
    size_t size = strlen(d->run->name) + sizeof(DBU_PASSWORD_SUFFIX);
    if (!dbu_password_is_generated(&d->object))
        return 0;
    char *name = stw_arena_alloc(d->arena, size);
    if (!name)
        return -1;
    stw_format(name, size, "%s" DBU_PASSWORD_SUFFIX, d->run->name);
    d->spec.password.name = name;
    return 0;
}

static void reconcile_valid_user(struct dbu *d, struct stw_result *result)
{
    struct stw_error err = {0};
    if (name_generated(d) != 0) {
        (void)stw_fail_memory(&err);
        stw_run_fail(d->run, &err, result);
        return;
    }
    if (d->target) {
        dbu_claim(d);
        if (d->claim == DBU_CLAIM_OURS && visit_target(d, result) != 0)
            return;
    }
    write_user_result(d, result);
}

static void end_invalid(struct dbu *d, const struct stw_buf *findings, struct stw_result *result)
{
    stw_run_end_invalid(d->run, &d->object,
                        stw_status_invalid(d->run, &d->object, stw_buf_str(findings)),
                        stw_buf_str(findings), result);
}

/* The deletion continues even if the spec cannot be decoded. */
static void delete_user(struct stw_subject *subject, struct stw_result *result)
{
    struct dbu *d = (struct dbu *)subject;
    if (!stw_finalizer_has(&d->object, DBU_FINALIZER))
        return;
    d->state = d->run->state;
    find_target(d);
    dbu_cleanup(d, result);
}

static void reconcile_user(struct stw_subject *subject, struct stw_result *result)
{
    struct dbu *d = (struct dbu *)subject;
    stw_autobuf struct stw_buf findings = STW_BUF_INIT(FINDINGS_MAX);
    d->state = d->run->state;
    find_target(d);
    if (!*d->label)
        write_label(d, result);
    else if (is_moved(d, &findings))
        end_invalid(d, &findings, result);
    else
        reconcile_valid_user(d, result);
}

static json_t *status_unchecked(struct stw_subject *subject, enum stw_unchecked why,
                                const char *findings)
{
    /* After a start these are the objects that a new rule or target refuses. */
    if (why == STW_UNCHECKED_INVALID)
        stw_log(STW_LOG_WARN, "a DatabaseUser is refused: its account is left as it is",
                STW_STR("object", subject->run->key), STW_STR("why", findings));
    json_t *status = stw_status_unchecked(subject, why, findings);
    struct dbu *d = (struct dbu *)subject;
    d->state = d->run->state;
    if (!d->targets)
        d->targets = stw_product_targets(d->run->env);
    dbu_targets_add_status(d, status);
    return status;
}

static void forget_user(struct stw_run *run)
{
    struct dbu_state *state = run->state;
    dbu_compared_forget(state->compared, run->key);
    dbu_ends_forget(state->ends, run->key);
}

/* Keys of targets. */
static void visit_server(struct stw_run *run, struct stw_result *result)
{
    dbu_sweep(run, result);
    dbu_ping(run, result);
}

static void free_run_state(struct stw_subject *subject)
{
    struct dbu *d = (struct dbu *)subject;
    dbu_secret_done(&d->secret);
    stw_buf_done(&d->published);
    stw_account_report_done(&d->report);
    stw_account_report_done(&d->owner_report);
    stw_targets_unref(d->targets);
}

/* --- registration */

static const struct stw_watch own_watch = {
    .resource = &stw_kind_databaseuser.resource,
    .project = project_database_user,
    .index = index_all,
    .for_admission = true,
    .changed = user_changed,
};

static const struct stw_watch *const watches[] = {&stw_watch_secrets, NULL};

/* Passwords are in Secrets of any name that the objects give.  The admins' passwords and the key of
 * the fingerprints are in steward's own namespace.  The UID of one namespace identifies the cluster: without
 * it nothing is done on a server.  Workloads and pods are what reads a connection
 * Secret; a steward without these rights does the rest. */
static const struct stw_rule rules[] = {
    {.resource = &stw_kind_databaseuser.resource, .verbs = "get,list,watch,patch"},
    {.resource = &stw_res_secret, .verbs = "get,list,watch,create,update"},
    {.resource = &stw_res_secret, .verbs = "get,create", .own_namespace = true},
    {.resource = &stw_res_namespace, .verbs = "get", .name = DBU_CLUSTER_NAMESPACE},
    {.resource = &stw_res_deployment, .verbs = "list,patch"},
    {.resource = &stw_res_statefulset, .verbs = "list,patch"},
    {.resource = &stw_res_daemonset, .verbs = "list,patch"},
    {.resource = &stw_res_pod, .verbs = "list"},
    {0},
};

static const char *const conditions[] = {
    "SecretResolved",  "TargetReachable",        "UserSynced",
    "GrantsSynced",    "ConnectionSecretSynced", "RotationComplete",
    "DatabasesSynced", "CleanupBlocked",         NULL};

const struct stw_controller stw_controller_databaseuser = {
    STW_CONTROLLER_OF("databaseuser", stw_kind_databaseuser),
    .own = &own_watch,
    .watches = watches,
    .rules = rules,
    .conditions = conditions,
    .worker_factor = DBU_WORKER_FACTOR,
    STW_RUN_STATE(struct dbu, spec),
    .reconcile = reconcile_user,
    .gone = forget_user,
    .missing = visit_server,
    .deleting = delete_user,
    .status_unchecked = status_unchecked,
    .done = free_run_state,
    .open = dbu_state_open,
    .cancel = dbu_state_cancel,
    .close = dbu_state_close,
    .pause = dbu_state_pause,
    .secret_changed = dbu_state_secret_changed,
    .tidy = dbu_state_tidy,
};
