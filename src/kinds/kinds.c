/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/kinds.h"

#include "base/util.h"
#include "kinds/app.h"
#include "kinds/databaseuser.h"
#include "kinds/eru.h"
#include "kinds/etcdbackup.h"
#include "kinds/etcdcluster.h"
#include "kinds/etcdrestore.h"
#include "kinds/myweb.h"

const struct stw_kind *const stw_kinds[] = {
    &stw_kind_myweb,       &stw_kind_databaseuser, &stw_kind_eru,         &stw_kind_app,
    &stw_kind_etcdcluster, &stw_kind_etcdbackup,   &stw_kind_etcdrestore, NULL,
};

const struct stw_kind *stw_kind_find(const char *group, const char *version, const char *kind)
{
    for (const struct stw_kind *const *k = stw_kinds; *k; k++)
        if (stw_streq((*k)->kind, kind) && stw_streq((*k)->group, group) &&
            stw_streq((*k)->version, version))
            return *k;
    return NULL;
}
