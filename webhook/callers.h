/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may call at the door: whoever has a client certificate of a CA, such as the one that the API
 * server was given for its webhooks.  The CA's file is read again when it changes; one that cannot
 * be used is told of, and the old one stays.  Any thread. */
#ifndef STW_WEBHOOK_CALLERS_H
#define STW_WEBHOOK_CALLERS_H

#include "base/clock.h"
#include "base/error.h"

#include <gnutls/gnutls.h>

struct stw_callers;

struct stw_callers_config {
    const char *ca_file;      /* PEM, one CA or several */
    const char *const *names; /* one of them must be in the certificate, as its common name or an
                                 alternative name (DNS); ended by NULL.  NULL: any will do */
    const struct stw_clock *clock;
};

/* Fails when the file cannot be used.  What the config names is borrowed. */
int stw_callers_create(const struct stw_callers_config *config, struct stw_callers **ret,
                       struct stw_error *err);
/* Asks for a certificate in this handshake, which is about to begin, and ends it without one. */
void stw_callers_require(struct stw_callers *c, gnutls_session_t session);
void stw_callers_destroy(struct stw_callers *c); /* NULL is fine; no handshake may be under way */

#endif
