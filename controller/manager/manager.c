/* SPDX-License-Identifier: Apache-2.0
 *
 * Start, leadership and stop.  Every replica fills its caches and queues, but its workers take keys
 * only while it leads.  A new leader therefore starts with everything that it has seen. */
#include "base/backoff.h"
#include "base/log.h"
#include "base/process/footprint.h"
#include "base/thread.h"
#include "base/util.h"
#include "controller/cache/stub.h"
#include "controller/manager/manager_priv.h"

#include <assert.h>
#include <stdio.h>

#define DEFAULT_WORKERS 4
#define DEFAULT_RESYNC_MS (10u * 3600 * 1000)
#define TIDY_MS 60000
#define SYNC_POLL_MS 5
#define LOST_LEASE_DRAIN_MS 4000 /* when renewal is given up, the lease is valid for 5 s more */
#define HANGS_MS (10u * 60000)

const struct stw_rule stw_manager_rules[] = {
    {.resource = &stw_res_event, .verbs = "create,patch"},
    {.resource = &stw_res_lease, .verbs = "create", .own_namespace = true},
    {.resource = &stw_res_lease,
     .verbs = "get,list,watch,update",
     .name = STW_MANAGER_LEASE,
     .own_namespace = true},
    {0},
};

static void cache_changed(void *ctx, const char *key, const char *old_text, const char *new_text)
{
    const struct stw_watch_cache *cache = ctx;
    cache->watch->changed(cache->manager, cache->watch, key, old_text, new_text);
}

/* An optional resource has come or gone: every object that may own some of it is run again. */
static void cache_available(void *ctx)
{
    const struct stw_watch_cache *cache = ctx;
    struct stw_manager *m = cache->manager;
    for (uint32_t i = 0; i < m->pool_count; i++) {
        const struct stw_controller *c = m->pools[i].controller;
        const struct stw_watch *w;
        for (size_t k = 0; (w = stw_controller_watch(c, k)); k++)
            if (w == cache->watch)
                stw_manager_enqueue_all(m, c);
    }
}

static void project_cached_object(void *ctx, struct stw_json object, struct stw_buf *out)
{
    const struct stw_watch_cache *cache = ctx;
    char ns[254] = "";
    cache->watch->project(cache->manager->config.op, object, out);
    if (!cache->kind)
        return;
    (void)stw_json_strcpy(stw_json_path(object, "metadata.namespace"), ns, sizeof(ns));
    stw_stub_shrink(out, &(struct stw_stub_of){.ns = ns,
                                               .finalizer = cache->kind->finalizer,
                                               .index = cache->watch->index});
}

static void index_cached_object(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    const struct stw_watch_cache *cache = ctx;
    if (stw_stub_is(projected))
        stw_stub_index(projected, out);
    else
        cache->watch->index(NULL, projected, out);
}

static const struct stw_kind *kind_of_own_watch(const struct stw_manager *m,
                                                const struct stw_watch *w)
{
    for (const struct stw_controller *const *c = m->config.op->controllers; *c; c++)
        if ((*c)->own == w)
            return (*c)->kind;
    return NULL;
}

/* --- creation */

static int add_cache(struct stw_manager *m, const struct stw_watch *w, struct stw_error *err)
{
    /* With namespaces given, there are no rights beyond them. */
    if (stw_manager_cache(m, w) || (m->config.namespaces && !w->resource->namespaced))
        return 0;
    if (m->cache_count == m->cache_max)
        return stw_fail(err, STW_ERR_INTERNAL, "more than %u watches", m->cache_max);
    struct stw_watch_cache *cache = &m->caches[m->cache_count];
    *cache = (struct stw_watch_cache){.manager = m, .watch = w, .kind = kind_of_own_watch(m, w)};
    stw_watch_selector(m->config.op, w, cache->selector);
    struct stw_informer_config config = {
        .resource = w->resource,
        .alternatives = w->alternatives,
        .namespaces = m->config.namespaces,
        .label_selector = *cache->selector ? cache->selector : NULL,
        .metadata_only = w->metadata_only,
        .optional = w->optional,
        .reports_gone = w->reports_gone,
        .metrics_name = w->metrics_name,
        .project = project_cached_object,
        .changed = m->config.webhook_only ? NULL : cache_changed,
        .index = w->index ? index_cached_object : NULL,
        .available = m->config.webhook_only ? NULL : cache_available,
        .ctx = cache};
    if (stw_informer_create(m->config.client, &config, m->config.clock, m->config.metrics,
                            &cache->informer, err) != 0)
        return -1;
    m->cache_count++;
    return 0;
}

static int add_worker_pool(struct stw_manager *m, const struct stw_controller *c,
                           struct stw_error *err)
{
    if (m->pool_count == m->pool_max)
        return stw_fail(err, STW_ERR_INTERNAL, "more than %u controllers", m->pool_max);
    if (stw_controller_check(c, err) != 0)
        return -1;
    struct stw_worker_pool *pool = &m->pools[m->pool_count];
    *pool = (struct stw_worker_pool){.manager = m, .controller = c};
    stw_field_manager(m->config.op, c, pool->field_manager);
    pool->queue = stw_queue_create(c->name, m->config.clock, m->config.metrics);
    pool->failures = stw_failures_create();
    if (!pool->queue || !pool->failures) {
        stw_queue_destroy(pool->queue);
        stw_failures_destroy(pool->failures);
        return stw_fail_memory(err);
    }
    m->pool_count++;
    stw_queue_shut(pool->queue);
    stw_worker_pool_make_metrics(pool, m->config.metrics,
                                 stw_worker_pool_size(c, m->config.workers));
    if (stw_events_create(m->config.client, m->config.clock, pool->field_manager, &pool->events,
                          err) != 0 ||
        add_cache(m, c->own, err) != 0)
        return -1;
    const struct stw_watch *w;
    for (size_t i = 0; (w = stw_controller_watch(c, i)); i++)
        if (add_cache(m, w, err) != 0)
            return -1;
    pool->own = stw_manager_cache(m, c->own);
    return c->open ? c->open(m, &m->config, &pool->state, err) : 0;
}

/* Adds only the caches that admission rules read. */
static int add_lookups(struct stw_manager *m, const struct stw_controller *c, struct stw_error *err)
{
    if (c->own->for_admission && add_cache(m, c->own, err) != 0)
        return -1;
    const struct stw_watch *w;
    for (size_t i = 0; (w = stw_controller_watch(c, i)); i++)
        if (w->for_admission && add_cache(m, w, err) != 0)
            return -1;
    return 0;
}

static void register_object_metrics(struct stw_manager *m)
{
    static const char *const labels[] = {"kind", "condition", "status", NULL};
    if (!m->config.metrics)
        return;
    m->objects =
        stw_metrics_family(m->config.metrics, STW_GAUGE, "_objects",
                           "Custom objects, by the conditions in their status.", labels, NULL);
    m->stubs =
        stw_metrics_family(m->config.metrics, STW_GAUGE, "_cache_objects_without_spec",
                           "Custom objects whose long values are not cached: they are large, or "
                           "the caches use up their memory.",
                           (const char *const[]){"kind", NULL}, NULL);
    m->unready = stw_metrics_family(
        m->config.metrics, STW_GAUGE, "_object_not_ready",
        "1 for each object whose condition Ready is not True, 500 at most; its namespaces share "
        "the "
        "places.",
        (const char *const[]){"kind", "namespace", "name", "reason", NULL}, NULL);
    m->unnamed =
        stw_metrics_family(m->config.metrics, STW_GAUGE, "_objects_not_ready_unnamed",
                           "Objects whose condition Ready is not True beyond those that are named.",
                           (const char *const[]){"kind", NULL}, NULL);
    (void)stw_metrics_on_collect(m->config.metrics, stw_manager_measure, m);
}

static int init_locks(struct stw_manager *m, struct stw_error *err)
{
    if (pthread_mutex_init(&m->lock, NULL) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot make a lock");
    if (stw_cond_init(&m->turn) == 0)
        return 0;
    pthread_mutex_destroy(&m->lock);
    return stw_fail(err, STW_ERR_INTERNAL, "cannot make a condition variable");
}

static void set_defaults(struct stw_manager *m)
{
    if (m->config.workers == 0)
        m->config.workers = DEFAULT_WORKERS;
    m->config.workers = STW_MIN(m->config.workers, STW_MANAGER_WORKERS_MAX);
    if (m->config.resync_ms == 0)
        m->config.resync_ms = DEFAULT_RESYNC_MS;
    m->lookup = (struct stw_lookup){
        .ctx = m, .find = stw_manager_find, .has = stw_manager_has, .secret = stw_manager_secret};
    m->env =
        (struct stw_env){.op = m->config.op, .lookup = &m->lookup, .product = m->config.product};
}

static int allocate_tables(struct stw_manager *m, struct stw_error *err)
{
    const struct stw_limits *l = &m->config.op->limits;
    m->cache_max = l->caches ? l->caches : STW_MANAGER_CACHES_MAX;
    m->pool_max = l->controllers ? l->controllers : STW_MANAGER_CONTROLLERS_MAX;
    m->caches = calloc(m->cache_max, sizeof(*m->caches));
    m->pools = calloc(m->pool_max, sizeof(*m->pools));
    return m->caches && m->pools ? 0 : stw_fail_memory(err);
}

/* `id` is "KIND NAMESPACE/NAME". */
static void enqueue_reserved(void *ctx, const char *id)
{
    char kind[64];
    size_t len = strcspn(id, " ");
    stw_format(kind, sizeof(kind), "%.*s", (int)STW_MIN(len, sizeof(kind) - 1), id);
    stw_manager_enqueue(ctx, kind, id + len + 1);
}

int stw_manager_create(const struct stw_manager_config *config, struct stw_manager **ret,
                       struct stw_error *err)
{
    if (stw_operator_check(config->op, err) != 0)
        return -1;
    struct stw_manager *m = calloc(1, sizeof(*m));
    if (!m)
        return stw_fail_memory(err);
    m->config = *config;
    set_defaults(m);
    if (init_locks(m, err) != 0) {
        free(m);
        return -1;
    }
    m->guard = stw_guard_create();
    m->memo = stw_memo_create();
    m->remains = stw_remains_create();
    m->reservations = stw_reservations_create(enqueue_reserved, m);
    m->fence = stw_fence_create(m->config.clock);
    int rc = m->guard && m->memo && m->remains && m->reservations && m->fence
                 ? allocate_tables(m, err)
                 : stw_fail_memory(err);
    for (const struct stw_controller *const *c = m->config.op->controllers; rc == 0 && *c; c++)
        rc = (m->config.webhook_only ? add_lookups : add_worker_pool)(m, *c, err);
    if (rc != 0) {
        stw_manager_destroy(m);
        return -1;
    }
    register_object_metrics(m);
    *ret = m;
    return 0;
}

/* --- leadership */

static void set_working(struct stw_manager *m, bool working)
{
    pthread_mutex_lock(&m->lock);
    working = working && !m->stopping;
    m->working = working;
    pthread_cond_broadcast(&m->turn);
    pthread_mutex_unlock(&m->lock);
    for (uint32_t i = 0; i < m->pool_count; i++) {
        if (working)
            stw_queue_open(m->pools[i].queue);
        else
            stw_queue_shut(m->pools[i].queue);
    }
}

static bool drain_queues(struct stw_manager *m, uint64_t timeout_ms)
{
    uint64_t deadline = stw_now_ms(&stw_clock_system) + timeout_ms;
    bool idle = true;
    for (uint32_t i = 0; i < m->pool_count; i++) {
        uint64_t now = stw_now_ms(&stw_clock_system);
        idle &= stw_queue_drain(m->pools[i].queue, deadline > now ? deadline - now : 0);
    }
    return idle;
}

static void start_leading(void *ctx)
{
    struct stw_manager *m = ctx;
    stw_log(STW_LOG_INFO, "leading: reconciling begins", STW_STR("identity", m->config.identity));
    set_working(m, true);
}

static void pause_controllers(struct stw_manager *m)
{
    for (uint32_t i = 0; i < m->pool_count; i++)
        if (m->pools[i].state && m->pools[i].controller->pause)
            m->pools[i].controller->pause(m->pools[i].state);
}

/* Called when the lease is lost or about to be released.  The fence is already closed. */
static void step_down(void *ctx)
{
    struct stw_manager *m = ctx;
    set_working(m, false);
    pause_controllers(m);
    if (!drain_queues(m, LOST_LEASE_DRAIN_MS))
        stw_log(STW_LOG_WARN, "a reconcile still waits for the API server; it will write no more");
    stw_log(STW_LOG_INFO, "no longer leading: reconciling stopped");
}

static int stand_for_election(struct stw_manager *m, struct stw_error *err)
{
    char name[STW_OWN_NAME_LEN];
    stw_operator_text(m->config.op, STW_MANAGER_LEASE, name);
    struct stw_lease_config config = {.ns = m->config.lease_ns,
                                      .name = name,
                                      .identity = m->config.identity,
                                      .started = start_leading,
                                      .stopped = step_down,
                                      .ctx = m,
                                      .fence = m->fence};
    if (stw_lease_create(m->config.client, &config, m->config.clock, m->config.metrics, &m->lease,
                         err) != 0)
        return -1;
    return 0;
}

/* --- the resync thread */

/* Sleeps until `deadline` or until the manager stops.  Returns true if it stops. */
static bool resync_sleeps(struct stw_manager *m, uint64_t deadline)
{
    pthread_mutex_lock(&m->lock);
    while (!m->stopping && stw_now_ms(&stw_clock_system) < deadline)
        stw_cond_wait_until(&m->turn, &m->lock, deadline);
    bool stopping = m->stopping;
    pthread_mutex_unlock(&m->lock);
    return stopping;
}

/* Why a cache is not filled. */
static void describe_unsynced(const struct stw_manager *m, struct stw_watch_cache *cache, char *why,
                              size_t why_size)
{
    struct stw_informer_facts facts;
    const struct stw_resource *r = stw_informer_resource(cache->informer);
    const char *command = m->config.grant_command;
    stw_informer_facts(cache->informer, &facts);
    if (!facts.forbidden) {
        stw_format(why, why_size, "%s are not listed yet%s%s", r->plural,
                   *facts.problem ? ": " : "", facts.problem);
        return;
    }
    stw_format(why, why_size, "the account lacks the rights list and watch on %s%s%s%s%s",
               r->plural, *r->group ? "." : "", r->group, command ? "; to grant them: " : "",
               command ? command : "");
    /* Once: the reflector retries for as long as it takes. */
    if (!atomic_exchange(&cache->denied, true))
        stw_log(STW_LOG_ERROR, "not ready: rights are missing, as of an older version's manifests",
                STW_STR("missing", why), STW_STR("error", facts.problem));
}

static bool all_synced(struct stw_manager *m)
{
    char why[512];
    bool all = true;
    for (uint32_t i = 0; i < m->cache_count; i++)
        if (!stw_informer_synced(m->caches[i].informer)) {
            describe_unsynced(m, &m->caches[i], why, sizeof(why));
            all = false;
        }
    return all;
}

/* Enqueues every object, in case a change was missed.  Resyncs have the lower priority. */
static void resync_all_objects(struct stw_manager *m)
{
    for (uint32_t i = 0; i < m->pool_count; i++) {
        struct stw_worker_pool *pool = &m->pools[i];
        stw_autobuf struct stw_buf keys = STW_BUF_INIT(64u << 20);
        stw_informer_keys(pool->own->informer, NULL, &keys);
        size_t at = 0;
        for (const char *k; (k = stw_keys_next(&keys, &at));)
            if (!stw_settled_is(pool, k))
                (void)stw_queue_add(pool->queue, k, -1);
    }
}

/* Adds a jitter of up to a tenth, so that replicas and restarts do not synchronise. */
static uint64_t next_resync(const struct stw_manager *m)
{
    return stw_now_ms(&stw_clock_system) + m->config.resync_ms +
           stw_random() % (m->config.resync_ms / 10 + 1);
}

static void tidy_controllers(struct stw_manager *m)
{
    for (uint32_t i = 0; i < m->pool_count; i++)
        if (m->pools[i].controller->tidy)
            m->pools[i].controller->tidy(m->pools[i].state);
}

/* Returns true if the manager stops. */
static bool wait_for_resync(struct stw_manager *m)
{
    uint64_t at = next_resync(m), now;
    while ((now = stw_now_ms(&stw_clock_system)) < at) {
        if (resync_sleeps(m, STW_MIN(at, now + TIDY_MS)))
            return true;
        tidy_controllers(m);
    }
    return false;
}

static void *run_resync_thread(void *ctx)
{
    struct stw_manager *m = ctx;
    struct stw_error err = {0};
    uint64_t begin = stw_now_ms(&stw_clock_system);
    while (!all_synced(m))
        if (resync_sleeps(m, stw_now_ms(&stw_clock_system) + SYNC_POLL_MS))
            return NULL;
    stw_footprint_shrink(); /* frees the memory of the lists before all objects are reconciled */
    stw_log(STW_LOG_INFO, "caches are filled",
            STW_INT("tookMs", stw_now_ms(&stw_clock_system) - begin));
    if (!m->lease) {
        if (m->config.shadow)
            stw_fence_set_shadow(m->fence);
        stw_fence_open(m->fence, STW_FENCE_FOREVER, &(struct stw_fence_epoch){0});
        start_leading(m);
    }
    if (m->lease && stw_lease_start(m->lease, &err) != 0)
        stw_log(STW_LOG_ERROR, "cannot start leader election", STW_STR("error", err.text));
    while (!wait_for_resync(m))
        resync_all_objects(m);
    return NULL;
}

/* --- start, probes, stop */

int stw_manager_start(struct stw_manager *m, struct stw_error *err)
{
    if (m->config.leader_elect && !m->config.webhook_only && stand_for_election(m, err) != 0)
        return -1;
    for (uint32_t i = 0; i < m->pool_count; i++)
        if (stw_worker_pool_start(&m->pools[i], err) != 0)
            return -1;
    for (uint32_t i = 0; i < m->cache_count; i++)
        if (stw_informer_start(m->caches[i].informer, err) != 0)
            return -1;
    if (m->config.webhook_only)
        return 0;
    if (stw_thread_start(&m->resync_thread, "resync", 0, run_resync_thread, m, err) != 0)
        return -1;
    m->resync_started = true;
    return 0;
}

void stw_manager_clock_moved(struct stw_manager *m)
{
    for (uint32_t i = 0; i < m->pool_count; i++)
        stw_queue_clock_moved(m->pools[i].queue);
}

/* The API server may have to call our webhook to list the objects of such a kind, and through a
 * Service it calls only replicas that are ready. */
static bool is_converted(const struct stw_manager *m, const struct stw_resource *resource)
{
    for (const struct stw_kind *const *k = m->config.op->kinds; *k; k++)
        if (&(*k)->resource == resource)
            return (*k)->versions && (*k)->versions->name;
    return false;
}

bool stw_manager_synced(struct stw_manager *m, char *why, size_t why_size)
{
    for (uint32_t i = 0; i < m->cache_count; i++) {
        if (stw_informer_synced(m->caches[i].informer) ||
            is_converted(m, m->caches[i].watch->resource))
            continue;
        describe_unsynced(m, &m->caches[i], why, why_size);
        return false;
    }
    return true;
}

bool stw_manager_alive(struct stw_manager *m, char *why, size_t why_size)
{
    for (uint32_t i = 0; i < m->pool_count; i++) {
        uint64_t ms = stw_queue_longest_ms(m->pools[i].queue);
        if (ms <= HANGS_MS)
            continue;
        stw_format(why, why_size, "a run of the %s controller has not ended for %llu s",
                   m->pools[i].controller->name, (unsigned long long)(ms / 1000));
        return false;
    }
    return true;
}

void stw_manager_stop(struct stw_manager *m, uint32_t timeout_ms)
{
    pthread_mutex_lock(&m->lock);
    bool again = m->stopping;
    m->stopping = true;
    pthread_cond_broadcast(&m->turn);
    pthread_mutex_unlock(&m->lock);
    if (again)
        return;
    if (m->resync_started)
        pthread_join(m->resync_thread, NULL);
    set_working(m, false);
    bool idle = drain_queues(m, timeout_ms);
    for (uint32_t i = 0; i < m->pool_count; i++)
        if (m->pools[i].state && m->pools[i].controller->cancel)
            m->pools[i].controller->cancel(m->pools[i].state);
    if (!idle)
        stw_log(STW_LOG_WARN, "stopping before a reconcile has ended",
                STW_INT("timeoutMs", timeout_ms));
    stw_fence_close(m->fence);
    if (m->lease)
        stw_lease_stop(m->lease);
}

static void end_workers(struct stw_manager *m)
{
    pthread_mutex_lock(&m->lock);
    m->ending = true;
    pthread_cond_broadcast(&m->turn);
    pthread_mutex_unlock(&m->lock);
    for (uint32_t i = 0; i < m->pool_count; i++)
        stw_worker_pool_join(&m->pools[i]);
}

void stw_manager_destroy(struct stw_manager *m)
{
    if (!m)
        return;
    stw_manager_stop(m, 0);
    if (m->pool_count > 0)
        stw_client_cancel(m->config.client); /* a worker may wait for a response */
    end_workers(m);
    stw_lease_destroy(m->lease);
    for (uint32_t i = 0; i < m->cache_count; i++)
        stw_informer_destroy(m->caches[i].informer);
    for (uint32_t i = 0; i < m->pool_count; i++) {
        if (m->pools[i].state && m->pools[i].controller->close)
            m->pools[i].controller->close(m->pools[i].state);
        stw_events_destroy(m->pools[i].events);
        stw_queue_destroy(m->pools[i].queue);
        stw_failures_destroy(m->pools[i].failures);
    }
    stw_guard_destroy(m->guard);
    stw_memo_destroy(m->memo);
    stw_remains_destroy(m->remains);
    stw_reservations_destroy(m->reservations);
    stw_fence_destroy(m->fence);
    free(m->caches);
    free(m->pools);
    pthread_cond_destroy(&m->turn);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
