/* SPDX-License-Identifier: Apache-2.0
 *
 * What a reconciler is, and what the housekeeping hands to it.
 *
 * A reconciler is given a key, never an event.  It reads the caches, works out the whole desired
 * state, compares, writes only what differs and then the status, once.  A new kind brings one
 * struct stw_controller and one row in the table of controllers (controllers.h). */
#ifndef STW_CONTROLLER_CONTROLLER_H
#define STW_CONTROLLER_CONTROLLER_H

#include "base/clock.h"
#include "base/error.h"
#include "controller/manager.h"
#include "kinds/kind.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "kube/resource.h"

#include <stdbool.h>
#include <stdint.h>

/* One resource that is listed and watched.  Controllers share a watch by naming the same one: the
 * manager keeps one cache for each. */
struct stw_watch {
    const struct stw_resource *resource;
    const struct stw_resource *const *alternatives; /* or NULL; as for the informer */
    const char *label_selector;                     /* or NULL */
    bool metadata_only;                             /* PartialObjectMetadata */
    bool tells_gone; /* changed() also, with no text, when an object goes that was not kept */
    bool door;       /* admission rules look things up in it (kinds/kind.h, struct stw_lookup) */
    const char *metrics_name; /* of a second watch; NULL: the plural */
    /* As stw_project_fn.  `all`: the controllers of this process, ended by NULL. */
    void (*project)(const struct stw_controller *const *all, struct stw_json object,
                    struct stw_buf *out);
    stw_index_fn
        *index; /* or NULL; without a context.  Keys by stw_index_add, which stw_manager_lookup
                                 finds as "mywebs.nodePort" and stw_manager_wake as "nodePort" */
    /* Which objects are to be looked at again, by stw_manager_enqueue and stw_manager_wake.  Texts
     * as in stw_change_fn. */
    void (*changed)(struct stw_manager *m, const struct stw_watch *w, const char *key,
                    const char *old_text, const char *new_text);
};

/* How a run ended, and so when the key comes again. */
enum stw_outcome {
    STW_RUN_DONE,     /* when something changes */
    STW_RUN_AFTER,    /* after after_ms at the latest */
    STW_RUN_CONFLICT, /* at once, from a fresh read; the queue's own backoff, from 5 ms */
    STW_RUN_FAILED,   /* after after_ms, which is the wait that status.retry tells; an error in the
                         metrics */
    STW_RUN_STALLED,  /* after after_ms; only a change by a person helps */
};

struct stw_result {
    enum stw_outcome outcome;
    uint64_t after_ms;
    struct stw_error err; /* of CONFLICT, FAILED and STALLED; for the log */
};

/* One run over one key; borrowed, for the time of the call. */
struct stw_run {
    struct stw_manager *manager;
    const struct stw_controller *controller;
    struct stw_client *client;
    struct stw_events *events;
    const struct stw_clock *clock;
    const struct stw_env *env; /* with the lookup over our caches */
    const char *key, *ns, *name;
    uint32_t failures; /* runs of this key that failed in a row before this one */
    uint64_t left_ms;  /* until the next try was due, when an event came first; else 0 */
    void *state;       /* of the controller's open() */
};

struct stw_controller {
    const char *name; /* "myweb"; the label of its metrics, and "steward-myweb" its field manager */
    const char *field_manager; /* "steward-myweb" */
    const struct stw_kind *kind;
    const struct stw_resource *resource;
    const struct stw_watch *own;            /* of the kind itself */
    const struct stw_watch *const *watches; /* of children and others, ended by NULL */
    const struct stw_rule *rules;           /* ended by a NULL resource; beside stw_manager_rules */
    bool all_data; /* each key of its ConfigMaps counts: they are read with envFrom */
    bool scales;   /* others may scale its Deployments: caches keep how many pods they shall have */
    const char *const *conditions; /* types counted in steward_objects, ended by NULL */
    uint32_t worker_factor; /* times as many workers as others, for runs that mostly wait; 0: 1 */
    void (*reconcile)(struct stw_run *run, struct stw_result *result);
    /* What a controller keeps beside the caches, such as connections and timers; both may be NULL.
     * Opened before the caches fill, cancelled when the manager stops and runs are to end soon,
     * closed after the last run and the last change of a cache. */
    int (*open)(struct stw_manager *m, const struct stw_manager_config *config, void **ret_state,
                struct stw_error *err);
    void (*cancel)(void *state);
    void (*close)(void *state);
    void (*pause)(
        void *state); /* the lease was lost: cut what is under way outside of runs; or NULL */
    void (*tidy)(void *state); /* about once a minute, from start to cancel; or NULL */
};

/* What the manager itself needs: events, and the Lease of the election; ended by a NULL resource.
 */
extern const struct stw_rule stw_manager_rules[];

/* --- for watches and reconcilers */

/* The cache of a watch that the controller named. */
struct stw_informer *stw_run_cache(const struct stw_run *run, const struct stw_watch *w);
/* True while the term in which this run began lasts (base/fence.h).  The calls that write check it
 * themselves; ask before beginning something that they would then leave undone. */
bool stw_run_may_write(const struct stw_run *run);

/* Puts a key of `kind` ("MyWeb") into the queue of its controller; kinds without one are passed
 * over. */
void stw_manager_enqueue(struct stw_manager *m, const char *kind, const char *key);
/* Something called `key` is gone.  Puts the object of this key into the queue of every controller
 * that watches `w`, for it may have stood in the way of a child, which has the name of its owner.
 */
void stw_manager_enqueue_namesakes(struct stw_manager *m, const struct stw_watch *w,
                                   const char *key);
/* Puts every custom object into its queue which stands under `value` of a field of its index. */
void stw_manager_wake(struct stw_manager *m, const char *field, const char *value);
/* Every object of a controller: something that all of them go by has changed. */
void stw_manager_enqueue_all(struct stw_manager *m, const struct stw_controller *c);
/* The state of a controller, for its watches; NULL before open(). */
void *stw_manager_state(struct stw_manager *m, const struct stw_controller *c);
/* A changed() for the watch of a kind itself. */
void stw_watch_own_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                           const char *old_text, const char *new_text);

/* The key of an object, for those who may read `self`, another key: an object of another
 * namespace is not named. */
void stw_name_to(const char *self, const char *key, char *out, size_t size);

/* Guard against writing in circles; shared by all workers. */
struct stw_guard;
struct stw_guard *stw_run_guard(const struct stw_run *run);
/* What was worked out of objects before; shared by all workers. */
struct stw_memo;
struct stw_memo *stw_run_memo(const struct stw_run *run);
/* The guard tripped over a write of this run: counted in steward_hot_loop_total. */
void stw_run_count_hot_loop(const struct stw_run *run);

#endif
