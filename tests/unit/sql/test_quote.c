/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/quote.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    const char *text, *mysql_name, *mysql_string, *mysql_plain, *pg_name, *pg_string;
} rows[] = {
    {"bob", "`bob`", "'bob'", "'bob'", "\"bob\"", "'bob'"},
    {"", "``", "''", "''", "\"\"", "''"},
    {"it's", "`it's`", "'it''s'", "'it''s'", "\"it's\"", "'it''s'"},
    {"a`b", "`a``b`", "'a`b'", "'a`b'", "\"a`b\"", "'a`b'"},
    {"a\"b", "`a\"b`", "'a\"b'", "'a\"b'", "\"a\"\"b\"", "'a\"b'"},
    /* A backslash before a quote must not escape it in any mode. */
    {"\\'", "`\\'`", "'\\\\'''", "'\\'''", "\"\\'\"", "E'\\\\'''"},
    {"end\\", "`end\\`", "'end\\\\'", "'end\\'", "\"end\\\"", "E'end\\\\'"},
    {"\n\x1a%_", "`\n\x1a%_`", "'\n\x1a%_'", "'\n\x1a%_'", "\"\n\x1a%_\"", "'\n\x1a%_'"},
    {"\xe5\xaf\x86\xf0\x9f\x98\x80", "`\xe5\xaf\x86\xf0\x9f\x98\x80`",
     "'\xe5\xaf\x86\xf0\x9f\x98\x80'", "'\xe5\xaf\x86\xf0\x9f\x98\x80'",
     "\"\xe5\xaf\x86\xf0\x9f\x98\x80\"", "'\xe5\xaf\x86\xf0\x9f\x98\x80'"},
    /* Bytes that are not UTF-8 cannot swallow the closing quote. */
    {"\xe5", "`\xe5`", "'\xe5'", "'\xe5'", "\"\xe5\"", "'\xe5'"},
};

static void is(struct stw_buf *out, const char *expected)
{
    assert_false(out->failed);
    assert_string_equal(stw_buf_str(out), expected);
    stw_buf_clear(out);
}

static void test_names_and_strings_are_quoted(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        size_t len = strlen(rows[i].text);
        stw_mysql_name(&out, rows[i].text);
        is(&out, rows[i].mysql_name);
        stw_mysql_string(&out, rows[i].text, len, false);
        is(&out, rows[i].mysql_string);
        stw_mysql_string(&out, rows[i].text, len, true);
        is(&out, rows[i].mysql_plain);
        stw_pg_name(&out, rows[i].text);
        is(&out, rows[i].pg_name);
        stw_pg_string(&out, rows[i].text, len);
        is(&out, rows[i].pg_string);
    }
}

static void test_nul_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
        if (i < 2)
            stw_mysql_string(&out, "a\0b", 3, i);
        else
            stw_pg_string(&out, "a\0b", 3);
        assert_true(out.failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_strings_are_quoted),
        cmocka_unit_test(test_nul_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
