/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_buffer_appends_text(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf b = STW_BUF_INIT(1000);
    assert_string_equal(stw_buf_str(&b), "");
    stw_buf_adds(&b, "a");
    stw_buf_addc(&b, 'b');
    stw_buf_adds_lower(&b, "CD");
    stw_buf_add(&b, "cde", 2);
    stw_buf_addi(&b, -12);
    stw_buf_addf(&b, "<%s|%d>", "x", 7);
    assert_string_equal(stw_buf_str(&b), "abcdcd-12<x|7>");
    assert_int_equal(b.len, 14);
    stw_buf_clear(&b);
    assert_string_equal(stw_buf_str(&b), "");
    assert_int_equal(b.len, 0);
}

static void test_buffer_formats_integers(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf b = STW_BUF_INIT(1000);
    stw_buf_addi(&b, 0);
    stw_buf_addc(&b, ' ');
    stw_buf_addi(&b, INT64_MAX);
    stw_buf_addc(&b, ' ');
    stw_buf_addi(&b, INT64_MIN);
    assert_string_equal(stw_buf_str(&b), "0 9223372036854775807 -9223372036854775808");
}

/* The cap holds to the byte for every way of adding, and sticks. */
static void test_buffer_cap_is_exact_and_sticks(void **state)
{
    (void)state;
    for (size_t max = 0; max < 200; max++) {
        stw_autobuf struct stw_buf b = STW_BUF_INIT(max);
        for (size_t i = 0; i < max; i++)
            stw_buf_addc(&b, 'x');
        assert_false(b.failed);
        assert_int_equal(b.len, max);
        stw_buf_adds(&b, "");
        assert_false(b.failed);
        stw_buf_addf(&b, "%s", "y");
        assert_true(b.failed);
        assert_int_equal(b.len, max);
        stw_buf_clear(&b);
        assert_false(b.failed);
        stw_buf_addf(&b, "%*s", (int)max, "");
        assert_false(b.failed);
        assert_int_equal(b.len, max);
        stw_buf_addc(&b, 'y');
        assert_true(b.failed);
        stw_buf_adds(&b, "");
        assert_null(stw_buf_take(&b));
        assert_null(b.data);
    }
}

static void test_buffer_text_is_taken(void **state)
{
    (void)state;
    struct stw_buf b = STW_BUF_INIT(100);
    stw_autofree char *empty = stw_buf_take(&b);
    assert_string_equal(empty, "");
    stw_buf_adds(&b, "text");
    stw_autofree char *text = stw_buf_take(&b);
    assert_string_equal(text, "text");
    assert_null(b.data);
    assert_int_equal(b.len, 0);
}

static void test_buffer_reserves_space_below_the_cap(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf b = STW_BUF_INIT(10);
    stw_buf_adds(&b, "12345");
    assert_null(stw_buf_reserve(&b, 6));
    stw_buf_clear(&b);
    char *to = stw_buf_reserve(&b, 10);
    assert_non_null(to);
    memcpy(to, "abc", 4);
    b.len += 3;
    stw_buf_addc(&b, 'd');
    assert_string_equal(stw_buf_str(&b), "abcd");
}

/* A secret buffer wipes memory before it releases it: checked with stw_buf_clear(), which keeps the
 * block. */
static void test_secret_buffer_is_wiped(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf b = STW_BUF_INIT(100000);
    b.secret = true;
    for (int i = 0; i < 5000; i++)
        stw_buf_adds(&b, "hunter2 ");
    assert_int_equal(b.len, 40000);
    assert_memory_equal(b.data + 39992, "hunter2 ", 8);
    stw_buf_clear(&b);
    for (size_t i = 0; i < 40000; i++)
        assert_int_equal(b.data[i], 0);
}

static void test_buffer_escapes_json_strings(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\""},
        {"<a>&/", "\"<a>&/\""}, /* only what RFC 8259 requires is escaped */
        {"\xe6\xac\xa2\xf0\x9f\x98\x80", "\"\xe6\xac\xa2\xf0\x9f\x98\x80\""},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf b = STW_BUF_INIT(100);
        stw_buf_json_strz(&b, rows[i].text);
        assert_string_equal(stw_buf_str(&b), rows[i].json);
    }
    stw_autobuf struct stw_buf b = STW_BUF_INIT(100);
    stw_buf_json_str(&b, "a\0b", 3);
    assert_string_equal(stw_buf_str(&b), "\"a\\u0000b\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffer_appends_text),
        cmocka_unit_test(test_buffer_formats_integers),
        cmocka_unit_test(test_buffer_cap_is_exact_and_sticks),
        cmocka_unit_test(test_buffer_text_is_taken),
        cmocka_unit_test(test_buffer_reserves_space_below_the_cap),
        cmocka_unit_test(test_secret_buffer_is_wiped),
        cmocka_unit_test(test_buffer_escapes_json_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
