/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files of the Eru controller: the state in the status (state.c),
 * what must be done now (plan.c), reading and stamping a workload (target.c, workloads.c), status and
 * events (status.c), Erus that Deployments request (auto.c), state of the controller in
 * addition to the caches (runtime.c, rollouts.c), and the run itself (eru.c). */
#ifndef STW_KINDS_ERU_RUN_PRIV_H
#define STW_KINDS_ERU_RUN_PRIV_H

#include "base/util.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "controller/verdict.h"
#include "kinds/eru/spec.h"
#include "kinds/eru/workload.h"

#define ERU_STAMP "mtsre.meitu.com/restarted-at"
#define ERU_RESTART_NOW "mtsre.meitu.com/restart-now"
#define ERU_WANTED "mtsre.meitu.com/eru"
#define ERU_TOKEN_MAX 256   /* longer tokens are shortened */
#define ERU_EVENTS_MAX 6    /* of one run */
#define ERU_MISSED_MAX 100  /* largest number counted at a time */
#define ERU_NEVER INT64_MIN /* not set; times are seconds since the epoch */

enum eru_result { ERU_NONE, ERU_SUCCEEDED, ERU_FAILED, ERU_SKIPPED, ERU_MISSED, ERU_RESULTS };
extern const char *const eru_result_names[ERU_RESULTS];

/* State that the status keeps from one run to the next. */
struct eru_state {
    int64_t last_schedule, last_restart, next_schedule, last_missed, missed_count;
    enum eru_result last_result;
    struct {
        bool there;
        int64_t since;
        char schedule[STW_CRON_MAX + 1], time_zone[65];
    } active;
    struct {
        bool there;
        int64_t instant, start, generation;
    } rollout;
    struct {
        char token[ERU_TOKEN_MAX];
        int64_t instant;
        bool done;
    } manual;
    json_t *history; /* newest first */
};

/* The current workload. */
struct eru_target {
    bool there, paused, stuck;
    bool by_hand; /* a changed template does not restart its pods */
    char uid[64], resource_version[STW_RV_LEN], stamp[64];
    int64_t generation, observed_generation;
    int64_t wanted, replicas, updated, available;
    int64_t to_update; /* pods that a restart replaces */
    char stuck_message[256];
};

struct eru_event {
    bool warning;
    const char *reason;
    char note[400];
};

struct eru;

/* The side effects of a run; tests replace them. */
struct eru_ops {
    /* Fills e->target.  Changes of the workload wake the Eru from before the read on. */
    int (*look)(struct eru *e, struct stw_error *err);
    /* Writes the stamp under the resourceVersion of e->target, which gets the new generation. */
    int (*stamp)(struct eru *e, const char *stamp, struct stw_error *err);
    int64_t (*changed_at)(struct eru *e); /* last change of the spec, as far as known */
    /* How long the current rollout has taken; `written_ms`: by the times in the status. */
    int64_t (*took_ms)(struct eru *e, int64_t written_ms);
};
extern const struct eru_ops eru_ops;

struct eru {
    STW_SUBJECT;
    const struct eru_ops *ops;
    struct stw_eru spec;
    struct stw_cron cron;
    const struct stw_zone *zone;
    const struct eru_workload *workload;
    char token[ERU_TOKEN_MAX]; /* of the annotation; "" for none */
    int64_t now_us;
    struct eru_state state;
    int64_t took_ms;    /* of the current rollout, so far */
    bool target_cached; /* the workload is in the cache */
    bool looked;
    struct eru_target target;
    char holder[STW_KEY_LEN];   /* an older Eru of this workload; "" for none */
    const char *rollout_reason; /* for a rollout that ended in this run, or NULL */
    char rollout_message[400];
    struct eru_event events[ERU_EVENTS_MAX];
    unsigned event_count;
    unsigned noted[ERU_RESULTS]; /* results of this run */
    struct stw_error err;        /* the error that stopped the run; code STW_OK: none */
};

/* --- state.c */
void eru_state_read(const json_t *status, struct eru_state *ret);
void eru_state_write(const struct eru_state *s, json_t *status); /* updates `status` */
void eru_state_done(struct eru_state *s);
/* Records the result of an instant, in the history too.  `seconds` < 0: no duration. */
void eru_state_note(struct eru_state *s, int64_t limit, int64_t instant, enum eru_result result,
                    const char *reason, int64_t seconds);
/* "2006-01-02T15:04:05Z" */
void eru_time_text(int64_t at, char out[STW_TIME_LEN]);

/* --- plan.c: no I/O except through e->ops */
/* Does what is due; e->err gets an error. */
void eru_plan(struct eru *e);
/* Milliseconds until something may be due; 0: never. */
uint64_t eru_plan_wake_ms(const struct eru *e);
int64_t eru_plan_jitter(const struct eru *e);
bool eru_plan_waits(const struct eru *e); /* a manual restart is pending */

/* --- target.c */
int eru_target_read(const struct eru_workload *workload, struct stw_json object,
                    struct eru_target *ret);

/* --- status.c */
void eru_judge(struct eru *e, struct stw_verdict *v, json_t **ret_status);
json_t *eru_status_invalid(struct eru *e, const char *findings);
void eru_tell(struct eru *e);

/* --- auto.c */
/* Creates the Eru that a Deployment with the name of the run requests; no Eru has that name. */
void eru_make(struct stw_run *run, struct stw_result *result);
/* True if a requested Eru was deleted, or is no longer managed by steward; otherwise the run
 * continues. */
bool eru_unmake(struct eru *e, struct stw_result *result);

/* --- runtime.c: the state of the controller */
struct eru_runtime;
int eru_runtime_open(struct stw_manager *m, const struct stw_manager_config *config,
                     void **ret_state, struct stw_error *err) STW_MUST_CHECK;
void eru_runtime_close(void *state);
struct eru_rollouts;
struct eru_rollouts *eru_runtime_rollouts(struct eru_runtime *k); /* NULL for NULL */
void eru_runtime_count(struct eru_runtime *k, enum eru_result result);

/* --- rollouts.c: keys are "deployment:namespace/name", as in the index of Erus; `r` may be NULL */
struct eru_rollouts *eru_rollouts_create(const struct stw_clock *clock) STW_MUST_CHECK;
void eru_rollouts_destroy(struct eru_rollouts *r);
/* Whether each change of the workload must wake its Erus. */
void eru_rollouts_track(struct eru_rollouts *r, const char *workload, bool track);
bool eru_rollouts_tracks(struct eru_rollouts *r, const char *workload);
/* How long the rollout of an instant has taken, by a monotonic clock.  `took_ms` is the duration by
 * the recorded times; it counts only for the time before this process saw the rollout. */
int64_t eru_rollouts_took_ms(struct eru_rollouts *r, const char *workload, int64_t instant,
                             int64_t took_ms);

/* --- eru.c */
/* The watches of workloads: what the cache keeps, and whom a change wakes. */
void eru_workload_project(const struct stw_operator *op, struct stw_json object,
                          struct stw_buf *out);
void eru_workload_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                          const char *old_text, const char *new_text);
/* A cached workload: whether it exists, and whether it requests an Eru (Deployments only). */
struct eru_desired {
    bool there, wanted;
    char uid[64];
};
void eru_desired_of(const struct stw_run *run, const struct eru_workload *workload, const char *key,
                    struct eru_desired *ret);
/* The key "namespace/name" of the workload, and its entry in the index of Erus. */
void eru_workload_key(const struct eru *e, char out[STW_KEY_LEN]);
#define ERU_INDEX_LEN (16 + STW_KEY_LEN)
void eru_workload_index(const struct eru *e, char out[ERU_INDEX_LEN]);

#endif
