/* SPDX-License-Identifier: Apache-2.0
 *
 * Secret mode: reads, decides, does one action, and repeats until there is nothing to do.  One
 * thread.
 *
 * The order of reading matters: the configurations first, then the Secret.  A write of a caBundle
 * carries the resourceVersion of the configuration as it was read, so a bundle made from an older
 * Secret can never overwrite one made from a newer Secret. */
#ifndef STW_CERTS_ROTATION_PRIV_H
#define STW_CERTS_ROTATION_PRIV_H

#include "base/clock.h"
#include "base/util.h"
#include "certs/certs.h"
#include "hooks_priv.h"
#include "steps_priv.h"

struct stw_rotation {
    struct stw_rotation_config config; /* strings borrowed */
    struct stw_rotation_api api;
    const struct stw_clock *clock;
    stw_certs_use_fn *serve; /* for a valid leaf that was not served before */
    void *ctx;

    /* The result of the last sync. */
    struct stw_rotation_facts facts;
    char problem[640]; /* why the configurations do not trust what is served; "" when they do */

    char *served; /* the certificate in service */
    struct stw_hash exact_bundle;
    uint64_t exact_since_ms; /* 0: they are not exact */
    uint64_t repair_since_ms;
    unsigned repairs; /* writes of caBundles since then */
    bool missing_said[STW_ROTATION_HOOKS], release_said;
};

void stw_rotation_done(struct stw_rotation *r);
int stw_rotation_sync(struct stw_rotation *r, struct stw_error *err);
/* Whether, by the state read last, there is nothing to do now; `ret_wait_ms` is then when to call
 * again. */
bool stw_rotation_idle(struct stw_rotation *r, uint64_t max_ms, uint64_t *ret_wait_ms);

#endif
