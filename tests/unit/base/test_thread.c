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

static void test_thread_blocks_signals_only_in_itself(void **state)
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

static void test_thread_start_error_names_the_thread(void **state)
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

static void test_scoped_lock_unlocks_on_every_exit(void **state)
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
        cmocka_unit_test(test_thread_blocks_signals_only_in_itself),
        cmocka_unit_test(test_thread_start_error_names_the_thread),
        cmocka_unit_test(test_scoped_lock_unlocks_on_every_exit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
