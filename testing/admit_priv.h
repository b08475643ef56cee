/* SPDX-License-Identifier: Apache-2.0
 *
 * The webhooks of an operator, called without a server. */
#ifndef STW_TESTING_ADMIT_PRIV_H
#define STW_TESTING_ADMIT_PRIV_H

#include "base/operator.h"
#include "testing/server.h"

#include <pthread.h>

struct stw_lookup;

struct stw_test_webhooks {
    const struct stw_operator *op;
    pthread_rwlock_t lock; /* a review has it for reading, while it uses the caches */
    const struct stw_lookup *lookup;
};

/* A stw_test_admit_fn; `ctx` is a struct stw_test_webhooks. */
int stw_test_admit(void *ctx, const struct stw_resource *resource, json_t **object,
                   const json_t *old, struct stw_error *err);

#endif
