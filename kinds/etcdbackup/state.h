/* SPDX-License-Identifier: Apache-2.0
 *
 * State in the status. */
#ifndef STW_KINDS_ETCDBACKUP_STATE_H
#define STW_KINDS_ETCDBACKUP_STATE_H

#include "base/util.h"
#include "kinds/common/request.h"
#include "kinds/etcdbackup/snapshot.h"
#include "kinds/etcdbackup/spec.h"

#include <jansson.h>

#define EB_NEVER INT64_MIN /* a time that is not set; times are seconds since the epoch */
#define EB_ARTIFACTS_MAX 20
#define EB_REQUEST_LEN STW_REQUEST_LEN
#define EB_BACKOFF_S 30 /* after the first failure; doubled with each */
#define EB_BACKOFF_MAX_S 900

enum eb_phase {
    EB_PENDING,
    EB_RUNNING,
    EB_VERIFYING,
    EB_SUCCEEDED,
    EB_FAILED,
    EB_SUSPENDED,
    EB_PHASES
};
extern const char *const eb_phase_names[EB_PHASES];

/* What the status keeps from one run to the next. */
struct eb_state {
    enum eb_phase phase;
    int64_t last_schedule, next_schedule, last_success, retry_at;
    int64_t snapshot_start; /* of the one that etcd sends now */
    int64_t failures, pruned;
    uint64_t revision;
    char version[STW_SEMVER_LEN], endpoint[STW_ETCD_URL_MAX];
    char reason[48], error[512];      /* of the latest failure; "" for none */
    char request[EB_REQUEST_LEN];     /* the latest request that was followed; "": none */
    int64_t requested_at;             /* the instant of its backup */
    char request_met[EB_REQUEST_LEN]; /* the latest one with a backup since; "": none */
    json_t *artifacts;                /* newest first */
};
void eb_state_read(const json_t *status, struct eb_state *ret);
void eb_state_write(const struct eb_state *s, json_t *status);
void eb_state_done(struct eb_state *s);
/* `uri`: where the snapshot is stored. */
void eb_state_succeed(struct eb_state *s, const struct eb_snapshot *made, const char *uri);
void eb_state_fail(struct eb_state *s, const struct eb_snapshot *failed, int64_t now);
/* The newest verified artifact; NULL: none.  Borrowed. */
const json_t *eb_state_verified(const struct eb_state *s);

#endif
