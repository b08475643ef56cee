/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the parts of the plan: what is decided so far, and questions about the view that several
 * of them ask. */
#ifndef STW_CONTROLLER_ETCDCLUSTER_PLAN_PRIV_H
#define STW_CONTROLLER_ETCDCLUSTER_PLAN_PRIV_H

#include "base/error.h"
#include "controller/etcdcluster_plan.h"

/* One run of ec_plan. */
struct plan {
    const struct ec_view *v;
    struct ec_quorum q;
    struct ec_move *move;
    bool refused;         /* pods must not be made of the wanted version ... */
    struct stw_error why; /* ... because */
    bool noted;           /* `move` has the reason for which something has to wait */
};

/* A step looks at one matter.  True: the move is made; false: the next step may have its turn. */
typedef bool (*plan_step)(struct plan *p);

/* --- steps, in the files named after them */
bool plan_bootstrap(struct plan *p);
bool plan_force(struct plan *p);
bool plan_learner(struct plan *p);
bool plan_replace(struct plan *p);
bool plan_shrink(struct plan *p);
bool plan_grow(struct plan *p);
bool plan_remake(struct plan *p);
bool plan_downgrade(struct plan *p);
bool plan_roll(struct plan *p);

/* --- making the move; all return true */
bool plan_act(struct plan *p, enum ec_act act, const struct ec_member *m);
bool plan_intend(struct plan *p, enum ec_act act, enum ec_kind kind, const struct ec_member *m);
bool plan_create_pod(struct plan *p, const struct ec_member *m, struct stw_semver version);
bool plan_wait(struct plan *p, uint64_t wait_ms, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool plan_freeze(struct plan *p, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Something cannot be done now, which others do not have to wait for; the first note is told when
 * there is nothing else to do.  Returns false. */
bool plan_note(struct plan *p, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- facts */
/* NOLINTBEGIN(bugprone-macro-parentheses): m is a name, which is declared here */
#define plan_each(m, p)                                                                            \
    for (const struct ec_member *m = (p)->v->members, *m##_end = m + (p)->v->count; m < m##_end;   \
         m++)
/* NOLINTEND(bugprone-macro-parentheses) */

static inline bool plan_voter(const struct ec_member *m)
{
    return m->listed && !m->learner;
}
bool plan_action_is(const struct plan *p, enum ec_kind kind, const struct ec_member *m);
/* Something of the learner that is abandoned is there still. */
bool plan_abandoning(const struct plan *p);
int64_t plan_action_age(const struct plan *p);
/* Nothing is, or it does not get any better by waiting: a pod on a node that is gone stays for
 * ever, and does not stop what has to be done for long. */
bool plan_cleared_away(const struct plan *p);
/* The pod of `m` is being made anew, by us. */
bool plan_moving(const struct plan *p, const struct ec_member *m);
/* One of them is, and may yet come up: no other disruption meanwhile. */
bool plan_in_flight(const struct plan *p);
/* Its data is gone for good: it must never be started again. */
bool plan_data_lost(const struct plan *p, const struct ec_member *m);
/* A cluster could go on with the data of `m` (NULL: no) alone. */
bool plan_survivor(const struct plan *p, const struct ec_member *m);
/* A voter that a kubelet finds ready: when steward finds no quorum, it is steward that is cut off.
 */
const struct ec_member *plan_ready(const struct plan *p);
/* Whether `m` can go without the healthy voters that remain being less than a quorum: taken off the
 * list, or stopped. */
bool plan_can_remove(const struct plan *p, const struct ec_member *m);
bool plan_can_stop(const struct plan *p, const struct ec_member *m);
/* Its pod is what the spec asks for. */
bool plan_current(const struct plan *p, const struct ec_member *m);
/* The version that its pod is to be made of now, where it is made for another reason than to have
 * the wanted one. */
struct stw_semver plan_version(const struct plan *p, const struct ec_member *m);
/* The step to 3.6 is made from 3.5 with a log that may hold requests of 3.4, which 3.6 does not
 * read: each member is started anew first, so that a snapshot of raft takes their place. */
bool plan_trims(const struct plan *p);
/* A pod of this version is started so. */
bool plan_trimmed(const struct plan *p, struct stw_semver version);
/* Another version of `m` can take its place and its data, without a loss of quorum. */
bool plan_in_place(const struct plan *p, const struct ec_member *m);
/* The wanted version is of an older line than `m` runs. */
bool plan_goes_down(const struct plan *p, const struct ec_member *m);
/* etcd writes its data so that the wanted version, of an older line, can read it. */
bool plan_prepared(const struct plan *p);
/* The pod of `m` may be made of the wanted version: that is no older line, or one that can read the
 * member's data. */
bool plan_may_take(const struct plan *p, const struct ec_member *m);
/* Its pod does not come up, and would come out different if it were made again. */
bool plan_misfit(const struct plan *p, const struct ec_member *m);
/* Every voter is healthy, has caught up and runs what its pod says. */
bool plan_calm(const struct plan *p);
/* An outdated voter that cannot be stopped for a moment: a new one comes first. */
const struct ec_member *plan_surge_for(const struct plan *p);
/* MoveLeader away from `m`, if it leads and there is an heir; false: it may go now. */
bool plan_hand_over(struct plan *p, const struct ec_member *m);
/* A voter fit to lead, of those that stay; NULL: there is none. */
const struct ec_member *plan_heir(const struct plan *p, const struct ec_member *leader);
/* The cluster's name, as its members' names begin with it. */
void plan_cluster_name(const struct plan *p, char out[EC_NAME_MAX]);

#define PLAN_SOON_MS 2000     /* something of ours is under way */
#define PLAN_SETTLED_MS 10000 /* a health round */

#endif
