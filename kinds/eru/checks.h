/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a workload may be restarted. */
#ifndef STW_KINDS_ERU_CHECKS_H
#define STW_KINDS_ERU_CHECKS_H

#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

struct eru;
struct eru_skip;
struct eru_target;

void eru_skip_for(struct eru_skip *s, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool eru_is_complete(const struct eru_target *t);
bool eru_is_rolling(const struct eru_target *t);
bool eru_has_stamp(const struct eru_target *t, int64_t instant);
/* A restart that is newer than this instant was made by another leader, whose status write we have
 * not seen yet, or for another Eru. */
bool eru_is_restarted_later(const struct eru *e, const struct eru_target *t, int64_t instant);
/* Whether e->target may be restarted, by hand too. */
void eru_check_target(const struct eru *e, struct eru_skip *s);
/* A restart that is late must be in the allowed hours too, not only its instant. */
void eru_check_hours(const struct eru *e, int64_t instant, struct eru_skip *s);
/* Whether e->target may be restarted by the schedule; `rolling`: an earlier restart is running. */
void eru_check_scheduled(const struct eru *e, bool rolling, struct eru_skip *s);
/* With spec.onlyIfChanged, whether something that the pods of e->target read or run has changed;
 * fills e->inputs.  A restart by hand is never skipped. */
int eru_check_changed(struct eru *e, const char *name, int64_t instant, bool manual,
                      struct eru_skip *s, struct stw_error *err) STW_MUST_CHECK;

#endif
