/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose turn it is to be defragmented, so that no two clusters with members on one node are at the same
 * time: a defragmentation reads and writes a whole database, which slows down what else is on that disk.
 *
 * In memory, because only one process leads.  A new leader first adopts the turns of what its
 * predecessor left under way (ec_turns_hold).
 *
 * Fair between namespaces: of those that wait for a node, the one whose namespace had its turn longest
 * ago comes first, then the one that waits longest.  A turn ends after its time in any case,
 * so that a member which never answers delays others for that time only. */
#ifndef STW_KINDS_ETCDCLUSTER_TURN_H
#define STW_KINDS_ETCDCLUSTER_TURN_H

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EC_TURN_NODES 24
#define EC_TURN_STALE_MS                                                                           \
    60000 /* one that has not asked again for that long does not wait any more */

struct ec_turns; /* calls may come from any thread */

struct ec_turn {
    const char *ns, *cluster; /* cluster: "namespace/name" */
    const char *nodes[EC_TURN_NODES];
    size_t count;
    int64_t since;    /* since when it waits, in seconds since the epoch */
    uint64_t now_ms;  /* monotonic */
    uint64_t time_ms; /* for how long it takes the turn at most */
};

struct ec_turns *ec_turns_create(void) STW_MUST_CHECK; /* NULL: out of memory */
void ec_turns_destroy(struct ec_turns *t);             /* NULL is allowed */

/* True: it is its turn on all its nodes, from now on.  False: it waits, and asks again. */
bool ec_turns_take(struct ec_turns *t, const struct ec_turn *turn);
/* Takes the turn without waiting, for a defragmentation that is under way already. */
void ec_turns_hold(struct ec_turns *t, const struct ec_turn *turn);
/* Ends its turn.  If it waits for another one, it goes on waiting while it asks. */
void ec_turns_end(struct ec_turns *t, const char *cluster);
/* True once for each term of the leader: what is under way must be adopted now. */
bool ec_turns_new_term(struct ec_turns *t, uint64_t term);
size_t ec_turns_size(struct ec_turns *t); /* nodes that are kept */

#endif
