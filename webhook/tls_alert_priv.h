/* SPDX-License-Identifier: Apache-2.0
 *
 * Alerts for handshakes that fail. libmicrohttpd closes the connection without one, so a client sees
 * only that it ended. */
#ifndef STW_WEBHOOK_TLS_ALERT_PRIV_H
#define STW_WEBHOOK_TLS_ALERT_PRIV_H

#include <gnutls/gnutls.h>
#include <stdbool.h>

/* For a gnutls_handshake_hook_func, before a message of the client is processed. Refuses a
 * ClientHello without a version that is served, and, if `certificate_required`, an empty list of
 * certificates. Returns 0, or an error of GnuTLS after the alert, which ends the handshake. */
int stw_tls_check_message(gnutls_session_t session, unsigned type, const gnutls_datum_t *message,
                          bool certificate_required);
/* Whether a ClientHello offers TLS 1.2 or 1.3. Also true for one that cannot be read, which GnuTLS
 * refuses. */
bool stw_tls_offers_version(const unsigned char *hello, size_t size);

#endif
