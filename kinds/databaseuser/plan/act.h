/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries out the plan, during a visit to the target. */
#ifndef STW_KINDS_DATABASEUSER_ACT_H
#define STW_KINDS_DATABASEUSER_ACT_H

#include "base/util.h"
#include "controller/controller.h"
#include "sql/core/sql.h"

struct dbu;

/* -1: `result` is set. */
int dbu_act(struct dbu *d, struct stw_pool *pool, struct stw_result *result) STW_MUST_CHECK;

#endif
