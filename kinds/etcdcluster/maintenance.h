/* SPDX-License-Identifier: Apache-2.0
 *
 * Upkeep of the databases.  plan/maintenance.c decides what is done next. */
#ifndef STW_KINDS_ETCDCLUSTER_MAINTENANCE_H
#define STW_KINDS_ETCDCLUSTER_MAINTENANCE_H

#include "etcd/etcd.h"

#include <jansson.h>

struct ec;
struct ec_kept;

/* Call after ec_observe: sets the view's upkeep, and which members are to be defragmented. */
void ec_judge_upkeep(struct ec *e);
/* Updates e->state.pass for the move. */
void ec_record_upkeep(struct ec *e);
/* Keeps what etcd answered to the call of a move of upkeep.  If it failed, the run has not failed. */
void ec_answer_upkeep(struct ec *e, int rc, enum stw_etcd_trouble trouble, struct ec_kept *kept);
/* NOSPACE was disarmed: it is not again for a while, which is longer each time, as etcd may list it again
 * at once. */
void ec_note_disarmed(const struct ec *e, struct ec_kept *kept);
void ec_note_upkeep_news(struct ec *e);
void ec_tell_upkeep(struct ec *e);
/* Adds to status.defragmentation what depends on the present: what it waits for, and the next instant
 * of the schedule. */
void ec_add_upkeep(const struct ec *e, json_t *status);

#endif
