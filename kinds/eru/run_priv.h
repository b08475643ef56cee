/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an Eru.  Each file of the controller has a header of its own. */
#ifndef STW_KINDS_ERU_RUN_PRIV_H
#define STW_KINDS_ERU_RUN_PRIV_H

#include "base/hex.h"
#include "base/util.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "kinds/eru/spec.h"
#include "kinds/eru/state.h"
#include "kinds/eru/workload.h"

#define ERU_STAMP "mtsre.meitu.com/restarted-at"
/* Beside the stamp, with spec.onlyIfChanged: the hash of what the pods read, as it was just before the
 * restart; and after a "-", where registries are asked, that of the digests of their images.  One
 * request writes it all: no interruption can lose a change or restart twice. */
#define ERU_INPUTS "mtsre.meitu.com/inputs-hash"
#define ERU_INPUTS_LEN (2 * STW_HASH_LEN)
#define ERU_RESTART_NOW "mtsre.meitu.com/restart-now"
#define ERU_WANTED "mtsre.meitu.com/eru"
#define ERU_EVENTS_MAX 6   /* of one run */
#define ERU_MISSED_MAX 100 /* largest number counted at a time */

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
    /* Lists what matches the selector: without `only` up to ERU_MATCHES_MAX of them.  The caller
     * frees list->all and list->unreadable, also after an error. */
    int (*list)(struct eru *e, struct eru_found_list *list, struct stw_error *err);
    /* Whether an Eru names this workload: then no selector restarts it. */
    bool (*has_own)(struct eru *e, const char *name);
    int64_t (*changed_at)(struct eru *e); /* last change of the spec, as far as known */
    /* How long the current rollout has taken; `written_ms`: by the times in the status. */
    int64_t (*took_ms)(struct eru *e, int64_t written_ms);
};

struct eru {
    STW_SUBJECT;
    const struct eru_ops *ops;
    struct eru_spec spec;
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

/* It has a selector. */
static inline bool eru_selects(const struct eru *e)
{
    return !e->spec.deployment;
}

#endif
