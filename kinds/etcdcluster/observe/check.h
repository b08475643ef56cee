/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks and waits before a move. */
#ifndef STW_KINDS_ETCDCLUSTER_CHECK_H
#define STW_KINDS_ETCDCLUSTER_CHECK_H

struct ec;

/* Sets e->move to the plan's move, or to a wait for calls that may still be in flight.  -1: e->err.
 */
int ec_decide(struct ec *e);
/* Checks that no pod of the cluster is left.  -1: e->err; STW_ERR_CONFLICT: there is one. */
int ec_check_cleared(struct ec *e);

#endif
