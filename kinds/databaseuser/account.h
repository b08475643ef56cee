/* SPDX-License-Identifier: Apache-2.0
 *
 * The wanted account, and the one of the status. */
#ifndef STW_KINDS_DATABASEUSER_ACCOUNT_H
#define STW_KINDS_DATABASEUSER_ACCOUNT_H

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "controller/object.h"
#include "kinds/databaseuser/run_priv.h"
#include "sql/core/sql.h"

/* The wanted account; borrows from `d` and owns its lists. */
struct dbu_desired {
    struct stw_account account;
    struct stw_grant *grants;
    void **blocks;
    size_t block_count;
};
int dbu_desired_make(const struct dbu *d, struct dbu_desired *ret,
                     struct stw_error *err) STW_MUST_CHECK;
bool dbu_wants_adoption(const struct dbu *d);
/* With two passwords: what clients read now, if it is not the wanted one. */
void dbu_desired_add_published(const struct dbu *d, struct stw_account *a);
/* A member of the role `owner`, without rights of its own. */
void dbu_desired_limit_to_membership(struct stw_account *a, const char *owner);
void dbu_desired_done(struct dbu_desired *w);
/* "app@%", or "app" on PostgreSQL. */
void dbu_account_text(const struct dbu *d, struct stw_buf *out);
/* The user of status.account, which must be dropped regardless of the current spec; "" for none. */
void dbu_made_user(const struct stw_object *o, char out[DBU_NAME_MAX]);
bool dbu_is_created(const struct stw_object *o); /* by the status, there is an account */

#endif
