/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the configuration file and the Lease of an installation in a cluster, for subcommands that
 * check it from outside. */
#ifndef STW_CMD_INSTALLED_H
#define STW_CMD_INSTALLED_H

#include "base/util.h"
#include "cmd/remote.h"
#include "kinds/databaseuser/targets.h"

/* The database targets in the ConfigMap; without the key or the file's list the result is empty.
 * -1: the first error is in `err`. If the file is invalid, all errors are in ret->errors and
 * counted in error_count, which is otherwise 0. `ret` must be zeroed; call done() in any case. */
int stw_installed_targets(const struct stw_remote *r, const char *ns, struct stw_target_file *ret,
                          struct stw_error *err) STW_MUST_CHECK;

/* The leader, read from the Lease of the leader election. */
struct stw_leader {
    bool there;       /* the Lease exists */
    char holder[320]; /* "": released, no leader */
    int64_t renewed_us, duration_us;
};
int stw_installed_leader(const struct stw_remote *r, const char *ns, struct stw_leader *ret,
                         struct stw_error *err) STW_MUST_CHECK;

#endif
