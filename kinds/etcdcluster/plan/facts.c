/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicates over the observed EtcdCluster, and functions that fill in the move.  Pure, as the plan
 * is. */
#include "kinds/etcdcluster/plan/facts.h"
#include "base/util.h"
#include "kinds/etcdcluster/plan/facts_priv.h"
#include "kinds/etcdcluster/plan/move_priv.h"

#include <assert.h>
#include <stdio.h>

#define LEFTOVERS_MAX 3 /* volumes of former members; above this a learner's volume must go first */

const char *const ec_kind_names[] = {
    [EC_IDLE] = "",
    [EC_SEED] = "AddMember",
    [EC_ADD] = "AddMember",
    [EC_PROMOTE] = "PromoteMember",
    [EC_REMOVE] = "RemoveMember",
    [EC_REPLACE] = "ReplaceMember",
    [EC_UPGRADE] = "UpgradeMember",
    [EC_ROLL] = "RollMember",
    [EC_LEADER] = "MoveLeader",
    [EC_FORCE] = "ForceNewCluster",
    [EC_ABANDON] = "AbandonMember",
    [EC_EXPAND] = "ExpandVolume",
    [EC_DEFRAGMENT] = "DefragmentMember",
    [EC_COMPACT] = "CompactHistory",
};
static_assert(STW_COUNT(ec_kind_names) == EC_KINDS, "one name for each kind of action");

struct ec_quorum ec_quorum_of(const struct ec_view *v)
{
    struct ec_quorum q = {0};
    for (size_t i = 0; i < v->count; i++) {
        const struct ec_member *m = &v->members[i];
        q.voters += ec_plan_voter(m);
        q.learners += m->listed && m->learner;
        q.healthy += ec_plan_voter(m) && m->healthy;
    }
    q.needed = q.voters / 2 + 1;
    q.margin = q.healthy - q.needed;
    return q;
}

const struct ec_member *ec_find(const struct ec_view *v, const char *name)
{
    for (size_t i = 0; i < v->count; i++) {
        if (stw_streq(v->members[i].name, name))
            return &v->members[i];
    }
    return NULL;
}

static bool same_action(const struct ec_action *a, const struct ec_action *b)
{
    return a->kind == b->kind && stw_streq(a->member, b->member);
}

bool ec_intended(const struct ec_view *v, const struct ec_move *move)
{
    return move->intent.kind == EC_IDLE || same_action(&v->action, &move->intent);
}

/* The list shows whether etcd has carried out the intent. */
bool ec_unsettled(const struct ec_view *v)
{
    const struct ec_member *m = ec_find(v, v->action.member);
    bool listed = m && m->listed;
    switch (v->action.kind) {
    case EC_ADD:
        return !v->listed || !listed;
    case EC_PROMOTE:
        return !v->listed || !listed || m->learner;
    case EC_REMOVE:
    case EC_REPLACE:
    case EC_ABANDON:
        return !v->listed || listed;
    case EC_LEADER:
        return !v->listed || (listed && m->leader);
    case EC_DEFRAGMENT:
    case EC_COMPACT:
        return listed && v->upkeep.call == EC_RESULT_NONE;
    case EC_IDLE: /* the rest involve only Kubernetes */
    case EC_SEED:
    case EC_UPGRADE:
    case EC_ROLL:
    case EC_FORCE:
    case EC_EXPAND:
    case EC_KINDS:
        break;
    }
    return false;
}

bool ec_force_expired(const struct ec_view *v)
{
    return v->force && v->listed && v->force_step == EC_FORCE_NOT && !v->paused;
}

bool ec_quorum_gone(const struct ec_view *v)
{
    return v->quorum_lost_since != 0 && v->now - v->quorum_lost_since >= EC_QUORUM_GRACE_S;
}

bool ec_decides(const struct ec_move *move)
{
    return move->act == EC_FINISH || move->act == EC_DISARM || move->act == EC_DOWNGRADE ||
           move->intent.kind != EC_IDLE;
}

/* --- the move */

static void set_name(char out[EC_NAME_MAX], const char *name)
{
    stw_format(out, EC_NAME_MAX, "%s", name);
}

bool ec_plan_act(struct ec_plan *p, enum ec_act act, const struct ec_member *m)
{
    struct ec_move *move = p->move;
    *move = (struct ec_move){.act = act};
    if (m) {
        set_name(move->member, m->name);
        move->id = m->id;
    }
    return true;
}

/* A continued action keeps its start time; a promotion continues the addition before it. */
static int64_t find_action_start(const struct ec_plan *p, const struct ec_action *intent)
{
    const struct ec_action *a = &p->v->action;
    bool goes_on = same_action(a, intent) || (a->kind == EC_ADD && intent->kind == EC_PROMOTE &&
                                              stw_streq(a->member, intent->member));
    return goes_on ? a->start : p->v->now;
}

bool ec_plan_intend(struct ec_plan *p, enum ec_act act, enum ec_kind kind,
                    const struct ec_member *m)
{
    ec_plan_act(p, act, m);
    struct ec_action *intent = &p->move->intent;
    *intent = (struct ec_action){.kind = kind, .id = m->id};
    set_name(intent->member, m->name);
    intent->start = find_action_start(p, intent);
    return true;
}

/* Whether the member has been up: then it has data, or has lost it. */
static bool was_up(const struct ec_member *m)
{
    return m->started || ec_plan_voter(m);
}

bool ec_plan_create_pod(struct ec_plan *p, const struct ec_member *m, struct stw_semver version)
{
    ec_plan_act(p, EC_CREATE_POD, m);
    p->move->version = version;
    p->move->guarded = was_up(m);
    p->move->trimmed = ec_plan_trimmed(p, version);
    return true;
}

static void fill_move_with_text(struct ec_plan *p, enum ec_act act, const char *reason,
                                const char *fmt, va_list ap) __attribute__((format(printf, 4, 0)));

static void fill_move_with_text(struct ec_plan *p, enum ec_act act, const char *reason,
                                const char *fmt, va_list ap)
{
    *p->move = (struct ec_move){.act = act, .wait_ms = EC_PLAN_SETTLED_MS, .reason = reason};
    stw_vformat(p->move->text, sizeof(p->move->text), fmt, ap);
}

bool ec_plan_wait(struct ec_plan *p, uint64_t wait_ms, const char *reason, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill_move_with_text(p, EC_WAIT, reason, fmt, ap);
    va_end(ap);
    p->move->wait_ms = wait_ms;
    return true;
}

bool ec_plan_freeze(struct ec_plan *p, const char *reason, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill_move_with_text(p, EC_FREEZE, reason, fmt, ap);
    va_end(ap);
    return true;
}

bool ec_plan_note(struct ec_plan *p, const char *reason, const char *fmt, ...)
{
    va_list ap;
    if (p->noted)
        return false;
    va_start(ap, fmt);
    fill_move_with_text(p, EC_WAIT, reason, fmt, ap);
    va_end(ap);
    p->noted = true;
    return false;
}

/* --- facts */

bool ec_plan_action_is(const struct ec_plan *p, enum ec_kind kind, const struct ec_member *m)
{
    return p->v->action.kind == kind && stw_streq(p->v->action.member, m->name);
}

int64_t ec_plan_action_age(const struct ec_plan *p)
{
    return p->v->now - p->v->action.start;
}

bool ec_plan_abandoning(const struct ec_plan *p)
{
    const struct ec_member *m = ec_find(p->v, p->v->action.member);
    return p->v->action.kind == EC_ABANDON && m &&
           (m->listed || m->pod != EC_POD_ABSENT || (m->claim && !m->claim_going));
}

bool ec_plan_cleared_away(const struct ec_plan *p)
{
    int leftovers = 0;
    ec_plan_each(m, p) leftovers += !m->listed && m->claim;
    return !ec_plan_abandoning(p) ||
           (leftovers < LEFTOVERS_MAX && ec_plan_action_age(p) >= p->v->deadline_s);
}

bool ec_plan_moving(const struct ec_plan *p, const struct ec_member *m)
{
    return ec_plan_action_is(p, EC_ROLL, m) || ec_plan_action_is(p, EC_UPGRADE, m);
}

bool ec_plan_in_flight(const struct ec_plan *p)
{
    const struct ec_member *m = ec_find(p->v, p->v->action.member);
    return m && ec_plan_voter(m) && ec_plan_moving(p, m) && !m->healthy &&
           ec_plan_action_age(p) < p->v->deadline_s;
}

bool ec_plan_data_lost(const struct ec_plan *p, const struct ec_member *m)
{
    if (!was_up(m))
        return false;
    if (m->data != EC_DATA_THERE)
        return true;
    return !p->v->durable && (m->pod == EC_POD_ABSENT || m->pod == EC_POD_ENDED);
}

bool ec_plan_survivor(const struct ec_plan *p, const struct ec_member *m)
{
    return m && ec_plan_voter(m) && !m->foreign && p->v->durable && !ec_plan_data_lost(p, m);
}

const struct ec_member *ec_plan_ready(const struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && m->pod_ready)
            return m;
    }
    return NULL;
}

/* Healthy voters without `m`.  If `m` is healthy, voters whose pod is being deleted do not count:
 * they will be gone soon.  If it is not, they do: it is better gone in any case. */
static int healthy_without(const struct ec_plan *p, const struct ec_member *m)
{
    int healthy = 0;
    ec_plan_each(other, p)
    {
        healthy += other != m && ec_plan_voter(other) && other->healthy &&
                   (other->pod != EC_POD_GOING || !m->healthy);
    }
    return healthy;
}

bool ec_plan_can_remove(const struct ec_plan *p, const struct ec_member *m)
{
    int voters = p->q.voters - ec_plan_voter(m);
    int healthy = healthy_without(p, m);
    return voters >= 1 && p->q.margin >= 0 && healthy >= voters / 2 + 1;
}

bool ec_plan_can_stop(const struct ec_plan *p, const struct ec_member *m)
{
    return healthy_without(p, m) >= p->q.needed;
}

static bool same_version(struct stw_semver a, struct stw_semver b)
{
    return stw_semver_compare(a, b) == 0;
}

/* --- the raft log */

static bool old_log(const struct ec_plan *p)
{
    const struct ec_view *v = p->v;
    return stw_etcd_has(v->version, STW_ETCD_CHECKS_LOG) &&
           !(stw_semver_known(v->oldest) && stw_etcd_has(v->oldest, STW_ETCD_CLEAN_LOG));
}

static bool reads_all(struct stw_semver v)
{
    return stw_semver_known(v) && !stw_etcd_has(v, STW_ETCD_CHECKS_LOG);
}

bool ec_plan_trims(const struct ec_plan *p)
{
    if (p->refused || !old_log(p))
        return false;
    ec_plan_each(m, p)
    {
        if (m->listed && reads_all(m->version) && !m->pod_trimmed &&
            !ec_plan_action_is(p, EC_UPGRADE, m))
            return true;
    }
    return false;
}

bool ec_plan_trimmed(const struct ec_plan *p, struct stw_semver version)
{
    return !p->refused && old_log(p) && reads_all(version);
}

bool ec_plan_in_place(const struct ec_plan *p, const struct ec_member *m)
{
    return p->v->durable && m->data == EC_DATA_THERE && p->q.voters - 1 >= p->q.needed;
}

/* --- versions */

bool ec_plan_current(const struct ec_plan *p, const struct ec_member *m)
{
    bool first = ec_plan_trims(p) && reads_all(m->version);
    return m->pod_template && m->pod_trimmed == first &&
           same_version(m->pod_version, first ? m->version : p->v->version);
}

/* The newest version of the healthy voters.  A new member added during an upgrade does not try the
 * new version, unless that is its purpose.  With an old log the oldest: others may send the log. */
static struct stw_semver find_proven_version(const struct ec_plan *p)
{
    struct stw_semver best = {0};
    ec_plan_each(m, p)
    {
        int newer = stw_semver_compare(m->version, best);
        if (ec_plan_voter(m) && m->healthy &&
            (!stw_semver_known(best) || (old_log(p) ? newer < 0 : newer > 0)))
            best = m->version;
    }
    return best;
}

static struct stw_semver first_known(struct stw_semver a, struct stw_semver b, struct stw_semver c)
{
    return stw_semver_known(a) ? a : stw_semver_known(b) ? b : c;
}

static bool older_line(struct stw_semver a, struct stw_semver b)
{
    return stw_semver_known(a) && stw_semver_known(b) && a.major == b.major && a.minor < b.minor;
}

bool ec_plan_goes_down(const struct ec_plan *p, const struct ec_member *m)
{
    return older_line(p->v->version, m->version);
}

/* While one voter runs the older minor version, etcd writes nothing that this version cannot read.
 */
bool ec_plan_prepared(const struct ec_plan *p)
{
    struct stw_semver to = p->v->version, target = p->v->downgrade_to;
    if (stw_semver_known(target) && target.major == to.major && target.minor == to.minor)
        return true;
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && stw_semver_known(m->version) && !ec_plan_goes_down(p, m))
            return true;
    }
    return false;
}

bool ec_plan_may_take(const struct ec_plan *p, const struct ec_member *m)
{
    bool readable = stw_semver_known(m->storage) && !older_line(p->v->version, m->storage);
    return !ec_plan_goes_down(p, m) || (readable && ec_plan_prepared(p));
}

struct stw_semver ec_plan_version(const struct ec_plan *p, const struct ec_member *m)
{
    const struct ec_view *v = p->v;
    bool surge = m->learner && p->q.voters >= v->size;
    if (!p->refused && !ec_plan_trims(p) && ec_plan_may_take(p, m) &&
        (ec_plan_moving(p, m) || (surge && !stw_semver_known(m->version))))
        return v->version;
    if (stw_semver_known(m->version))
        return m->version;
    return first_known(find_proven_version(p), v->current, v->version);
}

bool ec_plan_misfit(const struct ec_plan *p, const struct ec_member *m)
{
    bool there = m->pod == EC_POD_STARTING || m->pod == EC_POD_RUNNING;
    bool same = m->pod_template && same_version(m->pod_version, ec_plan_version(p, m));
    return there && !same && !m->answers && m->trouble != EC_TROUBLE_NONE;
}

static bool is_fully_healthy(const struct ec_member *m)
{
    return m->healthy && !m->doubts && !m->lagging && same_version(m->version, m->pod_version);
}

bool ec_plan_calm(const struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && !is_fully_healthy(m))
            return false;
    }
    return p->q.voters > 0;
}

bool ec_plan_outgrown(const struct ec_plan *p, const struct ec_member *m)
{
    return p->v->replace_volumes && ec_plan_voter(m) && !m->foreign && m->volume == EC_VOLUME_FIXED;
}

/* Only when all pods are current: a new member that joins in the middle of an upgrade needs more
 * care (see can_be_in_place). */
static const struct ec_member *find_outgrown(const struct ec_plan *p)
{
    const struct ec_member *found = NULL;
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && !ec_plan_current(p, m))
            return NULL;
        if (ec_plan_outgrown(p, m))
            found = m;
    }
    return p->refused ? NULL : found;
}

const struct ec_member *ec_plan_surge_for(const struct ec_plan *p)
{
    ec_plan_each(m, p)
    {
        if (ec_plan_voter(m) && !ec_plan_current(p, m) && !ec_plan_in_place(p, m) && !p->refused &&
            ec_plan_may_take(p, m))
            return m;
    }
    return find_outgrown(p);
}

const struct ec_member *ec_plan_heir(const struct ec_plan *p, const struct ec_member *leader)
{
    const struct ec_member *best = NULL;
    ec_plan_each(m, p)
    {
        if (m == leader || !ec_plan_voter(m) || !m->healthy || m->lagging)
            continue;
        if (!best || ec_plan_current(p, m) > ec_plan_current(p, best))
            best = m;
    }
    return best;
}

void ec_plan_cluster_name(const struct ec_plan *p, char out[EC_NAME_MAX])
{
    const char *name = p->v->count ? p->v->members[0].name : p->v->fresh;
    size_t len = strlen(name);
    stw_format(out, EC_NAME_MAX, "%.*s", (int)(len > 11 ? len - 11 : len), name);
}
