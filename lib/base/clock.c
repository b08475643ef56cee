/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static uint64_t system_monotonic_ms(void *ctx)
{
    (void)ctx;
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint64_t system_boot_ms(void *ctx)
{
    (void)ctx;
    struct timespec ts;
    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int64_t system_wall_us(void *ctx)
{
    (void)ctx;
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

const struct stw_clock stw_clock_system = {
    .monotonic_ms = system_monotonic_ms,
    .wall_us = system_wall_us,
    .boot_ms = system_boot_ms,
};

/* Proleptic Gregorian calendar by eras of 400 years that begin on 1 March, so that the leap day is
 * the last of its year. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_from_days(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *day = doy - (153 * mp + 2) / 5 + 1;
    *month = mp < 10 ? mp + 3 : mp - 9;
    *year = yoe + era * 400 + (*month <= 2);
}

/* Years 0001 to 9999, which is what RFC 3339 and Go can write. */
#define WALL_MIN_US (-62135596800LL * 1000000)
#define WALL_MAX_US (253402300799LL * 1000000 + 999999)

static void put_digits(char *to, int64_t v, int width)
{
    while (width-- > 0) {
        to[width] = (char)('0' + v % 10);
        v /= 10;
    }
}

/* The 19 bytes "2006-01-02T15:04:05"; returns the microseconds left over. */
static int64_t put_seconds(int64_t wall_us, char *out)
{
    wall_us = STW_MAX(WALL_MIN_US, STW_MIN(wall_us, WALL_MAX_US));
    int64_t day_us = 86400LL * 1000000;
    int64_t days = wall_us / day_us - (wall_us % day_us < 0), us = wall_us - days * day_us;
    int64_t year, month, day, s = us / 1000000;

    date_from_days(days, &year, &month, &day);
    memcpy(out, "0000-00-00T00:00:00", 19);
    put_digits(out, year, 4);
    put_digits(out + 5, month, 2);
    put_digits(out + 8, day, 2);
    put_digits(out + 11, s / 3600, 2);
    put_digits(out + 14, s / 60 % 60, 2);
    put_digits(out + 17, s % 60, 2);
    return us % 1000000;
}

void stw_time_format(int64_t wall_us, char out[STW_TIME_LEN])
{
    (void)put_seconds(wall_us, out);
    memcpy(out + 19, "Z", 2);
}

void stw_time_format_micro(int64_t wall_us, char out[STW_TIME_LEN])
{
    int64_t us = put_seconds(wall_us, out);
    out[19] = '.';
    put_digits(out + 20, us, 6);
    memcpy(out + 26, "Z", 2);
}

/* Reads exactly `width` digits and moves *p past them. */
static int take_digits(const char **p, int width, int64_t *ret)
{
    int64_t v = 0;
    for (int i = 0; i < width; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return -1;
        v = v * 10 + (**p - '0');
    }
    *ret = v;
    return 0;
}

static int take_number(const char **p, int width, int64_t max, char behind, int64_t *ret)
{
    if (take_digits(p, width, ret) != 0 || *ret > max)
        return -1;
    if (behind && *(*p)++ != behind)
        return -1;
    return 0;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* Reads a fraction such as ".25" in microseconds; finer digits are truncated. */
static int take_fraction(const char **p, int64_t *ret_us)
{
    *ret_us = 0;
    if (**p != '.')
        return 0;
    const char *from = ++*p;
    int64_t unit = 100000;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        *ret_us += (**p - '0') * unit;
        unit /= 10;
    }
    return *p > from ? 0 : -1;
}

/* "Z" or "+01:00": seconds east of UTC. */
static int take_offset(const char **p, int64_t *ret_s)
{
    char sign = *(*p)++;
    int64_t hours, minutes;

    *ret_s = 0;
    if (sign == 'Z' || sign == 'z')
        return 0;
    if (sign != '+' && sign != '-')
        return -1;
    if (take_number(p, 2, 23, ':', &hours) != 0 || take_number(p, 2, 59, 0, &minutes) != 0)
        return -1;
    *ret_s = (hours * 60 + minutes) * (sign == '-' ? -60 : 60);
    return 0;
}

int stw_time_parse(const char *text, int64_t *ret_wall_us)
{
    const char *p = text;
    int64_t year, month, day, hour, minute, second, us, offset;

    if (take_number(&p, 4, 9999, '-', &year) != 0 || take_number(&p, 2, 12, '-', &month) != 0 ||
        take_number(&p, 2, 31, 0, &day) != 0)
        return -1;
    if (month < 1 || day < 1 || day > days_in_month(year, month) || (*p != 'T' && *p != 't'))
        return -1;
    p++;
    /* 60 is a leap second; as in POSIX time it equals the next second. */
    if (take_number(&p, 2, 23, ':', &hour) != 0 || take_number(&p, 2, 59, ':', &minute) != 0 ||
        take_number(&p, 2, 60, 0, &second) != 0)
        return -1;
    if (take_fraction(&p, &us) != 0 || take_offset(&p, &offset) != 0 || *p != '\0')
        return -1;
    int64_t days = days_from_date(year, month, day);
    *ret_wall_us = (days * 86400 + hour * 3600 + minute * 60 + second - offset) * 1000000 + us;
    return 0;
}

int stw_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return -1;
    int rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (rc == 0)
        rc = pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    return rc == 0 ? 0 : -1;
}

void stw_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ms)
{
    /* A deadline too large for time_t means no deadline. */
    if (deadline_ms / 1000 > (uint64_t)INT32_MAX * 1024) {
        (void)pthread_cond_wait(cond, lock);
        return;
    }
    struct timespec ts = {.tv_sec = (time_t)(deadline_ms / 1000),
                          .tv_nsec = (long)(deadline_ms % 1000) * 1000000};
    (void)pthread_cond_timedwait(cond, lock, &ts);
}
