/* SPDX-License-Identifier: Apache-2.0
 *
 * The logins of an object, for its status, its events, and its connection Secret.  plan.h decides
 * about them. */
#ifndef STW_KINDS_DATABASEUSER_TWIN_H
#define STW_KINDS_DATABASEUSER_TWIN_H

#include "controller/verdict.h"
#include "kinds/databaseuser/run_priv.h"

/* Takes the turn from the view. */
void dbu_twins_take(struct dbu *d);
/* The name of the login that applications read after this run. */
const char *dbu_login_name(struct dbu *d);
/* A login's name from the name of the account. */
void dbu_login_make(const char *user, enum dbu_login which, char out[DBU_LOGIN_MAX]);
/* The login of this name; NONE: it is not one of the object. */
enum dbu_login dbu_login_find(const struct dbu *d, const char *name);

/* Another login than before this run. */
bool dbu_twins_change(const struct dbu *d);
void dbu_twins_find(const struct dbu *d, struct stw_aspect *a);
void dbu_twins_tell(const struct dbu *d);

#endif
