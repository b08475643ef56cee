/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicates over the view of a plan. */
#ifndef STW_KINDS_ETCDCLUSTER_PLAN_FACTS_PRIV_H
#define STW_KINDS_ETCDCLUSTER_PLAN_FACTS_PRIV_H

#include "kinds/etcdcluster/plan/move_priv.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): m is a name that is declared here */
#define ec_plan_each(m, p)                                                                         \
    for (const struct ec_member *m = (p)->v->members, *m##_end = m + (p)->v->count; m < m##_end;   \
         m++)
/* NOLINTEND(bugprone-macro-parentheses) */

static inline bool ec_plan_voter(const struct ec_member *m)
{
    return m->listed && !m->learner;
}
bool ec_plan_action_is(const struct ec_plan *p, enum ec_kind kind, const struct ec_member *m);
/* The abandoned learner is still listed, or its pod or claim still exists. */
bool ec_plan_abandoning(const struct ec_plan *p);
int64_t ec_plan_action_age(const struct ec_plan *p);
/* The abandoned learner is gone, or waiting longer does not help: a pod on a lost node stays
 * forever, and must not block other actions for long. */
bool ec_plan_cleared_away(const struct ec_plan *p);
/* steward is recreating the pod of `m`. */
bool ec_plan_moving(const struct ec_plan *p, const struct ec_member *m);
/* steward is recreating a voter's pod, which may still come up: no other disruption meanwhile. */
bool ec_plan_in_flight(const struct ec_plan *p);
/* Its data is permanently lost: it must never be started again. */
bool ec_plan_data_lost(const struct ec_plan *p, const struct ec_member *m);
/* The data of `m` alone would be enough to continue the cluster.  `m` NULL: false. */
bool ec_plan_survivor(const struct ec_plan *p, const struct ec_member *m);
/* A voter whose pod is ready: if steward sees no quorum, it is steward that is cut off. */
const struct ec_member *ec_plan_ready(const struct ec_plan *p);
/* Whether the remaining healthy voters are a quorum if `m` is removed from the list, or stopped. */
bool ec_plan_can_remove(const struct ec_plan *p, const struct ec_member *m);
bool ec_plan_can_stop(const struct ec_plan *p, const struct ec_member *m);
/* Its pod matches the spec. */
bool ec_plan_current(const struct ec_plan *p, const struct ec_member *m);
/* The version to use when its pod is created now; not always the wanted version. */
struct stw_semver ec_plan_version(const struct ec_plan *p, const struct ec_member *m);
/* An upgrade from 3.5 to 3.6 with a log that may hold requests of 3.4, which 3.6 cannot read.  Each
 * member is restarted first, so that a raft snapshot replaces them. */
bool ec_plan_trims(const struct ec_plan *p);
/* A pod of this version is started with a trimmed log. */
bool ec_plan_trimmed(const struct ec_plan *p, struct stw_semver version);
/* The pod of `m` can be recreated in place, with its data, without a loss of quorum. */
bool ec_plan_in_place(const struct ec_plan *p, const struct ec_member *m);
/* The wanted version has an older minor than the version of `m`. */
bool ec_plan_goes_down(const struct ec_plan *p, const struct ec_member *m);
/* etcd writes its data so that the wanted, older minor version can read it. */
bool ec_plan_prepared(const struct ec_plan *p);
/* The pod of `m` may be created with the wanted version: it has no older minor, or it can read the
 * member's data. */
bool ec_plan_may_take(const struct ec_plan *p, const struct ec_member *m);
/* Its pod does not come up, and would be different if it were recreated. */
bool ec_plan_misfit(const struct ec_plan *p, const struct ec_member *m);
/* Every voter is healthy, has caught up and runs the version of its pod. */
bool ec_plan_calm(const struct ec_plan *p);
/* Its volume is too small and cannot be expanded, and a user agrees that it is replaced. */
bool ec_plan_outgrown(const struct ec_plan *p, const struct ec_member *m);
/* An outdated voter that cannot be recreated in place, or one whose volume is outgrown: a new member
 * is added first.  NULL: none. */
const struct ec_member *ec_plan_surge_for(const struct ec_plan *p);
/* Moves leadership away from `m`, if it leads and there is a successor; false: `m` may go now. */
bool ec_plan_hand_over(struct ec_plan *p, const struct ec_member *m);
/* A voter other than `leader` that is fit to lead; NULL: none. */
const struct ec_member *ec_plan_heir(const struct ec_plan *p, const struct ec_member *leader);
/* The cluster's name, derived from a member's name. */
void ec_plan_cluster_name(const struct ec_plan *p, char out[EC_NAME_MAX]);

#endif
