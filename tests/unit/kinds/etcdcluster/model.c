/* SPDX-License-Identifier: Apache-2.0
 *
 * The state as it is, and as steward sees it. */
#include "model_priv.h"

#include <stdio.h>
#include <string.h>

static const struct stw_semver versions[] = {{3, 4, 23}, {3, 5, 21}, {3, 6, 4}};
const char *const model_names[MODEL_SLOTS] = {
    "ec-bbbbbbbbbb", "ec-cccccccccc", "ec-dddddddddd", "ec-ffffffffff", "ec-gggggggggg",
    "ec-hhhhhhhhhh", "ec-jjjjjjjjjj", "ec-kkkkkkkkkk", "ec-llllllllll", "ec-mmmmmmmmmm"};

/* --- facts */

unsigned model_count_voters(const struct model *w, bool fresh_only, bool connected_only)
{
    unsigned n = 0;
    each_const(s, w) n +=
        model_voter(s) && (!connected_only || model_connected(s)) && (!fresh_only || s->fresh);
    return n;
}

unsigned model_quorum(const struct model *w)
{
    return model_count_voters(w, false, false) / 2 + 1;
}

bool model_serves(const struct model *w)
{
    unsigned voters = 0, connected = 0;
    each_const(s, w)
    {
        voters += model_voter(s);
        connected += model_voter(s) && model_connected(s);
    }
    return connected >= voters / 2 + 1;
}

/* If the cluster serves. */
static bool member_healthy(const struct slot *s)
{
    return model_voter(s) && model_connected(s) && s->fresh;
}

/* The actual state, whether steward sees it or not. */
bool model_healthy(const struct model *w, const struct slot *s)
{
    return member_healthy(s) && model_serves(w);
}

unsigned model_count_healthy(const struct model *w, const struct slot *but)
{
    unsigned n = 0;
    if (!model_serves(w))
        return 0;
    each_const(s, w) n += s != but && member_healthy(s);
    return n;
}

bool model_seen_healthy(const struct model *w, const struct slot *s)
{
    return model_healthy(w, s) && s->cut == CUT_NOT;
}

bool model_list_known(const struct model *w)
{
    each_const(s, w) if (model_seen_healthy(w, s)) return true;
    return false;
}

bool model_data_lost(const struct model *w, const struct slot *s)
{
    if (!s->started && !model_voter(s))
        return false;
    if (w->durable)
        return !s->claim || (!s->data && s->guarded && s->pod == WP_RUNNING && !s->up);
    return s->pod == WP_ABSENT || s->pod == WP_ENDED || (!s->data && s->guarded);
}

static const struct slot *pod_seen(const struct model *w, const struct slot *s)
{
    return s->lagging_view ? &w->seen : s;
}

/* Healthy voters other than `but`.  Unless steward sees `but` as unhealthy, voters whose pod it
 * sees as terminating do not count: they are healthy only for a moment. */
unsigned model_count_staying(const struct model *w, const struct slot *but)
{
    unsigned n = 0;
    each_const(s, w) n += s != but && model_healthy(w, s) &&
                          ((but && !model_seen_healthy(w, but)) || pod_seen(w, s)->pod != WP_GOING);
    return n;
}

bool model_same_pod(const struct slot *a, const struct slot *b)
{
    return a->pod == b->pod && a->up == b->up && a->seed == b->seed && a->forced == b->forced &&
           a->guarded == b->guarded && a->trimmed == b->trimmed && a->template == b->template &&
           a->version == b->version;
}

bool model_same_claim(const struct slot *a, const struct slot *b)
{
    return a->claim == b->claim && a->volume == b->volume;
}

/* --- what steward sees */

static enum ec_volume view_volume(const struct model *w, const struct slot *seen)
{
    if (w->storage == STORAGE_SMALL || !seen->claim || seen->volume == WV_LARGE)
        return EC_VOLUME_FINE;
    if (seen->volume == WV_GROWS)
        return EC_VOLUME_GROWS;
    return w->storage == STORAGE_EXPANDS ? EC_VOLUME_SMALL : EC_VOLUME_FIXED;
}

static void view_pod(const struct model *w, const struct slot *s, struct ec_member *m)
{
    static const enum ec_pod pods[] = {[WP_ABSENT] = EC_POD_ABSENT,
                                       [WP_STARTING] = EC_POD_STARTING,
                                       [WP_RUNNING] = EC_POD_RUNNING,
                                       [WP_GOING] = EC_POD_GOING,
                                       [WP_ENDED] = EC_POD_ENDED};
    const struct slot *seen = pod_seen(w, s);
    bool lost = model_data_lost(w, s);
    m->pod = pods[seen->pod];
    m->pod_ready = model_healthy(w, s);
    m->pod_guarded = seen->guarded;
    m->pod_forced = seen->forced;
    m->pod_trimmed = seen->trimmed;
    m->pod_template = m->pod != EC_POD_ABSENT && seen->template == w->template;
    m->pod_version = m->pod != EC_POD_ABSENT ? versions[seen->version] : (struct stw_semver){0};
    if (m->pod == EC_POD_STARTING && seen->template == TEMPLATE_NO_IMAGE)
        m->trouble = EC_TROUBLE_IMAGE;
    else if (m->pod == EC_POD_RUNNING && !seen->up)
        m->trouble = EC_TROUBLE_CRASH;
    m->claim = seen->claim;
    m->volume = s->listed ? view_volume(w, seen) : EC_VOLUME_FINE;
    bool there = w->durable ? m->claim : m->pod != EC_POD_ABSENT;
    m->data = lost ? EC_DATA_LOST : there ? EC_DATA_THERE : EC_DATA_NONE;
}

static void view_etcd(const struct model *w, const struct slot *s, struct ec_member *m)
{
    bool reached = s->up && s->cut == CUT_NOT && s->defrag == WD_NOT;
    m->listed = s->listed;
    m->id = s->listed ? (uint64_t)(s - w->slots) + 1 : 0;
    m->learner = s->learner;
    m->started = s->started;
    m->promoted = s->voted;
    m->answers = reached;
    m->healthy = model_seen_healthy(w, s) || (s->learner && reached && model_serves(w));
    m->leader = s->leader && reached;
    m->lagging = s->learner && !s->fresh;
    m->cluster_id = reached ? 7 : 0;
    m->version = s->ran ? versions[s->ran - 1] : (struct stw_semver){0};
    m->to_defragment = w->pass && s->free_pages;
    m->unhealthy_since = m->healthy || !s->listed ? 0 : NOW - (s->long_down ? UNHEALTHY : 1);
    bool young = s->learner ? !s->long_down : s->pod == WP_STARTING;
    m->created = NOW - (young ? 1 : DEADLINE);
}

static void set_name(char out[EC_NAME_MAX], const char *name)
{
    memcpy(out, name, sizeof("ec-bbbbbbbbbb"));
}

static void view_status(const struct model *w, struct ec_view *v)
{
    struct stw_semver lowest = {0};
    v->cluster_id = w->latched ? 7 : 0;
    v->force_step = w->force_step;
    v->action.kind = w->action;
    v->action.start = w->overdue ? NOW - DEADLINE : NOW - 1;
    v->quorum_lost_since = w->quorum_lost ? NOW - EC_QUORUM_GRACE_S : 0;
    each_const(s, w)
    {
        const char *name = model_names[s - w->slots];
        if (s->action)
            set_name(v->action.member, name);
        if (s->force)
            set_name(v->force_member, name);
        if (s->named)
            v->force = name;
        if (model_voter(s) && s->ran &&
            (!stw_semver_known(lowest) || stw_semver_compare(versions[s->ran - 1], lowest) < 0))
            lowest = versions[s->ran - 1];
    }
    v->current = lowest;
    v->cluster_version = lowest;
}

void model_view(const struct model *w, struct ec_view *v)
{
    memset(v, 0, offsetof(struct ec_view, members));
    v->size = w->size;
    v->version = versions[w->version];
    v->durable = w->durable;
    v->failover = w->failover;
    v->unhealthy_s = UNHEALTHY;
    v->deadline_s = DEADLINE;
    v->max_per_hour = 10;
    v->keep_scaled = w->keep_scaled;
    v->replace_volumes = w->storage == STORAGE_REPLACES;
    v->now = NOW;
    v->listed = model_list_known(w);
    v->upkeep.due = w->asked ? EC_WHY_REQUEST : EC_WHY_NOT;
    v->upkeep.open = w->pass ? EC_WHY_REQUEST : EC_WHY_NOT;
    v->upkeep.limit_s = DEADLINE;
    v->fresh[0] = '\0';
    v->name_used = false;
    view_status(w, v);
    each_const(s, w)
    {
        const char *name = model_names[s - w->slots];
        if (model_blank(s)) {
            set_name(v->fresh, name);
            continue;
        }
        if (!s->listed && s->pod == WP_ABSENT && !s->claim && !s->lagging_view)
            continue;
        struct ec_member *m = &v->members[v->count++];
        memset(m, 0, sizeof(*m));
        set_name(m->name, name);
        view_etcd(w, s, m);
        view_pod(w, s, m);
    }
}

void model_plan(const struct model *w, struct ec_move *ret)
{
    struct ec_view v;
    model_view(w, &v);
    ec_plan(&v, ret);
}

/* --- outcomes */

bool model_can_recover(const struct model *w)
{
    unsigned there = 0;
    each_const(s, w) there += model_voter(s) && s->data && (w->durable || s->pod != WP_GOING);
    return !w->latched || there >= model_quorum(w);
}

static bool has_volume(const struct model *w, const struct slot *s)
{
    return !w->durable || w->storage == STORAGE_SMALL || s->volume == WV_LARGE;
}

bool model_at_goal(const struct model *w)
{
    unsigned good = 0;
    each_const(s, w)
    {
        if (s->listed ? s->learner : s->pod != WP_ABSENT || (s->claim && !w->keep_scaled))
            return false;
        good += model_healthy(w, s) && s->guarded && !s->forced && !s->trimmed &&
                s->template == w->template && s->version == w->version &&
                s->ran == s->version + 1U && has_volume(w, s);
    }
    return good == w->size && model_count_voters(w, false, false) == w->size &&
           w->action == EC_IDLE && w->force_step == EC_FORCE_NOT && !w->asked && !w->pass;
}

bool model_demoted(const struct model *w)
{
    each_const(s, w) if (s->listed && s->learner && s->voted) return true;
    return false;
}

bool model_cramped(const struct model *w)
{
    each_const(s, w) if (model_blank(s)) return false;
    return true;
}

bool model_frozen_by_spec(const struct model *w)
{
    struct ec_move move;
    model_plan(w, &move);
    return move.act == EC_FREEZE && strcmp(move.reason, "InvalidSpec") == 0;
}

/* --- names and texts */

static int compare(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? 1 : x > y ? -1 : 0;
}

void model_canonical(struct model *w)
{
    for (size_t i = 1; i < MODEL_SLOTS; i++) { /* usually nearly sorted */
        struct slot s = w->slots[i];
        size_t at = i;
        for (; at > 0 && compare(&w->slots[at - 1], &s) > 0; at--)
            w->slots[at] = w->slots[at - 1];
        w->slots[at] = s;
    }
}

static void slot_text(const struct model *w, const struct slot *s, char *out, size_t size)
{
    static const char pods[] = "-sRGE";
    static const char *const volumes[] = {"", " grows", " large"};
    (void)snprintf(
        out, size, "  %c %s%s%s pod=%c%s%s%s%s%s%s t%u v%u ran%u%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s\n",
        model_names[s - w->slots][3], s->listed ? "listed" : "", s->learner ? " learner" : "",
        s->started ? " started" : "", pods[s->pod], s->up ? " up" : "", s->seed ? " seed" : "",
        s->forced ? " forced" : "", s->guarded ? " guarded" : "", s->trimmed ? " trimmed" : "",
        s->old_log ? " old-log" : "", s->template, s->version, s->ran, s->claim ? " claim" : "",
        volumes[s->volume], s->data ? " data" : "", s->fresh ? " fresh" : "",
        s->cut == CUT_OFF            ? " CUT"
        : s->cut == CUT_FROM_STEWARD ? " HIDDEN"
                                     : "",
        s->long_down ? " long-down" : "", s->leader ? " leader" : "", s->action ? " action" : "",
        s->force ? " force" : "", s->named ? " named" : "", s->lagging_view ? " lag" : "",
        s->late ? " late" : "", s->strange ? " strange" : "",
        s->defrag == WD_BUSY       ? " BUSY"
        : s->defrag == WD_GIVEN_UP ? " GIVEN-UP"
                                   : "",
        s->free_pages ? " free-pages" : "", model_healthy(w, s) ? " HEALTHY" : "");
}

void model_text(const struct model *w, char *out, size_t size)
{
    size_t at = 0;
    int n = snprintf(out, size,
                     "  latched %u size %u template %u version %u storage %u action %s(%u)%s%s%s "
                     "force %u%s serves %d\n",
                     w->latched, w->size, w->template, w->version, w->storage,
                     ec_kind_names[w->action], w->action, w->overdue ? " overdue" : "",
                     w->asked ? " asked" : "", w->pass ? " pass" : "", w->force_step,
                     w->quorum_lost ? " quorum-lost" : "", model_serves(w));
    at = (size_t)n < size ? (size_t)n : size;
    each_const(s, w)
    {
        if (model_blank(s))
            continue;
        slot_text(w, s, out + at, size - at);
        at += strlen(out + at);
    }
}
