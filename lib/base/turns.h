/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of groups: the keys that wait, each of one group (a namespace).  The keys of a group wait in the
 * order in which they came; the groups take turns, so that one with many keys does not delay the others,
 * and those that hold no place yet have their turns first.
 * Adding, removing and taking a key take no more time when more keys wait.  Not thread-safe; the owner
 * locks.  The links are in the owner's entries, so that only join allocates memory. */
#ifndef STW_BASE_TURNS_H
#define STW_BASE_TURNS_H

#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>

#define STW_TURNS_LANES 2
#define STW_TURNS_RINGS                                                                            \
    (2 * STW_TURNS_LANES) /* of each lane: groups that hold no place, and others */
#define STW_TURNS_NO_LIMIT UINT32_MAX

/* A member of an owner's entry; zero-initialised, and then joined. */
struct stw_turn {
    struct stw_turn *prev, *next; /* of the same group and lane, while it waits */
    struct stw_turns_group *group;
    bool waits, holds;
    uint8_t lane; /* those of lane 0 have their turns before those of lane 1; not while it waits */
};

struct stw_turns {
    struct stw_table groups;
    struct stw_turns_group *first[STW_TURNS_RINGS], *last[STW_TURNS_RINGS]; /* those in turn */
    uint32_t waiting;
    uint32_t limit; /* of those of a group that hold a place; 0: places are not counted */
};

void stw_turns_init(struct stw_turns *t, uint32_t limit);
void stw_turns_done(struct stw_turns *t); /* does not free what is joined */
/* Makes it one of the group that its name begins with: up to the first '/', or the group "". -1: no memory. */
int stw_turns_join(struct stw_turns *t, struct stw_turn *turn, const char *key) STW_MUST_CHECK;
/* Ends all that it does; a second time is allowed. */
void stw_turns_quit(struct stw_turns *t, struct stw_turn *turn);

void stw_turns_wait(struct stw_turns *t, struct stw_turn *turn);
void stw_turns_stop_waiting(struct stw_turns *t, struct stw_turn *turn);
/* Whose turn it is, of the groups with fewer places than the limit; NULL: none. */
struct stw_turn *stw_turns_first(const struct stw_turns *t);
/* The first one of the group after this one's, in the order of the turns; NULL: none. */
struct stw_turn *stw_turns_after(const struct stw_turns *t, const struct stw_turn *turn);
/* It waits no more, holds a place, and its group has the last turn. */
void stw_turns_take(struct stw_turns *t, struct stw_turn *turn);
/* It holds a place without having waited.  Groups that hold none have their turns first. */
void stw_turns_hold(struct stw_turns *t, struct stw_turn *turn);
void stw_turns_give_back(struct stw_turns *t, struct stw_turn *turn);
/* How many places its group holds. */
uint32_t stw_turns_held(const struct stw_turn *turn);

#endif
