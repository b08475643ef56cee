/* SPDX-License-Identifier: Apache-2.0
 *
 * Which keys of a Secret have a certificate, and what is said of one without them. */
#include "kinds/common/certificate.h"

#include "base/base64.h"
#include "base/util.h"
#include "certs/issue.h"
#include "kube/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ^ stands for a certificate. */
#define OWN "'peer.crt':'^','peer.key':'Yg==','peer-ca.crt':'^'" /* b */
#define COMMON "'tls.crt':'^','tls.key':'eQ==','ca.crt':'^'"     /* y */

static struct stw_pem_pair made;
static struct stw_buf made64 = STW_BUF_INIT(8192);

static int make_certificate(void **state)
{
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_issue_ca("test", stw_wall_us(&stw_clock_system), 1, &made, &err), 0);
    stw_base64_encode(made.cert, strlen(made.cert), &made64);
    return 0;
}

static int free_certificate(void **state)
{
    (void)state;
    stw_pem_pair_done(&made);
    stw_buf_done(&made64);
    return 0;
}

static int read_data(const char *data, struct stw_certificate *ret, struct stw_error *err)
{
    stw_autosecret struct stw_secret s = {.text = STW_BUF_INIT(4u << 20)};
    stw_buf_adds(&s.text, "{\"data\":{");
    for (const char *p = data; *p; p++)
        if (*p == '^')
            stw_buf_adds(&s.text, stw_buf_str(&made64));
        else
            stw_buf_addc(&s.text, *p == '\'' ? '"' : *p);
    stw_buf_adds(&s.text, "}}");
    assert_int_equal(stw_json_scan(&s.doc, stw_buf_str(&s.text), s.text.len, NULL), 0);
    return stw_certificate_read(&s, "tls", "peer", ret, err);
}

static void test_complete_certificate_secrets_are_read(void **state)
{
    static const struct {
        const char *data, *key;
    } cases[] = {
        {OWN, "b"},
        {COMMON, "y"},
        {OWN "," COMMON, "b"}, /* as before the other keys came */
        {"'peer.crt':'YQ=='," COMMON, "y"},
        {"'peer.crt':'','peer.key':'','peer-ca.crt':''," COMMON, "y"},
        {OWN ",'tls.crt':'eA=='", "b"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_certificate c;
        struct stw_error err = {0};
        assert_int_equal(read_data(cases[i].data, &c, &err), 0);
        assert_string_equal(c.cert, made.cert);
        assert_string_equal(c.key, cases[i].key);
        assert_string_equal(c.ca, made.cert);
        assert_int_equal(c.common, *c.key == 'y');
        stw_certificate_done(&c);
    }
}

static void test_missing_keys_are_named(void **state)
{
    static const struct {
        const char *data, *said;
        enum stw_err code;
    } cases[] = {
        {"'other':'YQ=='",
         "Secret \"tls\" needs peer.crt, peer.key and peer-ca.crt, or tls.crt, tls.key and ca.crt",
         STW_ERR_NOT_FOUND},
        {"'peer.crt':'YQ=='", "Secret \"tls\" has peer.crt, but lacks peer.key and peer-ca.crt",
         STW_ERR_NOT_FOUND},
        {"'tls.crt':'YQ==','tls.key':'YQ==','ca.crt':''",
         "Secret \"tls\" has tls.crt and tls.key, but lacks ca.crt", STW_ERR_NOT_FOUND},
        {"'tls.crt':'YQ==','tls.key':7", "Secret \"tls\" has tls.crt, but lacks tls.key and ca.crt",
         STW_ERR_NOT_FOUND},
        {"'peer.crt':'YQ==','peer.key':'YQ==','ca.crt':'YQ=='",
         "Secret \"tls\" has peer.crt, peer.key and ca.crt, but lacks peer-ca.crt, or tls.crt and "
         "tls.key",
         STW_ERR_NOT_FOUND},
        {"'tls.crt':'YQ==','tls.key':'YQ==','ca.crt':'YQBi'",
         "ca.crt of Secret \"tls\" has a NUL byte, after which programs disagree on what it is",
         STW_ERR_INVALID},
        {"'tls.crt':'YQ==','tls.key':'YQ==','ca.crt':'!'",
         "ca.crt of Secret \"tls\" cannot be decoded", STW_ERR_INVALID},
        {"'tls.crt':'^','tls.key':'YQ==','ca.crt':'YQ=='",
         "ca.crt of Secret \"tls\": it holds no PEM certificate", STW_ERR_INVALID},
        {"'peer.crt':'YQ==','peer.key':'YQ==','peer-ca.crt':'^'",
         "peer.crt of Secret \"tls\" holds no certificate in PEM", STW_ERR_INVALID},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_certificate c;
        struct stw_error err = {0};
        assert_int_equal(read_data(cases[i].data, &c, &err), -1);
        assert_string_equal(err.text, cases[i].said);
        assert_int_equal(err.code, cases[i].code);
        assert_null(c.cert);
        assert_null(c.key);
        assert_null(c.ca);
    }
}

static void test_oversized_certificate_names_its_size(void **state)
{
    size_t groups = STW_CERTIFICATE_MAX / 3 + 1;
    stw_autobuf struct stw_buf data = STW_BUF_INIT(1u << 20);
    struct stw_certificate c;
    struct stw_error err = {0};
    (void)state;
    stw_buf_adds(&data, "'tls.crt':'YQ==','tls.key':'YQ==','ca.crt':'");
    for (size_t i = 0; i < groups; i++)
        stw_buf_adds(&data, "YWFh");
    stw_buf_adds(&data, "'");
    assert_int_equal(read_data(stw_buf_str(&data), &c, &err), -1);
    assert_string_equal(err.text,
                        "ca.crt of Secret \"tls\" has 262146 bytes; it may have at most 262144");
}

/* For a store that has more authorities than are looked at. */
static void test_large_bundle_is_taken(void **state)
{
    stw_autobuf struct stw_buf many = STW_BUF_INIT(1u << 20), large = STW_BUF_INIT(1u << 20);
    struct stw_error err = {0};
    (void)state;
    for (size_t i = 0; i <= STW_TRUST_MAX_CERTS; i++)
        stw_buf_adds(&many, made.cert);
    for (size_t i = 0; i < 800u << 10; i++)
        stw_buf_addc(&large, 'x');
    assert_int_equal(stw_certificate_check_authorities(stw_buf_str(&many), &err), 0);
    assert_int_equal(stw_certificate_check_authorities(stw_buf_str(&large), &err), 0);
    assert_int_equal(err.code, STW_OK);
    assert_int_equal(stw_certificate_check_authorities(made.key, &err), -1);
    assert_int_equal(err.code, STW_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete_certificate_secrets_are_read),
        cmocka_unit_test(test_missing_keys_are_named),
        cmocka_unit_test(test_oversized_certificate_names_its_size),
        cmocka_unit_test(test_large_bundle_is_taken),
    };
    return cmocka_run_group_tests(tests, make_certificate, free_certificate);
}
