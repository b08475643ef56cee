/* SPDX-License-Identifier: Apache-2.0
 *
 * What an account must not have when an object adopts it: the object's tenant would get it, too. */
#ifndef STW_SQL_ADOPT_H
#define STW_SQL_ADOPT_H

#include "sql/core/engine.h"

/* Appends one thing that the account has and that the target does not give.  The rest is left out
 * after a few of them. */
void stw_adopt_note(struct stw_buf *excess, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Notes those of `have` that the target does not give to objects of this namespace, global rights,
 * roles, and rights with the grant option. */
void stw_adopt_check_rights(const struct stw_facts *k, const struct stw_account *a,
                            const struct stw_rights *have, struct stw_buf *excess);
/* Whether objects of the account's namespace may have rights in this database. */
bool stw_adopt_allows_database(const struct stw_account *a, const char *database);

#endif
