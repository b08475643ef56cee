/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of the manager, shared by start and stop (manager.c), the workers (queue/worker.c), their
 * runs (run.c) and look-ups in the caches (cache/lookup.c). */
#ifndef STW_CONTROLLER_MANAGER_PRIV_H
#define STW_CONTROLLER_MANAGER_PRIV_H

#include "base/fence.h"
#include "base/util.h"
#include "controller/cache/memo.h"
#include "controller/child/remains.h"
#include "controller/controller.h"
#include "controller/queue/failures.h"
#include "controller/queue/guard.h"
#include "controller/queue/queue.h"
#include "controller/queue/reservation.h"
#include "kube/lease.h"

#include <pthread.h>
#include <stdatomic.h>

/* Unless the operator sets limits. */
#define STW_MANAGER_CONTROLLERS_MAX 16
#define STW_MANAGER_CACHES_MAX 48
#define STW_MANAGER_WORKERS_MAX 64

struct stw_watch_cache {
    struct stw_manager *manager;
    const struct stw_watch *watch;
    const struct stw_kind
        *kind; /* of a watch of a kind itself: long texts become stubs (cache/stub.h) */
    struct stw_informer *informer;
    char selector[STW_SELECTOR_LEN];
    atomic_bool denied; /* it was logged that a right is missing */
};

/* A running controller: its queue and its workers. */
struct stw_worker_pool {
    struct stw_manager *manager;
    const struct stw_controller *controller;
    char field_manager[STW_OWN_NAME_LEN];
    struct stw_watch_cache *own; /* of the kind itself */
    struct stw_queue *queue;
    struct stw_failures *failures;
    struct stw_events *events;
    void *state;        /* of controller->open */
    pthread_t *threads; /* the manager's lock guards this and the three below */
    uint32_t thread_count, thread_max, busy;
    struct stw_series *by_outcome[5]; /* enum stw_outcome */
    struct stw_series *errors, *terminal, *seconds, *active, *hot_loops;
};

/* --- child/unready.c: objects whose condition Ready is not True */

#define STW_UNREADY_MAX 500u

struct stw_unready_object {
    uint32_t pool;     /* index */
    uint32_t space;    /* of the namespace */
    const char *state; /* "Stalled", "Reconciling", "NotReady"; "New": no run has reported on it */
    char key[STW_KEY_LEN];
    char reason[64]; /* of Ready; "": New */
    char since[STW_TIME_LEN];
    char message[256];
};

struct stw_unready_space {
    uint64_t ns; /* hash */
    uint32_t count;
};

struct stw_unready {
    struct stw_unready_object *all;
    uint32_t count;
    struct stw_unready_space *spaces;
    uint32_t *left_out; /* of each pool: not named */
};

struct stw_manager {
    struct stw_manager_config config;
    struct stw_env env;
    struct stw_lookup lookup;
    struct stw_guard *guard;
    struct stw_memo *memo;
    struct stw_remains *remains;
    struct stw_reservations *reservations;
    struct stw_lease *lease;
    struct stw_watch_cache *caches;
    uint32_t cache_count, cache_max;
    struct stw_worker_pool *pools;
    uint32_t pool_count, pool_max;
    struct stw_family *objects;                         /* PREFIX_objects */
    struct stw_family *stubs;                           /* PREFIX_cache_objects_without_spec */
    struct stw_family *unready;                         /* PREFIX_object_not_ready */
    struct stw_family *unnamed;                         /* PREFIX_objects_not_ready_unnamed */
    struct stw_series *unready_series[STW_UNREADY_MAX]; /* of the latest scrape */
    uint32_t unready_count;

    pthread_mutex_t lock;    /* guards the three bools below; `turn` uses it */
    pthread_cond_t turn;     /* one of them changed */
    bool working;            /* workers take keys */
    bool stopping;           /* the resync thread must end */
    bool ending;             /* workers must end */
    struct stw_fence *fence; /* open while this replica leads */

    pthread_t resync_thread; /* waits for the caches, then joins the election; resyncs */
    bool resync_started;
};

/* --- queue/worker.c */
int stw_worker_pool_start(struct stw_worker_pool *pool, struct stw_error *err) STW_MUST_CHECK;
void stw_worker_pool_join(struct stw_worker_pool *pool); /* call after setting m->ending */
void stw_worker_pool_make_metrics(struct stw_worker_pool *pool, struct stw_metrics *m,
                                  uint32_t workers);
/* The number of workers of a controller when the default is `workers`. */
uint32_t stw_worker_pool_size(const struct stw_controller *c, uint32_t workers);

#define STW_REMAINS_KEY_LEN (STW_KEY_LEN + 64)
/* The key of an object's remains. */
static inline void stw_remains_key(const struct stw_controller *c, const char *key,
                                   char out[STW_REMAINS_KEY_LEN])
{
    stw_format(out, STW_REMAINS_KEY_LEN, "%s %s", c->kind->kind, key);
}

/* --- run_memory.c */
/* Memory for this run (queue/reservation.h).  STW_RESERVE_WAITS: the run must end. */
enum stw_reserve stw_run_reserve(struct stw_run *run, size_t bytes);
void stw_run_begin_memory(const struct stw_run *run);
/* The run keeps its reservation if it is run again with it. */
void stw_run_end_memory(struct stw_run *run);

/* --- queue/settled.c */
/* A run over a large object whose cached text is this one had nothing left to do. */
void stw_settled_note(const struct stw_run *run, const struct stw_buf *text);
/* Whether the cached text of this object is still that one. */
bool stw_settled_is(const struct stw_worker_pool *pool, const char *key);

/* --- cache/lookup.c */
struct stw_watch_cache *stw_manager_cache(struct stw_manager *m, const struct stw_watch *w);
bool stw_manager_find(void *ctx, const char *index, const char *key, const char *self,
                      char *ret_holder);
int stw_manager_has(void *ctx, const char *plural, const char *key);
void stw_manager_measure(void *ctx); /* called before each scrape */

/* Calls `each` with every cached object of the pool's kind. */
void stw_manager_each_object(const struct stw_worker_pool *pool,
                             void (*each)(void *ctx, const char *key, struct stw_json root),
                             void *ctx);
bool stw_manager_works(struct stw_manager *m); /* its workers take keys */

/* --- child/unready.c */
struct stw_unready *stw_unready_create(const struct stw_manager *m) STW_MUST_CHECK;
void stw_unready_destroy(struct stw_unready *u); /* NULL is allowed */
/* Adds the object unless it is Ready.  `u` may be NULL. */
void stw_unready_look(struct stw_unready *u, uint32_t pool, const char *key, struct stw_json root);
/* Sets the metrics, for a scrape.  NULL: there is none. */
void stw_unready_publish(struct stw_manager *m, const struct stw_unready *now);

/* --- cache/lookup_secret.c: members of struct stw_lookup */
int stw_manager_secret(void *ctx, const char *ns, const char *name, const char *key,
                       struct stw_secret_facts *ret);
/* Of a Secret as the API server returned it. */
void stw_secret_describe(struct stw_json secret, const char *key, struct stw_secret_facts *ret);

/* --- run.c */
/* Whether the controller names this watch, as its own, in a row of a child, or in .watches. */
bool stw_controller_has_watch(const struct stw_controller *c, const struct stw_watch *w);

#endif
