/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an Eru, between the files that share it: what its status remembers (eru_state.c),
 * what is to be done now (eru_plan.c), how a Deployment is looked at and stamped (eru_target.c),
 * what is told (eru_status.c), Erus that Deployments ask for (eru_auto.c), what the controller
 * keeps beside the caches (eru_keeper.c, eru_rollouts.c), and the run itself (eru.c). */
#ifndef STW_CONTROLLER_ERU_PRIV_H
#define STW_CONTROLLER_ERU_PRIV_H

#include "controller/object.h"
#include "controller/verdict.h"
#include "kinds/eru.h"

#define ERU_STAMP "mtsre.meitu.com/restarted-at"
#define ERU_RESTART_NOW "mtsre.meitu.com/restart-now"
#define ERU_WANTED "mtsre.meitu.com/eru"
#define ERU_TOKEN_MAX 256   /* bytes of a token that count */
#define ERU_EVENTS_MAX 6    /* of one run */
#define ERU_MISSED_MAX 100  /* counted at a time */
#define ERU_NEVER INT64_MIN /* a time that is not set; times are seconds since the epoch */

enum eru_result { ERU_NONE, ERU_SUCCEEDED, ERU_FAILED, ERU_SKIPPED, ERU_MISSED, ERU_RESULTS };
extern const char *const eru_result_names[ERU_RESULTS];

/* What the status remembers from one run to the next. */
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

/* The Deployment as it is. */
struct eru_target {
    bool there, paused, stuck;
    char uid[64], resource_version[STW_RV_LEN], stamp[64];
    int64_t generation, observed_generation;
    int64_t wanted, replicas, updated, available;
    char stuck_message[256];
};

struct eru_event {
    bool warning;
    const char *reason;
    char note[400];
};

struct eru;

/* What a run does to the world; tests pass their own. */
struct eru_ops {
    /* Fills e->target; from before it on, changes of the Deployment wake the Eru. */
    int (*look)(struct eru *e, struct stw_error *err);
    /* Writes the stamp under the resourceVersion of e->target, which gets the new generation. */
    int (*stamp)(struct eru *e, const char *stamp, struct stw_error *err);
    int64_t (*changed_at)(struct eru *e); /* when the spec was last changed, as far as one knows */
    /* How long the rollout that is under way has taken; `written_ms`: by the times in the status.
     */
    int64_t (*took_ms)(struct eru *e, int64_t written_ms);
};
extern const struct eru_ops eru_ops;

struct eru {
    struct stw_run *run;
    const struct eru_ops *ops;
    struct stw_object object;
    struct stw_arena *arena;
    struct stw_eru spec;
    struct stw_cron cron;
    const struct stw_zone *zone;
    char token[ERU_TOKEN_MAX]; /* of the annotation; "" for none */
    int64_t now_us;
    struct eru_state state;
    int64_t took_ms;    /* of the rollout that is under way, so far */
    bool target_cached; /* the Deployment is in the cache */
    bool looked;
    struct eru_target target;
    char holder[STW_KEY_LEN];   /* an older Eru that has the Deployment; "" for none */
    const char *rollout_reason; /* of a rollout that ended in this run: Complete and so on */
    char rollout_message[400];
    struct eru_event events[ERU_EVENTS_MAX];
    unsigned event_count;
    unsigned noted[ERU_RESULTS]; /* results of this run */
    struct stw_error err;        /* what kept the run from being done; code STW_OK: nothing */
};

/* --- eru_state.c */
void eru_state_read(const json_t *status, struct eru_state *ret);
void eru_state_write(const struct eru_state *s, json_t *status); /* over what is there */
void eru_state_done(struct eru_state *s);
/* Notes the result of an instant, in history too.  `seconds` < 0: it took no time. */
void eru_state_note(struct eru_state *s, int64_t limit, int64_t instant, enum eru_result result,
                    const char *reason, int64_t seconds);
/* "2006-01-02T15:04:05Z" */
void eru_time_text(int64_t at, char out[STW_TIME_LEN]);

/* --- eru_plan.c: no I/O but by e->ops */
/* Does what is due; e->err says what went wrong. */
void eru_plan(struct eru *e);
/* Milliseconds until something may be due; 0: never. */
uint64_t eru_plan_wake_ms(const struct eru *e);
int64_t eru_plan_jitter(const struct eru *e);
bool eru_plan_waits(const struct eru *e); /* a restart by hand has not been made yet */

/* --- eru_target.c */
int eru_target_read(struct stw_json deployment, struct eru_target *ret);

/* --- eru_status.c */
void eru_judge(struct eru *e, struct stw_verdict *v, json_t **ret_status);
json_t *eru_status_invalid(struct eru *e, const char *findings);
void eru_tell(struct eru *e);

/* --- eru_auto.c */
/* Makes the Eru that a Deployment of the run's name asks for; there is none of that name. */
void eru_make(struct stw_run *run, struct stw_result *result);
/* Whether an Eru that a Deployment asked for was taken away, or given over to people; else the run
 * goes on. */
bool eru_unmake(struct eru *e, struct stw_result *result);

/* --- eru_keeper.c: the state of the controller */
struct eru_keeper;
int eru_keeper_open(struct stw_manager *m, const struct stw_manager_config *config,
                    void **ret_state, struct stw_error *err);
void eru_keeper_close(void *state);
struct eru_rollouts;
struct eru_rollouts *eru_keeper_rollouts(struct eru_keeper *k); /* NULL of NULL */
void eru_keeper_count(struct eru_keeper *k, enum eru_result result);

/* --- eru_rollouts.c: keys are "namespace/name" of Deployments; NULL has none of them */
struct eru_rollouts *eru_rollouts_create(const struct stw_clock *clock);
void eru_rollouts_destroy(struct eru_rollouts *r);
/* Whether each change of the Deployment is to be looked at. */
void eru_rollouts_track(struct eru_rollouts *r, const char *deployment, bool track);
bool eru_rollouts_tracks(struct eru_rollouts *r, const char *deployment);
/* How long the rollout of an instant has taken, by a clock that never steps; by the times that are
 * written down, which is `took_ms`, only as far as it went on before this process saw it. */
int64_t eru_rollouts_took_ms(struct eru_rollouts *r, const char *deployment, int64_t instant,
                             int64_t took_ms);

/* --- eru.c */
extern const struct stw_resource eru_resource;
extern const struct stw_watch eru_watch_deployments;
/* A cached Deployment: is it there, and does it ask for an Eru? */
struct eru_wish {
    bool there, wanted;
    char uid[64];
};
void eru_wish_of(const struct stw_run *run, const char *key, struct eru_wish *ret);
void eru_deployment_key(const struct stw_run *run, const char *name, char out[STW_KEY_LEN]);

#endif
