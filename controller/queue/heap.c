/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/queue/queue_priv.h"

#include <assert.h>
#include <stdlib.h>

static void place_entry(struct stw_queue_heap *h, uint32_t i, struct stw_queue_entry *e)
{
    h->at[i] = e;
    e->heap_at = i;
}

static void sift_up(struct stw_queue_heap *h, uint32_t i, struct stw_queue_entry *e)
{
    while (i > 0 && h->at[(i - 1) / 2]->due_ms > e->due_ms) {
        place_entry(h, i, h->at[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place_entry(h, i, e);
}

static void sift_down(struct stw_queue_heap *h, uint32_t i, struct stw_queue_entry *e)
{
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->count)
            break;
        if (child + 1 < h->count && h->at[child + 1]->due_ms < h->at[child]->due_ms)
            child++;
        if (h->at[child]->due_ms >= e->due_ms)
            break;
        place_entry(h, i, h->at[child]);
        i = child;
    }
    place_entry(h, i, e);
}

int stw_queue_heap_push(struct stw_queue_heap *h, struct stw_queue_entry *e)
{
    assert(h->count <= h->cap);
    if (h->count == h->cap) {
        uint32_t cap = h->cap ? h->cap * 2 : 16;
        struct stw_queue_entry **at = reallocarray(h->at, cap, sizeof(struct stw_queue_entry *));
        if (!at)
            return -1;
        h->at = at;
        h->cap = cap;
    }
    sift_up(h, h->count++, e);
    return 0;
}

void stw_queue_heap_remove(struct stw_queue_heap *h, struct stw_queue_entry *e)
{
    uint32_t i = e->heap_at;
    assert(i < h->count && h->at[i] == e);
    struct stw_queue_entry *last = h->at[--h->count];
    e->heap_at = STW_QUEUE_NOT_DELAYED;
    if (last == e)
        return;
    if (i > 0 && h->at[(i - 1) / 2]->due_ms > last->due_ms)
        sift_up(h, i, last);
    else
        sift_down(h, i, last);
}

void stw_queue_heap_hurry(struct stw_queue_heap *h, struct stw_queue_entry *e)
{
    assert(e->heap_at < h->count && h->at[e->heap_at] == e);
    sift_up(h, e->heap_at, e);
}

void stw_queue_heap_done(struct stw_queue_heap *h)
{
    free(h->at);
    *h = (struct stw_queue_heap){0};
}
