/* SPDX-License-Identifier: Apache-2.0
 *
 * The manifest of a pod. */
#ifndef STW_KINDS_ETCDCLUSTER_POD_H
#define STW_KINDS_ETCDCLUSTER_POD_H

#include "base/buf.h"
#include "kinds/etcdcluster/plan/view.h"

#include <jansson.h>

struct ec;

void ec_hash_template(struct ec *e); /* and its inputs */
/* A new tree, or NULL if out of memory. */
json_t *ec_pod_manifest(const struct ec *e, const struct ec_move *move);
/* "a=url,b=url" of all listed members and of `member`. */
void ec_initial_cluster(const struct ec *e, const char *member, bool alone, struct stw_buf *out);

#endif
