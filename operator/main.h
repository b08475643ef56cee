/* SPDX-License-Identifier: Apache-2.0
 *
 * The main function of a program. */
#ifndef STW_OPERATOR_MAIN_H
#define STW_OPERATOR_MAIN_H

#include "base/buf.h"
#include "base/error.h"
#include "base/operator.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>

struct stw_kind;
struct stw_lookup;

/* Runs the command that argv names: run, webhook, validate, doctor, audit, top, uninstall, print,
 * completion or version for the kinds of `op`, or one of its own commands.  `op` and `argv` are
 * borrowed and must live until it returns.  Call it from main(), on the only thread; `run` and
 * `webhook` block signals and create threads.  Prints errors to standard error.  Returns the exit
 * status: 0, 1 if the command failed or refused an object, 2 if it was called wrongly. */
int stw_operator_main(const struct stw_operator *op, int argc, char **argv);

/* Whether all tables of an operator are right: its names, kinds, fields, rules and controllers.  -1: the
 * error says which entry is wrong, and how.  stw_operator_main() calls it before each command, which then
 * ends with status 1; call it in a test.  On any thread. */
int stw_operator_check_tables(const struct stw_operator *op, struct stw_error *err) STW_MUST_CHECK;

/* What a webhook of `kind` answers to an AdmissionReview (v1, JSON text of `len` bytes), without a server: for tests.
 * `mutate`: the one that sets defaults, else the one that judges.  `lookup` finds other objects, as
 * stw_manager_lookup() does; or NULL.  Appends the answer.  Returns its HTTP status: 200 for every decision.
 * What is passed is borrowed.  On any thread. */
int stw_operator_review(const struct stw_operator *op, const struct stw_kind *kind, bool mutate,
                        const struct stw_lookup *lookup, const char *review, size_t len,
                        struct stw_buf *answer);

/* The kind of a program that serves this version, or NULL. */
const struct stw_kind *stw_operator_kind(const struct stw_operator *op, const char *group,
                                         const char *version, const char *kind);

#endif
