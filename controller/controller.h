/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface between a reconciler and the manager.
 *
 * A reconciler is given a key, never an event.  It reads the caches, computes the whole desired
 * state, writes only what differs, then writes the status once.  A new kind adds one struct
 * stw_controller and one row in the table of controllers (kinds/kinds.c). */
#ifndef STW_CONTROLLER_CONTROLLER_H
#define STW_CONTROLLER_CONTROLLER_H

#include "base/clock.h"
#include "base/error.h"
#include "controller/manager.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "kube/resource.h"
#include "schema/kind.h"

#include <stdbool.h>
#include <stdint.h>

/* The label of all objects that an operator makes; its value is the operator's name. */
#define STW_MANAGED_BY "app.kubernetes.io/managed-by"

/* A resource that is listed and watched.  Controllers that name the same stw_watch share one
 * cache. */
struct stw_watch {
    const struct stw_resource *resource;
    const struct stw_resource *const *alternatives; /* or NULL; as for the informer */
    const char *label_selector;                     /* or NULL */
    /* Only objects with the operator's label managed-by, in addition to label_selector. */
    bool managed;
    bool metadata_only; /* PartialObjectMetadata */
    bool
        optional; /* the server may lack it, or the program the right: stw_informer_availability() */
    bool reports_gone;        /* also report deletions of objects that were not cached */
    bool for_admission;       /* struct stw_lookup (schema/kind.h) reads this cache */
    const char *metrics_name; /* set for a second watch of a resource; NULL: the plural */
    /* As stw_project_fn. */
    void (*project)(const struct stw_operator *op, struct stw_json object, struct stw_buf *out);
    /* May be NULL; called without a context.  Adds keys with stw_index_add.  stw_manager_lookup
     * finds them as "mywebs.nodePort", stw_manager_wake as "nodePort". */
    stw_index_fn *index;
    /* Enqueues the objects that the change affects, with stw_manager_enqueue or stw_manager_wake.
     * The texts are as in stw_change_fn. */
    void (*changed)(struct stw_manager *m, const struct stw_watch *w, const char *key,
                    const char *old_text, const char *new_text);
};

/* How a run ended, and when the key is run again. */
enum stw_outcome {
    STW_RUN_DONE,     /* on the next change */
    STW_RUN_AFTER,    /* on the next change, at the latest after after_ms */
    STW_RUN_CONFLICT, /* immediately, from a fresh read, with the queue's own backoff from 5 ms */
    STW_RUN_FAILED,   /* after after_ms, which status.retry reports; counted as an error in the
                         metrics */
    STW_RUN_STALLED,  /* after after_ms; only a change by the user can fix it */
};

struct stw_result {
    enum stw_outcome outcome;
    uint64_t after_ms;
    struct stw_error err; /* of CONFLICT, FAILED and STALLED; for the log */
};

/* One run over one key.  Borrowed for the duration of the call. */
struct stw_run {
    struct stw_manager *manager;
    const struct stw_operator *op;
    const struct stw_controller *controller;
    const char *field_manager; /* stw_field_manager() */
    struct stw_client *client;
    struct stw_events *events;
    const struct stw_clock *clock;
    const struct stw_env *env; /* its lookup reads the manager's caches */
    const char *key, *ns, *name;
    uint32_t failures; /* consecutive failed runs of this key before this one */
    bool waits; /* for memory: it has ended, and the key is enqueued when the memory is there */
    uint64_t left_ms; /* if an event came before the next retry was due: ms until then; else 0 */
    void *state;      /* from the controller's open() */
};

/* Why a run checked nothing. */
enum stw_unchecked { STW_UNCHECKED_PAUSED, STW_UNCHECKED_INVALID };

struct json_t;
struct stw_aspect;
struct stw_secret;
struct stw_child_row;
struct stw_subject;
struct stw_verdict;

struct stw_controller {
    const char *name; /* "myweb"; the label of its metrics; at most STW_OPERATOR_NAME_MAX bytes */
    const struct stw_kind *kind;
    const struct stw_resource *resource;
    const struct stw_watch *own; /* of the kind itself */
    /* Of other objects than the children of rows, ended by NULL; or NULL.  stw_controller_watch
     * returns all. */
    const struct stw_watch *const *watches;
    /* Besides those that follow from `resource` and `children`; ended by a NULL resource; or NULL.
     * stw_controller_rules returns all. */
    const struct stw_rule *rules;
    bool all_data; /* every key of its ConfigMaps counts: pods read them with envFrom */
    bool scales;   /* other clients may scale its Deployments: the caches keep spec.replicas */
    /* Types of conditions besides the standard ones and those of the children, ended by NULL. */
    const char *const *conditions;
    uint32_t worker_factor; /* multiplies the number of workers, for runs that mostly wait; 0: 1 */

    /* A run over one object (reconcile.h).  The struct of the kind begins with STW_SUBJECT; set both
     * sizes with STW_RUN_STATE. */
    size_t run_size, spec_offset;
    /* The children as rows, ended by a NULL watch; or NULL.  Then child_count is the number of
     * children that `reconcile` manages by itself. */
    const struct stw_child_row *children;
    size_t child_count;
    /* The object exists, is valid, not paused and not being deleted; its spec is decoded.  NULL: the
     * rows say all, with the functions below. */
    void (*reconcile)(struct stw_subject *s, struct stw_result *result);
    /* Each of the following may be NULL. */
    void (*gone)(struct stw_run *run); /* missing or being deleted: drops what is remembered */
    void (*missing)(struct stw_run *run, struct stw_result *result); /* it is not in the cache */
    /* It is being deleted; the spec is decoded if possible.  A large object of a kind without a
     * finalizer is then only a stub. */
    void (*deleting)(struct stw_subject *s, struct stw_result *result);
    /* The status of a run that checked nothing; see stw_status_unchecked. */
    struct json_t *(*status_unchecked)(struct stw_subject *s, enum stw_unchecked why,
                                       const char *findings);
    void (*done)(struct stw_subject *s); /* frees what the kind added; also after `deleting` */
    /* For kinds with rows: */
    void (*ensure)(struct stw_subject *s); /* NULL: each child, in the order of the rows */
    /* `all`: the children's aspects, then `aspect_count` of the kind, which this function sets. */
    void (*find)(const struct stw_subject *s, struct stw_aspect *all);
    size_t aspect_count;
    void (*summarize)(const struct stw_subject *s, struct stw_verdict *v); /* all is as wanted */
    void (*report)(const struct stw_subject *s, const struct stw_verdict *v,
                   struct json_t *status); /* adds the kind's own members of the status */
    const char *const *numbers;            /* as for stw_run_end */

    /* State that a controller keeps in addition to the caches, such as connections and timers.
     * open and close may be NULL.  open is called before the caches fill, cancel when the manager
     * stops and running reconciles must end soon, close after the last run and the last change of a
     * cache. */
    int (*open)(struct stw_manager *m, const struct stw_manager_config *config, void **ret_state,
                struct stw_error *err);
    void (*cancel)(void *state);
    void (*close)(void *state);
    void (*pause)(
        void *state); /* the lease was lost: abort work that is outside of runs; may be NULL */
    void (*secret_changed)(void *state, const char *key); /* of stw_watch_secrets; or NULL */
    void (*tidy)(void *state); /* called about once a minute, from start to cancel; or NULL */
    /* Kinds without which this one cannot work, such as those of objects that it creates; ended by
     * NULL; or NULL.  --kinds refuses to leave them out. */
    const struct stw_kind *const *needs;
};

/* "steward-myweb": the field manager of what the controller writes, and the source of its events. */
void stw_field_manager(const struct stw_operator *op, const struct stw_controller *c,
                       char out[STW_OWN_NAME_LEN]);
/* The selector of a watch; "": all objects. */
#define STW_SELECTOR_LEN 500
void stw_watch_selector(const struct stw_operator *op, const struct stw_watch *w,
                        char out[STW_SELECTOR_LEN]);

/* Whether the table of a controller is right: what it needs is there, and its parts fit together.  -1: the
 * error names the controller and the member.  stw_operator_check_tables() calls it.  On any thread. */
int stw_controller_check(const struct stw_controller *c, struct stw_error *err) STW_MUST_CHECK;

/* The i-th watch besides `own`, of the rows first; NULL: there are no more. */
const struct stw_watch *stw_controller_watch(const struct stw_controller *c, size_t i);
/* The i-th type of the conditions, the standard ones first; NULL: there are no more. */
const char *stw_controller_condition(const struct stw_controller *c, size_t i);
/* Calls `add` for each right that the controller needs. */
void stw_controller_rules(const struct stw_controller *c,
                          void (*add)(void *ctx, const struct stw_rule *rule), void *ctx);

/* Rules that the manager itself needs: for events and for the Lease of the election.  Ended by a
 * NULL resource. */
extern const struct stw_rule stw_manager_rules[];

/* --- for watches and reconcilers */

/* The cache of a watch that the controller names; NULL if there is none, in a test of a run without a
 * manager.  A watch that no table names ends the process, with a line of the log that names it.  Borrowed; it lives as long as the manager.  On any thread. */
struct stw_informer *stw_run_cache(const struct stw_run *run, const struct stw_watch *w);
/* The cache of another kind's objects; NULL: that kind is left out. */
struct stw_informer *stw_run_other_cache(const struct stw_run *run,
                                         const struct stw_controller *other);
/* True while the leader term in which this run began lasts (base/fence.h).  The calls that write
 * check this themselves and fail with STW_ERR_CANCELLED.  Check here before starting something that
 * they would then leave unfinished.  Never blocks; on the worker of the run. */
bool stw_run_may_write(const struct stw_run *run);
/* The same as a call that fails: 0, or -1 with STW_ERR_CANCELLED. */
int stw_run_check_write(const struct stw_run *run, struct stw_error *err) STW_MUST_CHECK;

/* Reads a Secret of the run's namespace, at least as new as `version`, if that is not NULL.  A run that
 * reads one over 64 KiB needs memory of the reconciles: while others have it, the run gets
 * STW_ERR_UNAVAILABLE with run->waits, should write nothing and end; it is run again when there is some.
 * Call stw_secret_done in any case.  Blocks for one or two requests; on the worker of the run. */
int stw_run_get_secret(const struct stw_run *run, const char *name, const char *version,
                       struct stw_secret *ret, struct stw_error *err) STW_MUST_CHECK;

/* Enqueues a key ("namespace/name", copied) of `kind` ("MyWeb") for its controller.  A key that waits
 * already is not added twice.  Kinds without a controller are skipped.  Never blocks; on any
 * thread. */
void stw_manager_enqueue(struct stw_manager *m, const char *kind, const char *key);
/* An object with this key is gone.  It may have blocked the creation of a child, which has the name
 * of its owner: enqueues this key for every controller that watches `w`. */
void stw_manager_enqueue_namesakes(struct stw_manager *m, const struct stw_watch *w,
                                   const char *key);
/* Enqueues every custom object that is indexed under `value` of `field`, of all controllers.  Never
 * blocks; on any thread. */
void stw_manager_wake(struct stw_manager *m, const char *field, const char *value);
/* Calls secret_changed() of every controller that has one. */
void stw_manager_report_secret(struct stw_manager *m, const char *key);
/* Enqueues every object of a controller, after a change of something that all of them depend on. */
void stw_manager_enqueue_all(struct stw_manager *m, const struct stw_controller *c);
/* The state that the controller's open() returned; NULL before open(). */
void *stw_manager_state(struct stw_manager *m, const struct stw_controller *c);
/* The same of the controller of `kind` ("MyWeb"), for the watches that the controller's row names.  NULL
 * also if the kind is left out. */
void *stw_manager_state_of(struct stw_manager *m, const char *kind);
/* A changed() for the watch of a kind itself. */
void stw_watch_own_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                           const char *old_text, const char *new_text);

/* The name of `key` in messages to the users of `self`, another key.  An object of another
 * namespace is not named. */
void stw_name_to(const char *self, const char *key, char *out, size_t size);

/* Whether pod templates of a new version of the program are applied at once. */
bool stw_run_updates_templates(const struct stw_run *run);

/* Detects children that are rewritten in a loop; shared by all workers. */
struct stw_guard;
struct stw_guard *stw_run_guard(const struct stw_run *run);
bool stw_run_in_shadow(const struct stw_run *run); /* nothing is written (kube/owned/shadow.h) */
/* Cached results computed from objects; shared by all workers. */
struct stw_memo;
struct stw_memo *stw_run_memo(const struct stw_run *run);
/* Counts in PREFIX_hot_loop_total that the guard tripped over a write of this run. */
void stw_run_count_hot_loop(const struct stw_run *run);

#endif
