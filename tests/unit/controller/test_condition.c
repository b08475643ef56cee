/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/condition.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *text(const json_t *c, const char *key)
{
    return json_string_value(json_object_get(c, key));
}

static void test_transition_time_changes_only_with_the_status(void **state)
{
    (void)state;
    json_auto_t *old =
        json_loads("[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Progressing\","
                   "\"message\":\"m\",\"observedGeneration\":1,"
                   "\"lastTransitionTime\":\"2020-01-01T00:00:00Z\"}]",
                   0, NULL);
    struct stw_conditions same = {.old = old, .generation = 2, .now = "2024-01-01T00:00:00Z"};
    struct stw_conditions other = same;
    stw_condition_set(&same, "Ready", STW_FALSE, "NameConflict", "%s", "else");
    stw_condition_set(&other, "Ready", STW_TRUE, "Completed", "%s", "done");
    stw_condition_set(&other, "New", STW_UNKNOWN, "Progressing", "x");
    const json_t *a = json_array_get(same.list, 0), *b = json_array_get(other.list, 0);
    assert_string_equal(text(a, "lastTransitionTime"), "2020-01-01T00:00:00Z");
    assert_string_equal(text(a, "reason"), "NameConflict");
    assert_int_equal(json_integer_value(json_object_get(a, "observedGeneration")), 2);
    assert_string_equal(text(b, "lastTransitionTime"), "2024-01-01T00:00:00Z");
    assert_string_equal(text(json_array_get(other.list, 1), "lastTransitionTime"),
                        "2024-01-01T00:00:00Z");
    assert_string_equal(text(json_array_get(other.list, 1), "status"), "Unknown");
    json_decref(same.list);
    json_decref(other.list);
}

static void test_old_conditions_are_kept(void **state)
{
    (void)state;
    json_auto_t *old = json_loads("[{\"type\":\"A\",\"status\":\"True\"}]", 0, NULL);
    struct stw_conditions c = {.old = old, .now = "x"};
    stw_condition_keep(&c, "A");
    stw_condition_keep(&c, "B");
    assert_int_equal(json_array_size(c.list), 1);
    assert_true(json_equal(json_array_get(c.list, 0), json_array_get(old, 0)));
    assert_true(stw_condition_is(stw_condition_find(c.list, "A"), STW_TRUE));
    assert_null(stw_condition_find(c.list, "B"));
    assert_false(stw_condition_is(NULL, STW_TRUE));
    assert_string_equal(stw_condition_reason(NULL), "");
    json_decref(c.list);
}

static void test_long_messages_are_truncated_between_characters(void **state)
{
    (void)state;
    char long_text[3000];
    struct stw_conditions c = {.now = "2024-01-01T00:00:00Z"};
    for (size_t i = 0; i + 3 < sizeof(long_text); i += 3)
        memcpy(long_text + i, "\xe2\x82\xac", 3); /* the euro sign */
    long_text[sizeof(long_text) - 3] = '\0';
    stw_condition_set(&c, "Ready", STW_FALSE, "R", "%s", long_text);
    assert_false(c.failed);
    const char *message = text(json_array_get(c.list, 0), "message");
    assert_int_equal(strlen(message), 1023); /* 341 whole signs */
    json_decref(c.list);
}

static void test_messages_have_no_control_characters(void **state)
{
    struct stw_conditions c = {.now = "2024-01-01T00:00:00Z"};
    (void)state;
    stw_condition_set(&c, "Ready", STW_FALSE, "R", "unknown field \"%s\"",
                      "a\x1b[2J\n\xe2\x80\xae");
    assert_string_equal(text(json_array_get(c.list, 0), "message"),
                        "unknown field \"a\\x1b[2J\\n\\u202e\"");
    json_decref(c.list);
}

static void test_message_text_is_cleaned(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
        size_t max;
    } cases[] = {
        {"plain", "plain", 100},
        {"cut", "cu", 2},
        {"half \xe2\x82", "half ??", 100}, /* a fixed buffer cut the euro sign */
        {"\xc3\xa4\xf0\x9f\x98\x80", "\xc3\xa4\xf0\x9f\x98\x80", 100},
        {"\xc3\xa4\xf0\x9f\x98\x80", "\xc3\xa4", 5},
        {"\xc0\x80", "??", 100},           /* overlong */
        {"\xed\xa0\x80", "???", 100},      /* a surrogate */
        {"\xf4\x90\x80\x80", "????", 100}, /* beyond U+10FFFF */
        {"\xff", "?", 100},
        {"", "", 0},
    };
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char buffer[64];
        (void)snprintf(buffer, sizeof(buffer), "%s", cases[i].in);
        stw_message_clean(buffer, cases[i].max);
        assert_string_equal(buffer, cases[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transition_time_changes_only_with_the_status),
        cmocka_unit_test(test_old_conditions_are_kept),
        cmocka_unit_test(test_long_messages_are_truncated_between_characters),
        cmocka_unit_test(test_messages_have_no_control_characters),
        cmocka_unit_test(test_message_text_is_cleaned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
