/* SPDX-License-Identifier: Apache-2.0
 *
 * The identity of the cluster in the marks on database servers (sql/core/mark.h): the UID of the namespace
 * kube-system.  Every cluster has that namespace, the API server lets no client delete it, and it keeps its UID when the
 * cluster is restored from a backup of etcd.  Any thread. */
#ifndef STW_KINDS_DATABASEUSER_CLUSTER_ID_H
#define STW_KINDS_DATABASEUSER_CLUSTER_ID_H

#include "controller/controller.h"

#define DBU_CLUSTER_NAMESPACE "kube-system"

struct dbu_cluster_id;

/* NULL: no memory. */
struct dbu_cluster_id *dbu_cluster_id_create(void) STW_MUST_CHECK;
void dbu_cluster_id_destroy(struct dbu_cluster_id *c); /* `c` may be NULL */

/* The first call that succeeds reads it from the API server.  `ret` is valid as long as `c`. */
int dbu_cluster_id_get(struct dbu_cluster_id *c, struct stw_client *client, const char **ret,
                       struct stw_error *err) STW_MUST_CHECK;
/* What it has read; NULL: nothing yet. */
const char *dbu_cluster_id_known(struct dbu_cluster_id *c);

#endif
