/* SPDX-License-Identifier: Apache-2.0
 *
 * The desired Deployment. */
#ifndef STW_KINDS_APP_DEPLOYMENT_H
#define STW_KINDS_APP_DEPLOYMENT_H

#include <jansson.h>

struct app;

/* A new tree, or NULL if out of memory; without spec.replicas if an autoscaler sets it. */
json_t *app_deployment(const struct app *a);

#endif
