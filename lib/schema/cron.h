/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules in the syntax of crontab(5) and the CronJob controller: minute, hour, day of month,
 * month, day of week; or @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly.
 * schema/calendar.h computes when they are due. */
#ifndef STW_SCHEMA_CRON_H
#define STW_SCHEMA_CRON_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define STW_CRON_MAX 1000 /* bytes of an expression */

/* The fields, in their order. */
enum stw_cron_field {
    STW_CRON_MINUTE,
    STW_CRON_HOUR,
    STW_CRON_DAY,
    STW_CRON_MONTH,
    STW_CRON_WEEKDAY,
    STW_CRON_FIELDS
};

/* Bit n: the value n matches. */
struct stw_cron {
    uint64_t minutes;
    uint32_t hours, days;      /* of the month, from bit 1 on */
    uint16_t months;           /* from bit 1 on */
    uint8_t weekdays;          /* bit 0: Sunday */
    bool any_day, any_weekday; /* its field has a bare star: only the other one restricts */
    uint8_t wide_steps;        /* fields with a step larger than their range, as bits */
};

/* -1 (STW_ERR_INVALID) with a text such as "field 2 (hour): 24 is outside 0-23". */
int stw_cron_parse(const char *text, struct stw_cron *ret, struct stw_error *err);

/* True for a schedule that never matches, such as 31 February. */
bool stw_cron_never(const struct stw_cron *c);
/* True when some two instants are less than `minutes` apart, ignoring clock changes. */
bool stw_cron_oftener(const struct stw_cron *c, unsigned minutes);
const char *stw_cron_field_name(enum stw_cron_field f); /* "day of month" */

#endif
