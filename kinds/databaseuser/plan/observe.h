/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills the view from the status, the caches, and what came of calls to the server. */
#ifndef STW_KINDS_DATABASEUSER_OBSERVE_H
#define STW_KINDS_DATABASEUSER_OBSERVE_H

#include "kinds/databaseuser/plan/plan.h"
#include "kinds/databaseuser/run_priv.h"
#include "sql/core/sql.h"

/* The view, at the start of a run, of one that deletes the object, and what the two Secrets
 * add to it. */
void dbu_observe(struct dbu *d);
void dbu_observe_object(struct dbu *d);
void dbu_observe_password(struct dbu *d);
void dbu_observe_connection(struct dbu *d, enum dbu_owned_state state,
                            const struct dbu_secret_login *found);
/* What came of a call for the login that applications read. */
void dbu_observe_login(struct dbu_view *v, enum dbu_login login,
                       const struct stw_account_report *r);
/* `logs_in`: although a right is missing. */
enum dbu_outcome dbu_find_outcome(const struct stw_account_report *r, bool logs_in);
/* The server, not the object, is in trouble. */
bool dbu_is_of_server(enum stw_sql_trouble t);
/* The server has the password of the Secret. */
void dbu_remember_password(const struct dbu *d);
/* Sets d->cluster.  -1: nothing may be done on a server, which d->report says. */
int dbu_identify(struct dbu *d) STW_MUST_CHECK;

#endif
