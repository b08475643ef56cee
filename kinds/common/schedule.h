/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on schedule fields: a schedule of schema/cron.h and its time zone. */
#ifndef STW_KINDS_COMMON_SCHEDULE_H
#define STW_KINDS_COMMON_SCHEDULE_H

#include "schema/calendar.h"
#include "schema/kind.h"

#define STW_TIME_ZONE_MAX 64 /* bytes of a name */

/* Both skip values that the field's row refuses: empty, too short or too long.  `what` is the
 * scheduled work ("restarts"), for the warning that it runs too often. */
void stw_check_schedule(const char *path, const char *schedule, const char *what,
                        struct stw_findings *f);
void stw_check_time_zone(const struct stw_admission *a, const char *path, const char *zone,
                         struct stw_findings *f);

/* `recorded`, an instant that was handled or the beginning of a schedule, is of a clock that was ahead:
 * more than an hour later than `now`, with an instant of the schedule in between, which would be
 * skipped.  A clock that was set back by less repeats no instant. */
bool stw_schedule_is_ahead(const struct stw_cron *cron, const struct stw_zone *zone,
                           int64_t recorded, int64_t now);

#endif
