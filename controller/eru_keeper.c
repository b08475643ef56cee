/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controller keeps beside the caches: which Deployments are being rolled out, so that only
 * their changes are looked at one by one; and a thread that sleeps until somebody sets the clock,
 * since the queue's delays are of a clock that never steps.  Then every Eru is looked at. */
#include "base/log.h"
#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "controller/eru.h"
#include "controller/eru_priv.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#define FAR_OFF INT32_MAX /* seconds since the epoch; it is the clock's steps that matter */

struct eru_keeper {
    struct stw_manager *manager;
    struct stw_series *results[ERU_RESULTS];
    pthread_mutex_t lock; /* guards the table */
    struct stw_table tracked;
    int timer, stop;
    pthread_t thread;
    bool started;
};

static const char *own_key(const void *entry)
{
    return entry;
}

/* --- Deployments that are rolled out */

void eru_keeper_track(struct eru_keeper *k, const char *deployment, bool track)
{
    void *old = NULL;
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    if (!track) {
        old = stw_table_remove(&k->tracked, deployment);
    } else if (!stw_table_get(&k->tracked, deployment)) {
        char *key = strdup(deployment);
        if (key && stw_table_put(&k->tracked, key, &old) != 0)
            old = key;
    }
    pthread_mutex_unlock(&k->lock);
    free(old);
}

bool eru_keeper_tracks(struct eru_keeper *k, const char *deployment)
{
    if (!k)
        return false;
    pthread_mutex_lock(&k->lock);
    bool there = stw_table_get(&k->tracked, deployment) != NULL;
    pthread_mutex_unlock(&k->lock);
    return there;
}

/* --- the clock */

static int arm(const struct eru_keeper *k)
{
    struct itimerspec far_off = {.it_value = {.tv_sec = FAR_OFF}};
    return timerfd_settime(k->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far_off, NULL);
}

static void *watch_clock(void *ctx)
{
    struct eru_keeper *k = ctx;
    struct pollfd fds[] = {{.fd = k->timer, .events = POLLIN}, {.fd = k->stop, .events = POLLIN}};
    for (;;) {
        uint64_t ticks;
        if (poll(fds, STW_COUNT(fds), -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents)
            return NULL;
        if (!fds[0].revents)
            continue;
        if (read(k->timer, &ticks, sizeof(ticks)) < 0 && errno == ECANCELED) {
            stw_log(STW_LOG_INFO, "the clock was set; looking at every Eru");
            stw_manager_enqueue_all(k->manager, &stw_controller_eru);
        }
        if (arm(k) != 0)
            return NULL;
    }
}

static int start_watching(struct eru_keeper *k, struct stw_error *err)
{
    k->timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    k->stop = eventfd(0, EFD_CLOEXEC);
    if (k->timer < 0 || k->stop < 0 || arm(k) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot watch the clock: %s",
                        strerrordesc_np(errno));
    if (stw_thread_start(&k->thread, "eru-clock", 0, watch_clock, k, err) != 0)
        return -1;
    k->started = true;
    return 0;
}

/* --- the state of the controller */

static void make_metrics(struct eru_keeper *k, struct stw_metrics *m)
{
    static const char *const labels[] = {"result", NULL};
    struct stw_family *f = stw_metrics_family(
        m, STW_COUNTER, "steward_eru_results_total",
        "Instants of Erus that were dealt with, by what came of them.", labels, NULL);
    for (int i = ERU_NONE + 1; i < ERU_RESULTS; i++)
        k->results[i] = STW_SERIES(f, eru_result_names[i]);
}

void eru_keeper_count(struct eru_keeper *k, enum eru_result result)
{
    if (k && result != ERU_NONE)
        stw_series_add(k->results[result], 1);
}

int eru_keeper_open(struct stw_manager *m, const struct stw_manager_config *config,
                    void **ret_state, struct stw_error *err)
{
    struct eru_keeper *k = calloc(1, sizeof(*k));
    if (!k)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    k->manager = m;
    k->timer = k->stop = -1;
    k->tracked = STW_TABLE_INIT(own_key);
    (void)pthread_mutex_init(&k->lock, NULL);
    if (config->metrics)
        make_metrics(k, config->metrics);
    if (start_watching(k, err) != 0) {
        eru_keeper_close(k);
        return -1;
    }
    *ret_state = k;
    return 0;
}

void eru_keeper_close(void *state)
{
    struct eru_keeper *k = state;
    uint64_t one = 1;
    void *key;
    if (k->started && write(k->stop, &one, sizeof(one)) == sizeof(one))
        (void)pthread_join(k->thread, NULL);
    stw_closep(&k->timer);
    stw_closep(&k->stop);
    for (uint32_t pos = 0; (key = stw_table_next(&k->tracked, &pos));)
        free(key);
    stw_table_done(&k->tracked);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}
