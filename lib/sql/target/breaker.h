/* SPDX-License-Identifier: Apache-2.0
 *
 * A circuit breaker: after failures in a row it opens and refuses callers at once; after a wait it
 * lets one caller through as a probe.  Pure: time is passed in, and the owner does the locking. */
#ifndef STW_SQL_BREAKER_H
#define STW_SQL_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define STW_BREAKER_FAILURES 3
#define STW_BREAKER_FIRST_MS 1000

/* Zero-initialised is closed. */
struct stw_breaker {
    unsigned failures; /* in a row */
    unsigned opened;   /* openings in a row */
    uint64_t until_ms; /* refuses before this */
    bool open;
    bool probing; /* a probe is under way */
};

/* Whether the caller may try.  If so, it must report success or failure. */
bool stw_breaker_allow(struct stw_breaker *b, uint64_t now_ms);
void stw_breaker_success(struct stw_breaker *b);
/* `grave`: opens at once, as after a timeout or a refused login.  The waits grow up to `max_ms`. */
void stw_breaker_failure(struct stw_breaker *b, uint64_t now_ms, bool grave, uint64_t max_ms);
/* Lets the next caller through. */
void stw_breaker_poke(struct stw_breaker *b);
/* 0 when closed. */
uint64_t stw_breaker_wait_ms(const struct stw_breaker *b, uint64_t now_ms);

#endif
