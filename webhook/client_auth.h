/* SPDX-License-Identifier: Apache-2.0
 *
 * Which clients may connect to the webhook: those with a client certificate of a given CA, such as
 * the one that the API server presents to webhooks. The CA file is read again when it changes. If
 * the new file cannot be used, that is logged and the old CA stays in use. Any thread. */
#ifndef STW_WEBHOOK_CLIENT_AUTH_H
#define STW_WEBHOOK_CLIENT_AUTH_H

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

#include <gnutls/gnutls.h>

struct stw_client_auth;

struct stw_client_auth_config {
    const char *ca_file;      /* PEM, one CA or several */
    const char *const *names; /* one of them must be in the certificate, as its common name or an
                                 alternative name (DNS); ended by NULL. NULL: any name */
    const struct stw_clock *clock;
};

/* Fails when the file cannot be used. The strings of the config are borrowed. */
int stw_client_auth_create(const struct stw_client_auth_config *config,
                           struct stw_client_auth **ret, struct stw_error *err) STW_MUST_CHECK;
/* Requests a client certificate in this handshake, which must not have begun. The handshake fails
 * without one. */
void stw_client_auth_require(struct stw_client_auth *c, gnutls_session_t session);
void stw_client_auth_destroy(struct stw_client_auth *c); /* NULL is allowed; no handshake may be in
                                                    progress */

#endif
