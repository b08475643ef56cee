/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by App's fields (spec.c) and its rules (spec_rules.c). */
#ifndef STW_KINDS_APP_SPEC_PRIV_H
#define STW_KINDS_APP_SPEC_PRIV_H

#include "kinds/app/spec.h"

#define STW_APP_ENVIRONMENT_MAX 921600 /* a ConfigMap is limited to 1 MiB in total */

/* For `check` of a field table row. */
const char *stw_app_check_path(const char *path);
extern const struct stw_cel stw_app_cel_path[], stw_app_cel_url[];
extern const struct stw_cel_rule stw_app_cel[];
#define STW_APP_URL_MAX 4096

/* Rows of autoscaling.metrics and autoscaling.behavior, and what is wrong with the metrics. */
#define STW_APP_METRICS_MAX 20
extern const struct stw_field stw_app_metric_item, stw_app_behavior[];
void stw_app_check_metrics(const struct stw_app_autoscaling *s, struct stw_findings *f);
/* One of the metrics is a percentage of what the app requests of this resource. */
bool stw_app_has_share_of(const struct stw_app_autoscaling *s, const char *resource);

/* Adds what a podTemplate must not set. */
void stw_app_check_template(const struct stw_app *app, struct stw_findings *f);

void stw_app_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                      struct stw_findings *f);

#endif
