/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is freed as a whole.  An arena on the stack (stw_arena_init) serves code that only needs
 * it during a call; stw_arena_create (schema/kind.h) makes one on the heap.  Not thread-safe. */
#ifndef STW_BASE_ARENA_H
#define STW_BASE_ARENA_H

#include "base/json.h"

#include <stdalign.h>
#include <stddef.h>

/* The first block is embedded, so that an arena on the stack needs no allocation for a usual
 * object. */
struct stw_arena {
    struct stw_arena_block *blocks;
    char *at;
    size_t left;
    alignas(16) char first[4096];
};

void stw_arena_init(struct stw_arena *a);
void stw_arena_done(struct stw_arena *a);
void *stw_arena_alloc(struct stw_arena *a, size_t size); /* NULL: no memory */
/* Decoded, NUL-terminated copy of a string; NULL when it is not a string or there is no memory. */
const char *stw_arena_str(struct stw_arena *a, struct stw_json string);

#endif
