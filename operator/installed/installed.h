/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the Lease of an installation in a cluster, for subcommands that check it from outside. */
#ifndef STW_OPERATOR_INSTALLED_H
#define STW_OPERATOR_INSTALLED_H

#include "base/util.h"
#include "operator/installed/remote.h"

/* The leader, read from the Lease of the leader election. */
struct stw_leader {
    bool there;       /* the Lease exists */
    char holder[320]; /* "": released, no leader */
    int64_t renewed_us, duration_us;
};
int stw_installed_leader(const struct stw_remote *r, const char *ns, struct stw_leader *ret,
                         struct stw_error *err) STW_MUST_CHECK;

/* The values of --kinds in the arguments of a Deployment, joined by commas; "": all kinds. */
void stw_installed_kinds(struct stw_json deployment, struct stw_buf *out);

#endif
