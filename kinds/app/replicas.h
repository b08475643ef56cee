/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of replicas of an App. */
#ifndef STW_KINDS_APP_REPLICAS_H
#define STW_KINDS_APP_REPLICAS_H

#include "kinds/app/spec.h"

#include <stdbool.h>
#include <stdint.h>

struct app;

/* The number of replicas that autoscaling starts with. */
int64_t app_start_replicas(const struct app_spec *spec);
/* The number of replicas that we set: spec.replicas, or the start value for autoscaling. */
int64_t app_number(const struct app *a);
/* An autoscaler sets the number of replicas: ours or another owner's. */
bool app_is_scaled(const struct app *a);
/* The current target number of replicas. */
int64_t app_wanted(const struct app *a);

#endif
