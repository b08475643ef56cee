/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "etcd/etcd.h"
#include "snapshot_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Checks `len` bytes in pieces of `piece` bytes. */
static int check(const unsigned char *data, size_t len, size_t piece, char sha256[65],
                 struct stw_error *err)
{
    uint64_t size = 99;
    struct stw_etcd_check *c = stw_etcd_check_create();
    assert_non_null(c);
    for (size_t at = 0; at < len; at += piece)
        assert_int_equal(stw_etcd_check_add(c, data + at, STW_MIN(piece, len - at)), 0);
    int r = stw_etcd_check_end(c, &size, sha256, err);
    assert_int_equal(size, r == 0 ? len : 99);
    stw_etcd_check_destroy(c);
    return r;
}

static void test_snapshot_check_accepts_any_piece_size(void **state)
{
    unsigned char data[WHOLE_BYTES], digest[32];
    char sha256[65], want[65];
    (void)state;
    snapshot_make(data);
    assert_int_equal(EVP_Digest(data, sizeof(data), digest, NULL, EVP_sha256(), NULL), 1);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(want + 2 * i, 3, "%02x", digest[i]);
    for (size_t piece = 1; piece <= sizeof(data); piece++) {
        assert_int_equal(check(data, sizeof(data), piece, sha256, NULL), 0);
        assert_string_equal(sha256, want);
    }
}

static void test_every_truncated_snapshot_is_refused(void **state)
{
    unsigned char data[WHOLE_BYTES];
    (void)state;
    snapshot_make(data);
    for (size_t len = 0; len < sizeof(data); len++) {
        struct stw_error err = {0};
        char sha256[65] = "before";
        assert_int_equal(check(data, len, 100, sha256, &err), -1);
        assert_int_equal(err.code, STW_ERR_INVALID);
        assert_string_equal(sha256, "before");
    }
}

static void test_every_flipped_bit_is_detected(void **state)
{
    unsigned char data[WHOLE_BYTES];
    char sha256[65];
    (void)state;
    snapshot_make(data);
    for (size_t bit = 0; bit < sizeof(data) * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(check(data, sizeof(data), sizeof(data), sha256, NULL), -1);
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_int_equal(check(data, sizeof(data), sizeof(data), sha256, NULL), 0);
}

/* The message names the fault. */
static void test_snapshot_error_names_the_fault(void **state)
{
    static const struct {
        size_t len;
        const char *says;
    } rows[] = {{0, "cut"},
                {32, "cut"},
                {PAGES_BYTES, "does not end with its SHA-256"},
                {WHOLE_BYTES - 1, "damaged"}};
    unsigned char data[WHOLE_BYTES];
    (void)state;
    snapshot_make(data);
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {0};
        char sha256[65];
        assert_int_equal(check(data, rows[i].len, 64, sha256, &err), -1);
        assert_non_null(strstr(err.text, rows[i].says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshot_check_accepts_any_piece_size),
        cmocka_unit_test(test_every_truncated_snapshot_is_refused),
        cmocka_unit_test(test_every_flipped_bit_is_detected),
        cmocka_unit_test(test_snapshot_error_names_the_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
