/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits what the webhook reveals about other objects. Any client that reaches its port can send
 * reviews, so an answer must not contain anything that the client could not read in the cluster. */
#ifndef STW_WEBHOOK_DISCREET_H
#define STW_WEBHOOK_DISCREET_H

#include "base/clock.h"
#include "schema/kind.h"

#include <pthread.h>

/* A token bucket: the number of lookups allowed in a burst and per second. */
struct stw_bucket {
    uint64_t tokens, burst, refilled_ms, refill_ms;
};

struct stw_discreet {
    struct stw_lookup lookup; /* for rules: `inner`, restricted */
    const struct stw_lookup *inner;
    const struct stw_clock *clock;
    bool known_clients; /* each client has presented a client certificate */
    pthread_mutex_t lock;
    struct stw_bucket looks, secrets; /* reads of Secrets from the API server; from the cache */
};

/* With `inner` NULL, rules get no lookup either. Unless callers are known, a lookup of a Secret
 * reports only whether it exists, nothing of its value or keys, and is rate-limited. */
void stw_discreet_init(struct stw_discreet *d, const struct stw_lookup *inner, bool known_clients,
                       const struct stw_clock *clock);
void stw_discreet_done(struct stw_discreet *d);

#endif
