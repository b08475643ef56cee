/* SPDX-License-Identifier: Apache-2.0
 *
 * The results and the events of a run. */
#ifndef STW_KINDS_ERU_NOTES_H
#define STW_KINDS_ERU_NOTES_H

#include "kinds/eru/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eru;
struct eru_skip;

void eru_plan_event(struct eru *e, bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void eru_plan_result(struct eru *e, int64_t instant, enum eru_result result, const char *reason,
                     int64_t seconds);
void eru_plan_skip(struct eru *e, int64_t instant, const struct eru_skip *s);
/* What is restarted, for texts: Deployment "web", or what a selector matches. */
#define ERU_WHAT_LEN 300
void eru_what(const struct eru *e, char out[ERU_WHAT_LEN]);

#endif
