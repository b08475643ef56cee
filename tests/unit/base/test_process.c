/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

extern char **environ;

static struct stw_error err;
static int status;

static int run_script(const char *script, struct stw_buf *out, uint32_t timeout_ms)
{
    const char *const words[] = {"sh", "-c", script, NULL};
    char *argv[STW_COUNT(words)];
    memcpy(argv, words, sizeof(words));
    const struct stw_process p = {.path = "/bin/sh",
                                  .argv = argv,
                                  .envp = environ,
                                  .own_group = true,
                                  .timeout_ms = timeout_ms};
    err = (struct stw_error){0};
    status = -1;
    return stw_process_run(&p, out, &status, &err);
}

static void test_process_output_and_status_are_returned(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(100000);
    (void)state;
    assert_int_equal(run_script("echo out; echo err >&2; exit 3", &out, 30000), 0);
    assert_string_equal(stw_buf_str(&out), "out\n");
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    stw_buf_clear(&out);
    assert_int_equal(run_script("head -c 90000 /dev/zero", &out, 30000), 0);
    assert_int_equal(out.len, 90000);
    assert_int_equal(run_script("kill -9 $$", &out, 30000), 0);
    assert_true(WIFSIGNALED(status));
}

/* A program must not get a socket or a file of ours, nor our standard input. */
static void test_process_inherits_no_descriptors(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    int fd = dup2(STDOUT_FILENO, 77);
    (void)state;
    assert_int_equal(fd, 77);
    assert_int_equal(run_script("[ -e /proc/self/fd/77 ] && echo open; read x && echo read; "
                                "[ $(readlink /proc/self/fd/0) = /dev/null ] && echo null",
                                &out, 30000),
                     0);
    assert_string_equal(stw_buf_str(&out), "null\n");
    (void)close(fd);
}

static void test_process_output_is_limited(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    (void)state;
    assert_int_equal(run_script("cat /dev/zero", &out, 30000), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    stw_buf_clear(&out);
    assert_int_equal(run_script("head -c 1000 /dev/zero", &out, 30000), 0); /* the limit itself */
}

/* The deadline ends what the program has started, too. */
static void test_hanging_process_is_killed(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    uint64_t before = stw_now_ms(&stw_clock_system), until = before + 20000;
    (void)state;
    assert_int_equal(run_script("sleep 1000 & echo $!; wait", &out, 500), -1);
    assert_int_equal(err.code, STW_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "did not end in 1 s"));
    assert_true(stw_now_ms(&stw_clock_system) - before < 15000);
    int child = (int)strtol(stw_buf_str(&out), NULL, 10);
    assert_true(child > 1);
    char path[64];
    stw_format(path, sizeof(path), "/proc/%d/stat", child);
    for (;;) { /* dead, or a zombie that init has not reaped */
        char text[512] = "";
        FILE *f = fopen(path, "r");
        bool dead =
            !f || !fgets(text, sizeof(text), f) || strstr(text, ") Z") || strstr(text, ") X");
        if (f)
            (void)fclose(f);
        if (dead)
            break;
        assert_true(stw_now_ms(&stw_clock_system) < until);
        (void)usleep(10000);
    }
}

/* What it leaves running keeps the pipe open: it is not waited for. */
static void test_background_child_is_not_waited_for(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    uint64_t before = stw_now_ms(&stw_clock_system);
    (void)state;
    assert_int_equal(run_script("sleep 60 & echo $!", &out, 50000), 0);
    assert_true(stw_now_ms(&stw_clock_system) - before < 40000);
    int child = (int)strtol(stw_buf_str(&out), NULL, 10);
    assert_true(child > 1);
    assert_int_equal(kill(child, SIGKILL), 0);
}

static void test_missing_program_is_an_error(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    char name[] = "x", *const argv[] = {name, NULL};
    const struct stw_process p = {.path = "/nowhere/x", .argv = argv, .envp = environ};
    (void)state;
    assert_int_equal(stw_process_run(&p, &out, &status, &err), -1);
    assert_non_null(strstr(err.text, "cannot be started"));
}

static void test_the_current_folder_is_not_searched(void **state)
{
    char path[4096];
    (void)state;
    assert_int_equal(setenv("PATH", ".::bin:/bin:/usr/bin", 1), 0);
    assert_int_equal(stw_process_find("sh", path, sizeof(path)), 0);
    assert_string_equal(path, "/bin/sh");
    assert_int_equal(chdir("/bin"), 0);
    assert_int_equal(setenv("PATH", ".::", 1), 0);
    assert_int_equal(stw_process_find("sh", path, sizeof(path)), -1);
    assert_int_equal(setenv("PATH", "/", 1), 0);
    assert_int_equal(stw_process_find("bin", path, sizeof(path)), -1); /* a folder */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process_output_and_status_are_returned),
        cmocka_unit_test(test_process_inherits_no_descriptors),
        cmocka_unit_test(test_process_output_is_limited),
        cmocka_unit_test(test_hanging_process_is_killed),
        cmocka_unit_test(test_background_child_is_not_waited_for),
        cmocka_unit_test(test_missing_program_is_an_error),
        cmocka_unit_test(test_the_current_folder_is_not_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
