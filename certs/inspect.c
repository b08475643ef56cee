/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and checks certificates in PEM form. */
#include "inspect_priv.h"

#include "base/clock.h"
#include "base/hex.h"
#include "base/util.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>

/* Accepts a pair made on a machine whose clock is ahead, or read after our clock has stepped back
 * by a day: the caller validates by its own clock, and a new pair would not help. */
#define SKEW_US ((int64_t)25 * 3600 * 1000000)

static int serial_text(const X509 *cert, char *out, size_t out_size)
{
    BIGNUM *bn = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
    char *text = bn ? BN_bn2hex(bn) : NULL;
    int rc = text ? stw_format_whole(out, out_size, "%s", text) : -1;
    OPENSSL_free(text);
    BN_free(bn);
    return rc;
}

int stw_x509_info(const X509 *cert, struct stw_cert_info *ret, struct stw_error *err)
{
    struct stw_cert_info info = {0};
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (stw_ssl_time(X509_get0_notBefore(cert), &info.not_before_us) != 0 ||
        stw_ssl_time(X509_get0_notAfter(cert), &info.not_after_us) != 0)
        return stw_ssl_fail(err, STW_ERR_INVALID, "the certificate's validity cannot be read");
    if (serial_text(cert, info.serial, sizeof(info.serial)) != 0 ||
        X509_digest(cert, EVP_sha256(), digest, &len) != 1 ||
        (size_t)len * 2 >= sizeof(info.fingerprint))
        return stw_ssl_fail(err, STW_ERR_INVALID, "the certificate's serial cannot be read");
    stw_hex_encode(digest, len, STW_HEX_LOWER, info.fingerprint);
    *ret = info;
    return 0;
}

int stw_cert_info(const char *cert_pem, struct stw_cert_info *ret, struct stw_error *err)
{
    stw_autox509 X509 *cert = stw_ssl_cert("the certificate", cert_pem, err);
    return cert ? stw_x509_info(cert, ret, err) : -1;
}

int stw_x509_check_times(const X509 *cert, int64_t now_us, struct stw_error *err)
{
    struct stw_cert_info info = {0};
    char when[STW_TIME_LEN];
    if (stw_x509_info(cert, &info, err) != 0)
        return -1;
    if (info.not_after_us <= now_us) {
        stw_time_format(info.not_after_us, when);
        return stw_fail(err, STW_ERR_INVALID, "the certificate expired at %s", when);
    }
    if (info.not_before_us > now_us + SKEW_US) {
        stw_time_format(info.not_before_us, when);
        return stw_fail(err, STW_ERR_INVALID, "the certificate is not valid before %s", when);
    }
    return 0;
}

int stw_x509_check_key(X509 *cert, const char *key_pem, struct stw_error *err)
{
    stw_autopkey EVP_PKEY *key = stw_ssl_key("the private key", key_pem, err);
    if (!key)
        return -1;
    if (X509_check_private_key(cert, key) == 1)
        return 0;
    ERR_clear_error();
    return stw_fail(err, STW_ERR_INVALID, "the private key does not belong to the certificate");
}

int stw_pair_check(const char *cert_pem, const char *key_pem, int64_t now_us, struct stw_error *err)
{
    stw_autocerts STACK_OF(X509) *chain = stw_ssl_certs("the certificate", cert_pem, err);
    if (!chain)
        return -1;
    X509 *cert = sk_X509_value(chain, 0);
    return stw_x509_check_key(cert, key_pem, err) != 0 ? -1
                                                       : stw_x509_check_times(cert, now_us, err);
}

bool stw_x509_is_ca(X509 *cert)
{
    bool ca = X509_check_ca(cert) == 1;
    ERR_clear_error();
    return ca;
}

int stw_ca_check(const char *cert_pem, int64_t now_us, struct stw_error *err)
{
    stw_autox509 X509 *cert = stw_ssl_cert("the CA certificate", cert_pem, err);
    if (!cert)
        return -1;
    if (!stw_x509_is_ca(cert))
        return stw_fail(err, STW_ERR_INVALID, "the certificate is not that of an authority");
    return stw_x509_check_times(cert, now_us, err);
}

static int check_block(unsigned place, const char *label, const unsigned char *der, long len,
                       struct stw_error *err)
{
    const unsigned char *at = der;
    if (strcmp(label, PEM_STRING_X509) != 0)
        return stw_fail(err, STW_ERR_INVALID, "block %u is a \"%.40s\", not a certificate", place,
                        label);
    if (place > STW_TRUST_MAX_CERTS)
        return stw_fail(err, STW_ERR_TOO_LARGE, "it holds more than %d certificates",
                        STW_TRUST_MAX_CERTS);
    stw_autox509 X509 *cert = d2i_X509(NULL, &at, len);
    if (!cert || at != der + len)
        return stw_ssl_fail(err, STW_ERR_INVALID, "certificate %u cannot be read", place);
    return 0;
}

int stw_bundle_check(const char *bundle_pem, struct stw_error *err)
{
    stw_autobio BIO *bio = stw_ssl_open("the bundle", bundle_pem, err);
    unsigned place = 0;
    int rc = bio ? 0 : -1;
    while (rc == 0) {
        char *label = NULL, *header = NULL;
        unsigned char *der = NULL;
        long len = 0;
        if (PEM_read_bio(bio, &label, &header, &der, &len) != 1)
            break;
        rc = check_block(++place, label, der, len, err);
        OPENSSL_free(label);
        OPENSSL_free(header);
        OPENSSL_clear_free(der, (size_t)len); /* it may be a key */
    }
    if (rc == 0 && !stw_ssl_at_end())
        rc = stw_ssl_fail(err, STW_ERR_INVALID, "block %u cannot be read", place + 1);
    if (rc == 0 && place == 0)
        rc = stw_fail(err, STW_ERR_INVALID, "it holds no PEM certificate");
    ERR_clear_error();
    return rc;
}

static bool covers_dns(X509 *cert, const char *name)
{
    return X509_check_host(cert, name, strlen(name), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) ==
           1;
}

bool stw_x509_covers(X509 *cert, const char *const *dns_names, const char *const *ip_addresses)
{
    bool all = true;
    for (; all && dns_names && *dns_names; dns_names++)
        all = covers_dns(cert, *dns_names);
    for (; all && ip_addresses && *ip_addresses; ip_addresses++)
        all = X509_check_ip_asc(cert, *ip_addresses, 0) == 1;
    ERR_clear_error();
    return all;
}

bool stw_cert_covers(const char *cert_pem, const char *const *dns_names,
                     const char *const *ip_addresses)
{
    stw_autox509 X509 *cert = stw_ssl_cert("the certificate", cert_pem, NULL);
    return cert && stw_x509_covers(cert, dns_names, ip_addresses);
}

bool stw_x509_signed_by(X509 *cert, X509 *ca)
{
    bool by =
        X509_check_issued(ca, cert) == X509_V_OK && X509_verify(cert, X509_get0_pubkey(ca)) == 1;
    ERR_clear_error();
    return by;
}

bool stw_cert_signed_by(const char *cert_pem, const char *ca_bundle_pem)
{
    stw_autox509 X509 *cert = stw_ssl_cert("the certificate", cert_pem, NULL);
    stw_autocerts STACK_OF(X509) *cas =
        cert ? stw_ssl_certs("the bundle", ca_bundle_pem, NULL) : NULL;
    bool found = false;
    for (int i = 0; cas && !found && i < sk_X509_num(cas); i++)
        found = stw_x509_signed_by(cert, sk_X509_value(cas, i));
    return found;
}
