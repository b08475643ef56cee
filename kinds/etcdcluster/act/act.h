/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries out a move. */
#ifndef STW_KINDS_ETCDCLUSTER_ACT_H
#define STW_KINDS_ETCDCLUSTER_ACT_H

#include "etcd/etcd.h"

#include <stdint.h>

struct ec;
struct ec_kept;

/* Carries out e->move.  -1: e->err; a wait that etcd requires is not an error. */
int ec_act(struct ec *e, uint64_t *ret_again_ms);
/* What the answer to a change means.  1: done; 0: retry later, not an error; -1: e->err, and `kept`
 * records whether the change may have been made anyway. */
int ec_answer(struct ec *e, int rc, enum stw_etcd_trouble trouble, struct ec_kept *kept);

/* Labels the pods of voters, for the client Service, and removes the label from pods of members
 * that turned out to be in another cluster.  -1: e->err. */
int ec_label_voters(struct ec *e);
/* Annotates pods of the wanted template with its inputs, if an earlier steward has not. */
int ec_record_inputs(struct ec *e);

#endif
