/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of one key, the list of ready entries and the heap of delayed ones. */
#ifndef STW_CONTROLLER_QUEUE_PRIV_H
#define STW_CONTROLLER_QUEUE_PRIV_H

#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>

#define STW_QUEUE_NOT_DELAYED UINT32_MAX

/* Exists while it is ready, working or delayed, or has failures > 0. */
struct stw_queue_entry {
    struct stw_queue_entry *prev, *next; /* of the same namespace and priority, when ready */
    struct stw_queue_tenant *tenant;     /* the key's namespace */
    uint64_t due_ms;                     /* when delayed */
    uint64_t since_ms;                   /* when ready: added; when working: handed out */
    uint64_t waited_ms;                  /* when working: how long it was ready before */
    uint32_t heap_at;                    /* STW_QUEUE_NOT_DELAYED */
    uint64_t retry_ms;                   /* when the retry after the last failure is due */
    uint32_t failures;
    bool ready, working;
    bool early;  /* handed out before retry_ms because an event came first */
    bool dirty;  /* added while a worker had it */
    bool resync; /* waits, or will wait, with the priority of resyncs */
    char key[];
};

#define STW_QUEUE_PRIORITIES 2 /* users' edits, resyncs */

/* The ready entries.  Within a priority the namespaces take turns, so that a tenant with many
 * objects does not delay the others. */
struct stw_queue_ready {
    struct stw_table tenants;
    struct stw_queue_tenant *first[STW_QUEUE_PRIORITIES], *last[STW_QUEUE_PRIORITIES];
    uint32_t count;
};

void stw_queue_ready_init(struct stw_queue_ready *r);
void stw_queue_ready_done(struct stw_queue_ready *r); /* does not free the entries */
/* attach finds or creates the entry's namespace, -1: no memory; detach releases it. */
int stw_queue_ready_attach(struct stw_queue_ready *r, struct stw_queue_entry *e);
void stw_queue_ready_detach(struct stw_queue_ready *r, struct stw_queue_entry *e);
/* Adds to, or removes from, the list that e->resync selects. */
void stw_queue_ready_append(struct stw_queue_ready *r, struct stw_queue_entry *e);
void stw_queue_ready_remove(struct stw_queue_ready *r, struct stw_queue_entry *e);
struct stw_queue_entry *stw_queue_ready_first(const struct stw_queue_ready *r); /* or NULL */
/* Removes the first entry and moves its namespace to the end. */
void stw_queue_ready_take(struct stw_queue_ready *r, struct stw_queue_entry *e);

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
