/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL helpers for this module: objects with automatic cleanup, its error queue as text, PEM
 * input and output.  Nothing here prompts for a pass phrase. */
#ifndef STW_CERTS_SSL_PRIV_H
#define STW_CERTS_SSL_PRIV_H

#include "base/error.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdbool.h>

#define STW_PEM_MAX_BYTES ((size_t)256 * 1024) /* one PEM text from outside */
#define STW_PEM_MAX_CERTS 32                   /* certificates in it */

static inline void stw_x509p(X509 **p)
{
    X509_free(*p);
}
static inline void stw_pkeyp(EVP_PKEY **p)
{
    EVP_PKEY_free(*p);
}
static inline void stw_biop(BIO **p)
{
    BIO_free_all(*p);
}
static inline void stw_certlistp(STACK_OF(X509) * *p)
{
    sk_X509_pop_free(*p, X509_free);
}
static inline void stw_namesp(GENERAL_NAMES **p)
{
    GENERAL_NAMES_free(*p);
}
#define stw_autox509 __attribute__((cleanup(stw_x509p)))
#define stw_autopkey __attribute__((cleanup(stw_pkeyp)))
#define stw_autobio __attribute__((cleanup(stw_biop)))
#define stw_autocerts __attribute__((cleanup(stw_certlistp)))
#define stw_autonames __attribute__((cleanup(stw_namesp)))

/* Must be called before OpenSSL is used.  No configuration file is read, which saves memory and
 * keeps the result the same on every machine.  Cheap when already done. */
void stw_ssl_init(void);

/* Like stw_fail, with the oldest entry of OpenSSL's error queue after the text; empties the
 * queue. */
int stw_ssl_fail(struct stw_error *err, enum stw_err code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* as in base/error.h */
#define stw_ssl_fail(...) (stw_ssl_fail(__VA_ARGS__), -1)
#endif

/* To read a PEM from, within the limits above; NULL with `err`. */
BIO *stw_ssl_open(const char *what, const char *pem, struct stw_error *err);
/* Whether a reader has stopped at the end of the PEM, rather than at an error; that is forgotten. */
bool stw_ssl_at_end(void);

/* Every certificate of a PEM, at least one; NULL with `err` when one of them does not parse, or the
 * text is over the limits above.  `what` names the text in messages: "tls.crt". */
STACK_OF(X509) * stw_ssl_certs(const char *what, const char *pem, struct stw_error *err);
/* The first certificate of a PEM. */
X509 *stw_ssl_cert(const char *what, const char *pem, struct stw_error *err);
/* An unencrypted private key. */
EVP_PKEY *stw_ssl_key(const char *what, const char *pem, struct stw_error *err);

/* PEM text, owned by the caller; NULL when out of memory. */
char *stw_ssl_cert_pem(X509 *cert);
char *stw_ssl_key_pem(EVP_PKEY *key);

/* Microseconds since the epoch; -1 when the time does not parse. */
int stw_ssl_time(const ASN1_TIME *t, int64_t *ret_us);

#endif
