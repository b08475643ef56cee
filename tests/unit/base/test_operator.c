/* SPDX-License-Identifier: Apache-2.0 */
#include "base/operator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct stw_operator one = {
    .name = "one", .domain = "one.example", .metric_prefix = "one"};

static void test_operator_name_placeholders_are_replaced(void **state)
{
    static const char *const rows[][2] = {
        {"{operator}-certs", "one-certs"},
        {"{operator}.{domain}", "one.one.example"},
        {"{domain}/paused", "one.example/paused"},
        {"", ""},
        {"{", "{"},
        {"{{operator}", "{one"},
        {"an object {name, key} of {operator}", "an object {name, key} of one"},
        {"{operator", "{operator"},
        {"{Domain}", "{Domain}"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char text[STW_OWN_NAME_LEN];
        stw_autobuf struct stw_buf buf = STW_BUF_INIT(1000);
        stw_operator_text(&one, rows[i][0], text);
        stw_operator_expand(&one, rows[i][0], &buf);
        assert_string_equal(text, rows[i][1]);
        assert_string_equal(stw_buf_str(&buf), rows[i][1]);
    }
}

/* 40 and 41 characters. */
#define LONG "abcdefghijabcdefghijabcdefghijabcdefghij"
#define LONGER LONG "k"

static void test_operator_names_are_validated(void **state)
{
    static const struct {
        const char *name, *domain, *prefix;
        int rc;
    } rows[] = {
        {"one", "one.example", "one", 0},
        {"my-operator2", "a-b.example.com", "my_operator2", 0},
        {LONG, LONG "." LONG, LONG, 0},
        {LONGER, "one.example", "one", -1},
        {NULL, "one.example", "one", -1},
        {"", "one.example", "one", -1},
        {"One", "one.example", "one", -1},
        {"2one", "one.example", "one", -1},
        {"one-", "one.example", "one", -1},
        {"one,two", "one.example", "one", -1}, /* another term of a label selector */
        {"one&x", "one.example", "one", -1},   /* another parameter of a query */
        {"one", NULL, "one", -1},
        {"one", "", "one", -1},
        {"one", "one..example", "one", -1},
        {"one", ".example", "one", -1},
        {"one", "example.", "one", -1},
        {"one", "-one.example", "one", -1},
        {"one", "one-.example", "one", -1},
        {"one", "one.example/x", "one", -1},
        {"one", LONG LONG LONG, "one", -1},
        {"one", "one.example", NULL, -1},
        {"one", "one.example", "", -1},
        {"one", "one.example", "my-operator", -1},
        {"one", "one.example", "_one", -1},
        {"one", "one.example", LONGER, -1},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        const struct stw_operator op = {
            .name = rows[i].name, .domain = rows[i].domain, .metric_prefix = rows[i].prefix};
        struct stw_error err = {0};
        if (stw_operator_check(&op, &err) != rows[i].rc || (rows[i].rc != 0) != (*err.text != 0))
            fail_msg("row %zu: %s", i, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operator_name_placeholders_are_replaced),
        cmocka_unit_test(test_operator_names_are_validated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
