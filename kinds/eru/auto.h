/* SPDX-License-Identifier: Apache-2.0
 *
 * Erus that Deployments request by an annotation. */
#ifndef STW_KINDS_ERU_AUTO_H
#define STW_KINDS_ERU_AUTO_H

#include "controller/controller.h"

#include <stdbool.h>

struct eru;

/* Creates the Eru that a Deployment with the name of the run requests; no Eru has that name. */
void eru_make(struct stw_run *run, struct stw_result *result);
/* True if a requested Eru was deleted, or is no longer managed by steward; otherwise the run
 * continues. */
bool eru_unmake(struct eru *e, struct stw_result *result);

#endif
