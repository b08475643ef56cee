/* SPDX-License-Identifier: Apache-2.0
 *
 * The status. */
#ifndef STW_KINDS_APP_STATUS_H
#define STW_KINDS_APP_STATUS_H

#include "controller/verdict.h"

#include <jansson.h>
#include <stdbool.h>

struct app;

void app_judge(struct app *a, struct stw_verdict *verdict, json_t **ret_status);
/* Sets the phase in a status of a run that checked nothing. */
json_t *app_status_phase(json_t *status, const char *phase);
const char *app_profile(const struct app *a); /* as in the spec */
/* Whether, by the old status, this child was once as this generation wants it. */
bool app_was_applied(const struct app *a, int child);

#endif
