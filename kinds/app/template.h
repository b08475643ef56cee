/* SPDX-License-Identifier: Apache-2.0
 *
 * What users add to a Deployment: the merge of spec.podTemplate and spec.strategy. */
#ifndef STW_KINDS_APP_TEMPLATE_H
#define STW_KINDS_APP_TEMPLATE_H

#include <jansson.h>

struct app;

/* Merges spec.podTemplate over the pod template of the Deployment. */
void app_merge_template(const struct app *a, json_t *template);
/* Merges the members of spec.strategy that steward does not know over the strategy of the Deployment. */
void app_merge_strategy(const struct app *a, json_t *strategy);

#endif
