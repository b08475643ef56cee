/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of workload that an Eru can restart: one row each (workloads.c). */
#ifndef STW_KINDS_ERU_WORKLOAD_H
#define STW_KINDS_ERU_WORKLOAD_H

#include "base/json.h"
#include "base/resource.h"

struct eru_target;

struct eru_workload {
    const char *kind;      /* "StatefulSet" */
    const char *index;     /* of the cache of Erus: "statefulset" */
    const char *not_found; /* reason of a condition */
    const struct stw_resource *resource;
    /* Fills the counts of a target. */
    void (*read)(struct stw_json spec, struct stw_json status, struct eru_target *ret);
};

/* The row of a kind; of Deployments for NULL and for an unknown kind, which the spec refuses. */
const struct eru_workload *eru_workload_of(const char *kind);

#endif
