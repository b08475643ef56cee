/* SPDX-License-Identifier: Apache-2.0
 *
 * Erus with a selector.  No I/O except through e->ops. */
#ifndef STW_KINDS_ERU_SELECTED_H
#define STW_KINDS_ERU_SELECTED_H

#include <stdbool.h>
#include <stdint.h>

struct eru;

/* Continues the current restart of the workloads that are recorded in e->state. */
void eru_selected_follow(struct eru *e);
/* Records what matches, or skips the instant; the next run restarts them.  False: e->err. */
bool eru_selected_begin(struct eru *e, int64_t instant, bool manual);
/* Counts what matches, if that is not known, or was none or too many. */
void eru_selected_look(struct eru *e, bool spec_changed);

#endif
