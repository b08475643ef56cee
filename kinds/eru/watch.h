/* SPDX-License-Identifier: Apache-2.0
 *
 * The watches of Erus and of workloads. */
#ifndef STW_KINDS_ERU_WATCH_H
#define STW_KINDS_ERU_WATCH_H

#include "controller/controller.h"

struct eru_workload;

extern const struct stw_watch eru_own_watch;
/* Of workloads: metadata only. */
extern const struct stw_watch eru_watch_deployments, eru_watch_statefulsets, eru_watch_daemonsets;
const struct stw_watch *eru_watch_of(const struct eru_workload *workload);

/* A cached workload: whether it exists, and whether it requests an Eru (Deployments only). */
struct eru_desired {
    bool there, wanted;
    char uid[64];
};
void eru_desired_of(const struct stw_run *run, const struct eru_workload *workload, const char *key,
                    struct eru_desired *ret);

#endif
