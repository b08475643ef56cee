/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/kinds.h"

#include "base/util.h"
#include "kinds/app/reconcile.h"
#include "kinds/app/spec.h"
#include "kinds/databaseuser/reconcile.h"
#include "kinds/databaseuser/spec.h"
#include "kinds/eru/reconcile.h"
#include "kinds/eru/spec.h"
#include "kinds/etcdbackup/reconcile.h"
#include "kinds/etcdbackup/spec.h"
#include "kinds/etcdcluster/reconcile.h"
#include "kinds/etcdcluster/spec.h"
#include "kinds/etcdrestore/reconcile.h"
#include "kinds/etcdrestore/spec.h"
#include "kinds/myweb/reconcile.h"
#include "kinds/myweb/spec.h"

/* One row for each kind. */
#define ROWS(row)                                                                                  \
    row(myweb) row(databaseuser) row(eru) row(app) row(etcdcluster) row(etcdbackup) row(etcdrestore)
#define KIND(name) &stw_kind_##name,
#define CONTROLLER(name) &stw_controller_##name,

const struct stw_kind *const stw_kinds[] = {ROWS(KIND) NULL};
const struct stw_controller *const stw_controllers[] = {ROWS(CONTROLLER) NULL};

const struct stw_kind *stw_kind_find(const char *group, const char *version, const char *kind)
{
    for (const struct stw_kind *const *k = stw_kinds; *k; k++)
        if (stw_streq((*k)->kind, kind) && stw_streq((*k)->group, group) &&
            stw_streq((*k)->version, version))
            return *k;
    return NULL;
}
