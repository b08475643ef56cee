/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as a tree of raw texts, so that a member can be anything: text that no JSON reader accepts, or
 * a key that occurs twice.  Nodes belong to an arena and are freed with it. */
#ifndef STW_TESTS_HOSTILE_TREE_H
#define STW_TESTS_HOSTILE_TREE_H

#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tree_type { TREE_RAW, TREE_LIST, TREE_OBJECT };

struct tree {
    enum tree_type type;
    const char *raw; /* TREE_RAW: its text */
    size_t len;
    const char *key; /* of a member: its text with the quotes; NULL: an element, or the root */
    size_t key_len;
    struct tree **kids;
    uint32_t count, room;
};

/* Memory of trees, released as a whole. */
struct tree_arena {
    struct tree_block *blocks;
};
void *tree_alloc(struct tree_arena *a, size_t size);
void tree_arena_done(struct tree_arena *a);
/* Keeps one block for the next object. */
void tree_arena_reset(struct tree_arena *a);

struct tree *tree_of(struct tree_arena *a, struct stw_json v);
struct tree *tree_of_text(struct tree_arena *a, const char *text, size_t len);
/* The copy shares the texts of `t`; that of tree_keep() has its own. */
struct tree *tree_copy(struct tree_arena *a, const struct tree *t);
struct tree *tree_keep(struct tree_arena *a, const struct tree *t);
/* A node with this text, which is not read. */
struct tree *tree_raw(struct tree_arena *a, const char *raw, size_t len);
void tree_write(const struct tree *t, struct stw_buf *out);

/* A member or an element by its number in decimal; NULL: there is none. */
struct tree *tree_child(const struct tree *t, const char *step);
/* Puts `value` at a path of steps, each a member's name or, for elements, "0".  Creates and replaces
 * what is on the way. */
void tree_put(struct tree_arena *a, struct tree *root, const char *const *steps, size_t count,
              struct tree *value);
void tree_add(struct tree_arena *a, struct tree *parent, struct tree *kid);
/* Makes `t` the same as `other`, except its key. */
void tree_become(struct tree *t, const struct tree *other);

/* All nodes below the root, in order; returns their number, at most `max`. */
struct tree_place {
    struct tree *parent;
    uint32_t index;
};
size_t tree_places(struct tree *root, struct tree_place *ret, size_t max);

#endif
