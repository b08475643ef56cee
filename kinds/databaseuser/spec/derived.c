/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from the spec of a DatabaseUser. */
#include "kinds/databaseuser/spec.h"

#include "base/util.h"
#include "sql/target/target.h"

void dbu_account_key(const char *target, const char *user, struct stw_buf *out)
{
    stw_buf_adds_lower(out, target);
    stw_buf_addc(out, '/');
    stw_buf_adds(out, user);
}

bool dbu_is_iam(const struct dbu_spec *u)
{
    return u->authentication && stw_streq(u->authentication, DBU_IAM);
}

const struct stw_target *dbu_target_without_label(const struct stw_targets *all,
                                                  struct stw_json status)
{
    char made[DBU_TARGET_MAX + 1];
    const struct stw_target *found = stw_targets_default(all);
    if (!found || stw_json_size(stw_json_get(status, "account")) == 0 ||
        stw_json_strcpy(stw_json_get(status, "target"), made, sizeof(made)) != 0 || !*made)
        return found;
    return stw_targets_find(all, made);
}
