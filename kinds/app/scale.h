/* SPDX-License-Identifier: Apache-2.0
 *
 * Who sets the number of replicas. */
#ifndef STW_KINDS_APP_SCALE_H
#define STW_KINDS_APP_SCALE_H

#include "base/error.h"
#include "base/json.h"
#include "controller/controller.h"

#include <jansson.h>

struct app;

/* The Deployment as the server has it now; `doc` is a view of `text`.  -1: `err`. */
int app_read_deployment(struct app *a, struct stw_buf *text, struct stw_json_doc *doc,
                        struct stw_error *err);

/* Call before the Deployment is applied.  When an autoscaler starts or stops setting the number of
 * replicas, this keeps the current number.  False: the run is over, `result` has the outcome. */
bool app_hand_over(struct app *a, struct stw_result *result);
/* By this new status the replicas of the start value are available: app_hand_over must run
 * again. */
bool app_begun(const struct app *a, const json_t *status);

#endif
