/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits what the webhook reveals about other objects. Any client that reaches its port can send
 * reviews, so an answer must not contain anything that the client could not read in the cluster. */
#ifndef STW_WEBHOOK_DISCREET_H
#define STW_WEBHOOK_DISCREET_H

#include "base/clock.h"
#include "schema/kind.h"
#include "webhook/buckets_priv.h"

#include <pthread.h>

struct stw_discreet {
    struct stw_lookup lookup; /* for rules: `inner`, restricted */
    const struct stw_lookup *inner;
    const struct stw_clock *clock;
    bool known_clients; /* each client has presented a client certificate */
    pthread_mutex_t lock;
    struct stw_buckets looks, secrets; /* reads of Secrets from the API server; from the cache */
};

/* With `inner` NULL, rules get no lookup either. Unless callers are known, a lookup of a Secret
 * reports only whether it exists, nothing of its value or keys, and is rate-limited. */
void stw_discreet_init(struct stw_discreet *d, const struct stw_lookup *inner, bool known_clients,
                       const struct stw_clock *clock);
/* What this thread looks up from now on is for a client of this address, as in stw_gate_entry. */
void stw_discreet_serve(uint64_t peer);
void stw_discreet_done(struct stw_discreet *d);

#endif
