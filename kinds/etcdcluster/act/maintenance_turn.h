/* SPDX-License-Identifier: Apache-2.0
 *
 * The turn of a cluster to be defragmented, on the nodes of its members (turn.h). */
#ifndef STW_KINDS_ETCDCLUSTER_MAINTENANCE_TURN_H
#define STW_KINDS_ETCDCLUSTER_MAINTENANCE_TURN_H

#include "base/json.h"

struct ec;

/* Whether this cluster may be defragmented now. */
bool ec_take_turn(struct ec *e);
/* Gives the turn back, unless a defragmentation is under way. */
void ec_end_turn(struct ec *e);
/* Index of the EtcdClusters that are being defragmented. */
#define EC_DEFRAGMENTING "defragmenting"
void ec_index_defragmenting(struct stw_json root, struct stw_buf *out);

#endif
