/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the parts of the world. */
#ifndef STW_TESTS_KINDS_ETCDCLUSTER_WORLD_PRIV_H
#define STW_TESTS_KINDS_ETCDCLUSTER_WORLD_PRIV_H

#include "world.h"

#include <string.h>

#define NOW 1000000
#define DEADLINE 600
#define UNHEALTHY 300

#define each_slot(s, w) for (struct slot *s = (w)->slots; s < (w)->slots + WORLD_SLOTS; s++)
#define each_const(s, w) for (const struct slot *s = (w)->slots; s < (w)->slots + WORLD_SLOTS; s++)

extern const char *const world_names[WORLD_SLOTS];

/* Inline: the search asks these a billion times. */

/* Nothing is set, so nothing can happen to it. */
static inline bool world_empty(const struct slot *s)
{
    static const struct slot nothing;
    return memcmp(s, &nothing, sizeof(nothing)) == 0;
}

static inline bool world_blank(const struct slot *s)
{
    return !s->listed && s->pod == WP_ABSENT && !s->claim && !s->action && !s->force && !s->named &&
           !s->lagging_view && !s->late;
}

static inline bool world_voter(const struct slot *s)
{
    return s->listed && !s->learner;
}

static inline bool world_connected(const struct slot *s)
{
    return s->up && s->cut != CUT_OFF && s->defrag == WD_NOT;
}

unsigned world_count_voters(const struct world *w, bool fresh_only, bool connected_only);
unsigned world_quorum(const struct world *w);
/* The actual state, whether steward sees it or not. */
bool world_healthy(const struct world *w, const struct slot *s);
unsigned world_count_healthy(const struct world *w, const struct slot *but);
unsigned world_count_staying(const struct world *w, const struct slot *but);
bool world_seen_healthy(const struct world *w, const struct slot *s);
bool world_list_known(const struct world *w);
bool world_data_lost(const struct world *w, const struct slot *s);
bool world_same_pod(const struct slot *a, const struct slot *b);
bool world_same_claim(const struct slot *a, const struct slot *b);

/* steward makes one move, or only writes its intent, or never receives the result.  NULL, or the
 * rule that it broke. */
enum world_luck { LUCK_GOOD, LUCK_CRASH, LUCK_LOST };
const char *world_steward(struct world *w, enum world_luck luck);
/* Whether steward's next move is a call to etcd. */
bool world_asks_etcd(const struct world *w);
const char *world_late(struct world *w);
void world_too_late(struct world *w);

#endif
