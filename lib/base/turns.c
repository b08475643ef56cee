/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of waiting entries for each group and lane, and rings of the groups that are in turn: the first
 * one hands out one entry and moves to the end. */
#include "base/turns.h"

#include "base/util.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 253

struct turn_list {
    struct stw_turn *first, *last;
};

#define NO_RING (-1)

/* With entries that are joined, whether they wait or not. */
struct stw_turns_group {
    struct stw_turns_group *prev[STW_TURNS_LANES], *next[STW_TURNS_LANES]; /* in its ring */
    int ring[STW_TURNS_LANES]; /* NO_RING: nothing waits, or it has as many places as it may */
    struct turn_list waiting[STW_TURNS_LANES];
    uint32_t members, held;
    char name[];
};

static const char *group_name(const void *group)
{
    return ((const struct stw_turns_group *)group)->name;
}

void stw_turns_init(struct stw_turns *t, uint32_t limit)
{
    *t = (struct stw_turns){.groups = STW_TABLE_INIT(group_name), .limit = limit};
}

void stw_turns_done(struct stw_turns *t)
{
    stw_table_release(&t->groups, free);
}

/* --- groups */

static struct stw_turns_group *find_or_add_group(struct stw_turns *t, const char *name)
{
    struct stw_turns_group *g = stw_table_get(&t->groups, name);
    size_t size = strlen(name) + 1;
    void *old;
    if (g || !(g = calloc(1, sizeof(*g) + size)))
        return g;
    memcpy(g->name, name, size);
    for (int lane = 0; lane < STW_TURNS_LANES; lane++)
        g->ring[lane] = NO_RING;
    if (stw_table_put(&t->groups, g, &old) == 0)
        return g;
    free(g);
    return NULL;
}

/* Those of a lane that hold no place have their turns before those that hold some. */
static int ring_of(const struct stw_turns *t, const struct stw_turns_group *g, int lane)
{
    bool full = t->limit > 0 && g->held >= t->limit;
    return !g->waiting[lane].first || full ? NO_RING : 2 * lane + (g->held > 0);
}

static void leave_ring(struct stw_turns *t, struct stw_turns_group *g, int lane)
{
    int ring = g->ring[lane];
    if (ring == NO_RING)
        return;
    if (g->prev[lane])
        g->prev[lane]->next[lane] = g->next[lane];
    else
        t->first[ring] = g->next[lane];
    if (g->next[lane])
        g->next[lane]->prev[lane] = g->prev[lane];
    else
        t->last[ring] = g->prev[lane];
    g->ring[lane] = NO_RING;
}

/* At the end of the ring in which it should be, if any. */
static void move_to_end(struct stw_turns *t, struct stw_turns_group *g, int lane)
{
    leave_ring(t, g, lane);
    int ring = ring_of(t, g, lane);
    g->ring[lane] = ring;
    if (ring == NO_RING)
        return;
    g->prev[lane] = t->last[ring];
    g->next[lane] = NULL;
    if (t->last[ring])
        t->last[ring]->next[lane] = g;
    else
        t->first[ring] = g;
    t->last[ring] = g;
}

static void update_rings(struct stw_turns *t, struct stw_turns_group *g)
{
    for (int lane = 0; lane < STW_TURNS_LANES; lane++)
        if (ring_of(t, g, lane) != g->ring[lane])
            move_to_end(t, g, lane);
}

/* --- entries */

int stw_turns_join(struct stw_turns *t, struct stw_turn *turn, const char *key)
{
    char name[NAME_MAX_LEN + 1] = "";
    const char *slash = strchr(key, '/');
    assert(!turn->group);
    if (slash && (size_t)(slash - key) < sizeof(name))
        memcpy(name, key, (size_t)(slash - key));
    turn->group = find_or_add_group(t, name);
    if (!turn->group)
        return -1;
    turn->group->members++;
    return 0;
}

void stw_turns_quit(struct stw_turns *t, struct stw_turn *turn)
{
    struct stw_turns_group *g = turn->group;
    if (!g)
        return;
    stw_turns_stop_waiting(t, turn);
    stw_turns_give_back(t, turn);
    turn->group = NULL;
    assert(g->members > 0);
    if (--g->members > 0)
        return;
    (void)stw_table_remove(&t->groups, g->name);
    free(g);
}

void stw_turns_wait(struct stw_turns *t, struct stw_turn *turn)
{
    struct stw_turns_group *g = turn->group;
    assert(g && !turn->waits && turn->lane < STW_TURNS_LANES);
    struct turn_list *list = &g->waiting[turn->lane];
    turn->prev = list->last;
    turn->next = NULL;
    if (list->last)
        list->last->next = turn;
    else
        list->first = turn;
    list->last = turn;
    turn->waits = true;
    t->waiting++;
    update_rings(t, g);
}

void stw_turns_stop_waiting(struct stw_turns *t, struct stw_turn *turn)
{
    if (!turn->waits)
        return;
    struct stw_turns_group *g = turn->group;
    struct turn_list *list = &g->waiting[turn->lane];
    if (turn->prev)
        turn->prev->next = turn->next;
    else
        list->first = turn->next;
    if (turn->next)
        turn->next->prev = turn->prev;
    else
        list->last = turn->prev;
    turn->prev = turn->next = NULL;
    turn->waits = false;
    t->waiting--;
    update_rings(t, g);
}

static struct stw_turn *first_from_ring(const struct stw_turns *t, int ring)
{
    for (; ring < STW_TURNS_RINGS; ring++)
        if (t->first[ring])
            return t->first[ring]->waiting[ring / 2].first;
    return NULL;
}

struct stw_turn *stw_turns_first(const struct stw_turns *t)
{
    return first_from_ring(t, 0);
}

struct stw_turn *stw_turns_after(const struct stw_turns *t, const struct stw_turn *turn)
{
    int lane = turn->lane;
    const struct stw_turns_group *g = turn->group, *next = g->next[lane];
    assert(g->ring[lane] != NO_RING);
    return next ? next->waiting[lane].first : first_from_ring(t, g->ring[lane] + 1);
}

void stw_turns_take(struct stw_turns *t, struct stw_turn *turn)
{
    struct stw_turns_group *g = turn->group;
    assert(turn->waits);
    stw_turns_stop_waiting(t, turn);
    stw_turns_hold(t, turn);
    move_to_end(t, g, turn->lane);
}

void stw_turns_hold(struct stw_turns *t, struct stw_turn *turn)
{
    assert(!turn->waits && !turn->holds);
    if (t->limit == 0)
        return;
    turn->holds = true;
    turn->group->held++;
    update_rings(t, turn->group);
}

void stw_turns_give_back(struct stw_turns *t, struct stw_turn *turn)
{
    if (!turn->holds)
        return;
    turn->holds = false;
    turn->group->held--;
    update_rings(t, turn->group);
}

uint32_t stw_turns_held(const struct stw_turn *turn)
{
    return turn->group->held;
}
