/* SPDX-License-Identifier: Apache-2.0
 *
 * The identity of the cluster in the marks on database servers (sql/core/mark.h): the UID of the namespace
 * kube-system.  Every cluster has that namespace, the API server lets no client delete it, and it keeps its UID when the
 * cluster is restored from a backup of etcd.  Any thread. */
#ifndef STW_KINDS_DATABASEUSER_CLUSTER_ID_H
#define STW_KINDS_DATABASEUSER_CLUSTER_ID_H

#include "controller/controller.h"

#define STW_CLUSTER_NAMESPACE "kube-system"

struct stw_cluster_id;

/* NULL: no memory. */
struct stw_cluster_id *stw_cluster_id_create(void) STW_MUST_CHECK;
void stw_cluster_id_destroy(struct stw_cluster_id *c); /* `c` may be NULL */

/* The first call that succeeds reads it from the API server.  `ret` is valid as long as `c`. */
int stw_cluster_id_get(struct stw_cluster_id *c, struct stw_client *client, const char **ret,
                       struct stw_error *err) STW_MUST_CHECK;
/* What it has read; NULL: nothing yet. */
const char *stw_cluster_id_known(struct stw_cluster_id *c);

#endif
