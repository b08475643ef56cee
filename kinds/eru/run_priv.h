/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files of the Eru controller: the state in the status (state.c),
 * what must be done now (plan.c, with a selector selected.c; checks.c), its results and events
 * (notes.c), workloads in the caches (watch.c), reading and stamping them (target.c, workloads.c), what their pods read (inputs.c) and run (images.c), status and
 * events (status.c), Erus that Deployments request (auto.c), state of the controller in addition to the caches
 * (runtime.c, rollouts.c), and the run itself (reconcile.c). */
#ifndef STW_KINDS_ERU_RUN_PRIV_H
#define STW_KINDS_ERU_RUN_PRIV_H

#include "base/hex.h"
#include "base/util.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "controller/verdict.h"
#include "kinds/eru/spec.h"
#include "kinds/eru/workload.h"

#define ERU_STAMP "mtsre.meitu.com/restarted-at"
/* Beside the stamp, with spec.onlyIfChanged: the hash of what the pods read, as it was just before the
 * restart; and after a "-", where registries are asked, that of the digests of their images.  One
 * request writes it all: no interruption can lose a change or restart twice. */
#define ERU_INPUTS "mtsre.meitu.com/inputs-hash"
#define ERU_INPUTS_LEN (2 * STW_HASH_LEN)
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
    /* With a selector: the workloads of the current rollout, or of the latest. */
    struct {
        bool there, manual;
        int64_t instant;
        int64_t matched, restarted, succeeded, failed, skipped;
        json_t *workloads; /* as in the status */
    } selected;
    int64_t matched; /* when last counted, at most STW_ERU_MATCHES_MAX + 1; -1: not yet */
    json_t *history; /* newest first */
    bool failed;     /* out of memory while it was read */
};

/* The current workload. */
struct eru_target {
    bool there, paused, stuck;
    bool by_hand; /* a changed template does not restart its pods */
    char uid[64], resource_version[STW_RV_LEN], stamp[64];
    char inputs[ERU_INPUTS_LEN]; /* ERU_INPUTS of the latest restart; "": none */
    int64_t generation, observed_generation;
    int64_t wanted, replicas, updated, available;
    int64_t to_update; /* pods that a restart replaces */
    char stuck_message[256];
};

/* Workloads that match the selector now. */
struct eru_found {
    char name[254];
    int64_t created;
    struct eru_target target;
};
struct eru_found_list {
    const json_t *only; /* in: keep those with the names of this list; NULL: all */
    struct eru_found *all;
    size_t count;
    bool more;          /* there are more than are read */
    json_t *unreadable; /* names of others that match; steward cannot read them.  NULL: none */
};
#define ERU_TARGET_FOUND "TargetFound"
#define ERU_UNREADABLE "Unreadable"

#define ERU_UNCHANGED "SkippedNothingChanged"
#define ERU_IMAGES_MAX 20 /* tags of one workload that are asked for */
/* The ConfigMaps and Secrets that the pods of a workload read, and the images that they run. */
struct eru_inputs {
    size_t count;
    bool more;                     /* more than STW_INPUTS_MAX: they are not read */
    char digest[STW_HASH_LEN];     /* of their names and versions */
    char missing[300];             /* one without which no pod starts does not exist; "": none */
    size_t images;                 /* tags whose registry may be asked */
    char image_hash[STW_HASH_LEN]; /* of the tags and their digests; "" if one is not known */
    char unknown[300];             /* why one is not known; "": all are */
};

/* Why a workload is not restarted; reason NULL: it is. */
struct eru_skip {
    const char *reason;
    bool unchanged; /* nothing that its pods read has changed: no reason to warn */
    char why[300];
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
    /* Writes the stamp, and e->inputs, under the resourceVersion of e->target, which gets the new
     * generation. */
    int (*stamp)(struct eru *e, const char *name, const char *stamp, struct stw_error *err);
    /* Finds what the pods of e->target, which has this name, read.  STW_ERR_CONFLICT: e->target is
     * not the newest version. */
    int (*inputs)(struct eru *e, const char *name, struct eru_inputs *ret, struct stw_error *err);
    /* Lists what matches the selector: without `only` up to STW_ERU_MATCHES_MAX of them.  The caller
     * frees list->all and list->unreadable, also after an error. */
    int (*list)(struct eru *e, struct eru_found_list *list, struct stw_error *err);
    /* Whether an Eru names this workload: then no selector restarts it. */
    bool (*has_own)(struct eru *e, const char *name);
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
    const struct stw_watch *watch; /* of such workloads */
    char token[ERU_TOKEN_MAX];     /* of the annotation; "" for none */
    int64_t now_us;
    struct eru_state state;
    int64_t took_ms;    /* of the current rollout, so far */
    bool target_cached; /* the workload is in the cache */
    bool looked;
    char unreadable
        [300]; /* names of those that match and cannot be read, when looked at; "": none */
    struct eru_target target;
    char inputs[ERU_INPUTS_LEN]; /* written with the next stamp; "": none */
    size_t inputs_read;          /* requests of this run for what pods read and run */
    int64_t inputs_instant;      /* for which they are read */
    bool unknown_reported;       /* by an event of this run: an image whose digest is not known */
    char holder[STW_KEY_LEN];    /* an older Eru of this workload; "" for none */
    const char *rollout_reason;  /* for a rollout that ended in this run, or NULL */
    char rollout_message[400];
    struct eru_event events[ERU_EVENTS_MAX];
    unsigned event_count;
    bool recorded;             /* state.selected has changed: it is stored before the next action */
    uint64_t selected_wake_ms; /* until the current rollout of a selector is looked at; 0: none */
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

/* --- checks.c */
void eru_skip_for(struct eru_skip *s, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool eru_is_complete(const struct eru_target *t);
bool eru_is_rolling(const struct eru_target *t);
bool eru_has_stamp(const struct eru_target *t, int64_t instant);
/* A restart that is newer than this instant was made by another leader, whose status write we have
 * not seen yet, or for another Eru. */
bool eru_is_restarted_later(const struct eru *e, const struct eru_target *t, int64_t instant);
/* Whether e->target may be restarted, by hand too. */
void eru_check_target(const struct eru *e, struct eru_skip *s);
/* A restart that is late must be in the allowed hours too, not only its instant. */
void eru_check_hours(const struct eru *e, int64_t instant, struct eru_skip *s);
/* Whether e->target may be restarted by the schedule; `rolling`: an earlier restart is running. */
void eru_check_scheduled(const struct eru *e, bool rolling, struct eru_skip *s);
/* With spec.onlyIfChanged, whether something that the pods of e->target read or run has changed;
 * fills e->inputs.  A restart by hand is never skipped. */
int eru_check_changed(struct eru *e, const char *name, int64_t instant, bool manual,
                      struct eru_skip *s, struct stw_error *err) STW_MUST_CHECK;

/* --- selected.c: with a selector; no I/O except through e->ops */
static inline bool eru_selects(const struct eru *e)
{
    return !e->spec.deployment;
}
/* Continues the current restart of the workloads that are recorded in e->state. */
void eru_selected_follow(struct eru *e);
/* Records what matches, or skips the instant; the next run restarts them.  False: e->err. */
bool eru_selected_begin(struct eru *e, int64_t instant, bool manual);
/* Counts what matches, if that is not known, or was none or too many. */
void eru_selected_look(struct eru *e, bool spec_changed);

/* --- notes.c */
void eru_plan_event(struct eru *e, bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void eru_plan_result(struct eru *e, int64_t instant, enum eru_result result, const char *reason,
                     int64_t seconds);
void eru_plan_skip(struct eru *e, int64_t instant, const struct eru_skip *s);
/* What is restarted, for texts: Deployment "web", or what a selector matches. */
#define ERU_WHAT_LEN 300
void eru_what(const struct eru *e, char out[ERU_WHAT_LEN]);

/* --- plan.c: no I/O except through e->ops */
/* Does what is due; e->err gets an error. */
void eru_plan(struct eru *e);
/* Milliseconds until something may be due; 0: never. */
uint64_t eru_plan_wake_ms(const struct eru *e);
int64_t eru_plan_jitter(const struct eru *e);
bool eru_plan_waits(const struct eru *e); /* a manual restart is pending */

/* --- workloads.c */
/* The key "namespace/name" of the workload, and its entry in the index of Erus.  An Eru with a
 * selector has an entry of its own, which is in no index. */
void eru_workload_key(const struct eru *e, char out[STW_KEY_LEN]);
#define ERU_INDEX_LEN (16 + STW_KEY_LEN)
void eru_workload_index(const struct eru *e, char out[ERU_INDEX_LEN]);
void eru_index_text(const struct eru_workload *workload, const char *key, char out[ERU_INDEX_LEN]);
void eru_index_selector(const char *eru, char out[ERU_INDEX_LEN]);
int eru_target_read(const struct eru_workload *workload, struct stw_json object,
                    struct eru_target *ret);

/* --- inputs.c */
int eru_inputs_read(struct eru *e, const char *name, struct eru_inputs *ret,
                    struct stw_error *err) STW_MUST_CHECK;

/* --- images.c */
/* Fills the members about images.  Blocks for 10 seconds at most.  An image whose digest is not known is
 * no error. */
int eru_images_read(struct eru *e, struct stw_json pod_spec, struct eru_inputs *ret,
                    struct stw_error *err) STW_MUST_CHECK;

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
int eru_runtime_open(struct stw_manager *m, const struct stw_controller *c,
                     const struct stw_manager_config *config, void **ret_state,
                     struct stw_error *err) STW_MUST_CHECK;
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

/* --- watch.c */
extern const struct stw_watch eru_own_watch;
/* A cached workload: whether it exists, and whether it requests an Eru (Deployments only). */
struct eru_desired {
    bool there, wanted;
    char uid[64];
};
void eru_desired_of(const struct stw_run *run, const struct eru_workload *workload, const char *key,
                    struct eru_desired *ret);

#endif
