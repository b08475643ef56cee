/* SPDX-License-Identifier: Apache-2.0
 *
 * What the status shows of the value of an annotation by which a user asks for something once. */
#include "kinds/common/request.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define TEN "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN

static void read_text(const char *json, char out[STW_REQUEST_LEN])
{
    stw_autojson struct stw_json_doc doc = {0};
    char text[600];
    (void)snprintf(text, sizeof(text), "{\"at\":%s}", json);
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), NULL), 0);
    stw_request_read(stw_json_get(stw_json_root(&doc), "at"), out);
}

static void test_short_text_is_shown_and_other_values_by_their_hash(void **state)
{
    static const struct {
        const char *json;
        bool hashed;
    } rows[] = {
        {"\"monday ~\"", false},     {"\"\"", false},        {"\"" SIXTY "123\"", false},
        {"\"" SIXTY "1234\"", true}, {"\"a\\nb\"", true},    {"\"a\\u0000b\"", true},
        {"\"\xc3\xa9\"", true},      {"\"a\\u007f\"", true}, {"\"" SIXTY SIXTY SIXTY "\"", true},
    };
    char out[STW_REQUEST_LEN], want[STW_REQUEST_LEN + 2];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        read_text(rows[i].json, out);
        (void)snprintf(want, sizeof(want), "\"%s\"", out);
        if ((strcmp(want, rows[i].json) != 0) != rows[i].hashed ||
            (rows[i].hashed && strspn(out, "0123456789abcdef") != 32))
            fail_msg("%s: %s", rows[i].json, out);
    }
}

static void test_hash_covers_the_whole_value(void **state)
{
    char one[STW_REQUEST_LEN], other[STW_REQUEST_LEN];
    (void)state;
    read_text("\"" SIXTY SIXTY SIXTY SIXTY SIXTY "a\"", one);
    read_text("\"" SIXTY SIXTY SIXTY SIXTY SIXTY "b\"", other);
    assert_string_not_equal(one, other);
    stw_request_read(STW_JSON_NONE, one);
    assert_string_equal(one, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_text_is_shown_and_other_values_by_their_hash),
        cmocka_unit_test(test_hash_covers_the_whole_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
