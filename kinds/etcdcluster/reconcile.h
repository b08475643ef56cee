/* SPDX-License-Identifier: Apache-2.0
 *
 * Reconciles EtcdClusters: a pod and a volume per member, two Services, a disruption budget, and
 * etcd's own member list.  plan/plan.h decides what to do next. */
#ifndef STW_KINDS_ETCDCLUSTER_RECONCILE_H
#define STW_KINDS_ETCDCLUSTER_RECONCILE_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_etcdcluster;

#endif
