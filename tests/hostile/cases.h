/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile objects of a kind, from its tables.  An object follows from the seed and its number alone.
 * The first ones have one change: a value of a field, or a member of a complete object that is
 * dropped, repeated or replaced.  If there are more such changes than objects, they are taken evenly,
 * one of some neighbours by the seed, so that every field gets some of its values each day.  Objects
 * after those have two changes. */
#ifndef STW_TESTS_HOSTILE_CASES_H
#define STW_TESTS_HOSTILE_CASES_H

#include "base/buf.h"
#include "hostile/tree.h"
#include "schema/kind.h"

/* A small generator of numbers (SplitMix64). */
struct hostile_random {
    uint64_t state;
};
uint64_t hostile_next(struct hostile_random *r);
/* A number below `n`, which is not 0. */
uint32_t hostile_below(struct hostile_random *r, uint32_t n);

struct hostile_cases;

/* `folder` has the complete pod template; `sample` is a valid object of the kind; `env` for the rules,
 * by which valid objects are grown from the sample. */
struct hostile_cases *hostile_cases_create(const struct stw_kind *k, const struct stw_env *env,
                                           const struct stw_buf *sample, const struct stw_buf *pod,
                                           uint64_t seed);
void hostile_cases_destroy(struct hostile_cases *c);

/* The number of objects with one change, and of changes to choose from. */
uint32_t hostile_cases_single(const struct hostile_cases *c);
uint32_t hostile_cases_changes(const struct hostile_cases *c);
struct hostile_random hostile_cases_random(const struct hostile_cases *c, uint32_t number);

/* Writes object `number`. */
void hostile_case(struct hostile_cases *c, uint32_t number, struct stw_buf *out);
/* Writes a valid object; there are hostile_valid_count(). */
uint32_t hostile_valid_count(const struct hostile_cases *c);
void hostile_valid(struct hostile_cases *c, uint32_t index, struct stw_buf *out);
/* The tree of a valid object, for changes of its status; belongs to `c`. */
const struct tree *hostile_valid_tree(const struct hostile_cases *c, uint32_t index);
/* Changes a random node of a tree. */
void hostile_change(struct hostile_random *r, struct tree_arena *a, struct tree *root);

/* Reports, once all objects were written, each field of the CRD that had no hostile value in an object
 * that could be read.  Returns their number. */
unsigned hostile_cases_missed(struct hostile_cases *c);

#endif
