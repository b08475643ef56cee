/* SPDX-License-Identifier: Apache-2.0
 *
 * The strategic merge of spec.podTemplate. */
#ifndef STW_KINDS_APP_TEMPLATE_H
#define STW_KINDS_APP_TEMPLATE_H

#include <jansson.h>

struct app;

/* Merges spec.podTemplate over the pod template of the Deployment. */
void app_merge_template(const struct app *a, json_t *template);

#endif
