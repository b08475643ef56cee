/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificate and key of the admin's login.  The client libraries read the files themselves, at each
 * login, and say little about what is wrong with them. */
#include "sql/target/certificate.h"

#include "base/util.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <time.h>

#define FILE_MAX_BYTES (64u << 10)

/* A key with a passphrase: OpenSSL would ask for it at a terminal. */
static int give_no_passphrase(char *buf, int size, int writes, void *ctx)
{
    (void)buf;
    (void)size;
    (void)writes;
    (void)ctx;
    return 0;
}

static X509 *read_certificate(const char *path, struct stw_error *err)
{
    stw_autofree char *text = NULL;
    size_t len;
    if (stw_read_file(path, FILE_MAX_BYTES, &text, &len, err) != 0)
        return NULL;
    BIO *bio = BIO_new_mem_buf(text, (int)len);
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    if (!cert)
        (void)stw_fail(err, STW_ERR_INVALID, "%s holds no certificate in PEM", path);
    return cert;
}

static EVP_PKEY *read_key(const char *path, struct stw_error *err)
{
    char *text = NULL;
    size_t len;
    if (stw_read_file(path, FILE_MAX_BYTES, &text, &len, err) != 0)
        return NULL;
    BIO *bio = BIO_new_mem_buf(text, (int)len);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, give_no_passphrase, NULL) : NULL;
    BIO_free(bio);
    stw_wipe_free(text);
    if (!key)
        (void)stw_fail(err, STW_ERR_INVALID, "%s holds no private key in PEM without a passphrase",
                       path);
    return key;
}

/* "2026-11-28T12:00:00Z"; "" on failure. */
static const char *put_time(const ASN1_TIME *t, char out[32])
{
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) != 1 || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        out[0] = '\0';
    return out;
}

static int check_times(const X509 *cert, const char *path, struct stw_error *err)
{
    char text[32];
    const ASN1_TIME *from = X509_get0_notBefore(cert), *until = X509_get0_notAfter(cert);
    if (X509_cmp_current_time(until) <= 0)
        return stw_fail(err, STW_ERR_INVALID, "%s expired at %s", path, put_time(until, text));
    if (X509_cmp_current_time(from) > 0)
        return stw_fail(err, STW_ERR_INVALID, "%s is not valid before %s", path,
                        put_time(from, text));
    return 0;
}

/* libpq's own rule, whose message does not reach the log. */
static int check_mode(const struct stw_target *t, struct stw_error *err)
{
    struct stat st;
    if (t->engine != STW_ENGINE_POSTGRESQL || stat(t->key_file, &st) != 0)
        return 0;
    mode_t refused = st.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
    if (!(st.st_mode & refused))
        return 0;
    return stw_fail(
        err, STW_ERR_INVALID,
        "%s has mode %04o, and libpq takes a key only with 0600 or less, or 0640 if root "
        "owns it",
        t->key_file, (unsigned)st.st_mode & 07777U);
}

/* To open a pipe waits for its other end, also in the client libraries.  What cannot be looked at is told by who
 * reads it. */
static int check_kind(const char *path, struct stw_error *err)
{
    struct stat st;
    if (!path || stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return 0;
    return stw_fail(err, STW_ERR_INVALID, "%s is not a regular file", path);
}

int stw_login_files_check(const struct stw_target *t, struct stw_error *err)
{
    const char *const paths[] = {t->password_file, t->certificate_file, t->key_file,
                                 t->tls_ca_file};
    for (size_t i = 0; i < STW_COUNT(paths); i++)
        if (check_kind(paths[i], err) != 0)
            return -1;
    return 0;
}

int stw_certificate_check(const struct stw_target *t, struct stw_error *err)
{
    if (!t->certificate_file)
        return 0;
    X509 *cert = read_certificate(t->certificate_file, err);
    EVP_PKEY *key = cert ? read_key(t->key_file, err) : NULL;
    int r = -1;
    if (cert && key && X509_check_private_key(cert, key) != 1)
        (void)stw_fail(err, STW_ERR_INVALID, "%s is not the key of %s", t->key_file,
                       t->certificate_file);
    else if (cert && key)
        r = check_times(cert, t->certificate_file, err) != 0 ? -1 : check_mode(t, err);
    EVP_PKEY_free(key);
    X509_free(cert);
    ERR_clear_error();
    return r == 0 ? 0 : stw_error_wrap(err, "the admin's certificate");
}
