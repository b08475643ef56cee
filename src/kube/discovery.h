/* SPDX-License-Identifier: Apache-2.0
 *
 * Which version a server is of, and which versions of an API group it has: Kubernetes takes old
 * ones away and brings new ones, and users run many releases of it. */
#ifndef STW_KUBE_DISCOVERY_H
#define STW_KUBE_DISCOVERY_H

#include "base/buf.h"
#include "kube/resource.h"

/* "/apis/autoscaling" */
void stw_discovery_path(const struct stw_resource *r, struct stw_buf *out);

/* The minor version that an answer from /version names, 24 for Kubernetes 1.24; -1: none. */
int stw_discovery_minor(const struct stw_buf *answer);

/* The first of `alternatives` (one resource in several versions, the best first, ended by NULL)
 * that the server has, by its answer from that path; NULL: none, or it is no such answer. */
const struct stw_resource *stw_discovery_pick(const struct stw_resource *const *alternatives,
                                              const struct stw_buf *answer);

#endif
