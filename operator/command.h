/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands of a program.  Every program has those of stw_operator_main; it may add its own
 * (struct stw_operator, `commands`). */
#ifndef STW_OPERATOR_COMMAND_H
#define STW_OPERATOR_COMMAND_H

#include "base/operator.h"

#define STW_EXIT_OK 0
#define STW_EXIT_REFUSED 1 /* validate: an object was refused; else: it failed */
#define STW_EXIT_USAGE 2   /* wrong usage, or unreadable input */

#define STW_COMMANDS_MAX 24 /* of a program, with its own */
#define STW_KINDS_MAX 64

struct stw_command;
struct stw_flag;

/* One call of a subcommand.  argv[0] is its name. */
struct stw_call {
    const struct stw_operator *op;
    const struct stw_command *command;
    int argc;
    char **argv;
    const struct stw_operator
        *program; /* `op` with all kinds, also those that --kinds leaves out */
};

/* --help, the man page and the completion of shells are made from this. */
struct stw_command {
    const char *name;
    const char *summary;  /* one line of `steward --help` */
    const char *usage;    /* precedes the options of --help: what starts with "Usage: " or with
                            * spaces keeps its lines, all else is text */
    const char *operands; /* "a|b": one of these; "FILE"; "KIND"; NULL: none */
    const struct stw_flag *flags;
    /* Instead of `flags`: writes the table to `ret`, which has STW_FLAGS_MAX rows (flags.h). */
    void (*make_flags)(struct stw_flag *ret);
    int (*run)(const struct stw_call *call); /* returns the exit status */
};

/* The commands that every program has. */
extern const struct stw_command stw_command_run;
extern const struct stw_command stw_command_webhook;
extern const struct stw_command stw_command_validate;
extern const struct stw_command stw_command_doctor;
extern const struct stw_command stw_command_audit;
extern const struct stw_command stw_command_top;
extern const struct stw_command stw_command_migrate;
extern const struct stw_command stw_command_uninstall;
extern const struct stw_command stw_command_print;
extern const struct stw_command stw_command_completion;
extern const struct stw_command stw_command_version;

/* All commands of a program, in order of the help; ended by NULL. */
void stw_commands_list(const struct stw_operator *op,
                       const struct stw_command *ret[STW_COMMANDS_MAX + 1]);
/* The options of a command with those of the extension; `ret` has STW_FLAGS_MAX rows. */
void stw_command_flags(const struct stw_operator *op, const struct stw_command *c,
                       struct stw_flag *ret);
/* The usage, of the extension if it has one. */
const char *stw_command_usage(const struct stw_operator *op, const struct stw_command *c);

#endif
