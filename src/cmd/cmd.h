/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands: the top layer, which may use every module. */
#ifndef STW_CMD_CMD_H
#define STW_CMD_CMD_H

#define STW_EXIT_OK 0
#define STW_EXIT_REFUSED 1 /* validate: an object was refused; else: it failed */
#define STW_EXIT_USAGE 2   /* wrong usage, or unreadable input */

struct stw_flag;

/* --help, the man page and the completion of shells are made from this. */
struct stw_command {
    const char *name;
    const char *summary;  /* one line of `steward --help` */
    const char *usage;    /* precedes the options of --help: what starts with "Usage: " or with
                           * spaces keeps its lines, all else is text */
    const char *operands; /* "a|b": one of these; "FILE"; "KIND"; NULL: none */
    const struct stw_flag *flags;
    const struct stw_flag *(*make_flags)(void); /* instead of `flags` */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit status */
};

extern const struct stw_command stw_command_run;
extern const struct stw_command stw_command_webhook;
extern const struct stw_command stw_command_validate;
extern const struct stw_command stw_command_doctor;
extern const struct stw_command stw_command_audit;
extern const struct stw_command stw_command_uninstall;
extern const struct stw_command stw_command_snapshot;
extern const struct stw_command stw_command_print;
extern const struct stw_command stw_command_completion;
extern const struct stw_command stw_command_version;

extern const struct stw_command
    *const stw_commands[];     /* all, in order of the help; ends with NULL */
extern const char stw_about[]; /* what the program is */

const struct stw_flag *stw_command_flags(const struct stw_command *c);

#endif
