/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates the CA and the leaves: P-256, ECDSA with SHA-256, the extensions that Go's verifier (the
 * API server) requires. */
#include "certs/issue.h"

#include "base/process/fault.h"
#include "base/util.h"
#include "ssl_priv.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/rand.h>
#include <stdio.h>

#define SERIAL_BITS 128
/* Backdated for machines whose clock lags ours, also after ours has stepped by a day. */
#define BACKDATE_S (25 * 3600)
#define DAYS_MAX 36525
#define CN_MAX 64 /* RFC 5280, ub-common-name */

struct extension {
    int nid;
    const char *value; /* in the syntax of openssl.cnf(5) */
};

/* The subject key identifier is first: the authority key identifier of a self-signed certificate is
 * read from it. */
static const struct extension ca_extensions[] = {
    {NID_subject_key_identifier, "hash"},
    {NID_authority_key_identifier, "keyid:always"},
    {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
    {NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature"},
    {0, NULL},
};
static const struct extension leaf_extensions[] = {
    {NID_subject_key_identifier, "hash"},
    {NID_authority_key_identifier, "keyid:always"},
    {NID_basic_constraints, "critical,CA:FALSE"},
    {NID_key_usage, "critical,digitalSignature"},
    {NID_ext_key_usage, "serverAuth"},
    {0, NULL},
};
/* An etcd member connects to the others with its serving certificate, and its JSON gateway to the
 * member itself. */
static const struct extension both_extensions[] = {
    {NID_subject_key_identifier, "hash"},         {NID_authority_key_identifier, "keyid:always"},
    {NID_basic_constraints, "critical,CA:FALSE"}, {NID_key_usage, "critical,digitalSignature"},
    {NID_ext_key_usage, "serverAuth,clientAuth"}, {0, NULL},
};

void stw_pem_pair_done(struct stw_pem_pair *p)
{
    stw_wipe_free(p->key);
    free(p->cert);
    p->key = p->cert = NULL;
}

static int set_serial(X509 *cert)
{
    BIGNUM *bn = BN_new();
    int ok = bn && BN_rand(bn, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
             BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert));
    BN_free(bn);
    return ok ? 0 : -1;
}

static int set_times(X509 *cert, int64_t from_s, int64_t to_s)
{
    return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)from_s) &&
                   ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)to_s)
               ? 0
               : -1;
}

static int set_subject(X509 *cert, const char *common_name)
{
    const unsigned char *text = (const unsigned char *)common_name;
    return X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8, text, -1,
                                      -1, 0) == 1
               ? 0
               : -1;
}

static int add_extensions(X509 *cert, X509 *issuer, const struct extension *list)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    for (; list->value; list++) {
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, list->nid, list->value);
        int ok = e && X509_add_ext(cert, e, -1) == 1;
        X509_EXTENSION_free(e);
        if (!ok)
            return -1;
    }
    return 0;
}

/* A certificate without alternative names, issuer and signature; common_name may be NULL. */
static X509 *new_cert(const char *common_name, int64_t from_s, int64_t to_s, EVP_PKEY *key)
{
    stw_autox509 X509 *cert = X509_new();
    if (!cert || X509_set_version(cert, X509_VERSION_3) != 1 || set_serial(cert) < 0 ||
        set_times(cert, from_s, to_s) < 0 || (common_name && set_subject(cert, common_name) < 0) ||
        X509_set_pubkey(cert, key) != 1)
        return NULL;
    return stw_take(cert);
}

static int sign_cert(X509 *cert, X509 *issuer, EVP_PKEY *issuer_key, const struct extension *list)
{
    return X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
                   add_extensions(cert, issuer, list) == 0 &&
                   X509_sign(cert, issuer_key, EVP_sha256()) > 0
               ? 0
               : -1;
}

static int to_pem(X509 *cert, EVP_PKEY *key, struct stw_pem_pair *ret, struct stw_error *err)
{
    struct stw_pem_pair p = {.cert = stw_ssl_cert_pem(cert), .key = stw_ssl_key_pem(key)};
    if (!p.cert || !p.key) {
        stw_pem_pair_done(&p);
        return stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot write a certificate as PEM");
    }
    *ret = p;
    return 0;
}

static int check_days(uint32_t days, struct stw_error *err)
{
    if (days == 0 || days > DAYS_MAX)
        return stw_fail(err, STW_ERR_INVALID,
                        "a certificate cannot be valid for %u days; give 1 to %d", days, DAYS_MAX);
    return 0;
}

int stw_issue_ca(const char *common_name, int64_t now_us, uint32_t days, struct stw_pem_pair *ret,
                 struct stw_error *err)
{
    int64_t now_s = now_us / 1000000;
    if (check_days(days, err) < 0)
        return -1;
    stw_ssl_init();
    stw_autopkey EVP_PKEY *key = EVP_EC_gen("P-256");
    stw_autox509 X509 *cert =
        key ? new_cert(common_name, now_s - BACKDATE_S, now_s + (int64_t)days * stw_day_s(), key)
            : NULL;
    if (!cert || sign_cert(cert, cert, key, ca_extensions) < 0)
        return stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot make the certificate authority \"%s\"",
                            common_name);
    return to_pem(cert, key, ret, err);
}

/* Takes ownership of `value`. */
static int push_name(GENERAL_NAMES *names, int type, void *value)
{
    GENERAL_NAME *n = GENERAL_NAME_new();
    if (n && value) {
        GENERAL_NAME_set0_value(n, type, value);
        if (sk_GENERAL_NAME_push(names, n) > 0)
            return 0;
    } else {
        ASN1_STRING_free(value);
    }
    GENERAL_NAME_free(n);
    return -1;
}

static int add_dns(GENERAL_NAMES *names, const char *name, struct stw_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._*";
    size_t len = strlen(name);
    if (len == 0 || len > 253 || strspn(name, allowed) != len)
        return stw_fail(err, STW_ERR_INVALID, "\"%s\" is not a DNS name for a certificate", name);
    ASN1_IA5STRING *s = ASN1_IA5STRING_new();
    if (s && ASN1_STRING_set(s, name, (int)len) != 1) {
        ASN1_STRING_free(s);
        s = NULL;
    }
    if (push_name(names, GEN_DNS, s) < 0)
        return stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot put \"%s\" into a certificate", name);
    return 0;
}

static int add_ip(GENERAL_NAMES *names, const char *address, struct stw_error *err)
{
    ASN1_OCTET_STRING *s = a2i_IPADDRESS(address);
    if (!s)
        return stw_ssl_fail(err, STW_ERR_INVALID, "\"%s\" is not an IP address for a certificate",
                            address);
    if (push_name(names, GEN_IPADD, s) < 0)
        return stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot put \"%s\" into a certificate", address);
    return 0;
}

static int add_names(X509 *cert, const char *const *dns, const char *const *ips,
                     struct stw_error *err)
{
    stw_autonames GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    if (!names)
        return stw_ssl_fail(err, STW_ERR_INTERNAL, "out of memory");
    for (; dns && *dns; dns++)
        if (add_dns(names, *dns, err) < 0)
            return -1;
    for (; ips && *ips; ips++)
        if (add_ip(names, *ips, err) < 0)
            return -1;
    if (sk_GENERAL_NAME_num(names) == 0)
        return stw_fail(err, STW_ERR_INVALID,
                        "a serving certificate needs at least one DNS name or IP address");
    /* Critical when nothing else names the subject (RFC 5280, 4.2.1.6). */
    int alone = X509_NAME_entry_count(X509_get_subject_name(cert)) == 0;
    if (X509_add1_ext_i2d(cert, NID_subject_alt_name, names, alone, X509V3_ADD_DEFAULT) != 1)
        return stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot put names into a certificate");
    return 0;
}

/* Verifiers use the alternative names; the common name is only for display and has a lower length
 * limit.  A certificate for clients has none: an etcd with authentication would take it as a user
 * name. */
static const char *leaf_name(const char *const *dns, const struct extension *list)
{
    if (list == both_extensions)
        return NULL;
    return dns && *dns && **dns && strlen(*dns) <= CN_MAX ? *dns : "server";
}

/* Never after the end of its issuer: a chain that outlives its root is refused anyway. */
static int leaf_end(X509 *ca, int64_t now_s, uint32_t days, int64_t *ret_s, struct stw_error *err)
{
    int64_t ca_end_us = 0;
    if (stw_ssl_time(X509_get0_notAfter(ca), &ca_end_us) < 0)
        return stw_ssl_fail(err, STW_ERR_INVALID, "the end of the CA's life cannot be read");
    if (ca_end_us / 1000000 <= now_s)
        return stw_fail(err, STW_ERR_INVALID, "the CA has expired and can sign nothing more");
    *ret_s = STW_MIN(now_s + (int64_t)days * stw_day_s(), ca_end_us / 1000000);
    return 0;
}

struct leaf {
    const char *const *dns, *const *ips;
    const struct extension *list;
    int64_t now_s;
    uint32_t days;
};

static int sign_leaf(X509 *ca, EVP_PKEY *ca_key, const struct leaf *l, int64_t end_s,
                     struct stw_pem_pair *ret, struct stw_error *err)
{
    stw_autopkey EVP_PKEY *key = EVP_EC_gen("P-256");
    stw_autox509 X509 *cert =
        key ? new_cert(leaf_name(l->dns, l->list), l->now_s - BACKDATE_S, end_s, key) : NULL;
    if (!cert)
        return stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot make a serving certificate");
    if (add_names(cert, l->dns, l->ips, err) < 0)
        return -1;
    if (sign_cert(cert, ca, ca_key, l->list) < 0)
        return stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot sign the serving certificate");
    return to_pem(cert, key, ret, err);
}

static int issue_leaf_from_ca(const struct stw_pem_pair *ca, const struct leaf *l,
                              struct stw_pem_pair *ret, struct stw_error *err)
{
    int64_t end_s = 0;
    if (check_days(l->days, err) < 0)
        return -1;
    stw_autox509 X509 *ca_cert = stw_ssl_cert("the CA certificate", ca->cert, err);
    if (!ca_cert)
        return -1;
    stw_autopkey EVP_PKEY *ca_key = stw_ssl_key("the CA key", ca->key, err);
    if (!ca_key)
        return -1;
    if (X509_check_private_key(ca_cert, ca_key) != 1)
        return stw_ssl_fail(err, STW_ERR_INVALID, "the CA key does not match the CA certificate");
    if (leaf_end(ca_cert, l->now_s, l->days, &end_s, err) < 0)
        return -1;
    return sign_leaf(ca_cert, ca_key, l, end_s, ret, err);
}

int stw_issue_leaf(const struct stw_pem_pair *ca, const char *const *dns_names,
                   const char *const *ip_addresses, int64_t now_us, uint32_t days,
                   struct stw_pem_pair *ret, struct stw_error *err)
{
    const struct leaf l = {dns_names, ip_addresses, leaf_extensions, now_us / 1000000, days};
    return issue_leaf_from_ca(ca, &l, ret, err);
}

int stw_issue_both(const struct stw_pem_pair *ca, const char *const *dns_names,
                   const char *const *ip_addresses, int64_t now_us, uint32_t days,
                   struct stw_pem_pair *ret, struct stw_error *err)
{
    const struct leaf l = {dns_names, ip_addresses, both_extensions, now_us / 1000000, days};
    return issue_leaf_from_ca(ca, &l, ret, err);
}
