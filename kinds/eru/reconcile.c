/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/eru/reconcile.h"

#include "base/util.h"
#include "controller/claim.h"
#include "controller/outcome.h"
#include "controller/packed.h"
#include "controller/status.h"
#include "kinds/common/product.h"
#include "kinds/eru/run_priv.h"
#include "schema/zones.h"

#include <stdio.h>

#define TEXT_MAX (8u << 20)

/* --- the watches of Erus and workloads */

static void project_eru(const struct stw_operator *op, struct stw_json object, struct stw_buf *out)
{
    static const char *const labels[] = {STW_MANAGED_BY, NULL};
    static const char *const annotations[] = {ERU_RESTART_NOW, NULL};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_object_project_keeping(op, object, labels, annotations, &text);
    stw_object_pack(&text, out);
}

/* The key "namespace/name" of the workload of an Eru; NULL if the Eru names none. */
static const struct eru_workload *find_workload(struct stw_json eru, char out[STW_KEY_LEN])
{
    char ns[254], name[254], kind[32] = "";
    if (stw_json_strcpy(stw_json_path(eru, "metadata.namespace"), ns, sizeof(ns)) != 0 ||
        stw_json_strcpy(stw_json_path(eru, "spec.deploymentname"), name, sizeof(name)) != 0)
        return NULL;
    stw_key_make(ns, name, out);
    (void)stw_json_strcpy(stw_json_path(eru, "spec.targetKind"), kind, sizeof(kind));
    return eru_workload_of(kind);
}

static void index_workload(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    stw_autobuf struct stw_buf unpacked = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    char key[STW_KEY_LEN];
    (void)ctx;
    const struct eru_workload *workload =
        find_workload(stw_unpack_root(projected, &unpacked, &doc), key);
    if (workload)
        stw_index_add(out, workload->index, key);
}

static void index_text(const struct eru_workload *workload, const char *key,
                       char out[ERU_INDEX_LEN])
{
    stw_format(out, ERU_INDEX_LEN, "%s:%s", workload->index, key);
}

static void index_selector(const char *eru, char out[ERU_INDEX_LEN])
{
    stw_format(out, ERU_INDEX_LEN, "selector:%s", eru);
}

static struct eru_rollouts *rollouts_of(struct stw_manager *m)
{
    return eru_runtime_rollouts(stw_manager_state(m, &stw_controller_eru));
}

static void eru_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                        const char *old_text, const char *new_text)
{
    stw_autobuf struct stw_buf unpacked = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    const struct eru_workload *workload;
    char target[STW_KEY_LEN], index[ERU_INDEX_LEN];
    stw_watch_own_changed(m, w, key, old_text, new_text);
    if (!new_text) { /* it may have had a selector */
        index_selector(key, index);
        eru_rollouts_track(rollouts_of(m), index, false);
    }
    if (new_text || stw_unpack_scan(old_text, strlen(old_text), &unpacked, &doc) != 0 ||
        !(workload = find_workload(stw_json_root(&doc), target)))
        return;
    index_text(workload, target, index);
    eru_rollouts_track(rollouts_of(m), index, false);
    stw_manager_wake(m, workload->index, target); /* a younger Eru of this workload */
    if (workload->watch == &eru_watch_deployments)
        stw_manager_enqueue(m, "Eru", target); /* an Eru that the Deployment requests */
}

/* Keeps of each workload in the cluster: its uid, whether it requests an Eru, and its
 * resourceVersion, because changes of its status do not show in the other metadata. */
void eru_workload_project(const struct stw_operator *op, struct stw_json object,
                          struct stw_buf *out)
{
    struct stw_json meta = stw_json_get(object, "metadata");
    char uid[64], rv[STW_RV_LEN];
    (void)op;
    if (stw_json_there(stw_json_get(meta, "deletionTimestamp")) ||
        stw_json_strcpy(stw_json_get(meta, "uid"), uid, sizeof(uid)) != 0 ||
        stw_json_strcpy(stw_json_get(meta, "resourceVersion"), rv, sizeof(rv)) != 0)
        return;
    stw_buf_adds(out, "{\"u\":");
    stw_buf_json_strz(out, uid);
    stw_buf_adds(out, ",\"v\":");
    stw_buf_json_strz(out, rv);
    if (stw_json_is(stw_json_get(stw_json_get(meta, "annotations"), ERU_WANTED), "true"))
        stw_buf_adds(out, ",\"e\":true");
    stw_buf_addc(out, '}');
}

static void read_desired(const char *text, struct eru_desired *ret)
{
    stw_autojson struct stw_json_doc doc = {0};
    *ret = (struct eru_desired){0};
    if (!text || stw_json_scan(&doc, text, strlen(text), NULL) != 0)
        return;
    struct stw_json root = stw_json_root(&doc);
    ret->there = true;
    ret->wanted = stw_json_bool(stw_json_get(root, "e"), false);
    (void)stw_json_strcpy(stw_json_get(root, "u"), ret->uid, sizeof(ret->uid));
}

void eru_desired_of(const struct stw_run *run, const struct eru_workload *workload, const char *key,
                    struct eru_desired *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    bool there = stw_informer_get(stw_run_cache(run, workload->watch), key, &text, NULL) == 0;
    read_desired(there ? stw_buf_str(&text) : NULL, ret);
}

/* Most changes are status updates, which matter only while a restart is in progress. */
void eru_workload_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                          const char *old_text, const char *new_text)
{
    const struct eru_workload *workload = eru_workload_watched(w);
    bool deployment = w == &eru_watch_deployments;
    char index[ERU_INDEX_LEN];
    struct eru_desired was, is;
    index_text(workload, key, index);
    read_desired(old_text, &was);
    read_desired(new_text, &is);
    if (deployment && (was.wanted || is.wanted))
        if (was.wanted != is.wanted || !stw_streq(was.uid, is.uid))
            stw_manager_enqueue(m, "Eru", key);
    if (was.wanted != is.wanted || !stw_streq(was.uid, is.uid) ||
        eru_rollouts_tracks(rollouts_of(m), index))
        stw_manager_wake(m, workload->index, key);
    if (deployment && !new_text) /* Deployments that are not our children are only in this cache */
        stw_manager_enqueue_namesakes(m, &stw_watch_deployments, key);
}

void eru_workload_key(const struct eru *e, char out[STW_KEY_LEN])
{
    stw_key_make(e->run->ns, e->spec.deployment, out);
}

void eru_workload_index(const struct eru *e, char out[ERU_INDEX_LEN])
{
    char key[STW_KEY_LEN];
    if (eru_selects(e)) {
        index_selector(e->run->key, out);
        return;
    }
    eru_workload_key(e, key);
    index_text(e->workload, key, out);
}

/* --- conflicts over a workload */

static void find_older(struct eru *e)
{
    char index[ERU_INDEX_LEN], key[STW_KEY_LEN];
    eru_workload_index(e, index);
    if (stw_claim_find(e->run, &e->object, index, NULL, key))
        stw_format(e->holder, sizeof(e->holder), "%s", key);
}

/* --- the run */

/* A token that is too long is replaced by its beginning and its hash. */
static void read_token(struct eru *e)
{
    struct stw_json annotations = stw_json_path(e->object.root, "metadata.annotations");
    struct stw_json token = stw_json_get(annotations, ERU_RESTART_NOW);
    stw_autofree char *text = stw_json_strdup(token);
    if (!text)
        return;
    if (strlen(text) < sizeof(e->token)) {
        stw_format(e->token, sizeof(e->token), "%s", text);
        return;
    }
    struct stw_hash h = stw_hash_bytes(text, strlen(text));
    stw_format(e->token, sizeof(e->token), "%.64s... %016llx", text, (unsigned long long)h.lo);
    stw_message_clean(e->token, sizeof(e->token) - 1);
}

static bool was_written(const struct eru *e, const struct stw_result *result)
{
    return result->outcome == STW_RUN_DONE || result->outcome == STW_RUN_AFTER ||
           result->outcome == STW_RUN_STALLED ||
           (result->outcome == STW_RUN_FAILED && e->err.code != STW_OK &&
            result->err.code == e->err.code);
}

static void write_eru_result(struct eru *e, struct stw_result *result)
{
    char index[ERU_INDEX_LEN];
    struct stw_verdict verdict = {0};
    json_t *status;
    if (e->err.code == STW_ERR_CONFLICT || e->err.code == STW_ERR_CANCELLED) {
        stw_run_fail(e->run, &e->err, result);
        return;
    }
    eru_workload_index(e, index);
    if (!*e->holder) /* otherwise the rollout of the older Eru would no longer be tracked */
        eru_rollouts_track(eru_runtime_rollouts(e->run->state), index,
                           e->state.rollout.there || eru_plan_waits(e));
    eru_judge(e, &verdict, &status);
    stw_run_end(e->run, &e->object, &verdict, status, NULL, result);
    if (!was_written(e, result))
        return;
    eru_tell(e);
    for (int i = ERU_NONE + 1; i < ERU_RESULTS; i++)
        for (unsigned n = 0; n < e->noted[i]; n++)
            eru_runtime_count(e->run->state, (enum eru_result)i);
}

/* After validation both the zone and the schedule are valid. */
static int read_schedule(struct eru *e, struct stw_error *err)
{
    e->zone = stw_zones_get(stw_product_zones(e->run->env), e->spec.time_zone);
    if (!e->zone)
        return stw_fail(err, STW_ERR_INTERNAL, "time zone \"%s\" cannot be read",
                        e->spec.time_zone);
    return stw_cron_parse(e->spec.schedule, &e->cron, err);
}

/* Finds the workload, and an older Eru of it.  False: the run is over. */
static bool find_target(struct eru *e, struct stw_result *result)
{
    char target[STW_KEY_LEN];
    struct eru_desired desired;
    eru_workload_key(e, target);
    if (eru_unmake(e, result))
        return false;
    eru_desired_of(e->run, e->workload, target, &desired);
    e->target_cached = desired.there;
    find_older(e);
    return true;
}

static void reconcile_eru(struct stw_subject *subject, struct stw_result *result)
{
    struct eru *e = (struct eru *)subject;
    struct stw_error err = {0};
    e->ops = &eru_ops;
    e->now_us = stw_wall_us(e->run->clock);
    e->workload = eru_workload_of(e->spec.kind);
    if (read_schedule(e, &err) != 0) {
        stw_run_fail(e->run, &err, result);
        return;
    }
    if (!eru_selects(e) && !find_target(e, result))
        return;
    read_token(e);
    eru_state_read(e->object.status, &e->state);
    if (e->state.failed) {
        (void)stw_fail_memory(&err);
        stw_run_fail(e->run, &err, result);
    } else {
        if (!*e->holder)
            eru_plan(e);
        write_eru_result(e, result);
    }
    eru_state_done(&e->state);
}

static json_t *status_unchecked(struct stw_subject *subject, enum stw_unchecked why,
                                const char *findings)
{
    return why == STW_UNCHECKED_INVALID ? eru_status_invalid((struct eru *)subject, findings)
                                        : stw_status_unchecked(subject, why, findings);
}

/* --- registration */

static const struct stw_watch own_watch = {
    .resource = &stw_kind_eru.resource,
    .project = project_eru,
    .index = index_workload,
    .for_admission = true,
    .changed = eru_changed,
};

static const struct stw_watch *const watches[] = {&eru_watch_deployments, &eru_watch_statefulsets,
                                                  &eru_watch_daemonsets, NULL};

static const char *const conditions[] = {"ScheduleValid", "TargetFound", "RolloutComplete", NULL};

const struct stw_controller stw_controller_eru = {
    STW_CONTROLLER_OF("eru", stw_kind_eru),
    .own = &own_watch,
    .watches = watches,
    .rules = eru_rules,
    .conditions = conditions,
    STW_RUN_STATE(struct eru, spec),
    .reconcile = reconcile_eru,
    .missing = eru_make,
    .status_unchecked = status_unchecked,
    .open = eru_runtime_open,
    .close = eru_runtime_close,
};
