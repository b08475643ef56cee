/* SPDX-License-Identifier: Apache-2.0
 *
 * When schedules are due: hand-written tables, and every clock change of every zone on the system,
 * over ten near years and four distant ones, compared with the C library's localtime_r. */
#include "schema/calendar.h"

#include "base/clock.h"
#include "base/tzfile.h"
#include "base/util.h"
#include "schema/zones.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

static struct stw_zones *zones;

static int64_t seconds(const char *text)
{
    int64_t us;
    if (stw_time_parse(text, &us) != 0)
        fail_msg("%s", text);
    return us / 1000000;
}

static struct stw_cron cron(const char *text)
{
    struct stw_cron c;
    struct stw_error err = {0};
    if (stw_cron_parse(text, &c, &err) != 0)
        fail_msg("%s: %s", text, err.text);
    return c;
}

static const struct stw_zone *zone(const char *name)
{
    const struct stw_zone *z = stw_zones_get(zones, name);
    if (!z)
        fail_msg("no zone %s", name);
    return z;
}

static void test_next_and_last_instants_are_found(void **state)
{
    static const struct {
        const char *text, *zone, *after, *want; /* want NULL: none */
    } cases[] = {
        {"0 0 * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
        {"0 0 * * *", "UTC", "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z"},
        {"59 23 31 12 *", "UTC", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"},
        {"0 12 * * 1", "UTC", "2026-01-01T00:00:00Z", "2026-01-05T12:00:00Z"},
        /* 29 February, also across 2100, which has none */
        {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
        {"0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
        {"0 0 31 2 *", "UTC", "2026-01-01T00:00:00Z", NULL},
        {"0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"},
        /* either day field matches */
        {"0 0 13 * 5", "UTC", "2026-02-01T00:00:00Z", "2026-02-06T00:00:00Z"},
        {"0 0 13 * 5", "UTC", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"},
        {"0 0 */2 * 1", "UTC", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"},
        /* before the epoch, and with an unusual offset */
        {"0 0 * * *", "UTC", "1969-12-30T12:00:00Z", "1969-12-31T00:00:00Z"},
        {"0 0 * * *", "Asia/Kathmandu", "2026-01-01T00:00:00Z", "2026-01-01T18:15:00Z"},
        /* clocks put forward: 29 March 2026, 2:00 to 3:00 */
        {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
        {"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
        {"*/15 * * * *", "Europe/Berlin", "2026-03-29T00:45:00Z", "2026-03-29T01:00:00Z"},
        {"*/15 * * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T01:15:00Z"},
        /* clocks put back: 25 October 2026, 3:00 to 2:00 */
        {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
        {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
        {"*/15 * * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T02:00:00Z"},
        {"0 3 * * *", "Europe/Berlin", "2026-10-25T00:59:59Z", "2026-10-25T02:00:00Z"},
        /* daylight saving of half an hour */
        {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z"},
        {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", "2026-04-04T14:45:00Z"},
        {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"},
        /* a day that was skipped: 30 December 2011 */
        {"0 2 * * *", "Pacific/Apia", "2011-12-29T13:00:00Z", "2011-12-30T10:00:00Z"},
        {"0 2 * * *", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T12:00:00Z"},
        /* beyond the table: the rule in the footer */
        {"30 2 * * *", "Europe/Berlin", "2400-03-26T00:00:00Z", "2400-03-26T01:00:00Z"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_cron c = cron(cases[i].text);
        int64_t after = seconds(cases[i].after), got = -7, back = -7;
        int rc = stw_calendar_next(&c, zone(cases[i].zone), after, &got);
        if (!cases[i].want) {
            assert_int_equal(rc, -1);
            assert_int_equal(got, -7);
            assert_int_equal(stw_calendar_last(&c, zone(cases[i].zone), after, &back), -1);
            continue;
        }
        if (rc != 0 || got != seconds(cases[i].want))
            fail_msg("case %zu: %s after %s: %+lld s", i, cases[i].text, cases[i].after,
                     (long long)(got - seconds(cases[i].want)));
        assert_int_equal(stw_calendar_last(&c, zone(cases[i].zone), got, &back), 0);
        assert_int_equal(back, got);
        if (stw_calendar_last(&c, zone(cases[i].zone), got - 1, &back) != 0 || back > after)
            fail_msg("case %zu: %s has one in between", i, cases[i].text);
    }
}

static void test_instant_count_is_capped(void **state)
{
    struct stw_cron c = cron("* * * * *");
    (void)state;
    assert_int_equal(stw_calendar_count(&c, &stw_zone_utc, 0, 59, 100), 0);
    assert_int_equal(stw_calendar_count(&c, &stw_zone_utc, 0, 60, 100), 1);
    assert_int_equal(stw_calendar_count(&c, &stw_zone_utc, 0, 600, 100), 10);
    assert_int_equal(stw_calendar_count(&c, &stw_zone_utc, 0, INT64_C(1) << 40, 100), 100);
}

static void test_extreme_times_have_no_next_instant(void **state)
{
    static const int64_t times[] = {INT64_MIN, INT64_MAX, INT64_C(1) << 60, -(INT64_C(1) << 60)};
    struct stw_cron c = cron("* * * * *");
    int64_t ret;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(times); i++) {
        assert_int_equal(stw_calendar_next(&c, &stw_zone_utc, times[i], &ret), -1);
        assert_int_equal(stw_calendar_last(&c, &stw_zone_utc, times[i], &ret), -1);
    }
}

/* --- every zone */

enum { DAILY, HALF_PAST, QUARTERS, SCHEDULES };
static const char *const schedules[SCHEDULES] = {"0 2 * * *", "30 2 * * *", "*/15 * * * *"};

static bool names_minute(int schedule, int64_t wall)
{
    int64_t of_day = wall % 86400;
    if (schedule == QUARTERS)
        return of_day % 900 == 0;
    return of_day == (schedule == DAILY ? 7200 : 9000);
}

static int64_t libc_wall(int64_t at)
{
    time_t t = at;
    struct tm tm;
    (void)localtime_r(&t, &tm);
    return at + tm.tm_gmtoff;
}

struct scan {
    const char *name;
    const struct stw_zone *zone;
    struct stw_cron crons[SCHEDULES];
    int64_t due[SCHEDULES]; /* the previous instant that is expected */
    unsigned *transitions;
};

static void expect(struct scan *s, int schedule, int64_t at)
{
    int64_t got;
    if (s->due[schedule] >= 0) {
        if (stw_calendar_next(&s->crons[schedule], s->zone, s->due[schedule], &got) != 0 ||
            got != at)
            fail_msg("%s in %s: after %lld comes %lld, not %lld", schedules[schedule], s->name,
                     (long long)s->due[schedule], (long long)at, (long long)got);
        if (stw_calendar_last(&s->crons[schedule], s->zone, at - 1, &got) != 0 ||
            got != s->due[schedule])
            fail_msg("%s in %s: before %lld was %lld, not %lld", schedules[schedule], s->name,
                     (long long)at, (long long)s->due[schedule], (long long)got);
    }
    s->due[schedule] = at;
}

/* Fills in the offset of libc's clock from UTC, for each of `count` minutes.  The C library parses
 * the zone's rule at each call, so single minutes are queried only in hours in which the offset
 * changes.  A change that is reverted within the hour is not seen. */
#define HOUR 60
static void fill_hours(int64_t from, int64_t *offsets, int count)
{
    for (int hour = 0; hour < count; hour += HOUR)
        offsets[hour] = libc_wall(from + hour * 60) - (from + hour * 60);
    for (int i = 0; i < count; i++) {
        int before = i - i % HOUR, after = before + HOUR;
        if (i == before)
            continue;
        if (after < count && offsets[before] == offsets[after])
            offsets[i] = offsets[before];
        else
            offsets[i] = libc_wall(from + i * 60) - (from + i * 60);
    }
}

/* Goes through three days minute by minute: a time is due when the clock first shows it or has
 * jumped over it. */
#define WINDOW (3 * 24 * HOUR)
static void scan_days(struct scan *s, int64_t from)
{
    int64_t offsets[WINDOW];
    fill_hours(from, offsets, WINDOW);
    int64_t high = from + offsets[0];
    for (int i = 0; i < SCHEDULES; i++)
        s->due[i] = -1;
    for (int minute = 1; minute < WINDOW; minute++) {
        int64_t at = from + minute * 60, wall = at + offsets[minute];
        for (int i = 0; i < SCHEDULES; i++) {
            bool due = false;
            for (int64_t w = high + 60; w <= wall && !due; w += 60)
                due = names_minute(i, w);
            if (due)
                expect(s, i, at);
        }
        high = STW_MAX(high, wall);
    }
}

static void scan_years(struct scan *s, int first, int years)
{
    int64_t from = (int64_t)(first - 1970) * 365 * 86400 + (first - 1969) / 4 * 86400;
    int64_t offset = libc_wall(from) - from;
    for (int day = 1; day <= years * 365 + 3; day++) {
        int64_t at = from + (int64_t)day * 86400, now = libc_wall(at) - at;
        if (now != offset) {
            (*s->transitions)++;
            scan_days(s, at - 2 * 86400);
        }
        offset = now;
    }
}

static void scan_zone(const char *name, unsigned *transitions)
{
    struct scan s = {.name = name, .zone = stw_zones_get(zones, name), .transitions = transitions};
    if (!s.zone)
        return; /* zone.tab and similar; a missing zone shows in the count below */
    assert_int_equal(setenv("TZ", name, 1), 0);
    tzset();
    for (int i = 0; i < SCHEDULES; i++)
        s.crons[i] = cron(schedules[i]);
    scan_years(&s, 2020, 10);
    scan_years(&s, 2040, 4); /* beyond the table: the rule in the footer */
}

/* Symbolic links are skipped: they name the same zones. */
static void scan_folder(const char *below, unsigned *count, unsigned *transitions)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/%s", STW_TZ_DIR, below);
    DIR *dir = opendir(path);
    if (!dir)
        skip();
    for (struct dirent *e; (e = readdir(dir));) {
        char name[600], full[1700];
        struct stat st;
        (void)snprintf(name, sizeof(name), "%s%s%s", below, *below ? "/" : "", e->d_name);
        (void)snprintf(full, sizeof(full), "%s/%s", STW_TZ_DIR, name);
        if (e->d_name[0] == '.' || lstat(full, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode) && !stw_streq(name, "posix") && !stw_streq(name, "right"))
            scan_folder(name, count, transitions);
        if (!S_ISREG(st.st_mode) || !stw_zones_get(zones, name))
            continue;
        (*count)++;
        scan_zone(name, transitions);
    }
    (void)closedir(dir);
}

static void test_every_zone_transition_keeps_the_rule(void **state)
{
    unsigned count = 0, transitions = 0;
    (void)state;
    scan_folder("", &count, &transitions);
    print_message("%u zones, %u changes of the clocks\n", count, transitions);
    assert_true(count > 250);
    assert_true(transitions > 2000);
}

static int make_zones(void **state)
{
    (void)state;
    zones = stw_zones_create(stw_tz_read);
    return zones ? 0 : -1;
}

static int end_zones(void **state)
{
    (void)state;
    stw_zones_destroy(zones);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_and_last_instants_are_found),
        cmocka_unit_test(test_instant_count_is_capped),
        cmocka_unit_test(test_extreme_times_have_no_next_instant),
        cmocka_unit_test(test_every_zone_transition_keeps_the_rule),
    };
    return cmocka_run_group_tests(tests, make_zones, end_zones);
}
