/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of App's rules. */
#ifndef STW_KINDS_APP_SPEC_PRIV_H
#define STW_KINDS_APP_SPEC_PRIV_H

#include "kinds/app/spec.h"

#define APP_ENVIRONMENT_MAX 921600 /* a ConfigMap is limited to 1 MiB in total */

/* What is wrong with autoscaling.metrics. */
void app_check_metrics(const struct app_spec_autoscaling *s, struct stw_findings *f);
/* One of the metrics is a percentage of what the app requests of this resource. */
bool app_has_share_of(const struct app_spec_autoscaling *s, const char *resource);

/* Adds what a podTemplate must not set. */
void app_check_template(const struct app_spec *app, struct stw_findings *f);

#endif
