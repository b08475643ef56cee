/* SPDX-License-Identifier: Apache-2.0
 *
 * A program with a kind, a command and options of its own, without anything of steward. */
#include "operator/main.h"

#include "base/util.h"
#include "controller/reconcile.h"
#include "operator/extension.h"
#include "schema/rows.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct lamp {
    int64_t watts;
};

static const struct stw_field lamp_fields[] = {
    {.name = "watts",
     STW_FIELD(STW_T_INT, struct lamp, watts),
     .help = "Power.",
     .required = true,
     STW_RANGE(1, 100)},
    {0},
};

static const struct stw_kind lamp = {
    .resource = {.group = "example.org",
                 .version = "v1",
                 .kind = "Lamp",
                 .plural = "lamps",
                 .namespaced = true},
    .singular = "lamp",
    .help = "A lamp.",
    .spec = lamp_fields,
    .spec_size = sizeof(struct lamp),
    .operations = STW_CREATE | STW_UPDATE,
};

struct lamp_run {
    STW_SUBJECT;
    struct lamp spec;
};

static void reconcile_lamp(struct stw_subject *s, struct stw_result *result)
{
    (void)s, (void)result;
}

static const struct stw_controller lamp_controller = {
    STW_CONTROLLER_OF("lamp", lamp),
    STW_OWN_WATCH(lamp),
    STW_RUN_STATE(struct lamp_run, spec),
    .reconcile = reconcile_lamp,
};

struct lamp_options {
    char *color;
};

static const struct stw_extra_flag extra_flags[] = {
    {"validate",
     "output",
     {.name = "color",
      .arg = "NAME",
      .def = "red",
      .offset = offsetof(struct lamp_options, color),
      .help = "of the lamp"}},
    {"validate", NULL, {.name = "quiet", .help = "another text"}},
    {0},
};

static char color[16];
static int opened, closed;

static int check_color(const struct stw_host *h, struct stw_error *err)
{
    const struct lamp_options *o = h->options;
    return stw_streq(o->color, "none") ? stw_fail(err, STW_ERR_INVALID, "no color") : 0;
}

static int open_lamps(struct stw_host *h, struct stw_error *err)
{
    const struct lamp_options *o = h->options;
    (void)err;
    opened++;
    stw_format(color, sizeof(color), "%s", o->color);
    return 0;
}

static void close_lamps(struct stw_host *h)
{
    (void)h;
    closed++;
}

static const struct stw_extension extension = {
    .options_size = sizeof(struct lamp_options),
    .flags = extra_flags,
    .check = check_color,
    .open = open_lamps,
    .close = close_lamps,
};

static int blink(const struct stw_call *call)
{
    assert_string_equal(call->op->name, "lamps");
    assert_string_equal(call->argv[0], "blink");
    return call->argc == 2 ? 7 : 8;
}

static const struct stw_command blink_command = {.name = "blink",
                                                 .summary = "on and off",
                                                 .usage = "",
                                                 .flags = (const struct stw_flag[]){{0}},
                                                 .run = blink};

static const struct stw_operator op = {
    .name = "lamps",
    .domain = "lamps.example.org",
    .metric_prefix = "lamps",
    .version = "3",
    .about = "lamps switches lamps.\n",
    .kinds = (const struct stw_kind *const[]){&lamp, NULL},
    .controllers = (const struct stw_controller *const[]){&lamp_controller, NULL},
    .commands = (const struct stw_command *const[]){&blink_command, NULL},
    .extension = &extension,
};

/* Runs a command line; what it prints goes to `out`. */
static int run(const struct stw_operator *o, char *out, size_t size, const char *line)
{
    char copy[256], *argv[8] = {NULL}, *rest = NULL;
    int argc = 0, saved = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    assert_non_null(file);
    stw_format(copy, sizeof(copy), "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    (void)fflush(stdout);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    int status = stw_operator_main(o, argc, argv);
    (void)fflush(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    assert_true(dup2(saved_err, STDERR_FILENO) >= 0);
    (void)close(saved);
    (void)close(saved_err);
    rewind(file);
    out[fread(out, 1, size - 1, file)] = '\0';
    (void)fclose(file);
    return status;
}

static void test_help_lists_the_commands(void **state)
{
    char out[8192];
    (void)state;
    assert_int_equal(run(&op, out, sizeof(out), "lamps --help"), STW_EXIT_OK);
    assert_non_null(strstr(out, "lamps switches lamps."));
    assert_non_null(strstr(out, "Usage: lamps COMMAND"));
    assert_non_null(strstr(out, "  blink      on and off\n"));
    assert_null(strstr(out, "snapshot"));
    assert_int_equal(run(&op, out, sizeof(out), "lamps"), STW_EXIT_USAGE);
    assert_int_equal(run(&op, out, sizeof(out), "lamps snapshot"), STW_EXIT_USAGE);
    assert_string_equal(out, "lamps: unknown command \"snapshot\"; `lamps --help` lists them\n");
    assert_int_equal(run(&op, out, sizeof(out), "lamps blink twice"), 7);
}

static void test_print_shows_own_kinds(void **state)
{
    static char out[65536];
    (void)state;
    assert_int_equal(run(&op, out, sizeof(out), "lamps print crds"), STW_EXIT_OK);
    assert_non_null(strstr(out, "name: lamps.example.org"));
    assert_null(strstr(out, "mywebs"));
    assert_int_equal(run(&op, out, sizeof(out), "lamps print webhooks"), STW_EXIT_OK);
    assert_non_null(strstr(out, "name: vlamp.example.org"));
    assert_int_equal(run(&op, out, sizeof(out), "lamps --version"), STW_EXIT_OK);
    assert_null(strstr(out, "commit")); /* the extension has none */
    assert_ptr_equal(stw_operator_kind(&op, "example.org", "v1", "Lamp"), &lamp);
    assert_null(stw_operator_kind(&op, "example.org", "v1", "lamp"));
}

/* The status of `validate` for an object with this spec. */
static int validate(const char *options, const char *spec)
{
    char path[] = "/tmp/steward-test-XXXXXX.yaml", line[128], out[4096];
    FILE *file = fdopen(mkstemps(path, 5), "w");
    assert_non_null(file);
    fprintf(file, "apiVersion: example.org/v1\nkind: Lamp\nmetadata: {name: a}\nspec: %s\n", spec);
    (void)fclose(file);
    stw_format(line, sizeof(line), "lamps validate %s %s", options, path);
    int status = run(&op, out, sizeof(out), line);
    (void)unlink(path);
    return status;
}

static void test_validate_applies_own_rules_and_options(void **state)
{
    char out[8192];
    (void)state;
    assert_int_equal(validate("", "{watts: 60}"), STW_EXIT_OK);
    assert_string_equal(color, "red");
    assert_int_equal(validate("--color=blue", "{watts: 101}"), STW_EXIT_REFUSED);
    assert_string_equal(color, "blue");
    assert_int_equal(opened, 2);
    assert_int_equal(validate("--color=none", "{watts: 60}"), STW_EXIT_USAGE);
    assert_int_equal(opened, 2); /* the check comes first */
    assert_int_equal(closed, opened);
    assert_int_equal(run(&op, out, sizeof(out), "lamps validate --help"), STW_EXIT_OK);
    assert_true(strstr(out, "--output") < strstr(out, "--color"));
    assert_true(strstr(out, "--color") < strstr(out, "--quiet"));
    assert_non_null(strstr(out, "another text"));
    assert_int_equal(run(&op, out, sizeof(out), "lamps audit --color=red"), STW_EXIT_USAGE);
}

/* The mistake is named, and the command does nothing. */
static void test_every_command_refuses_invalid_tables(void **state)
{
    static const char *const lines[] = {
        "lamps run",     "lamps webhook", "lamps validate x.yaml", "lamps print crds",
        "lamps doctor",  "lamps audit",   "lamps version",         "lamps blink twice",
        "lamps migrate", "lamps top",     "lamps uninstall",       "lamps --help"};
    struct stw_field fields[] = {lamp_fields[0], {0}};
    struct stw_kind kind = lamp;
    struct stw_controller controller = lamp_controller;
    struct stw_operator wrong = op;
    (void)state;
    fields[0].def = "sixty";
    kind.spec = fields;
    controller.kind = &kind;
    controller.resource = &kind.resource;
    wrong.kinds = (const struct stw_kind *const[]){&kind, NULL};
    wrong.controllers = (const struct stw_controller *const[]){&controller, NULL};
    for (size_t i = 0; i < STW_COUNT(lines); i++) {
        char out[8192];
        assert_int_equal(run(&wrong, out, sizeof(out), lines[i]), STW_EXIT_REFUSED);
        assert_string_equal(out, "lamps: the program is wrong: Lamp: spec.watts: the default sixty "
                                 "is not JSON\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help_lists_the_commands),
        cmocka_unit_test(test_print_shows_own_kinds),
        cmocka_unit_test(test_validate_applies_own_rules_and_options),
        cmocka_unit_test(test_every_command_refuses_invalid_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
