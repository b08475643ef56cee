/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources of workloads besides Deployments, for the kinds that restart them. */
#ifndef STW_KINDS_COMMON_WORKLOADS_H
#define STW_KINDS_COMMON_WORKLOADS_H

#include "kube/resource.h"

extern const struct stw_resource stw_res_statefulset, stw_res_daemonset;

#endif
