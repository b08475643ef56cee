/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes the framework steward: its kinds, and what they share. */
#ifndef STW_CMD_STEWARD_H
#define STW_CMD_STEWARD_H

#include "operator/command.h"

/* The program: names and kinds of stw_operator_steward with the commands and options below. */
int stw_steward_main(int argc, char **argv);

extern const struct stw_extension stw_steward_extension;

extern const struct stw_command stw_command_new;
extern const struct stw_command stw_command_snapshot;
extern const struct stw_command stw_command_new;

#endif
