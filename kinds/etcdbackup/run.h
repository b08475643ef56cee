/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an EtcdBackup, shared by these files: state in the status (state.c), what
 * is due (plan.c), Secrets, members and store (access.c), transfers on their
 * own threads (runtime.c), agent pods for volumes (transfer_pod.c), conditions and
 * events (status.c), what EtcdClusters report about backups (cluster.c), and
 * the run itself (reconcile.c). */
#ifndef STW_KINDS_ETCDBACKUP_RUN_H
#define STW_KINDS_ETCDBACKUP_RUN_H

#include "base/hex.h"
#include "base/util.h"
#include "controller/condition.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "controller/verdict.h"
#include "kinds/etcdbackup/agent.h"
#include "kinds/etcdbackup/snapshot.h"
#include "kinds/etcdbackup/spec.h"
#include "schema/cron.h"

#define EB_NEVER INT64_MIN /* a time that is not set; times are seconds since the epoch */
#define EB_ARTIFACTS_MAX 20
#define EB_ENDPOINTS_MAX 20
#define EB_BACKOFF_S 30 /* after the first failure; doubled with each */
#define EB_BACKOFF_MAX_S 900
#define EB_MISSED_MAX 100
#define EB_REQUEST_GAP_S 60 /* between two instants, the second of which is a request's */

enum eb_phase { EB_PENDING, EB_RUNNING, EB_VERIFYING, EB_SUCCEEDED, EB_FAILED, EB_PHASES };
extern const char *const eb_phase_names[EB_PHASES];

/* What the status keeps from one run to the next. */
struct eb_state {
    enum eb_phase phase;
    int64_t last_schedule, next_schedule, last_success, retry_at;
    int64_t failures, pruned;
    uint64_t revision;
    char version[STW_SEMVER_LEN], endpoint[STW_ETCD_URL_MAX];
    char reason[48], error[512]; /* of the latest failure; "" for none */
    char request[STW_HASH_LEN];  /* hash of the latest request that was followed; "": none */
    int64_t requested_at;        /* the instant of its backup */
    json_t *artifacts;           /* newest first */
};
void eb_state_read(const json_t *status, struct eb_state *ret);
void eb_state_write(const struct eb_state *s, json_t *status);
void eb_state_done(struct eb_state *s);
/* `uri`: where the snapshot is stored. */
void eb_state_succeed(struct eb_state *s, const struct stw_snapshot *made, const char *uri);
void eb_state_fail(struct eb_state *s, const struct stw_snapshot *failed, int64_t now);
/* The newest verified artifact; NULL: none.  Borrowed. */
const json_t *eb_state_verified(const struct eb_state *s);

/* --- what is due; no I/O */

enum eb_mode { EB_ONCE, EB_INTERVAL, EB_CRON };

struct eb_clockwork {
    enum eb_mode mode;
    int64_t interval_s, deadline_s, created, now;
    const struct stw_cron *cron; /* with EB_CRON */
    const struct stw_zone *zone;
    bool suspend;
    char request[STW_HASH_LEN]; /* hash of the annotation that asks for a backup now; "": none */
};
struct eb_due {
    bool start;  /* start a backup now */
    bool missed; /* an instant was missed by more than deadline_s */
    int64_t missed_at;
    bool requested; /* the instant was taken up for the request */
    int64_t wake;   /* when to look again; EB_NEVER: no need */
};
/* `busy`: a transfer is running, or not yet cleaned up. */
void eb_plan(const struct eb_clockwork *c, struct eb_state *s, bool busy, struct eb_due *ret);
/* An instant has been taken up, and its backup has not succeeded yet. */
bool eb_plan_open(const struct eb_clockwork *c, const struct eb_state *s);
/* No backup is made: spec.backupPolicy.suspend, except for the backup of a request. */
bool eb_plan_suspended(const struct eb_clockwork *c, const struct eb_state *s);
/* Approximate seconds from one backup to the next; 0: only one backup. */
int64_t eb_plan_period(const struct eb_clockwork *c);

/* --- one backup with all its inputs; wiped when freed */

struct eb_job {
    struct stw_etcd *etcd;
    struct stw_store *store; /* NULL with a volume */
    char *urls[EB_ENDPOINTS_MAX], *addresses[EB_ENDPOINTS_MAX];
    struct stw_etcd_endpoint endpoints[EB_ENDPOINTS_MAX];
    size_t count;
    char *path, *keep; /* in the store; keep may be NULL */
    bool named, verify, again;
    int64_t timeout_s, max_backups, max_age_s;
};
void eb_job_free(struct eb_job *j); /* NULL is allowed */

struct eb_runtime;

struct eb {
    STW_SUBJECT;
    struct eb_runtime *runtime;
    struct stw_etcdbackup spec;
    struct stw_cron cron;
    struct eb_clockwork clock;
    struct eb_state state;
    struct eb_due due;
    struct eb_job *job;         /* starts when the status is written */
    bool again;                 /* this instant, or the only backup, was tried before */
    bool collected, began;      /* a result was collected; a backup starts with this run */
    bool ended;                 /* a transfer ended; it is dropped once the status is written */
    struct stw_snapshot result; /* of a backup that has just ended */
    struct stw_error err;       /* why the run failed */
    char agent_uid[64];         /* of the backup pod; "" for none */
    bool agent_goes;            /* that pod is being deleted */
    char waiting[400];          /* what the pod waits for */
    char stuck[48];             /* the reason if a user may have to provide that */
    struct stw_refusal refusal; /* of the pod to create */
    bool checked,
        lacks; /* what the next backup needs was checked; `result` says what is not there */
    json_t *containers, *volumes; /* of the pod to create */
    const char *stalled;          /* reason; only a user can fix it */
    char stalled_text[512];
};

/* --- access.c.  -1: `why` has the fault, reason and error. */
int eb_job_create(struct eb *e, struct eb_job **ret, struct stw_snapshot *why);
/* Shared with EtcdRestores: opens the S3 store of a spec.s3 block. */
int eb_store_open(const struct stw_run *run, const struct stw_etcd_s3 *s3, struct stw_store **ret,
                  char **ret_path, struct stw_snapshot *why);
/* Whether there is what a later backup needs: Secrets with their keys, and the EtcdCluster.  -1: `why`.
 */
int eb_inputs_check(const struct eb *e, struct stw_snapshot *why);
int eb_secret_has(const struct stw_run *run, const char *name, const char *key, bool *ret,
                  struct stw_snapshot *why);
/* The URLs of the members, and the Secret with the client certificate ("": no TLS); for agents too.
 */
struct eb_source {
    char *urls[EB_ENDPOINTS_MAX], *addresses[EB_ENDPOINTS_MAX]; /* an address may be NULL */
    size_t count;
    char tls_secret[300];
};
int eb_source_find(const struct stw_run *run, const struct stw_etcdbackup *spec,
                   struct eb_source *ret, struct stw_snapshot *why);
void eb_source_done(struct eb_source *s);
int eb_fault(struct stw_snapshot *s, enum stw_snapshot_fault fault, const char *reason,
             const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int eb_fault_memory(struct stw_snapshot *s);
/* "s3://bucket/key", "pvc://claim/path" */
void eb_uri(const struct stw_etcdbackup *spec, const char *key, char *out, size_t size);

/* --- runtime.c: the state of the controller */
int eb_runtime_open(struct stw_manager *m, const struct stw_manager_config *config,
                    void **ret_state, struct stw_error *err) STW_MUST_CHECK;
void eb_runtime_cancel(void *state);
void eb_runtime_pause(void *state); /* the lease was lost */
void eb_runtime_close(void *state);
enum eb_transfer { EB_NO_TRANSFER, EB_TRANSFERS, EB_TRANSFERRED };
/* The state of the transfer of `key` for the object `uid`. */
enum eb_transfer eb_runtime_look(struct eb_runtime *k, const char *key, const char *uid,
                                 bool *ret_verifying, struct stw_snapshot *ret);
/* True: `key` has one of the places, until eb_runtime_start or eb_runtime_leave.  False: its run follows
 * when it is its turn. */
bool eb_runtime_come(struct eb_runtime *k, const char *key) STW_MUST_CHECK;
/* Gives a place back that was not used; the key goes on waiting if it has none. */
void eb_runtime_leave(struct eb_runtime *k, const char *key);
/* How many transfers there are at a time: of one namespace, and in all. */
void eb_runtime_limits(const struct eb_runtime *k, unsigned *ret_of_namespace, unsigned *ret_all);
/* Takes ownership of `job`, also when it fails. */
int eb_runtime_start(struct eb_runtime *k, const char *key, const char *uid, struct eb_job *job,
                     struct stw_error *err) STW_MUST_CHECK;
/* Cancels the transfer if it is still running, and drops it. */
void eb_runtime_forget(struct eb_runtime *k, const char *key);
void eb_runtime_remove(struct eb_runtime *k, const char *key); /* also its gauge */
void eb_runtime_count(struct eb_runtime *k, bool succeeded);
/* Sets the gauge: time of the newest verified backup of this etcd by the object `key`; `at` is in
 * seconds. */
void eb_runtime_verified(struct eb_runtime *k, const char *key, const char *ns, const char *cluster,
                         int64_t at);

/* --- transfer_pod.c: the same by a pod, to a volume.  -1 of prepare: `why` or e->stalled. */
enum eb_transfer eb_agent_look(struct eb *e);
int eb_agent_prepare(struct eb *e, struct stw_snapshot *why);
bool eb_agent_has_image(struct eb *e); /* or e->stalled */
int eb_agent_start(struct eb *e, struct stw_error *err) STW_MUST_CHECK;
void eb_agent_forget(struct eb *e);

/* --- status.c */
void eb_judge(struct eb *e, struct stw_verdict *v, json_t **ret_status);
void eb_tell(struct eb *e);

#endif
