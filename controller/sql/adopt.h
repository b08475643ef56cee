/* SPDX-License-Identifier: Apache-2.0
 *
 * What an account must not hold that an object takes over: its tenant would hold it, too. */
#ifndef STW_CONTROLLER_SQL_ADOPT_H
#define STW_CONTROLLER_SQL_ADOPT_H

#include "controller/sql/engine.h"

/* Appends one more thing that the account holds and that the target does not give.  After a few of
 * them the rest is left out. */
void stw_adopt_note(struct stw_buf *excess, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Those of `have` that the target does not give to objects of this namespace, global ones, roles,
 * and those that may be passed on. */
void stw_adopt_check_rights(const struct stw_facts *k, const struct stw_account *a,
                            const struct stw_rights *have, struct stw_buf *excess);
/* Whether objects of the account's namespace may have anything in this database. */
bool stw_adopt_allows_database(const struct stw_account *a, const char *database);

#endif
