/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/bundle_priv.h"

#include "base/util.h"
#include "pki.h"

static void test_valid_certificate_pair_is_loaded(void **state)
{
    int64_t now = stw_wall_us(&stw_clock_system);
    struct stw_pem_pair pair = make_pair(now, 30);
    struct stw_bundle *b = NULL;
    struct stw_error err = {0};
    gnutls_pcert_st *chain = NULL;
    gnutls_ocsp_data_st *ocsp = NULL;
    gnutls_privkey_t key = NULL;
    unsigned count = 0, ocsp_count = 9, flags = 9;
    (void)state;
    assert_int_equal(stw_bundle_load(pair.cert, pair.key, now, &b, &err), 0);
    assert_int_equal(stw_bundle_retrieve(b, &chain, &count, &ocsp, &ocsp_count, &key, &flags), 0);
    assert_non_null(chain);
    assert_non_null(key);
    assert_int_equal(count, 1);
    assert_int_equal(ocsp_count, 0);
    assert_int_equal(flags, 0); /* GnuTLS must not free what the bundle owns */
    stw_bundle_unref(stw_bundle_ref(b));
    stw_bundle_unref(b);
    stw_pem_pair_done(&pair);
}

static void assert_refused(const char *cert, const char *key, int64_t now, const char *words)
{
    struct stw_bundle *b = NULL;
    struct stw_error err = {0};
    assert_int_equal(stw_bundle_load(cert, key, now, &b, &err), -1);
    assert_null(b);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void test_broken_certificate_pairs_are_refused(void **state)
{
    int64_t now = stw_wall_us(&stw_clock_system);
    struct stw_pem_pair one = make_pair(now, 30), two = make_pair(now, 30);
    struct stw_pem_pair old = make_pair(now - 40 * DAY_US, 30);
    (void)state;
    assert_refused("", one.key, now, "not a PEM chain");
    assert_refused("nonsense", one.key, now, "not a PEM chain");
    assert_refused(one.cert, "", now, "private key cannot be used");
    assert_refused(one.cert, "nonsense", now, "private key cannot be used");
    assert_refused(one.cert, two.key, now, "does not belong");
    assert_refused(old.cert, old.key, now, "has expired");
    assert_refused(one.cert, one.key, now + 31 * DAY_US, "has expired");
    one.cert[strlen(one.cert) / 2] ^= 1; /* within the base64 */
    assert_refused(one.cert, one.key, now, "");
    stw_pem_pair_done(&one);
    stw_pem_pair_done(&two);
    stw_pem_pair_done(&old);
    stw_bundle_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_certificate_pair_is_loaded),
        cmocka_unit_test(test_broken_certificate_pairs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
