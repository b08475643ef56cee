/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/target/breaker.h"

#include "base/backoff.h"
#include "base/util.h"

#include <assert.h>

bool stw_breaker_allow(struct stw_breaker *b, uint64_t now_ms)
{
    if (!b->open)
        return true;
    if (b->probing || now_ms < b->until_ms)
        return false;
    b->probing = true;
    return true;
}

void stw_breaker_success(struct stw_breaker *b)
{
    *b = (struct stw_breaker){0};
}

void stw_breaker_failure(struct stw_breaker *b, uint64_t now_ms, bool grave, uint64_t max_ms)
{
    assert(!b->probing || b->open);
    b->failures++;
    /* The failure of an attempt that began before the breaker opened changes nothing. */
    if (b->open && !b->probing)
        return;
    if (!b->probing && !grave && b->failures < STW_BREAKER_FAILURES)
        return;
    b->open = true;
    b->probing = false;
    b->until_ms = now_ms + stw_backoff(STW_BREAKER_FIRST_MS, b->opened++, max_ms);
}

void stw_breaker_poke(struct stw_breaker *b)
{
    if (b->open)
        b->until_ms = 0;
}

uint64_t stw_breaker_wait_ms(const struct stw_breaker *b, uint64_t now_ms)
{
    if (!b->open)
        return 0;
    return b->until_ms > now_ms ? b->until_ms - now_ms : 1;
}
