/* SPDX-License-Identifier: Apache-2.0
 *
 * The status and the events of an Eru. */
#ifndef STW_KINDS_ERU_STATUS_H
#define STW_KINDS_ERU_STATUS_H

#include "controller/verdict.h"

#include <jansson.h>

struct eru;

void eru_judge(struct eru *e, struct stw_verdict *v, json_t **ret_status);
json_t *eru_status_invalid(struct eru *e, const char *findings);
void eru_tell(struct eru *e);

#endif
