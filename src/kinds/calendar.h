/* SPDX-License-Identifier: Apache-2.0
 *
 * When a schedule falls due in a time zone.
 *
 * The rule, in one sentence: a minute that the schedule names is due when the zone's clock first
 * shows that minute or a later one.  So what falls into a gap (clocks put forward) is due at the
 * first instant after it, once however many minutes were in it; and what comes twice (clocks put
 * back) is due on the first pass alone.
 *
 * Times are seconds since the epoch.  Cost: some hundred months looked at, whatever the schedule.
 */
#ifndef STW_KINDS_CALENDAR_H
#define STW_KINDS_CALENDAR_H

#include "kinds/cron.h"
#include "kinds/zone.h"

/* The first instant after `after`; -1 when there is none (within nine years, which is never). */
int stw_calendar_next(const struct stw_cron *c, const struct stw_zone *z, int64_t after,
                      int64_t *ret);
/* The last instant at or before `at`; -1 likewise. */
int stw_calendar_last(const struct stw_cron *c, const struct stw_zone *z, int64_t at, int64_t *ret);
/* How many instants are after `after` and not after `until`, counted up to `max`. */
unsigned stw_calendar_count(const struct stw_cron *c, const struct stw_zone *z, int64_t after,
                            int64_t until, unsigned max);

#endif
