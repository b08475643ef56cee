/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's version, and the versions of an API group that it has: Kubernetes removes old ones
 * and adds new ones, and users run many of its releases. */
#ifndef STW_KUBE_DISCOVERY_H
#define STW_KUBE_DISCOVERY_H

#include "base/buf.h"
#include "kube/resource.h"

/* "/apis/autoscaling" */
void stw_discovery_path(const struct stw_resource *r, struct stw_buf *out);

/* The minor version in a response from /version, 24 for Kubernetes 1.24; -1: none. */
int stw_discovery_minor(const struct stw_buf *answer);

/* The first of `alternatives` (one resource in several versions, the best first, ended by NULL)
 * that the server has, according to its response from that path; NULL: none, or not such a
 * response. */
const struct stw_resource *stw_discovery_pick(const struct stw_resource *const *alternatives,
                                              const struct stw_buf *answer);

#endif
