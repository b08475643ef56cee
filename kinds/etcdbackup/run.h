/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an EtcdBackup.  Each file of the controller has a header of its own. */
#ifndef STW_KINDS_ETCDBACKUP_RUN_H
#define STW_KINDS_ETCDBACKUP_RUN_H

#include "base/util.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "kinds/etcdbackup/agent.h"
#include "kinds/etcdbackup/plan.h"
#include "kinds/etcdbackup/snapshot.h"
#include "kinds/etcdbackup/spec.h"
#include "kinds/etcdbackup/state.h"
#include "schema/cron.h"

struct eb_job;
struct eb_runtime;

struct eb {
    STW_SUBJECT;
    struct eb_runtime *runtime;
    struct eb_spec spec;
    struct stw_cron cron;
    struct eb_clockwork clock;
    struct eb_state state;
    struct eb_due due;
    struct eb_job *job;             /* starts when the status is written */
    bool again;                     /* this instant, or the only backup, was tried before */
    bool collected, began;          /* a result was collected; a backup starts with this run */
    bool ended;                     /* a transfer ended; it is dropped once the status is written */
    struct eb_snapshot result;      /* of a backup that has just ended */
    struct stw_error err;           /* why the run failed */
    char agent_uid[64];             /* of the backup pod; "" for none */
    bool agent_goes;                /* that pod is being deleted */
    bool agent_runs;                /* its container runs */
    char waiting[400];              /* what the pod waits for */
    char stuck[STW_POD_REASON_MAX]; /* the reason if a user may have to provide that */
    struct eb_refusal refusal;      /* of the pod to create */
    bool checked,
        lacks; /* what the next backup needs was checked; `result` says what is not there */
    json_t *containers, *volumes; /* of the pod to create */
    const char *stalled;          /* reason; only a user can fix it */
    char stalled_text[512];
};

#endif
