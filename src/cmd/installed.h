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

/* Who leads: the Lease of the election. */
struct stw_leader {
    bool there;       /* the Lease is */
    char holder[320]; /* "": nobody, it was given back */
    int64_t renewed_us, duration_us;
};
int stw_installed_leader(const struct stw_remote *r, const char *ns, struct stw_leader *ret,
                         struct stw_error *err);

#endif
