/* SPDX-License-Identifier: Apache-2.0
 *
 * What an EtcdCluster needs next: a pure function (spec, status, observed) -> one move.  No I/O, no
 * clock, no state of its own.  The tests walk through all states that small clusters can reach.
 *
 * It obeys the invariants that tests/unit/kinds/etcdcluster/world*.c checks.  Above all, steward
 * stops or removes nothing unless the remaining healthy voters are a quorum, and concludes nothing
 * from silence.
 *
 * A move that changes something has two steps: its intent is written to status.currentAction, then
 * it is carried out.  steward may crash after either step.  Carrying a move out twice is safe. */
#ifndef STW_KINDS_ETCDCLUSTER_PLAN_H
#define STW_KINDS_ETCDCLUSTER_PLAN_H

#include "kinds/etcdcluster/plan/view.h"

/* Obligations of the caller, which fills the view and carries moves out:
 *
 * - The status is that of the API server, not of a cache: read since our last write, or the
 *   response to that write.  Intents are written with a resourceVersion, so that a second writer
 *   fails.
 * - `listed` is set only by a list that the latched cluster (its ID is in the answer) returned
 *   after a linearizable read in this pass.
 * - Pods and claims may come from a cache that lags.  These facts need a read of the API server in
 *   this pass: EC_DATA_LOST because an object is missing; that no pod is left when EC_FORCE goes on
 *   from EC_FORCE_CLEAR; that no pod of the name exists before EC_DELETE_CLAIM (if one does, look
 *   again); that no pod or claim of the name exists, with any owner, before EC_MEMBER_ADD (if one
 *   does, call the plan again with `name_used` and another `fresh`); that the volume of no other
 *   member grows before EC_EXPAND_CLAIM (if one does, look again).
 * - EC_CREATE_POD and EC_CREATE_CLAIM of a name that exists do nothing.  EC_DELETE_POD,
 *   EC_DELETE_CLAIM and EC_EXPAND_CLAIM send uid and resourceVersion from the view as preconditions;
 *   on a conflict, look again.  No pod is deleted by force (grace period 0).
 * - Only pods and claims with this object's UID are in the view: volumes that an earlier cluster of
 *   the same name left are not ours.
 * - After a call to etcd whose answer was lost, no call is made to etcd and no other intent is
 *   written for 10 s (etcd's own limit for a proposal is 7 s), or until the list shows that the
 *   call was carried out.  So a late call cannot meet another decision.  Calls of a previous leader
 *   are not known: if the status has an intent that involves a call to etcd (ec_unsettled), the
 *   answer counts as lost when this intent is first seen in a leader's term.
 * - Before EC_MEMBER_DEFRAGMENT, it takes the turn of the nodes of all members (act/turn.h).  If
 *   another cluster has it, it calls the plan again with `upkeep.taken`.
 * - Failovers are counted when the intent EC_REPLACE is first written.
 * - EC_FORCE_NEXT to EC_FORCE_NOT removes the annotation before it writes the status, so that an
 *   old annotation is not honoured again.  It is also removed before any move when
 *   ec_force_expired. */

void ec_plan(const struct ec_view *v, struct ec_move *ret);

#endif
