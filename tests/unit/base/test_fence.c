/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Two clocks, since the machine may be suspended: awake_ms stops then, boot_ms does not. */
static uint64_t awake_ms, boot_ms;

static uint64_t read_awake(void *ctx)
{
    (void)ctx;
    return awake_ms;
}
static uint64_t read_boot(void *ctx)
{
    (void)ctx;
    return boot_ms;
}
static const struct stw_clock test_clock = {.monotonic_ms = read_awake, .boot_ms = read_boot};
static const struct stw_fence_epoch seventh = {.lease = "n/l", .holder = "me", .number = 7};

static int make(void **state)
{
    awake_ms = boot_ms = 1000;
    *state = stw_fence_create(&test_clock);
    return *state ? 0 : -1;
}

static int drop(void **state)
{
    (void)stw_fence_enter((struct stw_fence_ticket){0});
    stw_fence_destroy(*state);
    return 0;
}

static void test_thread_without_fence_may_write(void **state)
{
    struct stw_error err = {0};
    struct stw_fence_epoch epoch;
    (void)state;
    assert_true(stw_fence_may_write());
    assert_int_equal(stw_fence_check(&err), 0);
    assert_false(stw_fence_epoch(&epoch));
}

static void test_fence_is_closed_until_opened(void **state)
{
    struct stw_fence *f = *state;
    struct stw_error err = {0};
    (void)stw_fence_enter(stw_fence_take(f));
    assert_false(stw_fence_may_write());
    assert_int_equal(stw_fence_check(&err), -1);
    assert_int_equal(err.code, STW_ERR_CANCELLED);
    stw_fence_extend(f, 9000); /* extending does not open it */
    (void)stw_fence_enter(stw_fence_take(f));
    assert_false(stw_fence_may_write());
}

static void test_fence_closes_at_its_deadline(void **state)
{
    struct stw_fence *f = *state;
    struct stw_fence_epoch epoch;
    stw_fence_open(f, 2000, &seventh);
    (void)stw_fence_enter(stw_fence_take(f));
    assert_true(stw_fence_may_write());
    assert_true(stw_fence_epoch(&epoch));
    assert_int_equal(epoch.number, 7);
    assert_string_equal(epoch.lease, "n/l");
    boot_ms = 1999;
    stw_fence_extend(f, 3000);
    boot_ms = 2999;
    assert_true(stw_fence_may_write());
    boot_ms = 3000;
    assert_false(stw_fence_may_write());
}

static void test_fence_counts_suspended_time(void **state)
{
    struct stw_fence *f = *state;
    stw_fence_open(f, 2000, &seventh);
    (void)stw_fence_enter(stw_fence_take(f));
    boot_ms += 3600 * 1000; /* awake_ms stops */
    assert_false(stw_fence_may_write());
}

static void test_fence_of_another_term_stays_closed(void **state)
{
    struct stw_fence *f = *state;
    stw_fence_open(f, 2000, &seventh);
    (void)stw_fence_enter(stw_fence_take(f));
    stw_fence_close(f);
    assert_false(stw_fence_may_write());
    stw_fence_open(f, 5000, &seventh);
    assert_false(stw_fence_may_write());
    struct stw_fence_ticket old = stw_fence_enter(stw_fence_take(f));
    assert_true(stw_fence_may_write());
    assert_false(stw_fence_allows(old));
}

static void test_fence_without_election_never_closes(void **state)
{
    struct stw_fence *f = *state;
    stw_fence_open(f, STW_FENCE_FOREVER, &(struct stw_fence_epoch){0});
    (void)stw_fence_enter(stw_fence_take(f));
    boot_ms = UINT64_MAX - 1;
    assert_true(stw_fence_may_write());
}

/* Foreign systems are not asked, although the thread may write to the API server. */
static void test_shadow_mode_contacts_no_other_system(void **state)
{
    struct stw_fence *f = *state;
    struct stw_error err = {0};
    stw_fence_set_shadow(f);
    stw_fence_open(f, STW_FENCE_FOREVER, &seventh);
    assert_int_equal(stw_fence_check(&err), 0); /* no ticket */
    (void)stw_fence_enter(stw_fence_take(f));
    assert_true(stw_fence_may_write());
    assert_false(stw_fence_was_refused());
    assert_int_equal(stw_fence_check(&err), -1);
    assert_int_equal(err.code, STW_ERR_CANCELLED);
    assert_true(stw_fence_was_refused());
    (void)stw_fence_enter(stw_fence_take(f)); /* the next run */
    assert_false(stw_fence_was_refused());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_without_fence_may_write),
        cmocka_unit_test_setup_teardown(test_fence_is_closed_until_opened, make, drop),
        cmocka_unit_test_setup_teardown(test_fence_closes_at_its_deadline, make, drop),
        cmocka_unit_test_setup_teardown(test_fence_counts_suspended_time, make, drop),
        cmocka_unit_test_setup_teardown(test_fence_of_another_term_stays_closed, make, drop),
        cmocka_unit_test_setup_teardown(test_fence_without_election_never_closes, make, drop),
        cmocka_unit_test_setup_teardown(test_shadow_mode_contacts_no_other_system, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
