/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of replicas of an App: the one that steward sets, and the current target. */
#include "kinds/app/replicas.h"

#include "base/util.h"
#include "kinds/app/run_priv.h"

int64_t app_start_replicas(const struct app_spec *spec)
{
    int64_t n = STW_MAX(spec->replicas, spec->autoscaling.min);
    return STW_MIN(n, spec->autoscaling.max);
}

bool app_is_scaled(const struct app *a)
{
    return a->spec.autoscaling.enabled || *a->foreign;
}

int64_t app_number(const struct app *a)
{
    return a->begins ? app_start_replicas(&a->spec) : a->spec.replicas;
}

int64_t app_wanted(const struct app *a)
{
    return app_is_scaled(a) ? a->children[APP_DEPLOYMENT].live.rollout.wanted : a->spec.replicas;
}
