/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/queue/queue.h"

#include "base/util.h"
#include "support/fake_clock.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

/* The linker redirects the signals and copies of the queue to this file (--wrap). */
static atomic_uint signals;
static atomic_int copies_to_fail;
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text)
{
    return atomic_fetch_sub(&copies_to_fail, 1) > 0 ? NULL : __real_strdup(text);
}

int __real_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_signal(pthread_cond_t *c);

int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
    atomic_fetch_add(&signals, 1);
    return __real_pthread_cond_signal(c);
}

static void expect_next(struct stw_queue *q, const char *key)
{
    stw_autofree char *got = stw_queue_try(q);
    if (!key) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    assert_string_equal(got, key);
}

static void test_key_is_queued_once(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(stw_queue_add(q, "a", 0), 0);
    assert_int_equal(stw_queue_depth(q), 1);
    expect_next(q, "a");
    expect_next(q, NULL);
    stw_queue_done(q, "a");
    expect_next(q, NULL);
    stw_queue_destroy(q);
}

static void test_key_added_during_its_run_is_queued_again(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    stw_queue_add(q, "a", 0);
    expect_next(q, "a");
    stw_queue_add(q, "a", 0);
    stw_queue_add(q, "a", 0);
    expect_next(q, NULL);
    stw_queue_done(q, "a");
    expect_next(q, "a");
    stw_queue_done(q, "a");
    expect_next(q, NULL);
    stw_queue_destroy(q);
}

static void test_changes_go_before_resyncs(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    stw_queue_add(q, "r1", -1);
    stw_queue_add(q, "r2", -1);
    stw_queue_add(q, "e1", 0);
    stw_queue_add(q, "r2", 0);  /* an edit of a key that waits for its resync */
    stw_queue_add(q, "e1", -1); /* and the other way round: stays an edit */
    expect_next(q, "e1");
    expect_next(q, "r2");
    expect_next(q, "r1");
    expect_next(q, NULL);
    stw_queue_destroy(q);
}

static void test_namespaces_take_turns(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    static const char *const many[] = {"many/1", "many/2", "many/3", "many/4"};
    for (size_t i = 0; i < STW_COUNT(many); i++) {
        stw_queue_add(q, many[i], 0);
        stw_queue_add(q, many[i], -1); /* an edit does not become a resync */
    }
    stw_queue_add(q, "resync/1", -1);
    stw_queue_add(q, "few/1", 0);
    stw_queue_add(q, "of-the-cluster", 0);
    expect_next(q, "many/1");
    expect_next(q, "few/1");
    expect_next(q, "of-the-cluster");
    expect_next(q, "many/2");
    stw_queue_add(q, "few/2", 0);
    expect_next(q, "many/3"); /* it waited before few/2 came */
    expect_next(q, "few/2");
    expect_next(q, "many/4");
    expect_next(q, "resync/1");
    expect_next(q, NULL);
    stw_queue_destroy(q);
}

static void test_delayed_keys_come_in_order(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    stw_queue_add_after(q, "late", 100);
    stw_queue_add_after(q, "early", 50);
    stw_queue_add_after(q, "late", 500); /* the earliest counts */
    stw_queue_add_after(q, "early", 20);
    expect_next(q, NULL);
    now.ms += 19;
    expect_next(q, NULL);
    now.ms += 1;
    expect_next(q, "early");
    now.ms += 80;
    expect_next(q, "late");
    expect_next(q, NULL);
    now.ms += 1000;
    expect_next(q, NULL);
    stw_queue_destroy(q);
}

static void test_when_a_key_is_due(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    assert_int_equal(stw_queue_due_ms(q, "a"), -1);
    stw_queue_add_failed(q, "a", 100);
    now.ms += 30;
    assert_int_equal(stw_queue_due_ms(q, "a"), 70);
    now.ms += 100;
    assert_int_equal(stw_queue_due_ms(q, "a"), 0); /* late */
    expect_next(q, "a");
    assert_int_equal(stw_queue_due_ms(q, "a"), 0); /* being worked on */
    stw_queue_add_after(q, "a", 50);
    assert_int_equal(stw_queue_due_ms(q, "a"), 0);
    stw_queue_done(q, "a");
    assert_int_equal(stw_queue_due_ms(q, "a"), 50);
    stw_queue_add(q, "a", 0);
    assert_int_equal(stw_queue_due_ms(q, "a"), 0); /* ready */
    expect_next(q, "a");
    stw_queue_done(q, "a");
    assert_int_equal(stw_queue_due_ms(q, "a"), -1); /* kept for its failures only */
    stw_queue_destroy(q);
}

static void test_delay_ends_when_the_key_is_taken(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    stw_queue_add_after(q, "a", 100);
    stw_queue_add(q, "a", 0);
    expect_next(q, "a");
    stw_queue_done(q, "a");
    now.ms += 1000;
    expect_next(q, NULL);
    stw_queue_destroy(q);
}

static void test_delay_ending_during_a_run_queues_again(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    stw_queue_add(q, "a", 0);
    expect_next(q, "a");
    stw_queue_add_after(q, "a", 10);
    now.ms += 10;
    expect_next(q, NULL);
    stw_queue_done(q, "a");
    expect_next(q, "a");
    stw_queue_destroy(q);
}

static void test_backoff_doubles_up_to_its_cap(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    uint64_t want = STW_QUEUE_BACKOFF_MIN_MS;
    for (uint32_t n = 0; n < 30; n++) {
        uint32_t failures;
        uint64_t wait = stw_queue_backoff_ms(q, "a", &failures);
        assert_int_equal(failures, n);
        assert_in_range(wait, want - want / 5, want + want / 5);
        assert_int_equal(stw_queue_backoff_ms(q, "a", NULL), wait); /* the same when asked again */
        assert_int_equal(stw_queue_add_backoff(q, "a", 0), 0);
        now.ms += wait;
        if (wait > 0) {
            now.ms -= 1;
            expect_next(q, NULL);
            now.ms += 1;
        }
        expect_next(q, "a");
        stw_queue_done(q, "a");
        want = STW_MIN(want * 2, STW_QUEUE_BACKOFF_MAX_MS);
    }
    stw_queue_forget(q, "a");
    assert_in_range(stw_queue_backoff_ms(q, "a", NULL), 4, 6);
    stw_queue_destroy(q);
}

static void test_waiting_time_of_a_key_is_measured(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    assert_int_equal(stw_queue_waited_ms(q, "a"), 0);
    stw_queue_add_after(q, "a", 1000); /* a delay does not count */
    now.ms += 1000;
    stw_queue_add(q, "b", 0);
    now.ms += 70;
    assert_int_equal(stw_queue_waited_ms(q, "b"), 0); /* no worker has it */
    expect_next(q, "b");
    now.ms += 5;
    expect_next(q, "a");
    assert_int_equal(stw_queue_waited_ms(q, "b"), 70);
    assert_int_equal(stw_queue_waited_ms(q, "a"), 5);
    stw_queue_done(q, "a");
    stw_queue_done(q, "b");
    assert_int_equal(stw_queue_waited_ms(q, "b"), 0);
    stw_queue_destroy(q);
}

/* Events while a key waits for its next try cause runs, and those may fail, too.  They neither
 * count as further failures nor delay the next try. */
static void test_early_run_is_no_further_failure(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    uint32_t failures;
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    assert_int_equal(stw_queue_left_ms(q, "a"), 0);
    stw_queue_add_failed(q, "a", 1000);
    for (int i = 0; i < 14; i++) {
        now.ms += 10;
        stw_queue_add(q, "a", 0);
        expect_next(q, "a");
        assert_true(stw_queue_is_working(q, "a"));
        (void)stw_queue_backoff_ms(q, "a", &failures);
        assert_int_equal(failures, 0);
        assert_int_equal(stw_queue_left_ms(q, "a"), 1000 - 10 * (i + 1));
        stw_queue_add_failed(q, "a", stw_queue_left_ms(q, "a"));
        stw_queue_done(q, "a");
        assert_false(stw_queue_is_working(q, "a"));
    }
    now.ms += 1000 - 140 - 1;
    expect_next(q, NULL);
    now.ms += 1;
    expect_next(q, "a"); /* at its original time */
    assert_int_equal(stw_queue_left_ms(q, "a"), 0);
    (void)stw_queue_backoff_ms(q, "a", &failures);
    assert_int_equal(failures, 1);
    stw_queue_destroy(q);
}

static void test_retry_after_is_a_minimum(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    stw_queue_add_backoff(q, "a", 3000);
    stw_queue_add_failed(q, "b", 2000);
    now.ms += 1999;
    expect_next(q, NULL);
    now.ms += 1;
    expect_next(q, "b");
    now.ms += 999;
    expect_next(q, NULL);
    now.ms += 1;
    expect_next(q, "a");
    uint32_t failures;
    stw_queue_backoff_ms(q, "b", &failures);
    assert_int_equal(failures, 1);
    stw_queue_destroy(q);
}

static void test_queue_is_shut_and_reopened(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    stw_queue_add(q, "a", 0);
    stw_queue_shut(q);
    expect_next(q, NULL);
    assert_null(stw_queue_get(q)); /* does not block */
    stw_queue_add(q, "b", 0);
    assert_int_equal(stw_queue_depth(q), 2);
    stw_queue_open(q);
    expect_next(q, "a");
    expect_next(q, "b");
    assert_false(stw_queue_drain(q, 0));
    stw_queue_done(q, "a");
    stw_queue_done(q, "b");
    stw_queue_done(q, "never there");
    assert_true(stw_queue_drain(q, 0));
    stw_queue_destroy(q);
}

/* A worker that takes a key was perhaps the only one that knew what comes next, so another has to
 * be woken for it. */
static void test_leaving_worker_wakes_another(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
    stw_queue_add(q, "a", 0);
    stw_queue_add(q, "b", 0);
    atomic_store(&signals, 0);
    expect_next(q, "a");
    assert_int_equal(atomic_load(&signals), 1); /* for b */
    expect_next(q, "b");
    assert_int_equal(atomic_load(&signals), 1); /* nothing is left */
    stw_queue_add_after(q, "late", 100);
    stw_queue_add(q, "c", 0);
    atomic_store(&signals, 0);
    expect_next(q, "c");
    assert_int_equal(atomic_load(&signals), 1); /* for the delay */
    expect_next(q, NULL);
    assert_int_equal(atomic_load(&signals), 1);
    stw_queue_destroy(q);
}

struct one_take {
    struct stw_queue *queue;
    char *key;
    sem_t done;
};

static void *take_one_key(void *arg)
{
    struct one_take *t = arg;
    t->key = stw_queue_get(t->queue);
    (void)sem_post(&t->done);
    return NULL;
}

/* The key stays in the queue, and is tried again although nothing is added. */
static void test_key_without_memory_is_retried(void **state)
{
    (void)state;
    struct one_take t = {.queue = stw_queue_create("t", &stw_clock_system, NULL)};
    struct timespec deadline;
    pthread_t thread;
    stw_queue_add(t.queue, "a", 0);
    assert_int_equal(sem_init(&t.done, 0, 0), 0);
    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 20;
    atomic_store(&copies_to_fail, 2);
    assert_int_equal(pthread_create(&thread, NULL, take_one_key, &t), 0);
    bool taken = sem_timedwait(&t.done, &deadline) == 0;
    stw_queue_shut(t.queue);
    (void)pthread_join(thread, NULL);
    atomic_store(&copies_to_fail, 0);
    assert_true(taken);
    assert_string_equal(t.key, "a");
    free(t.key);
    (void)sem_destroy(&t.done);
    stw_queue_destroy(t.queue);
}

static void test_queue_metrics_are_counted(void **state)
{
    (void)state;
    FAKE_CLOCK(now);
    static const char *const expected[] = {
        "workqueue_depth{name=\"t\",controller=\"t\"} 1\n",
        "workqueue_adds_total{name=\"t\",controller=\"t\"} 3\n",
        "workqueue_retries_total{name=\"t\",controller=\"t\"} 1\n",
        "workqueue_unfinished_work_seconds{name=\"t\",controller=\"t\"} 7\n",
        "workqueue_longest_running_processor_seconds{name=\"t\",controller=\"t\"} 5\n",
        "workqueue_queue_duration_seconds_count{name=\"t\",controller=\"t\"} 2\n",
        "workqueue_work_duration_seconds_count{name=\"t\",controller=\"t\"} 0\n",
    };
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_queue *q = stw_queue_create("t", &now_clock, m);
    struct stw_buf out = STW_BUF_INIT(1 << 20);
    stw_queue_add(q, "a", 0);
    stw_queue_add(q, "b", 0);
    stw_queue_add(q, "c", 0);
    expect_next(q, "a");
    now.ms += 3000;
    expect_next(q, "b");
    now.ms += 2000;
    stw_queue_add_backoff(q, "d", 0);
    stw_queue_measure(q);
    assert_int_equal(stw_queue_longest_ms(q), 5000);
    stw_metrics_render(m, &out);
    for (size_t i = 0; i < STW_COUNT(expected); i++)
        if (!strstr(stw_buf_str(&out), expected[i]))
            fail_msg("no %s in\n%s", expected[i], stw_buf_str(&out));
    stw_buf_done(&out);
    stw_queue_destroy(q);
    stw_metrics_destroy(m);
}

/* --- comparison with a model: each key by itself, as simple as possible */

#define KEYS 6

struct model_key {
    int waits; /* its place in line; 0: does not wait */
    bool resync, works, dirty, dirty_resync;
    uint64_t due; /* 0: not delayed */
    uint64_t retry;
    uint32_t failures;
    bool early;
};

struct model {
    struct model_key key[KEYS];
    int turn[KEYS]
            [2]; /* of a namespace and priority: the ticket of its turn, 0: has no ready key */
    int tickets;
    uint64_t now;
};

static const char *const names[KEYS] = {"n/a", "n/b", "n/c", "m/a", "m/b", "a"};
static const int tenant_of[KEYS] = {0, 0, 0, 1, 1, 2};

static bool has_ready(const struct model *m, int tenant, bool resync)
{
    for (int k = 0; k < KEYS; k++)
        if (tenant_of[k] == tenant && m->key[k].waits && m->key[k].resync == resync)
            return true;
    return false;
}

static void model_leave(struct model *m, int k)
{
    m->key[k].waits = 0;
    if (!has_ready(m, tenant_of[k], m->key[k].resync))
        m->turn[tenant_of[k]][m->key[k].resync] = 0;
}

static void model_wait(struct model *m, int k, bool resync)
{
    if (m->key[k].waits)
        model_leave(m, k);
    int *turn = &m->turn[tenant_of[k]][resync];
    m->key[k].resync = resync;
    m->key[k].waits = ++m->tickets;
    if (!*turn)
        *turn = m->tickets;
}

static void model_add(struct model *m, int k, bool resync)
{
    struct model_key *key = &m->key[k];
    if (key->works) {
        key->dirty_resync = key->dirty ? key->dirty_resync && resync : resync;
        key->dirty = true;
    } else if (!key->waits || (key->resync && !resync)) {
        model_wait(m, k, resync);
    }
}

/* Whether `a` comes before `b`. */
static bool goes_before(const struct model *m, int a, int b)
{
    const struct model_key *x = &m->key[a], *y = &m->key[b];
    if (x->resync != y->resync)
        return y->resync;
    if (tenant_of[a] != tenant_of[b])
        return m->turn[tenant_of[a]][x->resync] < m->turn[tenant_of[b]][y->resync];
    return x->waits < y->waits;
}

static void model_delay(struct model *m, int k, uint64_t ms)
{
    uint64_t due = m->now + ms;
    if (!m->key[k].due || due < m->key[k].due)
        m->key[k].due = due;
}

/* The key that must come next, or -1.  Those due at the same time may come in any order, so the
 * caller moves time in steps that make this rare and compares sets there. */
static int model_take(struct model *m)
{
    for (;;) {
        int due = -1;
        for (int k = 0; k < KEYS; k++)
            if (m->key[k].due && m->key[k].due <= m->now &&
                (due < 0 || m->key[k].due < m->key[due].due))
                due = k;
        if (due < 0)
            break;
        m->key[due].due = 0;
        model_add(m, due, false);
    }
    int best = -1;
    for (int k = 0; k < KEYS; k++)
        if (m->key[k].waits && (best < 0 || goes_before(m, k, best)))
            best = k;
    if (best >= 0) {
        model_leave(m, best);
        if (m->turn[tenant_of[best]][m->key[best].resync])
            m->turn[tenant_of[best]][m->key[best].resync] = ++m->tickets;
        m->key[best].works = true;
        m->key[best].early = m->key[best].failures > 0 && m->now < m->key[best].retry;
        m->key[best].due = 0;
    }
    return best;
}

static void model_done(struct model *m, int k)
{
    struct model_key *key = &m->key[k];
    if (!key->works)
        return;
    key->works = false;
    if (key->dirty) {
        key->dirty = false;
        model_wait(m, k, key->dirty_resync);
    }
}

static int index_of(const char *key)
{
    for (int k = 0; k < KEYS; k++)
        if (stw_streq(names[k], key))
            return k;
    return -1;
}

static bool same_due(const struct model *m)
{
    for (int a = 0; a < KEYS; a++)
        for (int b = 0; b < a; b++)
            if (m->key[a].due && m->key[a].due == m->key[b].due)
                return true;
    return false;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void check_depth(const struct model *m, const struct stw_queue *q)
{
    uint32_t waiting = 0;
    for (int k = 0; k < KEYS; k++)
        waiting += m->key[k].waits != 0;
    assert_int_equal(stw_queue_depth(q), waiting);
}

static void one_step(struct model *m, struct stw_queue *q, struct fake_clock *clock, uint32_t *seed)
{
    int k = (int)(next_random(seed) % KEYS);
    uint32_t failures, n = next_random(seed);
    switch (next_random(seed) % 8) {
    case 0:
        stw_queue_add(q, names[k], 0);
        model_add(m, k, false);
        break;
    case 1:
        stw_queue_add(q, names[k], -1);
        model_add(m, k, true);
        break;
    case 2:
        n = n % 997 + 1;
        stw_queue_add_after(q, names[k], n);
        model_delay(m, k, n);
        break;
    case 3: {
        uint64_t wait = stw_queue_backoff_ms(q, names[k], &failures);
        model_delay(m, k, wait);
        m->key[k].failures -= m->key[k].early;
        assert_int_equal(failures, m->key[k].failures++);
        m->key[k].retry = m->now + wait;
        m->key[k].early = false;
        stw_queue_add_backoff(q, names[k], 0);
        break;
    }
    case 4:
        stw_queue_forget(q, names[k]);
        m->key[k].failures = 0;
        m->key[k].early = false;
        break;
    case 5:
        clock->ms += n % 500;
        m->now = clock->ms;
        break;
    case 6:
        stw_queue_done(q, names[k]);
        model_done(m, k);
        break;
    default:
        if (same_due(m)) /* their order is free */
            return;
        int want = model_take(m);
        stw_autofree char *got = stw_queue_try(q);
        assert_int_equal(got ? index_of(got) : -1, want);
        check_depth(m, q);
        break;
    }
}

static void test_queue_matches_a_model(void **state)
{
    (void)state;
    for (uint32_t run = 1; run <= 400; run++) {
        FAKE_CLOCK(now);
        uint32_t seed = run * 7919;
        struct model m = {.now = now.ms};
        struct stw_queue *q = stw_queue_create("t", &now_clock, NULL);
        for (int i = 0; i < 500; i++)
            one_step(&m, q, &now, &seed);
        stw_queue_destroy(q);
    }
}

/* --- many threads: no key at two workers, none lost */

#define WORKERS 8
#define ADDERS 4
#define ADDS 3000

struct crowd {
    struct stw_queue *queue;
    atomic_int busy[KEYS];
    atomic_int wanted[KEYS], seen[KEYS]; /* versions: as of the last add, and at the last run */
    atomic_int clashes, runs, ended;
};

static void *crowd_work(void *ctx)
{
    struct crowd *c = ctx;
    uint32_t seed = 1;
    for (;;) {
        stw_autofree char *key = stw_queue_get(c->queue);
        if (!key)
            break;
        int k = index_of(key);
        if (atomic_fetch_add(&c->busy[k], 1) != 0)
            atomic_fetch_add(&c->clashes, 1);
        atomic_store(&c->seen[k], atomic_load(&c->wanted[k]));
        atomic_fetch_add(&c->runs, 1);
        switch (next_random(&seed) % 16) {
        case 0:
            stw_queue_add_backoff(c->queue, key, 0);
            break;
        case 1:
            stw_queue_add_after(c->queue, key, 1);
            break;
        default:
            stw_queue_forget(c->queue, key);
        }
        atomic_fetch_sub(&c->busy[k], 1);
        stw_queue_done(c->queue, key);
    }
    atomic_fetch_add(&c->ended, 1);
    return NULL;
}

static void *crowd_add(void *ctx)
{
    struct crowd *c = ctx;
    uint32_t seed = (uint32_t)(uintptr_t)&seed;
    for (int i = 0; i < ADDS; i++) {
        int k = (int)(next_random(&seed) % KEYS);
        atomic_fetch_add(&c->wanted[k], 1);
        stw_queue_add(c->queue, names[k], i % 3 ? 0 : -1);
    }
    return NULL;
}

static bool all_seen(struct crowd *c)
{
    for (int k = 0; k < KEYS; k++)
        if (atomic_load(&c->seen[k]) != atomic_load(&c->wanted[k]))
            return false;
    return true;
}

static void test_queue_serves_many_threads(void **state)
{
    (void)state;
    struct crowd c = {0};
    pthread_t workers[WORKERS], adders[ADDERS];
    c.queue = stw_queue_create("t", &stw_clock_system, NULL);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, crowd_work, &c), 0);
    for (int i = 0; i < ADDERS; i++)
        assert_int_equal(pthread_create(&adders[i], NULL, crowd_add, &c), 0);
    for (int i = 0; i < ADDERS; i++)
        pthread_join(adders[i], NULL);
    uint64_t deadline = stw_now_ms(&stw_clock_system) + 20000;
    while (!all_seen(&c) && stw_now_ms(&stw_clock_system) < deadline)
        (void)usleep(1000);
    assert_true(all_seen(&c));
    stw_queue_shut(c.queue);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    assert_int_equal(atomic_load(&c.clashes), 0);
    assert_int_equal(atomic_load(&c.ended), WORKERS);
    assert_true(stw_queue_drain(c.queue, 0));
    stw_queue_destroy(c.queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_is_queued_once),
        cmocka_unit_test(test_key_added_during_its_run_is_queued_again),
        cmocka_unit_test(test_changes_go_before_resyncs),
        cmocka_unit_test(test_namespaces_take_turns),
        cmocka_unit_test(test_delayed_keys_come_in_order),
        cmocka_unit_test(test_when_a_key_is_due),
        cmocka_unit_test(test_delay_ends_when_the_key_is_taken),
        cmocka_unit_test(test_delay_ending_during_a_run_queues_again),
        cmocka_unit_test(test_backoff_doubles_up_to_its_cap),
        cmocka_unit_test(test_waiting_time_of_a_key_is_measured),
        cmocka_unit_test(test_early_run_is_no_further_failure),
        cmocka_unit_test(test_retry_after_is_a_minimum),
        cmocka_unit_test(test_queue_is_shut_and_reopened),
        cmocka_unit_test(test_leaving_worker_wakes_another),
        cmocka_unit_test(test_key_without_memory_is_retried),
        cmocka_unit_test(test_queue_metrics_are_counted),
        cmocka_unit_test(test_queue_matches_a_model),
        cmocka_unit_test(test_queue_serves_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
