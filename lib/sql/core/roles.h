/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the wanted roles an account may become a member of.  The target lists their names; the
 * server shows whether one would make a tenant an administrator. */
#ifndef STW_SQL_ROLES_H
#define STW_SQL_ROLES_H

#include "sql/core/engine.h"

/* Adds the memberships that `a` requests.  `host`: of MySQL's roles, else "". */
void stw_roles_expand(const struct stw_account *a, const char *host, struct stw_rights *ret);
/* Asks the server, takes the roles that may not be granted out of `want`, so that they are revoked,
 * and sets `refused` for the first of them.  -1: the server could not be asked. */
int stw_roles_check(struct stw_session *s, const struct stw_account *a, struct stw_rights *want,
                    struct stw_fault *refused, struct stw_fault *f) STW_MUST_CHECK;
/* The names in parentheses, as strings of PostgreSQL (`mysql` is NULL) or MySQL. */
void stw_roles_list(const struct stw_account *a, const struct stw_facts *mysql,
                    struct stw_buf *out);

#endif
