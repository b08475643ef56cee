/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds what a client can make GnuTLS keep. GnuTLS collects a handshake message of up to 16 MiB
 * until it is complete, during the handshake and, with TLS 1.3, after it. Its own limit
 * (gnutls_handshake_set_max_packet_length) is checked only when the message is complete. So the
 * bytes that a session reads from its socket are counted, until the server has made progress:
 * the handshake is done, or a request has begun, has a head or a piece of its body, or has ended.
 * With more bytes than that the connection fails. */
#ifndef STW_WEBHOOK_TLS_INPUT_PRIV_H
#define STW_WEBHOOK_TLS_INPUT_PRIV_H

#include <gnutls/gnutls.h>
#include <stddef.h>

/* A whole handshake: a ClientHello with a session ticket; or that and a chain of certificates. */
#define STW_TLS_HELLO_MAX ((size_t)16 << 10)
#define STW_TLS_HELLO_AND_CHAIN_MAX ((size_t)32 << 10)
/* After the handshake: one record of TLS has at most 16 KiB and 261 bytes. */
#define STW_TLS_STEP_MAX ((size_t)20 << 10)

/* Embedded in the owner's connection struct; used on the library's thread. */
struct stw_tls_input {
    int fd;
    size_t left;
};

/* From now on the session reads from its socket through `in`, which must outlive its last read. */
void stw_tls_input_limit(struct stw_tls_input *in, gnutls_session_t session, int fd,
                         size_t handshake_max);
/* The server has made progress: up to `step_max` bytes may come before the next. */
static inline void stw_tls_input_advance(struct stw_tls_input *in, size_t step_max)
{
    in->left = step_max;
}

#endif
