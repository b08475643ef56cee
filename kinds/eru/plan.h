/* SPDX-License-Identifier: Apache-2.0
 *
 * What is due.  No I/O except through e->ops. */
#ifndef STW_KINDS_ERU_PLAN_H
#define STW_KINDS_ERU_PLAN_H

#include <stdbool.h>
#include <stdint.h>

struct eru;

/* Does what is due; e->err gets an error. */
void eru_plan(struct eru *e);
/* Milliseconds until something may be due; 0: never. */
uint64_t eru_plan_wake_ms(const struct eru *e);
int64_t eru_plan_jitter(const struct eru *e);
bool eru_plan_waits(const struct eru *e); /* a manual restart is pending */

#endif
