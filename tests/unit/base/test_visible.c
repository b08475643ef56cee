/* SPDX-License-Identifier: Apache-2.0 */
#include "base/visible.h"

#include "base/json.h"
#include "base/utf8.h"

#include <setjmp.h>

#include <cmocka.h>

static const struct {
    const char *text, *shown;
} rows[] = {
    {"", ""},
    {"team/web-1", "team/web-1"},
    {"gr\xc3\xbc\xc3\x9f \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80",
     "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80"},
    {"a\nb\rc\td", "a\\nb\\rc\\td"},
    {"\x1b[2J\x1b]0;t\x07\x08\x7f", "\\x1b[2J\\x1b]0;t\\x07\\x08\\x7f"},
    {"\xc2\x9b"
     "31m\xc2\x85",
     "\\u009b31m\\u0085"},
    {"\x9b"
     "31m",
     "\\x9b31m"},
    {"\xe2\x80\xae"
     "live\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf",
     "\\u202elive\\u2066\\u200b\\ufeff"},
    {"\xf3\xa0\x81\x81", "\\U000e0041"},
    {"a\xc2\xa0"
     "b\xe3\x80\x80",
     "a\\u00a0b\\u3000"},
    {"\xff\xfe\xc3", "\\xff\\xfe\\xc3"},
    {"\xed\xa0\x80\xc0\x80", "\\xed\\xa0\\x80\\xc0\\x80"},
    {"\xef\xbf\xbe", "\\ufffe"},
    {"# a #b", "# a #b"},
    {"##vso[x]", "#\\x23vso[x]"},
    {"a ###[error]", "a #\\x23\\x23[error]"},
    {"::error", "\\x3a:error"},
    {"  ::error::a", "  \\x3a:error::a"},
    {"a ::error", "a ::error"},
    {":a", ":a"},
};

static void test_text_is_shown_on_one_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
        stw_visible_add_line(&out, rows[i].text, strlen(rows[i].text));
        assert_string_equal(stw_buf_str(&out), rows[i].shown);
    }
}

static void test_shown_text_is_shown_unchanged(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
        stw_visible_add_line(&out, rows[i].shown, strlen(rows[i].shown));
        assert_string_equal(stw_buf_str(&out), rows[i].shown);
    }
}

static void test_text_is_made_visible_in_place(void **state)
{
    static const struct {
        const char *text, *shown;
        size_t max;
    } cuts[] = {
        {"plain", "plain", 31},
        {"plain", "pla", 3},
        {"a\x1b[2J\nb", "a\\x1b[2J\\nb", 31},
        {"\n\n\n", "\\n\\n", 4}, /* what it grows by is cut */
        {"a\xc3\xa4", "a", 2},   /* between characters */
        {"", "", 0},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cuts); i++) {
        char text[32];
        stw_format(text, sizeof(text), "%s", cuts[i].text);
        stw_visible_replace(text, cuts[i].max);
        assert_string_equal(text, cuts[i].shown);
    }
}

static void test_visible_part_may_begin_with_colons(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(64);
    (void)state;
    stw_visible_add(&out, "::1", 3);
    assert_string_equal(stw_buf_str(&out), "::1");
}

static void test_nul_is_an_escape(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(64);
    (void)state;
    stw_visible_add(&out, "a\0b", 3);
    assert_string_equal(stw_buf_str(&out), "a\\x00b");
}

/* What a file has after `print` wrote to it. */
static char *read_back(void (*print)(FILE *out))
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    print(out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void print_values(FILE *out)
{
    stw_print_line(out, "%s: %d", "a\n::error::b", 5);
    stw_print_line(out, "%s", "::error::b");
    stw_print_lines(out, "one\n ::two\nthr\x1b"
                         "ee");
    stw_print_line(out, "%*s", 2000, "x");
}

static void test_printed_lines_contain_no_commands(void **state)
{
    static const char expected[] =
        "a\\n::error::b: 5\n\\x3a:error::b\none\n \\x3a:two\nthr\\x1bee\n";
    stw_autofree char *text = read_back(print_values);
    (void)state;
    assert_memory_equal(text, expected, sizeof(expected) - 1);
    assert_int_equal(strlen(text), sizeof(expected) - 1 + 2001);
}

static const char json[] = "{\n  \"a\": \"x\x7f\xc2\x9b\xe2\x80\xae##vso[\xf3\xa0\x81\x81\",\n"
                           "  \"\xc3\xa9\\n\": [1]\n}";

static void print_value(FILE *out)
{
    stw_print_json(out, json, sizeof(json) - 1);
}

static void test_escaped_json_keeps_its_value(void **state)
{
    stw_autofree char *text = read_back(print_value);
    stw_autojson struct stw_json_doc was = {0}, is = {0};
    struct stw_error err = {0};
    (void)state;
    assert_string_equal(text, "{\n  \"a\": \"x\\u007f\\u009b\\u202e#\\u0023vso[\\udb40\\udc41\",\n"
                              "  \"\xc3\xa9\\n\": [1]\n}");
    assert_int_equal(stw_json_scan(&was, json, sizeof(json) - 1, &err), 0);
    assert_int_equal(stw_json_scan(&is, text, strlen(text), &err), 0);
    assert_true(stw_json_equal(stw_json_root(&was), stw_json_root(&is)));
}

/* Every byte, and every pair of bytes: what is shown is UTF-8 without controls. */
static void test_no_control_byte_passes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 65536; i++) {
        const char text[2] = {(char)(i >> 8), (char)i};
        stw_autobuf struct stw_buf out = STW_BUF_INIT(64);
        stw_visible_add(&out, text, 2);
        assert_true(stw_utf8_valid(stw_buf_str(&out), out.len));
        for (size_t k = 0; k < out.len; k++)
            assert_true((unsigned char)out.data[k] >= ' ' && out.data[k] != 0x7f);
        stw_buf_clear(&out);
        stw_valid_add(&out, text, 2);
        assert_true(stw_utf8_valid(stw_buf_str(&out), out.len));
    }
}

static void test_valid_text_keeps_its_controls(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(64);
    (void)state;
    stw_valid_add(&out, "a\n\x1b\xff\xc3\xa9", 6);
    assert_string_equal(stw_buf_str(&out), "a\n\x1b\\xff\xc3\xa9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_shown_on_one_line),
        cmocka_unit_test(test_shown_text_is_shown_unchanged),
        cmocka_unit_test(test_text_is_made_visible_in_place),
        cmocka_unit_test(test_visible_part_may_begin_with_colons),
        cmocka_unit_test(test_nul_is_an_escape),
        cmocka_unit_test(test_printed_lines_contain_no_commands),
        cmocka_unit_test(test_escaped_json_keeps_its_value),
        cmocka_unit_test(test_no_control_byte_passes),
        cmocka_unit_test(test_valid_text_keeps_its_controls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
