/* SPDX-License-Identifier: Apache-2.0
 *
 * Issued certificates, verified by OpenSSL as the API server's TLS client would, and broken
 * ones. */
#include "certs/issue.h"

#include "base/util.h"
#include "certs/ssl_priv.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define DAY ((int64_t)86400 * 1000000)
#define HOUR ((int64_t)3600 * 1000000)
#define NOW ((int64_t)1700000000 * 1000000)

static const char *const dns[] = {"steward.ns.svc", "steward.ns.svc.cluster.local", NULL};
static const char *const ips[] = {"127.0.0.1", "::1", NULL};
static const char *const none[] = {NULL};

static struct stw_pem_pair ca, other_ca, leaf;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(stw_issue_ca("one", NOW, 3650, &ca, NULL), 0);
    assert_int_equal(stw_issue_ca("one", NOW, 3650, &other_ca, NULL), 0);
    assert_int_equal(stw_issue_leaf(&ca, dns, ips, NOW, 90, &leaf, NULL), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stw_pem_pair_done(&ca);
    stw_pem_pair_done(&other_ca);
    stw_pem_pair_done(&leaf);
    return 0;
}

/* Verifies like a TLS client: chain, purpose, name, time. */
static int verify(const char *leaf_pem, const char *root_pem, const char *host, const char *ip,
                  int64_t now_us)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    stw_autox509 X509 *cert = stw_ssl_cert("leaf", leaf_pem, NULL);
    stw_autox509 X509 *root = stw_ssl_cert("root", root_pem, NULL);
    assert_non_null(cert);
    assert_int_equal(X509_STORE_add_cert(store, root), 1);
    assert_int_equal(X509_STORE_CTX_init(ctx, store, cert, NULL), 1);
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    (void)X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
    (void)X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set_time(param, (time_t)(now_us / 1000000));
    if (host)
        (void)X509_VERIFY_PARAM_set1_host(param, host, 0);
    if (ip)
        (void)X509_VERIFY_PARAM_set1_ip_asc(param, ip);
    int rc = X509_verify_cert(ctx) == 1 ? 0 : X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    ERR_clear_error();
    return rc;
}

static void test_issued_certificate_verifies(void **state)
{
    (void)state;
    static const struct {
        const char *host, *ip;
        int64_t after;
        int want;
    } rows[] = {
        {"steward.ns.svc", NULL, 0, X509_V_OK},
        {"steward.ns.svc.cluster.local", NULL, 0, X509_V_OK},
        {NULL, "127.0.0.1", 0, X509_V_OK},
        {NULL, "::1", 0, X509_V_OK},
        {"other.ns.svc", NULL, 0, X509_V_ERR_HOSTNAME_MISMATCH},
        {NULL, "127.0.0.2", 0, X509_V_ERR_IP_ADDRESS_MISMATCH},
        /* a client whose clock is slow */
        {"steward.ns.svc", NULL, -25 * HOUR, X509_V_OK},
        {"steward.ns.svc", NULL, -26 * HOUR, X509_V_ERR_CERT_NOT_YET_VALID},
        {"steward.ns.svc", NULL, 89 * DAY, X509_V_OK},
        {"steward.ns.svc", NULL, 91 * DAY, X509_V_ERR_CERT_HAS_EXPIRED},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++)
        assert_int_equal(verify(leaf.cert, ca.cert, rows[i].host, rows[i].ip, NOW + rows[i].after),
                         rows[i].want);
    assert_int_not_equal(verify(leaf.cert, other_ca.cert, dns[0], NULL, NOW), X509_V_OK);
}

/* pathlen 0: a certificate signed by a leaf is not trusted. */
static void test_leaf_certificate_signs_nothing(void **state)
{
    (void)state;
    stw_autox509 X509 *cert = stw_ssl_cert("leaf", leaf.cert, NULL);
    stw_autox509 X509 *root = stw_ssl_cert("ca", ca.cert, NULL);
    assert_int_equal(X509_check_ca(cert), 0);
    assert_int_equal(X509_check_ca(root), 1);
    assert_int_equal(X509_get_pathlen(root), 0);
    assert_int_equal(X509_get_key_usage(root),
                     KU_KEY_CERT_SIGN | KU_CRL_SIGN | KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_get_key_usage(cert), KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_SERVER);
    assert_non_null(X509_get0_subject_key_id(cert));
    assert_non_null(X509_get0_authority_key_id(cert));
    assert_int_equal(X509_get_signature_nid(cert), NID_ecdsa_with_SHA256);
}

/* An etcd with users rejects calls through its gateway if the certificate has a common name. */
static void test_client_certificate_has_no_common_name(void **state)
{
    struct stw_pem_pair both = {0};
    int critical = 0;
    (void)state;
    assert_int_equal(stw_issue_both(&ca, dns, ips, NOW, 90, &both, NULL), 0);
    stw_autox509 X509 *cert = stw_ssl_cert("leaf", both.cert, NULL);
    stw_autox509 X509 *named = stw_ssl_cert("leaf", leaf.cert, NULL);
    assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(cert)), 0);
    assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(named)), 1);
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, &critical, NULL);
    assert_non_null(names);
    assert_int_equal(critical, 1);
    GENERAL_NAMES_free(names);
    assert_int_equal(verify(both.cert, ca.cert, dns[0], NULL, NOW), X509_V_OK);
    stw_pem_pair_done(&both);
}

static void test_certificate_info_is_read(void **state)
{
    (void)state;
    struct stw_cert_info a, b;
    assert_int_equal(stw_cert_info(leaf.cert, &a, NULL), 0);
    assert_int_equal(a.not_before_us, NOW - 25 * HOUR);
    assert_int_equal(a.not_after_us, NOW + 90 * DAY);
    assert_int_equal(strlen(a.fingerprint), 64);
    assert_in_range(strlen(a.serial), 24, 32); /* 128 bits, without leading zeros */
    struct stw_pem_pair again = {0};
    assert_int_equal(stw_issue_leaf(&ca, dns, ips, NOW, 90, &again, NULL), 0);
    assert_int_equal(stw_cert_info(again.cert, &b, NULL), 0);
    assert_string_not_equal(a.serial, b.serial);
    assert_string_not_equal(a.fingerprint, b.fingerprint);
    stw_pem_pair_done(&again);
}

static void test_certificate_does_not_outlive_its_ca(void **state)
{
    (void)state;
    struct stw_pem_pair p = {0};
    struct stw_cert_info info;
    struct stw_error err = {0};
    assert_int_equal(stw_issue_leaf(&ca, dns, none, NOW + 3600 * DAY, 90, &p, NULL), 0);
    assert_int_equal(stw_cert_info(p.cert, &info, NULL), 0);
    assert_int_equal(info.not_after_us, NOW + 3650 * DAY);
    stw_pem_pair_done(&p);
    assert_int_equal(stw_issue_leaf(&ca, dns, none, NOW + 3650 * DAY, 90, &p, &err), -1);
    assert_non_null(strstr(err.text, "expired"));
    assert_null(p.cert);
}

static void test_invalid_names_are_refused(void **state)
{
    (void)state;
    static const char *const bad_dns[] = {"a b", NULL}, *const empty_dns[] = {"", NULL};
    static const char *const bad_ip[] = {"300.1.1.1", NULL};
    char long_name[300];
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    const char *const long_dns[] = {long_name, NULL};
    const struct stw_pem_pair mixed = {ca.cert, other_ca.key},
                              junk = {(char *)(uintptr_t) "x", ca.key};
    const struct {
        const struct stw_pem_pair *ca;
        const char *const *dns, *const *ips;
        uint32_t days;
        const char *text;
    } rows[] = {
        {&ca, none, none, 90, "at least one DNS name"},
        {&ca, NULL, NULL, 90, "at least one DNS name"},
        {&ca, bad_dns, none, 90, "\"a b\" is not a DNS name"},
        {&ca, empty_dns, none, 90, "is not a DNS name"},
        {&ca, long_dns, none, 90, "is not a DNS name"},
        {&ca, none, bad_ip, 90, "\"300.1.1.1\" is not an IP address"},
        {&ca, dns, none, 0, "cannot be valid for 0 days"},
        {&ca, dns, none, 4000000, "cannot be valid"},
        {&mixed, dns, none, 90, "does not match the CA certificate"},
        {&junk, dns, none, 90, "holds no PEM certificate"},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_pem_pair p = {0};
        struct stw_error err = {0};
        assert_int_equal(
            stw_issue_leaf(rows[i].ca, rows[i].dns, rows[i].ips, NOW, rows[i].days, &p, &err), -1);
        if (!strstr(err.text, rows[i].text))
            fail_msg("row %zu: %s", i, err.text);
        assert_null(p.key);
        assert_null(strstr(err.text, "PRIVATE"));
    }
}

static void test_long_first_name_is_issued(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a-very-long-service-name-that-somebody-chose.in-a-namespace-with-a-long-name.svc", NULL};
    struct stw_pem_pair p = {0};
    assert_int_equal(stw_issue_leaf(&ca, names, none, NOW, 90, &p, NULL), 0);
    assert_int_equal(verify(p.cert, ca.cert, names[0], NULL, NOW), X509_V_OK);
    stw_pem_pair_done(&p);
}

/* A key with a pass phrase must be refused, without a prompt on the terminal. */
static const char encrypted[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
                                "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAi3oc5jsSnfzwICCAAw\n"
                                "-----END ENCRYPTED PRIVATE KEY-----\n";

static void test_certificate_and_key_must_match(void **state)
{
    (void)state;
    char *cut = strdup(leaf.cert), *chain = NULL, *broken_chain = NULL;
    cut[strlen(cut) / 2] = '\0';
    assert_true(asprintf(&chain, "%s%s", leaf.cert, ca.cert) > 0);
    assert_true(asprintf(&broken_chain,
                         "%s-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                         leaf.cert) > 0);
    const struct {
        const char *cert, *key;
        int64_t after;
        const char *text; /* NULL: valid */
    } rows[] = {
        {leaf.cert, leaf.key, 0, NULL},
        {chain, leaf.key, 0, NULL},
        {leaf.cert, leaf.key, -49 * HOUR, NULL}, /* a clock that stepped back by a day */
        {leaf.cert, leaf.key, 90 * DAY - 1, NULL},
        {leaf.cert, leaf.key, 90 * DAY, "expired at 2024-02-12"},
        {leaf.cert, leaf.key, -51 * HOUR, "not valid before 2023-11-13T21:13:20Z"},
        {leaf.cert, ca.key, 0, "does not belong to the certificate"},
        {ca.cert, leaf.key, 0, "does not belong to the certificate"},
        {broken_chain, leaf.key, 0, "certificate 2 of the certificate cannot be read"},
        {cut, leaf.key, 0, "cannot be read"},
        {"", leaf.key, 0, "is empty"},
        {"hello", leaf.key, 0, "holds no PEM certificate"},
        {leaf.key, leaf.cert, 0, "holds no PEM certificate"},
        {leaf.cert, "", 0, "is empty"},
        {leaf.cert, leaf.cert, 0, "no private key"},
        {leaf.cert, encrypted, 0, "is encrypted"},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {0};
        int rc = stw_pair_check(rows[i].cert, rows[i].key, NOW + rows[i].after, &err);
        assert_int_equal(rc, rows[i].text ? -1 : 0);
        if (rows[i].text && !strstr(err.text, rows[i].text))
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(ERR_peek_error(), 0);
    }
    free(cut);
    free(chain);
    free(broken_chain);
}

static char *repeat(const char *text, size_t count)
{
    size_t len = strlen(text);
    char *out = malloc(len * count + 1);
    assert_non_null(out);
    for (size_t i = 0; i < count; i++)
        memcpy(out + i * len, text, len);
    out[len * count] = '\0';
    return out;
}

static void test_too_many_certificates_are_refused(void **state)
{
    (void)state;
    struct stw_error err = {0};
    stw_autofree char *many = repeat(ca.cert, STW_PEM_MAX_CERTS + 1);
    assert_int_equal(stw_pair_check(many, ca.key, NOW, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    stw_autofree char *big = repeat("\n", STW_PEM_MAX_BYTES + 1);
    assert_int_equal(stw_pair_check(big, ca.key, NOW, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
}

static void test_certificate_covers_its_names(void **state)
{
    (void)state;
    static const char *const part[] = {"steward.ns.svc", NULL}, *const more[] = {"x.ns.svc", NULL};
    static const char *const more_ip[] = {"10.0.0.1", NULL}, *const name_as_ip[] = {"x", NULL};
    assert_true(stw_cert_covers(leaf.cert, dns, ips));
    assert_true(stw_cert_covers(leaf.cert, part, NULL));
    assert_true(stw_cert_covers(leaf.cert, NULL, NULL));
    assert_false(stw_cert_covers(leaf.cert, more, NULL));
    assert_false(stw_cert_covers(leaf.cert, part, more_ip));
    assert_false(stw_cert_covers(leaf.cert, part, name_as_ip));
    assert_false(stw_cert_covers("garbage", part, NULL));
}

static void test_signer_is_found_in_a_bundle(void **state)
{
    (void)state;
    char *both = NULL, *reversed = NULL;
    assert_true(asprintf(&both, "%s%s", ca.cert, other_ca.cert) > 0);
    assert_true(asprintf(&reversed, "%s\njunk\n%s", other_ca.cert, ca.cert) > 0);
    assert_true(stw_cert_signed_by(leaf.cert, ca.cert));
    assert_true(stw_cert_signed_by(leaf.cert, both));
    assert_true(stw_cert_signed_by(leaf.cert, reversed));
    /* the same subject, another key */
    assert_false(stw_cert_signed_by(leaf.cert, other_ca.cert));
    assert_false(stw_cert_signed_by(leaf.cert, leaf.cert));
    assert_false(stw_cert_signed_by(leaf.cert, ""));
    assert_false(stw_cert_signed_by("", ca.cert));
    free(both);
    free(reversed);
}

static void test_bundle_holds_only_certificates(void **state)
{
    (void)state;
    char *two = NULL, *with_key = NULL, *broken = NULL, *not_der = NULL, *more = NULL, *cut = NULL;
    static const char block[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    stw_autofree char *most = repeat(ca.cert, STW_TRUST_MAX_CERTS);
    stw_autofree char *too_many = repeat(ca.cert, STW_TRUST_MAX_CERTS + 1);
    assert_true(asprintf(&two, "# the old one\n%s\n# the new one\n%s", ca.cert, other_ca.cert) > 0);
    assert_true(asprintf(&with_key, "%s%s", ca.cert, ca.key) > 0);
    assert_true(asprintf(&broken, "%s-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
                         ca.cert) > 0);
    assert_true(asprintf(&not_der, "%s%s", ca.cert, block) > 0);
    assert_true(asprintf(&cut, "%s%.100s", ca.cert, other_ca.cert) > 0);
    assert_true(asprintf(&more, "%s-----BEGIN TRUSTED CERTIFICATE-----%s", ca.cert,
                         ca.cert + strlen("-----BEGIN CERTIFICATE-----")) > 0);
    const struct {
        const char *bundle, *text; /* NULL: it is taken */
        enum stw_err code;
    } rows[] = {
        {ca.cert, NULL, STW_OK},
        {two, NULL, STW_OK},
        {most, NULL, STW_OK},
        {"", "is empty", STW_ERR_INVALID},
        {"hello", "it holds no PEM certificate", STW_ERR_INVALID},
        {ca.key, "block 1 is a \"PRIVATE KEY\", not a certificate", STW_ERR_INVALID},
        {with_key, "block 2 is a \"PRIVATE KEY\", not a certificate", STW_ERR_INVALID},
        {broken, "block 2 cannot be read: ", STW_ERR_INVALID},
        {not_der, "certificate 2 cannot be read: ", STW_ERR_INVALID},
        {cut, "block 2 cannot be read: ", STW_ERR_INVALID},
        {more, "block 2 cannot be read: ", STW_ERR_INVALID},
        {too_many, "it holds more than 256 certificates", STW_ERR_TOO_LARGE},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {0};
        assert_int_equal(stw_bundle_check(rows[i].bundle, &err), rows[i].text ? -1 : 0);
        if (rows[i].text && !strstr(err.text, rows[i].text))
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(err.code, rows[i].code);
        assert_null(strstr(err.text, "MIG")); /* how each key in base64 begins */
        assert_int_equal(ERR_peek_error(), 0);
    }
    free(two);
    free(with_key);
    free(broken);
    free(not_der);
    free(more);
    free(cut);
}

static void test_ca_certificate_is_checked(void **state)
{
    (void)state;
    struct stw_error err = {0};
    assert_int_equal(stw_ca_check(ca.cert, NOW, &err), 0);
    assert_int_equal(stw_ca_check(leaf.cert, NOW, &err), -1);
    assert_non_null(strstr(err.text, "authority"));
    assert_int_equal(stw_ca_check(ca.cert, NOW + 3650 * DAY, &err), -1);
    assert_int_equal(stw_ca_check("x", NOW, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_issued_certificate_verifies),
        cmocka_unit_test(test_leaf_certificate_signs_nothing),
        cmocka_unit_test(test_client_certificate_has_no_common_name),
        cmocka_unit_test(test_certificate_info_is_read),
        cmocka_unit_test(test_certificate_does_not_outlive_its_ca),
        cmocka_unit_test(test_invalid_names_are_refused),
        cmocka_unit_test(test_long_first_name_is_issued),
        cmocka_unit_test(test_certificate_and_key_must_match),
        cmocka_unit_test(test_too_many_certificates_are_refused),
        cmocka_unit_test(test_certificate_covers_its_names),
        cmocka_unit_test(test_signer_is_found_in_a_bundle),
        cmocka_unit_test(test_bundle_holds_only_certificates),
        cmocka_unit_test(test_ca_certificate_is_checked),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
