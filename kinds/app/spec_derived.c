/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from the spec of an App. */
#include "kinds/app/spec.h"

bool app_has_metrics_port(const struct app_spec *app)
{
    return app->metrics.enabled && app->metrics.port != 0 && app->metrics.port != app->port;
}

int64_t app_cpu_target(const struct app_spec_autoscaling *a)
{
    bool any = a->cpu != 0 || a->memory != 0 || stw_json_size(a->metrics) > 0;
    return any ? a->cpu : APP_CPU_TARGET;
}
