/* SPDX-License-Identifier: Apache-2.0
 *
 * A clock that only a test advances. */
#ifndef STW_TESTS_SUPPORT_FAKE_CLOCK_H
#define STW_TESTS_SUPPORT_FAKE_CLOCK_H

#include "base/clock.h"

struct fake_clock {
    uint64_t ms;
};

static inline uint64_t fake_monotonic(void *ctx)
{
    return ((struct fake_clock *)ctx)->ms;
}
static inline int64_t fake_wall(void *ctx)
{
    /* 2024-01-01T00:00:00Z */
    return 1704067200000000 + (int64_t)((struct fake_clock *)ctx)->ms * 1000;
}

#define FAKE_CLOCK(name)                                                                           \
    struct fake_clock name = {.ms = 1000};                                                         \
    const struct stw_clock name##_clock = {&name, fake_monotonic, fake_wall}

#endif
