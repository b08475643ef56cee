/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/buckets_priv.h"

#include "base/util.h"

static void refill(struct stw_bucket *b, uint64_t burst, uint64_t refill_ms, uint64_t now)
{
    uint64_t fresh = (now - b->refilled_ms) / refill_ms;
    b->tokens = STW_MIN(b->tokens + fresh, burst);
    b->refilled_ms += fresh * refill_ms;
}

/* Of two entries, the one that is better replaced: a free one, else one that is not trusted, else
 * the one with the fuller bucket. A full bucket is like none. */
static struct stw_bucket_peer *choose_lesser(struct stw_bucket_peer *a, struct stw_bucket_peer *b)
{
    if (!a->address || !b->address)
        return a->address ? b : a;
    if (a->trusted != b->trusted)
        return a->trusted ? b : a;
    return b->bucket.tokens > a->bucket.tokens ? b : a;
}

void stw_buckets_begin(struct stw_buckets *b, uint64_t now_ms)
{
    b->sum = (struct stw_bucket){b->sum_burst, now_ms};
}

struct stw_bucket_peer *stw_buckets_enter(struct stw_buckets *b, uint64_t address, uint64_t now_ms)
{
    struct stw_bucket_peer *least = &b->peers[0];
    for (unsigned i = 0; i < STW_BUCKETS_PEERS; i++) {
        struct stw_bucket_peer *p = &b->peers[i];
        refill(&p->bucket, b->peer_burst, b->peer_refill_ms, now_ms);
        if (p->address == address && address)
            return p;
        least = choose_lesser(least, p);
    }
    *least = (struct stw_bucket_peer){.address = address, .bucket = {b->peer_burst, now_ms}};
    return least;
}

bool stw_buckets_take(struct stw_buckets *b, struct stw_bucket_peer *p, uint64_t now_ms)
{
    refill(&b->sum, b->sum_burst, b->sum_refill_ms, now_ms);
    uint64_t kept = p->trusted ? 0 : b->reserve, all = b->sum_burst - kept;
    uint64_t left = b->sum.tokens > kept ? b->sum.tokens - kept : 0;
    /* left / all > used / burst */
    if (p->bucket.tokens == 0 || left * b->peer_burst <= (b->peer_burst - p->bucket.tokens) * all)
        return false;
    p->bucket.tokens--;
    b->sum.tokens--;
    return true;
}

void stw_buckets_charge(struct stw_buckets *b, struct stw_bucket_peer *p, uint64_t more)
{
    p->bucket.tokens -= STW_MIN(p->bucket.tokens, more);
    b->sum.tokens -= STW_MIN(b->sum.tokens, more);
}
