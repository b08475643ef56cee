/* SPDX-License-Identifier: Apache-2.0
 *
 * The effect of steward's moves on the model, and whether they keep the rules: judged by the actual
 * state, not by what steward saw. */
#include "model_priv.h"

#include <string.h>

static unsigned total(const struct model *w)
{
    return model_count_voters(w, false, false);
}

static struct slot *slot_of(struct model *w, const char *name)
{
    for (size_t i = 0; i < MODEL_SLOTS; i++)
        if (strcmp(model_names[i], name) == 0)
            return &w->slots[i];
    return NULL;
}

static bool learner_listed(const struct model *w)
{
    each_const(s, w) if (s->listed && s->learner) return true;
    return false;
}

/* Deletions by the plan fail at the API server if the object is gone, or is not the one that it
 * saw. */
static bool precondition(const struct model *w, const struct slot *s)
{
    return !s->lagging_view || model_same_pod(s, &w->seen);
}

/* --- members */

static bool could_be_replaced(const struct model *w, const struct slot *s)
{
    unsigned seen = 0;
    each_const(m, w) seen += m != s && model_seen_healthy(w, m);
    return model_voter(s) && model_data_lost(w, s) && total(w) > 1 &&
           seen >= (total(w) - 1) / 2 + 1;
}

static const char *add(struct model *w, struct slot *s)
{
    if (!model_list_known(w))
        return "I7: a member is added without a list";
    if (learner_listed(w))
        return "I4: a second learner";
    if (s->pod != WP_ABSENT || s->claim || s->strange)
        return "I5: a pod or a claim of the new member's name is there";
    if (s->listed || s->data)
        return "I5: the name of an addition was used before, and its data is there";
    each_const(m, w) if (w->failover &&
                         could_be_replaced(
                             w, m)) return "I3: a member is added before the dead one is removed";
    *s = (struct slot){.listed = 1,
                       .learner = 1,
                       .action = s->action,
                       .force = s->force,
                       .named = s->named,
                       .lagging_view = s->lagging_view};
    return NULL;
}

static const char *promote(struct model *w, struct slot *s)
{
    if (!model_list_known(w))
        return "I7: a member is promoted without a list";
    if (!s->listed || !s->learner || !s->fresh || !model_connected(s))
        return NULL; /* etcd refuses */
    if (s->voted)
        return "E6: a member that has voted is promoted by steward";
    if (model_count_healthy(w, NULL) + 1 < (total(w) + 1) / 2 + 1)
        return "I1: a promotion takes the quorum";
    if (!s->guarded)
        return "I6: a voter whose pod would start on an empty folder";
    s->learner = s->long_down = 0;
    s->voted = 1;
    return NULL;
}

static const char *remove_member(struct model *w, struct slot *s)
{
    if (!model_list_known(w))
        return "I7: a member is removed without a list";
    if (s->listed && s->learner && s->voted)
        return "E6: a member that has voted is given up as a learner";
    if (model_voter(s) && total(w) == 1)
        return "I8: the last voter is removed";
    if (model_voter(s) && model_count_staying(w, s) < (total(w) - 1) / 2 + 1)
        return "I1: a removal takes the quorum";
    if (model_healthy(w, s) && s->cut == CUT_NOT && learner_listed(w))
        return "I2: a voter is removed while a learner is on its way";
    s->listed = s->learner = 0;
    return NULL;
}

/* --- pods and claims */

static const char *versions_in_order(const struct model *w, const struct slot *s, unsigned version)
{
    if (s->ran > version + 1)
        return "I9: a member goes back to an older version";
    each_const(m, w) if (m->listed && m->ran &&
                         version > m->ran) return "I9: a minor version is passed over";
    return NULL;
}

static unsigned index_of(struct stw_semver v)
{
    return v.minor - 4U;
}

static const char *create_pod(struct model *w, struct slot *s, const struct ec_move *move)
{
    if (s->pod != WP_ABSENT)
        return NULL;
    if (move->seed && w->latched)
        return "I6: initial-cluster-state=new after the latch";
    if (move->forced && w->force_step != EC_FORCE_START)
        return "--force-new-cluster without a person's word";
    if (!s->listed && (w->latched || !s->action))
        return "a pod for nobody";
    if (model_data_lost(w, s) && w->latched && model_voter(s) && !w->durable)
        return "I6: a voter that lost its data is started";
    s->pod = WP_STARTING;
    s->seed = move->seed;
    s->forced = move->forced;
    s->guarded = move->guarded;
    s->trimmed = move->trimmed;
    s->template = w->template;
    s->version = index_of(move->version) & 3;
    return versions_in_order(w, s, s->version);
}

static const char *stop(const struct model *w, const struct slot *s)
{
    if (!w->latched || w->force_step != EC_FORCE_NOT || !model_voter(s))
        return NULL;
    if (!w->durable && s->data)
        return "the data of a voter is thrown away";
    if (!s->up)
        return NULL;
    if (!model_list_known(w))
        return "I7: a voter is stopped without a list";
    if (model_count_staying(w, s) < model_quorum(w))
        return "I1: a stop takes the quorum";
    if (model_seen_healthy(w, s) && (learner_listed(w) || model_count_healthy(w, NULL) != total(w)))
        return "I2: two disruptions at a time";
    return NULL;
}

static const char *delete_pod(struct model *w, struct slot *s)
{
    if (!precondition(w, s) || s->pod == WP_ABSENT || s->pod == WP_GOING)
        return NULL;
    const char *broken = stop(w, s);
    s->pod = WP_GOING;
    return broken;
}

static const char *create_claim(struct model *w, struct slot *s)
{
    if (s->claim)
        return NULL;
    if (w->latched && (model_voter(s) || s->started))
        return "I6: an empty volume for a member that had data";
    s->claim = 1;
    s->volume = w->storage == STORAGE_SMALL ? WV_SMALL : WV_LARGE;
    return NULL;
}

static const char *delete_claim(struct model *w, struct slot *s)
{
    if (s->pod != WP_ABSENT) /* the executor checks before it does this */
        return NULL;
    if (s->listed)
        return "the volume of a member is deleted";
    if (s->voted &&
        (total(w) != w->size || model_count_healthy(w, NULL) != total(w) || w->keep_scaled))
        return "I13: a volume is deleted before its replacement serves";
    s->claim = s->data = s->fresh = 0;
    s->volume = WV_SMALL;
    return NULL;
}

static const char *expand_claim(const struct model *w, struct slot *s)
{
    if (!s->claim || s->volume != WV_SMALL || (s->lagging_view && !model_same_claim(s, &w->seen)))
        return NULL;
    if (w->storage != STORAGE_EXPANDS)
        return "I15: a claim is expanded that cannot be, or needs not";
    if (!model_list_known(w))
        return "I7: a claim is expanded without a list";
    if (!model_voter(s))
        return "I15: the volume of a learner, or of no member, is expanded";
    each_const(m, w)
    {
        if (!m->listed || !m->claim || m->volume != WV_GROWS)
            continue;
        /* the executor reads the claims before it does this */
        return m->lagging_view ? NULL : "I15: two volumes are expanded at a time";
    }
    if (model_count_healthy(w, NULL) < model_quorum(w))
        return "I15: a volume is expanded without a quorum";
    if (model_seen_healthy(w, s) &&
        (learner_listed(w) || model_count_healthy(w, NULL) != total(w) || total(w) != w->size))
        return "I15: a volume is expanded while something else is wrong";
    s->volume = WV_GROWS;
    return NULL;
}

static const char *guard(const struct model *w, struct slot *s)
{
    if (!precondition(w, s) || s->pod == WP_ABSENT)
        return NULL;
    s->guarded = 1;
    return s->data || s->pod == WP_GOING ? NULL : "a guard for a member without data";
}

static const char *latch(struct model *w)
{
    each_const(s, w) if (s->listed &&
                         !s->guarded) return "I6: latched while the seed could begin anew";
    if (total(w) != 1)
        return "latched with more than the seed";
    w->latched = 1;
    return NULL;
}

static const char *force_next(struct model *w, struct slot *s, enum ec_force_step step)
{
    if (step == EC_FORCE_START) {
        each_const(m, w) if (m->pod !=
                             WP_ABSENT) return NULL; /* the executor checks before it does this */
    }
    if (step == EC_FORCE_CLEAR && (model_serves(w) || !s->named))
        return "force-new-cluster without a person's word, or with a quorum";
    each_slot(m, w)
    {
        m->force = m == s && step != EC_FORCE_NOT;
        if (step == EC_FORCE_NOT)
            m->named = 0;
    }
    w->force_step = step & 3;
    return NULL;
}

static void move_leader(struct model *w, const struct slot *from, struct slot *to)
{
    if (!from->leader || !model_healthy(w, to))
        return;
    each_slot(s, w) s->leader = s == to;
}

/* --- defragmentation */

static bool is_any_busy(const struct model *w)
{
    each_const(s, w) if (model_voter(s) && s->defrag == WD_BUSY) return true;
    return false;
}

static const struct slot *seen_of(const struct model *w, const struct slot *s)
{
    return s->lagging_view ? &w->seen : s;
}

static const char *defragment(struct model *w, struct slot *s)
{
    if (!model_list_known(w))
        return "I7: a member is defragmented without a list";
    if (is_any_busy(w))
        return "I16: two members are defragmented at a time";
    if (!model_voter(s) || model_count_healthy(w, NULL) != total(w))
        return "I16: a member is defragmented while one is not healthy";
    if (learner_listed(w) || w->force_step != EC_FORCE_NOT)
        return "I16: a member is defragmented while the cluster changes";
    each_const(m, w)
    {
        const struct slot *seen = seen_of(w, m);
        if (m->listed && (seen->pod != WP_RUNNING || (seen->claim && seen->volume == WV_GROWS)))
            return "I16: a member is defragmented while another one is changed";
    }
    if (s->leader && model_count_healthy(w, s) > 0)
        return "I16: the leader is defragmented while another voter could lead";
    s->defrag = WD_BUSY;
    return NULL;
}

/* The spec may change before a late call comes.  Versions may be refused, and so are not compared. */
static const char *choose_to_defragment(struct model *w, struct slot *s)
{
    if (total(w) != w->size)
        return "I16: a member is defragmented before the cluster has its size";
    each_const(m, w) if (m->listed && seen_of(w, m)->template !=
                                          w->template) return "I16: a member is defragmented "
                                                              "before all have the template";
    return defragment(w, s);
}

/* What must not be done while a member is defragmented.  A pod that runs no more is replaced. */
static bool is_change(const struct slot *s, enum ec_act act)
{
    return act == EC_MEMBER_ADD || act == EC_MEMBER_PROMOTE || act == EC_MEMBER_REMOVE ||
           (act == EC_DELETE_POD && s->up) || act == EC_DELETE_CLAIM || act == EC_EXPAND_CLAIM ||
           act == EC_MOVE_LEADER || act == EC_DOWNGRADE || act == EC_MEMBER_DEFRAGMENT;
}

/* A new pass is about all members. */
static void begin_pass(struct model *w)
{
    w->asked = 0;
    w->pass = 1;
    each_slot(s, w) s->free_pages = model_voter(s) && s->data;
}

static void give_up(struct model *w)
{
    each_slot(s, w) s->defrag = s->defrag ? WD_GIVEN_UP : WD_NOT;
    w->pass = 0;
}

static void finish(struct model *w, enum ec_result result)
{
    if (result == EC_RESULT_FAILED)
        give_up(w);
    each_slot(s, w) s->action = 0;
    w->action = EC_IDLE;
    w->overdue = 0;
}

static const char *act(struct model *w, struct slot *s, const struct ec_move *move)
{
    if (is_any_busy(w) && is_change(s, move->act) && w->force_step == EC_FORCE_NOT)
        return "I16: something is changed while a member is defragmented";
    switch (move->act) {
    case EC_LATCH:
        return latch(w);
    case EC_CREATE_CLAIM:
        return create_claim(w, s);
    case EC_CREATE_POD:
        return create_pod(w, s, move);
    case EC_DELETE_POD:
        return delete_pod(w, s);
    case EC_DELETE_CLAIM:
        return delete_claim(w, s);
    case EC_EXPAND_CLAIM:
        return expand_claim(w, s);
    case EC_GUARD:
        return guard(w, s);
    case EC_MEMBER_ADD:
        return add(w, s);
    case EC_MEMBER_PROMOTE:
        return promote(w, s);
    case EC_MEMBER_REMOVE:
        return remove_member(w, s);
    case EC_FORCE_NEXT:
        return force_next(w, s, move->force_step);
    case EC_MOVE_LEADER:
        move_leader(w, s, slot_of(w, move->to));
        return NULL;
    case EC_MEMBER_DEFRAGMENT:
        return choose_to_defragment(w, s);
    case EC_BEGIN_PASS:
        begin_pass(w);
        break;
    case EC_END_PASS:
        w->pass = 0;
        each_slot(m, w) m->free_pages = 0;
        break;
    case EC_FINISH:
        finish(w, move->result);
        return NULL;
    case EC_WAIT:
    case EC_FREEZE:
    case EC_INTEND:
    case EC_DOWNGRADE:
    case EC_COMPACT_HISTORY:
    case EC_DISARM:
        break;
    }
    return NULL;
}

static void write_intent(struct model *w, const struct ec_action *intent)
{
    each_slot(s, w) s->action = strcmp(model_names[s - w->slots], intent->member) == 0;
    w->action = intent->kind & 15;
    w->overdue = NOW - intent->start >= DEADLINE;
}

/* --- the executor */

/* An object that already has the name, seen or not, has another owner. */
static void decide(struct model *w, struct ec_view *v, struct ec_move *move)
{
    model_view(w, v);
    ec_plan(v, move);
    const struct slot *s = slot_of(w, move->member);
    if (move->act != EC_MEMBER_ADD || !s || (s->pod == WP_ABSENT && !s->claim && !s->strange))
        return;
    v->name_used = true;
    ec_plan(v, move);
}

static enum model_late kind_of(const struct ec_move *move)
{
    return move->act == EC_MEMBER_ADD          ? LATE_ADD
           : move->act == EC_MEMBER_PROMOTE    ? LATE_PROMOTE
           : move->act == EC_MEMBER_REMOVE     ? LATE_REMOVE
           : move->act == EC_MEMBER_DEFRAGMENT ? LATE_DEFRAGMENT
                                               : LATE_NOT;
}

bool model_asks_etcd(const struct model *w)
{
    struct ec_move move;
    model_plan(w, &move);
    return kind_of(&move) != LATE_NOT && move.member[0];
}

const char *model_steward(struct model *w, enum model_luck luck)
{
    struct ec_view v;
    struct ec_move move;
    decide(w, &v, &move);
    if (ec_force_expired(&v))
        each_slot(m, w) m->named = 0;
    if (w->late && ec_unsettled(&v) && ec_decides(&move))
        return NULL; /* the executor waits */
    struct slot *s = slot_of(w, move.member);
    if (!s && move.member[0])
        return "a move for a name that nobody gave";
    if (!s && (move.act == EC_MEMBER_ADD || move.act == EC_INTEND))
        return NULL; /* no name is free: the model is too small for this */
    if (!ec_intended(&v, &move))
        write_intent(w, &move.intent);
    if (luck == LUCK_CRASH)
        return NULL;
    if (luck == LUCK_GOOD)
        return act(w, s, &move);
    w->late = kind_of(&move) & 7U;
    w->late_hurt = 0; /* set below if something is wrong already */
    each_slot(m, w)
    {
        m->late = m == s;
        w->late_hurt |= m->cut != CUT_NOT || m->lagging_view || m->pod == WP_GOING;
    }
    return NULL;
}

void model_too_late(struct model *w)
{
    each_slot(s, w) s->late = 0;
    w->late = w->late_hurt = 0;
}

/* A broken rule does not count if something else went wrong since the call was made. */
const char *model_late(struct model *w)
{
    static const char *(*const how[])(struct model *,
                                      struct slot *) = {[LATE_ADD] = add,
                                                        [LATE_PROMOTE] = promote,
                                                        [LATE_REMOVE] = remove_member,
                                                        [LATE_DEFRAGMENT] = defragment};
    enum model_late kind = w->late;
    bool hurt = w->late_hurt;
    struct model before = *w;
    const char *broken = NULL;
    each_slot(s, w)
    {
        if (!s->late)
            continue;
        s->late = 0;
        broken = how[kind](w, s);
        break;
    }
    if (broken && hurt)
        *w = before;
    model_too_late(w);
    return hurt ? NULL : broken;
}
