/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "base/util.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>

struct seen {
    bool blocked;
};

static void *look(void *ctx)
{
    struct seen *seen = ctx;
    sigset_t mask;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    seen->blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
    return NULL;
}

static void test_blocks_signals_there_and_not_here(void **state)
{
    struct seen seen = {0};
    struct stw_error err = {0};
    pthread_t thread;
    sigset_t mask;
    (void)state;
    assert_int_equal(stw_thread_start(&thread, "looker", 0, look, &seen, &err), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(seen.blocked);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGTERM), 0);
}

static void test_names_the_thread_that_cannot_start(void **state)
{
    struct stw_error err = {0};
    pthread_t thread;
    (void)state;
    assert_int_equal(stw_thread_start(&thread, "looker", 1, look, NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_INTERNAL);
    assert_string_equal(err.text, "cannot start the thread \"looker\": Invalid argument");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_locked(void)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return true;
    (void)pthread_mutex_unlock(&lock);
    return false;
}

static bool leave_early(int way)
{
    STW_LOCKED(&lock);
    STW_ASSERT_LOCKED(&lock);
    if (way == 0)
        return is_locked();
    return way == 1 && is_locked();
}

static void test_unlocks_on_every_way_out(void **state)
{
    (void)state;
    assert_true(leave_early(0));
    assert_false(is_locked());
    assert_true(leave_early(1));
    assert_false(is_locked());
    for (int i = 0; i < 3; i++) {
        STW_LOCKED(&lock);
        if (i == 0)
            continue;
        assert_true(is_locked());
        break;
    }
    assert_false(is_locked());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_signals_there_and_not_here),
        cmocka_unit_test(test_names_the_thread_that_cannot_start),
        cmocka_unit_test(test_unlocks_on_every_way_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
