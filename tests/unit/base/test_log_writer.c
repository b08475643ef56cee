/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/telemetry/log_writer.h"
#include "base/thread.h"
#include "base/util.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#define THREADS 3
#define MANY 20000 /* lines of over 100 bytes: more than both buffers and a pipe hold */

static int ends[2];
static char text[8 << 20];
static size_t text_len;

static void begin(void)
{
    struct stw_error err = {0};
    stw_log_writer_prepare();
    assert_int_equal(stw_log_writer_start(&err), 0);
}

/* Reads until the writing end is closed. */
static void *read_all(void *ctx)
{
    ssize_t n;
    (void)ctx;
    for (text_len = 0; (n = read(ends[0], text + text_len, sizeof(text) - 1 - text_len)) > 0;)
        text_len += (size_t)n;
    text[text_len] = '\0';
    return NULL;
}

static pthread_t start_reader(void)
{
    struct stw_error err = {0};
    pthread_t thread;
    assert_int_equal(stw_thread_start(&thread, "reader", 0, read_all, NULL, &err), 0);
    return thread;
}

static void end_reader(pthread_t thread)
{
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, STDERR_FILENO);
    (void)close(ends[1]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(ends[0]);
}

static void *log_many(void *number)
{
    for (int i = 0; i < MANY; i++)
        stw_log(STW_LOG_INFO, "line", STW_INT("thread", (intptr_t)number), STW_INT("i", i),
                STW_STR("filler", "0123456789012345678901234567890123456789012345678901234567890"));
    return NULL;
}

/* Checks that the lines of each thread are in order.  Returns how many there are, and the sum of
 * the lines that report lost ones. */
static unsigned count_lines(uint64_t *ret_lost, unsigned *ret_reports)
{
    int last[THREADS] = {-1, -1, -1};
    unsigned count = 0;
    *ret_lost = *ret_reports = 0;
    for (char *rest = text, *line = strsep(&rest, "\n"); rest; line = strsep(&rest, "\n")) {
        int thread, i;
        unsigned long long lost;
        const char *report = strstr(line, "log lines were dropped");
        if (report && sscanf(strstr(report, "lines="), "lines=%llu", &lost) == 1) {
            *ret_lost += lost;
            ++*ret_reports;
            continue;
        }
        assert_int_equal(sscanf(line, "%*s INFO  line thread=%d i=%d", &thread, &i), 2);
        assert_in_range(thread, 0, THREADS - 1);
        assert_true(i > last[thread]);
        last[thread] = i;
        count++;
    }
    return count;
}

static void test_unread_log_blocks_no_thread(void **state)
{
    pthread_t threads[THREADS];
    struct stw_error err = {0};
    uint64_t before = stw_log_dropped(), lost;
    unsigned reports;
    (void)state;
    begin();
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(stw_thread_start(&threads[i], "logs", 0, log_many, (void *)i, &err), 0);
    for (size_t i = 0; i < THREADS; i++) /* hangs, if one waits */
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    uint64_t dropped = stw_log_dropped() - before;
    assert_in_range(dropped, 1, THREADS * MANY);
    pthread_t reader = start_reader();
    stw_log_writer_stop(60000);
    end_reader(reader);
    assert_non_null(strstr(text + text_len - 120, "were dropped"));
    assert_int_equal(count_lines(&lost, &reports) + lost, THREADS * MANY);
    assert_int_equal(lost, dropped);
    assert_in_range(reports, 1, 100);
}

static void test_log_stop_writes_the_last_lines_in_order(void **state)
{
    uint64_t lost;
    unsigned reports;
    (void)state;
    stw_log_writer_prepare();
    for (int i = 0; i < 100; i++) /* before the thread runs */
        stw_log(STW_LOG_INFO, "line", STW_INT("thread", 0), STW_INT("i", i));
    struct stw_error err = {0};
    assert_int_equal(stw_log_writer_start(&err), 0);
    pthread_t reader = start_reader();
    for (int i = 100; i < 3000; i++)
        stw_log(STW_LOG_INFO, "line", STW_INT("thread", 0), STW_INT("i", i));
    stw_log_writer_stop(60000);
    stw_log(STW_LOG_INFO, "line", STW_INT("thread", 1), STW_INT("i", 0)); /* written at once */
    end_reader(reader);
    assert_int_equal(count_lines(&lost, &reports), 3001);
    assert_int_equal(lost, 0);
}

/* Without a thread, for example when the process ends early. */
static void test_log_stop_without_thread_writes_the_lines(void **state)
{
    (void)state;
    stw_log_writer_prepare();
    stw_log(STW_LOG_INFO, "early");
    stw_log_writer_stop(1000);
    pthread_t reader = start_reader();
    end_reader(reader);
    assert_non_null(strstr(text, "INFO  early\n"));
}

/* Another process that shares the descriptor has made it non-blocking. */
static void test_nonblocking_log_descriptor_loses_nothing(void **state)
{
    uint64_t lost;
    unsigned reports;
    (void)state;
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    begin();
    for (int i = 0; i < 5000; i++)
        stw_log(STW_LOG_INFO, "line", STW_INT("thread", 0), STW_INT("i", i));
    pthread_t reader = start_reader();
    stw_log_writer_stop(60000);
    end_reader(reader);
    assert_int_equal(count_lines(&lost, &reports), 5000);
}

/* Lines that cannot be written are counted too. */
static void test_lines_to_a_closed_pipe_are_counted(void **state)
{
    uint64_t before = stw_log_dropped();
    (void)state;
    (void)close(ends[0]);
    begin();
    for (int i = 0; i < 10; i++)
        stw_log(STW_LOG_INFO, "line");
    stw_log_writer_stop(60000);
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, STDERR_FILENO);
    (void)close(ends[1]);
    assert_int_equal(stw_log_dropped() - before, 10);
}

static void *crash(void *ctx)
{
    if (ctx)
        __builtin_trap(); /* SIGILL from the processor */
    abort();
    return NULL;
}

/* What a child logs before it crashes.  Returns its wait status. */
static int crash_child(bool with_thread, bool by_fault, bool read_it)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct stw_error err = {0};
        pthread_t thread;
        (void)alarm(30);
        (void)signal(SIGILL, SIG_DFL); /* not cmocka's handler */
        stw_log_writer_prepare();
        if (with_thread && stw_log_writer_start(&err) != 0)
            _exit(3);
        for (int i = 0; i < (read_it ? 200 : MANY); i++)
            stw_log(STW_LOG_INFO, "line", STW_INT("thread", 0), STW_INT("i", i));
        if (stw_thread_start(&thread, "crash", 0, crash, by_fault ? &err : NULL, &err) == 0)
            (void)pthread_join(thread, NULL);
        _exit(4);
    }
    pthread_t reader = {0};
    if (read_it)
        reader = start_reader();
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (read_it) {
        end_reader(reader);
    } else {
        stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
    return status;
}

static void test_crash_writes_the_last_lines(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t lost;
        unsigned reports;
        if (i > 0)
            assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, ends[1]);
        int status = crash_child(i % 2, i / 2, true);
        assert_int_equal(count_lines(&lost, &reports), 200);
        /* A sanitizer has a handler of its own for faults, which exits. */
        assert_true(WIFSIGNALED(status) ||
                    (i / 2 && WIFEXITED(status) && WEXITSTATUS(status) != 4));
    }
}

static void test_crash_does_not_wait_for_the_log_reader(void **state)
{
    (void)state;
    int status = crash_child(true, false, false);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* The last test: the writer's thread stays in its write. */
static void test_log_stop_does_not_wait_for_the_reader(void **state)
{
    (void)state;
    begin();
    (void)log_many(0);
    uint64_t began = stw_now_ms(&stw_clock_system);
    stw_log_writer_stop(100);
    assert_in_range(stw_now_ms(&stw_clock_system) - began, 100, 20000);
    (void)log_many(0); /* nor does a line after it */
}

static int open_pipe(void **state)
{
    *state = NULL;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, ends[1]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_unread_log_blocks_no_thread, open_pipe),
        cmocka_unit_test_setup(test_log_stop_writes_the_last_lines_in_order, open_pipe),
        cmocka_unit_test_setup(test_log_stop_without_thread_writes_the_lines, open_pipe),
        cmocka_unit_test_setup(test_nonblocking_log_descriptor_loses_nothing, open_pipe),
        cmocka_unit_test_setup(test_lines_to_a_closed_pipe_are_counted, open_pipe),
        cmocka_unit_test_setup(test_crash_writes_the_last_lines, open_pipe),
        cmocka_unit_test_setup(test_crash_does_not_wait_for_the_log_reader, open_pipe),
        cmocka_unit_test_setup(test_log_stop_does_not_wait_for_the_reader, open_pipe),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
