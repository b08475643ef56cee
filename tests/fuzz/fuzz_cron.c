/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules: one that parses has a next instant unless it never matches, with no other in
 * between. */
#include "base/util.h"
#include "schema/calendar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t times[] = {0, 951782400, 1774745999, 4102444799};
    stw_autofree char *text = malloc(size + 1);
    struct stw_cron c;
    struct stw_error err;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (stw_cron_parse(text, &c, &err) != 0)
        return 0;
    for (size_t i = 0; i < STW_COUNT(times); i++) {
        int64_t next, last;
        if ((stw_calendar_next(&c, &stw_zone_utc, times[i], &next) != 0) != stw_cron_never(&c))
            abort();
        if (stw_cron_never(&c))
            continue;
        if (next <= times[i] || stw_calendar_last(&c, &stw_zone_utc, next, &last) != 0 ||
            last != next)
            abort();
        if (stw_calendar_last(&c, &stw_zone_utc, next - 1, &last) == 0 && last > times[i])
            abort();
    }
    (void)stw_cron_oftener(&c, 5);
    return 0;
}
