/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks through all states that the plan of an EtcdCluster can reach with a limited number of
 * faults and of changes by users.  After every step the rules hold.  From every state, when the
 * faults are over, steward brings the cluster to what the spec wants, if a quorum of its data is
 * left.
 *
 *   test_controller_etcdcluster_plan_model           seconds
 *   STEWARD_MODEL=full ...                           a minute, and one fault more
 *   STEWARD_MODEL=3,d,s,2,1 ...                      only this: members, d(urable) or e(mptyDir),
 *                                                    s(ettled) or n(ew), faults, changes */
#include "model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/world_set.h"

#define PATIENCE 300 /* limit of steward's moves on the way to an end */

/* --- states by 64 bits of their hash */

static uint64_t hash(const struct model *w)
{
    uint64_t words[sizeof(*w) / 8], h = 0x9e3779b97f4a7c15U;
    memcpy(words, w, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        h = (h ^ words[i]) * 0xff51afd7ed558ccdU;
        h ^= h >> 32;
    }
    h *= 0xc4ceb9fe1a85ec53U;
    h ^= h >> 29;
    return h ? h : 1;
}

/* --- the search: breadth first, so that a fault is found by the shortest path */

struct node {
    struct model w;
    uint32_t from;
    struct event by;
};

struct search {
    struct set seen, good;
    struct node *nodes;
    size_t count, room;
    size_t steps;
    unsigned faults;
};

static void tell_way(const struct search *s, size_t at)
{
    size_t way[512], n = 0;
    char text[4096];
    for (; at != 0 && n < 512; at = s->nodes[at].from)
        way[n++] = at;
    while (n-- > 0) {
        const struct node *node = &s->nodes[way[n]];
        model_event_text(&s->nodes[node->from].w, node->by, text, sizeof(text));
        print_message("%s\n", text);
        model_text(&node->w, text, sizeof(text));
        print_message("%s", text);
    }
}

static void found(const struct search *s, size_t at, const char *broken)
{
    tell_way(s, at);
    fail_msg("%s", broken);
}

static void remember(struct search *s, const struct model *w, size_t from, struct event by)
{
    if (!set_add(&s->seen, hash(w)))
        return;
    if (s->count == s->room) {
        s->room = s->room ? s->room * 2 : 1024;
        struct node *nodes = realloc(s->nodes, s->room * sizeof(*nodes));
        assert_non_null(nodes);
        s->nodes = nodes;
    }
    s->nodes[s->count++] = (struct node){.w = *w, .from = (uint32_t)from, .by = by};
}

/* --- from here on, nothing else goes wrong */

static bool bad_template(const struct model *w)
{
    return w->template >= TEMPLATE_CRASHES;
}

/* NULL: the final state is right. */
static const char *judge(const struct model *w, bool hope, bool hurt)
{
    struct ec_move move;
    model_plan(w, &move);
    if (!hope)
        return model_at_goal(w) || move.act == EC_FREEZE || bad_template(w)
                   ? NULL
                   : "no quorum of data is left, and nobody is told";
    if (bad_template(w))
        return model_serves(w) || !w->latched || hurt ? NULL : "a bad template took the quorum";
    if (w->force_step != EC_FORCE_NOT && move.act == EC_FREEZE)
        return NULL; /* the survivor that a person named has lost its data since */
    if (model_demoted(w))
        return move.act == EC_FREEZE ? NULL : "members are forgotten voters, and nobody is told";
    if (model_frozen_by_spec(w))
        return model_serves(w) ? NULL : "a refused version took the quorum";
    return model_at_goal(w) || model_cramped(w) ? NULL : "stuck: the goal is not reached";
}

static bool one_move(struct model *w, const char **broken)
{
    static const struct event steward = {EV_STEWARD, 0};
    struct ec_move move;
    model_plan(w, &move);
    if (move.act == EC_WAIT || move.act == EC_FREEZE)
        return false;
    *broken = model_apply(w, steward);
    return true;
}

static bool let_time_pass(struct model *w, const char **broken)
{
    for (struct event e = {EV_TIME, 0}; e.kind <= EV_LONG_TIME; e.kind++) {
        struct model before = *w;
        *broken = model_apply(w, e);
        if (memcmp(&before, w, sizeof(before)) != 0)
            return true;
    }
    return false;
}

static void tell_run(const struct model *w)
{
    char text[4096];
    model_event_text(w, (struct event){EV_STEWARD, 0}, text, sizeof(text));
    print_message("> %s\n", text);
    model_text(w, text, sizeof(text));
    print_message("%s", text);
}

struct run {
    uint64_t way[PATIENCE];
    size_t length;
};

/* The outcome of states that were visited before is known; a cycle has no end. */
enum where { SOMEWHERE_NEW, KNOWN, IN_A_RING };

static enum where look_around(struct search *s, struct run *run, const struct model *w)
{
    uint64_t h = hash(w);
    if (set_has(&s->good, h))
        return KNOWN;
    for (size_t i = 0; i < run->length; i++)
        if (run->way[i] == h)
            return IN_A_RING;
    run->way[run->length++] = h;
    return SOMEWHERE_NEW;
}

static const char *lives(struct search *s, const struct model *from, bool loud)
{
    struct model w = *from;
    struct run run = {.length = 0};
    const char *broken = NULL;
    w.faults = w.users = 0;
    model_heal(&w);
    bool hope = model_can_recover(&w), moved = true;
    enum where where = SOMEWHERE_NEW;
    while (moved && !broken && run.length < PATIENCE) {
        model_flow(&w, &broken);
        model_canonical(&w);
        where = look_around(s, &run, &w);
        if (where != SOMEWHERE_NEW || broken)
            break;
        if (loud)
            tell_run(&w);
        moved = one_move(&w, &broken) || (!broken && let_time_pass(&w, &broken));
        s->steps++;
    }
    if (!broken && (where == IN_A_RING || run.length == PATIENCE) && !bad_template(&w))
        broken = "livelock: it never comes to rest";
    if (!broken && where != KNOWN)
        broken = judge(&w, hope, from->faults < s->faults);
    for (size_t i = 0; i < run.length && !broken; i++)
        set_add(&s->good, run.way[i]);
    return broken;
}

static void expand(struct search *s, size_t at)
{
    struct event e = {0, 0};
    for (bool first = true; model_next(&s->nodes[at].w, &e, first); first = false) {
        struct model w = s->nodes[at].w;
        const char *broken = model_apply(&w, e);
        model_canonical(&w);
        size_t before = s->count;
        remember(s, &w, at, e);
        if (broken)
            found(s, s->count > before ? before : at, broken);
        s->steps++;
    }
}

static void check_life(struct search *s, size_t at)
{
    const char *broken = lives(s, &s->nodes[at].w, false);
    if (!broken)
        return;
    tell_way(s, at);
    print_message("--- without further faults:\n");
    (void)lives(s, &s->nodes[at].w, true);
    fail_msg("%s", broken);
}

struct scenario {
    unsigned size;
    bool durable, settled;
    unsigned faults, users;
};

static size_t walk(const struct scenario *c)
{
    struct search s = {.faults = c->faults};
    struct model w = {0};
    set_init(&s.seen);
    set_init(&s.good);
    model_new(&w, c->size, c->durable, c->settled);
    w.faults = c->faults & 7;
    w.users = c->users & 3;
    model_canonical(&w);
    remember(&s, &w, 0, (struct event){0, 0});
    for (size_t at = 0; at < s.count; at++) {
        check_life(&s, at);
        expand(&s, at);
    }
    print_message("%u members, %s, %s, %u faults, %u changes: %zu states, %zu steps\n", c->size,
                  c->durable ? "volumes" : "emptyDirs", c->settled ? "settled" : "new", c->faults,
                  c->users, s.count, s.steps);
    size_t count = s.count;
    free(s.nodes);
    free(s.seen.all);
    free(s.good.all);
    return count;
}

static const struct scenario quick[] = {
    {1, true, false, 1, 1}, {3, true, false, 1, 0},  {5, true, false, 0, 0}, {1, true, true, 1, 1},
    {2, true, true, 1, 1},  {3, true, true, 1, 1},   {4, true, true, 1, 0},  {5, true, true, 1, 1},
    {3, false, true, 1, 1}, {1, false, false, 1, 0}, {3, true, true, 0, 2},
};
static const struct scenario full[] = {
    {1, true, false, 2, 1}, {2, true, false, 1, 1}, {3, true, false, 1, 1},  {3, true, false, 2, 0},
    {5, true, false, 1, 0}, {1, true, true, 2, 1},  {2, true, true, 2, 1},   {3, true, true, 2, 1},
    {4, true, true, 2, 1},  {5, true, true, 1, 1},  {3, true, true, 3, 0},   {5, true, true, 3, 0},
    {3, true, true, 1, 2},  {3, false, true, 1, 1}, {1, false, false, 1, 1},
};

static bool wanted(struct scenario *ret)
{
    const char *text = getenv("STEWARD_MODEL");
    char medium, age;
    if (!text ||
        sscanf(text, "%u,%c,%c,%u,%u", &ret->size, &medium, &age, &ret->faults, &ret->users) != 5)
        return false;
    ret->durable = medium == 'd';
    ret->settled = age == 's';
    return true;
}

static void test_no_reachable_state_breaks_an_invariant(void **state)
{
    const char *mode = getenv("STEWARD_MODEL");
    bool all = mode && strcmp(mode, "full") == 0;
    const struct scenario *list = all ? full : quick;
    size_t count = all ? sizeof(full) / sizeof(full[0]) : sizeof(quick) / sizeof(quick[0]);
    struct scenario one;
    size_t total = 0;
    (void)state;
    if (wanted(&one)) {
        list = &one;
        count = 1;
    }
    for (size_t i = 0; i < count; i++)
        total += walk(&list[i]);
    print_message("%zu states in all\n", total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_reachable_state_breaks_an_invariant)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
