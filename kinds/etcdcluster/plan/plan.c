/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan: steps in order of priority.  The first step that has something to do makes the move.
 * Steps before unknown_list need no member list; later steps run only with a list that a quorum has
 * confirmed. */
#include "kinds/etcdcluster/plan/plan.h"
#include "kinds/etcdcluster/plan/facts.h"

#include "base/util.h"
#include "etcd/etcd.h"
#include "kinds/etcdcluster/plan/facts_priv.h"
#include "kinds/etcdcluster/plan/move_priv.h"
#include "kinds/etcdcluster/plan/steps_priv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static bool check_paused(struct ec_plan *p)
{
    return p->v->paused && ec_plan_wait(p, EC_PLAN_SETTLED_MS, "Paused", "spec.paused is true");
}

/* Members are added only as learners (I4). */
static bool too_old(struct ec_plan *p)
{
    return p->v->cluster_id == 0 && stw_semver_known(p->v->version) &&
           !stw_etcd_has(p->v->version, STW_ETCD_LEARNERS) &&
           ec_plan_freeze(
               p, "InvalidSpec",
               "spec.version: Invalid value: \"%u.%u.%u\": members are added as learners, "
               "which etcd knows from 3.4.0 on; nothing is made until it is that or later",
               p->v->version.major, p->v->version.minor, p->v->version.patch);
}

/* I10: any change to two clusters with one name, or to one with differing data, can only make it
 * worse. */
static bool check_cluster_identity(struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (m->answers && m->cluster_id && m->cluster_id != p->v->cluster_id)
            return ec_plan_freeze(
                p, "SplitBrain",
                "member %s is in cluster %" PRIx64 ", and this is cluster %" PRIx64
                ": nothing is changed. Find out where its data came from; when they "
                "are not needed, `kubectl delete pvc/%s pod/%s --wait=false` and a "
                "fresh member takes its place",
                m->name, m->cluster_id, p->v->cluster_id, m->name, m->name);
        if (m->listed && (m->alarms & STW_ETCD_ALARM_CORRUPT))
            return ec_plan_freeze(p, "Corrupt",
                                  "the data of member %s differs from the others' (alarm CORRUPT): "
                                  "nothing is changed until a person has looked. Compare `etcdctl "
                                  "endpoint hashkv --cluster`, take a backup from a good member, "
                                  "remove the bad one by `etcdctl member remove %" PRIx64
                                  "`, and then `etcdctl alarm disarm`",
                                  m->name, m->id);
    }
    return (p->v->stray_alarms & STW_ETCD_ALARM_CORRUPT) &&
           ec_plan_freeze(p, "Corrupt",
                          "member %" PRIx64
                          " was removed and its alarm CORRUPT is still raised, so "
                          "that etcd takes no writes. When the data of the others agree (`etcdctl "
                          "endpoint hashkv --cluster`): `etcdctl alarm disarm`",
                          p->v->stray_id);
}

/* Creating a pod takes nothing away if there is none, or if the present one will never run again,
 * or cannot run with the spec it was created from.  So this is allowed even while the quorum is
 * lost, but never with an empty data folder (I6). */
static bool start_missing_members(struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        bool ever_voted = ec_plan_voter(m) || (m->listed && m->promoted);
        if (!ever_voted || m->foreign || ec_plan_data_lost(p, m))
            continue;
        if (m->pod == EC_POD_ENDED || (p->v->durable && ec_plan_misfit(p, m)))
            return ec_plan_act(p, EC_DELETE_POD, m);
        if (m->pod == EC_POD_ABSENT)
            return ec_plan_create_pod(p, m, ec_plan_version(p, m));
    }
    return false;
}

/* Which member has more of the acknowledged data, as far as known.  Compares as raft compares logs.
 */
static bool has_more_data(const struct ec_member *a, const struct ec_member *b)
{
    if (a->answers != b->answers)
        return a->answers;
    if (a->raft_term != b->raft_term)
        return a->raft_term > b->raft_term;
    return a->raft_index > b->raft_index;
}

static const struct ec_member *best_survivor(const struct ec_plan *p)
{
    const struct ec_member *best = NULL;
    ec_plan_each(m, p)
    {
        if (ec_plan_survivor(p, m) && (!best || has_more_data(m, best)))
            best = m;
    }
    return best;
}

/* Explains why that survivor was chosen. */
static void tell_progress(const struct ec_plan *p, const struct ec_member *m, char *out,
                          size_t size)
{
    int silent = 0;
    ec_plan_each(other, p) silent += ec_plan_survivor(p, other) && !other->answers;
    if (!m->answers)
        stw_format(out, size, "; none answers, so that it is not known who has most of it");
    else
        stw_format(out, size,
                   ", which has got farthest of those that answer (raft term %" PRIu64
                   ", index %" PRIu64 ")%s",
                   m->raft_term, m->raft_index, silent ? "; those that do not may have more" : "");
}

/* What to do about a lost quorum, with commands that can be pasted. */
static bool quorum_lost(struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    const struct ec_member *m = best_survivor(p);
    char name[EC_NAME_MAX], progress[160];
    ec_plan_cluster_name(p, name);
    const struct ec_member *ready = ec_plan_ready(p);
    if (ready)
        return ec_plan_freeze(
            p, "QuorumLost",
            "%d of %d members answer steward, %d are needed; but pod %s is ready, so "
            "that others seem to reach a quorum: see what keeps steward from the "
            "members, such as a network policy or its certificate. Nothing is "
            "changed",
            p->q.healthy, p->q.voters, p->q.needed, ready->name);
    if (!m)
        return ec_plan_freeze(
            p, "QuorumLost",
            "%d of %d members are healthy, %d are needed, and there is no volume to "
            "continue with: restore a backup into a new cluster (EtcdRestore)",
            p->q.healthy, p->q.voters, p->q.needed);
    if (v->force)
        return ec_plan_freeze(
            p, "QuorumLost",
            "the annotation " EC_FORCE_NEW_CLUSTER
            " names \"%s\", which is not a member with an existing volume, as for "
            "instance %s is; nothing is changed",
            v->force, m->name);
    tell_progress(p, m, progress, sizeof(progress));
    return ec_plan_freeze(
        p, "QuorumLost",
        "%d of %d members are healthy, %d are needed; nothing is changed. See why with "
        "`kubectl get pods -l etcd_cluster=%s` and bring the members back. Only if "
        "their data is lost for good: `kubectl annotate etcdcluster %s " EC_FORCE_NEW_CLUSTER
        "=%s` continues with the data of that member alone%s",
        p->q.healthy, p->q.voters, p->q.needed, name, name, m->name, progress);
}

/* I7: without a member list, do nothing. */
static bool unknown_list(struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    if (v->listed)
        return false;
    if (!ec_quorum_gone(v))
        return ec_plan_wait(p, EC_PLAN_SOON_MS, "NoQuorum",
                            "no member returned a list of members that a quorum confirms");
    return quorum_lost(p);
}

/* Once a member has been up, its pod must never start with an empty data folder again, however
 * often the kubelet restarts it (I6). */
static bool guard_started_pods(struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        bool there = m->pod == EC_POD_RUNNING || m->pod == EC_POD_STARTING;
        if (m->listed && !m->foreign && m->answers && there && !m->pod_guarded)
            return ec_plan_act(p, EC_GUARD, m);
    }
    return false;
}

/* etcd lists a member that has voted as a learner.  It must not be treated as a learner that
 * failed, and the next upgraded member may have the same problem. */
static bool check_demoted_voters(struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (m->listed && m->learner && m->promoted)
            return ec_plan_freeze(
                p, "PromotionLost",
                "member %s has voted, and etcd lists it as a learner again, as some "
                "versions do after an upgrade (etcd issue 19557): nothing is "
                "changed. When it has caught up: `etcdctl member promote %" PRIx64 "`",
                m->name, m->id);
    }
    return false;
}

/* The same, but only the member itself believes so.  It does not serve, and no other pod is
 * recreated before it does. */
static bool check_doubting_voters(struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && m->doubts)
            return ec_plan_note(p, "PromotionLost",
                                "member %s is a voter, but reports itself as a learner, as some "
                                "versions do after an upgrade (etcd issue 19557): no other pod is "
                                "recreated. See `etcdctl member list` at that member",
                                m->name);
    }
    return false;
}

static bool has_finished_move(const struct ec_plan *p, const struct ec_member *m)
{
    bool trimmed = m->pod_trimmed && m->pod_template && ec_plan_action_is(p, EC_ROLL, m);
    return m->healthy && !m->lagging && (trimmed || ec_plan_current(p, m)) &&
           stw_semver_compare(m->version, m->pod_version) == 0;
}

/* Whether the intent has been achieved. */
static bool came_true(const struct ec_plan *p)
{
    const struct ec_action *a = &p->v->action;
    const struct ec_member *m = ec_find(p->v, a->member);
    bool listed = m && m->listed;
    switch (a->kind) {
    case EC_SEED:
        return listed && m->pod_guarded;
    case EC_ADD:
    case EC_PROMOTE:
        return listed && !m->learner;
    case EC_REMOVE:
    case EC_REPLACE:
        return !listed;
    case EC_UPGRADE:
    case EC_ROLL:
        return !listed || has_finished_move(p, m);
    case EC_LEADER:
        return !listed || !m->leader;
    case EC_ABANDON:
        return !ec_plan_abandoning(p);
    case EC_EXPAND:
        return !listed || m->volume == EC_VOLUME_FINE;
    case EC_FORCE:
        return p->v->force_step == EC_FORCE_NOT;
    case EC_DEFRAGMENT: /* see ec_plan_resume_upkeep */
    case EC_COMPACT:
    case EC_IDLE:
    case EC_KINDS:
        break;
    }
    return false;
}

static bool finish_action(struct ec_plan *p)
{
    return ec_plan_act(p, EC_FINISH, ec_find(p->v, p->v->action.member));
}

static bool finish_achieved_action(struct ec_plan *p)
{
    return came_true(p) && finish_action(p);
}

/* A member that a user added by hand votes like any other, but steward cannot start, stop or
 * replace it.  What spec.size means then is for that user to decide. */
static bool check_foreign_members(struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (m->listed && m->foreign)
            return ec_plan_freeze(p, "ForeignMember",
                                  "member %s (%" PRIx64
                                  ") was not added by steward: members are only "
                                  "kept running until it is removed with `etcdctl member remove "
                                  "%" PRIx64 "`",
                                  m->name, m->id, m->id);
    }
    return false;
}

/* Pods without an entry in the member list belong to no member any more. */
static bool leftover_pods(struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (!m->listed && m->pod != EC_POD_ABSENT && m->pod != EC_POD_GOING)
            return ec_plan_act(p, EC_DELETE_POD, m);
    }
    return false;
}

/* A learner's data is never the only copy, so its volume is deleted at once.  Otherwise a member
 * that does not come up would leave a volume with each attempt. */
static bool leftover_learner(struct ec_plan *p)
{
    const struct ec_member *m = ec_find(p->v, p->v->action.member);
    return ec_plan_abandoning(p) && !m->listed && m->pod == EC_POD_ABSENT &&
           ec_plan_act(p, EC_DELETE_CLAIM, m);
}

static bool check_spec_size(struct ec_plan *p)
{
    if (p->v->size >= 1 && p->v->size <= EC_SIZE_MAX)
        return false;
    return ec_plan_freeze(p, "InvalidSpec",
                          "spec.size: Invalid value: %" PRId64
                          ": must be between 1 and %d; members "
                          "are left as they are",
                          p->v->size, EC_SIZE_MAX);
}

/* I13: a removed member's claim is deleted only when all `size` members are healthy. */
static bool leftover_claims(struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    if (v->keep_scaled || p->q.healthy != p->q.voters || p->q.voters != v->size || p->q.learners)
        return false;
    ec_plan_each(m, p)
    {
        if (!m->listed && m->claim && !m->claim_going && m->pod == EC_POD_ABSENT)
            return ec_plan_act(p, EC_DELETE_CLAIM, m);
    }
    return false;
}

/* An alarm of a member that was replaced since then still applies to all. */
static bool disarm_space_alarm(struct ec_plan *p)
{
    const struct ec_member *full = NULL;
    bool stray = p->v->stray_alarms & STW_ETCD_ALARM_NOSPACE;
    ec_plan_each(m, p)
    {
        if (!m->listed)
            continue;
        if (!m->space)
            return false;
        if (m->alarms & STW_ETCD_ALARM_NOSPACE)
            full = m;
    }
    if (!full && !stray)
        return false;
    if (p->v->disarm_rests)
        return false;
    ec_plan_act(p, EC_DISARM, full);
    p->move->id = full ? full->id : p->v->stray_id;
    return true;
}

static bool check_refused_version(struct ec_plan *p)
{
    return p->refused && ec_plan_freeze(p, "InvalidSpec", "spec.version: %s", p->why.text);
}

/* Its pod is gone, or it is the new pod and has not caught up yet. */
static bool on_its_way(const struct ec_plan *p, const struct ec_member *m)
{
    return ec_plan_voter(m) && ec_plan_moving(p, m) && !has_finished_move(p, m) &&
           (!m->healthy || ec_plan_current(p, m));
}

static bool expands(const struct ec_plan *p, const struct ec_member *m)
{
    return ec_plan_action_is(p, EC_EXPAND, m) && m->volume == EC_VOLUME_GROWS;
}

/* Drops an intent that is not needed any more, such as an addition after the size has shrunk again.
 */
static bool drop_unneeded_action(struct ec_plan *p)
{
    const struct ec_action *a = &p->v->action;
    const struct ec_member *m = ec_find(p->v, a->member);
    bool under_way = ec_plan_abandoning(p) ||
                     (m && ((m->listed && m->learner) || on_its_way(p, m) || expands(p, m)));
    return a->kind != EC_IDLE && !under_way && finish_action(p);
}

static bool wait_for_next_check(struct ec_plan *p)
{
    if (p->noted)
        return true;
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && !m->healthy)
            return ec_plan_wait(p, EC_PLAN_SOON_MS, "MembersUnready", "member %s is not healthy",
                                m->name);
    }
    return ec_plan_wait(p, EC_PLAN_SETTLED_MS, "Settled", "%d of %d members are healthy",
                        p->q.healthy, p->q.voters);
}

/* In this order: the first that makes the move ends the plan. */
/* clang-format off */
static const ec_plan_step steps[] = {
    check_paused,
    too_old,
    ec_plan_bootstrap,
    check_cluster_identity,
    ec_plan_force,
    start_missing_members,
    ec_plan_await_upkeep,
    unknown_list,
    guard_started_pods,
    check_demoted_voters,
    finish_achieved_action,
    ec_plan_resume_upkeep,
    check_foreign_members,
    leftover_pods,
    leftover_learner,
    check_spec_size,
    check_doubting_voters,
    ec_plan_remake,
    ec_plan_learner,
    ec_plan_replace,
    ec_plan_shrink,
    ec_plan_grow,
    ec_plan_downgrade,
    ec_plan_roll,
    leftover_claims,
    disarm_space_alarm,
    ec_plan_expand,
    ec_plan_upkeep,
    drop_unneeded_action,
    check_refused_version,
    wait_for_next_check, /* always makes one */
};
/* clang-format on */

/* --- the version (I9) */

static bool may_follow(struct ec_plan *p, struct stw_semver from)
{
    struct stw_semver to = p->v->version;
    if (!stw_semver_known(from) || stw_semver_compare(from, to) == 0)
        return true;
    return ec_step_check(from, to, &p->why) == 0;
}

/* The version that the whole cluster ran last shows whether it goes up or down.  An upgrade is not
 * reverted once a member has been upgraded. */
static bool turned_back(struct ec_plan *p, const struct ec_member *m)
{
    struct stw_semver from = p->v->current;
    if (!ec_plan_goes_down(p, m) || !stw_semver_known(from) || from.minor >= m->version.minor)
        return false;
    (void)stw_fail(&p->why, STW_ERR_INVALID, "upgrade to %u.%u is still running", m->version.major,
                   m->version.minor);
    return true;
}

/* A voter that cannot be restarted with its data: its volume goes with the pod, or the quorum needs
 * it. */
static const struct ec_member *out_of_place(const struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && !ec_plan_in_place(p, m))
            return m;
    }
    return NULL;
}

static bool any_goes_down(const struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && ec_plan_goes_down(p, m))
            return true;
    }
    return false;
}

/* Otherwise a new member would replace the old one.  That fails in these two cases: the log that
 * the new member receives is as old as those of the others, and etcd lets no member of an older
 * minor version join. */
static bool can_be_in_place(struct ec_plan *p)
{
    bool trims = ec_plan_trims(p);
    unsigned major = p->v->version.major, minor = p->v->version.minor;
    const char *how = p->v->durable
                          ? "Set spec.size to 3 first, at the present version"
                          : "Make a backup and restore it into a new cluster (EtcdRestore)";
    if ((!trims && !any_goes_down(p)) || !out_of_place(p))
        return true;
    if (trims)
        (void)stw_fail(&p->why, STW_ERR_INVALID,
                       "the log may hold requests of etcd 3.4, which %u.%u does not read (etcd "
                       "issue 20809); so members have to be restarted one by one. %s",
                       major, minor, how);
    else
        (void)stw_fail(&p->why, STW_ERR_INVALID,
                       "members go back to %u.%u with their volumes, one by one. %s", major, minor,
                       p->v->durable ? how : "These have none");
    return false;
}

/* Checks the step from the version of every member, and from the agreed cluster version, which lags
 * while a member has yet to be upgraded. */
static bool version_allowed(struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    struct stw_semver agreed = v->cluster_version;
    bool known = false;
    ec_plan_each(m, p)
    {
        known = known || (m->listed && stw_semver_known(m->version));
        if (m->listed && (!may_follow(p, m->version) || turned_back(p, m)))
            return false;
    }
    if (!known)
        return may_follow(p, v->current);
    if (!can_be_in_place(p))
        return false;
    if (agreed.major == v->version.major && agreed.minor == v->version.minor)
        return true;
    if (stw_semver_known(agreed))
        agreed.patch = UINT16_MAX; /* the cluster version has no patch level */
    return may_follow(p, agreed);
}

void ec_plan(const struct ec_view *v, struct ec_move *ret)
{
    struct ec_plan p = {.v = v, .q = ec_quorum_of(v), .move = ret};
    *ret = (struct ec_move){.act = EC_WAIT};
    assert(v->count <= EC_MEMBERS_MAX);
    p.refused = !version_allowed(&p);
    for (size_t i = 0; i < STW_COUNT(steps); i++) {
        if (steps[i](&p))
            break;
    }
    ret->pass_waits = p.pass_waits;
}
