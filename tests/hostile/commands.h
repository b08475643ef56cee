/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects through the commands validate and audit, some hundred at a time, in this process. */
#ifndef STW_TESTS_HOSTILE_COMMANDS_H
#define STW_TESTS_HOSTILE_COMMANDS_H

#include "base/buf.h"
#include "schema/kind.h"

struct hostile_commands;

/* Uses an empty folder. */
struct hostile_commands *hostile_commands_create(const struct stw_kind *k, const char *folder);
void hostile_commands_destroy(struct hostile_commands *c);
/* Adds an object to those of the next run. */
void hostile_commands_add(struct hostile_commands *c, const struct stw_buf *object);
void hostile_commands_run(struct hostile_commands *c);
/* Prints what the commands of an ended process wrote to standard error, and removes the folder. */
void hostile_commands_clean(const char *folder, bool print);

#endif
