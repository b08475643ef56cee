/* SPDX-License-Identifier: Apache-2.0
 *
 * The times at which restarts may be made: excluded dates and windows, by the clock of a
 * time zone. */
#include "kinds/common/hours.h"

#include "base/util.h"

#include <string.h>
#include <time.h>

#define DAY_MINUTES (24 * 60)

static const char *const weekdays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", NULL};

/* --- texts */

static int read_digits(const char *text, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        n = n * 10 + (text[i] - '0');
    }
    return n;
}

static int read_minute(const char *text)
{
    if (!text || strlen(text) != 5 || text[2] != ':')
        return -1;
    int hour = read_digits(text, 2), minute = read_digits(text + 3, 2);
    return hour < 0 || hour > 23 || minute < 0 || minute > 59 ? -1 : hour * 60 + minute;
}

static int count_month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static const char *check_date(const char *text)
{
    static const char *const wrong = "must be a date such as 2026-12-24";
    if (strlen(text) != 10 || text[4] != '-' || text[7] != '-')
        return wrong;
    int year = read_digits(text, 4), month = read_digits(text + 5, 2),
        day = read_digits(text + 8, 2);
    if (year < 0 || month < 0 || day < 0)
        return wrong;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > count_month_days(year, month))
        return "there is no such date";
    return NULL;
}

static const char *check_minute(const char *text)
{
    return read_minute(text) < 0 ? "must be a time from 00:00 to 23:59" : NULL;
}

/* --- a local time */

struct local {
    char date[11]; /* "2026-12-24" */
    int weekday, minute;
};

static void read_local(const struct stw_zone *zone, int64_t at, struct local *ret)
{
    struct stw_zone_period period;
    struct tm tm;
    stw_zone_period(zone, at, &period);
    time_t seconds = (time_t)(at + period.offset);
    *ret = (struct local){0};
    if (!gmtime_r(&seconds, &tm))
        return;
    (void)strftime(ret->date, sizeof(ret->date), "%Y-%m-%d", &tm);
    ret->weekday = tm.tm_wday;
    ret->minute = tm.tm_hour * 60 + tm.tm_min;
}

/* --- windows */

static bool has_day(struct stw_json days, int weekday)
{
    struct stw_json key, day;
    if (stw_json_size(days) == 0)
        return true;
    stw_json_foreach (days, key, day)
        if (stw_json_is(day, weekdays[weekday]))
            return true;
    return false;
}

static int minute_at(struct stw_json window, const char *field)
{
    char text[16] = "";
    (void)stw_json_strcpy(stw_json_get(window, field), text, sizeof(text));
    return read_minute(text);
}

/* A window whose end is before its start ends on the next day. */
static bool is_in_window(struct stw_json window, const struct local *l)
{
    int start = minute_at(window, "start"), end = minute_at(window, "end");
    struct stw_json days = stw_json_get(window, "days");
    if (start < end)
        return has_day(days, l->weekday) && l->minute >= start && l->minute < end;
    return (l->minute >= start && has_day(days, l->weekday)) ||
           (l->minute < end && has_day(days, (l->weekday + 6) % 7));
}

static bool is_in_some_window(struct stw_json windows, const struct local *l)
{
    struct stw_json key, window;
    stw_json_foreach (windows, key, window)
        if (is_in_window(window, l))
            return true;
    return stw_json_size(windows) == 0;
}

enum stw_hours_verdict stw_hours_at(const struct stw_hours *hours, const struct stw_zone *zone,
                                    int64_t at)
{
    struct stw_json key, date;
    struct local l;
    read_local(zone, at, &l);
    stw_json_foreach (hours->exclude_dates, key, date)
        if (stw_json_is(date, l.date))
            return STW_HOURS_EXCLUDED;
    return is_in_some_window(hours->windows, &l) ? STW_HOURS_ALLOWED : STW_HOURS_OUTSIDE;
}

bool stw_hours_never(const struct stw_hours *hours, const struct stw_cron *cron)
{
    if (stw_json_size(hours->windows) == 0)
        return false;
    for (int minute = 0; minute < DAY_MINUTES; minute++) {
        bool due =
            (cron->hours >> (minute / 60) & 1) != 0 && (cron->minutes >> (minute % 60) & 1) != 0;
        for (int weekday = 0; due && weekday < 7; weekday++) {
            struct local l = {.weekday = weekday, .minute = minute};
            bool that_day = !cron->any_day || (cron->weekdays >> weekday & 1) != 0;
            if (that_day && is_in_some_window(hours->windows, &l))
                return false;
        }
    }
    return true;
}

/* --- field rows */

const struct stw_field stw_hours_date_item = {.name = "",
                                              .type = STW_T_STRING,
                                              STW_RANGE(10, 10),
                                              .rule_range = true,
                                              .pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
                                              .check = check_date};

static const struct stw_field day_item = {.name = "", .type = STW_T_STRING, .values = weekdays};

#define TIME_PATTERN "^([01][0-9]|2[0-3]):[0-5][0-9]$"
static const struct stw_field window_fields[] = {
    {.name = "days",
     .type = STW_T_LIST,
     .help = "Days of the week on which the window begins; every day if absent.",
     STW_RANGE(0, 7),
     .item = &day_item},
    {.name = "start",
     .type = STW_T_STRING,
     .help = "First minute of the window, such as 22:00.",
     .required = true,
     STW_RANGE(5, 5),
     .rule_range = true,
     .pattern = TIME_PATTERN,
     .check = check_minute},
    {.name = "end",
     .type = STW_T_STRING,
     .help = "First minute after the window. An end before the start is on the next day.",
     .required = true,
     STW_RANGE(5, 5),
     .rule_range = true,
     .pattern = TIME_PATTERN,
     .check = check_minute},
    {0},
};

const struct stw_field stw_hours_window_item = {
    .name = "", .type = STW_T_OBJECT, .fields = window_fields};

bool stw_check_windows(const char *path, struct stw_json windows, struct stw_findings *f)
{
    struct stw_json key, window;
    bool fine = true;
    int index = 0;
    stw_json_foreach (windows, key, window) {
        char end[300];
        int minute = minute_at(window, "start");
        stw_format(end, sizeof(end), "%s[%d].end", path, index++);
        if (minute < 0 || minute_at(window, "end") < 0) {
            fine = false; /* its rows report it */
        } else if (minute == minute_at(window, "end")) {
            fine = false;
            stw_findings_add(f, end, STW_INVALID, NULL, "must differ from start (%02d:%02d)",
                             minute / 60, minute % 60);
        }
        if (stw_findings_spent(f))
            return false;
    }
    return fine && !f->oversize;
}
