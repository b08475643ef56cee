/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for runs over large objects, from the share of the reconciles (base/process/memory_budget.h).  A run
 * states what it needs before it takes it.  What does not fit now waits: the worker goes on with other
 * keys, and the key is enqueued again when its memory is reserved.  So a large object holds up no small
 * one.  Those of a namespace wait in the order of their requests, and the namespaces take turns: a smaller
 * one does not overtake the first of them.
 *
 * A run may keep its memory for as long as a server makes it wait.  So the runs of one namespace have at
 * most three quarters of the share beside each other, and what is left goes at once to one of another
 * namespace that needs no more than a quarter.  Any thread. */
#ifndef STW_CONTROLLER_RESERVATION_H
#define STW_CONTROLLER_RESERVATION_H

#include "base/util.h"

#include <stddef.h>

struct stw_reservations;

/* `ready` is called without a lock for each id whose memory has been reserved.  NULL: no memory. */
struct stw_reservations *stw_reservations_create(void (*ready)(void *ctx, const char *id),
                                                 void *ctx) STW_MUST_CHECK;
void stw_reservations_destroy(struct stw_reservations *r); /* NULL is allowed */

enum stw_reserve {
    STW_RESERVED,
    STW_RESERVE_WAITS,     /* `ready` follows */
    STW_RESERVE_TOO_LARGE, /* for the whole share */
    STW_RESERVE_NO_MEMORY,
};
/* `id` names the object, "KIND NAMESPACE/NAME".  It has at most one reservation; asking for more than it has gives that back
 * and waits again. */
enum stw_reserve stw_reservations_take(struct stw_reservations *r, const char *id, size_t bytes);
/* What it has; 0: nothing, or it waits. */
size_t stw_reservations_granted(struct stw_reservations *r, const char *id);
/* The run of `id` has ended: gives back what is reserved.  What waits goes on waiting. */
void stw_reservations_end(struct stw_reservations *r, const char *id);
size_t stw_reservations_waiting(struct stw_reservations *r);

#endif
