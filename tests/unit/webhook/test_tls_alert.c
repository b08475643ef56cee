/* SPDX-License-Identifier: Apache-2.0
 *
 * The versions of a ClientHello. The alerts themselves are in
 * tests/integration/webhook/test_webhook_callers.py. */
#include "webhook/tls_alert_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* A ClientHello with this version and these bytes of extensions. */
static size_t make_hello(unsigned char out[256], unsigned version, const char *extensions,
                         size_t len)
{
    unsigned char *p = out;
    memset(out, 0, 256);
    *p++ = (unsigned char)(version >> 8);
    *p++ = (unsigned char)version;
    p += 32 + 1; /* random, no session */
    p += 1;
    *p++ = 2; /* one cipher suite */
    p += 2;
    *p++ = 1; /* one compression method */
    p += 1;
    if (extensions) {
        *p++ = 0;
        *p++ = (unsigned char)len;
        memcpy(p, extensions, len);
        p += len;
    }
    return (size_t)(p - out);
}

static void test_offered_tls_versions_are_recognised(void **state)
{
#define BYTES(text) text, sizeof(text) - 1
    static const struct {
        unsigned version;
        const char *extensions;
        size_t len;
        bool offered;
    } cases[] = {
        {0x0303, NULL, 0, true},
        {0x0302, NULL, 0, false},
        {0x0301, BYTES(""), false},
        {0x0303, BYTES(""), true},
        /* the extension counts, not the version before it */
        {0x0303, BYTES("\0\x2b\0\3\2\3\2"), false},
        {0x0303, BYTES("\0\x2b\0\5\4\3\4\3\3"), true},
        {0x0301, BYTES("\0\x2b\0\7\6\3\1\3\2\3\3"), true},
        {0x0303, BYTES("\0\1\0\2\3\4\0\x2b\0\5\4\x7f\x1c\3\2"), false},
        {0x0303, BYTES("\0\x2b\0\1\0"), false},
        /* what cannot be read is for GnuTLS to refuse */
        {0x0301, BYTES("\0\x2b\0\3\4\3\2"), true},
        {0x0301, BYTES("\0\x2b\0\x70\2\3\2"), true},
        {0x0301, BYTES("\0"), true},
    };
    unsigned char hello[256];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        size_t size = make_hello(hello, cases[i].version, cases[i].extensions, cases[i].len);
        if (stw_tls_offers_version(hello, size) != cases[i].offered)
            fail_msg("case %zu", i);
    }
    for (size_t size = 0; size < 40; size++)
        assert_true(stw_tls_offers_version(hello, size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offered_tls_versions_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
