/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fence.h"

#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct stw_fence {
    const struct stw_clock *clock;
    _Atomic uint64_t deadline_ms; /* 0: closed */
    _Atomic uint64_t term;
    atomic_bool shadow;
    pthread_mutex_t lock; /* protects `epoch` */
    struct stw_fence_epoch epoch;
};

static _Thread_local struct stw_fence_ticket current;
static _Thread_local bool refused;

struct stw_fence *stw_fence_create(const struct stw_clock *clock)
{
    struct stw_fence *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->clock = clock;
    if (pthread_mutex_init(&f->lock, NULL) == 0)
        return f;
    free(f);
    return NULL;
}

void stw_fence_destroy(struct stw_fence *f)
{
    if (!f)
        return;
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

/* The term changes before the deadline: a reader that sees the new deadline with an old ticket must
 * also see that the ticket is old. */
void stw_fence_open(struct stw_fence *f, uint64_t deadline_ms, const struct stw_fence_epoch *epoch)
{
    (void)pthread_mutex_lock(&f->lock);
    f->epoch = *epoch;
    (void)pthread_mutex_unlock(&f->lock);
    atomic_fetch_add(&f->term, 1);
    atomic_store(&f->deadline_ms, deadline_ms);
}

void stw_fence_extend(struct stw_fence *f, uint64_t deadline_ms)
{
    uint64_t now = atomic_load(&f->deadline_ms);
    while (now != 0 && !atomic_compare_exchange_weak(&f->deadline_ms, &now, deadline_ms))
        ;
}

void stw_fence_close(struct stw_fence *f)
{
    atomic_store(&f->deadline_ms, 0);
}

struct stw_fence_ticket stw_fence_take(struct stw_fence *f)
{
    return (struct stw_fence_ticket){.fence = f, .term = atomic_load(&f->term)};
}

bool stw_fence_allows(struct stw_fence_ticket t)
{
    if (!t.fence)
        return true;
    uint64_t deadline = atomic_load(&t.fence->deadline_ms);
    return t.term == atomic_load(&t.fence->term) && stw_boot_ms(t.fence->clock) < deadline;
}

struct stw_fence_ticket stw_fence_enter(struct stw_fence_ticket t)
{
    struct stw_fence_ticket before = current;
    current = t;
    refused = false;
    return before;
}

struct stw_fence_ticket stw_fence_current(void)
{
    return current;
}

bool stw_fence_may_write(void)
{
    return stw_fence_allows(current);
}

void stw_fence_set_shadow(struct stw_fence *f)
{
    atomic_store(&f->shadow, true);
}

bool stw_fence_was_refused(void)
{
    return refused;
}

int stw_fence_check(struct stw_error *err)
{
    if (current.fence && atomic_load(&current.fence->shadow)) {
        refused = true;
        return stw_fail(err, STW_ERR_CANCELLED,
                        "shadow mode: databases, etcd and stores are not asked");
    }
    if (stw_fence_may_write())
        return 0;
    return stw_fail(err, STW_ERR_CANCELLED, "this process no longer leads");
}

bool stw_fence_epoch(struct stw_fence_epoch *ret)
{
    *ret = (struct stw_fence_epoch){0};
    if (!current.fence)
        return false;
    STW_LOCKED(&current.fence->lock);
    *ret = current.fence->epoch;
    return true;
}
