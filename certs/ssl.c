/* SPDX-License-Identifier: Apache-2.0 */
#include "ssl_priv.h"

#include "base/util.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pemerr.h>
#include <stdio.h>
#include <time.h>

void stw_ssl_init(void)
{
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
}

int(stw_ssl_fail)(struct stw_error *err, enum stw_err code, const char *fmt, ...)
{
    char text[320];
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(text, sizeof(text), fmt, ap);
    va_end(ap);
    unsigned long e = ERR_get_error();
    const char *reason = e ? ERR_reason_error_string(e) : NULL;
    ERR_clear_error();
    return reason ? stw_fail(err, code, "%s: %s", text, reason) : stw_fail(err, code, "%s", text);
}

/* Without this OpenSSL would prompt on the terminal for the pass phrase of an encrypted key. */
static int no_pass_phrase(char *buf, int size, int writing, void *u)
{
    (void)buf, (void)size, (void)writing, (void)u;
    return -1;
}

BIO *stw_ssl_open(const char *what, const char *pem, struct stw_error *err)
{
    stw_ssl_init();
    ERR_clear_error();
    size_t len = pem ? strnlen(pem, STW_PEM_MAX_BYTES + 1) : 0;
    if (len == 0) {
        (void)stw_fail(err, STW_ERR_INVALID, "%s is empty", what);
        return NULL;
    }
    if (len > STW_PEM_MAX_BYTES) {
        (void)stw_fail(err, STW_ERR_TOO_LARGE, "%s is larger than %zu bytes", what,
                       STW_PEM_MAX_BYTES);
        return NULL;
    }
    BIO *bio = BIO_new_mem_buf(pem, (int)len);
    if (!bio)
        (void)stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot read %s", what);
    return bio;
}

bool stw_ssl_at_end(void)
{
    unsigned long e = ERR_peek_last_error();
    bool end = ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
    if (end)
        ERR_clear_error();
    return end;
}

static int read_certs(const char *what, BIO *bio, STACK_OF(X509) * list, struct stw_error *err)
{
    for (;;) {
        X509 *cert = PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL);
        if (!cert)
            break;
        if (sk_X509_num(list) >= STW_PEM_MAX_CERTS) {
            X509_free(cert);
            return stw_fail(err, STW_ERR_TOO_LARGE, "%s holds more than %d certificates", what,
                            STW_PEM_MAX_CERTS);
        }
        if (sk_X509_push(list, cert) <= 0) {
            X509_free(cert);
            return stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot keep a certificate of %s", what);
        }
    }
    if (!stw_ssl_at_end())
        return stw_ssl_fail(err, STW_ERR_INVALID, "certificate %d of %s cannot be read",
                            sk_X509_num(list) + 1, what);
    if (sk_X509_num(list) == 0)
        return stw_fail(err, STW_ERR_INVALID, "%s holds no PEM certificate", what);
    return 0;
}

STACK_OF(X509) * stw_ssl_certs(const char *what, const char *pem, struct stw_error *err)
{
    stw_autobio BIO *bio = stw_ssl_open(what, pem, err);
    if (!bio)
        return NULL;
    stw_autocerts STACK_OF(X509) *list = sk_X509_new_null();
    if (!list) {
        (void)stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot read %s", what);
        return NULL;
    }
    return read_certs(what, bio, list, err) == 0 ? stw_take(list) : NULL;
}

X509 *stw_ssl_cert(const char *what, const char *pem, struct stw_error *err)
{
    stw_autobio BIO *bio = stw_ssl_open(what, pem, err);
    if (!bio)
        return NULL;
    X509 *cert = PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL);
    if (!cert && stw_ssl_at_end())
        (void)stw_fail(err, STW_ERR_INVALID, "%s holds no PEM certificate", what);
    else if (!cert)
        (void)stw_ssl_fail(err, STW_ERR_INVALID, "%s cannot be read", what);
    return cert;
}

EVP_PKEY *stw_ssl_key(const char *what, const char *pem, struct stw_error *err)
{
    stw_autobio BIO *bio = stw_ssl_open(what, pem, err);
    if (!bio)
        return NULL;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_pass_phrase, NULL);
    if (key)
        return key;
    if (strstr(pem, "ENCRYPTED")) {
        ERR_clear_error();
        (void)stw_fail(err, STW_ERR_INVALID, "%s is encrypted; an unencrypted key is needed", what);
    } else {
        (void)stw_ssl_fail(err, STW_ERR_INVALID, "%s holds no private key that can be read", what);
    }
    return NULL;
}

static char *bio_text(BIO *bio)
{
    char *data = NULL;
    long len = BIO_get_mem_data(bio, &data);
    return len > 0 ? strndup(data, (size_t)len) : NULL;
}

char *stw_ssl_cert_pem(X509 *cert)
{
    stw_autobio BIO *bio = BIO_new(BIO_s_mem());
    if (!bio || PEM_write_bio_X509(bio, cert) != 1)
        return NULL;
    return bio_text(bio);
}

/* A memory BIO wipes its content when it is freed, and when it grows. */
char *stw_ssl_key_pem(EVP_PKEY *key)
{
    stw_autobio BIO *bio = BIO_new(BIO_s_mem());
    if (!bio || PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return NULL;
    return bio_text(bio);
}

int stw_ssl_time(const ASN1_TIME *t, int64_t *ret_us)
{
    struct tm tm = {0};
    if (!t || ASN1_TIME_to_tm(t, &tm) != 1)
        return -1;
    *ret_us = (int64_t)timegm(&tm) * 1000000;
    return 0;
}
