/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of workload that an Eru can restart, and how the progress of each is read. */
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
    {"Deployment", "deployment", "DeploymentNotFound", &stw_res_deployment, &eru_watch_deployments,
     read_deployment},
    {"StatefulSet", "statefulset", "StatefulSetNotFound", &stw_res_statefulset,
     &eru_watch_statefulsets, read_statefulset},
    {"DaemonSet", "daemonset", "DaemonSetNotFound", &stw_res_daemonset, &eru_watch_daemonsets,
     read_daemonset},
};

#define ERU_WATCH(resource_, name)                                                                 \
    {                                                                                              \
        .resource = &(resource_), .metadata_only = true, .metrics_name = (name),                   \
        .project = eru_workload_project, .for_admission = true, .changed = eru_workload_changed,   \
    }
const struct stw_watch eru_watch_deployments =
    ERU_WATCH(stw_res_deployment, "deployments/metadata");
const struct stw_watch eru_watch_statefulsets =
    ERU_WATCH(stw_res_statefulset, "statefulsets/metadata");
const struct stw_watch eru_watch_daemonsets = ERU_WATCH(stw_res_daemonset, "daemonsets/metadata");

#define WORKLOAD_VERBS "get,list,watch,patch"
const struct stw_rule eru_rules[] = {
    {.resource = &stw_kind_eru.resource, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &stw_res_deployment, .verbs = WORKLOAD_VERBS},
    {.resource = &stw_res_statefulset, .verbs = WORKLOAD_VERBS},
    {.resource = &stw_res_daemonset, .verbs = WORKLOAD_VERBS},
    /* with spec.onlyIfChanged: only metadata is read */
    {.resource = &stw_res_configmap, .verbs = "get"},
    {.resource = &stw_res_secret, .verbs = "get"},
    {0},
};

const struct eru_workload *eru_workload_of(const char *kind)
{
    for (size_t i = 0; kind && i < STW_COUNT(workloads); i++)
        if (stw_streq(kind, workloads[i].kind))
            return &workloads[i];
    return &workloads[0];
}

const struct eru_workload *eru_workload_watched(const struct stw_watch *w)
{
    for (size_t i = 0; i < STW_COUNT(workloads); i++)
        if (workloads[i].watch == w)
            return &workloads[i];
    return &workloads[0];
}
