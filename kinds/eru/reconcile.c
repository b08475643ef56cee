/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/eru/reconcile.h"

#include "base/util.h"
#include "controller/claim.h"
#include "controller/outcome.h"
#include "controller/status.h"
#include "kinds/common/product.h"
#include "kinds/common/workloads.h"
#include "kinds/eru/auto.h"
#include "kinds/eru/plan.h"
#include "kinds/eru/rollouts.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/runtime.h"
#include "kinds/eru/state.h"
#include "kinds/eru/status.h"
#include "kinds/eru/target.h"
#include "kinds/eru/watch.h"
#include "kinds/eru/workloads.h"
#include "schema/zones.h"

#include <stdio.h>

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
    e->watch = eru_watch_of(e->workload);
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

static int open_runtime(struct stw_manager *m, const struct stw_manager_config *config,
                        void **ret_state, struct stw_error *err)
{
    return eru_runtime_open(m, &stw_controller_eru, config, ret_state, err);
}

#define WORKLOAD_VERBS "get,list,watch,patch"
static const struct stw_rule rules[] = {
    {.resource = &stw_kind_eru.resource, .verbs = "get,list,watch,create,patch,delete"},
    {.resource = &stw_res_deployment, .verbs = WORKLOAD_VERBS},
    {.resource = &stw_res_statefulset, .verbs = WORKLOAD_VERBS},
    {.resource = &stw_res_daemonset, .verbs = WORKLOAD_VERBS},
    /* with spec.onlyIfChanged: only metadata is read */
    {.resource = &stw_res_configmap, .verbs = "get"},
    {.resource = &stw_res_secret, .verbs = "get"},
    {0},
};

static const struct stw_watch *const watches[] = {&eru_watch_deployments, &eru_watch_statefulsets,
                                                  &eru_watch_daemonsets, NULL};

static const char *const conditions[] = {"ScheduleValid", "TargetFound", "RolloutComplete", NULL};

const struct stw_controller stw_controller_eru = {
    STW_CONTROLLER_OF("eru", stw_kind_eru),
    .own = &eru_own_watch,
    .watches = watches,
    .rules = rules,
    .conditions = conditions,
    STW_RUN_STATE(struct eru, spec),
    .reconcile = reconcile_eru,
    .missing = eru_make,
    .status_unchecked = status_unchecked,
    .open = open_runtime,
    .close = eru_runtime_close,
};
