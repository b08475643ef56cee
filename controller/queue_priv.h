/* SPDX-License-Identifier: Apache-2.0
 *
 * What a queue knows of one key, and the heap of those that wait for their time. */
#ifndef STW_CONTROLLER_QUEUE_PRIV_H
#define STW_CONTROLLER_QUEUE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#define STW_QUEUE_NOT_DELAYED UINT32_MAX

/* Lives as long as one of its states holds: ready, working, delayed or failures > 0. */
struct stw_queue_entry {
    struct stw_queue_entry *prev, *next; /* in a ready list */
    uint64_t due_ms;                     /* when delayed */
    uint64_t since_ms;                   /* when ready: added; when working: handed out */
    uint32_t heap_at;                    /* STW_QUEUE_NOT_DELAYED */
    uint64_t retry_ms;                   /* when the next try after the last failure is due */
    uint32_t failures;
    bool ready, working;
    bool early;  /* handed out before retry_ms: an event came first */
    bool dirty;  /* added while worked on */
    bool resync; /* waits, or is to wait, in the second list */
    char key[];
};

/* Entries by due_ms, the earliest on top.  Zero-initialised is empty. */
struct stw_queue_heap {
    struct stw_queue_entry **at;
    uint32_t count, cap;
};

int stw_queue_heap_push(struct stw_queue_heap *h, struct stw_queue_entry *e); /* -1: no memory */
void stw_queue_heap_remove(struct stw_queue_heap *h, struct stw_queue_entry *e);
/* After e->due_ms became earlier. */
void stw_queue_heap_hurry(struct stw_queue_heap *h, struct stw_queue_entry *e);
void stw_queue_heap_done(struct stw_queue_heap *h);

#endif
