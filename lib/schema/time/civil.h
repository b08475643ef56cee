/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts dates of the Gregorian calendar to days since 1 January 1970 and back.  The arithmetic
 * follows Howard Hinnant's "chrono-compatible low-level date algorithms".  Valid for years up to
 * some millions. */
#ifndef STW_SCHEMA_CIVIL_H
#define STW_SCHEMA_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

#define STW_DAY_SECONDS 86400

static inline int64_t stw_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static inline int64_t stw_days_of(int64_t year, unsigned month, unsigned day)
{
    int64_t y = year - (month <= 2);
    int64_t era = stw_floor_div(y, 400);
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + (int64_t)day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static inline void stw_date_of(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    int64_t z = days + 719468;
    int64_t era = stw_floor_div(z, 146097);
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *day = (unsigned)(doy - (153 * mp + 2) / 5 + 1);
    *month = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
    *year = yoe + era * 400 + (*month <= 2);
}

static inline unsigned stw_weekday_of(int64_t days) /* 0: Sunday */
{
    return (unsigned)((days % 7 + 7 + 4) % 7);
}

static inline bool stw_leap_year(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static inline unsigned stw_month_length(int64_t year, unsigned month)
{
    static const uint8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return lengths[month - 1] + (month == 2 && stw_leap_year(year) ? 1u : 0u);
}

#endif
