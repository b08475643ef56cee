/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/flags.h"

#include "base/util.h"
#include "operator/extension.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct stw_operator own = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward", .version = "0"};

struct sample {
    char *log_level, *names;
    bool leader_elect;
    int64_t workers, delay_ms;
};

#define AT(member) .offset = offsetof(struct sample, member)

static const struct stw_flag table[] = {
    {.name = "log-level", .letter = 'l', .arg = "LEVEL", .def = "info", .help = "", AT(log_level)},
    {.name = "names", .arg = "A,B", .help = "", AT(names)},
    {.name = "leader-elect", .type = STW_FLAG_BOOL, .help = "", AT(leader_elect)},
    {.name = "workers",
     .type = STW_FLAG_INT,
     .arg = "N",
     .def = "4",
     .min = 1,
     .max = 8,
     .help = "",
     AT(workers)},
    {.name = "delay", .type = STW_FLAG_DURATION, .arg = "D", .def = "0", .help = "", AT(delay_ms)},
    {0},
};

#define ARGS_MAX 6
struct call {
    const char *args[ARGS_MAX];
    const char *error; /* part of the text; NULL: valid */
};

static int parse(const char *const *args, struct sample *s, struct stw_error *err)
{
    char *argv[ARGS_MAX + 2] = {(char[]){"test"}};
    char copies[ARGS_MAX][64];
    int argc = 1, operands;
    for (; argc <= ARGS_MAX && args[argc - 1]; argc++) {
        (void)snprintf(copies[argc - 1], sizeof(copies[0]), "%s", args[argc - 1]);
        argv[argc] = copies[argc - 1];
    }
    return stw_flags_parse(&own, table, s, argc, argv, &operands, err);
}

static void test_flag_values_are_parsed(void **state)
{
    (void)state;
    struct sample s = {0};
    struct stw_error err = {0};
    const char *const args[] = {"-l", "debug", "--workers=8", "--leader-elect", "--delay=1m", NULL};
    assert_int_equal(parse(args, &s, &err), 0);
    assert_string_equal(s.log_level, "debug");
    assert_null(s.names);
    assert_true(s.leader_elect);
    assert_int_equal(s.workers, 8);
    assert_int_equal(s.delay_ms, 60000);
    stw_flags_done(table, &s);
}

static void test_flags_have_defaults_and_can_be_off(void **state)
{
    (void)state;
    struct sample s = {.leader_elect = true};
    struct stw_error err = {0};
    const char *const args[] = {"--leader-elect=false", NULL};
    assert_int_equal(parse(args, &s, &err), 0);
    assert_string_equal(s.log_level, "info");
    assert_int_equal(s.workers, 4);
    assert_false(s.leader_elect);
    stw_flags_done(table, &s);
}

static void test_invalid_flags_are_refused(void **state)
{
    (void)state;
    static const struct call calls[] = {
        {{"--workers=9"}, "--workers: \"9\" is out of range"},
        {{"--workers=4x"}, "--workers: \"4x\" is not a whole number"},
        {{"--workers"}, "--workers needs a value: --workers=N"},
        {{"-l"}, "--log-level needs a value"},
        {{"--wrokers=4"}, "unknown option --wrokers=4"},
        {{"-z"}, "unknown option -z"},
        {{"--leader-elect=maybe"}, "\"maybe\" is not true or false"},
        {{"--delay=5"}, "\"5\" is not a duration such as 500ms or 10s"},
    };
    for (size_t i = 0; i < STW_COUNT(calls); i++) {
        struct sample s = {0};
        struct stw_error err = {0};
        assert_int_equal(parse(calls[i].args, &s, &err), -1);
        if (!strstr(err.text, calls[i].error))
            fail_msg("\"%s\" lacks \"%s\"", err.text, calls[i].error);
        stw_flags_done(table, &s);
    }
}

static void test_flag_help_is_printed(void **state)
{
    (void)state;
    struct sample s = {0};
    struct stw_error err = {0};
    const char *const args[] = {"--help", NULL};
    assert_int_equal(parse(args, &s, &err), 1);
    stw_flags_done(table, &s);
}

/* As a subcommand: it receives the parsed settings, and the operands in their order. */
static int subcommand(const struct stw_call *call, void *settings, int count, char **operands)
{
    assert_string_equal(call->argv[0], "test");
    const struct sample *s = settings;
    assert_string_equal(s->log_level, "debug");
    assert_int_equal(count, 2);
    assert_string_equal(operands[0], "first");
    assert_string_equal(operands[1], "second");
    assert_null(operands[2]);
    return 40;
}

static void test_command_runs_with_its_flags(void **state)
{
    (void)state;
    char name[] = "test", first[] = "first", flag[] = "-ldebug", second[] = "second";
    char bad[] = "--workers=9";
    char *argv[] = {name, first, flag, second, NULL}, *wrong[] = {name, bad, NULL};
    struct sample s = {0};
    static const struct stw_operator op = {.name = "test"};
    static const struct stw_command command = {.name = "test", .usage = "", .flags = table};
    const struct stw_call good = {&op, &command, 4, argv}, bad_call = {&op, &command, 2, wrong};
    assert_int_equal(stw_flags_run(&good, &s, subcommand), 40);
    assert_null(s.log_level); /* freed */
    assert_int_equal(stw_flags_run(&bad_call, &s, subcommand), STW_EXIT_USAGE);
    assert_null(s.log_level);
}

static void test_output_format_is_parsed(void **state)
{
    (void)state;
    bool json = false;
    assert_int_equal(stw_flags_output("test", "json", &json), 0);
    assert_true(json);
    assert_int_equal(stw_flags_output("test", "xml", &json), STW_EXIT_USAGE);
    assert_true(json);
    assert_int_equal(stw_flags_output("test", "text", &json), 0);
    assert_false(json);
}

static const char *const elsewhere[] = {"targets", NULL};

/* Parses `arg`, then a file with `yaml`. */
static int with_file(const char *yaml, const char *arg, struct sample *s, struct stw_error *err)
{
    char path[] = "/tmp/steward-test-XXXXXX", copy[64], name[] = "test";
    char *argv[] = {name, copy, NULL};
    int fd = mkstemp(path), operands;
    int argc = arg ? 2 : 1;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, yaml, strlen(yaml)), (ssize_t)strlen(yaml));
    (void)close(fd);
    (void)snprintf(copy, sizeof(copy), "%s", arg ? arg : "");
    argv[argc] = NULL;
    int r = stw_flags_parse(&own, table, s, argc, argv, &operands, err);
    if (r == 0)
        r = stw_flags_file(table, s, path, elsewhere, argc, argv, err);
    (void)unlink(path);
    return r;
}

static void test_configuration_file_sets_flags(void **state)
{
    (void)state;
    struct sample s = {0};
    struct stw_error err = {0};
    assert_int_equal(with_file("logLevel: warn\nworkers: 2\nleaderElect: yes\ndelay: 5s\n"
                               "names: [a, b]\ntargets: [{name: 5}]\n",
                               "--workers=3", &s, &err),
                     0);
    assert_string_equal(s.log_level, "warn");
    assert_int_equal(s.workers, 3); /* the command line wins */
    assert_true(s.leader_elect);
    assert_int_equal(s.delay_ms, 5000);
    assert_string_equal(s.names, "a,b");
    stw_flags_done(table, &s);
}

static void test_configuration_file_errors_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *error;
    } cases[] = {
        {"logLevel: info\nwrokers: 4\n", ":2:10: wrokers: unknown key"},
        {"workers: 99\n", ":1:10: workers: \"99\" is out of range"},
        {"workers: {a: 1}\n", "must be a plain value"},
        {"names: [1]\n", "must be a list of strings"},
        {"- a\n", ":1: must be a map of options"},
        {"workers: 1\n---\nworkers: 2\n", "one document is enough"},
        {"workers: [\n", ":"},
    };
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct sample s = {0};
        struct stw_error err = {0};
        assert_int_equal(with_file(cases[i].yaml, NULL, &s, &err), -1);
        if (!strstr(err.text, cases[i].error))
            fail_msg("\"%s\" lacks \"%s\"", err.text, cases[i].error);
        stw_flags_done(table, &s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flag_values_are_parsed),
        cmocka_unit_test(test_flags_have_defaults_and_can_be_off),
        cmocka_unit_test(test_invalid_flags_are_refused),
        cmocka_unit_test(test_flag_help_is_printed),
        cmocka_unit_test(test_command_runs_with_its_flags),
        cmocka_unit_test(test_output_format_is_parsed),
        cmocka_unit_test(test_configuration_file_sets_flags),
        cmocka_unit_test(test_configuration_file_errors_name_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
