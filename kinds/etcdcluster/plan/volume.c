/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the plan: volumes get as large as the spec asks for, one at a time, when there is nothing
 * else to do. */
#include "kinds/etcdcluster/plan/facts_priv.h"
#include "kinds/etcdcluster/plan/move_priv.h"
#include "kinds/etcdcluster/plan/steps_priv.h"

#include "base/util.h"

static const struct ec_member *find_growing(const struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (m->listed && m->volume == EC_VOLUME_GROWS)
            return m;
    }
    return NULL;
}

/* A member that does not serve goes first: its volume may be full. */
static bool is_expanded_before(const struct ec_plan *p, const struct ec_member *a,
                               const struct ec_member *b)
{
    if (!b || ec_plan_action_is(p, EC_EXPAND, a))
        return true;
    if (ec_plan_action_is(p, EC_EXPAND, b) || a->healthy != b->healthy)
        return !ec_plan_action_is(p, EC_EXPAND, b) && !a->healthy;
    return a->created < b->created;
}

static const struct ec_member *next_small(const struct ec_plan *p)
{
    const struct ec_member *next = NULL;
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && !m->foreign && m->volume == EC_VOLUME_SMALL &&
            is_expanded_before(p, m, next))
            next = m;
    }
    return next;
}

/* Storage that fails while it is resized takes at most one member, and the others are a quorum; a
 * member that does not serve has nothing to lose. */
static bool may_expand(const struct ec_plan *p, const struct ec_member *m)
{
    bool whole = ec_plan_calm(p) && ec_plan_cleared_away(p) && p->q.voters == p->v->size;
    return p->q.margin >= 0 && (whole || !m->healthy);
}

bool ec_plan_expand(struct ec_plan *p)
{
    const struct ec_member *growing = find_growing(p);
    const struct ec_member *m = growing ? growing : next_small(p);
    if (!m)
        return false;
    if (growing && p->v->action.kind == EC_IDLE)
        return ec_plan_intend(p, EC_INTEND, EC_EXPAND, growing);
    if (growing)
        return ec_plan_note(p, "ExpandingVolume", "the volume of member %s is being expanded",
                            m->name);
    if (!may_expand(p, m)) /* unless a member is unhealthy, which is reported instead */
        return p->q.healthy == p->q.voters &&
               ec_plan_note(p, "ExpandingVolume",
                            "the volume of member %s is expanded when all members are healthy",
                            m->name);
    return ec_plan_intend(p, EC_EXPAND_CLAIM, EC_EXPAND, m);
}
