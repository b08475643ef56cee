/* SPDX-License-Identifier: Apache-2.0
 *
 * How the memory for clients is divided. The shares are fixed: what is full at one port takes
 * nothing from another. */
#ifndef STW_WEBHOOK_SHARES_H
#define STW_WEBHOOK_SHARES_H

#include <stddef.h>
#include <stdint.h>

#define STW_CLIENT_MEMORY_DEFAULT ((size_t)256 << 20)

/* Measured as resident memory of 200 connections (GnuTLS 3.7.9, libmicrohttpd 0.9.75): 14 KiB
 * before the handshake, 31 in it, 25 after it, 67 after a request, which touches all of the
 * library's pool of 40. 115 with the most that stw_tls_input_limit lets a client leave there: a
 * handshake message and a record, both incomplete. tests/integration/test_connection_memory.py
 * checks it. */
#define STW_CONNECTION_TLS_BYTES ((size_t)128 << 10)
/* A pool of 8 KiB, the library's and our state, a short answer. */
#define STW_CONNECTION_PLAIN_BYTES ((size_t)16 << 10)

/* Bytes. */
struct stw_client_shares {
    size_t requests;      /* bodies, parsed values and replies of admission and conversion */
    size_t admission;     /* connections of the admission port */
    size_t metrics;       /* connections of the metrics port */
    size_t metrics_texts; /* answers of the metrics port, until the client has read them */
    size_t probes;        /* connections of the probe port */
};

/* Of `memory_bytes` for all clients; 0: STW_CLIENT_MEMORY_DEFAULT. */
struct stw_client_shares stw_client_shares(size_t memory_bytes);

/* How many connections a share pays for, with TLS or without; at least 4. A connection that was cut
 * is paid for until it is closed: these are up to stw_connections_dying of the result. */
uint32_t stw_connections_tls(size_t share);
uint32_t stw_connections_plain(size_t share);
uint32_t stw_connections_dying(uint32_t limit);

#endif
