/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdcluster/reconcile.h"
#include "kinds/etcdcluster/plan/facts.h"

#include "kinds/common/request.h"
#include "kinds/etcdcluster/act/act.h"
#include "kinds/etcdcluster/act/claims.h"
#include "kinds/etcdcluster/act/maintenance_turn.h"
#include "kinds/etcdcluster/act/pod.h"
#include "kinds/etcdcluster/act/services.h"
#include "kinds/etcdcluster/labels.h"
#include "kinds/etcdcluster/maintenance.h"
#include "kinds/etcdcluster/observe/check.h"
#include "kinds/etcdcluster/observe/observe.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/runtime.h"
#include "kinds/etcdcluster/status/state.h"
#include "kinds/etcdcluster/status/status.h"
#include "kinds/etcdcluster/tls/tls.h"

#include "base/log.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "controller/outcome.h"
#include "controller/secret_watch.h"
#include "controller/status.h"

#include <stdio.h>

#define NEXT_MS 20 /* after an act, until its effect is observed */
#define WORKER_FACTOR 3

/* --- what is watched */

static const char *const annotations[] = {EC_FORCE_NEW_CLUSTER, EC_SEED_MEMBER, EC_REPLACE_VOLUMES,
                                          EC_DEFRAGMENT_REQUEST, NULL};

static void project_etcdcluster(const struct stw_operator *op, struct stw_json object,
                                struct stw_buf *out)
{
    stw_object_project_keeping(op, object, NULL, annotations, out);
}

static void add_secret(struct stw_buf *out, const char *ns, const char *name)
{
    char key[STW_KEY_LEN];
    stw_key_make(ns, name, key);
    stw_index_add(out, "secret", key);
}

/* Indexes the Secrets with the cluster's certificates: those that the spec names, or its own; and whether
 * it is being defragmented. */
static void index_cluster(void *ctx, struct stw_json root, struct stw_buf *out)
{
    static const char *const paths[] = {"spec.TLS.static.member.peerSecret",
                                        "spec.TLS.static.member.serverSecret",
                                        "spec.TLS.static.operatorSecret"};
    static const char *const own[] = {"ca", "peer-tls", "server-tls", "client-tls"};
    char ns[254], name[254], full[300];
    (void)ctx;
    ec_index_defragmenting(root, out);
    if (stw_json_strcpy(stw_json_path(root, "metadata.namespace"), ns, sizeof(ns)) != 0)
        return;
    for (size_t i = 0; i < STW_COUNT(paths); i++)
        if (stw_json_strcpy(stw_json_path(root, paths[i]), name, sizeof(name)) == 0)
            add_secret(out, ns, name);
    if (!stw_json_there(stw_json_path(root, "spec.TLS.auto")) ||
        stw_json_strcpy(stw_json_path(root, "metadata.name"), name, sizeof(name)) != 0)
        return;
    for (size_t i = 0; i < STW_COUNT(own); i++) {
        stw_format(full, sizeof(full), "%s-%s", name, own[i]);
        add_secret(out, ns, full);
    }
}

/* --- the run */

static void read_annotation(const struct ec *e, const char *name, char out[EC_NAME_MAX])
{
    struct stw_json notes = stw_json_path(e->object.root, "metadata.annotations");
    if (stw_json_strcpy(stw_json_get(notes, name), out, EC_NAME_MAX) != 0)
        out[0] = '\0';
}

/* If the spec has no version (no webhook when the object was created), keep the cluster's current
 * one: the built-in default of a later steward must not change it. */
static void choose_version(struct ec *e)
{
    if (*e->was.current_version && !stw_json_there(stw_json_path(e->object.root, "spec.version")))
        e->spec.version = e->was.current_version;
    (void)stw_semver_parse(e->spec.version, &e->version);
}

static void load_run_state(struct ec *e)
{
    e->naming =
        (struct stw_naming){.app = EC_APP, .component = "member", .image = e->spec.repository};
    read_annotation(e, EC_FORCE_NEW_CLUSTER, e->force);
    read_annotation(e, EC_SEED_MEMBER, e->restored);
    read_annotation(e, EC_REPLACE_VOLUMES, e->replace_volumes);
    stw_request_read(
        stw_json_get(stw_json_path(e->object.root, "metadata.annotations"), EC_DEFRAGMENT_REQUEST),
        e->defragment);
    ec_state_read(e->object.status, &e->was);
    e->state = e->was;
    ec_state_forget_future(&e->state, stw_wall_us(e->run->clock) / 1000000);
    choose_version(e);
}

/* Updates e->state for the move, before the move is carried out. */
static void record_move(struct ec *e)
{
    const struct ec_move *m = &e->move;
    ec_record_upkeep(e);
    if (m->intent.kind == EC_REPLACE && !ec_intended(&e->view, m))
        ec_state_count_failover(&e->state, e->view.now);
    if (m->intent.kind != EC_IDLE)
        e->state.action = m->intent;
    if (m->act == EC_LATCH)
        e->state.cluster_id = m->id;
    if (m->act == EC_FORCE_NEXT) {
        e->state.force_step = m->force_step;
        stw_format(e->state.force_member, EC_NAME_MAX, "%s", m->member);
    }
    if (m->act != EC_FINISH)
        return;
    if (e->state.action.kind == EC_UPGRADE || e->state.action.kind == EC_ROLL)
        e->state.last_rolled = e->view.now;
    e->state.action = (struct ec_action){0};
}

/* Writes the status under exactly the resourceVersion that was read, no matter what was written
 * before.  If that fails, nothing may be done.  1: written, 0: no difference, -1. */
static int write_state(struct ec *e, json_t *status)
{
    int rc = stw_object_write_state(e->run, &e->object, status, &e->err);
    if (rc > 0)
        stw_fault_point("status");
    return rc;
}

/* Loads the object again after our write. */
static bool reload_object(struct ec *e)
{
    if (!e->first.status)
        e->first = e->object;
    else
        stw_object_done(&e->object);
    e->object = (struct stw_object){0};
    return stw_object_load(e->run, &e->object) == 0;
}

static void end_run_with_error(struct ec *e, struct stw_result *result)
{
    struct stw_verdict verdict = {0};
    json_t *status;
    if (e->err.code == STW_ERR_CONFLICT || e->err.code == STW_ERR_CANCELLED || !reload_object(e)) {
        stw_run_fail(e->run, &e->err, result);
        return;
    }
    ec_judge(e, &verdict, &status);
    stw_run_end(e->run, &e->object, &verdict, status, NULL, result);
}

static bool was_written(const struct stw_result *result)
{
    return result->outcome == STW_RUN_DONE || result->outcome == STW_RUN_AFTER ||
           result->outcome == STW_RUN_STALLED;
}

/* Only updates the status.  A cluster that waits for a user may recover by itself, or get worse, so
 * it is checked as often as any other. */
static void end_idle(struct ec *e, struct stw_result *result)
{
    static const char *const numbers[] = {NULL};
    struct stw_verdict verdict = {0};
    json_t *status;
    ec_note_news(e);
    ec_judge(e, &verdict, &status);
    stw_run_end(e->run, &e->object, &verdict, status, numbers, result);
    if (!was_written(result))
        return;
    ec_tell(e);
    if (e->state.cluster_id && result->outcome != STW_RUN_DONE)
        *result = (struct stw_result){.outcome = STW_RUN_AFTER,
                                      .after_ms = STW_MIN(result->after_ms, EC_ROUND_MS)};
}

/* Writes the status with the intent first, then carries out the act. */
static void write_state_and_act(struct ec *e, struct stw_result *result)
{
    struct stw_verdict verdict = {0};
    json_t *status;
    uint64_t again = 0;
    record_move(e);
    bool idle = e->move.act == EC_WAIT || e->move.act == EC_FREEZE;
    if (idle && ec_state_same(&e->was, &e->state)) {
        end_idle(e, result);
        return;
    }
    ec_note_news(e);
    ec_judge(e, &verdict, &status);
    json_auto_t *own = status;
    int wrote = own ? write_state(e, own) : -1;
    if (wrote > 0)
        stw_run_tell(e->run, &e->object, &verdict, false);
    if (wrote < 0 || !reload_object(e)) {
        stw_run_fail(e->run, &e->err, result);
        return;
    }
    ec_tell(e);
    if (ec_act(e, &again) != 0) {
        end_run_with_error(e, result);
        return;
    }
    *result = (struct stw_result){.outcome = STW_RUN_AFTER, .after_ms = again ? again : NEXT_MS};
}

/* Removes the annotation before the step that completes it is recorded, so that it is honoured at
 * most once.  The status is then written under the resulting resourceVersion. */
static int drop_annotation(struct ec *e)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *patch = json_pack("{s:{s:s,s:{s:n}}}", "metadata", "resourceVersion",
                                   e->object.resource_version, "annotations", EC_FORCE_NEW_CLUSTER);
    if (!*e->force)
        return 0;
    if (stw_kube_merge_patch(e->run->client,
                             STW_PLACE(e->run->controller->resource, e->owner.ns, e->owner.name),
                             patch, e->run->field_manager, &answer, &e->err) != 0)
        return -1;
    stw_informer_saw(stw_run_cache(e->run, e->run->controller->own), &answer, NULL);
    stw_fault_point("annotation");
    return reload_object(e) ? 0 : stw_fail(&e->err, STW_ERR_CONFLICT, "it has changed meanwhile");
}

/* Adds `-n NAMESPACE` to the kubectl commands in the message, so that they can be pasted. */
static void name_namespace(struct ec *e)
{
    static const char command[] = "`kubectl ";
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    const char *from = e->move.text;
    for (const char *at; (at = strstr(from, command)); from = at + strlen(command)) {
        stw_buf_add(&text, from, (size_t)(at - from));
        stw_buf_addf(&text, "%s-n %s ", command, e->owner.ns);
    }
    stw_buf_adds(&text, from);
    stw_format(e->move.text, sizeof(e->move.text), "%s", stw_buf_str(&text));
}

/* Without the event the annotation would vanish unexplained. */
static int drop_expired_annotation(struct ec *e)
{
    if (drop_annotation(e) != 0)
        return -1;
    stw_object_event(e->run, &e->object, true, "ForceIgnored", "Reconcile",
                     "removed the annotation " EC_FORCE_NEW_CLUSTER
                     "=%s: there is a quorum, and it counts only in the outage in which it is set",
                     e->force);
    return 0;
}

static int check_force(struct ec *e)
{
    if (ec_force_expired(&e->view))
        return drop_expired_annotation(e);
    if (e->move.act != EC_FORCE_NEXT)
        return 0;
    if (e->state.force_step == EC_FORCE_CLEAR && ec_check_cleared(e) != 0)
        return -1;
    return e->move.force_step == EC_FORCE_NOT ? drop_annotation(e) : 0;
}

static void report_child_changes(const struct ec *e)
{
    for (int i = 0; i < EC_CHILDREN; i++)
        if (e->children[i].state == STW_CHILD_CREATED || e->children[i].state == STW_CHILD_UPDATED)
            stw_fault_point("child");
    stw_tell_children(e->run, &e->object, e->owner.name, e->children, EC_CHILDREN);
}

static void reconcile_cluster(struct stw_subject *subject, struct stw_result *result)
{
    struct ec *e = (struct ec *)subject;
    e->runtime = e->run->state;
    load_run_state(e);
    if (ec_latch_storage(e, &e->err) != 0) {
        end_run_with_error(e, result);
        return;
    }
    if (!e->spec.paused)
        ec_ensure_services(e);
    int tls = ec_tls_prepare(e);
    ec_hash_template(e);
    ec_observe(e);
    ec_judge_upkeep(e);
    ec_note_never_ran(e);
    if (!e->spec.paused)
        ec_ensure_budget(e);
    report_child_changes(e);
    if (stw_run_interrupted(e->run, e->children, EC_CHILDREN, result))
        return;
    if (ec_decide(e) != 0) {
        end_run_with_error(e, result);
        return;
    }
    name_namespace(e);
    if (tls != 0 || ec_children_failed(e)) /* members cannot reach each other without them */
        e->move = (struct ec_move){.act = EC_WAIT, .wait_ms = EC_ROUND_MS, .reason = "NotReady"};
    bool marked = e->spec.paused || (ec_label_voters(e) == 0 && ec_record_inputs(e) == 0);
    if (!marked || check_force(e) != 0) {
        end_run_with_error(e, result);
        return;
    }
    write_state_and_act(e, result);
}

static json_t *status_unchecked(struct stw_subject *subject, enum stw_unchecked why,
                                const char *findings)
{
    json_t *status = stw_status_unchecked(subject, why, findings);
    return why == STW_UNCHECKED_PAUSED ? ec_status_paused(status, true) : status;
}

/* The garbage collector deletes pods, and claims if volumeRetention.whenDeleted is Delete. */
static void forget_cluster(struct stw_run *run)
{
    char client[STW_KEY_LEN + 8];
    stw_format(client, sizeof(client), "%s-client", run->key);
    stw_child_forget(run, &stw_watch_services, run->key);
    stw_child_forget(run, &stw_watch_services, client);
    stw_child_forget(run, &stw_watch_disruption_budgets, run->key);
    ec_runtime_forget(run->state, run->key);
}

static void free_run_state(struct stw_subject *subject)
{
    struct ec *e = (struct ec *)subject;
    for (int i = 0; i < EC_CHILDREN; i++)
        json_decref(e->desired[i]);
    stw_object_done(&e->first);
    if (e->runtime)
        ec_runtime_rest(e->runtime, e->run->key);
}

/* --- the kind in the table */

static bool is_ready(const char *text)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json key, c;
    if (!text || stw_json_scan(&doc, text, strlen(text), NULL) != 0)
        return false;
    stw_json_foreach (stw_json_path(stw_json_root(&doc), "status.conditions"), key, c)
        if (stw_json_is(stw_json_at(c, STW_CONDITION_TYPE), STW_READY))
            return stw_json_is(stw_json_at(c, STW_CONDITION_STATUS), "True");
    return false;
}

/* Backups wait until the cluster exists and is ready; restores also until it is gone. */
static void cluster_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                            const char *old_text, const char *new_text)
{
    stw_watch_own_changed(m, w, key, old_text, new_text);
    if (old_text && new_text && is_ready(old_text) == is_ready(new_text))
        return;
    stw_manager_wake(m, "backupOf", key);
    stw_manager_wake(m, "restoreOf", key);
}

static const struct stw_watch own_watch = {
    .resource = &stw_kind_etcdcluster.resource,
    .project = project_etcdcluster,
    .index = index_cluster,
    .changed = cluster_changed,
};

static const struct stw_watch *const watches[] = {
    &stw_watch_services, &stw_watch_disruption_budgets,
    &ec_watch_pods,      &ec_watch_claims,
    &stw_watch_secrets,  NULL};

/* patch: removes the force-new-cluster annotation.  Secrets are read by name, and created where
 * steward is the certificate authority. */
static const struct stw_rule rules[] = {
    {.resource = &stw_kind_etcdcluster.resource, .verbs = "get,list,watch,patch"},
    {.resource = &stw_kind_etcdcluster.resource, .subresource = "finalizers", .verbs = "update"},
    {.resource = &stw_res_service, .verbs = "get,list,watch,create,patch"},
    {.resource = &stw_res_disruption_budget_v1, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &stw_res_pod, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &ec_res_claim, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &ec_res_storage_class, .verbs = "get,list"},
    {.resource = &stw_res_secret, .verbs = "get,list,watch,create,update"},
    {0},
};

static const char *const conditions[] = {
    "Available",   "QuorumLost",        "AllMembersHealthy", "Scaling",  "Upgrading",
    "Recovering",  "Rolling",           "Resizing",          "TLSReady", "BackupReady",
    "AlarmActive", "ClusterIDMismatch", "Degraded",          "Adopting", STW_TEMPLATE_OUTDATED,
    NULL};

const struct stw_controller stw_controller_etcdcluster = {
    STW_CONTROLLER_OF("etcdcluster", stw_kind_etcdcluster),
    .own = &own_watch,
    .watches = watches,
    .rules = rules,
    .conditions = conditions,
    .worker_factor = WORKER_FACTOR,
    STW_RUN_STATE(struct ec, spec),
    .child_count = EC_CHILDREN,
    .reconcile = reconcile_cluster,
    .gone = forget_cluster,
    .status_unchecked = status_unchecked,
    .done = free_run_state,
    .open = ec_runtime_open,
    .cancel = ec_runtime_cancel,
    .close = ec_runtime_close,
    .pause = ec_runtime_pause,
};
