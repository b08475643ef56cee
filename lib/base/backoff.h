/* SPDX-License-Identifier: Apache-2.0
 *
 * The waits between attempts: they grow with each failure up to a cap, and clients that failed
 * together do not retry together. */
#ifndef STW_BASE_BACKOFF_H
#define STW_BASE_BACKOFF_H

#include <stdint.h>

/* The longest wait that a server may ask for (Retry-After): what asks for more is asked again after
 * this.  The caller is blind until then. */
#define STW_RETRY_AFTER_MAX_MS 30000u

/* first * 2^failures, at most max; in any unit. */
uint64_t stw_backoff(uint64_t first, uint64_t failures, uint64_t max);
/* The same in ms, plus or minus 20 %.  The jitter is derived from key and wait: it differs between
 * objects and is the same when asked twice. */
uint64_t stw_backoff_ms(const char *key, uint32_t failures, uint64_t first_ms, uint64_t max_ms);

/* 64 random bits for jitter and names; not for secrets.  Does not block. */
uint64_t stw_random(void);

#endif
