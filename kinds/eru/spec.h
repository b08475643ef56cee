/* SPDX-License-Identifier: Apache-2.0
 *
 * Eru: restarts a workload (Deployment, StatefulSet or DaemonSet) on a schedule. */
#ifndef STW_KINDS_ERU_SPEC_H
#define STW_KINDS_ERU_SPEC_H

#include "kinds/common/hours.h"
#include "kinds/eru/schema.h"
#include "kinds/eru/selector.h"
#include "schema/calendar.h"
#include "schema/kind.h"

struct eru_spec {
    const char *deployment; /* name of the workload, in the object's namespace; NULL: selector */
    const char *kind;       /* of the workload: "Deployment", "StatefulSet", "DaemonSet" */
    struct eru_spec_selector selector;
    bool enabled;
    const char *schedule, *time_zone;
    int64_t starting_deadline_seconds;
    const char *concurrency_policy; /* "Forbid", "Allow" */
    bool require_healthy;
    bool only_if_changed;
    int64_t jitter_seconds, rollout_timeout_seconds, history_limit;
    struct stw_hours hours;
};

#define ERU_NAMED_MAX 20 /* workloads that the status names when they are finished */

/* True for an Eru that is still as steward created it for a Deployment. */
bool eru_is_default(const struct eru_spec *e);

#endif
