/* SPDX-License-Identifier: Apache-2.0
 *
 * Transfers take long and would block the workers, so they run on a few threads of their own.  The
 * threads are started when there is work and end when there is none.  A run starts a transfer, is
 * woken when it makes progress, and collects its result. */
#include "kinds/etcdbackup/runtime.h"

#include "base/fence.h"
#include "base/log.h"
#include "base/process/memory_budget.h"
#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "kinds/etcdbackup/access.h"
#include "kinds/etcdbackup/places.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum step { WAITING, MOVING, DONE };

struct transfer {
    char *key;
    char uid[64];
    struct eb_runtime *runtime;
    struct eb_job *job;
    struct stw_fence_ticket fence; /* of the run that started it */
    enum step step;
    bool verifying;
    bool forgotten; /* not in the table any more: the thread that moves it frees it */
    struct transfer *next;
    struct eb_place *place; /* until it has ended */
    enum eb_verdict verdict;
    struct eb_snapshot result;
};

/* The gauge for the etcd of one EtcdBackup. */
struct verified_gauge {
    char *key;
    struct stw_series *newest;
};

struct eb_runtime {
    struct stw_manager *manager;
    const struct stw_clock *clock;
    struct stw_series *succeeded, *failed;
    struct stw_family *verified;
    /* Guards all below, and each transfer except its job and result while it is MOVING. */
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct stw_table transfers, gauges;
    struct eb_places places;
    struct transfer *first, *last; /* queue of those that wait for a thread */
    struct transfer *moving[EB_TRANSFERS_MAX];
    unsigned threads;
    bool stopping;
};

static const char *key_of(const void *entry)
{
    return ((const struct transfer *)entry)->key;
}

static const char *key_of_gauge(const void *entry)
{
    return ((const struct verified_gauge *)entry)->key;
}

static void verified_gauge_free(void *entry)
{
    struct verified_gauge *t = entry;
    if (!t)
        return;
    stw_series_remove(t->newest);
    free(t->key);
    free(t);
}

static void transfer_free(void *entry)
{
    struct transfer *t = entry;
    if (!t)
        return;
    eb_job_free(t->job);
    free(t->key);
    free(t);
}

static void cancel_transfer(const struct transfer *t)
{
    if (!t->job)
        return;
    stw_etcd_cancel(t->job->etcd);
    stw_store_cancel(t->job->store);
}

/* --- places */

struct called {
    char *keys[EB_TRANSFERS_MAX];
    size_t count;
};

static uint64_t now_ms_of(const struct eb_runtime *k)
{
    return stw_now_ms(k->clock);
}

/* With the lock held; tell_called follows without it. */
static void call_next(struct eb_runtime *k, struct called *ret)
{
    const struct eb_place *p;
    STW_ASSERT_LOCKED(&k->lock);
    while (ret->count < EB_TRANSFERS_MAX && (p = eb_places_call(&k->places, now_ms_of(k))))
        ret->keys[ret->count++] = strdup(p->key);
}

static void tell_called(struct eb_runtime *k, struct called *all)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->keys[i])
            stw_manager_enqueue(k->manager, stw_kind_etcdbackup.kind, all->keys[i]);
        free(all->keys[i]);
    }
}

/* Ends transfers that have to give up their places to one that waits. */
static void end_overdue(struct eb_runtime *k)
{
    STW_ASSERT_LOCKED(&k->lock);
    for (size_t i = 0; i < EB_TRANSFERS_MAX; i++) {
        struct transfer *t = k->moving[i];
        enum eb_verdict v = t ? eb_places_judge(&k->places, t->place, now_ms_of(k)) : EB_GOES_ON;
        if (v == EB_GOES_ON)
            continue;
        t->verdict = v;
        cancel_transfer(t);
    }
}

bool eb_runtime_come(struct eb_runtime *k, const char *key)
{
    struct called all = {0};
    pthread_mutex_lock(&k->lock);
    const struct eb_place *p = eb_places_come(&k->places, key, now_ms_of(k));
    if (p && !p->called)
        call_next(k, &all);
    bool in = p && p->called;
    if (!in)
        end_overdue(k);
    pthread_mutex_unlock(&k->lock);
    tell_called(k, &all);
    return in;
}

void eb_runtime_leave(struct eb_runtime *k, const char *key)
{
    struct called all = {0};
    pthread_mutex_lock(&k->lock);
    const struct eb_place *p = eb_places_find(&k->places, key);
    if (p && p->called) {
        eb_places_forget(&k->places, key);
        call_next(k, &all);
    }
    pthread_mutex_unlock(&k->lock);
    tell_called(k, &all);
}

void eb_runtime_limits(const struct eb_runtime *k, unsigned *ret_of_namespace, unsigned *ret_all)
{
    *ret_of_namespace = k->places.of_namespace;
    *ret_all = k->places.max;
}

/* --- on a thread */

static void enqueue_backup(const struct transfer *t)
{
    stw_manager_enqueue(t->runtime->manager, stw_kind_etcdbackup.kind, t->key);
}

static void on_stage(void *ctx, enum eb_snapshot_stage stage)
{
    struct transfer *t = ctx;
    if (stage != EB_SNAPSHOT_VERIFYING)
        return;
    pthread_mutex_lock(&t->runtime->lock);
    t->verifying = true;
    pthread_mutex_unlock(&t->runtime->lock);
    enqueue_backup(t);
}

static void on_moved(void *ctx, size_t bytes)
{
    const struct transfer *t = ctx;
    atomic_fetch_add(&t->place->moved, bytes);
}

/* What it says of a transfer that was cancelled to give its place to another. */
static void set_verdict(struct eb_snapshot *s, enum eb_verdict v)
{
    if (v == EB_GOES_ON || s->err.code != STW_ERR_CANCELLED)
        return;
    s->fault = EB_SNAPSHOT_OTHER;
    stw_format(s->reason, sizeof(s->reason), "%s", v == EB_TOO_SLOW ? "TooSlow" : "TurnEnded");
    if (v == EB_TOO_SLOW)
        (void)stw_fail(&s->err, STW_ERR_UNAVAILABLE,
                       "less than %u KiB a second were moved while others waited for the place",
                       EB_SLOWEST_BYTES_PER_S >> 10);
    else
        (void)stw_fail(&s->err, STW_ERR_UNAVAILABLE,
                       "it took more than %d minutes, and a backup of another namespace waited",
                       EB_TURN_MS / 60000);
}

static void run_transfer(struct transfer *t)
{
    const struct eb_job *j = t->job;
    const struct eb_snapshot_request request = {
        .etcd = j->etcd,
        .endpoints = j->endpoints,
        .endpoint_count = j->count,
        .store = j->store,
        .path = j->path,
        .named = j->named,
        .verify = j->verify,
        .again = j->again,
        .timeout_s = j->timeout_s,
        .retention = {.max_backups = j->max_backups,
                      .max_age_s = j->max_age_s,
                      .keep = j->keep,
                      .owner = t->uid},
        .clock = t->runtime->clock,
        .stage = on_stage,
        .moved = on_moved,
        .ctx = t,
    };
    size_t bytes = eb_places_part_bytes(stw_share_limit(STW_SHARE_TRANSFERS)) + EB_TRANSFER_BYTES;
    stw_share_add(STW_SHARE_TRANSFERS, bytes); /* there are as many places as fit */
    struct stw_fence_ticket before = stw_fence_enter(t->fence);
    (void)eb_snapshot_save(&request, &t->result);
    (void)stw_fence_enter(before);
    stw_share_give_back(STW_SHARE_TRANSFERS, bytes);
}

static struct transfer *take_next(struct eb_runtime *k, struct transfer **slot)
{
    struct transfer *t = k->stopping ? NULL : k->first;
    if (!t)
        return NULL;
    assert(!*slot);
    k->first = t->next;
    if (!k->first)
        k->last = NULL;
    t->next = NULL;
    t->step = MOVING;
    *slot = t;
    return t;
}

static struct transfer **free_slot(struct eb_runtime *k)
{
    for (size_t i = 0; i < EB_TRANSFERS_MAX; i++)
        if (!k->moving[i])
            return &k->moving[i];
    return NULL;
}

static void finish_transfer(struct eb_runtime *k, struct transfer *t, struct transfer **slot)
{
    struct eb_job *job = stw_take(t->job);
    STW_ASSERT_LOCKED(&k->lock);
    assert(*slot == t && t->step == MOVING);
    *slot = NULL;
    set_verdict(&t->result, t->verdict);
    eb_places_end(&k->places, stw_take(t->place));
    t->step = DONE;
    bool forgotten = t->forgotten;
    pthread_mutex_unlock(&k->lock);
    eb_job_free(job);
    if (forgotten)
        transfer_free(t);
    pthread_mutex_lock(&k->lock);
}

static void *run_transfer_thread(void *ctx)
{
    struct eb_runtime *k = ctx;
    struct transfer *t, **slot;
    pthread_mutex_lock(&k->lock);
    while ((slot = free_slot(k)) && (t = take_next(k, slot))) {
        char key[STW_KEY_LEN];
        stw_format(key, sizeof(key), "%s", t->key);
        pthread_mutex_unlock(&k->lock);
        run_transfer(t);
        pthread_mutex_lock(&k->lock);
        finish_transfer(k, t, slot);
        struct called all = {0};
        call_next(k, &all);
        pthread_mutex_unlock(&k->lock);
        stw_manager_enqueue(k->manager, stw_kind_etcdbackup.kind, key);
        tell_called(k, &all);
        pthread_mutex_lock(&k->lock);
    }
    k->threads--;
    pthread_cond_broadcast(&k->idle);
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* --- for runs */

enum eb_transfer eb_runtime_look(struct eb_runtime *k, const char *key, const char *uid,
                                 bool *ret_verifying, struct eb_snapshot *ret)
{
    enum eb_transfer what = EB_NO_TRANSFER;
    STW_LOCKED(&k->lock);
    const struct transfer *t = stw_table_get(&k->transfers, key);
    if (t && stw_streq(t->uid, uid)) {
        what = t->step == DONE ? EB_TRANSFERRED : EB_TRANSFERS;
        *ret_verifying = t->verifying;
        if (t->step == DONE)
            *ret = t->result;
    }
    return what;
}

static void append_to_queue(struct eb_runtime *k, struct transfer *t)
{
    if (k->last)
        k->last->next = t;
    else
        k->first = t;
    k->last = t;
}

static void remove_from_queue(struct eb_runtime *k, const struct transfer *t)
{
    struct transfer *before = NULL;
    for (struct transfer *p = k->first; p; before = p, p = p->next) {
        if (p != t)
            continue;
        if (before)
            before->next = p->next;
        else
            k->first = p->next;
        if (k->last == p)
            k->last = before;
        return;
    }
}

static int start_thread(struct eb_runtime *k, struct stw_error *err)
{
    pthread_t thread;
    if (k->threads >= k->places.max)
        return 0;
    if (stw_thread_start(&thread, "etcdbackup", 0, run_transfer_thread, k, err) != 0)
        return k->threads > 0 ? 0 : -1;
    (void)pthread_detach(thread); /* eb_runtime_close waits until `threads` is 0 */
    k->threads++;
    return 0;
}

/* With the lock held. */
static int enter_transfer(struct eb_runtime *k, struct transfer *t, struct stw_error *err)
{
    void *old = NULL;
    if (k->stopping)
        return stw_fail(err, STW_ERR_CANCELLED, "stopped");
    t->place = eb_places_use(&k->places, t->key, now_ms_of(k));
    if (!t->place)
        return stw_fail(err, STW_ERR_UNAVAILABLE,
                        "the place of the backup has been given to another one");
    int rc = stw_table_put(&k->transfers, t, &old) != 0 ? stw_fail_memory(err) : 0;
    if (rc == 0) {
        append_to_queue(k, t);
        rc = start_thread(k, err);
        if (rc != 0) {
            remove_from_queue(k, t);
            (void)stw_table_remove(&k->transfers, t->key);
        }
    }
    if (rc != 0)
        eb_places_end(&k->places, stw_take(t->place));
    return rc;
}

int eb_runtime_start(struct eb_runtime *k, const char *key, const char *uid, struct eb_job *job,
                     struct stw_error *err)
{
    struct transfer *t = calloc(1, sizeof(*t));
    eb_runtime_forget(k, key);
    if (t) {
        t->job = job;
        t->runtime = k;
        t->fence = stw_fence_current();
        t->key = strdup(key);
        stw_format(t->uid, sizeof(t->uid), "%s", uid);
    } else {
        eb_job_free(job);
    }
    pthread_mutex_lock(&k->lock);
    int rc = !t || !t->key ? stw_fail_memory(err) : enter_transfer(k, t, err);
    pthread_mutex_unlock(&k->lock);
    if (rc != 0)
        transfer_free(t);
    return rc;
}

/* With the lock held. */
static void remove_transfer(struct eb_runtime *k, const char *key)
{
    struct transfer *t = stw_table_remove(&k->transfers, key);
    if (t && t->step == WAITING) {
        remove_from_queue(k, t);
        eb_places_end(&k->places, stw_take(t->place));
    }
    if (t && t->step == MOVING) {
        cancel_transfer(t);
        t->forgotten = true;
    } else {
        transfer_free(t);
    }
}

void eb_runtime_forget(struct eb_runtime *k, const char *key)
{
    STW_LOCKED(&k->lock);
    remove_transfer(k, key);
}

void eb_runtime_remove(struct eb_runtime *k, const char *key)
{
    struct called all = {0};
    eb_runtime_forget(k, key);
    pthread_mutex_lock(&k->lock);
    verified_gauge_free(stw_table_remove(&k->gauges, key));
    eb_places_forget(&k->places, key);
    call_next(k, &all);
    pthread_mutex_unlock(&k->lock);
    tell_called(k, &all);
}

/* Drops results of the ended term, too: the next leader may have removed what they report.  Also
 * drops gauges, which the next leader reports. */
void eb_runtime_pause(void *state)
{
    struct eb_runtime *k = state;
    const struct transfer *t;
    const struct eb_place *p;
    struct verified_gauge *g;
    STW_LOCKED(&k->lock);
    for (uint32_t pos = 0; (p = stw_table_next(&k->places.keys, &pos));)
        eb_places_forget(&k->places, p->key);
    for (uint32_t pos = 0; (t = stw_table_next(&k->transfers, &pos));)
        remove_transfer(k, t->key);
    for (uint32_t pos = 0; (g = stw_table_next(&k->gauges, &pos));)
        verified_gauge_free(stw_table_remove(&k->gauges, g->key));
}

/* --- metrics */

static void register_backup_metrics(struct eb_runtime *k, struct stw_metrics *m)
{
    static const char *const results[] = {"result", NULL};
    static const char *const clusters[] = {"namespace", "cluster", NULL};
    struct stw_family *f =
        stw_metrics_family(m, STW_COUNTER, "_etcd_backups_total",
                           "Backups of EtcdBackups that ended, by how.", results, NULL);
    k->succeeded = STW_SERIES(f, "succeeded");
    k->failed = STW_SERIES(f, "failed");
    k->verified = stw_metrics_family(
        m, STW_GAUGE, "_etcd_backup_last_verified_timestamp_seconds",
        "When the newest backup of an etcd was made that was read back and found whole.", clusters,
        NULL);
}

void eb_runtime_count(struct eb_runtime *k, bool succeeded)
{
    struct stw_series *s = succeeded ? k->succeeded : k->failed;
    if (s)
        stw_series_add(s, 1);
}

/* With the lock held.  NULL: no memory. */
static struct verified_gauge *find_or_add_gauge(struct eb_runtime *k, const char *key)
{
    struct verified_gauge *t = stw_table_get(&k->gauges, key);
    void *old;
    if (t)
        return t;
    t = calloc(1, sizeof(*t));
    if (t)
        t->key = strdup(key);
    if (t && t->key && stw_table_put(&k->gauges, t, &old) == 0)
        return t;
    verified_gauge_free(t);
    return NULL;
}

/* EtcdBackups may share an etcd: the gauge has the newest time. */
void eb_runtime_verified(struct eb_runtime *k, const char *key, const char *ns, const char *cluster,
                         int64_t at)
{
    if (!k->verified)
        return;
    STW_LOCKED(&k->lock);
    struct verified_gauge *t = find_or_add_gauge(k, key);
    if (t) {
        struct stw_series *former = t->newest;
        t->newest = STW_SERIES(k->verified, ns, cluster);
        stw_series_remove(former);
        if ((double)at > stw_series_value(t->newest))
            stw_series_set(t->newest, (double)at);
    }
}

/* --- the state of the controller */

int eb_runtime_open(struct stw_manager *m, const struct stw_manager_config *config,
                    void **ret_state, struct stw_error *err)
{
    struct eb_runtime *k = calloc(1, sizeof(*k));
    if (!k || stw_cond_init(&k->idle) != 0) {
        free(k);
        return stw_fail_memory(err);
    }
    k->manager = m;
    k->clock = config->clock;
    k->transfers = STW_TABLE_INIT(key_of);
    k->gauges = STW_TABLE_INIT(key_of_gauge);
    eb_places_init(&k->places, stw_share_limit(STW_SHARE_TRANSFERS));
    (void)pthread_mutex_init(&k->lock, NULL);
    if (config->metrics)
        register_backup_metrics(k, config->metrics);
    *ret_state = k;
    return 0;
}

void eb_runtime_cancel(void *state)
{
    struct eb_runtime *k = state;
    STW_LOCKED(&k->lock);
    k->stopping = true;
    for (size_t i = 0; i < EB_TRANSFERS_MAX; i++)
        if (k->moving[i])
            cancel_transfer(k->moving[i]);
}

void eb_runtime_close(void *state)
{
    struct eb_runtime *k = state;
    eb_runtime_cancel(k);
    pthread_mutex_lock(&k->lock);
    while (k->threads > 0)
        stw_cond_wait_until(&k->idle, &k->lock, UINT64_MAX);
    pthread_mutex_unlock(&k->lock);
    stw_table_release(&k->transfers, transfer_free);
    stw_table_release(&k->gauges, verified_gauge_free);
    eb_places_done(&k->places);
    (void)pthread_cond_destroy(&k->idle);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}
