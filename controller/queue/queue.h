/* SPDX-License-Identifier: Apache-2.0
 *
 * A work queue of keys, like client-go's.  A key waits once however often it is added, and is never
 * given to two workers at once.  A key that is added while a worker has it is queued again
 * afterwards.  Failures back off for each key: 5 ms, doubled up to 16 minutes, with up to 20 %
 * jitter.  Users' edits (priority 0) are handed out before resyncs (priority -1).  Within a
 * priority the namespaces take turns, so that a tenant with 10,000 objects does not delay the
 * others; within a namespace the order is first in, first out.
 *
 * A key has at most one delay, the earliest that was requested.  The delay ends when the key is
 * handed out, because the worker then sets a new one. */
#ifndef STW_CONTROLLER_QUEUE_H
#define STW_CONTROLLER_QUEUE_H

#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_queue;

#define STW_QUEUE_BACKOFF_MIN_MS 5
#define STW_QUEUE_BACKOFF_MAX_MS (16u * 60 * 1000)

/* NULL: no memory.  `name` labels the metrics; `metrics` may be NULL. */
struct stw_queue *stw_queue_create(const char *name, const struct stw_clock *clock,
                                   struct stw_metrics *metrics) STW_MUST_CHECK;
void stw_queue_destroy(struct stw_queue *q);

int stw_queue_add(struct stw_queue *q, const char *key, int priority); /* -1: no memory */
int stw_queue_add_after(struct stw_queue *q, const char *key, uint64_t delay_ms);
/* After a failure: waits for the key's backoff, at least `min_ms` (a Retry-After). */
int stw_queue_add_backoff(struct stw_queue *q, const char *key, uint64_t min_ms);
/* After a failure for which the caller computed the wait: counts it and waits `delay_ms`. */
int stw_queue_add_failed(struct stw_queue *q, const char *key, uint64_t delay_ms);
void stw_queue_forget(struct stw_queue *q, const char *key); /* success: resets the backoff */
/* The key's next backoff in ms.  ret_failures (may be NULL) gets the number of consecutive
 * failures. */
uint64_t stw_queue_backoff_ms(struct stw_queue *q, const char *key, uint32_t *ret_failures);
/* For a key that a worker has: if an event started the run before the retry after a failure was
 * due, the ms until then; else 0.  If such a run fails, it is not counted as one more failure. */
uint64_t stw_queue_left_ms(struct stw_queue *q, const char *key);
/* For a key that a worker has: the ms for which it was ready before. */
uint64_t stw_queue_waited_ms(struct stw_queue *q, const char *key);
/* The ms until the key is ready again; 0: it is ready or being worked on.  -1: no run is planned, so
 * only an event or a resync runs it. */
int64_t stw_queue_due_ms(struct stw_queue *q, const char *key);
bool stw_queue_is_working(struct stw_queue *q, const char *key);
/* Blocks until a key is ready; the caller frees it.  NULL once the queue is shut. */
char *stw_queue_get(struct stw_queue *q);
/* The clock was moved: what is due by it is taken now. */
void stw_queue_clock_moved(struct stw_queue *q);
/* The same without blocking: NULL when nothing is due. */
char *stw_queue_try(struct stw_queue *q);
void stw_queue_done(struct stw_queue *q, const char *key);
/* While the queue is shut, get() returns NULL.  Waiting keys stay queued until open(). */
void stw_queue_shut(struct stw_queue *q);
void stw_queue_open(struct stw_queue *q);
/* Waits until no worker has a key any more; false when that took longer than `timeout_ms`. */
bool stw_queue_drain(struct stw_queue *q, uint64_t timeout_ms);
uint32_t stw_queue_depth(const struct stw_queue *q); /* keys that are ready, without delayed ones */
/* The ms that the longest-running work has taken so far; 0 when there is none. */
uint64_t stw_queue_longest_ms(struct stw_queue *q);
/* The state of a queue, for people. */
struct stw_queue_facts {
    uint32_t ready, delayed, working;
    uint32_t failing; /* keys whose last run failed */
    uint64_t oldest_ms, longest_ms,
        next_due_ms; /* ready for; running for; until the next delayed */
};
/* `each` (or NULL) is called for each key that a worker has, under the queue's lock. */
void stw_queue_facts(struct stw_queue *q, struct stw_queue_facts *ret,
                     void (*each)(void *ctx, const char *key, uint64_t ms), void *ctx);
/* Sets the gauges that change with time alone.  Call before each scrape. */
void stw_queue_measure(struct stw_queue *q);

#endif
