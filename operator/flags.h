/* SPDX-License-Identifier: Apache-2.0
 *
 * Options as a const table, used for the command line, the configuration file and --help. */
#ifndef STW_OPERATOR_FLAGS_H
#define STW_OPERATOR_FLAGS_H

#include "base/error.h"
#include "base/operator.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define STW_FLAGS_MAX 64 /* rows of a table, with its end */

/* What a value may be. */
enum stw_flag_type { STW_FLAG_STRING, STW_FLAG_BOOL, STW_FLAG_INT, STW_FLAG_DURATION };

struct stw_flag {
    const char
        *name;   /* "metrics-bind-address"; in the file: metricsBindAddress. NULL ends a table */
    char letter; /* "-o", or 0 */
    enum stw_flag_type type;
    const char *arg;  /* "ADDRESS", shown in the help; NULL for BOOL */
    const char *def;  /* default as text; NULL: empty, 0, false */
    const char *help; /* may have several lines */
    size_t offset;    /* of a char * (owned), bool, int64_t, or int64_t milliseconds */
    int64_t min, max; /* of INT and DURATION (ms); both 0: any value >= 0 */
    bool no_file;     /* not allowed in the configuration file */
    bool list;        /* of STRING: given again, it is appended after a comma */
    /* The offset is in the struct that the first member of the settings points to (extension.h). */
    bool extra;
};

/* Sets defaults, then parses argv, which is reordered. `*ret_operands` is the index of the first
 * operand. Returns 0, -1 with a message in `err`, or 1 on "--help". */
int stw_flags_parse(const struct stw_operator *op, const struct stw_flag *table, void *settings,
                    int argc, char **argv, int *ret_operands, struct stw_error *err) STW_MUST_CHECK;
/* Reads a YAML file for options that the command line does not set; parses argv again for that.
 * `elsewhere` (ended by NULL, or NULL): keys that other code reads. */
int stw_flags_file(const struct stw_flag *table, void *settings, const char *path,
                   const char *const *elsewhere, int argc, char **argv,
                   struct stw_error *err) STW_MUST_CHECK;
/* Whether the command line sets an option. */
bool stw_flags_given(const struct stw_flag *table, int argc, char **argv, const char *name);
void stw_flags_done(const struct stw_flag *table, void *settings); /* frees the strings */

/* The --output option for stw_flags_output; its member is `output`. */
#define STW_FLAGS_OUTPUT(type)                                                                     \
    {                                                                                              \
        .name = "output", .letter = 'o', .arg = "text|json", .def = "text",                        \
        .offset = offsetof(type, output), .help = "form of the report"                             \
    }

/* Starts a subcommand: parses, and prints `usage` with the options on --help, or the error. Returns
 * -1 to continue, else the exit status. */
int stw_flags_start(const struct stw_operator *op, const struct stw_flag *table, const char *usage,
                    void *settings, int argc, char **argv, int *ret_operands);
/* 0, or STW_EXIT_USAGE with a message if --output is neither text nor json. */
int stw_flags_output(const char *command, const char *output, bool *ret_json);
/* Prints "steward COMMAND: text" and a hint at --help. Returns STW_EXIT_USAGE. */
int stw_usage_error(const char *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
