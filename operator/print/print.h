/* SPDX-License-Identifier: Apache-2.0
 *
 * RBAC manifests and the man page for print.c. */
#ifndef STW_OPERATOR_PRINT_H
#define STW_OPERATOR_PRINT_H

#include "base/buf.h"
#include "base/operator.h"
#include "certs/certs.h"
#include "kube/resource.h"

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

#define STW_RIGHTS_MAX 512

/* Not to be copied: rules point to the names in it. */
struct stw_role_rules {
    const char *account; /* that has them; NULL: STW_SERVICE_ACCOUNT */
    struct stw_rule all[STW_RIGHTS_MAX];
    size_t count;
    char crds[STW_CERTS_CRDS_MAX][STW_OWN_NAME_LEN];
};

/* The rights of `run` without duplicates. */
void stw_role_rules_collect(const struct stw_operator *op, struct stw_role_rules *ret);

#endif
