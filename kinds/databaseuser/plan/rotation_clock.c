/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotation by the clock.  Wall clocks are set: a step forwards causes one rotation too early, and a
 * step backwards delays the next one by at most one interval.  The end of an overlap is also measured
 * by the monotonic clock, so that no step ends a credential before applications had their time. */
#include "kinds/databaseuser/plan/rotation_clock.h"

#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "kinds/databaseuser/account.h"
#include "kinds/databaseuser/plan/strategy.h"
#include "kinds/databaseuser/run_priv.h"
#include "kube/tree.h"

#include <pthread.h>

#define US_PER_S 1000000
#define NEVER INT64_MAX

/* --- the interval */

/* NEVER: the status has none. */
static int64_t stored_time_us(const struct dbu *d, const char *field)
{
    int64_t us;
    const char *text = stw_tree_text(d->object.status, field);
    return *text && stw_time_parse(text, &us) == 0 ? us : NEVER;
}

/* 0: none. */
static int64_t compute_interval_us(const struct dbu *d)
{
    return dbu_rotation_wanted(d) ? dbu_interval_s(d->spec.rotation.every) * US_PER_S : 0;
}

/* NEVER: no rotation by the clock. */
static int64_t compute_due_us(const struct dbu *d)
{
    int64_t every = compute_interval_us(d);
    int64_t now = stw_wall_us(d->run->clock), last = stored_time_us(d, "lastRotationTime");
    if (every == 0 || !dbu_is_created(&d->object))
        return NEVER;
    if (last <= now)
        return last + every;
    /* The clock was ahead, or there is no time of a rotation. */
    return STW_MIN(stored_time_us(d, "nextRotationTime"), now + every);
}

/* One rotation after the other. */
static bool is_in_overlap(const struct dbu *d)
{
    return *stw_tree_text(d->object.status, "oldPasswordValidUntil") ||
           *stw_tree_text(d->object.status, "previousLogin");
}

bool dbu_rotation_is_due(const struct dbu *d)
{
    return compute_due_us(d) <= stw_wall_us(d->run->clock) && !is_in_overlap(d);
}

bool dbu_rotation_next(const struct dbu *d, const char *last, char ret[STW_TIME_LEN],
                       uint64_t *ret_in_ms)
{
    int64_t due = compute_due_us(d), now = stw_wall_us(d->run->clock), set;
    int64_t every = compute_interval_us(d);
    if (every > 0 && last && stw_time_parse(last, &set) == 0 && set <= now) /* of this run */
        due = set + every;
    if (due == NEVER)
        return false;
    stw_time_format(due, ret);
    *ret_in_ms = due > now ? (uint64_t)(due - now) / 1000 + 1000 : UINT64_MAX;
    return true;
}

/* --- overlaps by the monotonic clock */

struct end {
    int64_t end_us;
    uint64_t deadline_ms;
    char key[];
};

struct dbu_ends {
    pthread_mutex_t lock;
    struct stw_table table;
};

static const char *end_key(const void *entry)
{
    return ((const struct end *)entry)->key;
}

struct dbu_ends *dbu_ends_create(void)
{
    struct dbu_ends *e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    (void)pthread_mutex_init(&e->lock, NULL);
    e->table = STW_TABLE_INIT(end_key);
    return e;
}

void dbu_ends_destroy(struct dbu_ends *e)
{
    if (!e)
        return;
    stw_table_release(&e->table, free);
    (void)pthread_mutex_destroy(&e->lock);
    free(e);
}

void dbu_ends_forget(struct dbu_ends *e, const char *key)
{
    STW_LOCKED(&e->lock);
    free(stw_table_remove(&e->table, key));
}

static struct end *add_end(struct dbu_ends *e, const char *key)
{
    size_t len = strlen(key) + 1;
    void *old;
    struct end *one = calloc(1, sizeof(*one) + len);
    if (!one)
        return NULL;
    memcpy(one->key, key, len);
    one->end_us = INT64_MIN;
    if (stw_table_put(&e->table, one, &old) == 0)
        return one;
    free(one);
    return NULL;
}

uint64_t dbu_ends_left_ms(struct dbu_ends *e, const char *key, int64_t end_us, int64_t wall_us,
                          uint64_t now_ms)
{
    uint64_t left = end_us > wall_us ? (uint64_t)(end_us - wall_us) / 1000 : 0;
    STW_LOCKED(&e->lock);
    struct end *one = stw_table_get(&e->table, key);
    if (!one)
        one = add_end(e, key);
    if (!one)
        return left;
    if (one->end_us != end_us) {
        one->end_us = end_us;
        one->deadline_ms = now_ms + left;
    }
    return one->deadline_ms > now_ms ? STW_MAX(left, one->deadline_ms - now_ms) : left;
}

bool dbu_overlap_is_over(const struct dbu *d, int64_t end_us, uint64_t *ret_left_ms)
{
    int64_t wall = stw_wall_us(d->run->clock);
    *ret_left_ms = end_us > wall ? (uint64_t)(end_us - wall) / 1000 : 0;
    if (d->state && d->state->ends)
        *ret_left_ms =
            dbu_ends_left_ms(d->state->ends, d->run->key, end_us, wall, stw_now_ms(d->run->clock));
    return *ret_left_ms == 0;
}
