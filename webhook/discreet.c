/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/discreet.h"

#include "base/thread.h"
#include "base/util.h"

/* A "look" costs a request to the API server. A "secret" lookup reads a cache, once per new
 * DatabaseUser. One address alone gets two thirds of its own burst, which is a third of the sum: 20
 * looks, 200 lookups of Secrets. */
#define LOOKS_BURST 30U
#define LOOKS_REFILL_MS 200U
#define SECRETS_BURST 300U
#define SECRETS_REFILL_MS 20U

static _Thread_local uint64_t served_peer;

void stw_discreet_serve(uint64_t peer)
{
    served_peer = peer;
}

static bool find_in_inner(void *ctx, const char *index, const char *key, const char *self,
                          char *ret_holder)
{
    const struct stw_discreet *d = ctx;
    return d->inner->find(d->inner->ctx, index, key, self, ret_holder);
}

static bool take_token(struct stw_discreet *d, struct stw_buckets *b)
{
    uint64_t now = stw_now_ms(d->clock);
    STW_LOCKED(&d->lock);
    bool ok = stw_buckets_take(b, stw_buckets_enter(b, served_peer, now), now);
    return ok;
}

static struct stw_buckets make_buckets(uint64_t burst, uint64_t refill_ms)
{
    return (struct stw_buckets){.peer_burst = burst,
                                .peer_refill_ms = refill_ms,
                                .sum_burst = 2 * burst,
                                .sum_refill_ms = refill_ms};
}

static int has_in_inner(void *ctx, const char *plural, const char *key)
{
    struct stw_discreet *d = ctx;
    if (!d->known_clients && stw_streq(plural, "secrets") && !take_token(d, &d->secrets))
        return -1;
    return d->inner->has(d->inner->ctx, plural, key);
}

static int look_at_inner_secret(void *ctx, const char *ns, const char *name, const char *key,
                                struct stw_secret_facts *ret)
{
    struct stw_discreet *d = ctx;
    if (d->known_clients)
        return d->inner->secret(d->inner->ctx, ns, name, key, ret);
    *ret = (struct stw_secret_facts){0};
    if (!take_token(d, &d->looks) || d->inner->secret(d->inner->ctx, ns, name, key, ret) != 0)
        return -1;
    bool there = ret->secret_there;
    *ret = (struct stw_secret_facts){0};
    return there ? -1 : 0;
}

void stw_discreet_init(struct stw_discreet *d, const struct stw_lookup *inner, bool known_clients,
                       const struct stw_clock *clock)
{
    uint64_t now = stw_now_ms(clock);
    *d = (struct stw_discreet){
        .inner = inner,
        .clock = clock,
        .known_clients = known_clients,
        .looks = make_buckets(LOOKS_BURST, LOOKS_REFILL_MS),
        .secrets = make_buckets(SECRETS_BURST, SECRETS_REFILL_MS),
    };
    stw_buckets_begin(&d->looks, now);
    stw_buckets_begin(&d->secrets, now);
    (void)pthread_mutex_init(&d->lock, NULL);
    d->lookup.ctx = d;
    if (!inner)
        return;
    d->lookup.find = inner->find ? find_in_inner : NULL;
    d->lookup.has = inner->has ? has_in_inner : NULL;
    d->lookup.secret = inner->secret ? look_at_inner_secret : NULL;
}

void stw_discreet_done(struct stw_discreet *d)
{
    (void)pthread_mutex_destroy(&d->lock);
}
