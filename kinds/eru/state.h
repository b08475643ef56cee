/* SPDX-License-Identifier: Apache-2.0
 *
 * State that the status keeps from one run to the next. */
#ifndef STW_KINDS_ERU_STATE_H
#define STW_KINDS_ERU_STATE_H

#include "base/clock.h"
#include "schema/cron.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define ERU_NEVER INT64_MIN /* not set; times are seconds since the epoch */
#define ERU_TOKEN_MAX 256   /* longer tokens are shortened */

enum eru_result { ERU_NONE, ERU_SUCCEEDED, ERU_FAILED, ERU_SKIPPED, ERU_MISSED, ERU_RESULTS };
extern const char *const eru_result_names[ERU_RESULTS];

struct eru_state {
    int64_t last_schedule, last_restart, next_schedule, last_missed, missed_count;
    enum eru_result last_result;
    struct {
        bool there;
        int64_t since;
        char schedule[STW_CRON_MAX + 1], time_zone[65];
    } active;
    struct {
        bool there;
        int64_t instant, start, generation;
    } rollout;
    struct {
        char token[ERU_TOKEN_MAX];
        int64_t instant;
        bool done;
    } manual;
    /* With a selector: the workloads of the current rollout, or of the latest. */
    struct {
        bool there, manual;
        int64_t instant;
        int64_t matched, restarted, succeeded, failed, skipped;
        json_t *workloads; /* as in the status */
    } selected;
    int64_t matched; /* when last counted, at most ERU_MATCHES_MAX + 1; -1: not yet */
    json_t *history; /* newest first */
    bool failed;     /* out of memory while it was read */
};

void eru_state_read(const json_t *status, struct eru_state *ret);
void eru_state_write(const struct eru_state *s, json_t *status); /* updates `status` */
void eru_state_done(struct eru_state *s);
/* Records the result of an instant, in the history too.  `seconds` < 0: no duration. */
void eru_state_note(struct eru_state *s, int64_t limit, int64_t instant, enum eru_result result,
                    const char *reason, int64_t seconds);
/* "2006-01-02T15:04:05Z" */
void eru_time_text(int64_t at, char out[STW_TIME_LEN]);

#endif
