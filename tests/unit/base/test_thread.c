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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_signals_there_and_not_here),
        cmocka_unit_test(test_names_the_thread_that_cannot_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
