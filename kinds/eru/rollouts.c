/* SPDX-License-Identifier: Apache-2.0
 *
 * The workloads with a current rollout, and its start by a monotonic clock.  Status changes of
 * other workloads are ignored. */
#include "kinds/eru/rollouts.h"

#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "kinds/eru/state.h"

#include <pthread.h>

struct tracked {
    int64_t instant;  /* of its rollout; ERU_NEVER: none so far */
    int64_t begun_ms; /* by the monotonic clock; negative if it began before the clock's zero */
    char workload[];
};

struct eru_rollouts {
    const struct stw_clock *clock;
    pthread_mutex_t lock; /* guards the table */
    struct stw_table tracked;
};

static const char *tracked_key(const void *entry)
{
    return ((const struct tracked *)entry)->workload;
}

struct eru_rollouts *eru_rollouts_create(const struct stw_clock *clock)
{
    struct eru_rollouts *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->clock = clock;
    r->tracked = STW_TABLE_INIT(tracked_key);
    (void)pthread_mutex_init(&r->lock, NULL);
    return r;
}

void eru_rollouts_destroy(struct eru_rollouts *r)
{
    if (!r)
        return;
    stw_table_release(&r->tracked, free);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

/* Requires the lock; NULL if out of memory. */
static struct tracked *find_or_add(struct eru_rollouts *r, const char *workload)
{
    struct tracked *t = stw_table_get(&r->tracked, workload);
    size_t size = strlen(workload) + 1;
    void *old = NULL;
    if (t)
        return t;
    t = malloc(sizeof(*t) + size);
    if (!t)
        return NULL;
    t->instant = ERU_NEVER;
    memcpy(t->workload, workload, size);
    if (stw_table_put(&r->tracked, t, &old) == 0)
        return t;
    free(t);
    return NULL;
}

void eru_rollouts_track(struct eru_rollouts *r, const char *workload, bool track)
{
    void *old = NULL;
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    if (track)
        (void)find_or_add(r, workload);
    else
        old = stw_table_remove(&r->tracked, workload);
    pthread_mutex_unlock(&r->lock);
    free(old);
}

int64_t eru_rollouts_took_ms(struct eru_rollouts *r, const char *workload, int64_t instant,
                             int64_t took_ms)
{
    if (!r)
        return took_ms;
    int64_t now = (int64_t)stw_now_ms(r->clock);
    STW_LOCKED(&r->lock);
    struct tracked *t = find_or_add(r, workload);
    if (t && t->instant != instant) {
        t->instant = instant;
        t->begun_ms = now - took_ms;
    }
    if (t)
        took_ms = now - t->begun_ms;
    return took_ms;
}

bool eru_rollouts_tracks(struct eru_rollouts *r, const char *workload)
{
    if (!r)
        return false;
    STW_LOCKED(&r->lock);
    return stw_table_get(&r->tracked, workload) != NULL;
}
