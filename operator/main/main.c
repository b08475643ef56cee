/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/main.h"

#include "base/util.h"
#include "base/visible.h"
#include "controller/controller.h"
#include "operator/command.h"
#include "operator/main/completion.h"
#include "operator/main/program.h"
#include "schema/kind.h"

#include <assert.h>
#include <stdio.h>

#define SUMMARY_MAX 256

void stw_commands_list(const struct stw_operator *op,
                       const struct stw_command *ret[STW_COMMANDS_MAX + 1])
{
    static const struct stw_command *const first[] = {
        &stw_command_run,   &stw_command_webhook, &stw_command_validate, &stw_command_doctor,
        &stw_command_audit, &stw_command_top,     &stw_command_migrate,  &stw_command_uninstall,
    };
    static const struct stw_command *const last[] = {
        &stw_command_print,
        &stw_command_completion,
        &stw_command_version,
    };
    size_t n = 0;
    for (size_t i = 0; i < STW_COUNT(first); i++)
        ret[n++] = first[i];
    for (const struct stw_command *const *c = op->commands; c && *c; c++) {
        assert(n < STW_COMMANDS_MAX - STW_COUNT(last));
        ret[n++] = *c;
    }
    for (size_t i = 0; i < STW_COUNT(last); i++)
        ret[n++] = last[i];
    ret[n] = NULL;
}

static void print_program_help(const struct stw_operator *op,
                               const struct stw_command *const *commands, FILE *out)
{
    fprintf(out, "%s\nUsage: %s COMMAND [OPTIONS]\n\nCommands\n", op->about, stw_program_name());
    for (const struct stw_command *const *c = commands; *c; c++) {
        stw_autobuf struct stw_buf summary = STW_BUF_INIT(SUMMARY_MAX);
        stw_operator_expand(op, (*c)->summary, &summary);
        fprintf(out, "  %-10s %s\n", (*c)->name, stw_buf_str(&summary));
    }
    fprintf(out, "\n`%s COMMAND --help` says more.\n", stw_program_name());
}

int stw_operator_main(const struct stw_operator *op, int argc, char **argv)
{
    const struct stw_command *commands[STW_COMMANDS_MAX + 1];
    struct stw_error err = {0};
    if (stw_operator_check_tables(op, &err) != 0) {
        stw_print_line(stderr, "%s: the program is wrong: %s", op->name ? op->name : "operator",
                       err.text);
        return STW_EXIT_REFUSED;
    }
    stw_commands_list(op, commands);
    stw_program_set(op, argc > 0 ? argv[0] : "", commands);
    if (stw_program_completes())
        return stw_complete(op, argc - 1, argv + 1);
    if (argc < 2) {
        print_program_help(op, commands, stderr);
        return STW_EXIT_USAGE;
    }
    if (stw_streq(argv[1], "--help") || stw_streq(argv[1], "-h") || stw_streq(argv[1], "help")) {
        print_program_help(op, commands, stdout);
        return STW_EXIT_OK;
    }
    const char *name = stw_streq(argv[1], "--version") ? "version" : argv[1];
    for (const struct stw_command *const *c = commands; *c; c++)
        if (stw_streq(name, (*c)->name))
            return (*c)->run(&(const struct stw_call){op, *c, argc - 1, argv + 1, op});
    stw_print_line(stderr, "%s: unknown command \"%s\"; `%s --help` lists them", op->name, argv[1],
                   stw_program_name());
    return STW_EXIT_USAGE;
}
