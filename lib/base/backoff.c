/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include "base/clock.h"
#include "base/util.h"

#include <sys/random.h>

uint64_t stw_backoff(uint64_t first, uint64_t failures, uint64_t max)
{
    uint64_t wait = first;
    while (failures-- > 0 && wait > 0 && wait < max)
        wait = wait > max / 2 ? max : wait * 2;
    return STW_MIN(wait, max);
}

uint64_t stw_backoff_ms(const char *key, uint32_t failures, uint64_t first_ms, uint64_t max_ms)
{
    uint64_t wait = stw_backoff(first_ms, failures, max_ms);
    struct stw_hash h = stw_hash_bytes(key, strlen(key));
    uint64_t dice = (h.lo ^ (wait * 0x9e3779b97f4a7c15u)) % 401; /* 0..400: -20.0 % to +20.0 % */
    return wait - wait / 5 + wait * dice / 1000;
}

uint64_t stw_random(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) == sizeof(bits))
        return bits;
    int64_t now = stw_wall_us(&stw_clock_system); /* before the kernel has any entropy */
    return stw_hash_bytes(&now, sizeof(now)).lo;
}
