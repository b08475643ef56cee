/* SPDX-License-Identifier: Apache-2.0
 *
 * RBAC manifests and the man page for print.c. */
#ifndef STW_OPERATOR_PRINT_H
#define STW_OPERATOR_PRINT_H

#include "base/buf.h"
#include "base/operator.h"

/* `namespaces` is comma-separated, or NULL for the whole cluster. */
void stw_print_rbac(const struct stw_operator *op, const char *ns, const char *namespaces,
                    struct stw_buf *out);

/* The rights of `run --shadow`, all of them to read, for an account of its own. */
void stw_print_rbac_shadow(const struct stw_operator *op, const char *ns, const char *namespaces,
                           struct stw_buf *out);
/* The command that applies the rights of this program: with --namespaces and --kinds, if these are
 * set. */
void stw_print_rbac_command(const struct stw_operator *op, const char *ns, const char *namespaces,
                            struct stw_buf *out);

/* ClusterRoles for users. */
void stw_print_user_roles(const struct stw_operator *op, struct stw_buf *out);

/* steward(1) in troff, with the macros of man. */
void stw_print_man(const struct stw_operator *op, struct stw_buf *out);

/* The rights of `run` without duplicates; returns the count.  `ret` has STW_RIGHTS_MAX rows. */
#define STW_RIGHTS_MAX 512
struct stw_rule;
size_t stw_rights_collect(const struct stw_operator *op, struct stw_rule *ret);

/* `verbs` is comma-separated, as in struct stw_rule. */
bool stw_rule_has_verb(const char *verbs, const char *verb);

#endif
