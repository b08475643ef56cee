/* SPDX-License-Identifier: Apache-2.0
 *
 * The right to write.  It is a deadline on CLOCK_BOOTTIME, which keeps counting while the process
 * or the machine is suspended.  It is checked before every write: each SQL statement, each call to
 * etcd or a store, each request to the API server that changes something.
 *
 * A ticket is the right of one term.  A run takes a ticket before it reads anything and enters it:
 * from then on the thread may write only during this term.  A term that is lost and regained is a
 * new term, so data read before the loss is never the basis of a write after it.  A thread that has
 * entered no ticket (the command line, admission, the election itself) is not restricted. */
#ifndef STW_BASE_FENCE_H
#define STW_BASE_FENCE_H

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

#define STW_FENCE_FOREVER UINT64_MAX /* the deadline without an election */
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

/* Closed; NULL: no memory. */
struct stw_fence *stw_fence_create(const struct stw_clock *clock) STW_MUST_CHECK;
void stw_fence_destroy(struct stw_fence *f); /* NULL is allowed */

/* A new term, until `deadline_ms` of stw_boot_ms. */
void stw_fence_open(struct stw_fence *f, uint64_t deadline_ms, const struct stw_fence_epoch *epoch);
/* Extends the current term. */
void stw_fence_extend(struct stw_fence *f, uint64_t deadline_ms);
/* Ends the term. */
void stw_fence_close(struct stw_fence *f);

/* For a process that writes nothing (kube/owned/shadow.h): from now on stw_fence_check fails under each
 * ticket, so that nothing is sent to databases, etcd and stores, not even a read. */
void stw_fence_set_shadow(struct stw_fence *f);

/* A ticket of the current term; useless when the fence is closed. */
struct stw_fence_ticket stw_fence_take(struct stw_fence *f);
bool stw_fence_allows(struct stw_fence_ticket t);

/* Binds this thread to a ticket.  Returns the previous ticket, to be restored with
 * stw_fence_enter. */
struct stw_fence_ticket stw_fence_enter(struct stw_fence_ticket t);
struct stw_fence_ticket stw_fence_current(void);
/* Whether this thread may write; stw_fence_check returns -1 with STW_ERR_CANCELLED if not. */
bool stw_fence_may_write(void);
int stw_fence_check(struct stw_error *err) STW_MUST_CHECK;
/* Whether stw_fence_check has failed in shadow mode since this thread entered its ticket: what it
 * does from then on is based on an answer that it did not get. */
bool stw_fence_was_refused(void);
/* The epoch of the ticket that this thread has entered.  False: no ticket, and `ret` is zero. */
bool stw_fence_epoch(struct stw_fence_epoch *ret);

#endif
