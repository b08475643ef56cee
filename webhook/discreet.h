/* SPDX-License-Identifier: Apache-2.0
 *
 * What the webhook may tell of other objects.  Anybody who reaches its port can ask, so that an
 * answer must not hold what the caller could not read in the cluster. */
#ifndef STW_WEBHOOK_DISCREET_H
#define STW_WEBHOOK_DISCREET_H

#include "base/clock.h"
#include "kinds/kind.h"

#include <pthread.h>

/* What may be asked, in a burst and each second. */
struct stw_bucket {
    uint64_t tokens, burst, refilled_ms, refill_ms;
};

struct stw_discreet {
    struct stw_lookup lookup; /* for rules: `inner`, less what is not told */
    const struct stw_lookup *inner;
    const struct stw_clock *clock;
    bool known_callers; /* each caller has shown a client certificate */
    pthread_mutex_t lock;
    struct stw_bucket looks, secrets; /* at Secrets by the API server, in the cache */
};

/* `inner` NULL: there is nothing to ask, and no look-up is given to rules either.
 *   - Of a Secret, unless callers are known, only whether it is there: nothing of its value, nor of
 *     its keys; and not often. */
void stw_discreet_init(struct stw_discreet *d, const struct stw_lookup *inner, bool known_callers,
                       const struct stw_clock *clock);
void stw_discreet_done(struct stw_discreet *d);

#endif
