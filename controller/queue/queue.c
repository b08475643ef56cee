/* SPDX-License-Identifier: Apache-2.0
 *
 * Any thread adds keys, workers take them.  One lock guards everything; nothing that could block is
 * called while it is held. */
#include "controller/queue/queue.h"

#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "controller/queue/queue_priv.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#define NO_MEMORY_MS 100 /* until a key is copied again */

struct queue_metrics {
    struct stw_series *depth, *adds, *retries, *unfinished, *longest, *queued_s, *worked_s;
};

struct stw_queue {
    const struct stw_clock *clock;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* something is ready, the earliest delay changed, or shut */
    pthread_cond_t idle; /* no worker has a key any more */
    struct stw_table entries;
    struct stw_turns ready; /* users' edits, and in the second lane resyncs */
    struct stw_queue_heap delayed;
    uint32_t working;
    bool shut;
    struct queue_metrics metrics;
};

static const char *entry_key(const void *entry)
{
    return ((const struct stw_queue_entry *)entry)->key;
}

/* The buckets of client-go's workqueue. */
static const double seconds_buckets[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01,
                                         0.1,  1,    10,   100,  1000, -1};

static const struct {
    enum stw_metric_type type;
    const char *name, *help;
    size_t offset;
} metric_table[] = {
    {STW_GAUGE, "workqueue_depth", "Keys that are ready to be worked on.",
     offsetof(struct queue_metrics, depth)},
    {STW_COUNTER, "workqueue_adds_total", "Keys that became ready.",
     offsetof(struct queue_metrics, adds)},
    {STW_COUNTER, "workqueue_retries_total", "Keys that were put back to be tried again.",
     offsetof(struct queue_metrics, retries)},
    {STW_GAUGE, "workqueue_unfinished_work_seconds",
     "Seconds of work in progress, summed over all workers.",
     offsetof(struct queue_metrics, unfinished)},
    {STW_GAUGE, "workqueue_longest_running_processor_seconds",
     "Seconds that the longest-running piece of work has taken so far.",
     offsetof(struct queue_metrics, longest)},
    {STW_HISTOGRAM, "workqueue_queue_duration_seconds",
     "Seconds that a key was ready before a worker took it.",
     offsetof(struct queue_metrics, queued_s)},
    {STW_HISTOGRAM, "workqueue_work_duration_seconds", "Seconds that the work on a key took.",
     offsetof(struct queue_metrics, worked_s)},
};

static void register_queue_metrics(struct queue_metrics *to, const char *name,
                                   struct stw_metrics *m)
{
    static const char *const labels[] = {"name", "controller", NULL};
    for (size_t i = 0; i < STW_COUNT(metric_table); i++) {
        struct stw_family *f =
            m ? stw_metrics_family(m, metric_table[i].type, metric_table[i].name,
                                   metric_table[i].help, labels,
                                   metric_table[i].type == STW_HISTOGRAM ? seconds_buckets : NULL)
              : NULL;
        struct stw_series *s = STW_SERIES(f, name, name);
        memcpy((char *)to + metric_table[i].offset, &s, sizeof(struct stw_series *));
    }
}

struct stw_queue *stw_queue_create(const char *name, const struct stw_clock *clock,
                                   struct stw_metrics *metrics)
{
    struct stw_queue *q = calloc(1, sizeof(*q));
    if (!q)
        return NULL;
    q->clock = clock;
    q->entries = STW_TABLE_INIT(entry_key);
    stw_turns_init(&q->ready, 0);
    if (pthread_mutex_init(&q->lock, NULL) != 0)
        goto no_lock;
    if (stw_cond_init(&q->wake) != 0)
        goto no_wake;
    if (stw_cond_init(&q->idle) != 0)
        goto no_idle;
    register_queue_metrics(&q->metrics, name, metrics);
    return q;
no_idle:
    pthread_cond_destroy(&q->wake);
no_wake:
    pthread_mutex_destroy(&q->lock);
no_lock:
    free(q);
    return NULL;
}

void stw_queue_destroy(struct stw_queue *q)
{
    if (!q)
        return;
    stw_table_release(&q->entries, free);
    stw_turns_done(&q->ready);
    stw_queue_heap_done(&q->delayed);
    pthread_cond_destroy(&q->idle);
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/* --- entries; all of these require the lock */

static struct stw_queue_entry *find_or_make(struct stw_queue *q, const char *key)
{
    struct stw_queue_entry *e = stw_table_get(&q->entries, key);
    void *old;
    STW_ASSERT_LOCKED(&q->lock);
    if (e)
        return e;
    size_t len = strlen(key) + 1;
    e = calloc(1, sizeof(*e) + len);
    if (!e)
        return NULL;
    memcpy(e->key, key, len);
    e->heap_at = STW_QUEUE_NOT_DELAYED;
    if (stw_turns_join(&q->ready, &e->turn, key) != 0)
        goto fail;
    if (stw_table_put(&q->entries, e, &old) != 0)
        goto fail;
    return e;
fail:
    stw_turns_quit(&q->ready, &e->turn);
    free(e);
    return NULL;
}

static void drop_if_unused(struct stw_queue *q, struct stw_queue_entry *e)
{
    if (e->turn.waits || e->working || e->failures > 0 || e->heap_at != STW_QUEUE_NOT_DELAYED)
        return;
    stw_table_remove(&q->entries, e->key);
    stw_turns_quit(&q->ready, &e->turn);
    free(e);
}

static void set_depth(struct stw_queue *q)
{
    stw_series_set(q->metrics.depth, q->ready.waiting);
}

static void make_ready(struct stw_queue *q, struct stw_queue_entry *e)
{
    assert(!e->turn.waits && !e->working);
    e->since_ms = stw_now_ms(q->clock);
    e->turn.lane = e->resync;
    stw_turns_wait(&q->ready, &e->turn);
    set_depth(q);
    pthread_cond_signal(&q->wake);
}

static void add_entry(struct stw_queue *q, struct stw_queue_entry *e, bool resync)
{
    STW_ASSERT_LOCKED(&q->lock);
    assert(!e->turn.waits || !e->working);
    if (e->turn.waits) {
        if (e->resync && !resync) {
            stw_turns_stop_waiting(&q->ready, &e->turn);
            e->resync = false;
            e->turn.lane = 0;
            stw_turns_wait(&q->ready, &e->turn);
        }
        return;
    }
    if (e->working) {
        e->resync = e->dirty ? e->resync && resync : resync;
        if (!e->dirty)
            stw_series_add(q->metrics.adds, 1);
        e->dirty = true;
        return;
    }
    e->resync = resync;
    stw_series_add(q->metrics.adds, 1);
    make_ready(q, e);
}

static int delay_entry(struct stw_queue *q, struct stw_queue_entry *e, uint64_t delay_ms)
{
    STW_ASSERT_LOCKED(&q->lock);
    uint64_t due = stw_now_ms(q->clock) + delay_ms;
    if (e->heap_at != STW_QUEUE_NOT_DELAYED) {
        if (due < e->due_ms) {
            e->due_ms = due;
            stw_queue_heap_hurry(&q->delayed, e);
        }
    } else {
        e->due_ms = due;
        if (stw_queue_heap_push(&q->delayed, e) != 0) {
            drop_if_unused(q, e);
            return -1;
        }
    }
    if (q->delayed.at[0] == e)
        pthread_cond_signal(&q->wake);
    return 0;
}

static void ready_what_is_due(struct stw_queue *q)
{
    uint64_t now = stw_now_ms(q->clock);
    while (q->delayed.count > 0 && q->delayed.at[0]->due_ms <= now) {
        struct stw_queue_entry *e = q->delayed.at[0];
        stw_queue_heap_remove(&q->delayed, e);
        add_entry(q, e, false);
    }
}

static double seconds_since(const struct stw_queue *q, uint64_t since_ms)
{
    uint64_t now = stw_now_ms(q->clock);
    return now > since_ms ? (double)(now - since_ms) / 1000.0 : 0;
}

/* A worker that leaves with a key may be the only one that was told of the earliest delay: which of
 * those that wait is woken by a signal is unspecified.  The others may wait without end. */
static void wake_next_worker(struct stw_queue *q)
{
    if (q->ready.waiting > 0 || q->delayed.count > 0)
        pthread_cond_signal(&q->wake);
}

/* Hands out the next entry, or returns NULL.  The key is copied first: if out of memory, the entry
 * stays in the queue. */
static char *take_ready_key(struct stw_queue *q)
{
    struct stw_queue_entry *e = (struct stw_queue_entry *)stw_turns_first(&q->ready);
    char *key = e ? strdup(e->key) : NULL;
    if (!key)
        return NULL;
    stw_turns_take(&q->ready, &e->turn);
    if (e->heap_at != STW_QUEUE_NOT_DELAYED)
        stw_queue_heap_remove(&q->delayed, e);
    stw_series_observe(q->metrics.queued_s, seconds_since(q, e->since_ms));
    uint64_t now = stw_now_ms(q->clock);
    e->working = true;
    e->waited_ms = now > e->since_ms ? now - e->since_ms : 0;
    e->since_ms = now;
    e->early = e->failures > 0 && e->since_ms < e->retry_ms;
    q->working++;
    set_depth(q);
    wake_next_worker(q);
    return key;
}

/* --- public functions */

int stw_queue_add(struct stw_queue *q, const char *key, int priority)
{
    STW_LOCKED(&q->lock);
    struct stw_queue_entry *e = find_or_make(q, key);
    if (e)
        add_entry(q, e, priority < 0);
    return e ? 0 : -1;
}

int stw_queue_add_after(struct stw_queue *q, const char *key, uint64_t delay_ms)
{
    int rc = -1;
    STW_LOCKED(&q->lock);
    struct stw_queue_entry *e = find_or_make(q, key);
    if (e)
        rc = delay_entry(q, e, delay_ms);
    return rc;
}

/* The number of failures that determines the next wait.  A run that an event started before the
 * retry was due does not count: otherwise events would push the next retry minutes away. */
static uint32_t counted_failures(const struct stw_queue_entry *e)
{
    return e->failures - (e->early ? 1 : 0);
}

static int add_failed(struct stw_queue *q, const char *key, bool backoff, uint64_t ms)
{
    int rc = -1;
    STW_LOCKED(&q->lock);
    struct stw_queue_entry *e = find_or_make(q, key);
    if (e) {
        uint32_t failures = counted_failures(e);
        uint64_t wait = backoff ? stw_backoff_ms(key, failures, STW_QUEUE_BACKOFF_MIN_MS,
                                                 STW_QUEUE_BACKOFF_MAX_MS)
                                : 0;
        wait = STW_MAX(wait, ms);
        e->failures = failures < UINT32_MAX ? failures + 1 : failures;
        e->retry_ms = stw_now_ms(q->clock) + wait;
        e->early = false;
        stw_series_add(q->metrics.retries, 1);
        rc = delay_entry(q, e, wait);
    }
    return rc;
}

int stw_queue_add_backoff(struct stw_queue *q, const char *key, uint64_t min_ms)
{
    return add_failed(q, key, true, min_ms);
}

int stw_queue_add_failed(struct stw_queue *q, const char *key, uint64_t delay_ms)
{
    return add_failed(q, key, false, delay_ms);
}

void stw_queue_forget(struct stw_queue *q, const char *key)
{
    STW_LOCKED(&q->lock);
    struct stw_queue_entry *e = stw_table_get(&q->entries, key);
    if (e) {
        e->failures = 0;
        e->early = false;
        drop_if_unused(q, e);
    }
}

uint64_t stw_queue_backoff_ms(struct stw_queue *q, const char *key, uint32_t *ret_failures)
{
    pthread_mutex_lock(&q->lock);
    struct stw_queue_entry *e = stw_table_get(&q->entries, key);
    uint32_t failures = e ? counted_failures(e) : 0;
    pthread_mutex_unlock(&q->lock);
    if (ret_failures)
        *ret_failures = failures;
    return stw_backoff_ms(key, failures, STW_QUEUE_BACKOFF_MIN_MS, STW_QUEUE_BACKOFF_MAX_MS);
}

bool stw_queue_is_working(struct stw_queue *q, const char *key)
{
    STW_LOCKED(&q->lock);
    const struct stw_queue_entry *e = stw_table_get(&q->entries, key);
    return e && e->working;
}

uint64_t stw_queue_left_ms(struct stw_queue *q, const char *key)
{
    STW_LOCKED(&q->lock);
    const struct stw_queue_entry *e = stw_table_get(&q->entries, key);
    uint64_t now = stw_now_ms(q->clock);
    return e && e->early && e->retry_ms > now ? e->retry_ms - now : 0;
}

uint64_t stw_queue_waited_ms(struct stw_queue *q, const char *key)
{
    STW_LOCKED(&q->lock);
    const struct stw_queue_entry *e = stw_table_get(&q->entries, key);
    return e && e->working ? e->waited_ms : 0;
}

int64_t stw_queue_due_ms(struct stw_queue *q, const char *key)
{
    STW_LOCKED(&q->lock);
    const struct stw_queue_entry *e = stw_table_get(&q->entries, key);
    uint64_t now = stw_now_ms(q->clock);
    if (!e || (!e->turn.waits && !e->working && e->heap_at == STW_QUEUE_NOT_DELAYED))
        return -1;
    return !e->turn.waits && !e->working && e->due_ms > now ? (int64_t)(e->due_ms - now) : 0;
}

/* Sleeps on the system clock until the earliest delay has passed on q->clock.  A key that is ready
 * here is one that could not be copied; nothing else would wake a worker for it. */
static void wait_for_more(struct stw_queue *q)
{
    uint64_t deadline = UINT64_MAX;
    if (q->delayed.count > 0 && !q->shut) {
        uint64_t now = stw_now_ms(q->clock), due = q->delayed.at[0]->due_ms;
        deadline = stw_now_ms(&stw_clock_system) + (due > now ? due - now : 0);
    }
    if (q->ready.waiting > 0)
        deadline = STW_MIN(deadline, stw_now_ms(&stw_clock_system) + NO_MEMORY_MS);
    stw_cond_wait_until(&q->wake, &q->lock, deadline);
}

char *stw_queue_get(struct stw_queue *q)
{
    char *key = NULL;
    STW_LOCKED(&q->lock);
    while (!q->shut) {
        ready_what_is_due(q);
        key = take_ready_key(q);
        if (key)
            break;
        wait_for_more(q);
    }
    return key;
}

void stw_queue_clock_moved(struct stw_queue *q)
{
    STW_LOCKED(&q->lock);
    pthread_cond_broadcast(&q->wake);
}

char *stw_queue_try(struct stw_queue *q)
{
    char *key = NULL;
    STW_LOCKED(&q->lock);
    if (!q->shut) {
        ready_what_is_due(q);
        key = take_ready_key(q);
    }
    return key;
}

void stw_queue_done(struct stw_queue *q, const char *key)
{
    STW_LOCKED(&q->lock);
    struct stw_queue_entry *e = stw_table_get(&q->entries, key);
    if (e && e->working) {
        stw_series_observe(q->metrics.worked_s, seconds_since(q, e->since_ms));
        assert(q->working > 0);
        e->working = false;
        if (--q->working == 0)
            pthread_cond_broadcast(&q->idle);
        if (e->dirty) {
            e->dirty = false;
            make_ready(q, e);
        } else {
            drop_if_unused(q, e);
        }
    }
}

static void set_shut(struct stw_queue *q, bool shut)
{
    STW_LOCKED(&q->lock);
    q->shut = shut;
    pthread_cond_broadcast(&q->wake);
}

void stw_queue_shut(struct stw_queue *q)
{
    set_shut(q, true);
}

void stw_queue_open(struct stw_queue *q)
{
    set_shut(q, false);
}

bool stw_queue_drain(struct stw_queue *q, uint64_t timeout_ms)
{
    uint64_t deadline = stw_now_ms(&stw_clock_system) + timeout_ms;
    pthread_mutex_lock(&q->lock);
    while (q->working > 0 && stw_now_ms(&stw_clock_system) < deadline)
        stw_cond_wait_until(&q->idle, &q->lock, deadline);
    bool idle = q->working == 0;
    pthread_mutex_unlock(&q->lock);
    return idle;
}

uint32_t stw_queue_depth(const struct stw_queue *q)
{
    pthread_mutex_t *lock =
        (pthread_mutex_t *)(uintptr_t)&q->lock; /* casts away const: locking does not change the
                                                   value */
    STW_LOCKED(lock);
    return q->ready.waiting;
}

/* Sum and maximum over the work in progress, in seconds. */
static void measure_work(struct stw_queue *q, double *ret_sum, double *ret_longest)
{
    uint32_t pos = 0;
    const struct stw_queue_entry *e;
    *ret_sum = *ret_longest = 0;
    STW_LOCKED(&q->lock);
    while (q->working > 0 && (e = stw_table_next(&q->entries, &pos))) {
        double s = e->working ? seconds_since(q, e->since_ms) : 0;
        *ret_sum += s;
        *ret_longest = STW_MAX(*ret_longest, s);
    }
}

uint64_t stw_queue_longest_ms(struct stw_queue *q)
{
    double sum, longest;
    measure_work(q, &sum, &longest);
    return (uint64_t)(longest * 1000.0);
}

void stw_queue_measure(struct stw_queue *q)
{
    double sum, longest;
    measure_work(q, &sum, &longest);
    stw_series_set(q->metrics.unfinished, sum);
    stw_series_set(q->metrics.longest, longest);
}

void stw_queue_facts(struct stw_queue *q, struct stw_queue_facts *ret,
                     void (*each)(void *ctx, const char *key, uint64_t ms), void *ctx)
{
    uint32_t pos = 0;
    const struct stw_queue_entry *e;
    STW_LOCKED(&q->lock);
    uint64_t now = stw_now_ms(q->clock);
    *ret = (struct stw_queue_facts){
        .ready = q->ready.waiting, .delayed = q->delayed.count, .working = q->working};
    if (q->delayed.count > 0 && q->delayed.at[0]->due_ms > now)
        ret->next_due_ms = q->delayed.at[0]->due_ms - now;
    while ((e = stw_table_next(&q->entries, &pos))) {
        uint64_t ms = now > e->since_ms ? now - e->since_ms : 0;
        ret->failing += e->failures > 0;
        if (e->turn.waits)
            ret->oldest_ms = STW_MAX(ret->oldest_ms, ms);
        if (!e->working)
            continue;
        ret->longest_ms = STW_MAX(ret->longest_ms, ms);
        if (each)
            each(ctx, e->key, ms);
    }
}
