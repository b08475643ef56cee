/* SPDX-License-Identifier: Apache-2.0
 *
 * The name by which this process was called: that of the operator, "steward", or "kubectl steward" as
 * a kubectl plugin; and its commands.  Both are of the process, set once, before threads start: one
 * program is one call. */
#ifndef STW_OPERATOR_PROGRAM_H
#define STW_OPERATOR_PROGRAM_H

#include "base/operator.h"
#include "operator/command.h"

#include <stdbool.h>
#include <stdio.h>

/* From argv[0], whose folder does not matter.  `commands` ends with NULL and is copied. */
void stw_program_set(const struct stw_operator *op, const char *argv0,
                     const struct stw_command *const *commands);
const char *stw_program_name(void);
/* In order of the help; ended by NULL. */
const struct stw_command *const *stw_program_commands(void);
/* Called by kubectl to complete a command line (kubectl_complete-NAME). */
bool stw_program_completes(void);
/* Prints a help text in which the operator's name in front of commands is replaced by that name. */
void stw_program_print(const struct stw_operator *op, const char *text, FILE *out);

#endif
