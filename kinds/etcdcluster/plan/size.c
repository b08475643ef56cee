/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the plan: membership.  One change at a time.  Dead members are removed before new ones
 * are added, and a new member is a learner first. */
#include "kinds/etcdcluster/plan/facts.h"
#include "kinds/etcdcluster/plan/facts_priv.h"
#include "kinds/etcdcluster/plan/move_priv.h"
#include "kinds/etcdcluster/plan/steps_priv.h"

#include "base/util.h"

#include <inttypes.h>
#include <stdio.h>

/* --- the learner */

/* One more voter is needed: for spec.size, or to replace one that is outdated or has outgrown its volume. */
static bool one_more_wanted(const struct ec_plan *p)
{
    return p->q.voters < p->v->size || (p->q.voters == p->v->size && ec_plan_surge_for(p));
}

/* As far as steward can see; etcd decides. */
static bool is_learner_ready(const struct ec_member *m)
{
    return m->healthy && !m->lagging && m->pod_guarded;
}

/* steward may not have run for a while: a learner that is ready gets extra time to be promoted. */
static bool is_learner_overdue(const struct ec_plan *p, const struct ec_member *m)
{
    bool ours = ec_plan_action_is(p, EC_ADD, m) || ec_plan_action_is(p, EC_PROMOTE, m);
    int64_t age = ours ? ec_plan_action_age(p) : p->v->now - m->created;
    /* Another one would not get an image either. */
    return age >= p->v->deadline_s * (is_learner_ready(m) ? 2 : 1) &&
           m->trouble != EC_TROUBLE_IMAGE;
}

static bool learner_pod(struct ec_plan *p, const struct ec_member *m)
{
    if (p->v->durable && !m->claim)
        return ec_plan_act(p, EC_CREATE_CLAIM, m);
    if (m->pod == EC_POD_ABSENT && !m->claim_going)
        return ec_plan_create_pod(p, m, ec_plan_version(p, m));
    if (m->pod == EC_POD_ENDED || (ec_plan_misfit(p, m) && (p->v->durable || !m->started)))
        return ec_plan_act(p, EC_DELETE_POD, m);
    return false;
}

static bool promote_ready_learner(struct ec_plan *p, const struct ec_member *m)
{
    bool keeps_quorum = p->q.healthy + 1 >= (p->q.voters + 1) / 2 + 1;
    if (!is_learner_ready(m))
        return ec_plan_wait(p, EC_PLAN_SOON_MS, "LearnerCatchingUp", "member %s is catching up",
                            m->name);
    if (!keeps_quorum)
        return ec_plan_wait(
            p, EC_PLAN_SOON_MS, "Promoting",
            "member %s is promoted when more members are healthy: with %d of %d, %d "
            "would be needed",
            m->name, p->q.healthy, p->q.voters, (p->q.voters + 1) / 2 + 1);
    return ec_plan_intend(p, EC_MEMBER_PROMOTE, EC_PROMOTE, m);
}

bool ec_plan_learner(struct ec_plan *p)
{
    const struct ec_member *learner = NULL;
    ec_plan_each(m, p)
    {
        if (m->listed && m->learner)
            learner = m;
    }
    if (!learner)
        return false;
    if (ec_plan_data_lost(p, learner) || is_learner_overdue(p, learner) || !one_more_wanted(p))
        return ec_plan_intend(p, EC_MEMBER_REMOVE, EC_ABANDON, learner);
    return learner_pod(p, learner) || promote_ready_learner(p, learner);
}

/* --- the dead */

/* A recreated pod does not come up: another one like it would not help. */
static bool own_fault(const struct ec_plan *p, const struct ec_member *m)
{
    bool placed = m->trouble != EC_TROUBLE_UNSCHEDULABLE && m->trouble != EC_TROUBLE_VOLUME;
    bool new_version =
        stw_semver_compare(m->version, m->pod_version) != 0 && stw_semver_known(m->pod_version);
    return m->trouble == EC_TROUBLE_IMAGE ||
           (placed && m->pod != EC_POD_ABSENT && (ec_plan_moving(p, m) || new_version));
}

static bool is_member_dead(const struct ec_plan *p, const struct ec_member *m)
{
    if (!ec_plan_voter(m) || m->healthy || m->answers)
        return false;
    if (ec_plan_data_lost(p, m))
        return true;
    return m->unhealthy_since && p->v->now - m->unhealthy_since >= p->v->unhealthy_s &&
           !own_fault(p, m);
}

static bool is_replaced_before(const struct ec_plan *p, const struct ec_member *a,
                               const struct ec_member *b)
{
    bool lost = ec_plan_data_lost(p, a);
    if (!b || lost != ec_plan_data_lost(p, b))
        return !b || lost;
    return a->unhealthy_since < b->unhealthy_since;
}

static const struct ec_member *find_member_to_replace(const struct ec_plan *p)
{
    const struct ec_member *worst = NULL;
    ec_plan_each(m, p)
    {
        if (is_member_dead(p, m) && is_replaced_before(p, m, worst))
            worst = m;
    }
    return worst;
}

bool ec_plan_replace(struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    const struct ec_member *m = find_member_to_replace(p);
    if (!m)
        return false;
    if (!v->failover)
        return ec_plan_note(p, "MembersUnready",
                            "member %s is dead and is not replaced: spec.failover.enabled is false",
                            m->name);
    if (!ec_plan_can_remove(p, m))
        return ec_plan_note(p, "MembersUnready",
                            "member %s is dead and is not replaced while only %d of %d members are "
                            "healthy",
                            m->name, p->q.healthy, p->q.voters);
    if (v->failovers_last_hour >= v->max_per_hour && !ec_plan_action_is(p, EC_REPLACE, m))
        return ec_plan_note(p, "RateLimited",
                            "member %s is dead; %" PRId64 " members were replaced within an hour, "
                            "which is the most that spec.failover.maxPerHour allows",
                            m->name, v->failovers_last_hour);
    return ec_plan_intend(p, EC_MEMBER_REMOVE, EC_REPLACE, m);
}

/* --- one too many */

/* The voter with the highest value is removed. */
static int compute_removal_score(const struct ec_plan *p, const struct ec_member *m)
{
    return ec_plan_data_lost(p, m) * 16 + !m->healthy * 8 +
           (!ec_plan_current(p, m) || ec_plan_outgrown(p, m)) * 4 + m->lagging * 2 + !m->leader;
}

static bool is_removed_before(const struct ec_plan *p, const struct ec_member *a,
                              const struct ec_member *b)
{
    int difference = compute_removal_score(p, a) - compute_removal_score(p, b);
    return difference > 0 || (difference == 0 && a->created > b->created);
}

bool ec_plan_shrink(struct ec_plan *p)
{
    const struct ec_member *worst = NULL;
    if (p->q.voters <= p->v->size)
        return false;
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && (!worst || is_removed_before(p, m, worst)))
            worst = m;
    }
    if (!worst)
        return false;
    if (!ec_plan_can_remove(p, worst) || !ec_plan_cleared_away(p) ||
        (worst->healthy && ec_plan_in_flight(p)))
        return ec_plan_note(p, "ScalingDown",
                            "member %s is removed when more members are healthy: %d of %d are",
                            worst->name, p->q.healthy, p->q.voters);
    return ec_plan_hand_over(p, worst) || ec_plan_intend(p, EC_MEMBER_REMOVE, EC_REMOVE, worst);
}

/* --- one too few */

/* Resumes the intended addition, unless its name has been used.  Then the name was listed once, and
 * a pod or claim of that name must not meet a member list that knows it differently. */
static bool resume_addition(const struct ec_plan *p, struct ec_member *ret)
{
    const struct ec_action *a = &p->v->action;
    const struct ec_member *m = ec_find(p->v, a->member);
    bool used = p->v->name_used || (m && (m->claim || m->pod != EC_POD_ABSENT));
    if (a->kind != EC_ADD || used)
        return false;
    stw_format(ret->name, sizeof(ret->name), "%s", a->member);
    return true;
}

bool ec_plan_grow(struct ec_plan *p)
{
    struct ec_member fresh = {.data = EC_DATA_NONE};
    if (!one_more_wanted(p) || p->q.learners > 0)
        return false;
    if (!ec_plan_cleared_away(p) || p->v->fresh[0] == '\0')
        return ec_plan_note(p, "ScalingUp",
                            "a member is added when pods and volumes of former ones are gone");
    bool surge = p->q.voters >= p->v->size;
    if (p->q.margin < 0 || ec_plan_in_flight(p) || (surge && !ec_plan_calm(p)))
        return ec_plan_note(p, "ScalingUp",
                            "a member is added when more members are healthy: %d of %d are",
                            p->q.healthy, p->q.voters);
    if (!resume_addition(p, &fresh))
        stw_format(fresh.name, sizeof(fresh.name), "%s", p->v->fresh);
    return ec_plan_intend(p, EC_MEMBER_ADD, EC_ADD, &fresh);
}
