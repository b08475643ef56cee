/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void test_backoff_doubles_up_to_the_cap(void **state)
{
    static const struct {
        uint64_t first, failures, max, wait;
    } rows[] = {
        {5, 0, 960000, 5},       {5, 1, 960000, 10},
        {5, 17, 960000, 655360}, {5, 18, 960000, 960000},
        {30, 4, 900, 480},       {30, 5, 900, 900},
        {1000, 6, 60000, 60000}, {1000, UINT64_MAX, 60000, 60000},
        {100, 0, 50, 50}, /* the cap holds for the first wait, too */
        {0, UINT64_MAX, 50, 0},  {3, 100, UINT64_MAX, UINT64_MAX},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++)
        assert_int_equal(stw_backoff(rows[i].first, rows[i].failures, rows[i].max), rows[i].wait);
}

static void test_jitter_differs_between_keys(void **state)
{
    (void)state;
    bool differs = false;
    uint64_t first = stw_backoff_ms("k0", 10, 5, 1000000);
    assert_int_equal(first, stw_backoff_ms("k0", 10, 5, 1000000));
    for (int i = 1; i < 20; i++) {
        char key[8];
        (void)snprintf(key, sizeof(key), "k%d", i);
        differs |= stw_backoff_ms(key, 10, 5, 1000000) != first;
    }
    assert_true(differs);
    assert_in_range(stw_backoff_ms("a", UINT32_MAX, 1000, 300000), 240000, 360000);
}

static void test_random_numbers_differ(void **state)
{
    (void)state;
    assert_int_not_equal(stw_random(), stw_random());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backoff_doubles_up_to_the_cap),
        cmocka_unit_test(test_jitter_differs_between_keys),
        cmocka_unit_test(test_random_numbers_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
