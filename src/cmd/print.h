/* SPDX-License-Identifier: Apache-2.0
 *
 * RBAC manifests and the man page for print.c. */
#ifndef STW_CMD_PRINT_H
#define STW_CMD_PRINT_H

#include "base/buf.h"

/* `namespaces` is comma-separated, or NULL for the whole cluster. */
void stw_print_rbac(const char *ns, const char *namespaces, struct stw_buf *out);

/* ClusterRoles for users. */
void stw_print_user_roles(struct stw_buf *out);

/* steward(1) in troff, with the macros of man. */
void stw_print_man(struct stw_buf *out);

/* The rights of `steward run` without duplicates; returns the count, at most `max`. */
struct stw_rule;
size_t stw_rights_collect(struct stw_rule *ret, size_t max);

#endif
