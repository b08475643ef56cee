/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/memory_budget.h"

#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MIB(n) ((size_t)(n) << 20)
#define SHARE MIB(8) /* of the answers, at 128 MiB */
#define THREADS 8
#define ROUNDS 200
#define STEP ((size_t)300 << 10)

static size_t used(void)
{
    return stw_share_facts(STW_SHARE_ANSWERS).used;
}

static void test_small_kept_answers_are_not_counted(void **state)
{
    struct stw_kept small = {0}, large = {0};
    (void)state;
    assert_true(stw_kept_set(&large, MIB(6)));
    assert_true(stw_kept_set(&small, 64 << 10)); /* also when nothing is left */
    assert_int_equal(used(), MIB(6));
    assert_false(stw_kept_set(&small, (64 << 10) + 1));
    assert_true(stw_kept_set(&large, MIB(2)));
    assert_true(stw_kept_set(&small, MIB(1)));
    assert_int_equal(used(), MIB(3));
    assert_true(stw_kept_set(&small, 1));
    assert_int_equal(used(), MIB(2));
    stw_kept_done(&large);
    stw_kept_done(&small);
    assert_int_equal(used(), 0);
}

/* What is refused keeps what it had, and a quarter is left for objects of the API server. */
static void test_kept_answers_leave_a_quarter_of_the_share(void **state)
{
    struct stw_kept a = {0}, b = {0};
    (void)state;
    assert_true(stw_kept_set(&a, MIB(4)));
    assert_false(stw_kept_set(&b, MIB(2) + 1));
    assert_int_equal(b.bytes, 0);
    assert_true(stw_kept_set(&b, MIB(2)));
    assert_true(stw_share_take(STW_SHARE_ANSWERS, MIB(2)));
    assert_false(stw_kept_set(&a, MIB(4) + 1));
    assert_int_equal(used(), SHARE);
    stw_share_give_back(STW_SHARE_ANSWERS, MIB(2));
    stw_kept_done(&a);
    stw_kept_done(&b);
    assert_int_equal(used(), 0);
}

/* What a run has reserved elsewhere does not depend on what others keep. */
static void test_spare_memory_is_used_first(void **state)
{
    struct stw_kept others = {0}, own = {0};
    (void)state;
    assert_true(stw_kept_set(&others, MIB(6)));
    assert_false(stw_kept_set(&own, MIB(1)));
    assert_int_equal(stw_spare_end(), MIB(6)); /* the most that would have been kept for it */
    stw_spare_set(MIB(2));
    assert_true(stw_kept_set(&own, MIB(2)));
    assert_int_equal(used(), MIB(6));
    assert_false(stw_spare_has(1));
    assert_false(stw_kept_set(&own, MIB(3)));
    assert_int_equal(own.spare, MIB(2));
    stw_kept_done(&own);
    assert_true(stw_spare_has(MIB(2)));
    stw_kept_done(&others);
    assert_true(stw_kept_set(&own, MIB(3))); /* partly of the share */
    assert_int_equal(used(), MIB(1));
    stw_kept_done(&own);
    assert_int_equal(used(), 0);
    assert_int_equal(stw_spare_end(), MIB(8));
    assert_int_equal(stw_spare_end(), 0);
}

static void *hold_and_let_go(void *ctx)
{
    unsigned *refused = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        struct stw_kept one = {0};
        size_t bytes = STEP;
        while (stw_kept_set(&one, bytes))
            bytes += STEP;
        ++*refused;
        stw_kept_done(&one);
    }
    return NULL;
}

static void test_kept_memory_of_all_threads_is_bounded(void **state)
{
    pthread_t threads[THREADS];
    unsigned refused[THREADS] = {0};
    struct stw_error err = {0};
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            stw_thread_start(&threads[i], "hold", 0, hold_and_let_go, &refused[i], &err), 0);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(refused[i], ROUNDS);
    }
    assert_true(stw_share_facts(STW_SHARE_ANSWERS).peak <= SHARE);
    assert_int_equal(used(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_kept_answers_are_not_counted),
        cmocka_unit_test(test_kept_answers_leave_a_quarter_of_the_share),
        cmocka_unit_test(test_spare_memory_is_used_first),
        cmocka_unit_test(test_kept_memory_of_all_threads_is_bounded),
    };
    stw_memory_budget_set(MIB(128));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
