/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of one key, and the heap of delayed ones. */
#ifndef STW_CONTROLLER_QUEUE_PRIV_H
#define STW_CONTROLLER_QUEUE_PRIV_H

#include "base/turns.h"

#include <stdbool.h>
#include <stdint.h>

#define STW_QUEUE_NOT_DELAYED UINT32_MAX

/* Exists while it is ready, working or delayed, or has failures > 0. */
struct stw_queue_entry {
    struct stw_turn turn; /* first; waits: the entry is ready */
    uint64_t due_ms;      /* when delayed */
    uint64_t since_ms;    /* when ready: added; when working: handed out */
    uint64_t waited_ms;   /* when working: how long it was ready before */
    uint32_t heap_at;     /* STW_QUEUE_NOT_DELAYED */
    uint64_t retry_ms;    /* when the retry after the last failure is due */
    uint32_t failures;
    bool working;
    bool early;  /* handed out before retry_ms because an event came first */
    bool dirty;  /* added while a worker had it */
    bool resync; /* waits, or will wait, with the priority of resyncs */
    char key[];
};

/* Entries by due_ms, the earliest on top.  Zero-initialised is empty. */
struct stw_queue_heap {
    struct stw_queue_entry **at;
    uint32_t count, cap;
};

int stw_queue_heap_push(struct stw_queue_heap *h, struct stw_queue_entry *e); /* -1: no memory */
void stw_queue_heap_remove(struct stw_queue_heap *h, struct stw_queue_entry *e);
/* Call after decreasing e->due_ms. */
void stw_queue_heap_hurry(struct stw_queue_heap *h, struct stw_queue_entry *e);
void stw_queue_heap_done(struct stw_queue_heap *h);

#endif
