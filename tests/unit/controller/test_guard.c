/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/queue/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void test_hot_loop_guard_trips_and_reopens(void **state)
{
    (void)state;
    struct stw_guard *g = stw_guard_create();
    uint64_t now = 100000;
    for (int i = 0; i < STW_GUARD_WRITES; i++)
        assert_int_equal(stw_guard_write(g, "services/n/a", 1, now += 100, STW_GUARD_PAUSE_MS),
                         STW_GUARD_GO);
    assert_int_equal(stw_guard_write(g, "services/n/a", 1, now += 100, STW_GUARD_PAUSE_MS),
                     STW_GUARD_TRIPPED);
    assert_int_equal(stw_guard_write(g, "services/n/a", 1, now += 100, STW_GUARD_PAUSE_MS),
                     STW_GUARD_CLOSED);
    assert_int_equal(stw_guard_write(g, "services/n/b", 1, now, STW_GUARD_PAUSE_MS),
                     STW_GUARD_GO); /* others are not affected */
    assert_int_equal(
        stw_guard_write(g, "services/n/a", 1, now + STW_GUARD_PAUSE_MS - 200, STW_GUARD_PAUSE_MS),
        STW_GUARD_CLOSED);
    assert_int_equal(
        stw_guard_write(g, "services/n/a", 1, now + STW_GUARD_PAUSE_MS, STW_GUARD_PAUSE_MS),
        STW_GUARD_GO);
    stw_guard_destroy(g);
}

static void test_slow_writes_do_not_trip_the_guard(void **state)
{
    (void)state;
    struct stw_guard *g = stw_guard_create();
    for (uint64_t i = 0; i < 200; i++)
        assert_int_equal(stw_guard_write(g, "configmaps/n/a", 1,
                                         1000 + i * (STW_GUARD_WINDOW_MS / STW_GUARD_WRITES + 200),
                                         STW_GUARD_PAUSE_MS),
                         STW_GUARD_GO);
    stw_guard_destroy(g);
}

/* A user who changes the object often is not another client. */
static void test_spec_change_resets_the_guard(void **state)
{
    (void)state;
    struct stw_guard *g = stw_guard_create();
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(stw_guard_write(g, "a", i, 1000 + i, STW_GUARD_PAUSE_MS), STW_GUARD_GO);
    for (int i = 0; i < STW_GUARD_WRITES; i++)
        assert_int_equal(stw_guard_write(g, "a", 100, 2000, STW_GUARD_PAUSE_MS), STW_GUARD_GO);
    assert_int_equal(stw_guard_write(g, "a", 100, 2000, STW_GUARD_PAUSE_MS), STW_GUARD_TRIPPED);
    assert_int_equal(stw_guard_write(g, "a", 100, 2001, STW_GUARD_PAUSE_MS), STW_GUARD_CLOSED);
    assert_int_equal(stw_guard_write(g, "a", 101, 2002, STW_GUARD_PAUSE_MS), STW_GUARD_GO);
    stw_guard_destroy(g);
}

static void test_accepted_difference_is_remembered(void **state)
{
    (void)state;
    struct stw_guard *g = stw_guard_create();
    struct stw_hash wanted = {1, 2}, live = {3, 4}, other = {5, 6};
    assert_false(stw_guard_accepted(g, "a", wanted, live));
    stw_guard_accept(g, "a", wanted, live);
    assert_true(stw_guard_accepted(g, "a", wanted, live));
    assert_false(stw_guard_accepted(g, "a", wanted, other)); /* drift */
    assert_false(stw_guard_accepted(g, "a", other, live));   /* we want something else now */
    assert_false(stw_guard_accepted(g, "b", wanted, live));
    /* survives the sweep of old counts */
    for (uint64_t i = 1; i < 5; i++)
        (void)stw_guard_write(g, "b", 1, i * 10 * STW_GUARD_WINDOW_MS, STW_GUARD_PAUSE_MS);
    assert_true(stw_guard_accepted(g, "a", wanted, live));
    stw_guard_forget(g, "a");
    assert_false(stw_guard_accepted(g, "a", wanted, live));
    stw_guard_forget(g, "never there");
    stw_guard_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hot_loop_guard_trips_and_reopens),
        cmocka_unit_test(test_slow_writes_do_not_trip_the_guard),
        cmocka_unit_test(test_spec_change_resets_the_guard),
        cmocka_unit_test(test_accepted_difference_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
