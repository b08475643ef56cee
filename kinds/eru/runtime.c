/* SPDX-License-Identifier: Apache-2.0
 *
 * State of the controller in addition to the caches: current rollouts, counters, and a thread that
 * waits for a step of the wall clock.  The queue's delays use a clock that never steps, so after a
 * step every Eru is enqueued. */
#include "kinds/eru/runtime.h"

#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "kinds/eru/rollouts.h"
#include "kinds/eru/state.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#define FAR_OFF INT32_MAX /* seconds since the epoch; only steps of the clock matter */
/* In a sandbox with its own clock the kernel may not report steps.  So the wall clock is compared
 * with the monotonic one at this interval, and a larger difference than this counts as a step. */
#define COMPARE_MS 5000
#define APART_MS 1000

struct eru_runtime {
    struct stw_manager *manager;
    const struct stw_controller *controller;
    const struct stw_clock *clock;
    struct stw_series *results[ERU_RESULTS];
    struct eru_rollouts *rollouts;
    int timer, stop;
    pthread_t thread;
    bool started;
};

/* --- the clock */

static int arm_clock_timer(const struct eru_runtime *k)
{
    struct itimerspec far_off = {.it_value = {.tv_sec = FAR_OFF}};
    return timerfd_settime(k->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far_off, NULL);
}

/* How far the wall clock is ahead of the monotonic clock. */
static int64_t ahead_ms(const struct eru_runtime *k)
{
    return stw_wall_us(k->clock) / 1000 - (int64_t)stw_now_ms(k->clock);
}

/* The kernel has reported a step. */
static bool has_kernel_reported(const struct eru_runtime *k)
{
    uint64_t ticks;
    return read(k->timer, &ticks, sizeof(ticks)) < 0 && errno == ECANCELED;
}

static bool was_set(const struct eru_runtime *k, int64_t *ahead)
{
    int64_t before = *ahead;
    bool stepped = has_kernel_reported(k);
    *ahead = ahead_ms(k);
    if (!stepped && llabs(*ahead - before) <= APART_MS)
        *ahead = before; /* otherwise many small steps would go unnoticed */
    return stepped || *ahead != before;
}

static void *watch_clock(void *ctx)
{
    struct eru_runtime *k = ctx;
    int64_t ahead = ahead_ms(k);
    struct pollfd fds[] = {{.fd = k->timer, .events = POLLIN}, {.fd = k->stop, .events = POLLIN}};
    for (;;) {
        if (poll(fds, STW_COUNT(fds), COMPARE_MS) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents)
            return NULL;
        if (!was_set(k, &ahead))
            continue;
        stw_log(STW_LOG_INFO, "the clock was set; looking at every Eru");
        stw_manager_enqueue_all(k->manager, k->controller);
        if (arm_clock_timer(k) != 0)
            return NULL;
    }
}

static int start_watching(struct eru_runtime *k, struct stw_error *err)
{
    k->timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    k->stop = eventfd(0, EFD_CLOEXEC);
    if (k->timer < 0 || k->stop < 0 || arm_clock_timer(k) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot watch the clock: %s",
                        strerrordesc_np(errno));
    if (stw_thread_start(&k->thread, "eru-clock", 0, watch_clock, k, err) != 0)
        return -1;
    k->started = true;
    return 0;
}

/* --- the state of the controller */

static void register_result_metrics(struct eru_runtime *k, struct stw_metrics *m)
{
    static const char *const labels[] = {"result", NULL};
    struct stw_family *f =
        stw_metrics_family(m, STW_COUNTER, "_eru_results_total",
                           "Instants of Erus that were handled, by result.", labels, NULL);
    for (int i = ERU_NONE + 1; i < ERU_RESULTS; i++)
        k->results[i] = STW_SERIES(f, eru_result_names[i]);
}

void eru_runtime_count(struct eru_runtime *k, enum eru_result result)
{
    if (k && result != ERU_NONE)
        stw_series_add(k->results[result], 1);
}

struct eru_rollouts *eru_runtime_rollouts(struct eru_runtime *k)
{
    return k ? k->rollouts : NULL;
}

int eru_runtime_open(struct stw_manager *m, const struct stw_controller *c,
                     const struct stw_manager_config *config, void **ret_state,
                     struct stw_error *err)
{
    struct eru_runtime *k = calloc(1, sizeof(*k));
    if (!k)
        return stw_fail_memory(err);
    k->manager = m;
    k->controller = c;
    k->clock = config->clock;
    k->timer = k->stop = -1;
    k->rollouts = eru_rollouts_create(k->clock);
    if (config->metrics)
        register_result_metrics(k, config->metrics);
    if (!k->rollouts || start_watching(k, err) != 0) {
        eru_runtime_close(k);
        return -1;
    }
    *ret_state = k;
    return 0;
}

void eru_runtime_close(void *state)
{
    struct eru_runtime *k = state;
    uint64_t one = 1;
    if (k->started && write(k->stop, &one, sizeof(one)) == sizeof(one))
        (void)pthread_join(k->thread, NULL);
    stw_closep(&k->timer);
    stw_closep(&k->stop);
    eru_rollouts_destroy(k->rollouts);
    free(k);
}
