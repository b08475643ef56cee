/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/kinds.h"

#include "base/util.h"

/* One row for each kind: its folder, which has stw_kind_NAME and stw_controller_NAME.  meson.build
 * reads these rows.  A kind comes after those that it uses. */
/* clang-format off */
#define ROWS(row)      \
    row(myweb)         \
    row(databaseuser)  \
    row(eru)           \
    row(app)           \
    row(etcdcluster)   \
    row(etcdbackup)    \
    row(etcdrestore)
/* clang-format on */

#define DECLARE(name)                                                                              \
    extern const struct stw_kind stw_kind_##name;                                                  \
    extern const struct stw_controller stw_controller_##name;
#define KIND(name) &stw_kind_##name,
#define CONTROLLER(name) &stw_controller_##name,

ROWS(DECLARE)
const struct stw_kind *const stw_kinds[] = {ROWS(KIND) NULL};
const struct stw_controller *const stw_controllers[] = {ROWS(CONTROLLER) NULL};

#ifndef STW_VERSION
#define STW_VERSION "0"
#endif

const struct stw_operator stw_operator_steward = {
    .name = "steward",
    .domain = "steward.dev",
    .metric_prefix = "steward",
    .version = STW_VERSION,
    .about = "steward defaults and validates custom resources in an admission webhook, and "
             "reconciles\nwhat was admitted.\n",
    .kinds = stw_kinds,
    .controllers = stw_controllers,
};

const struct stw_kind *stw_kind_find(const char *group, const char *version, const char *kind)
{
    for (const struct stw_kind *const *k = stw_kinds; *k; k++)
        if (stw_streq((*k)->kind, kind) && stw_streq((*k)->group, group) &&
            stw_streq((*k)->version, version))
            return *k;
    return NULL;
}
