/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

static void test_times_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        int64_t us;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0, 0},
        {"2026-11-21T03:39:26.123456Z", 0, 1795232366123456},
        {"2026-11-21T03:39:26.1234567899Z", 0, 1795232366123456}, /* finer digits are cut off */
        {"2026-11-21T03:39:26.5Z", 0, 1795232366500000},
        {"2026-11-21T04:39:26+01:00", 0, 1795232366000000},
        {"2026-11-20T21:09:26-06:30", 0, 1795232366000000},
        {"2026-11-21t03:39:26z", 0, 1795232366000000},
        {"1969-12-31T23:59:59Z", 0, -1000000},
        {"2000-02-29T00:00:00Z", 0, 951782400000000},
        {"2016-12-31T23:59:60Z", 0, 1483228800000000}, /* a leap second */
        {"0001-01-01T00:00:00Z", 0, -62135596800000000},
        {"9999-12-31T23:59:59Z", 0, 253402300799000000},
        {"1900-02-29T00:00:00Z", -1, 0},
        {"2026-13-01T00:00:00Z", -1, 0},
        {"2026-00-01T00:00:00Z", -1, 0},
        {"2026-04-31T00:00:00Z", -1, 0},
        {"2026-04-00T00:00:00Z", -1, 0},
        {"2026-04-01T24:00:00Z", -1, 0},
        {"2026-04-01T00:60:00Z", -1, 0},
        {"2026-04-01T00:00:61Z", -1, 0},
        {"2026-04-01T00:00:00", -1, 0},
        {"2026-04-01T00:00:00.Z", -1, 0},
        {"2026-04-01T00:00:00+1:00", -1, 0},
        {"2026-04-01T00:00:00+24:00", -1, 0},
        {"2026-04-01T00:00:00Zx", -1, 0},
        {"2026-04-01 00:00:00Z", -1, 0},
        {"2026-4-1T00:00:00Z", -1, 0},
        {"2026-04-01", -1, 0},
        {"", -1, 0},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        int64_t us = 4711;
        assert_int_equal(stw_time_parse(rows[i].text, &us), rows[i].rc);
        assert_int_equal(us, rows[i].rc == 0 ? rows[i].us : 4711);
    }
}

/* Each day of eight centuries, compared with the C library. */
static void test_dates_of_eight_centuries_match_libc(void **state)
{
    (void)state;
    for (int64_t day = -146097; day < 146097; day++) {
        time_t t = (time_t)(day * 86400 + 45296);
        struct tm tm;
        char want[STW_TIME_LEN], got[STW_TIME_LEN];
        int64_t back;
        assert_non_null(gmtime_r(&t, &tm));
        assert_true(strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%SZ", &tm) > 0);
        stw_time_format((int64_t)t * 1000000 + 999999, got);
        assert_string_equal(got, want);
        assert_int_equal(stw_time_parse(got, &back), 0);
        assert_int_equal(back, (int64_t)t * 1000000);
    }
}

static void test_microseconds_are_formatted(void **state)
{
    (void)state;
    char text[STW_TIME_LEN];
    stw_time_format_micro(1795232366000007, text);
    assert_string_equal(text, "2026-11-21T03:39:26.000007Z");
    stw_time_format_micro(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
    /* Times that RFC 3339 cannot represent are clamped to its range. */
    stw_time_format(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59Z");
    stw_time_format(INT64_MIN, text);
    assert_string_equal(text, "0001-01-01T00:00:00Z");
}

static void test_system_clock_is_monotonic(void **state)
{
    (void)state;
    uint64_t a = stw_now_ms(&stw_clock_system), b = stw_now_ms(&stw_clock_system);
    assert_true(a > 0 && b >= a);
    int64_t wall = stw_wall_us(&stw_clock_system) / 1000000 - (int64_t)time(NULL);
    assert_true(wall >= -10 && wall <= 10); /* the process may be suspended in between */
}

static void test_condition_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    pthread_cond_t cond;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    assert_int_equal(stw_cond_init(&cond), 0);
    assert_int_equal(pthread_mutex_lock(&lock), 0);
    uint64_t start = stw_now_ms(&stw_clock_system);
    stw_cond_wait_until(&cond, &lock, 0); /* already past */
    stw_cond_wait_until(&cond, &lock, start);
    uint64_t passed = stw_now_ms(&stw_clock_system) - start;
    assert_true(passed < 5000);
    stw_cond_wait_until(&cond, &lock, start + passed + 30);
    assert_true(stw_now_ms(&stw_clock_system) >= start + passed + 30);
    assert_int_equal(pthread_mutex_unlock(&lock), 0);
    (void)pthread_cond_destroy(&cond);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_parsed),
        cmocka_unit_test(test_dates_of_eight_centuries_match_libc),
        cmocka_unit_test(test_microseconds_are_formatted),
        cmocka_unit_test(test_condition_wait_ends_at_its_deadline),
        cmocka_unit_test(test_system_clock_is_monotonic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
