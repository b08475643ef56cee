/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of workload that an Eru can restart, and how the progress of each is read. */
#include "kinds/eru/workloads.h"

#include "kinds/common/workloads.h"
#include "kinds/eru/run_priv.h"

static void read_number(struct stw_json v, int64_t *to)
{
    (void)stw_json_int(v, to);
}

/* --- Deployments */

static void read_stuck(struct stw_json conditions, struct eru_target *t)
{
    struct stw_json key, condition;
    stw_json_foreach (conditions, key, condition) {
        if (!stw_json_is(stw_json_get(condition, "type"), "Progressing") ||
            !stw_json_is(stw_json_get(condition, "status"), "False"))
            continue;
        stw_json_cut(stw_json_get(condition, "message"), t->stuck_message,
                     sizeof(t->stuck_message));
        t->stuck = !stw_json_is(stw_json_get(condition, "reason"), "DeploymentPaused");
    }
}

static void read_deployment(struct stw_json spec, struct stw_json status, struct eru_target *t)
{
    t->wanted = 1;
    t->paused = stw_json_bool(stw_json_get(spec, "paused"), false);
    read_number(stw_json_get(spec, "replicas"), &t->wanted);
    read_number(stw_json_get(status, "replicas"), &t->replicas);
    read_number(stw_json_get(status, "updatedReplicas"), &t->updated);
    read_number(stw_json_get(status, "availableReplicas"), &t->available);
    read_stuck(stw_json_get(status, "conditions"), t);
    t->to_update = t->wanted;
}

/* --- StatefulSets and DaemonSets */

static bool is_on_delete(struct stw_json spec)
{
    return stw_json_is(stw_json_path(spec, "updateStrategy.type"), "OnDelete");
}

/* Pods with an ordinal below the partition keep the old template. */
static void read_statefulset(struct stw_json spec, struct stw_json status, struct eru_target *t)
{
    int64_t partition = 0;
    t->wanted = 1;
    t->by_hand = is_on_delete(spec);
    read_number(stw_json_get(spec, "replicas"), &t->wanted);
    read_number(stw_json_path(spec, "updateStrategy.rollingUpdate.partition"), &partition);
    t->to_update = STW_MAX(t->wanted - STW_MAX(partition, 0), 0);
    read_number(stw_json_get(status, "updatedReplicas"), &t->updated);
    t->replicas = t->updated; /* a StatefulSet has no pod beside that of an ordinal */
    read_number(stw_json_get(status, "readyReplicas"), &t->available);
    /* since Kubernetes 1.22 */
    read_number(stw_json_get(status, "availableReplicas"), &t->available);
}

static void read_daemonset(struct stw_json spec, struct stw_json status, struct eru_target *t)
{
    t->by_hand = is_on_delete(spec);
    read_number(stw_json_get(status, "desiredNumberScheduled"), &t->wanted);
    read_number(stw_json_get(status, "updatedNumberScheduled"), &t->updated);
    read_number(stw_json_get(status, "numberAvailable"), &t->available);
    t->replicas = t->updated;
    t->to_update = t->wanted;
}

/* --- the table */

static const struct eru_workload workloads[] = {
    {"Deployment", "deployment", "DeploymentNotFound", &stw_res_deployment, read_deployment},
    {"StatefulSet", "statefulset", "StatefulSetNotFound", &stw_res_statefulset, read_statefulset},
    {"DaemonSet", "daemonset", "DaemonSetNotFound", &stw_res_daemonset, read_daemonset},
};

const struct eru_workload *eru_workload_of(const char *kind)
{
    for (size_t i = 0; kind && i < STW_COUNT(workloads); i++)
        if (stw_streq(kind, workloads[i].kind))
            return &workloads[i];
    return &workloads[0];
}

int eru_target_read(const struct eru_workload *workload, struct stw_json object,
                    struct eru_target *t)
{
    struct stw_json meta = stw_json_get(object, "metadata");
    struct stw_json spec = stw_json_get(object, "spec");
    struct stw_json status = stw_json_get(object, "status");
    struct stw_json annotations = stw_json_path(spec, "template.metadata.annotations");
    *t = (struct eru_target){0};
    if (stw_json_strcpy(stw_json_get(meta, "uid"), t->uid, sizeof(t->uid)) != 0 ||
        stw_json_strcpy(stw_json_get(meta, "resourceVersion"), t->resource_version,
                        sizeof(t->resource_version)) != 0)
        return -1;
    t->there = !stw_json_there(stw_json_get(meta, "deletionTimestamp"));
    if (stw_json_strcpy(stw_json_get(annotations, ERU_STAMP), t->stamp, sizeof(t->stamp)) != 0)
        t->stamp[0] = '\0';
    if (stw_json_strcpy(stw_json_get(annotations, ERU_INPUTS), t->inputs, sizeof(t->inputs)) != 0)
        t->inputs[0] = '\0';
    (void)stw_json_int(stw_json_get(meta, "generation"), &t->generation);
    (void)stw_json_int(stw_json_get(status, "observedGeneration"), &t->observed_generation);
    workload->read(spec, status, t);
    return 0;
}

void eru_index_text(const struct eru_workload *workload, const char *key, char out[ERU_INDEX_LEN])
{
    stw_format(out, ERU_INDEX_LEN, "%s:%s", workload->index, key);
}

void eru_index_selector(const char *eru, char out[ERU_INDEX_LEN])
{
    stw_format(out, ERU_INDEX_LEN, "selector:%s", eru);
}

void eru_workload_key(const struct eru *e, char out[STW_KEY_LEN])
{
    stw_key_make(e->run->ns, e->spec.deployment, out);
}

void eru_workload_index(const struct eru *e, char out[ERU_INDEX_LEN])
{
    char key[STW_KEY_LEN];
    if (eru_selects(e)) {
        eru_index_selector(e->run->key, out);
        return;
    }
    eru_workload_key(e, key);
    eru_index_text(e->workload, key, out);
}
