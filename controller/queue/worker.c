/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker threads, and how the outcome of a run decides when the key is run again. */
#include "base/backoff.h"
#include "base/log.h"
#include "base/telemetry/trace.h"
#include "base/thread.h"
#include "base/util.h"
#include "controller/manager/manager_priv.h"
#include "controller/reconcile.h"

#include <assert.h>
#include <stdio.h>

#define SHADOW_PAUSE_MS (24u * 3600 * 1000)
#define WAITS_MS 60000        /* for memory, at most: its key is enqueued when there is some */
#define CANCELLED_PAUSE_MS 50 /* until the election closes the queue or a new term begins */

static const double run_buckets[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                     1,     2.5,  5,     10,   25,  60,   -1};

/* The names of the outcomes in dashboards for controller-runtime. */
static const char *const result_names[] = {
    [STW_RUN_DONE] = "success", [STW_RUN_AFTER] = "requeue_after", [STW_RUN_CONFLICT] = "requeue",
    [STW_RUN_FAILED] = "error", [STW_RUN_STALLED] = "error",
};
static_assert(STW_COUNT(result_names) == STW_RUN_STALLED + 1, "one name for each outcome");

static struct stw_series *create_pool_series(struct stw_metrics *m, enum stw_metric_type type,
                                             const char *name, const char *help,
                                             const char *controller)
{
    static const char *const labels[] = {"controller", NULL};
    struct stw_family *f =
        stw_metrics_family(m, type, name, help, labels, type == STW_HISTOGRAM ? run_buckets : NULL);
    return STW_SERIES(f, controller);
}

void stw_worker_pool_make_metrics(struct stw_worker_pool *pool, struct stw_metrics *m,
                                  uint32_t workers)
{
    static const char *const labels[] = {"controller", "result", NULL};
    const char *name = pool->controller->name;
    if (!m)
        return;
    struct stw_family *total =
        stw_metrics_family(m, STW_COUNTER, "controller_runtime_reconcile_total",
                           "Runs of a reconciler, by how they ended.", labels, NULL);
    for (size_t i = 0; i < STW_COUNT(result_names); i++)
        pool->by_outcome[i] = STW_SERIES(total, name, result_names[i]);
    pool->errors = create_pool_series(m, STW_COUNTER, "controller_runtime_reconcile_errors_total",
                                      "Runs of a reconciler that failed.", name);
    pool->terminal = create_pool_series(
        m, STW_COUNTER, "controller_runtime_terminal_reconcile_errors_total",
        "Runs of a reconciler that failed with an error that needs a person.", name);
    (void)create_pool_series(m, STW_COUNTER, "controller_runtime_reconcile_panics_total",
                             "Runs of a reconciler that panicked; always 0, as C has no panics.",
                             name);
    pool->seconds =
        create_pool_series(m, STW_HISTOGRAM, "controller_runtime_reconcile_time_seconds",
                           "Seconds that a run of a reconciler took.", name);
    pool->active = create_pool_series(m, STW_GAUGE, "controller_runtime_active_workers",
                                      "Workers that run a reconciler now.", name);
    pool->hot_loops = create_pool_series(
        m, STW_COUNTER, "_hot_loop_total",
        "Children that are no longer written because another client kept changing them.", name);
    stw_series_set(create_pool_series(m, STW_GAUGE, "controller_runtime_max_concurrent_reconciles",
                                      "Workers of a controller.", name),
                   workers);
}

/* --- one run */

static void random_id(char out[17])
{
    stw_format(out, 17, "%016llx", (unsigned long long)stw_random());
}

static void log_result(const struct stw_result *result, uint64_t took_ms)
{
    bool failed = result->outcome == STW_RUN_FAILED && result->err.code != STW_ERR_CANCELLED;
    stw_log(failed ? STW_LOG_WARN : STW_LOG_DEBUG, failed ? "reconcile failed" : "reconciled",
            STW_STR("result", result_names[result->outcome]),
            STW_STR("error", *result->err.text ? result->err.text : NULL),
            STW_INT("requeueAfterMs", result->after_ms), STW_INT("tookMs", took_ms));
}

/* A conflict is a matter of timing; it is neither. */
static void keep_failure(struct stw_worker_pool *pool, const char *key,
                         const struct stw_result *result)
{
    bool stalled = result->outcome == STW_RUN_STALLED;
    if ((stalled || result->outcome == STW_RUN_FAILED) && result->err.code != STW_ERR_CANCELLED)
        stw_failures_add(pool->failures, key, stalled, &result->err,
                         stw_wall_us(pool->manager->config.clock));
    else if (result->outcome == STW_RUN_DONE || result->outcome == STW_RUN_AFTER)
        stw_failures_forget(pool->failures, key);
}

static void count_result(struct stw_worker_pool *pool, const struct stw_result *result,
                         uint64_t took_ms)
{
    assert(result->outcome <= STW_RUN_STALLED);
    stw_series_add(pool->by_outcome[result->outcome], 1);
    stw_series_observe(pool->seconds, (double)took_ms / 1000.0);
    if (result->outcome == STW_RUN_FAILED || result->outcome == STW_RUN_STALLED)
        stw_series_add(pool->errors, 1);
    if (result->outcome == STW_RUN_STALLED)
        stw_series_add(pool->terminal, 1);
}

/* Decides when the key is run again.  If out of memory, it waits for the next resync. */
static void plan_next(struct stw_queue *q, const char *key, const struct stw_result *result)
{
    switch (result->outcome) {
    case STW_RUN_DONE:
        stw_queue_forget(q, key);
        break;
    case STW_RUN_AFTER:
    case STW_RUN_STALLED:
        stw_queue_forget(q, key);
        (void)stw_queue_add_after(q, key, result->after_ms);
        break;
    case STW_RUN_CONFLICT:
        (void)stw_queue_add_backoff(q, key, result->err.retry_after_ms);
        break;
    case STW_RUN_FAILED:
        (void)stw_queue_add_failed(q, key, result->after_ms);
        break;
    }
}

#define SHADOW_CONFLICTS_MAX 3

/* The run is over, unless it met a conflict.  What depends on a database, an etcd or a store is not
 * known: the object is reported. */
static void end_shadow_run(const struct stw_run *run, struct stw_result *result)
{
    bool repeat = result->outcome == STW_RUN_CONFLICT && run->failures < SHADOW_CONFLICTS_MAX;
    if (stw_fence_was_refused()) {
        result->outcome = STW_RUN_FAILED;
        result->err = (struct stw_error){0};
        (void)stw_fail(
            &result->err, STW_ERR_UNAVAILABLE,
            "followed up to its database, etcd or store, which shadow mode does not ask");
    } else if (result->outcome == STW_RUN_AFTER && result->err.code != STW_ERR_CANCELLED) {
        result->outcome = STW_RUN_DONE;
    } else if (result->outcome == STW_RUN_CONFLICT && !repeat) {
        result->outcome = STW_RUN_FAILED;
    }
    result->after_ms = repeat ? result->after_ms : SHADOW_PAUSE_MS;
}

/* --- its span */

static void begin_span(struct stw_worker_pool *pool, const char *key, const struct stw_run *run,
                       struct stw_span *span)
{
    const struct stw_controller *c = pool->controller;
    char name[96];
    stw_span_begin(span, STW_SPAN_INTERNAL, "reconcile", NULL, 0);
    if (!span->recording)
        return;
    stw_format(name, sizeof(name), "reconcile %s", c->name);
    stw_span_name(span, name);
    stw_span_str(span, "k8s.object.kind", c->kind->kind);
    stw_span_str(span, "k8s.namespace.name", *run->ns ? run->ns : NULL);
    stw_span_str(span, "k8s.object.name", run->name);
    stw_span_int(span, "reconcile.queue_wait_ms", (int64_t)stw_queue_waited_ms(pool->queue, key));
}

/* The text of the error is the one that the log has. */
static void end_span(const struct stw_result *result, const char *id, struct stw_span *span)
{
    stw_span_str(span, "reconcile.id", id);
    stw_span_str(span, "reconcile.result", result_names[result->outcome]);
    if (result->outcome == STW_RUN_FAILED || result->outcome == STW_RUN_STALLED) {
        stw_span_str(span, "error.type", stw_err_name(result->err.code));
        stw_span_fail(span, result->err.text);
    }
    stw_span_end(span);
}

static void run_key(struct stw_worker_pool *pool, const char *key)
{
    char ns[STW_KEY_LEN], name[STW_KEY_LEN], id[17], trace[STW_TRACE_ID_LEN];
    struct stw_span span;
    struct stw_manager *m = pool->manager;
    struct stw_result result = {.outcome = STW_RUN_DONE};
    struct stw_run run = {.manager = m,
                          .op = m->config.op,
                          .controller = pool->controller,
                          .field_manager = pool->field_manager,
                          .client = m->config.client,
                          .events = pool->events,
                          .clock = m->config.clock,
                          .env = &m->env,
                          .key = key,
                          .ns = ns,
                          .name = name,
                          .state = pool->state};
    assert(m->fence);
    stw_key_split(key, ns, name);
    random_id(id);
    begin_span(pool, key, &run, &span);
    const struct stw_log_field context[] = {STW_STR("controller", pool->controller->name),
                                            STW_STR("namespace", ns),
                                            STW_STR("name", name),
                                            STW_STR("reconcileID", id),
                                            STW_STR("traceID", stw_span_trace_id(trace)),
                                            {0}};
    stw_log_context(context);
    (void)stw_queue_backoff_ms(pool->queue, key, &run.failures);
    run.left_ms = stw_queue_left_ms(pool->queue, key);
    uint64_t begin = stw_now_ms(m->config.clock);
    struct stw_fence_ticket before = stw_fence_enter(stw_fence_take(m->fence));
    stw_run_begin_memory(&run);
    stw_reconcile(&run, &result);
    stw_run_end_memory(&run);
    if (m->config.shadow)
        end_shadow_run(&run, &result);
    (void)stw_fence_enter(before);
    uint64_t took = stw_now_ms(m->config.clock) - begin;
    if (result.err.code == STW_ERR_CANCELLED) { /* for the next leader, which may be this replica */
        result.outcome = STW_RUN_AFTER;
        result.after_ms = CANCELLED_PAUSE_MS;
    }
    if (run.waits) {
        result.outcome = STW_RUN_AFTER;
        result.after_ms = WAITS_MS;
    } else {
        keep_failure(pool, key, &result);
    }
    log_result(&result, took);
    stw_log_context(NULL);
    end_span(&result, id, &span);
    count_result(pool, &result, took);
    if (run.waits) /* its failures still count */
        (void)stw_queue_add_after(pool->queue, key, result.after_ms);
    else
        plan_next(pool->queue, key, &result);
}

/* --- threads */

/* Returns false if the worker must end. */
static bool wait_for_turn(struct stw_manager *m)
{
    pthread_mutex_lock(&m->lock);
    while (!m->working && !m->ending)
        pthread_cond_wait(&m->turn, &m->lock);
    bool go = !m->ending;
    pthread_mutex_unlock(&m->lock);
    return go;
}

static void *run_worker(void *ctx);

/* Starts one more worker.  The caller has checked thread_max, and holds the lock or runs before any
 * worker exists. */
static int add_worker(struct stw_worker_pool *pool, struct stw_error *err)
{
    assert(pool->thread_count < pool->thread_max);
    if (stw_thread_start(&pool->threads[pool->thread_count], pool->controller->name, 0, run_worker,
                         pool, err) != 0)
        return -1;
    pool->thread_count++;
    return 0;
}

/* Threads cost memory and are mostly idle, so they are started on demand: when the last idle worker
 * gets busy, it starts another one, up to thread_max. */
static void begin_work(struct stw_worker_pool *pool)
{
    struct stw_manager *m = pool->manager;
    struct stw_error err = {0};
    pthread_mutex_lock(&m->lock);
    if (++pool->busy == pool->thread_count && pool->thread_count < pool->thread_max && !m->ending &&
        add_worker(pool, &err) != 0)
        stw_log(STW_LOG_WARN, "cannot start another worker", STW_STR("error", err.text));
    pthread_mutex_unlock(&m->lock);
    stw_series_add(pool->active, 1);
}

static void end_work(struct stw_worker_pool *pool)
{
    struct stw_manager *m = pool->manager;
    stw_series_add(pool->active, -1);
    STW_LOCKED(&m->lock);
    assert(pool->busy > 0);
    pool->busy--;
}

static void *run_worker(void *ctx)
{
    struct stw_worker_pool *pool = ctx;
    stw_client_set_part(pool->controller->name);
    while (wait_for_turn(pool->manager)) {
        stw_autofree char *key = stw_queue_get(pool->queue);
        if (!key)
            continue;
        begin_work(pool);
        run_key(pool, key);
        end_work(pool);
        stw_queue_done(pool->queue, key);
    }
    return NULL;
}

uint32_t stw_worker_pool_size(const struct stw_controller *c, uint32_t workers)
{
    uint32_t wanted = workers * STW_MAX(c->worker_factor, 1U);
    return STW_MIN(wanted, (uint32_t)STW_MANAGER_WORKERS_MAX);
}

int stw_worker_pool_start(struct stw_worker_pool *pool, struct stw_error *err)
{
    pool->thread_max = stw_worker_pool_size(pool->controller, pool->manager->config.workers);
    pool->threads = calloc(pool->thread_max, sizeof(*pool->threads));
    if (!pool->threads)
        return stw_fail_memory(err);
    return add_worker(pool, err);
}

void stw_worker_pool_join(struct stw_worker_pool *pool)
{
    for (uint32_t i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    free(pool->threads);
    pool->threads = NULL;
    pool->thread_count = 0;
}
