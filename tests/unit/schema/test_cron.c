/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/cron.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define ALL_MINUTES ((UINT64_C(1) << 60) - 1)
#define ALL_HOURS ((1u << 24) - 1)
#define ALL_DAYS 0xfffffffeu
#define ALL_MONTHS 0x1ffe
#define ALL_WEEKDAYS 0x7f

static void test_valid_cron_expressions_are_parsed(void **state)
{
    static const struct {
        const char *text;
        struct stw_cron want;
    } cases[] = {
        {"* * * * *", {ALL_MINUTES, ALL_HOURS, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, 0}},
        {"? ? ? ? ?", {ALL_MINUTES, ALL_HOURS, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, 0}},
        {" 0\t0  * *\n* ", {1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, 0}},
        {"@yearly", {1, 1, 2, 2, ALL_WEEKDAYS, false, true, 0}},
        {"@annually", {1, 1, 2, 2, ALL_WEEKDAYS, false, true, 0}},
        {"@monthly", {1, 1, 2, ALL_MONTHS, ALL_WEEKDAYS, false, true, 0}},
        {"@weekly", {1, 1, ALL_DAYS, ALL_MONTHS, 1, true, false, 0}},
        {"@daily", {1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, 0}},
        {"@midnight", {1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, 0}},
        {"@hourly", {1, ALL_HOURS, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, 0}},
        /* lists, ranges, steps */
        {"0,30,59 1-3 2-10/4 * *",
         {UINT64_C(1) << 59 | UINT64_C(1) << 30 | 1, 0xe, 1u << 2 | 1u << 6 | 1u << 10, ALL_MONTHS,
          ALL_WEEKDAYS, false, true, 0}},
        {"*/20 */12 * * *",
         {UINT64_C(1) << 40 | 1 << 20 | 1, 1 | 1 << 12, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true,
          true, 0}},
        {"5/25 0 * * *",
         {UINT64_C(1) << 55 | 1 << 30 | 1 << 5, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true,
          0}},
        {"00 007 01 1 *", {1, 1 << 7, 2, 2, ALL_WEEKDAYS, false, true, 0}},
        /* a star with a step restricts, one in a list does not */
        {"0 0 */2 * 1", {1, 1, 0xaaaaaaaau, ALL_MONTHS, 2, false, false, 0}},
        {"0 0 */1 * 1", {1, 1, ALL_DAYS, ALL_MONTHS, 2, true, false, 0}},
        {"0 0 5,* * 1", {1, 1, ALL_DAYS, ALL_MONTHS, 2, true, false, 0}},
        {"0 0 1-31 * 1", {1, 1, ALL_DAYS, ALL_MONTHS, 2, false, false, 0}},
        /* names */
        {"0 0 * JAN,feb-Apr/2 *",
         {1, 1, ALL_DAYS, 1 << 1 | 1 << 2 | 1 << 4, ALL_WEEKDAYS, true, true, 0}},
        {"0 0 * * mon-FRI", {1, 1, ALL_DAYS, ALL_MONTHS, 0x3e, true, false, 0}},
        /* Sunday */
        {"0 0 * * 7", {1, 1, ALL_DAYS, ALL_MONTHS, 1, true, false, 0}},
        {"0 0 * * 5-7", {1, 1, ALL_DAYS, ALL_MONTHS, 0x61, true, false, 0}},
        {"0 0 * * 0-7", {1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, false, 0}},
        {"0 0 * * 1/2", {1, 1, ALL_DAYS, ALL_MONTHS, 0x2a, true, false, 0}}, /* up to 6 */
        {"0 0 * * 7/2", {1, 1, ALL_DAYS, ALL_MONTHS, 1, true, false, 1 << STW_CRON_WEEKDAY}},
        {"0 0 * * */7", {1, 1, ALL_DAYS, ALL_MONTHS, 1, true, false, 1 << STW_CRON_WEEKDAY}},
        /* steps larger than the range */
        {"*/60 */99999999999999999999 * * *",
         {1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true,
          1 << STW_CRON_MINUTE | 1 << STW_CRON_HOUR}},
        {"10-20/15 0 * * *",
         {1 << 10, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, 1 << STW_CRON_MINUTE}},
        {"*/59 0 * * *",
         {UINT64_C(1) << 59 | 1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, 0}},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_cron got;
        struct stw_error err = {0};
        const struct stw_cron *want = &cases[i].want;
        if (stw_cron_parse(cases[i].text, &got, &err) != 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        if (got.minutes != want->minutes || got.hours != want->hours || got.days != want->days ||
            got.months != want->months || got.weekdays != want->weekdays ||
            got.any_day != want->any_day || got.any_weekday != want->any_weekday ||
            got.wide_steps != want->wide_steps)
            fail_msg("%s: %llx %x %x %x %x %d %d %x", cases[i].text,
                     (unsigned long long)got.minutes, got.hours, got.days, got.months, got.weekdays,
                     got.any_day, got.any_weekday, got.wide_steps);
    }
}

static void test_invalid_cron_expressions_are_refused(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "must have 5 fields, got 0"},
        {"  ", "must have 5 fields, got 0"},
        {"* * * *", "must have 5 fields, got 4"},
        {"0 0 0 * * *", "must have 5 fields, got 6"}, /* seconds */
        {"60 * * * *", "field 1 (minute): 60 is outside 0-59"},
        {"* 24 * * *", "field 2 (hour): 24 is outside 0-23"},
        {"* * 0 * *", "field 3 (day of month): 0 is outside 1-31"},
        {"* * 32 * *", "field 3 (day of month): 32 is outside 1-31"},
        {"* * * 13 *", "field 4 (month): 13 is outside 1-12"},
        {"* * * 0 *", "field 4 (month): 0 is outside 1-12"},
        {"* * * * 8", "field 5 (day of week): 8 is outside 0-7"},
        {"99999999999999999999 * * * *", "field 1 (minute): 99999999999999999999 is outside 0-59"},
        {"5-1 * * * *", "field 1 (minute): range \"5-1\" is reversed"},
        {"* * * * fri-sun", "field 5 (day of week): range \"fri-sun\" is reversed"},
        {"1,,2 * * * *", "field 1 (minute): an item of the list is empty"},
        {", * * * *", "field 1 (minute): an item of the list is empty"},
        {"* 1, * * *", "field 2 (hour): an item of the list is empty"},
        {"*/0 * * * *", "field 1 (minute): a step must be at least 1"},
        {"*/ * * * *", "field 1 (minute): a number is missing"},
        {"/5 * * * *", "field 1 (minute): a number is missing"},
        {"1- * * * *", "field 1 (minute): a number is missing"},
        {"-1 * * * *", "field 1 (minute): a number is missing"},
        {"*/-5 * * * *", "field 1 (minute): \"-5\" is not a number"},
        {"+5 * * * *", "field 1 (minute): \"+5\" is not a number"},
        {"1-2-3 * * * *", "field 1 (minute): \"1-2-3\" has more than one '-'"},
        {"1/2/3 * * * *", "field 1 (minute): \"1/2/3\" has more than one '/'"},
        {"*-5 * * * *", "field 1 (minute): \"*\" is not a number"},
        {"** * * * *", "field 1 (minute): \"**\" is not a number"},
        {"* * * * monday", "field 5 (day of week): \"monday\" is not a number or a name"},
        {"* * L * *", "field 3 (day of month): \"L\" is not a number"},
        {"* * * mon *", "field 4 (month): \"mon\" is not a number or a name"},
        {"0 0 * jan-foo *", "field 4 (month): \"foo\" is not a number or a name"},
        {"@every 1h", "field 1: \"@every\" is not one of @yearly, @annually, @monthly, @weekly, "
                      "@daily, @midnight, @hourly"},
        {"@reboot", "field 1: \"@reboot\" is not one of @yearly, @annually, @monthly, @weekly, "
                    "@daily, @midnight, @hourly"},
        {"TZ=Europe/Berlin 0 0 * * *", "use spec.timeZone"},
        {"CRON_TZ=UTC 0 0 * * *", "use spec.timeZone"},
        {"TZ=UTC", "use spec.timeZone"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_cron kept = {.minutes = 42};
        struct stw_error err = {0};
        if (stw_cron_parse(cases[i].text, &kept, &err) == 0)
            fail_msg("<%s> was taken", cases[i].text);
        assert_string_equal(err.text, cases[i].want);
        assert_int_equal(err.code, STW_ERR_INVALID);
        assert_int_equal(kept.minutes, 42); /* untouched */
    }
}

static void test_long_cron_expression_is_refused(void **state)
{
    char text[STW_CRON_MAX + 16];
    struct stw_cron c;
    struct stw_error err = {0};
    (void)state;
    memset(text, '1', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(stw_cron_parse(text, &c, &err), -1);
    assert_string_equal(err.text, "must be at most 1000 bytes");
}

static void test_impossible_cron_dates_are_found(void **state)
{
    static const struct {
        const char *text;
        bool never;
    } cases[] = {
        {"0 0 31 2 *", true},          {"0 0 30 2 ?", true},    {"0 0 29 2 *", false},
        {"0 0 31 2,4,6,9,11 *", true}, {"0 0 31 2 */2", false}, {"0 0 31 1-12/2 *", false},
        {"0 0 31 2 1", false}, /* any Monday in February */
        {"0 0 30-31 2 */1", true},     {"0 0 * 2 *", false},    {"0 0 30 2 0-6", false},
        {"* * * * *", false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_cron c;
        struct stw_error err = {0};
        assert_int_equal(stw_cron_parse(cases[i].text, &c, &err), 0);
        if (stw_cron_never(&c) != cases[i].never)
            fail_msg("%s", cases[i].text);
    }
}

static void test_frequent_cron_expressions_are_found(void **state)
{
    static const struct {
        const char *text;
        bool oftener; /* than every 5 minutes */
    } cases[] = {
        {"* * * * *", true},        {"*/4 * * * *", true},
        {"*/5 * * * *", false},     {"0 * * * *", false},
        {"0,58 3 * * *", false},    {"0,58 3,4 * * *", true}, /* 3:58 and 4:00 */
        {"0,58 0,23 * * *", true},                            /* over midnight */
        {"0,55 0,23 * * *", false}, {"1,3 5 1 1 *", true},
        {"7 7 7 7 7", false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_cron c;
        struct stw_error err = {0};
        assert_int_equal(stw_cron_parse(cases[i].text, &c, &err), 0);
        if (stw_cron_oftener(&c, 5) != cases[i].oftener)
            fail_msg("%s", cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_cron_expressions_are_parsed),
        cmocka_unit_test(test_invalid_cron_expressions_are_refused),
        cmocka_unit_test(test_long_cron_expression_is_refused),
        cmocka_unit_test(test_impossible_cron_dates_are_found),
        cmocka_unit_test(test_frequent_cron_expressions_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
