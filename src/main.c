/* SPDX-License-Identifier: Apache-2.0
 *
 * The steward program: dispatches to the subcommands. */
#include "base/util.h"
#include "cmd/cmd.h"

#include <stdio.h>

static void print_program_help(FILE *out)
{
    fprintf(out, "%s\nUsage: steward COMMAND [OPTIONS]\n\nCommands\n", stw_about);
    for (const struct stw_command *const *c = stw_commands; *c; c++)
        fprintf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
    fputs("\n`steward COMMAND --help` says more.\n", out);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_program_help(stderr);
        return STW_EXIT_USAGE;
    }
    if (stw_streq(argv[1], "--help") || stw_streq(argv[1], "-h") || stw_streq(argv[1], "help")) {
        print_program_help(stdout);
        return STW_EXIT_OK;
    }
    if (stw_streq(argv[1], "--version"))
        return stw_command_version.run(argc - 1, argv + 1);
    for (const struct stw_command *const *c = stw_commands; *c; c++)
        if (stw_streq(argv[1], (*c)->name))
            return (*c)->run(argc - 1, argv + 1);
    fprintf(stderr, "steward: unknown command \"%s\"; `steward --help` lists them\n", argv[1]);
    return STW_EXIT_USAGE;
}
