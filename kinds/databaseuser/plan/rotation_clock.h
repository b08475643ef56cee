/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotation by the clock. */
#ifndef STW_KINDS_DATABASEUSER_ROTATION_CLOCK_H
#define STW_KINDS_DATABASEUSER_ROTATION_CLOCK_H

#include "base/clock.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

struct dbu;

/* When overlaps end by the monotonic clock, since this process has first seen them.  Any thread. */
struct dbu_ends;
struct dbu_ends *dbu_ends_create(void) STW_MUST_CHECK; /* NULL: no memory */
void dbu_ends_destroy(struct dbu_ends *e);             /* `e` may be NULL */
void dbu_ends_forget(struct dbu_ends *e, const char *key);
/* Milliseconds until an end at `end_us` by the wall clock; 0: it is over by both clocks. */
uint64_t dbu_ends_left_ms(struct dbu_ends *e, const char *key, int64_t end_us, int64_t wall_us,
                          uint64_t now_ms);

/* The time has come for a new password. */
bool dbu_rotation_is_due(const struct dbu *d);
/* When the next one is; `last`: of the status that is being written, or NULL.  false: none. */
bool dbu_rotation_next(const struct dbu *d, const char *last, char ret[STW_TIME_LEN],
                       uint64_t *ret_in_ms);
/* An overlap that ends at `end_us` is over by both clocks. */
bool dbu_overlap_is_over(const struct dbu *d, int64_t end_us, uint64_t *ret_left_ms);

#endif
