/* SPDX-License-Identifier: Apache-2.0
 *
 * The status.  No I/O. */
#ifndef STW_KINDS_DATABASEUSER_STATUS_H
#define STW_KINDS_DATABASEUSER_STATUS_H

#include "controller/verdict.h"

#include <jansson.h>
#include <stdint.h>

struct dbu;

/* Like myweb_judge. */
void dbu_judge(struct dbu *d, struct stw_verdict *verdict, json_t **ret_status);
/* For a deletion that is blocked; `report` has the reason. */
void dbu_judge_cleanup(struct dbu *d, struct stw_verdict *verdict, json_t **ret_status);
/* The time until a settled account is checked again, in ms: at most spec.resyncSeconds. */
uint64_t dbu_resync_ms(const char *key, int64_t resync_seconds, uint64_t now_ms);

#endif
