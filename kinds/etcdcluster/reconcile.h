/* SPDX-License-Identifier: Apache-2.0
 *
 * Reconciles EtcdClusters: a pod and a volume per member, two Services, a disruption budget, and
 * etcd's own member list.  plan.h decides what to do next. */
#ifndef STW_KINDS_ETCDCLUSTER_RECONCILE_H
#define STW_KINDS_ETCDCLUSTER_RECONCILE_H

#include "controller/controller.h"

#include <jansson.h>

/* app.kubernetes.io/name of a cluster's objects; app.kubernetes.io/instance is the cluster's name.
 */
#define STW_ETCD_APP "etcd"
/* Annotation of claims: the UID of the cluster whose data it holds.  A claim without it is adopted
 * only as the restored seed that STW_ETCD_SEED_MEMBER names. */
#define STW_ETCD_CLUSTER_UID "etcd.database.coreos.com/cluster-uid"

extern const struct stw_controller stw_controller_etcdcluster;

/* What the EtcdBackups of a cluster contribute to its status.  EtcdBackup is a user of this kind, so
 * the program hands these functions down (kinds/common/product.h).  `key`: "namespace/name" of the
 * cluster. */
struct stw_conditions;
struct stw_etcd_backups {
    /* Sets BackupReady from the EtcdBackups with a schedule or an interval; does nothing if there
     * are none. */
    void (*set_condition)(const struct stw_run *run, const char *key, struct stw_conditions *c);
    /* status.lastBackup: {name, time, revision, verified} of the newest backup, owned by the caller;
     * NULL: none. */
    json_t *(*newest)(const struct stw_run *run, const char *key);
};

#endif
