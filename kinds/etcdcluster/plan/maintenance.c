/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the plan: databases are defragmented, one member at a time, the leader last, when there is
 * nothing else to do and every member is healthy.
 *
 * A member serves nothing while it is defragmented, and the answer of etcd may be lost.  So an intent
 * EC_DEFRAGMENT counts as under way until the member serves again, or until upkeep.limit_s is over.
 * Until then nothing else is changed. */
#include "kinds/etcdcluster/plan/facts.h"
#include "kinds/etcdcluster/plan/facts_priv.h"
#include "kinds/etcdcluster/plan/move_priv.h"
#include "kinds/etcdcluster/plan/steps_priv.h"

#include "base/util.h"

#define TRIES_MAX 5 /* etcd may exit when it is defragmented, for example on a full disk */

/* --- the call that the intent in the status involves */

static const struct ec_member *find_kept_up(const struct ec_plan *p)
{
    enum ec_kind kind = p->v->action.kind;
    bool ours = kind == EC_DEFRAGMENT || kind == EC_COMPACT;
    const struct ec_member *m = ours ? ec_find(p->v, p->v->action.member) : NULL;
    return m && m->listed ? m : NULL;
}

/* One that begins in the future was not written by steward, or not by this clock. */
static bool is_over(const struct ec_plan *p)
{
    int64_t age = ec_plan_action_age(p);
    return p->v->upkeep.call != EC_RESULT_NONE || age < 0 || age >= p->v->upkeep.limit_s;
}

/* Without a quorum, too: a cluster of one or two members has none while one is defragmented.  A member
 * that was restarted gets the same time to come back. */
bool ec_plan_await_upkeep(struct ec_plan *p)
{
    const struct ec_member *m = find_kept_up(p);
    if (!m || m->healthy || ec_plan_data_lost(p, m) || is_over(p) ||
        p->v->action.kind != EC_DEFRAGMENT)
        return false;
    return ec_plan_wait(p, EC_PLAN_SOON_MS, "Defragmenting", "member %s is being defragmented",
                        m->name);
}

static bool finish_with(struct ec_plan *p, enum ec_result result)
{
    ec_plan_act(p, EC_FINISH, ec_find(p->v, p->v->action.member));
    p->move->result = result;
    return true;
}

/* --- when */

/* Every voter is healthy and as the spec wants it, and nothing is under way but a change of the leader.
 */
static bool is_quiet(const struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    bool idle = v->action.kind == EC_IDLE || v->action.kind == EC_LEADER || find_kept_up(p);
    bool leader = false;
    ec_plan_each(m, p)
    {
        if (!m->listed)
            continue;
        leader = leader || m->leader;
        if (m->pod != EC_POD_RUNNING || (!ec_plan_current(p, m) && !p->refused) ||
            m->volume == EC_VOLUME_SMALL || m->volume == EC_VOLUME_GROWS)
            return false;
    }
    return idle && leader && ec_plan_calm(p) && p->q.voters == v->size && p->q.learners == 0 &&
           v->force_step == EC_FORCE_NOT && !stw_semver_known(v->downgrade_to);
}

static bool leads_in_vain(const struct ec_plan *p, const struct ec_member *m)
{
    return m->leader && ec_plan_heir(p, m);
}

/* Decides about a call without an answer: another steward made it, the answer was lost, or the member
 * was restarted.  A member that serves is not being defragmented. */
bool ec_plan_resume_upkeep(struct ec_plan *p)
{
    enum ec_kind kind = p->v->action.kind;
    const struct ec_member *m = find_kept_up(p);
    if (kind != EC_DEFRAGMENT && kind != EC_COMPACT)
        return false;
    if (m && p->v->upkeep.call != EC_RESULT_NONE)
        return finish_with(p, p->v->upkeep.call);
    if (m && kind == EC_DEFRAGMENT && m->healthy && !m->to_defragment)
        return finish_with(p, EC_RESULT_DONE);
    if (m && (is_over(p) || p->v->upkeep.tries >= TRIES_MAX))
        return finish_with(p, EC_RESULT_FAILED);
    if (!m || !is_quiet(p) || p->v->upkeep.ends ||
        (kind == EC_DEFRAGMENT && (leads_in_vain(p, m) || p->v->upkeep.taken)))
        return finish_with(p, EC_RESULT_NONE);
    return kind == EC_COMPACT ? ec_plan_intend(p, EC_COMPACT_HISTORY, EC_COMPACT, m)
                              : ec_plan_intend(p, EC_MEMBER_DEFRAGMENT, EC_DEFRAGMENT, m);
}

/* --- the pass */

/* The oldest; the leader last, so that a pass moves the leader once. */
static const struct ec_member *find_next(const struct ec_plan *p)
{
    const struct ec_member *next = NULL;
    ec_plan_each(m, p)
    {
        if (!ec_plan_voter(m) || !m->to_defragment)
            continue;
        if (!next || next->leader || (!m->leader && m->created < next->created))
            next = m;
    }
    return next;
}

static const struct ec_member *find_leader(const struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && m->leader)
            return m;
    }
    return NULL;
}

static bool end_pass(struct ec_plan *p, enum ec_result result, const char *text)
{
    ec_plan_act(p, EC_END_PASS, NULL);
    p->move->result = result;
    stw_format(p->move->text, sizeof(p->move->text), "%s", text);
    return true;
}

/* A crash of such a version during a defragmentation may make its data differ from the others'. */
static bool is_unsafe(const struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (m->listed && stw_semver_known(m->version) &&
            !stw_etcd_has(m->version, STW_ETCD_SAFE_DEFRAG))
            return true;
    }
    return false;
}

static bool wait_in_pass(struct ec_plan *p, const char *what)
{
    p->pass_waits = what;
    return false;
}

static bool begin_pass(struct ec_plan *p)
{
    if (p->v->upkeep.due == EC_WHY_NOT)
        return false;
    ec_plan_act(p, EC_BEGIN_PASS, NULL);
    p->move->why = p->v->upkeep.due;
    return true;
}

static bool go_on(struct ec_plan *p)
{
    const struct ec_upkeep *u = &p->v->upkeep;
    const struct ec_member *m = find_next(p), *leader = find_leader(p);
    if (u->ends)
        return end_pass(p, EC_RESULT_STOPPED, u->ends);
    if (is_unsafe(p))
        return end_pass(p, EC_RESULT_FAILED,
                        "a crash of etcd before 3.5.6 while it is defragmented may damage its data "
                        "(etcd pull request 14685): upgrade first");
    if (!m && !u->compact)
        return end_pass(p, EC_RESULT_DONE, "");
    if (!is_quiet(p))
        return wait_in_pass(p, "until all members are healthy and as the spec wants them");
    if (u->compact)
        return ec_plan_intend(p, EC_COMPACT_HISTORY, EC_COMPACT, leader);
    if (u->busy)
        return wait_in_pass(p, "for the end of a backup");
    if (u->taken)
        return wait_in_pass(p, "for another cluster with members on the same nodes");
    return ec_plan_hand_over(p, m) || ec_plan_intend(p, EC_MEMBER_DEFRAGMENT, EC_DEFRAGMENT, m);
}

bool ec_plan_upkeep(struct ec_plan *p)
{
    return p->v->upkeep.open == EC_WHY_NOT ? begin_pass(p) : go_on(p);
}
