/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static void test_integers_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        int64_t value;
    } rows[] = {
        {"0", 0, 0},
        {"007", 0, 7},
        {"-5", 0, -5},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", -1, 0},
        {"-9223372036854775809", -1, 0},
        {"99999999999999999999999", -1, 0},
        {"", -1, 0},
        {"-", -1, 0},
        {"+1", -1, 0},
        {" 1", -1, 0},
        {"1 ", -1, 0},
        {"1x", -1, 0},
        {"--1", -1, 0},
        {"0x10", -1, 0},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        int64_t v = 4711;
        assert_int_equal(stw_parse_int(rows[i].text, INT64_MIN, INT64_MAX, &v), rows[i].rc);
        assert_int_equal(v, rows[i].rc == 0 ? rows[i].value : 4711);
    }
    int64_t v = 0;
    assert_int_equal(stw_parse_int("29999", 30000, 32767, &v), -1);
    assert_int_equal(stw_parse_int("30000", 30000, 32767, &v), 0);
    assert_int_equal(stw_parse_int("32768", 30000, 32767, &v), -1);
}

static void test_hash_distinguishes_bytes(void **state)
{
    (void)state;
    struct stw_hash a = stw_hash_bytes("abc", 3), b = stw_hash_bytes("abd", 3);
    struct stw_hash again = stw_hash_bytes("abcd", 3);
    assert_true(a.lo != b.lo && a.hi != b.hi);
    assert_true(a.lo == again.lo && a.hi == again.hi);
}

static void test_ascii_is_lowered_and_truncated(void **state)
{
    char out[8] = "XXXXXXX", text[] = "Main-DB.1\xc4";
    (void)state;
    stw_lower(text, out, sizeof(out));
    assert_string_equal(out, "main-db"); /* truncated */
    stw_lower(text, text, sizeof(text));
    assert_string_equal(text, "main-db.1\xc4");
    stw_lower("ABC", out, 1);
    assert_string_equal(out, "");
    out[0] = 'X';
    stw_lower("ABC", out, 0);
    assert_int_equal(out[0], 'X');
}

static void test_format_truncates(void **state)
{
    static const char *const rows[][2] = {{"ab", "ab"}, {"abc", "abc"}, {"abcd", "abc"}};
    char out[4];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_format(out, sizeof(out), "%s", rows[i][0]);
        assert_string_equal(out, rows[i][1]);
    }
}

static void test_format_whole_refuses_truncation(void **state)
{
    char out[4] = "old";
    (void)state;
    assert_int_equal(stw_format_whole(out, sizeof(out), "%s", "abc"), 0);
    assert_string_equal(out, "abc");
    assert_int_equal(stw_format_whole(out, sizeof(out), "%s%d", "abc", 1), -1);
    assert_string_equal(out, "");
    assert_int_equal(stw_format_whole(out, 1, "%s", ""), 0);
    assert_int_equal(stw_format_whole(out, 1, "%s", "a"), -1);
}

static void test_wipe_zeroes_memory(void **state)
{
    (void)state;
    char secret[] = "hunter2";
    stw_wipe(secret, sizeof(secret));
    for (size_t i = 0; i < sizeof(secret); i++)
        assert_int_equal(secret[i], 0);
    stw_wipe(NULL, 10);
}

static void test_take_moves_a_pointer(void **state)
{
    (void)state;
    char *a = strdup("x");
    stw_autofree char *b = stw_take(a);
    assert_null(a);
    assert_string_equal(b, "x");
}

static char path[64];

static void write_file(size_t len)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < len; i++)
        assert_int_not_equal(fputc((int)('a' + i % 26), f), EOF);
    assert_int_equal(fclose(f), 0);
}

static void test_read_file_reads_up_to_the_cap(void **state)
{
    (void)state;
    /* Sizes around the first block, its double, and the cap. */
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 32768, 40000, 65536};
    struct stw_error err;

    for (size_t i = 0; i < STW_COUNT(sizes); i++) {
        stw_autofree char *text = NULL;
        size_t len = 99;
        write_file(sizes[i]);
        assert_int_equal(stw_read_file(path, 65536, &text, &len, &err), 0);
        assert_int_equal(len, sizes[i]);
        assert_int_equal(text[len], '\0');
        for (size_t k = 0; k < len; k++)
            assert_int_equal(text[k], (int)('a' + k % 26));
        if (sizes[i] == 0)
            continue;
        char *unset = path;
        assert_int_equal(stw_read_file(path, sizes[i] - 1, &unset, NULL, &err), -1);
        assert_int_equal(err.code, STW_ERR_TOO_LARGE);
        assert_ptr_equal(unset, path);
    }
}

static void test_read_file_reports_errors(void **state)
{
    (void)state;
    struct stw_error err;
    char *text = NULL;
    assert_int_equal(stw_read_file("/no/such/file", 10, &text, NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/no/such/file"));
    assert_int_equal(stw_read_file("/", 10, &text, NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_INTERNAL);
    assert_non_null(strstr(err.text, "Is a directory"));
    assert_null(text);
    /* A file that reports size 0. */
    assert_int_equal(stw_read_file("/proc/self/status", 65536, &text, NULL, &err), 0);
    assert_non_null(strstr(text, "VmRSS"));
    free(text);
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof(path), "/tmp/stw-util-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_are_parsed),
        cmocka_unit_test(test_hash_distinguishes_bytes),
        cmocka_unit_test(test_ascii_is_lowered_and_truncated),
        cmocka_unit_test(test_format_truncates),
        cmocka_unit_test(test_format_whole_refuses_truncation),
        cmocka_unit_test(test_wipe_zeroes_memory),
        cmocka_unit_test(test_take_moves_a_pointer),
        cmocka_unit_test(test_read_file_reads_up_to_the_cap),
        cmocka_unit_test(test_read_file_reports_errors),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
