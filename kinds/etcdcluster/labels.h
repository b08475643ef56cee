/* SPDX-License-Identifier: Apache-2.0
 *
 * Labels and annotations of the pods and claims of a cluster. */
#ifndef STW_KINDS_ETCDCLUSTER_LABELS_H
#define STW_KINDS_ETCDCLUSTER_LABELS_H

/* app.kubernetes.io/name of a cluster's objects; app.kubernetes.io/instance is the cluster's name.
 */
#define EC_APP "etcd"
/* Annotation of claims: the UID of the cluster whose data it holds.  A claim without it is adopted
 * only as the restored seed that EC_SEED_MEMBER names. */
#define EC_CLUSTER_UID "etcd.database.coreos.com/cluster-uid"

#define EC_PREFIX "etcd.database.coreos.com/"
/* Annotations of pods. */
#define EC_HASH EC_PREFIX "template-hash"     /* of the pod, as that version of steward made it */
#define EC_INPUTS EC_PREFIX "template-inputs" /* of what it was made from */
#define EC_VERSION "etcd.version"
#define EC_INITIAL_CLUSTER EC_PREFIX "initial-cluster"
#define EC_INITIAL_STATE EC_PREFIX "initial-cluster-state"
#define EC_FORCED EC_PREFIX "forced"
#define EC_TRIMMED EC_PREFIX "trimmed"

/* Label of pods and claims: the name of the cluster. */
#define EC_CLUSTER "etcd_cluster"
/* Label of pods: the client Service selects only voters, because a learner does not serve clients.
 */
#define EC_ROLE "etcd_role"
#define EC_VOTER "voter"

#endif
