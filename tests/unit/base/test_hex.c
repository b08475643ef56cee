/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_hex_digits_of_both_cases_are_read(void **state)
{
    static const struct {
        char c;
        int value;
    } rows[] = {{'0', 0},  {'9', 9},  {'a', 10}, {'f', 15}, {'A', 10},        {'F', 15},
                {'g', -1}, {'/', -1}, {':', -1}, {'@', -1}, {(char)0xe1, -1}, {'\0', -1}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++)
        assert_int_equal(stw_hex_digit(rows[i].c), rows[i].value);
}

static void test_hex_is_written_in_both_cases(void **state)
{
    static const unsigned char data[] = {0x00, 0x7f, 0xab, 0xff};
    char out[9];
    (void)state;
    stw_hex_encode(data, sizeof(data), STW_HEX_LOWER, out);
    assert_string_equal(out, "007fabff");
    stw_hex_encode(data, sizeof(data), STW_HEX_UPPER, out);
    assert_string_equal(out, "007FABFF");
    stw_hex_encode(data, 0, STW_HEX_UPPER, out);
    assert_string_equal(out, "");
}

static void test_hash_text_is_read_back(void **state)
{
    struct stw_hash h = {.hi = 0x0123456789abcdefu, .lo = 0xfedcba9876543210u};
    char text[STW_HASH_LEN];
    (void)state;
    stw_hash_format(h, text);
    assert_string_equal(text, "0123456789abcdeffedcba9876543210");
    assert_true(stw_hash_equal(h, stw_hash_parse(text)));
    assert_true(stw_hash_equal(stw_hash_parse("12x"), (struct stw_hash){.hi = 0x12}));
    assert_false(stw_hash_is_set(stw_hash_parse("")));
}

static void test_url_escape_keeps_unreserved_characters(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
    (void)state;
    stw_url_escape("aZ0-._~ /%\xc3\xa9", &out);
    assert_string_equal(stw_buf_str(&out), "aZ0-._~%20%2F%25%C3%A9");
    stw_buf_clear(&out);
    stw_url_escape_path("a b/c", &out);
    assert_string_equal(stw_buf_str(&out), "a%20b/c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hex_digits_of_both_cases_are_read),
        cmocka_unit_test(test_hex_is_written_in_both_cases),
        cmocka_unit_test(test_hash_text_is_read_back),
        cmocka_unit_test(test_url_escape_keeps_unreserved_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
