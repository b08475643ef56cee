/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a thread that serves still gets round its loop.  Another thread asks and, if nothing is
 * outstanding, wakes it; the thread answers in each round.  No locks. */
#ifndef STW_BASE_PULSE_H
#define STW_BASE_PULSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STW_PULSE_EVERY_MS 1000

struct stw_pulse {
    _Atomic uint64_t asked_ms; /* since when an answer is outstanding; 0: none is */
    _Atomic uint64_t next_ms;  /* when to ask again */
};

static inline void stw_pulse_answer(struct stw_pulse *p)
{
    if (atomic_load_explicit(&p->asked_ms, memory_order_relaxed) != 0)
        atomic_store(&p->asked_ms, 0);
}

/* How long an answer has been outstanding.  `*ret_wake`: it was asked just now, wake the thread. */
static inline uint64_t stw_pulse_silent_ms(struct stw_pulse *p, uint64_t now_ms, bool *ret_wake)
{
    uint64_t asked = 0;
    *ret_wake = false;
    if (atomic_load(&p->asked_ms) == 0 && now_ms < atomic_load(&p->next_ms))
        return 0;
    if (!atomic_compare_exchange_strong(&p->asked_ms, &asked, now_ms))
        return now_ms > asked ? now_ms - asked : 0;
    atomic_store(&p->next_ms, now_ms + STW_PULSE_EVERY_MS);
    *ret_wake = true;
    return 0;
}

#endif
