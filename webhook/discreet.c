/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/discreet.h"

#include "base/util.h"

#include <stdio.h>

#define BURST 20U
#define REFILL_MS 200U

static bool same_namespace(const char *a, const char *b)
{
    size_t len = strcspn(a, "/");
    return len == strcspn(b, "/") && memcmp(a, b, len) == 0;
}

static bool find(void *ctx, const char *index, const char *key, const char *self, char *ret_holder)
{
    const struct stw_discreet *d = ctx;
    if (!d->inner->find(d->inner->ctx, index, key, self, ret_holder))
        return false;
    if (!self || !same_namespace(self, ret_holder))
        (void)snprintf(ret_holder, 512, "in another namespace");
    return true;
}

static int has(void *ctx, const char *plural, const char *key)
{
    const struct stw_discreet *d = ctx;
    return d->inner->has(d->inner->ctx, plural, key);
}

static bool take_token(struct stw_discreet *d)
{
    uint64_t now = stw_now_ms(d->clock);
    (void)pthread_mutex_lock(&d->lock);
    uint64_t fresh = (now - d->refilled_ms) / REFILL_MS;
    d->refilled_ms += fresh * REFILL_MS;
    d->tokens = STW_MIN(d->tokens + fresh, (uint64_t)BURST);
    bool ok = d->tokens > 0;
    d->tokens -= ok;
    (void)pthread_mutex_unlock(&d->lock);
    return ok;
}

static int secret(void *ctx, const char *ns, const char *name, const char *key,
                  struct stw_secret_facts *ret)
{
    struct stw_discreet *d = ctx;
    if (d->known_callers)
        return d->inner->secret(d->inner->ctx, ns, name, key, ret);
    *ret = (struct stw_secret_facts){0};
    if (!take_token(d) || d->inner->secret(d->inner->ctx, ns, name, key, ret) != 0)
        return -1;
    bool there = ret->secret_there;
    *ret = (struct stw_secret_facts){0};
    return there ? -1 : 0;
}

static struct stw_targets *targets(void *ctx)
{
    const struct stw_discreet *d = ctx;
    return d->inner->targets(d->inner->ctx);
}

void stw_discreet_init(struct stw_discreet *d, const struct stw_lookup *inner, bool known_callers,
                       const struct stw_clock *clock)
{
    *d = (struct stw_discreet){
        .inner = inner, .clock = clock, .known_callers = known_callers, .tokens = BURST};
    (void)pthread_mutex_init(&d->lock, NULL);
    d->refilled_ms = stw_now_ms(clock);
    d->lookup.ctx = d;
    if (!inner)
        return;
    d->lookup.find = inner->find ? find : NULL;
    d->lookup.has = inner->has ? has : NULL;
    d->lookup.secret = inner->secret ? secret : NULL;
    d->lookup.targets = inner->targets ? targets : NULL;
}

void stw_discreet_done(struct stw_discreet *d)
{
    (void)pthread_mutex_destroy(&d->lock);
}
