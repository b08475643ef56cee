/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/queue/failures.h"

#include "base/thread.h"

#include <pthread.h>
#include <string.h>

struct stw_failures {
    pthread_mutex_t lock;
    struct stw_failure *at[STW_FAILURES_MAX]; /* the latest first */
    uint32_t count;
    uint64_t dropped;
};

struct stw_failures *stw_failures_create(void)
{
    struct stw_failures *f = calloc(1, sizeof(*f));
    if (f && pthread_mutex_init(&f->lock, NULL) != 0) {
        free(f);
        return NULL;
    }
    return f;
}

void stw_failures_destroy(struct stw_failures *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->count; i++)
        free(f->at[i]);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* The index, or count: it is not kept. */
static uint32_t find_failure(const struct stw_failures *f, const char *key)
{
    uint32_t i = 0;
    while (i < f->count && !stw_streq(f->at[i]->key, key))
        i++;
    return i;
}

static struct stw_failure *take_failure(struct stw_failures *f, uint32_t i)
{
    struct stw_failure *one = f->at[i];
    f->count--;
    memmove(&f->at[i], &f->at[i + 1], (f->count - i) * sizeof(struct stw_failure *));
    return one;
}

static struct stw_failure *make_failure(const char *key)
{
    size_t size = strlen(key) + 1;
    struct stw_failure *one = calloc(1, sizeof(*one) + size);
    if (one)
        one->key = memcpy(one + 1, key, size);
    return one;
}

void stw_failures_add(struct stw_failures *f, const char *key, bool stalled,
                      const struct stw_error *err, int64_t now_us)
{
    STW_LOCKED(&f->lock);
    uint32_t i = find_failure(f, key);
    struct stw_failure *one = i < f->count ? take_failure(f, i) : make_failure(key);
    if (!one)
        return;
    if (f->count == STW_FAILURES_MAX) {
        free(take_failure(f, f->count - 1));
        f->dropped++;
    }
    memmove(&f->at[1], &f->at[0], f->count * sizeof(struct stw_failure *));
    f->at[0] = one;
    f->count++;
    one->stalled = stalled;
    one->code = err->code;
    one->at_us = now_us;
    if (one->streak++ == 0)
        one->since_us = now_us;
    stw_format(one->text, sizeof(one->text), "%.255s", err->text);
}

void stw_failures_forget(struct stw_failures *f, const char *key)
{
    STW_LOCKED(&f->lock);
    uint32_t i = find_failure(f, key);
    if (i < f->count)
        free(take_failure(f, i));
}

uint64_t stw_failures_each(struct stw_failures *f,
                           void (*each)(void *ctx, const struct stw_failure *one), void *ctx)
{
    STW_LOCKED(&f->lock);
    for (uint32_t i = 0; i < f->count; i++)
        each(ctx, f->at[i]);
    return f->dropped;
}
