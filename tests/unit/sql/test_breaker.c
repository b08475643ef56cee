/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/target/breaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MAX_MS 60000

static void test_circuit_opens_after_failures_in_a_row(void **state)
{
    struct stw_breaker b = {0};
    (void)state;
    for (int i = 0; i < STW_BREAKER_FAILURES - 1; i++) {
        assert_true(stw_breaker_allow(&b, 100));
        stw_breaker_failure(&b, 100, false, MAX_MS);
    }
    assert_int_equal(stw_breaker_wait_ms(&b, 100), 0);
    stw_breaker_success(&b);
    for (int i = 0; i < STW_BREAKER_FAILURES; i++) {
        assert_true(stw_breaker_allow(&b, 100));
        stw_breaker_failure(&b, 100, false, MAX_MS);
    }
    assert_false(stw_breaker_allow(&b, 100));
    assert_int_equal(stw_breaker_wait_ms(&b, 100), STW_BREAKER_FIRST_MS);
}

static void test_one_caller_tries_after_the_wait(void **state)
{
    struct stw_breaker b = {0};
    uint64_t now = 5000;
    (void)state;
    stw_breaker_failure(&b, now, true, MAX_MS);
    assert_false(stw_breaker_allow(&b, now + STW_BREAKER_FIRST_MS - 1));
    assert_true(stw_breaker_allow(&b, now + STW_BREAKER_FIRST_MS));
    assert_false(stw_breaker_allow(&b, now + STW_BREAKER_FIRST_MS));
    stw_breaker_success(&b);
    assert_true(stw_breaker_allow(&b, now));
    assert_int_equal(stw_breaker_wait_ms(&b, now), 0);
}

static void test_circuit_wait_grows_up_to_a_minute(void **state)
{
    struct stw_breaker b = {0};
    uint64_t now = 0, expected = STW_BREAKER_FIRST_MS;
    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_true(stw_breaker_allow(&b, now));
        stw_breaker_failure(&b, now, true, MAX_MS);
        assert_int_equal(stw_breaker_wait_ms(&b, now), expected);
        now += expected;
        expected = expected * 2 > MAX_MS ? MAX_MS : expected * 2;
    }
}

/* Several connections are being opened, the breaker opens, and the last of them fails late. */
static void test_late_failures_do_not_lengthen_the_wait(void **state)
{
    struct stw_breaker b = {0};
    (void)state;
    stw_breaker_failure(&b, 1000, true, MAX_MS);
    stw_breaker_failure(&b, 1900, true, MAX_MS);
    assert_true(stw_breaker_allow(&b, 2000));
}

static void test_poke_allows_an_immediate_try(void **state)
{
    struct stw_breaker b = {0};
    (void)state;
    stw_breaker_poke(&b);
    assert_true(stw_breaker_allow(&b, 0));
    stw_breaker_failure(&b, 1000, true, MAX_MS);
    stw_breaker_poke(&b);
    assert_true(stw_breaker_allow(&b, 1001));
    assert_false(stw_breaker_allow(&b, 1001));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_circuit_opens_after_failures_in_a_row),
        cmocka_unit_test(test_one_caller_tries_after_the_wait),
        cmocka_unit_test(test_circuit_wait_grows_up_to_a_minute),
        cmocka_unit_test(test_late_failures_do_not_lengthen_the_wait),
        cmocka_unit_test(test_poke_allows_an_immediate_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
