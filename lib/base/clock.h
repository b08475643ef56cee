/* SPDX-License-Identifier: Apache-2.0
 *
 * Time as a parameter: code that waits or takes timestamps takes a clock, so that tests can pass
 * their own. */
#ifndef STW_BASE_CLOCK_H
#define STW_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

struct stw_clock {
    void *ctx;
    uint64_t (*monotonic_ms)(void *ctx); /* for waits: never steps */
    int64_t (*wall_us)(void *ctx);       /* for timestamps: microseconds since the epoch, UTC */
    /* For deadlines that must hold across a suspend: keeps counting while the machine is suspended.
     * NULL: monotonic_ms is used. */
    uint64_t (*boot_ms)(void *ctx);
};

extern const struct stw_clock stw_clock_system;

/* The three times of a clock. */
static inline uint64_t stw_now_ms(const struct stw_clock *c)
{
    return c->monotonic_ms(c->ctx);
}
static inline uint64_t stw_boot_ms(const struct stw_clock *c)
{
    return c->boot_ms ? c->boot_ms(c->ctx) : c->monotonic_ms(c->ctx);
}
static inline int64_t stw_wall_us(const struct stw_clock *c)
{
    return c->wall_us(c->ctx);
}

#define STW_TIME_LEN 32 /* either form below with its NUL */

/* metav1.Time "2006-01-02T15:04:05Z" and metav1.MicroTime "2006-01-02T15:04:05.000000Z". */
void stw_time_format(int64_t wall_us, char out[STW_TIME_LEN]);
void stw_time_format_micro(int64_t wall_us, char out[STW_TIME_LEN]);
/* Reads RFC 3339 with any fraction and offset.  Returns 0, or -1 when `text` is not valid. */
int stw_time_parse(const char *text, int64_t *ret_wall_us);

/* Condition variables that wait on CLOCK_MONOTONIC. */
int stw_cond_init(pthread_cond_t *cond);
/* Waits until signalled or `deadline_ms` (system monotonic; UINT64_MAX: no deadline). */
void stw_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ms);

#endif
