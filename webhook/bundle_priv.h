/* SPDX-License-Identifier: Apache-2.0
 *
 * A certificate chain with its key, as GnuTLS wants them in a handshake. Reference-counted: each
 * session holds a reference until it ends, so that a newer bundle can be installed at any time. */
#ifndef STW_WEBHOOK_BUNDLE_PRIV_H
#define STW_WEBHOOK_BUNDLE_PRIV_H

#include "base/error.h"
#include "base/util.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdint.h>

/* TLS 1.2 and 1.3, forward secrecy and AEAD only; AES-128 first: the fastest in hardware. */
#define STW_TLS_PRIORITIES                                                                         \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:"            \
    "+CHACHA20-POLY1305:-RSA:-DHE-RSA:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:"                  \
    "+GROUP-SECP384R1:%SERVER_PRECEDENCE"

struct stw_bundle;

/* Fails if the pair does not parse, does not match or has expired at now_us. */
int stw_bundle_load(const char *cert_pem, const char *key_pem, int64_t now_us,
                    struct stw_bundle **ret, struct stw_error *err) STW_MUST_CHECK;
struct stw_bundle *stw_bundle_ref(struct stw_bundle *b);
void stw_bundle_unref(struct stw_bundle *b); /* NULL is allowed */

/* The result of that function while there is no bundle: ends the handshake, with an alert. */
int stw_bundle_missing(gnutls_session_t session);

/* The bundle for new connections. Any thread. */
struct stw_bundle_slot {
    pthread_mutex_t lock;
    struct stw_bundle *bundle; /* NULL: none yet */
};
void stw_bundle_slot_init(struct stw_bundle_slot *s);
void stw_bundle_slot_done(struct stw_bundle_slot *s);
struct stw_bundle *stw_bundle_slot_ref(struct stw_bundle_slot *s); /* or NULL */
/* Like stw_bundle_load; on failure the old bundle stays in use. */
int stw_bundle_slot_load(struct stw_bundle_slot *s, const char *cert_pem, const char *key_pem,
                         int64_t now_us, struct stw_error *err) STW_MUST_CHECK;

/* Lets the client resume this session later. Tickets are not valid with another bundle. */
void stw_bundle_enable_tickets(const struct stw_bundle *b, gnutls_session_t session);
/* Fills the results of a gnutls_certificate_retrieve_function3; the bundle keeps ownership. */
int stw_bundle_retrieve(const struct stw_bundle *b, gnutls_pcert_st **pcert, unsigned *pcert_length,
                        gnutls_ocsp_data_st **ocsp, unsigned *ocsp_length, gnutls_privkey_t *key,
                        unsigned *flags);

#endif
