/* SPDX-License-Identifier: Apache-2.0
 *
 * A work queue of keys, as client-go's: a key waits once however often it is added, is never given
 * to two workers at once, and one added while it is worked on comes again afterwards.  Failures
 * back off for each key: 5 ms, doubled, to 16 minutes, with up to 20 % jitter.  Edits of people
 * (priority 0) go before resyncs (priority -1).  Of one priority the namespaces take turns, so that a
 * tenant with 10,000 objects does not hold up the others; within a namespace it is first come, first
 * served.
 *
 * A key has at most one delay, the earliest that was asked for; it ends when the key is handed out,
 * because whoever works on it then says anew when it wants to see it again. */
#ifndef STW_CONTROLLER_QUEUE_H
#define STW_CONTROLLER_QUEUE_H

#include "base/clock.h"
#include "base/metrics.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_queue;

#define STW_QUEUE_BACKOFF_MIN_MS 5
#define STW_QUEUE_BACKOFF_MAX_MS (16u * 60 * 1000)

/* NULL: no memory.  `name` labels the metrics; `metrics` may be NULL. */
struct stw_queue *stw_queue_create(const char *name, const struct stw_clock *clock,
                                   struct stw_metrics *metrics);
void stw_queue_destroy(struct stw_queue *q);

int stw_queue_add(struct stw_queue *q, const char *key, int priority); /* -1: no memory */
int stw_queue_add_after(struct stw_queue *q, const char *key, uint64_t delay_ms);
/* After a failure: waits the key's backoff, at least `min_ms` (a Retry-After). */
int stw_queue_add_backoff(struct stw_queue *q, const char *key, uint64_t min_ms);
/* After a failure whose wait the caller has worked out: counts it and waits that long. */
int stw_queue_add_failed(struct stw_queue *q, const char *key, uint64_t delay_ms);
void stw_queue_forget(struct stw_queue *q, const char *key); /* success: backoff starts anew */
/* The key's next wait, in ms; how often it failed in a row goes to ret_failures (may be NULL). */
uint64_t stw_queue_backoff_ms(struct stw_queue *q, const char *key, uint32_t *ret_failures);
/* Of a key that is worked on: an event brought it before its next try after a failure was due,
 * which is so far away; 0: not so.  If it fails, that is not counted as one more failure. */
uint64_t stw_queue_left_ms(struct stw_queue *q, const char *key);
bool stw_queue_is_working(struct stw_queue *q, const char *key);
/* first_ms * 2^failures, at most max_ms, give or take 20 %: jitter is told from key and failures,
 * so asking twice gives the same answer. */
uint64_t stw_backoff_ms(const char *key, uint32_t failures, uint64_t first_ms, uint64_t max_ms);

/* Blocks for the next key (the caller frees it); NULL once the queue is shut. */
char *stw_queue_get(struct stw_queue *q);
/* The same without blocking: NULL when nothing is due. */
char *stw_queue_try(struct stw_queue *q);
void stw_queue_done(struct stw_queue *q, const char *key);
/* get() answers NULL to all; what waits stays, open() goes on with it. */
void stw_queue_shut(struct stw_queue *q);
void stw_queue_open(struct stw_queue *q);
/* Waits until nobody works on a key any more; false when that took longer than `timeout_ms`. */
bool stw_queue_drain(struct stw_queue *q, uint64_t timeout_ms);
uint32_t stw_queue_depth(const struct stw_queue *q); /* keys that are ready; not those delayed */
/* Milliseconds that the longest-running piece of work has taken so far; 0 when there is none. */
uint64_t stw_queue_longest_ms(struct stw_queue *q);
/* Sets the gauges that change without anything happening; before each scrape. */
void stw_queue_measure(struct stw_queue *q);

#endif
