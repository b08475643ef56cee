/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/calendar.h"

#include "base/util.h"
#include "schema/time/civil.h"

#define MONTHS_MAX (9 * 12) /* 29 February is eight years away around 2100 */
#define TIME_MAX (INT64_C(253402300799) - 10 * 366 * STW_DAY_SECONDS) /* ten years before 10000 */

/* A month of a year. */
struct month {
    int64_t year;
    unsigned month;
};

static int low_bit(uint64_t bits) /* -1: none */
{
    return bits ? __builtin_ctzll(bits) : -1;
}

static int high_bit(uint64_t bits)
{
    return bits ? 63 - __builtin_clzll(bits) : -1;
}

/* The matching days of a month as bits; day 1 is bit 1. */
static uint64_t days_of_month(const struct stw_cron *c, struct month m)
{
    unsigned first = stw_weekday_of(stw_days_of(m.year, m.month, 1));
    uint64_t week = ((unsigned)c->weekdays >> first | (unsigned)c->weekdays << (7 - first)) & 0x7f;
    uint64_t by_weekday = (week | week << 7 | week << 14 | week << 21 | week << 28) << 1;
    uint64_t all = (UINT64_C(2) << stw_month_length(m.year, m.month)) - 2;
    if (!(c->months >> m.month & 1))
        return 0;
    if (c->any_day || c->any_weekday)
        return c->days & by_weekday & all;
    return (c->days | by_weekday) & all;
}

/* The first matching minute of a day from `minute` on; minute_until: the last one up to it; -1:
 * none. */
static int minute_from(const struct stw_cron *c, int minute)
{
    unsigned hour = (unsigned)minute / 60;
    if (minute >= 24 * 60)
        return -1;
    if (c->hours >> hour & 1) {
        int m = low_bit(c->minutes & ~UINT64_C(0) << (minute % 60));
        if (m >= 0)
            return (int)hour * 60 + m;
    }
    int h = low_bit((uint64_t)c->hours & ~UINT64_C(1) << hour);
    return h < 0 ? -1 : h * 60 + low_bit(c->minutes);
}

static int minute_until(const struct stw_cron *c, int minute)
{
    unsigned hour = (unsigned)minute / 60;
    if (c->hours >> hour & 1) {
        int m = high_bit(c->minutes & ((UINT64_C(2) << (minute % 60)) - 1));
        if (m >= 0)
            return (int)hour * 60 + m;
    }
    int h = high_bit(c->hours & ((UINT64_C(1) << hour) - 1));
    return h < 0 ? -1 : h * 60 + high_bit(c->minutes);
}

static struct month add_months(struct month m, int by)
{
    int64_t months = m.year * 12 + (m.month - 1) + by;
    int64_t year = stw_floor_div(months, 12);
    return (struct month){year, (unsigned)(months - year * 12) + 1};
}

/* The nearest matching day from `day` on, forwards (`by` 1) or backwards (-1); -1: none. */
static int find_day(const struct stw_cron *c, int64_t day, int by, int64_t *ret)
{
    struct month m;
    unsigned of_month;
    stw_date_of(day, &m.year, &m.month, &of_month);
    uint64_t wanted = by > 0 ? ~UINT64_C(0) << of_month : (UINT64_C(2) << of_month) - 1;
    for (int i = 0; i < MONTHS_MAX; i++) {
        uint64_t days = days_of_month(c, m) & wanted;
        if (days) {
            *ret =
                stw_days_of(m.year, m.month, (unsigned)(by > 0 ? low_bit(days) : high_bit(days)));
            return 0;
        }
        m = add_months(m, by);
        wanted = ~UINT64_C(0);
    }
    return -1;
}

/* The matching minute next to `wall`, in seconds of the zone's local time: the first one after it,
 * or (minute_up_to) the last one at or before it. */
static int minute_after(const struct stw_cron *c, int64_t wall, int64_t *ret)
{
    int64_t minutes = stw_floor_div(wall, 60) + 1, day = stw_floor_div(minutes, 24 * 60), found;
    int minute = minute_from(c, (int)(minutes - day * 24 * 60));
    if (find_day(c, day, 1, &found) != 0)
        return -1;
    if (found == day && minute < 0 && find_day(c, day + 1, 1, &found) != 0)
        return -1;
    if (found != day)
        minute = minute_from(c, 0);
    *ret = found * STW_DAY_SECONDS + minute * 60;
    return 0;
}

static int minute_up_to(const struct stw_cron *c, int64_t wall, int64_t *ret)
{
    int64_t minutes = stw_floor_div(wall, 60), day = stw_floor_div(minutes, 24 * 60), found;
    int minute = minute_until(c, (int)(minutes - day * 24 * 60));
    if (find_day(c, day, -1, &found) != 0)
        return -1;
    if (found == day && minute < 0 && find_day(c, day - 1, -1, &found) != 0)
        return -1;
    if (found != day)
        minute = minute_until(c, 24 * 60 - 1);
    *ret = found * STW_DAY_SECONDS + minute * 60;
    return 0;
}

/* The latest local time that the zone's clock has shown up to `at`.  A clock was never put back by
 * more than two offsets can differ, so older periods do not matter. */
static int64_t find_latest_local_time(const struct stw_zone *z, int64_t at)
{
    struct stw_zone_period p;
    int64_t ret;
    stw_zone_period(z, at, &p);
    ret = at + p.offset;
    while (p.start > at - 2 * STW_ZONE_OFFSET_MAX) {
        int64_t last = p.start - 1;
        stw_zone_period(z, last, &p);
        ret = STW_MAX(ret, last + p.offset);
    }
    return ret;
}

/* The first instant at which the zone's clock shows `wall` or later. */
static int64_t find_first_instant(const struct stw_zone *z, int64_t wall)
{
    struct stw_zone_period p;
    for (int64_t at = wall - STW_ZONE_OFFSET_MAX;; at = p.end) {
        stw_zone_period(z, at, &p);
        at = STW_MAX(at, wall - p.offset);
        if (at < p.end)
            return at;
    }
}

int stw_calendar_next(const struct stw_cron *c, const struct stw_zone *z, int64_t after,
                      int64_t *ret)
{
    int64_t wall;
    if (after > TIME_MAX || after < -TIME_MAX ||
        minute_after(c, find_latest_local_time(z, after), &wall) != 0)
        return -1;
    *ret = find_first_instant(z, wall);
    return 0;
}

int stw_calendar_last(const struct stw_cron *c, const struct stw_zone *z, int64_t at, int64_t *ret)
{
    int64_t wall;
    if (at > TIME_MAX || at < -TIME_MAX ||
        minute_up_to(c, find_latest_local_time(z, at), &wall) != 0)
        return -1;
    *ret = find_first_instant(z, wall);
    return 0;
}

unsigned stw_calendar_count(const struct stw_cron *c, const struct stw_zone *z, int64_t after,
                            int64_t until, unsigned max)
{
    unsigned count = 0;
    while (count < max && stw_calendar_next(c, z, after, &after) == 0 && after <= until)
        count++;
    return count;
}
