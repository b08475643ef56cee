/* SPDX-License-Identifier: Apache-2.0
 *
 * What is due.  No I/O. */
#ifndef STW_KINDS_ETCDBACKUP_PLAN_H
#define STW_KINDS_ETCDBACKUP_PLAN_H

#include "kinds/etcdbackup/state.h"
#include "schema/cron.h"

#include <stdbool.h>
#include <stdint.h>

#define EB_REQUEST_GAP_S 60 /* between two instants, the second of which is a request's */

enum eb_mode { EB_ONCE, EB_INTERVAL, EB_CRON };

struct eb_clockwork {
    enum eb_mode mode;
    int64_t interval_s, deadline_s, created, now;
    const struct stw_cron *cron; /* with EB_CRON */
    const struct stw_zone *zone;
    bool suspend;
    char request[EB_REQUEST_LEN]; /* the annotation that asks for a backup now; "": none */
};
struct eb_due {
    bool start;  /* start a backup now */
    bool missed; /* an instant was missed by more than deadline_s */
    int64_t missed_at;
    bool
        ahead; /* the latest instant was of a clock that was ahead; the schedule goes on from now */
    int64_t ahead_at;
    bool requested; /* the instant was taken up for the request */
    int64_t wake;   /* when to look again; EB_NEVER: no need */
};
/* `busy`: a transfer is running, or not yet cleaned up. */
void eb_plan(const struct eb_clockwork *c, struct eb_state *s, bool busy, struct eb_due *ret);
/* An instant has been taken up, and its backup has not succeeded yet. */
bool eb_plan_open(const struct eb_clockwork *c, const struct eb_state *s);
/* No backup is made: spec.backupPolicy.suspend, except for the backup of a request. */
bool eb_plan_suspended(const struct eb_clockwork *c, const struct eb_state *s);
/* A snapshot is being taken, which ends within `limit_s` at the latest. */
bool eb_plan_sends(const struct eb_state *s, int64_t limit_s, int64_t now);
/* Approximate seconds from one backup to the next; 0: only one backup. */
int64_t eb_plan_period(const struct eb_clockwork *c);

#endif
