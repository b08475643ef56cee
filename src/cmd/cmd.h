/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands: the top layer, which may use every module. */
#ifndef STW_CMD_CMD_H
#define STW_CMD_CMD_H

#define STW_EXIT_OK 0
#define STW_EXIT_REFUSED 1 /* validate: an object was refused; else: it failed */
#define STW_EXIT_USAGE 2   /* wrong usage, or unreadable input */

struct stw_command {
    const char *name;
    const char *summary;               /* one line of `steward --help` */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit status */
};

int stw_cmd_run(int argc, char **argv);
int stw_cmd_webhook(int argc, char **argv);
int stw_cmd_validate(int argc, char **argv);
int stw_cmd_doctor(int argc, char **argv);
int stw_cmd_audit(int argc, char **argv);
int stw_cmd_uninstall(int argc, char **argv);
int stw_cmd_snapshot(int argc, char **argv);
int stw_cmd_print(int argc, char **argv);
int stw_cmd_version(int argc, char **argv);

#endif
