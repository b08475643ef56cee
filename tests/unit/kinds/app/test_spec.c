/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/app/spec.h"

#include "support/judge.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#define GOOD                                                                                       \
    "\"image\":\"shop:1.4\",\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"},"   \
    "\"limits\":{\"memory\":\"64Mi\"}}"

/* `count` variables of `size` bytes each, their names of one byte included. */
static void assert_environment(size_t count, size_t size, const char *want)
{
    stw_autobuf struct stw_buf b = STW_BUF_INIT(2 << 20);
    stw_buf_adds(&b, "{\"metadata\":{\"name\":\"web\"},\"spec\":{" GOOD ",\"config\":{"
                     "\"environment\":{");
    for (size_t i = 0; i < count; i++) {
        stw_buf_addf(&b, "%s\"%c\":\"", i ? "," : "", (char)('A' + i));
        char *at = stw_buf_reserve(&b, size - 1);
        assert_non_null(at);
        memset(at, 'x', size - 1);
        b.len += size - 1;
        stw_buf_addc(&b, '"');
    }
    stw_buf_adds(&b, "}}}}");
    assert_answer(&stw_kind_app, stw_buf_str(&b), NULL, NULL, want);
}

static void test_environment_is_bounded_in_total(void **state)
{
    (void)state;
    assert_environment(9, 102400, "");
    assert_environment(9, 102401,
                       "spec.config.environment: Invalid value: must be at most 921600 bytes in "
                       "total\n");
}

/* What is only passed on has the limits of everything that steward does not know. */
static void test_members_that_are_passed_on_are_bounded(void **state)
{
    stw_autobuf struct stw_buf b = STW_BUF_INIT(1 << 20);
    (void)state;
    stw_buf_adds(&b, "{\"metadata\":{\"name\":\"web\"},\"spec\":{" GOOD
                     ",\"env\":[{\"name\":\"A\",\"later\":[0");
    for (int i = 0; i < 4096; i++)
        stw_buf_adds(&b, ",0");
    stw_buf_adds(&b, "]}]}}");
    struct question q;
    ask(&q, &stw_kind_app, stw_buf_str(&b), NULL, NULL);
    stw_autofree char *got = answer(&q.a);
    ask_done(&q);
    assert_non_null(strstr(got, "spec.env[0][later]: Invalid value: "));
    assert_non_null(strstr(got, "must be at most 4096 values\n"));
}

/* Whether the kernel starts a program with A and a value, of `size` bytes together. */
static bool starts_with(size_t size)
{
    stw_autofree char *variable = malloc(size + 2);
    assert_non_null(variable);
    memset(variable, 'x', size + 1);
    memcpy(variable, "A=", 2);
    variable[size + 1] = '\0';
    char program[] = "true", *const argv[] = {program, NULL}, *const env[] = {variable, NULL};
    int status = -1;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execve("/bin/true", argv, env);
        _exit(errno == E2BIG ? 7 : 8);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7));
    return WEXITSTATUS(status) == 0;
}

/* What Linux takes, with pages of 4 KiB. */
static void test_variable_fits_into_the_arguments_of_a_program(void **state)
{
    (void)state;
    assert_environment(1, 131070, "");
    assert_environment(1, 131071,
                       "spec.config.environment[A]: Invalid value: must be at most 131070 bytes, "
                       "name and value together, or no program starts with it\n");
    if (sysconf(_SC_PAGESIZE) != 4096)
        return;
    assert_true(starts_with(131070));
    assert_false(starts_with(131071));
}

static void test_rollout_may_lack_as_many_pods_as_its_strategy_says(void **state)
{
    static const struct {
        const char *surge, *unavailable;
        int64_t replicas, want;
    } cases[] = {
        {"\"25%\"", "0", 4, 0},  {"\"25%\"", "1", 4, 1},
        {"1", "\"25%\"", 7, 1},  {"\"0%\"", "\"10%\"", 5, 1}, /* both come to 0 */
        {"1", "\"100%\"", 5, 5},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autoarena struct stw_arena *arena = stw_arena_create();
        stw_autojson struct stw_json_doc doc = {0};
        char text[128];
        struct app_spec app;
        snprintf(text, sizeof(text),
                 "{\"image\":\"a\",\"strategy\":{\"maxSurge\":%s,\"maxUnavailable\":%s}}",
                 cases[i].surge, cases[i].unavailable);
        scan(&doc, text);
        assert_int_equal(stw_kind_decode(&stw_kind_app, stw_json_root(&doc), arena, &app, NULL), 0);
        assert_int_equal(app_max_unavailable(&app, cases[i].replicas), cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment_is_bounded_in_total),
        cmocka_unit_test(test_variable_fits_into_the_arguments_of_a_program),
        cmocka_unit_test(test_members_that_are_passed_on_are_bounded),
        cmocka_unit_test(test_rollout_may_lack_as_many_pods_as_its_strategy_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
