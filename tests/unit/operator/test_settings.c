/* SPDX-License-Identifier: Apache-2.0
 *
 * The log level follows the configuration file, unless the command line names one. */
#include "operator/main/settings.h"

#include "base/log.h"
#include "base/util.h"
#include "operator/command.h"
#include "support/refuse.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static enum stw_log_level level_now(void)
{
    enum stw_log_level was = stw_log_set_level(STW_LOG_INFO);
    (void)stw_log_set_level(was);
    return was;
}

static void quiet(void)
{
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static void test_log_level_follows_the_file(void **state)
{
    static const struct {
        const char *text;
        enum stw_log_level level;
    } steps[] = {
        {"logLevel: debug\n", STW_LOG_DEBUG},
        {"workers: 8\nlogLevel: \"error\"\n", STW_LOG_ERROR},
        {"logLevel: loud\n", STW_LOG_ERROR},                      /* refused */
        {"logLevel: [debug]\n", STW_LOG_ERROR},                   /* refused */
        {"logLevel: debugdebugdebugdebug\n", STW_LOG_ERROR},      /* refused */
        {"logLevel: [\n", STW_LOG_ERROR},                         /* not YAML */
        {"- logLevel: debug\n", STW_LOG_INFO},                    /* not a map: no level is set */
        {"logLevel: warn\ntargets: [{name: 5}]\n", STW_LOG_WARN}, /* an error in another part */
        {"workers: 8\n", STW_LOG_INFO},                           /* the default again */
        {"logLevel: warn\n", STW_LOG_WARN},
        {"", STW_LOG_INFO},
    };
    struct stw_settings settings = {.config = (char[]){"steward.yaml"}};
    (void)state;
    quiet();
    for (size_t i = 0; i < STW_COUNT(steps); i++) {
        stw_settings_reread(&settings, steps[i].text, strlen(steps[i].text));
        assert_int_equal(level_now(), steps[i].level);
    }
}

static void test_command_line_log_level_wins(void **state)
{
    struct stw_settings settings = {.config = (char[]){"steward.yaml"}, .log_level_given = true};
    (void)state;
    quiet();
    stw_settings_reread(&settings, "logLevel: debug\n", 16);
    assert_int_equal(level_now(), STW_LOG_INFO);
}

static const struct stw_operator op = {.name = "test"};

static struct stw_call call_of(int argc, char **argv)
{
    return (struct stw_call){&op, &stw_command_run, argc, argv};
}

static void test_command_line_settings_are_recognised(void **state)
{
    char *with[] = {(char[]){"run"}, (char[]){"--log-level=warn"}, NULL};
    char *without[] = {(char[]){"run"}, (char[]){"--log-format=text"}, NULL};
    struct stw_settings a = {0}, b = {0};
    (void)state;
    const struct stw_call first = call_of(2, with), second = call_of(2, without);
    assert_int_equal(stw_settings_load(&first, &a), -1);
    assert_true(a.log_level_given);
    assert_int_equal(level_now(), STW_LOG_WARN);
    assert_int_equal(stw_settings_load(&second, &b), -1);
    assert_false(b.log_level_given);
    stw_settings_done(&first, &a);
    stw_settings_done(&second, &b);
}

/* A shorter list of namespaces, or of clients of the webhook, would be another setting. */
static void test_list_without_memory_is_an_error(void **state)
{
    char **list;
    struct stw_error err = {0};
    (void)state;
    for (int allowed = 0; allowed < 4; allowed++) {
        left = allowed;
        int rc = stw_list_split("a,,bc", &list, &err);
        left = -1;
        assert_int_equal(rc, -1);
        assert_null(list);
        assert_string_equal(err.text, "out of memory");
    }
    assert_int_equal(stw_list_split("a,,bc", &list, &err), 0);
    assert_string_equal(list[0], "a");
    assert_string_equal(list[1], "");
    assert_string_equal(list[2], "bc");
    assert_null(list[3]);
    stw_list_free(list);
    assert_int_equal(stw_list_split("", &list, &err), 0);
    assert_null(list);
    assert_int_equal(stw_list_split(NULL, &list, &err), 0);
    assert_null(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_level_follows_the_file),
        cmocka_unit_test(test_command_line_log_level_wins),
        cmocka_unit_test(test_command_line_settings_are_recognised),
        cmocka_unit_test(test_list_without_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
