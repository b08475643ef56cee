/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/shares.h"

#include "base/util.h"

/* Measured as resident memory of 200 connections (GnuTLS 3.7.9, libmicrohttpd 0.9.75): 14 KiB
 * before the handshake, 31 in it, 25 after it, 67 after a request, which touches all of the
 * library's pool of 40. 115 with the most that stw_tls_input_limit lets a client leave there: a
 * handshake message and a record, both incomplete. tests/integration/test_connection_memory.py
 * checks it. */
#define TLS_CONNECTION_COST ((size_t)128 << 10)
/* A pool of 8 KiB, the library's and our state, a short answer. */
#define PLAIN_CONNECTION_COST ((size_t)16 << 10)

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
    return divide(share, TLS_CONNECTION_COST);
}

uint32_t stw_connections_plain(size_t share)
{
    return divide(share, PLAIN_CONNECTION_COST);
}

uint32_t stw_connections_dying(uint32_t limit)
{
    return STW_MAX(limit / 4, 1U);
}
