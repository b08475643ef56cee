/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdbackup/reconcile.h"

#include "base/util.h"
#include "controller/claim.h"
#include "controller/outcome.h"
#include "controller/secret_watch.h"
#include "controller/status.h"
#include "kinds/common/product.h"
#include "kinds/common/request.h"
#include "kinds/etcdbackup/access.h"
#include "kinds/etcdbackup/agent.h"
#include "kinds/etcdbackup/plan.h"
#include "kinds/etcdbackup/run.h"
#include "kinds/etcdbackup/runtime.h"
#include "kinds/etcdbackup/state.h"
#include "kinds/etcdbackup/status.h"
#include "kinds/etcdbackup/transfer_pod.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "schema/zones.h"

#include <stdio.h>

#define INDEX_CLUSTER "backupOf"
#define INDEX_PLACE "place"
#define PLACE_AGAIN_S 60
#define MISSING_AGAIN_S 60

static const struct stw_watch own_watch;

/* --- the watch */

/* "namespace/name" of the EtcdCluster that the backup belongs to. */
static bool cluster_of(struct stw_json backup, char out[STW_KEY_LEN])
{
    char ns[254], name[254];
    if (stw_json_strcpy(stw_json_path(backup, "metadata.namespace"), ns, sizeof(ns)) != 0 ||
        stw_json_strcpy(stw_json_path(backup, "spec.clusterRef.name"), name, sizeof(name)) != 0)
        return false;
    stw_key_make(ns, name, out);
    return true;
}

static void index_place(struct stw_json backup, struct stw_buf *out)
{
    char ns[254];
    stw_autobuf struct stw_buf place = STW_BUF_INIT(EB_PLACE_MAX);
    if (stw_json_strcpy(stw_json_path(backup, "metadata.namespace"), ns, sizeof(ns)) == 0 &&
        eb_spec_place(backup, ns, &place))
        stw_index_add(out, INDEX_PLACE, stw_buf_str(&place));
}

static void index_secrets(struct stw_json backup, struct stw_buf *out)
{
    static const char *const paths[] = {"spec.s3.awsSecret", "spec.clientTLSSecret",
                                        "spec.authSecret"};
    char ns[254], name[254], key[STW_KEY_LEN];
    if (stw_json_strcpy(stw_json_path(backup, "metadata.namespace"), ns, sizeof(ns)) != 0)
        return;
    for (size_t i = 0; i < STW_COUNT(paths); i++) {
        if (stw_json_strcpy(stw_json_path(backup, paths[i]), name, sizeof(name)) != 0)
            continue;
        stw_key_make(ns, name, key);
        stw_index_add(out, "secret", key);
    }
}

static void index_cluster(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char key[STW_KEY_LEN];
    (void)ctx;
    if (cluster_of(projected, key))
        stw_index_add(out, INDEX_CLUSTER, key);
    index_place(projected, out);
    index_secrets(projected, out);
}

/* The place of a deleted EtcdBackup is free: wakes the objects that wait for it. */
static void wake_others(struct stw_manager *m, const char *old_text)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf place = STW_BUF_INIT(EB_PLACE_MAX);
    char ns[254];
    if (old_text && stw_json_scan(&doc, old_text, strlen(old_text), NULL) == 0 &&
        stw_json_strcpy(stw_json_path(stw_json_root(&doc), "metadata.namespace"), ns, sizeof(ns)) ==
            0 &&
        eb_spec_place(stw_json_root(&doc), ns, &place))
        stw_manager_wake(m, INDEX_PLACE, stw_buf_str(&place));
}

/* Wakes the EtcdCluster too: its status reports on its backups. */
static void backup_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                           const char *old_text, const char *new_text)
{
    stw_autojson struct stw_json_doc doc = {0};
    const char *text = new_text ? new_text : old_text;
    char cluster[STW_KEY_LEN];
    stw_watch_own_changed(m, w, key, old_text, new_text);
    if (!new_text)
        wake_others(m, old_text);
    stw_manager_wake(m, "restoreFrom", key);
    if (text && stw_json_scan(&doc, text, strlen(text), NULL) == 0 &&
        cluster_of(stw_json_root(&doc), cluster))
        stw_manager_enqueue(m, stw_kind_etcdcluster.kind, cluster);
}

/* --- the run */

static void take_in(struct eb *e)
{
    char uri[STW_STORE_KEY_MAX + 300];
    if (e->result.fault == EB_SNAPSHOT_OTHER && e->result.err.code == STW_ERR_CANCELLED)
        return; /* steward or the pod was stopped: the backup starts over */
    e->collected = true;
    if (e->result.fault != EB_SNAPSHOT_FINE) {
        eb_state_fail(&e->state, &e->result, e->clock.now);
        return;
    }
    eb_uri(&e->spec, e->result.key, uri, sizeof(uri));
    eb_state_succeed(&e->state, &e->result, uri);
}

/* The EtcdCluster is not defragmented meanwhile. */
static void note_snapshot(struct eb *e, bool sends)
{
    if (!sends)
        e->state.snapshot_start = EB_NEVER;
    else if (e->state.snapshot_start == EB_NEVER)
        e->state.snapshot_start = e->clock.now;
}

/* Whether a backup is running or still has to be cleaned up.  Collects the result of one that has
 * ended.
 *
 * The status write that records the result also closes the phase, and no other backup begins in
 * that run.  So an open phase means that the result was not collected yet, even if caches lag or
 * steward died in between. */
static bool check_transfer(struct eb *e)
{
    bool verifying = false, volume = stw_same(e->spec.storage_type, "PVC");
    bool open = e->state.phase == EB_RUNNING || e->state.phase == EB_VERIFYING ||
                e->state.phase == EB_SUSPENDED;
    enum eb_transfer t =
        volume ? eb_agent_look(e)
               : eb_runtime_look(e->runtime, e->run->key, e->object.uid, &verifying, &e->result);
    e->ended = t == EB_TRANSFERRED;
    if (e->ended && open)
        take_in(e);
    if (t == EB_TRANSFERS && open)
        e->state.phase = verifying ? EB_VERIFYING : EB_RUNNING;
    note_snapshot(e, t == EB_TRANSFERS && open && !verifying && (!volume || e->agent_runs));
    return t == EB_TRANSFERS || (e->ended && (volume || e->collected));
}

/* Two EtcdBackups can share a place if admission did not see both: the older one keeps it. */
static void look_for_holder(struct eb *e)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(EB_PLACE_MAX + 16);
    char key[STW_KEY_LEN];
    size_t len = strlen(e->run->ns);
    stw_buf_adds(&index, INDEX_PLACE ":");
    if (!eb_spec_place(e->object.root, e->run->ns, &index) ||
        !stw_claim_find(e->run, &e->object, stw_buf_str(&index), NULL, key))
        return;
    bool same = strncmp(key, e->run->ns, len) == 0 && key[len] == '/';
    e->stalled = "PathInUse";
    stw_format(e->stalled_text, sizeof(e->stalled_text),
               "%s%.253s%s stores in the same place: give this one another path",
               same ? "EtcdBackup \"" : "an EtcdBackup of another namespace",
               same ? key + len + 1 : "", same ? "\"" : "");
}

/* The backup failed because of a watched object: each run may check whether that is fixed. */
static bool waits_for_object(const struct eb *e)
{
    static const char *const reasons[] = {"SecretMissing", "SecretInvalid", "ClusterNotFound"};
    if (e->state.phase != EB_FAILED)
        return false;
    for (size_t i = 0; i < STW_COUNT(reasons); i++)
        if (stw_streq(e->state.reason, reasons[i]))
            return true;
    return e->spec.cluster && stw_streq(e->state.reason, "NoHealthyEndpoint");
}

/* No Secret is read before its turn: those of many waiting backups would fill the memory. */
static bool has_place(struct eb *e, bool early)
{
    if (eb_runtime_come(e->runtime, e->run->key))
        return true;
    if (!early)
        e->state.phase = EB_RUNNING; /* it begins as soon as it has one */
    e->due.wake = e->clock.now + PLACE_AGAIN_S;
    unsigned of_namespace, all;
    eb_runtime_limits(e->runtime, &of_namespace, &all);
    stw_format(e->waiting, sizeof(e->waiting),
               "the backup waits for others: at most %u of a namespace, and %u of all, are made at "
               "a time",
               of_namespace, all);
    return false;
}

/* `early`: ahead of the scheduled retry.  A failure for the same reason is then not reported again.
 */
static void prepare_backup(struct eb *e, bool early)
{
    bool same;
    look_for_holder(e);
    if (e->stalled) { /* nothing was started: the instant is retried when the place is free */
        e->state.phase = EB_FAILED;
        return;
    }
    bool volume = stw_same(e->spec.storage_type, "PVC");
    if (!volume && !has_place(e, early))
        return;
    int rc = volume ? eb_agent_prepare(e, &e->result) : eb_job_create(e, &e->job, &e->result);
    e->state.phase = EB_RUNNING;
    if (rc == 0) {
        e->began = true;
        e->state.retry_at = EB_NEVER;
        note_snapshot(e, !volume); /* a pod has to start first */
        return;
    }
    if (e->stalled)
        return;
    same = stw_streq(e->state.reason, e->result.reason);
    if (early && same) {
        e->state.phase = EB_FAILED;
        return;
    }
    take_in(e);
    eb_plan(&e->clock, &e->state, false, &e->due);
}

static bool was_written(const struct stw_result *result)
{
    return result->outcome == STW_RUN_DONE || result->outcome == STW_RUN_AFTER ||
           result->outcome == STW_RUN_STALLED;
}

/* A backup starts only after the status records it, so that the next leader knows of it. */
static int start_prepared_backup(struct eb *e, struct stw_error *err)
{
    if (!stw_run_may_write(e->run))
        return stw_fail(err, STW_ERR_CANCELLED, "stopped");
    if (stw_same(e->spec.storage_type, "PVC"))
        return eb_agent_start(e, err);
    return eb_runtime_start(e->runtime, e->run->key, e->object.uid, stw_take(e->job), err);
}

/* Returns the status that was written, with a reference for the caller; or NULL. */
static json_t *report_run(struct eb *e, bool exact, struct stw_result *result)
{
    struct stw_verdict v = {0};
    json_t *status;
    eb_judge(e, &v, &status);
    v.exact = exact;
    json_incref(status);
    stw_run_end(e->run, &e->object, &v, status, NULL, result);
    if (was_written(result) || result->outcome == STW_RUN_FAILED)
        return status;
    json_decref(status);
    return NULL;
}

/* The status says at once that the pod was refused.  It still records the backup, which is tried again
 * by the next run, without another write. */
static void report_refusal(struct eb *e, json_t *written, const struct stw_error *err,
                           struct stw_result *result)
{
    if (!eb_refusal_of(err, &e->refusal)) {
        stw_run_fail(e->run, err, result);
        return;
    }
    json_decref(e->object.status);
    e->object.status = json_incref(written);
    json_decref(report_run(e, false, result));
}

/* The status already records this backup: nothing is written before it starts. */
static bool is_recorded(const struct eb *e)
{
    struct eb_state was;
    eb_state_read(e->object.status, &was);
    bool same = was.phase == EB_RUNNING && e->state.phase == EB_RUNNING && !e->collected &&
                was.last_schedule == e->state.last_schedule;
    eb_state_done(&was);
    return same;
}

static void finish_backup_run(struct eb *e, struct stw_result *result)
{
    struct stw_error err = {0};
    bool early = e->began && stw_same(e->spec.storage_type, "PVC") && is_recorded(e);
    if (early && start_prepared_backup(e, &err) != 0 && !eb_refusal_of(&err, &e->refusal)) {
        stw_run_fail(e->run, &err, result);
        return;
    }
    json_auto_t *written = report_run(e, e->began || e->collected, result);
    if (!written || !was_written(result))
        return;
    eb_tell(e);
    if (e->collected)
        eb_runtime_count(e->runtime, e->result.fault == EB_SNAPSHOT_FINE);
    if (e->ended) {
        eb_runtime_forget(e->runtime, e->run->key);
        eb_agent_forget(e);
    }
    if (e->began && !early && start_prepared_backup(e, &err) != 0)
        report_refusal(e, written, &err, result);
}

static void tell_verified(const struct eb *e)
{
    const json_t *verified = eb_state_verified(&e->state);
    const char *text = json_string_value(json_object_get(verified, "time"));
    int64_t us;
    if (text && stw_time_parse(text, &us) == 0)
        eb_runtime_verified(e->runtime, e->run->key, e->run->ns,
                            e->spec.cluster ? e->spec.cluster : e->run->name, us / 1000000);
}

static void read_request(const struct eb *e, char out[EB_REQUEST_LEN])
{
    char annotation[STW_OWN_NAME_LEN];
    stw_operator_text(e->run->op, EB_AT, annotation);
    stw_request_read(
        stw_json_get(stw_json_path(e->object.root, "metadata.annotations"), annotation), out);
}

static int wind_clock(struct eb *e, struct stw_error *err)
{
    int64_t us;
    struct eb_clockwork *c = &e->clock;
    *c = (struct eb_clockwork){
        .mode = e->spec.policy.schedule         ? EB_CRON
                : e->spec.policy.interval_s > 0 ? EB_INTERVAL
                                                : EB_ONCE,
        .interval_s = e->spec.policy.interval_s,
        .deadline_s = e->spec.policy.starting_deadline_s,
        .now = stw_wall_us(e->run->clock) / 1000000,
        .suspend = e->spec.policy.suspend,
        .cron = &e->cron,
    };
    read_request(e, c->request);
    c->created = stw_time_parse(e->object.created, &us) == 0 ? us / 1000000 : c->now;
    if (c->mode != EB_CRON)
        return 0;
    c->zone = stw_zones_get(stw_product_zones(e->run->env), e->spec.policy.time_zone);
    if (!c->zone)
        return stw_fail(err, STW_ERR_INTERNAL, "time zone \"%s\" cannot be read",
                        e->spec.policy.time_zone);
    return stw_cron_parse(e->spec.policy.schedule, &e->cron, err);
}

/* Of a backup that is made later: that something is missing shall be known before it is due. */
static void check_next_backup(struct eb *e)
{
    if (stw_same(e->spec.storage_type, "PVC") && !eb_agent_has_image(e))
        return;
    bool common;
    e->checked = true;
    e->lacks = eb_inputs_check(e, &common, &e->result) != 0 && e->result.fault != EB_SNAPSHOT_OTHER;
    int64_t again = e->clock.now + MISSING_AGAIN_S; /* its watch, if it has one, is faster */
    if (e->lacks && (e->due.wake == EB_NEVER || again < e->due.wake))
        e->due.wake = again;
}

static void reconcile_backup(struct stw_subject *subject, struct stw_result *result)
{
    struct eb *e = (struct eb *)subject;
    struct stw_error err = {0};
    e->runtime = e->run->state;
    if (wind_clock(e, &err) != 0) {
        stw_run_fail(e->run, &err, result);
        return;
    }
    eb_state_read(e->object.status, &e->state);
    bool busy = check_transfer(e);
    int64_t instant = e->state.last_schedule;
    bool tried = e->state.phase != EB_PENDING && eb_plan_open(&e->clock, &e->state);
    eb_plan(&e->clock, &e->state, busy, &e->due);
    e->again = tried && instant == e->state.last_schedule;
    bool early = !e->due.start && !busy && !eb_plan_suspended(&e->clock, &e->state) &&
                 waits_for_object(e) && eb_plan_open(&e->clock, &e->state);
    if (e->due.start || early)
        prepare_backup(e, early);
    else if (e->clock.mode != EB_ONCE && !e->clock.suspend && !busy && !e->collected &&
             !eb_plan_open(&e->clock, &e->state))
        check_next_backup(e);
    tell_verified(e);
    finish_backup_run(e, result);
    eb_runtime_leave(e->runtime, e->run->key);
    eb_job_free(e->job);
    json_decref(e->containers);
    json_decref(e->volumes);
    eb_state_done(&e->state);
}

/* Objects in the store are kept. */
static void forget_backup(struct stw_run *run)
{
    eb_runtime_remove(run->state, run->key);
}

/* --- the kind in the table */

static const struct stw_watch own_watch = {
    .resource = &stw_kind_etcdbackup.resource,
    .project = stw_object_project,
    .index = index_cluster,
    .for_admission = true,
    .changed = backup_changed,
};

static const struct stw_watch *const watches[] = {&ec_watch_pods, &eb_watch_agents,
                                                  &stw_watch_secrets, NULL};

static const struct stw_rule rules[] = {
    {.resource = &stw_res_pod, .verbs = "get,list,watch,create,delete"},
    {.resource = &stw_res_secret, .verbs = "get,list,watch"},
    EB_RULE_OWN_POD,
    {0},
};

static const char *const conditions[] = {"ScheduleValid",
                                         "SourceReachable",
                                         "StoreReachable",
                                         "Verified",
                                         "RetentionApplied",
                                         "RequestFollowed",
                                         NULL};

const struct stw_controller stw_controller_etcdbackup = {
    STW_CONTROLLER_OF("etcdbackup", stw_kind_etcdbackup),
    .own = &own_watch,
    .watches = watches,
    .rules = rules,
    .conditions = conditions,
    STW_RUN_STATE(struct eb, spec),
    .reconcile = reconcile_backup,
    .gone = forget_backup,
    .open = eb_runtime_open,
    .cancel = eb_runtime_cancel,
    .pause = eb_runtime_pause,
    .close = eb_runtime_close,
};
