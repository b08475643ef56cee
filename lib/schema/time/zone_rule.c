/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "schema/time/civil.h"
#include "schema/time/zone_priv.h"

#include <ctype.h>

#define HOURS_MAX 167 /* of a rule's time: RFC 8536, 3.3.1 */

struct rule_cursor {
    const char *at, *end;
};

static bool skip_char(struct rule_cursor *c, char ch)
{
    if (c->at == c->end || *c->at != ch)
        return false;
    c->at++;
    return true;
}

static int parse_zone_number(struct rule_cursor *c, int min, int max, int *ret)
{
    int n = 0;
    const char *begin = c->at;
    for (; c->at < c->end && isdigit((unsigned char)*c->at) && n <= max; c->at++)
        n = n * 10 + (*c->at - '0');
    if (c->at == begin || n < min || n > max)
        return -1;
    *ret = n;
    return 0;
}

/* "EST" or "<-03>" */
static int parse_zone_name(struct rule_cursor *c)
{
    bool quoted = skip_char(c, '<');
    const char *begin = c->at;
    while (c->at < c->end &&
           (isalpha((unsigned char)*c->at) ||
            (quoted && (isdigit((unsigned char)*c->at) || *c->at == '+' || *c->at == '-'))))
        c->at++;
    if (c->at - begin < 3)
        return -1;
    return quoted && !skip_char(c, '>') ? -1 : 0;
}

/* [+-]hh[:mm[:ss]] */
static int clock_time(struct rule_cursor *c, int hours_max, int32_t *ret)
{
    int h, m = 0, s = 0;
    bool minus = skip_char(c, '-');
    if (!minus)
        (void)skip_char(c, '+');
    if (parse_zone_number(c, 0, hours_max, &h) != 0)
        return -1;
    if (skip_char(c, ':')) {
        if (parse_zone_number(c, 0, 59, &m) != 0)
            return -1;
        if (skip_char(c, ':') && parse_zone_number(c, 0, 59, &s) != 0)
            return -1;
    }
    *ret = (h * 3600 + m * 60 + s) * (minus ? -1 : 1);
    return 0;
}

/* Mm.w.d, Jn or n */
static int parse_zone_date(struct rule_cursor *c, struct stw_zone_day *d)
{
    int month, week, weekday, day;
    if (skip_char(c, 'M')) {
        if (parse_zone_number(c, 1, 12, &month) != 0 || !skip_char(c, '.') ||
            parse_zone_number(c, 1, 5, &week) != 0 || !skip_char(c, '.') ||
            parse_zone_number(c, 0, 6, &weekday) != 0)
            return -1;
        *d = (struct stw_zone_day){.form = 'M',
                                   .month = (uint8_t)month,
                                   .week = (uint8_t)week,
                                   .weekday = (uint8_t)weekday};
        return 0;
    }
    bool julian = skip_char(c, 'J');
    if (parse_zone_number(c, julian ? 1 : 0, 365, &day) != 0)
        return -1;
    *d = (struct stw_zone_day){.form = julian ? 'J' : 'N', .day = (uint16_t)day};
    return 0;
}

static int rule_day(struct rule_cursor *c, struct stw_zone_day *d)
{
    if (!skip_char(c, ',') || parse_zone_date(c, d) != 0)
        return -1;
    d->time = 2 * 3600;
    return skip_char(c, '/') ? clock_time(c, HOURS_MAX, &d->time) : 0;
}

/* POSIX counts the hours west of Greenwich. */
static int parse_zone_offset(struct rule_cursor *c, int32_t *ret)
{
    if (clock_time(c, 24, ret) != 0)
        return -1;
    *ret = -*ret;
    return 0;
}

int stw_zone_rule_parse(const char *text, size_t len, struct stw_zone_rule *ret)
{
    struct rule_cursor c = {text, text + len};
    struct stw_zone_rule r = {.there = true};
    if (parse_zone_name(&c) != 0 || parse_zone_offset(&c, &r.std) != 0)
        return -1;
    if (c.at < c.end) {
        r.has_dst = true;
        if (parse_zone_name(&c) != 0)
            return -1;
        r.dst = r.std + 3600;
        if (c.at < c.end && *c.at != ',' && parse_zone_offset(&c, &r.dst) != 0)
            return -1;
        if (rule_day(&c, &r.begin) != 0 || rule_day(&c, &r.end) != 0)
            return -1;
    }
    if (c.at != c.end)
        return -1;
    *ret = r;
    return 0;
}

static int64_t day_in_year(const struct stw_zone_day *d, int64_t year)
{
    int64_t first = stw_days_of(year, 1, 1);
    if (d->form == 'N')
        return first + d->day;
    if (d->form == 'J')
        return first + d->day - 1 + (d->day >= 60 && stw_leap_year(year));
    int64_t month = stw_days_of(year, d->month, 1);
    unsigned ahead = (d->weekday + 7u - stw_weekday_of(month)) % 7;
    unsigned day = ahead + 7u * (d->week - 1u);
    while (day >= stw_month_length(year, d->month)) /* week 5 is the last one of the month */
        day -= 7;
    return month + day;
}

struct zone_change {
    int64_t at;
    int32_t offset;
};

/* `before`: the offset that applies to the rule's time of day. */
static struct zone_change change_in(const struct stw_zone_day *d, int64_t year, int32_t before,
                                    int32_t after)
{
    return (struct zone_change){day_in_year(d, year) * STW_DAY_SECONDS + d->time - before, after};
}

/* Insertion sort of a few entries.  It is stable: the end of DST stays before a begin at the same
 * second, so that daylight-saving time all year has no gaps (RFC 8536, 3.3.1). */
static void sort_changes(struct zone_change *all, int count)
{
    for (int i = 1; i < count; i++) {
        struct zone_change c = all[i];
        int j = i;
        for (; j > 0 && all[j - 1].at > c.at; j--)
            all[j] = all[j - 1];
        all[j] = c;
    }
}

void stw_zone_rule_period(const struct stw_zone_rule *r, int64_t at, struct stw_zone_period *ret)
{
    enum { YEARS = 5, CHANGES = 2 * YEARS }; /* a rule's time can reach into another year */
    struct zone_change all[CHANGES] = {{0}};
    int64_t year;
    unsigned month, day;
    int count = 0;
    *ret = (struct stw_zone_period){INT64_MIN, INT64_MAX, r->std};
    if (!r->has_dst)
        return;
    stw_date_of(stw_floor_div(at, STW_DAY_SECONDS), &year, &month, &day);
    for (int64_t y = year - YEARS / 2; y <= year + YEARS / 2; y++) {
        all[count++] = change_in(&r->end, y, r->dst, r->std);
        all[count++] = change_in(&r->begin, y, r->std, r->dst);
    }
    sort_changes(all, CHANGES);
    for (int i = 0; i < CHANGES; i++) {
        if (all[i].at > at) {
            ret->end = all[i].at;
            return;
        }
        ret->start = all[i].at;
        ret->offset = all[i].offset;
    }
}
