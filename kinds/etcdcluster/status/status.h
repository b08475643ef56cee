/* SPDX-License-Identifier: Apache-2.0
 *
 * The status and the events of an EtcdCluster. */
#ifndef STW_KINDS_ETCDCLUSTER_STATUS_H
#define STW_KINDS_ETCDCLUSTER_STATUS_H

#include "controller/verdict.h"

#include <jansson.h>
#include <stdbool.h>

struct ec;

void ec_judge(struct ec *e, struct stw_verdict *v, json_t **ret_status);
json_t *ec_status_paused(json_t *status, bool paused);
bool ec_children_failed(const struct ec *e); /* one of the Services, which members need */
/* ec_note_news: before the status is written, notes what deserves an event.  ec_tell: emits it. */
void ec_note_news(struct ec *e);
void ec_tell(struct ec *e);

#endif
