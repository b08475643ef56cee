/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/shares.h"

#include "base/util.h"

struct stw_client_shares stw_client_shares(size_t memory_bytes)
{
    size_t all = memory_bytes ? memory_bytes : STW_CLIENT_MEMORY_DEFAULT;
    struct stw_client_shares s = {
        .requests = all / 2, .metrics = all / 16, .metrics_texts = all / 16, .probes = all / 32};
    s.admission = all - s.requests - s.metrics - s.metrics_texts - s.probes;
    return s;
}

static uint32_t divide(size_t share, size_t cost)
{
    size_t all = STW_MAX(share / cost, (size_t)5);
    return (uint32_t)STW_MIN(all / 5 * 4, (size_t)UINT32_MAX);
}

uint32_t stw_connections_tls(size_t share)
{
    return divide(share, STW_CONNECTION_TLS_BYTES);
}

uint32_t stw_connections_plain(size_t share)
{
    return divide(share, STW_CONNECTION_PLAIN_BYTES);
}

uint32_t stw_connections_dying(uint32_t limit)
{
    return STW_MAX(limit / 4, 1U);
}
