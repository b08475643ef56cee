/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps EtcdClusters: a pod and a volume a member, two Services, a disruption budget; and etcd's
 * own list of members.  What is to be done next is decided by etcdcluster_plan.h. */
#ifndef STW_CONTROLLER_ETCDCLUSTER_H
#define STW_CONTROLLER_ETCDCLUSTER_H

#include "controller/controller.h"

/* app.kubernetes.io/name of all that belongs to one; its instance is the cluster's name. */
#define STW_ETCD_APP "etcd"
/* On claims: the UID of the cluster whose data it holds.  A claim without it is taken over only as
 * the restored seed that STW_ETCD_SEED_MEMBER names. */
#define STW_ETCD_CLUSTER_UID "etcd.database.coreos.com/cluster-uid"

extern const struct stw_controller stw_controller_etcdcluster;

#endif
