/* SPDX-License-Identifier: Apache-2.0
 *
 * What the view and a move of an EtcdCluster say: pure functions, also used by those who observe, act and report. */
#ifndef STW_KINDS_ETCDCLUSTER_FACTS_H
#define STW_KINDS_ETCDCLUSTER_FACTS_H

#include "kinds/etcdcluster/plan/view.h"

/* Also for status and the disruption budget. */
struct ec_quorum ec_quorum_of(const struct ec_view *v);
const struct ec_member *ec_find(const struct ec_view *v, const char *name); /* or NULL */

/* Whether the status already has the move's intent, or the move needs none. */
bool ec_intended(const struct ec_view *v, const struct ec_move *move);

/* The status has an intent that involves a call to etcd, and the current list, if there is one,
 * does not show its effect: the call may still be in flight. */
bool ec_unsettled(const struct ec_view *v);
/* The move must not run while a call is in flight: it calls etcd, or writes another intent. */
bool ec_decides(const struct ec_move *move);
/* The force-new-cluster annotation is there, and a quorum too: it must not count in a later outage,
 * for which no user has chosen this survivor. */
bool ec_force_expired(const struct ec_view *v);
/* No quorum has answered for at least EC_QUORUM_GRACE_S. */
bool ec_quorum_gone(const struct ec_view *v);

#endif
