/* SPDX-License-Identifier: Apache-2.0
 *
 * When a schedule is due in a time zone.
 *
 * The rule: a minute that matches the schedule is due when the zone's clock first shows that minute
 * or a later one.  Minutes in a gap (clocks put forward) are therefore due at the first instant
 * after it, and only once, however many of them match.  Minutes that occur twice (clocks put back)
 * are due on the first pass only.
 *
 * Times are seconds since the epoch.  Cost: about a hundred months are examined at most, for any
 * schedule. */
#ifndef STW_SCHEMA_CALENDAR_H
#define STW_SCHEMA_CALENDAR_H

#include "schema/cron.h"
#include "schema/zone.h"

/* The first instant after `after`; -1 when there is none within nine years, which means never. */
int stw_calendar_next(const struct stw_cron *c, const struct stw_zone *z, int64_t after,
                      int64_t *ret);
/* The last instant at or before `at`; -1 likewise. */
int stw_calendar_last(const struct stw_cron *c, const struct stw_zone *z, int64_t at, int64_t *ret);
/* How many instants are after `after` and not after `until`, counted up to `max`. */
unsigned stw_calendar_count(const struct stw_cron *c, const struct stw_zone *z, int64_t after,
                            int64_t until, unsigned max);

#endif
