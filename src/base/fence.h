/* SPDX-License-Identifier: Apache-2.0
 *
 * The right to write.  It is a deadline on CLOCK_BOOTTIME, which goes on while the process or the
 * machine is suspended, and it is checked before every write: each SQL statement, each call to an
 * etcd or a store, each request to the API server that changes something.
 *
 * A ticket is the right of one term.  A run takes a ticket before it reads anything and enters it:
 * from then on the thread may write only while this very term lasts.  A term that was lost and
 * gained again is another one, so that what was read before the loss is never written after it.
 * A thread that has entered no ticket (the command line, admission, the election itself) is not
 * restricted. */
#ifndef STW_BASE_FENCE_H
#define STW_BASE_FENCE_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define STW_FENCE_FOREVER UINT64_MAX /* a deadline: without an election */
#define STW_FENCE_NAME_MAX 512
#define STW_FENCE_HOLDER_MAX 320

/* Which leader this is, for servers that keep sessions. */
struct stw_fence_epoch {
    char lease[STW_FENCE_NAME_MAX];    /* "namespace/name" of the Lease; "" without an election */
    char holder[STW_FENCE_HOLDER_MAX]; /* holderIdentity */
    int64_t number;                    /* leaseTransitions: grows with each change of the holder */
};

struct stw_fence;

struct stw_fence_ticket {
    struct stw_fence *fence; /* NULL: not restricted */
    uint64_t term;
};

struct stw_fence *stw_fence_create(const struct stw_clock *clock); /* closed; NULL: no memory */
void stw_fence_destroy(struct stw_fence *f);                       /* NULL is fine */

/* A new term, until `deadline_ms` of stw_boot_ms. */
void stw_fence_open(struct stw_fence *f, uint64_t deadline_ms, const struct stw_fence_epoch *epoch);
/* The same term lasts longer. */
void stw_fence_extend(struct stw_fence *f, uint64_t deadline_ms);
/* Ends the term. */
void stw_fence_close(struct stw_fence *f);

/* A ticket of the present term; useless when the fence is closed. */
struct stw_fence_ticket stw_fence_take(struct stw_fence *f);
bool stw_fence_allows(struct stw_fence_ticket t);

/* Binds this thread to a ticket; returns the one that it was bound to before, for stw_fence_enter
 * again. */
struct stw_fence_ticket stw_fence_enter(struct stw_fence_ticket t);
struct stw_fence_ticket stw_fence_current(void);
/* Of this thread: may it write?  -1 with STW_ERR_CANCELLED. */
bool stw_fence_may_write(void);
int stw_fence_check(struct stw_error *err) __attribute__((warn_unused_result));
/* The epoch of the ticket that this thread has entered.  False: there is none, and `ret` is zero.
 */
bool stw_fence_epoch(struct stw_fence_epoch *ret);

#endif
