/* SPDX-License-Identifier: Apache-2.0
 *
 * The steward program: dispatches to the subcommands. */
#include "base/util.h"
#include "cmd/cmd.h"

#include <stdio.h>

static const struct stw_command commands[] = {
    {"run", "admission webhook and controllers, in or beside a cluster", stw_cmd_run},
    {"webhook", "admission alone, from a certificate folder; needs no cluster", stw_cmd_webhook},
    {"validate", "give manifests the webhook's verdict, without a cluster", stw_cmd_validate},
    {"doctor", "check an installation, and say what to do next", stw_cmd_doctor},
    {"audit", "give stored objects the verdict that the webhook would give today", stw_cmd_audit},
    {"uninstall", "remove webhooks and finalizers, so that nothing hangs without steward",
     stw_cmd_uninstall},
    {"snapshot", "take, fetch, verify, list and remove snapshots of an etcd", stw_cmd_snapshot},
    {"print", "CRDs, webhook configurations and RBAC rules as YAML", stw_cmd_print},
    {"version", "version and libraries", stw_cmd_version},
};

static void print_program_help(FILE *out)
{
    fputs("steward defaults and validates custom resources at admission and reconciles what was\n"
          "accepted.\n\n"
          "Usage: steward COMMAND [OPTIONS]\n\n"
          "Commands\n",
          out);
    for (size_t i = 0; i < STW_COUNT(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
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
        return stw_cmd_version(argc - 1, argv + 1);
    for (size_t i = 0; i < STW_COUNT(commands); i++)
        if (stw_streq(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "steward: unknown command \"%s\"; `steward --help` lists them\n", argv[1]);
    return STW_EXIT_USAGE;
}
