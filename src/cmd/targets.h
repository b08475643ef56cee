/* SPDX-License-Identifier: Apache-2.0
 *
 * The database targets of an installation in a cluster, for subcommands that check it from outside. */
#ifndef STW_CMD_TARGETS_H
#define STW_CMD_TARGETS_H

#include "kinds/databaseuser/target/targets.h"
#include "operator/installed/remote.h"

/* The database targets in the ConfigMap; without the key or the file's list the result is empty.
 * -1: the first error is in `err`. If the file is invalid, all errors are in ret->errors and
 * counted in error_count, which is otherwise 0. `ret` must be zeroed; call done() in any case. */
int stw_installed_targets(const struct stw_remote *r, const char *ns, struct dbu_target_file *ret,
                          struct stw_error *err) STW_MUST_CHECK;

#endif
