/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the parts of the model. */
#ifndef STW_TESTS_KINDS_ETCDCLUSTER_MODEL_PRIV_H
#define STW_TESTS_KINDS_ETCDCLUSTER_MODEL_PRIV_H

#include "model.h"

#include <string.h>

#define NOW 1000000
#define DEADLINE 600
#define UNHEALTHY 300

#define each_slot(s, w) for (struct slot *s = (w)->slots; s < (w)->slots + MODEL_SLOTS; s++)
#define each_const(s, w) for (const struct slot *s = (w)->slots; s < (w)->slots + MODEL_SLOTS; s++)

extern const char *const model_names[MODEL_SLOTS];

/* Inline: the search asks these a billion times. */

/* Nothing is set, so nothing can happen to it. */
static inline bool model_empty(const struct slot *s)
{
    static const struct slot nothing;
    return memcmp(s, &nothing, sizeof(nothing)) == 0;
}

static inline bool model_blank(const struct slot *s)
{
    return !s->listed && s->pod == WP_ABSENT && !s->claim && !s->action && !s->force && !s->named &&
           !s->lagging_view && !s->late;
}

static inline bool model_voter(const struct slot *s)
{
    return s->listed && !s->learner;
}

static inline bool model_connected(const struct slot *s)
{
    return s->up && s->cut != CUT_OFF && s->defrag == WD_NOT;
}

unsigned model_count_voters(const struct model *w, bool fresh_only, bool connected_only);
unsigned model_quorum(const struct model *w);
/* The actual state, whether steward sees it or not. */
bool model_healthy(const struct model *w, const struct slot *s);
unsigned model_count_healthy(const struct model *w, const struct slot *but);
unsigned model_count_staying(const struct model *w, const struct slot *but);
bool model_seen_healthy(const struct model *w, const struct slot *s);
bool model_list_known(const struct model *w);
bool model_data_lost(const struct model *w, const struct slot *s);
bool model_same_pod(const struct slot *a, const struct slot *b);
bool model_same_claim(const struct slot *a, const struct slot *b);

/* steward makes one move, or only writes its intent, or never receives the result.  NULL, or the
 * rule that it broke. */
enum model_luck { LUCK_GOOD, LUCK_CRASH, LUCK_LOST };
const char *model_steward(struct model *w, enum model_luck luck);
/* Whether steward's next move is a call to etcd. */
bool model_asks_etcd(const struct model *w);
const char *model_late(struct model *w);
void model_too_late(struct model *w);

#endif
