/* SPDX-License-Identifier: Apache-2.0
 *
 * The difference of rights: what to grant, what to revoke, and the rights in the mark before and
 * after.  Pure.  A right that existed before steward, even one that the object requests, does not
 * become steward's: Managed revokes exactly what steward granted. */
#ifndef STW_SQL_GRANTS_H
#define STW_SQL_GRANTS_H

#include "sql/core/rights.h"
#include "sql/core/sql.h"

struct stw_grants_plan {
    struct stw_rights give, take;
    struct stw_rights before; /* in the mark before the first statement */
    struct stw_rights after;  /* in the mark after the last statement */
    bool write_before, write_after;
};
void stw_grants_plan_done(struct stw_grants_plan *p);

/* All rights are sorted.  0, or -1: no memory. */
int stw_grants_plan_make(const struct stw_rights *want, const struct stw_rights *have,
                         const struct stw_rights *recorded, enum stw_grants_policy policy,
                         struct stw_grants_plan *ret);

#endif
