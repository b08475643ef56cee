/* SPDX-License-Identifier: Apache-2.0
 *
 * When a password is due, and when an overlap is over, by clocks that are set. */
#include "fixture.h"
#include "kinds/databaseuser/plan/rotation_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct fixture f;

#define NOW "2024-01-01T00:00:01Z"

static void make(const char *every, const char *status)
{
    char spec[512];
    (void)snprintf(spec, sizeof(spec),
                   "{\"user\":\"app\",\"password\":{\"generate\":{}},\"connectionSecret\":"
                   "{\"name\":\"c\"},\"rotation\":{%s\"overlapSeconds\":60}}",
                   every);
    assert_int_equal(fixture_init(&f, spec, status), 0);
}

#define CREATED "\"account\":\"app@%\""
#define DAILY "\"every\":\"1d\","

static void test_rotation_is_due_after_the_interval(void **state)
{
    static const struct {
        const char *every, *status, *next;
        bool due;
    } rows[] = {
        {"", "{" CREATED ",\"lastRotationTime\":\"2020-01-01T00:00:00Z\"}", "", false},
        {DAILY, "{}", "", false},
        {DAILY, "{" CREATED ",\"lastRotationTime\":\"2023-12-31T12:00:00Z\"}",
         "2024-01-01T12:00:00Z", false},
        {DAILY, "{" CREATED ",\"lastRotationTime\":\"2023-12-31T00:00:01Z\"}", NOW, true},
        {DAILY, "{" CREATED ",\"lastRotationTime\":\"2020-01-01T00:00:00Z\"}",
         "2020-01-02T00:00:00Z", true},
        {"\"every\":\"90m\",", "{" CREATED ",\"lastRotationTime\":\"2023-12-31T23:00:00Z\"}",
         "2024-01-01T00:30:00Z", false},
        /* one rotation after the other */
        {DAILY,
         "{" CREATED ",\"lastRotationTime\":\"2020-01-01T00:00:00Z\",\"previousLogin\":\"app\"}",
         "2020-01-02T00:00:00Z", false},
        {DAILY,
         "{" CREATED ",\"lastRotationTime\":\"2020-01-01T00:00:00Z\","
         "\"oldPasswordValidUntil\":\"2020-01-01T01:00:00Z\"}",
         "2020-01-02T00:00:00Z", false},
        /* the clock was ahead, or the time of the last one is lost: at most one interval */
        {DAILY, "{" CREATED ",\"lastRotationTime\":\"2030-01-01T00:00:00Z\"}",
         "2024-01-02T00:00:01Z", false},
        {DAILY,
         "{" CREATED ",\"lastRotationTime\":\"2030-01-01T00:00:00Z\","
         "\"nextRotationTime\":\"2030-01-02T00:00:00Z\"}",
         "2024-01-02T00:00:01Z", false},
        {DAILY,
         "{" CREATED ",\"lastRotationTime\":\"2030-01-01T00:00:00Z\","
         "\"nextRotationTime\":\"2024-01-01T00:00:00Z\"}",
         "2024-01-01T00:00:00Z", true},
        {DAILY, "{" CREATED "}", "2024-01-02T00:00:01Z", false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char next[STW_TIME_LEN] = "";
        uint64_t in_ms;
        make(rows[i].every, rows[i].status);
        (void)dbu_rotation_next(&f.d, NULL, next, &in_ms);
        if (!stw_streq(next, rows[i].next) || dbu_rotation_is_due(&f.d) != rows[i].due)
            fail_msg("row %zu: %s", i, next);
        fixture_done(&f);
    }
}

/* The interval begins again when a password is set. */
static void test_interval_begins_again_with_a_new_password(void **state)
{
    char next[STW_TIME_LEN];
    uint64_t in_ms;
    (void)state;
    make(DAILY, "{" CREATED ",\"lastRotationTime\":\"2020-01-01T00:00:00Z\"}");
    assert_true(dbu_rotation_next(&f.d, NOW, next, &in_ms));
    assert_string_equal(next, "2024-01-02T00:00:01Z");
    assert_true(in_ms >= 86400000 && in_ms <= 86402000);
    fixture_done(&f);
}

#define US(seconds) ((int64_t)(seconds)*1000000)

static void test_overlap_ends_by_both_clocks(void **state)
{
    struct dbu_ends *e = dbu_ends_create();
    (void)state;
    assert_non_null(e);
    assert_int_equal(dbu_ends_left_ms(e, "shop/app", US(1060), US(1000), 5000), 60000);
    /* a step forwards does not shorten it */
    assert_int_equal(dbu_ends_left_ms(e, "shop/app", US(1060), US(9000), 15000), 50000);
    assert_int_equal(dbu_ends_left_ms(e, "shop/app", US(1060), US(9060), 65000), 0);
    /* a step backwards is for the caller, who has another end then */
    assert_int_equal(dbu_ends_left_ms(e, "shop/app", US(1060), US(1000), 65000), 60000);
    assert_int_equal(dbu_ends_left_ms(e, "shop/app", US(1030), US(1000), 65000), 30000);
    /* the next overlap, another object, and a process that was started after the end */
    assert_int_equal(dbu_ends_left_ms(e, "shop/app", US(2060), US(2000), 70000), 60000);
    assert_int_equal(dbu_ends_left_ms(e, "shop/other", US(2060), US(2000), 80000), 60000);
    assert_int_equal(dbu_ends_left_ms(e, "shop/late", US(1060), US(2000), 80000), 0);
    dbu_ends_forget(e, "shop/app");
    assert_int_equal(dbu_ends_left_ms(e, "shop/app", US(2060), US(2070), 70000), 0);
    dbu_ends_destroy(e);
}

static void test_intervals_are_minutes_hours_or_days(void **state)
{
    (void)state;
    assert_int_equal(dbu_interval_s("90m"), 5400);
    assert_int_equal(dbu_interval_s("12h"), 43200);
    assert_int_equal(dbu_interval_s("9999d"), 9999LL * 86400);
    assert_int_equal(dbu_interval_s(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotation_is_due_after_the_interval),
        cmocka_unit_test(test_interval_begins_again_with_a_new_password),
        cmocka_unit_test(test_overlap_ends_by_both_clocks),
        cmocka_unit_test(test_intervals_are_minutes_hours_or_days),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
