/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/field/semver.h"

#include "support/judge.h"

static void test_versions_are_parsed(void **state)
{
    static const struct {
        const char *text;
        struct stw_semver want; /* all zero: not a version */
    } rows[] = {
        {"3.5.21", {3, 5, 21}},
        {"v3.5.21", {3, 5, 21}},
        {"0.0.1", {0, 0, 1}},
        {"65535.0.65535", {65535, 0, 65535}},
        {"65536.0.0", {0}},
        {"99999999999999999999.0.0", {0}},
        {"3.5", {0}},
        {"3.5.", {0}},
        {"3.5.21.0", {0}},
        {"3.5.21-rc.0", {0}},
        {"03.5.21", {0}},
        {"3.05.21", {0}},
        {"3.5.00", {0}},
        {"vv3.5.21", {0}},
        {"V3.5.21", {0}},
        {" 3.5.21", {0}},
        {"3.5.21 ", {0}},
        {"3.-5.21", {0}},
        {"+3.5.21", {0}},
        {"", {0}},
        {"v", {0}},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_semver got = {9, 9, 9};
        int want = stw_semver_known(rows[i].want) ? 0 : -1;
        if (stw_semver_parse(rows[i].text, &got) != want)
            fail_msg("\"%s\"", rows[i].text);
        /* text that is not a version leaves the result unchanged */
        struct stw_semver expected = want == 0 ? rows[i].want : (struct stw_semver){9, 9, 9};
        assert_int_equal(stw_semver_compare(got, expected), 0);
    }
}

static void test_versions_are_compared(void **state)
{
    static const struct stw_semver rising[] = {{0, 0, 0},  {0, 0, 1},  {0, 1, 0},
                                               {3, 4, 9},  {3, 4, 10}, {3, 5, 0},
                                               {3, 10, 0}, {4, 0, 0},  {65535, 65535, 65535}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rising); i++)
        for (size_t j = 0; j < STW_COUNT(rising); j++) {
            int got = stw_semver_compare(rising[i], rising[j]);
            assert_true(i < j ? got < 0 : i > j ? got > 0 : got == 0);
        }
}

static void test_versions_are_written(void **state)
{
    char text[STW_SEMVER_LEN];
    (void)state;
    stw_semver_text((struct stw_semver){3, 5, 21}, text);
    assert_string_equal(text, "3.5.21");
    stw_semver_text((struct stw_semver){65535, 65535, 65535}, text);
    assert_string_equal(text, "65535.65535.65535");
    assert_false(stw_semver_known((struct stw_semver){0}));
    assert_true(stw_semver_known((struct stw_semver){0, 0, 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_are_parsed),
        cmocka_unit_test(test_versions_are_compared),
        cmocka_unit_test(test_versions_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
