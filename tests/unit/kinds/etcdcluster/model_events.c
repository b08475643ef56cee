/* SPDX-License-Identifier: Apache-2.0
 *
 * Events other than steward's moves: etcd, the kubelet, faults, people, time. */
#include "model_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- consequences of every event */

static void elect(struct model *w)
{
    struct slot *leader = NULL, *first = NULL;
    each_slot(s, w)
    {
        if (!model_healthy(w, s))
            continue;
        if (s->leader)
            leader = s;
        if (!first)
            first = s;
    }
    each_slot(s, w) s->leader = s == (leader ? leader : first);
}

/* Writes are acknowledged by the voters that have caught up, if they are a quorum. */
static const char *writes(struct model *w)
{
    if (!model_serves(w))
        return NULL;
    unsigned fresh = model_count_voters(w, true, true);
    if (fresh == 0)
        return "an acknowledged write is lost: a quorum without it serves";
    each_slot(s, w) if (fresh >= model_quorum(w) && !model_connected(s)) s->fresh = 0;
    return NULL;
}

/* A defragmentation ends with its process, and the old database is still there. */
static void stop_process(struct slot *s)
{
    s->up = 0;
    s->defrag = WD_NOT;
}

static const char *follow(struct model *w)
{
    each_slot(s, w)
    {
        if (!s->listed) {
            s->learner = s->long_down = 0;
            if (s->cut != CUT_OFF && w->formed)
                stop_process(s); /* etcd reports that it was removed */
        }
    }
    const char *broken = writes(w);
    each_slot(s, w)
    {
        if (model_seen_healthy(w, s))
            s->long_down = 0;
        if (!s->action)
            s->strange = 0;
        if (model_blank(s))
            *s = (struct slot){0};
    }
    if (model_list_known(w))
        w->quorum_lost = 0;
    elect(w);
    return broken;
}

/* --- the kubelet, and how etcd starts */

static const char *form(struct model *w, struct slot *s)
{
    if (w->latched)
        return "I6: a second cluster is formed";
    each_slot(m, w) m->listed = m->fresh = 0;
    s->listed = s->voted = s->data = s->fresh = 1;
    s->learner = 0;
    w->formed = 1;
    return NULL;
}

static const char *go_on_alone(struct model *w, struct slot *s)
{
    each_slot(m, w)
    {
        if (m == s)
            continue;
        if (m->listed && m->pod != WP_ABSENT)
            return "two clusters: another member runs when one goes on alone";
        m->listed = m->fresh = 0;
    }
    s->fresh = 1;
    return NULL;
}

static bool startable(const struct model *w, const struct slot *s)
{
    bool waits = s->pod == WP_STARTING || (s->pod == WP_RUNNING && !s->up);
    if (!waits || s->cut == CUT_OFF || s->template == TEMPLATE_NO_IMAGE ||
        (w->durable && !s->claim))
        return false;
    if (s->pod == WP_STARTING)
        return true;
    if (s->template == TEMPLATE_CRASHES || s->guarded > s->data)
        return false;
    return s->data ? s->listed || !w->formed : s->seed || (s->listed && model_serves(w));
}

/* A member of 3.4 writes its requests into the logs of all.  A new member may receive them from any
 * voter before 3.6, even from one whose own log begins later.  3.6 exits when it reads them. */
static const char *read_log(const struct model *w, struct slot *s, bool sent)
{
    bool of_34 = false;
    each_const(m, w)
    {
        of_34 = of_34 || (model_voter(m) && m->ran == 1);
        s->old_log |= sent && m != s && model_voter(m) && m->ran && m->ran < 3;
    }
    s->old_log |= of_34 || s->version == 0;
    if (s->version == 2 && s->old_log)
        return "3.6 is started with a log of 3.4";
    if (s->trimmed && !of_34)
        s->old_log = 0;
    return NULL;
}

static const char *start(struct model *w, struct slot *s)
{
    bool empty = !s->data;
    const char *broken = NULL;
    s->pod = WP_RUNNING;
    if (!startable(w, s)) /* it exits again and again */
        return NULL;
    if (s->data) {
        broken = s->forced ? go_on_alone(w, s) : NULL;
    } else if (s->seed) {
        broken = form(w, s);
    } else {
        if (model_voter(s))
            broken = "I6: a voter begins on an empty folder";
        s->data = 1;
        s->fresh = 0;
    }
    s->up = s->started = 1;
    s->ran = (s->version + 1U) & 3;
    return broken ? broken : read_log(w, s, empty && !s->seed);
}

static void lose_data(struct slot *s)
{
    stop_process(s);
    s->data = s->fresh = s->old_log = s->free_pages = 0;
}

static void gone(struct model *w, struct slot *s)
{
    s->pod = WP_ABSENT;
    stop_process(s);
    s->seed = s->forced = s->guarded = s->trimmed = 0;
    s->template = s->version = 0;
    s->cut = CUT_NOT;
    if (!w->durable)
        lose_data(s);
}

static void evict(struct model *w, struct slot *s)
{
    s->pod = WP_ENDED;
    stop_process(s);
    s->cut = CUT_NOT;
    if (!w->durable)
        lose_data(s);
}

static bool can_catch_up(const struct model *w, const struct slot *s)
{
    return s->listed && model_connected(s) && !s->fresh && model_serves(w);
}

static bool can_be_resized(const struct slot *s)
{
    return s->claim && s->volume == WV_GROWS;
}

static bool can_be_defragmented(const struct slot *s)
{
    return s->defrag != WD_NOT;
}

static bool pod_there(const struct slot *s)
{
    return s->pod == WP_STARTING || s->pod == WP_RUNNING;
}

static bool somebody_lags(const struct model *w)
{
    each_const(s, w) if (s->lagging_view) return true;
    return false;
}

static void lag(struct model *w, struct slot *s)
{
    w->seen = (struct slot){.pod = s->pod,
                            .up = s->up,
                            .seed = s->seed,
                            .forced = s->forced,
                            .guarded = s->guarded,
                            .trimmed = s->trimmed,
                            .template = s->template,
                            .version = s->version,
                            .claim = s->claim,
                            .volume = s->volume};
    s->lagging_view = 1;
}

/* --- time */

static bool time_matters(const struct model *w)
{
    bool ret = w->latched && !model_list_known(w) && !w->quorum_lost;
    each_const(s, w) ret = ret || (model_voter(s) && !s->long_down && !model_seen_healthy(w, s));
    return ret;
}

static bool long_time_matters(const struct model *w)
{
    bool ret = w->action != EC_IDLE && !w->overdue;
    each_const(s, w) ret = ret || (s->listed && s->learner && !s->long_down);
    return ret;
}

static void pass_time(struct model *w, bool much)
{
    w->quorum_lost = w->latched && !model_list_known(w);
    w->overdue |= much && w->action != EC_IDLE;
    each_slot(s, w) s->long_down |=
        (model_voter(s) && !model_seen_healthy(w, s)) || (much && s->listed && s->learner);
}

/* --- what can happen */

static bool can_remove_by_hand(const struct model *w, const struct slot *s)
{
    unsigned voters = model_count_voters(w, false, false) - model_voter(s);
    return s->listed && model_serves(w) && voters > 0 &&
           model_count_healthy(w, s) >= voters / 2 + 1;
}

static bool possible_to(const struct model *w, enum event_kind kind, const struct slot *s)
{
    switch (kind) {
    case EV_START:
        return startable(w, s);
    case EV_GONE:
        return s->pod == WP_GOING && s->cut != CUT_OFF;
    case EV_CATCH_UP:
        return can_catch_up(w, s);
    case EV_RESIZED:
        return can_be_resized(s);
    case EV_DEFRAGMENTED:
        return can_be_defragmented(s);
    case EV_HEAL:
        return s->cut != CUT_NOT;
    case EV_SEE:
        return s->lagging_view;
    case EV_CRASH:
        return s->up && pod_there(s);
    case EV_POD_DELETED:
    case EV_EVICTED:
        return pod_there(s) && s->cut != CUT_OFF;
    case EV_WIPED:
        return s->data && s->listed;
    case EV_CLAIM_LOST:
        return s->claim && s->listed;
    case EV_CUT:
    case EV_CUT_FROM_STEWARD:
        return s->up && s->cut == CUT_NOT;
    case EV_LAG:
        return (s->listed || s->action) && !somebody_lags(w);
    case EV_ELECTION:
        return model_healthy(w, s) && !s->leader;
    case EV_FORCE:
        return model_voter(s) && !s->named && !model_serves(w) && w->latched &&
               w->force_step == EC_FORCE_NOT;
    case EV_REMOVED_BY_HAND:
        return can_remove_by_hand(w, s);
    case EV_DEMOTED:
        return model_voter(s) && s->ran > 1 && model_connected(s) && !model_demoted(w) &&
               !s->late && model_count_voters(w, false, false) > 1;
    case EV_LATE:
        return s->late && model_serves(w);
    case EV_TOO_LATE:
        return s->late;
    case EV_STRANGE:
        return s->action && w->action == EC_ADD && !s->listed && s->pod == WP_ABSENT && !s->claim &&
               !s->strange && !s->late;
    default:
        return false;
    }
}

static bool something_flows(const struct model *w)
{
    each_const(s, w) if (!model_empty(s) &&
                         (possible_to(w, EV_START, s) || possible_to(w, EV_GONE, s) ||
                          possible_to(w, EV_CATCH_UP, s) ||
                          possible_to(w, EV_DEFRAGMENTED, s))) return true;
    return false;
}

/* A pod that takes longer than every timeout is a fault, too. */
static bool is_fault(const struct model *w, struct event e)
{
    bool slow = (e.kind == EV_TIME || e.kind == EV_LONG_TIME) && something_flows(w);
    return slow || (e.kind >= EV_CRASH && e.kind < EV_SIZE);
}

static bool possible(const struct model *w, struct event e)
{
    if (w->faults == 0 && is_fault(w, e))
        return false;
    if (e.kind >= EV_SIZE && w->users == 0)
        return false;
    switch (e.kind) {
    case EV_STEWARD:
    case EV_STEWARD_CRASH:
        return e.arg == 0;
    case EV_LOST:
        return e.arg == 0 && !w->late && model_asks_etcd(w);
    case EV_TIME:
        return e.arg == 0 && time_matters(w);
    case EV_LONG_TIME:
        return e.arg == 0 && long_time_matters(w);
    case EV_SIZE:
        return e.arg >= 1 && e.arg <= 5 && e.arg != w->size && abs(e.arg - (int)w->size) <= 2;
    case EV_TEMPLATE:
        return e.arg <= TEMPLATE_NO_IMAGE && e.arg != w->template;
    case EV_VERSION:
        return e.arg <= 2 && e.arg != w->version;
    case EV_STORAGE: /* never smaller again */
        return w->durable && e.arg >= STORAGE_EXPANDS && e.arg <= STORAGE_REPLACES &&
               e.arg != w->storage;
    case EV_DEFRAGMENT:
        return e.arg == 0 && w->latched && !w->asked && !w->pass;
    default:
        return !model_empty(&w->slots[e.arg]) && possible_to(w, e.kind, &w->slots[e.arg]);
    }
}

bool model_next(const struct model *w, struct event *e, bool first)
{
    for (unsigned i = first ? 0 : (unsigned)e->kind * MODEL_SLOTS + e->arg + 1;
         i < EV_KINDS * MODEL_SLOTS; i++) {
        *e = (struct event){.kind = (uint8_t)(i / MODEL_SLOTS), .arg = (uint8_t)(i % MODEL_SLOTS)};
        if (possible(w, *e))
            return true;
    }
    return false;
}

static const char *happen(struct model *w, struct event e)
{
    struct slot *s = &w->slots[e.arg];
    switch ((enum event_kind)e.kind) {
    case EV_STEWARD:
    case EV_STEWARD_CRASH:
        return model_steward(w, e.kind == EV_STEWARD_CRASH ? LUCK_CRASH : LUCK_GOOD);
    case EV_LOST:
        return model_steward(w, LUCK_LOST);
    case EV_LATE:
        return model_late(w);
    case EV_TOO_LATE:
        model_too_late(w);
        break;
    case EV_STRANGE:
        s->strange = 1;
        break;
    case EV_DEMOTED:
        s->learner = 1;
        break;
    case EV_START:
        return start(w, s);
    case EV_GONE:
        gone(w, s);
        break;
    case EV_CATCH_UP:
        s->fresh = 1;
        break;
    case EV_RESIZED:
        s->volume = WV_LARGE;
        break;
    case EV_DEFRAGMENTED:
        s->defrag = WD_NOT;
        s->free_pages = 0;
        break;
    case EV_HEAL:
        s->cut = CUT_NOT;
        break;
    case EV_SEE:
        s->lagging_view = 0;
        w->seen = (struct slot){0};
        break;
    case EV_TIME:
    case EV_LONG_TIME:
        pass_time(w, e.kind == EV_LONG_TIME);
        break;
    case EV_CRASH:
        stop_process(s);
        break;
    case EV_POD_DELETED:
        s->pod = WP_GOING;
        break;
    case EV_EVICTED:
        evict(w, s);
        break;
    case EV_CLAIM_LOST:
        s->claim = 0;
        s->volume = WV_SMALL;
        lose_data(s);
        break;
    case EV_WIPED:
        lose_data(s);
        break;
    case EV_CUT:
        s->cut = CUT_OFF;
        break;
    case EV_CUT_FROM_STEWARD:
        s->cut = CUT_FROM_STEWARD;
        break;
    case EV_LAG:
        lag(w, s);
        break;
    case EV_ELECTION:
        each_slot(m, w) m->leader = m == s;
        break;
    case EV_SIZE:
        w->size = e.arg & 7U;
        break;
    case EV_TEMPLATE:
        w->template = e.arg & 3U;
        break;
    case EV_VERSION:
        w->version = e.arg & 3U;
        break;
    case EV_STORAGE:
        w->storage = e.arg & 3U;
        break;
    case EV_DEFRAGMENT:
        w->asked = 1;
        break;
    case EV_FORCE:
        s->named = 1;
        break;
    case EV_REMOVED_BY_HAND:
        s->listed = s->learner = 0;
        break;
    case EV_KINDS:
        break;
    }
    return NULL;
}

const char *model_apply(struct model *w, struct event e)
{
    bool fault = is_fault(w, e);
    bool by_steward = e.kind <= EV_STEWARD_CRASH || e.kind == EV_LOST || e.kind == EV_LATE;
    if (fault)
        w->faults--;
    if (e.kind >= EV_SIZE)
        w->users--;
    unsigned before = model_count_staying(w, NULL) + model_count_healthy(w, NULL);
    const char *broken = happen(w, e);
    const char *lost = follow(w);
    bool worse = model_count_staying(w, NULL) + model_count_healthy(w, NULL) < before;
    bool known_anew =
        e.kind == EV_HEAL || e.kind == EV_SEE; /* what was not visible at the time of the call */
    if (w->late && !by_steward && (fault || worse || known_anew))
        w->late_hurt = 1;
    return broken ? broken : lost;
}

bool model_flow(struct model *w, const char **broken)
{
    static const uint8_t kinds[] = {EV_GONE, EV_START, EV_CATCH_UP, EV_RESIZED, EV_DEFRAGMENTED};
    bool any = false, more = true;
    for (int round = 0; more && round < 8; round++) {
        more = false;
        for (size_t k = 0; k < sizeof(kinds); k++) {
            for (uint8_t i = 0; i < MODEL_SLOTS; i++) {
                if (model_empty(&w->slots[i]) || !possible_to(w, kinds[k], &w->slots[i]))
                    continue;
                const char *why = model_apply(w, (struct event){kinds[k], i});
                *broken = *broken ? *broken : why;
                any = more = true;
            }
        }
    }
    return any;
}

void model_heal(struct model *w)
{
    each_slot(s, w) s->cut = CUT_NOT;
    each_slot(s, w) s->lagging_view = s->strange = 0;
    w->seen = (struct slot){0};
    model_too_late(w);
    (void)follow(w);
}

/* --- initial states and texts */

static void put_member(struct model *w, struct slot *s)
{
    *s = (struct slot){.listed = 1,
                       .voted = 1,
                       .started = 1,
                       .pod = WP_RUNNING,
                       .up = 1,
                       .guarded = 1,
                       .ran = 1,
                       .claim = w->durable,
                       .data = 1,
                       .fresh = 1,
                       .old_log = 1};
}

void model_new(struct model *w, unsigned size, bool durable, bool settled)
{
    memset(w, 0, sizeof(*w));
    w->size = size & 7;
    w->durable = durable;
    w->failover = 1;
    if (!settled)
        return;
    for (unsigned i = 0; i < size; i++)
        put_member(w, &w->slots[i]);
    w->latched = w->formed = 1;
    (void)follow(w);
}

void model_event_text(const struct model *w, struct event e, char *out, size_t size)
{
    static const char *const texts[EV_KINDS] = {"steward",
                                                "steward crashes after",
                                                "start",
                                                "gone",
                                                "catch up",
                                                "resized",
                                                "defragmented",
                                                "heal",
                                                "see",
                                                "late",
                                                "too late",
                                                "time passes",
                                                "long time",
                                                "CRASH",
                                                "POD DELETED",
                                                "EVICTED",
                                                "WIPED",
                                                "CLAIM LOST",
                                                "CUT",
                                                "CUT FROM STEWARD",
                                                "LAG",
                                                "ELECTION",
                                                "REMOVED BY HAND",
                                                "DEMOTED",
                                                "ANSWER LOST",
                                                "STRANGE",
                                                "SIZE",
                                                "TEMPLATE",
                                                "VERSION",
                                                "STORAGE",
                                                "DEFRAGMENT",
                                                "FORCE"};
    static const char *const acts[] = {
        "wait",          "freeze",       "intend",       "latch",   "create claim", "create pod",
        "delete pod",    "delete claim", "expand claim", "guard",   "member add",   "promote",
        "member remove", "move leader",  "defragment",   "compact", "downgrade",    "disarm",
        "force next",    "begin pass",   "end pass",     "finish"};
    struct ec_move move = {0};
    if (e.kind <= EV_STEWARD_CRASH || e.kind == EV_LOST) {
        model_plan(w, &move);
        (void)snprintf(out, size, "%s: %s %s [%s %s] %s", texts[e.kind], acts[move.act],
                       move.member, ec_kind_names[move.intent.kind], move.intent.member,
                       move.reason ? move.reason : "");
    } else if (e.kind >= EV_SIZE && e.kind <= EV_STORAGE) {
        (void)snprintf(out, size, "%s %u", texts[e.kind], e.arg);
    } else {
        (void)snprintf(out, size, "%s %c", texts[e.kind], model_names[e.arg % MODEL_SLOTS][3]);
    }
}
