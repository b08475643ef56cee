/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client/lines_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int collect(void *ctx, const char *line, size_t len, bool cut)
{
    struct stw_buf *out = ctx;
    stw_buf_adds(out, cut ? "cut " : "");
    stw_buf_add(out, line, len);
    stw_buf_addc(out, '|');
    return len == 4 && memcmp(line, "stop", 4) == 0 ? 7 : 0;
}

static const char text[] = "{\"a\":\"x\\n\"}\n\n\r\n{\"b\":2}\r\nlast\nrest";
static const char want[] = "{\"a\":\"x\\n\"}|{\"b\":2}|last|";

/* Split at every pair of positions: always the same lines. */
static void test_lines_are_read_in_any_pieces(void **state)
{
    size_t len = strlen(text);
    (void)state;
    for (size_t i = 0; i <= len; i++)
        for (size_t j = i; j <= len; j++) {
            struct stw_lines l;
            struct stw_buf out = STW_BUF_INIT(1000);
            stw_lines_init(&l, 100);
            assert_int_equal(stw_lines_feed(&l, text, i, collect, &out), 0);
            assert_int_equal(stw_lines_feed(&l, text + i, j - i, collect, &out), 0);
            assert_int_equal(stw_lines_feed(&l, text + j, len - j, collect, &out), 0);
            assert_string_equal(stw_buf_str(&out), want);
            stw_buf_done(&out);
            stw_lines_done(&l);
        }
}

static void test_lines_are_read_byte_by_byte(void **state)
{
    struct stw_lines l;
    struct stw_buf out = STW_BUF_INIT(1000);
    (void)state;
    stw_lines_init(&l, 100);
    for (const char *p = text; *p; p++)
        assert_int_equal(stw_lines_feed(&l, p, 1, collect, &out), 0);
    assert_string_equal(stw_buf_str(&out), want);
    stw_buf_done(&out);
    stw_lines_done(&l);
}

/* Of a line over the limit the start is passed on when its end has come, and the lines after it are
 * whole. */
static void test_long_lines_are_truncated(void **state)
{
    static const struct {
        const char *first, *second, *want;
    } rows[] = {
        {"12345678\n", "", "12345678|"},
        {"1234", "5678\n", "12345678|"},
        {"123456789\n", "a\n", "cut 12345678|a|"},
        {"1234", "56789\na\n", "cut 12345678|a|"},
        {"12345678", "9\na\n", "cut 12345678|a|"},
        {"12345678", "\na\n", "12345678|a|"},
        {"1234567\r9", "\r\na\r\n", "cut 1234567\r|a|"},
        {"123456789", "", ""},
        {"1\n2\n3\n4\n5\n6\n", "12345678\n", "1|2|3|4|5|6|12345678|"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stw_lines l;
        struct stw_buf out = STW_BUF_INIT(1000);
        stw_lines_init(&l, 8);
        assert_int_equal(stw_lines_feed(&l, rows[i].first, strlen(rows[i].first), collect, &out),
                         0);
        assert_int_equal(stw_lines_feed(&l, rows[i].second, strlen(rows[i].second), collect, &out),
                         0);
        assert_string_equal(stw_buf_str(&out), rows[i].want);
        assert_true(l.partial.len <= 8);
        stw_buf_done(&out);
        stw_lines_done(&l);
    }
}

static void test_line_callback_ends_the_reading(void **state)
{
    struct stw_lines l;
    struct stw_buf out = STW_BUF_INIT(1000);
    (void)state;
    stw_lines_init(&l, 100);
    assert_int_equal(stw_lines_feed(&l, "a\nstop\nb\n", 9, collect, &out), 7);
    assert_string_equal(stw_buf_str(&out), "a|stop|");
    stw_buf_done(&out);
    stw_lines_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_read_in_any_pieces),
        cmocka_unit_test(test_lines_are_read_byte_by_byte),
        cmocka_unit_test(test_long_lines_are_truncated),
        cmocka_unit_test(test_line_callback_ends_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
