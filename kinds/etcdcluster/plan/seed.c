/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the plan: bootstrapping an EtcdCluster, and continuing with a single member on a user's
 * request. */
#include "base/util.h"
#include "kinds/common/pod.h"
#include "kinds/etcdcluster/plan/facts.h"
#include "kinds/etcdcluster/plan/facts_priv.h"
#include "kinds/etcdcluster/plan/move_priv.h"
#include "kinds/etcdcluster/plan/steps_priv.h"

#include <stdio.h>

/* --- the seed */

static bool leave_no_trace(const struct ec_member *m)
{
    return m->pod == EC_POD_ABSENT && !m->claim;
}

/* A pod or claim of ours exists that is not the seed's: there was a cluster, and its status is
 * lost.  Bootstrapping a second one would destroy the first (I6). */
static bool status_lost(struct ec_plan *p, const char *seed)
{
    const struct ec_member *other = NULL;
    uint64_t id = 0;
    ec_plan_each(m, p)
    {
        if (!leave_no_trace(m) && !stw_streq(m->name, seed))
            other = m;
        if (m->answers && m->cluster_id && id != UINT64_MAX)
            id = id == 0 || id == m->cluster_id ? m->cluster_id : UINT64_MAX;
    }
    if (!other)
        return false;
    if (!p->v->listed || id == 0 || id == UINT64_MAX)
        return ec_plan_freeze(
            p, "StatusLost",
            "the status has no clusterID, and there are pods or volumes of a "
            "cluster, such as %s: put status.clusterID and status.memberList back, "
            "or delete them to start again without their data",
            other->name);
    ec_plan_act(p, EC_LATCH, NULL);
    p->move->id = id;
    return true;
}

static bool seed_stuck(const struct ec_plan *p, const struct ec_member *m)
{
    return m->data == EC_DATA_LOST || (ec_plan_misfit(p, m) && (p->v->durable || !m->pod_guarded));
}

static bool seed_pod(struct ec_plan *p, const struct ec_member *m)
{
    bool restored = p->v->restored != NULL;
    if (m->pod == EC_POD_ABSENT) {
        ec_plan_create_pod(p, m, ec_plan_version(p, m));
        p->move->seed = !restored;
        p->move->guarded = restored;
        return true;
    }
    if (m->pod != EC_POD_GOING && (m->pod == EC_POD_ENDED || seed_stuck(p, m)))
        return ec_plan_act(p, EC_DELETE_POD, m);
    return false;
}

/* Guard before latch: once the cluster ID is latched, no pod can bootstrap a new cluster. */
static bool seed_up(struct ec_plan *p, const struct ec_member *m)
{
    bool alone = p->v->listed && p->q.voters == 1 && p->q.learners == 0 && ec_plan_voter(m);
    if (!alone || !m->healthy || !m->cluster_id)
        return ec_plan_wait(p, EC_PLAN_SOON_MS, "SeedStarting",
                            "the first member, %s, is coming up", m->name);
    if (!m->pod_guarded)
        return ec_plan_act(p, EC_GUARD, m);
    ec_plan_act(p, EC_LATCH, m);
    p->move->id = m->cluster_id;
    return true;
}

/* The name that the seed has, or will get. */
static const char *seed_name(const struct ec_view *v)
{
    if (v->restored)
        return v->restored;
    return v->action.kind == EC_SEED ? v->action.member : v->fresh;
}

static struct ec_member get_member_by_name(const struct ec_view *v, const char *name)
{
    const struct ec_member *m = ec_find(v, name);
    struct ec_member none = {.data = EC_DATA_NONE};
    stw_format(none.name, sizeof(none.name), "%s", name);
    return m ? *m : none;
}

bool ec_plan_bootstrap(struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    if (v->cluster_id)
        return false;
    const char *name = seed_name(v);
    struct ec_member seed = get_member_by_name(v, name);
    if (status_lost(p, name))
        return true;
    if (v->restored && seed.data != EC_DATA_THERE)
        return ec_plan_freeze(p, "SeedDataLost",
                              "the volume claim %s, which holds the restored data, is not there: "
                              "restore again into a new cluster",
                              name);
    if (!ec_plan_action_is(p, EC_SEED, &seed))
        return ec_plan_intend(p, EC_INTEND, EC_SEED, &seed);
    if (v->durable && !seed.claim)
        return ec_plan_act(p, EC_CREATE_CLAIM, &seed);
    if (seed.claim_going && seed.pod == EC_POD_ABSENT)
        return ec_plan_wait(p, EC_PLAN_SOON_MS, STW_POD_REASON_VOLUME,
                            "volume claim %s is being deleted", name);
    return seed_pod(p, &seed) || seed_up(p, &seed);
}

/* --- force-new-cluster */

static bool force_to(struct ec_plan *p, enum ec_force_step step)
{
    struct ec_member m =
        get_member_by_name(p->v, p->v->force_step ? p->v->force_member : p->v->force);
    ec_plan_intend(p, EC_FORCE_NEXT, EC_FORCE, &m);
    p->move->force_step = step;
    return true;
}

/* A user has named a member in the annotation, and the quorum is lost. */
static bool force_asked(struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    if (!v->force || v->listed || !ec_quorum_gone(v))
        return false;
    if (!ec_plan_survivor(p, ec_find(v, v->force)) || ec_plan_ready(p))
        return false; /* quorum_lost reports what is wrong with it */
    return force_to(p, EC_FORCE_CLEAR);
}

/* No member of the old cluster may run, or there would be two clusters. */
static bool force_clear(struct ec_plan *p)
{
    const struct ec_member *going = NULL;
    ec_plan_each(m, p)
    {
        if (m->pod == EC_POD_GOING)
            going = m;
        else if (m->pod != EC_POD_ABSENT)
            return ec_plan_act(p, EC_DELETE_POD, m);
    }
    if (going)
        return ec_plan_wait(p, EC_PLAN_SOON_MS, "ForceNewCluster",
                            "pod %s is still being deleted: before it is gone, its member may be "
                            "running. If its node is gone for good, delete the node",
                            going->name);
    return force_to(p, EC_FORCE_START);
}

static bool serves_alone(const struct ec_plan *p, const struct ec_member *m)
{
    return p->v->listed && p->q.voters == 1 && p->q.learners == 0 && ec_plan_voter(m) && m->healthy;
}

/* Makes sure that its pod exists, with or without --force-new-cluster. */
static bool force_pod(struct ec_plan *p, const struct ec_member *m, bool forced)
{
    if (m->pod == EC_POD_ABSENT) {
        ec_plan_create_pod(p, m, ec_plan_version(p, m));
        p->move->forced = forced;
        return true;
    }
    if (m->pod == EC_POD_ENDED || (m->pod != EC_POD_GOING && m->pod_forced != forced))
        return ec_plan_act(p, EC_DELETE_POD, m);
    return false;
}

bool ec_plan_force(struct ec_plan *p)
{
    enum ec_force_step step = p->v->force_step;
    if (step == EC_FORCE_NOT)
        return force_asked(p);
    struct ec_member m = get_member_by_name(p->v, p->v->force_member);
    /* The quorum came back by itself, or has removed this member from its list. */
    if (!m.listed || (step == EC_FORCE_CLEAR && p->v->listed))
        return force_to(p, EC_FORCE_NOT);
    if (m.data != EC_DATA_THERE)
        return ec_plan_freeze(p, "QuorumLost",
                              "the volume of %s, with which the cluster was to continue, is gone: "
                              "restore a backup into a new cluster (EtcdRestore)",
                              m.name);
    if (step == EC_FORCE_CLEAR)
        return force_clear(p);
    if (force_pod(p, &m, step == EC_FORCE_START))
        return true;
    if (m.pod != EC_POD_GOING && serves_alone(p, &m))
        return force_to(p, step == EC_FORCE_START ? EC_FORCE_RESTART : EC_FORCE_NOT);
    return ec_plan_wait(p, EC_PLAN_SOON_MS, "ForceNewCluster", "member %s is coming up alone",
                        m.name);
}
