/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an EtcdBackup, between the files that share it: what its status remembers
 * (etcdbackup_state.c), what is due (etcdbackup_plan.c), Secrets, members and store
 * (etcdbackup_access.c), transfers on threads of their own (etcdbackup_keeper.c), agents in pods
 * for volumes (etcdbackup_agent.c), what is told (etcdbackup_status.c), what clusters say of it
 * (etcdbackup_cluster.c), and the run itself (etcdbackup.c). */
#ifndef STW_CONTROLLER_ETCDBACKUP_PRIV_H
#define STW_CONTROLLER_ETCDBACKUP_PRIV_H

#include "controller/etcdbackup.h"
#include "controller/object.h"
#include "controller/snapshot.h"
#include "controller/verdict.h"
#include "kinds/cron.h"
#include "kinds/etcdbackup.h"

#define EB_NEVER INT64_MIN /* a time that is not set; times are seconds since the epoch */
#define EB_ARTIFACTS_MAX 20
#define EB_ENDPOINTS_MAX 20
#define EB_TRANSFERS_MAX 4 /* at a time, each with one part in memory */
#define EB_BACKOFF_S 30    /* after the first failure; doubled with each */
#define EB_BACKOFF_MAX_S 900
#define EB_MISSED_MAX 100

enum eb_phase { EB_PENDING, EB_RUNNING, EB_VERIFYING, EB_SUCCEEDED, EB_FAILED, EB_PHASES };
extern const char *const eb_phase_names[EB_PHASES];

/* What the status remembers from one run to the next. */
struct eb_state {
    enum eb_phase phase;
    int64_t last_schedule, next_schedule, last_success, retry_at;
    int64_t failures, pruned;
    uint64_t revision;
    char version[STW_SEMVER_LEN], endpoint[STW_ETCD_URL_MAX];
    char reason[48], error[512]; /* of the latest failure; "" for none */
    json_t *artifacts;           /* newest first */
};
void eb_state_read(const json_t *status, struct eb_state *ret);
void eb_state_write(const struct eb_state *s, json_t *status);
void eb_state_done(struct eb_state *s);
/* A snapshot that was made; `uri` is where it is. */
void eb_state_succeed(struct eb_state *s, const struct stw_snapshot *made, const char *uri);
void eb_state_fail(struct eb_state *s, const struct stw_snapshot *failed, int64_t now);
/* The newest verified one; NULL: none.  Borrowed. */
const json_t *eb_state_verified(const struct eb_state *s);

/* --- what is due; no I/O */

enum eb_mode { EB_ONCE, EB_INTERVAL, EB_CRON };

struct eb_clockwork {
    enum eb_mode mode;
    int64_t interval_s, deadline_s, created, now;
    const struct stw_cron *cron; /* of CRON */
    const struct stw_zone *zone;
    bool suspend;
};
struct eb_due {
    bool start;  /* a backup is to be begun now */
    bool missed; /* an instant went by unused: too late */
    int64_t missed_at;
    int64_t wake; /* when to look again; EB_NEVER: no need */
};
/* `busy`: a transfer is under way, or not yet cleared away. */
void eb_plan(const struct eb_clockwork *c, struct eb_state *s, bool busy, struct eb_due *ret);
/* An instant has been taken up, and has not been brought to a good end. */
bool eb_plan_open(const struct eb_clockwork *c, const struct eb_state *s);
/* Seconds from one backup to the next, about; 0: once. */
int64_t eb_plan_period(const struct eb_clockwork *c);

/* --- a backup with all that it needs; wiped when freed */

struct eb_job {
    struct stw_etcd *etcd;
    struct stw_store *store; /* NULL with a volume */
    char *urls[EB_ENDPOINTS_MAX], *addresses[EB_ENDPOINTS_MAX];
    struct stw_etcd_endpoint endpoints[EB_ENDPOINTS_MAX];
    size_t count;
    char *path, *keep; /* in the store; keep or NULL */
    bool named, verify, again;
    int64_t timeout_s, max_backups, max_age_s;
};
void eb_job_free(struct eb_job *j); /* NULL is fine */

extern const struct stw_resource eb_resource;

struct eb_keeper;

struct eb {
    struct stw_run *run;
    struct eb_keeper *keeper;
    struct stw_object object;
    struct stw_arena *arena;
    struct stw_etcdbackup spec;
    struct stw_cron cron;
    struct eb_clockwork clock;
    struct eb_state state;
    struct eb_due due;
    struct eb_job *job;           /* to be begun when the status is written */
    bool again;                   /* this instant, or the one backup, was tried before */
    bool collected, began;        /* a result was taken in; a backup begins with this run */
    bool ended;                   /* one is over, and is forgotten once the status is written */
    struct stw_snapshot result;   /* of a backup that has just ended */
    struct stw_error err;         /* what kept the run from being done */
    char agent_uid[64];           /* of the pod that makes, or made, one; "" for none */
    bool agent_goes;              /* it is being deleted */
    char waiting[400];            /* what the pod waits for */
    json_t *containers, *volumes; /* of a pod that is to be made */
    const char *stalled;          /* reason; only a person can help */
    char stalled_text[512];
};

/* --- etcdbackup_access.c.  -1: `why` has fault, reason and error. */
int eb_job_create(struct eb *e, struct eb_job **ret, struct stw_snapshot *why);
/* Shared with EtcdRestores: a store on S3 by its block. */
int eb_store_open(const struct stw_run *run, const struct stw_etcd_s3 *s3, struct stw_store **ret,
                  char **ret_path, struct stw_snapshot *why);
int eb_secret_has(const struct stw_run *run, const char *name, const char *key, bool *ret,
                  struct stw_snapshot *why);
/* The names under which members are reached, and the Secret with the client's certificate ("":
 * plain); for agents too. */
struct eb_source {
    char *urls[EB_ENDPOINTS_MAX], *addresses[EB_ENDPOINTS_MAX]; /* addresses: or NULL */
    size_t count;
    char tls_secret[300];
};
int eb_source_find(const struct stw_run *run, const struct stw_etcdbackup *spec,
                   struct eb_source *ret, struct stw_snapshot *why);
void eb_source_done(struct eb_source *s);
int eb_fault(struct stw_snapshot *s, enum stw_snapshot_fault fault, const char *reason,
             const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* "s3://bucket/key", "pvc://claim/path" */
void eb_uri(const struct stw_etcdbackup *spec, const char *key, char *out, size_t size);

/* --- etcdbackup_keeper.c: the state of the controller */
int eb_keeper_open(struct stw_manager *m, const struct stw_manager_config *config, void **ret_state,
                   struct stw_error *err);
void eb_keeper_cancel(void *state);
void eb_keeper_pause(void *state); /* the lease was lost */
void eb_keeper_close(void *state);
enum eb_transfer { EB_NO_TRANSFER, EB_TRANSFERS, EB_TRANSFERRED };
/* What became of the transfer of `key` for the object `uid`. */
enum eb_transfer eb_keeper_look(struct eb_keeper *k, const char *key, const char *uid,
                                bool *ret_verifying, struct stw_snapshot *ret);
/* Takes over `job`, also when it fails. */
int eb_keeper_start(struct eb_keeper *k, const char *key, const char *uid, struct eb_job *job,
                    struct stw_error *err);
/* Ends it, if it is still under way, and forgets it. */
void eb_keeper_forget(struct eb_keeper *k, const char *key);
void eb_keeper_remove(struct eb_keeper *k, const char *key); /* the object is gone: all of it */
void eb_keeper_count(struct eb_keeper *k, bool succeeded);
/* The newest verified backup that the object `key` has made of this etcd; `at` in seconds. */
void eb_keeper_verified(struct eb_keeper *k, const char *key, const char *ns, const char *cluster,
                        int64_t at);

/* --- etcdbackup_agent.c: the same on a volume, by a pod.  -1 of prepare: `why`, or e->stalled. */
enum eb_transfer eb_agent_look(struct eb *e);
int eb_agent_prepare(struct eb *e, struct stw_snapshot *why);
int eb_agent_start(struct eb *e, struct stw_error *err);
void eb_agent_forget(struct eb *e);

/* --- etcdbackup_status.c */
void eb_judge(struct eb *e, struct stw_verdict *v, json_t **ret_status);
void eb_tell(struct eb *e);

#endif
