/* SPDX-License-Identifier: Apache-2.0
 *
 * How a new password replaces the old one: what the spec wants, resolved for the engine of the target. */
#include "kinds/databaseuser/plan/strategy.h"

#include "base/util.h"
#include "kinds/databaseuser/run_priv.h"

bool dbu_rotation_wanted(const struct dbu *d)
{
    return stw_json_there(stw_json_path(d->object.root, "spec.rotation"));
}

static bool keeps_old(const struct dbu *d)
{
    const char *strategy = d->spec.rotation.strategy;
    if (!dbu_rotation_wanted(d) || !strategy)
        return false;
    return stw_streq(strategy, "DualPassword") ||
           (stw_streq(strategy, "Auto") && d->target && d->target->engine == STW_ENGINE_MYSQL);
}

bool dbu_twins_wanted(const struct dbu *d)
{
    const char *strategy = d->spec.rotation.strategy;
    if (!dbu_rotation_wanted(d) || !strategy || !d->target)
        return false;
    return stw_streq(strategy, "TwinAccounts") ||
           (stw_streq(strategy, "Auto") && d->target->engine != STW_ENGINE_MYSQL);
}

enum dbu_strategy dbu_rotation_strategy(const struct dbu *d)
{
    return dbu_twins_wanted(d) ? DBU_TWINS : keeps_old(d) ? DBU_DUAL_PASSWORD : DBU_IN_PLACE;
}

bool dbu_rotation_cuts(const struct dbu *d)
{
    return dbu_rotation_wanted(d) && stw_same(d->spec.rotation.strategy, "InPlace");
}
