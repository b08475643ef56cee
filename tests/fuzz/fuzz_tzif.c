/* SPDX-License-Identifier: Apache-2.0
 *
 * Zone files: the periods of an accepted zone contain the requested instant and are contiguous, and
 * schedules are due in order. */
#include "base/util.h"
#include "schema/calendar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct stw_zone *z, int64_t at)
{
    struct stw_zone_period p, next;
    stw_zone_period(z, at, &p);
    if (p.start > at || p.end <= at)
        abort();
    if (p.end == INT64_MAX)
        return;
    stw_zone_period(z, p.end, &next);
    if (next.start != p.end)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t times[] = {INT64_MIN, -5000000000, 0, 1774745999, 4102444799, INT64_MAX};
    struct stw_zone *z = NULL;
    struct stw_error err;
    struct stw_cron c;
    if (stw_zone_parse(data, size, &z, &err) != 0)
        return 0;
    (void)stw_cron_parse("*/15 2 * * *", &c, &err);
    for (size_t i = 0; i < STW_COUNT(times); i++) {
        int64_t next, after, last;
        if (i > 0 && i + 1 < STW_COUNT(times))
            walk(z, times[i]);
        if (stw_calendar_next(&c, z, times[i], &next) != 0)
            continue;
        if (next <= times[i] || stw_calendar_next(&c, z, next, &after) != 0 || after <= next)
            abort();
        if (stw_calendar_last(&c, z, after - 1, &last) != 0 || last != next)
            abort();
    }
    stw_zone_destroy(z);
    return 0;
}
