/* SPDX-License-Identifier: Apache-2.0
 *
 * What an installation in a cluster is told: its Deployment and its configuration file, for
 * subcommands that look at it from outside. */
#ifndef STW_CMD_INSTALLED_H
#define STW_CMD_INSTALLED_H

#include "cmd/remote.h"
#include "controller/targets.h"

/* The database targets in the ConfigMap; no entry in it, or no file, is an empty list.  -1: the
 * first error in `err`, all of them in ret->errors when the file is wrong (and in error_count,
 * which else is 0).  `ret` zeroed, done() in any case. */
int stw_installed_targets(const struct stw_remote *r, const char *ns, struct stw_target_file *ret,
                          struct stw_error *err);

#endif
