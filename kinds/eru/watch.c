/* SPDX-License-Identifier: Apache-2.0
 *
 * The watches of Erus and of workloads: what the caches keep, and whom a change wakes. */
#include "kinds/eru/watch.h"

#include "base/util.h"
#include "controller/packed.h"
#include "kinds/common/workloads.h"
#include "kinds/eru/rollouts.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/runtime.h"
#include "kinds/eru/workloads.h"

#include <stdio.h>

#define TEXT_MAX (8u << 20)

/* --- Erus */

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

static struct eru_rollouts *rollouts_of(struct stw_manager *m)
{
    return eru_runtime_rollouts(stw_manager_state_of(m, "Eru"));
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
        eru_index_selector(key, index);
        eru_rollouts_track(rollouts_of(m), index, false);
    }
    if (new_text || stw_unpack_scan(old_text, strlen(old_text), &unpacked, &doc) != 0 ||
        !(workload = find_workload(stw_json_root(&doc), target)))
        return;
    eru_index_text(workload, target, index);
    eru_rollouts_track(rollouts_of(m), index, false);
    stw_manager_wake(m, workload->index, target); /* a younger Eru of this workload */
    if (eru_watch_of(workload) == &eru_watch_deployments)
        stw_manager_enqueue(m, "Eru", target); /* an Eru that the Deployment requests */
}

/* --- workloads */

/* Keeps of each workload in the cluster: its uid, whether it requests an Eru, and its
 * resourceVersion, because changes of its status do not show in the other metadata. */
static void project_workload(const struct stw_operator *op, struct stw_json object,
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
    bool there =
        stw_informer_get(stw_run_cache(run, eru_watch_of(workload)), key, &text, NULL) == 0;
    read_desired(there ? stw_buf_str(&text) : NULL, ret);
}

/* Most changes are status updates, which matter only while a restart is in progress. */
static void workload_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                             const char *old_text, const char *new_text)
{
    const struct eru_workload *workload = eru_workload_of(w->resource->kind);
    bool deployment = w == &eru_watch_deployments;
    char index[ERU_INDEX_LEN];
    struct eru_desired was, is;
    eru_index_text(workload, key, index);
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

#define ERU_WATCH(resource_, name)                                                                 \
    {                                                                                              \
        .resource = &(resource_), .metadata_only = true, .metrics_name = (name),                   \
        .project = project_workload, .for_admission = true, .changed = workload_changed,           \
    }
const struct stw_watch eru_watch_deployments =
    ERU_WATCH(stw_res_deployment, "deployments/metadata");
const struct stw_watch eru_watch_statefulsets =
    ERU_WATCH(stw_res_statefulset, "statefulsets/metadata");
const struct stw_watch eru_watch_daemonsets = ERU_WATCH(stw_res_daemonset, "daemonsets/metadata");

/* Of the workloads in workload.h, in any order. */
static const struct stw_watch *const workload_watches[] = {
    &eru_watch_deployments, &eru_watch_statefulsets, &eru_watch_daemonsets};

const struct stw_watch *eru_watch_of(const struct eru_workload *workload)
{
    for (size_t i = 0; i < STW_COUNT(workload_watches); i++)
        if (workload_watches[i]->resource == workload->resource)
            return workload_watches[i];
    return NULL;
}

const struct stw_watch eru_own_watch = {
    .resource = &stw_kind_eru.resource,
    .project = project_eru,
    .index = index_workload,
    .for_admission = true,
    .changed = eru_changed,
};
