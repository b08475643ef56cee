/* SPDX-License-Identifier: Apache-2.0
 *
 * Observes the members. */
#ifndef STW_KINDS_ETCDCLUSTER_OBSERVE_H
#define STW_KINDS_ETCDCLUSTER_OBSERVE_H

#include "kinds/etcdcluster/plan/view.h"

struct ec;
struct ec_detail;
struct ec_state;

#define EC_LAG 5000 /* entries: a member that lags more is lagging */

/* Fills e->view and e->details. */
void ec_observe(struct ec *e);
/* Call after ec_observe: updates e->state.never_ran. */
void ec_note_never_ran(struct ec *e);

/* Pure functions, exported for tests. */
struct ec_seen {
    const struct ec_state *state;
    bool durable;
    int64_t now;
};
void ec_judge_member(const struct ec_seen *s, const struct ec_detail *d, struct ec_member *m);
/* Call after ec_judge_member of each: sets the facts about the cluster as a whole.  e->mismatch,
 * the leader, whose database has space, versions, and whether the quorum is lost. */
void ec_judge_members(struct ec *e);
/* Call after that: no member counts as unhealthy from before the quorum was restored. */
void ec_forgive(struct ec_view *v, int64_t quorum_since);

#endif
