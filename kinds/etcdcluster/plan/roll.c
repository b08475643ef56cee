/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the plan: pods are recreated with another version or from another template, one at a
 * time, the leader last. */
#include "kinds/etcdcluster/plan/facts_priv.h"
#include "kinds/etcdcluster/plan/move_priv.h"
#include "kinds/etcdcluster/plan/steps_priv.h"

#include "base/util.h"

#include <inttypes.h>
#include <stdio.h>

static enum ec_kind kind_of(const struct ec_plan *p, const struct ec_member *m)
{
    if (ec_plan_trims(p))
        return EC_ROLL;
    return stw_semver_compare(m->pod_version, p->v->version) ? EC_UPGRADE : EC_ROLL;
}

/* The leader hands over leadership before it is stopped or removed. */
bool ec_plan_hand_over(struct ec_plan *p, const struct ec_member *m)
{
    const struct ec_member *heir = ec_plan_heir(p, m);
    if (!m->leader || !m->healthy || !heir)
        return false;
    ec_plan_intend(p, EC_MOVE_LEADER, EC_LEADER, m);
    stw_format(p->move->to, sizeof(p->move->to), "%s", heir->name);
    p->move->to_id = heir->id;
    return true;
}

/* --- members that are down anyway */

/* Its pod reports a problem, or had enough time to come up. */
static bool is_member_hopeless(const struct ec_plan *p, const struct ec_member *m)
{
    const struct ec_view *v = p->v;
    bool long_down = m->unhealthy_since && v->now - m->unhealthy_since >= v->unhealthy_s &&
                     v->now - m->created >= v->unhealthy_s;
    return !m->healthy && !m->answers && (m->trouble != EC_TROUBLE_NONE || long_down);
}

/* A pod of an outdated template that does not come up is recreated from the current one at once, so
 * that fixing the spec repairs a mistake in it.  Members that serve are not touched. */
bool ec_plan_remake(struct ec_plan *p)
{
    if (p->refused || !p->v->durable || !ec_plan_cleared_away(p))
        return false;
    ec_plan_each(m, p)
    {
        bool there = m->pod == EC_POD_STARTING || m->pod == EC_POD_RUNNING;
        if (ec_plan_voter(m) && there && is_member_hopeless(p, m) && !ec_plan_current(p, m) &&
            ec_plan_may_take(p, m) && !ec_plan_data_lost(p, m) && ec_plan_can_stop(p, m))
            return ec_plan_intend(p, EC_DELETE_POD, kind_of(p, m), m);
    }
    return false;
}

/* --- downgrade by a minor version */

static bool set_downgrade_target(struct ec_plan *p, struct stw_semver to)
{
    ec_plan_act(p, EC_DOWNGRADE, NULL);
    p->move->version = to;
    return true;
}

static bool same_line(struct stw_semver a, struct stw_semver b)
{
    return a.major == b.major && a.minor == b.minor;
}

/* The downgrade is enabled in etcd before the first member is stopped, and cancelled when the spec
 * changes again.  It ends by itself when all members run the older version. */
bool ec_plan_downgrade(struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    bool down = false;
    if (p->refused)
        return false;
    if (stw_semver_known(v->downgrade_to) && !same_line(v->downgrade_to, v->version))
        return set_downgrade_target(p, (struct stw_semver){0});
    ec_plan_each(m, p) down = down || (ec_plan_voter(m) && ec_plan_goes_down(p, m));
    if (!down || ec_plan_prepared(p))
        return false;
    if (!ec_plan_calm(p))
        return ec_plan_note(
            p, "MembersUnready",
            "the downgrade to %u.%u begins when all members are healthy: %d of %d are",
            v->version.major, v->version.minor, p->q.healthy, p->q.voters);
    return set_downgrade_target(p, v->version);
}

/* --- members that serve */

static const struct ec_member *next_outdated(const struct ec_plan *p)
{
    const struct ec_member *next = NULL;
    ec_plan_each(m, p)
    {
        if (!ec_plan_voter(m) || ec_plan_current(p, m))
            continue;
        if (!next || next->leader || (!m->leader && m->created < next->created))
            next = m;
    }
    return next;
}

bool ec_plan_roll(struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    const struct ec_member *m = next_outdated(p);
    if (!m || p->refused || p->q.learners || p->q.voters != v->size || ec_plan_surge_for(p) ||
        !ec_plan_cleared_away(p))
        return false;
    if (!ec_plan_calm(p) || !ec_plan_can_stop(p, m))
        return ec_plan_note(
            p, "MembersUnready",
            "the pod of member %s is recreated when all members are healthy: %d of %d are", m->name,
            p->q.healthy, p->q.voters);
    if (!ec_plan_may_take(p, m))
        return ec_plan_note(
            p, "UpgradeInProgress",
            "etcd prepares its data for %u.%u, and member %s is not ready for it yet",
            v->version.major, v->version.minor, m->name);
    int64_t rest = v->last_rolled + v->pause_s - v->now;
    if (rest > 0 && !ec_plan_moving(p, m))
        return ec_plan_note(p, "UpgradeInProgress",
                            "the pod of member %s is recreated in %" PRId64 " s", m->name, rest);
    return ec_plan_hand_over(p, m) || ec_plan_intend(p, EC_DELETE_POD, kind_of(p, m), m);
}
