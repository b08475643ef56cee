/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of a controller whose last run failed, with the error, for /debug/state.  At most
 * STW_FAILURES_MAX are kept, those that failed last.  Every function locks. */
#ifndef STW_CONTROLLER_FAILURES_H
#define STW_CONTROLLER_FAILURES_H

#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_failures;

#define STW_FAILURES_MAX 32u

struct stw_failure {
    const char *key;
    bool stalled;      /* only a change by a user can fix it */
    enum stw_err code; /* of the last failure */
    int64_t since_us;  /* wall clock: of the first failure of the streak, as far as it was kept */
    int64_t at_us;     /* wall clock: of the last failure */
    uint64_t streak;   /* failures in a row, as far as they were kept */
    char text[256];    /* as in the log */
};

struct stw_failures *stw_failures_create(void) STW_MUST_CHECK; /* NULL: no memory */
void stw_failures_destroy(struct stw_failures *f);             /* NULL is allowed */
/* Out of memory: it is not kept. */
void stw_failures_add(struct stw_failures *f, const char *key, bool stalled,
                      const struct stw_error *err, int64_t now_us);
void stw_failures_forget(struct stw_failures *f, const char *key);
/* Calls `each` under the lock, the latest failure first.  Returns how many failures were dropped
 * because there were too many. */
uint64_t stw_failures_each(struct stw_failures *f,
                           void (*each)(void *ctx, const struct stw_failure *one), void *ctx);

#endif
