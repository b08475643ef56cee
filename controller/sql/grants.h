/* SPDX-License-Identifier: Apache-2.0
 *
 * The difference of rights: what to give, what to take, and what the mark says before and after.
 * Pure.  A right that was there before steward, even one that the object asks for, stays somebody
 * else's: Managed takes back exactly what steward gave. */
#ifndef STW_CONTROLLER_SQL_GRANTS_H
#define STW_CONTROLLER_SQL_GRANTS_H

#include "controller/sql/rights.h"
#include "controller/sql/sql.h"

struct stw_grants_plan {
    struct stw_rights give, take;
    struct stw_rights before; /* in the mark before the first statement */
    struct stw_rights after;  /* and behind the last */
    bool write_before, write_after;
};
void stw_grants_plan_done(struct stw_grants_plan *p);

/* All sorted.  0, or -1: no memory. */
int stw_grants_plan_make(const struct stw_rights *want, const struct stw_rights *have,
                         const struct stw_rights *recorded, enum stw_grants_policy policy,
                         struct stw_grants_plan *ret);

#endif
