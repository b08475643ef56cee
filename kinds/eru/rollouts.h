/* SPDX-License-Identifier: Apache-2.0
 *
 * How long rollouts take, and which workloads have one.  Keys are "deployment:namespace/name", as in the
 * index of Erus; `r` may be NULL. */
#ifndef STW_KINDS_ERU_ROLLOUTS_H
#define STW_KINDS_ERU_ROLLOUTS_H

#include "base/clock.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

struct eru_rollouts;
struct eru_rollouts *eru_rollouts_create(const struct stw_clock *clock) STW_MUST_CHECK;
void eru_rollouts_destroy(struct eru_rollouts *r);
/* Whether each change of the workload must wake its Erus. */
void eru_rollouts_track(struct eru_rollouts *r, const char *workload, bool track);
bool eru_rollouts_tracks(struct eru_rollouts *r, const char *workload);
/* How long the rollout of an instant has taken, by a monotonic clock.  `took_ms` is the duration by
 * the recorded times; it counts only for the time before this process saw the rollout. */
int64_t eru_rollouts_took_ms(struct eru_rollouts *r, const char *workload, int64_t instant,
                             int64_t took_ms);

#endif
