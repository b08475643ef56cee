/* SPDX-License-Identifier: Apache-2.0
 *
 * The desired children; each function returns a new tree, or NULL if out of memory. */
#ifndef STW_KINDS_APP_CHILDREN_H
#define STW_KINDS_APP_CHILDREN_H

#include "kinds/app/spec.h"
#include "kube/resource.h"

#include <jansson.h>

struct app;

void app_hash_config(struct app *a);
json_t *app_configmap(const struct app *a);
json_t *app_service(const struct app *a);
json_t *app_ingress(const struct app *a); /* only with a host */
json_t *app_route(const struct app *a);   /* only with a Gateway */
json_t *app_monitor(const struct app *a);
json_t *app_budget(const struct app *a, const struct stw_resource *r, int minor);
json_t *app_autoscaler(const struct app *a, const struct stw_resource *r);
bool app_wants_budget(const struct app_spec *spec);
json_t *app_metadata(const struct app *a, const char *name);
json_t *app_selector(const struct app *a);
json_t *app_labels(const struct app *a); /* of children and pods */

#endif
