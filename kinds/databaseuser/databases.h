/* SPDX-License-Identifier: Apache-2.0
 *
 * Databases: created before the account, schemas after it, and dropped only when that was asked for
 * twice. */
#ifndef STW_KINDS_DATABASEUSER_DATABASES_H
#define STW_KINDS_DATABASEUSER_DATABASES_H

#include "controller/verdict.h"
#include "sql/core/sql.h"

#include <jansson.h>

struct dbu;

bool dbu_databases_wanted(const struct dbu *d);
/* False: the server cannot be used, which d->report has. */
bool dbu_databases_create(struct dbu *d, struct stw_pool *pool);
/* After the account.  True: grants that failed may be possible now. */
bool dbu_databases_add_schemas(struct dbu *d, struct stw_pool *pool);
/* Some are dropped with their data when the object is deleted. */
bool dbu_databases_are_dropped(struct dbu *d);
/* For the deletion of the object.  False: one could not be dropped, which d->report has. */
bool dbu_databases_drop(struct dbu *d, struct stw_pool *pool);

/* Pure. */
void dbu_databases_judge(const struct dbu *d, struct stw_aspect *a);
void dbu_databases_add_status(const struct dbu *d, json_t *status);

#endif
