/* SPDX-License-Identifier: Apache-2.0 */
#include "support/judge.h"

static void assert_text(const struct stw_finding *e, const char *want)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(65536);
    stw_finding_text(e, &out);
    assert_string_equal(stw_buf_str(&out), want);
}

static void test_finding_texts_equal_the_api_servers(void **state)
{
    static const struct {
        const char *path;
        enum stw_finding_code code;
        const char *value, *message, *want, *cause;
    } cases[] = {
        {"spec.image", STW_REQUIRED, NULL, "", "spec.image: Required value", "FieldValueRequired"},
        {"spec.a", STW_REQUIRED, "1", "say why", "spec.a: Required value: say why",
         "FieldValueRequired"},
        {"spec.n", STW_INVALID, "80", "must be 0", "spec.n: Invalid value: 80: must be 0",
         "FieldValueInvalid"},
        {"spec.n", STW_INVALID, NULL, "must be 0", "spec.n: Invalid value: must be 0",
         "FieldValueInvalid"},
        {"spec.u", STW_NOT_SUPPORTED, "\"Now\"", "supported values: \"Roll\"",
         "spec.u: Unsupported value: \"Now\": supported values: \"Roll\"",
         "FieldValueNotSupported"},
        {"spec.p", STW_FORBIDDEN, "1", "taken", "spec.p: Forbidden: taken", "FieldValueForbidden"},
        {"spec.l[1]", STW_DUPLICATE, "\"a\"", "", "spec.l[1]: Duplicate value: \"a\"",
         "FieldValueDuplicate"},
    };
    stw_autofindings struct stw_findings f = {0};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_findings_add(&f, cases[i].path, cases[i].code, cases[i].value, "%s", cases[i].message);
        assert_text(&f.errors[i], cases[i].want);
        assert_string_equal(stw_finding_cause(cases[i].code), cases[i].cause);
    }
}

/* A key of a map is a part of the path; kubectl and kubectl describe print all of it. */
static void test_finding_texts_have_no_control_characters(void **state)
{
    stw_autofindings struct stw_findings f = {0};
    stw_autobuf struct stw_buf all = STW_BUF_INIT(1024);
    (void)state;
    stw_findings_add(&f, "spec.env[a\x1b[2J\n]", STW_INVALID, "\"\xe2\x80\xae\"", "not \"%s\"",
                     "\r\x7f");
    assert_string_equal(f.errors[0].path, "spec.env[a\x1b[2J\n]"); /* to find the value */
    stw_findings_text(&f, &all);
    assert_string_equal(stw_buf_str(&all),
                        "spec.env[a\\x1b[2J\\n]: Invalid value: \"\\u202e\": not "
                        "\"\\r\\x7f\"");
    stw_findings_warn(&f, "unknown field \"%s\"", "a\x1b]0;x\x07\xe2\x80\xae");
    assert_string_equal(f.warnings[0], "unknown field \"a\\x1b]0;x\\x07\\u202e\"");
}

#define X10 "xxxxxxxxxx"
#define X70 X10 X10 X10 X10 X10 X10 X10

static void test_long_finding_values_are_truncated(void **state)
{
    static const struct {
        const char *value, *want;
    } cases[] = {
        {"\"" X70 "12345678\"", "\"" X70 "12345678\""},             /* 80 bytes: whole */
        {"\"" X70 "123456789\"", "\"" X70 "123456789\""},           /* closing quote not counted */
        {"\"" X70 "1234567890\"", "\"" X70 "123456789...\""},       /* one more */
        {"\"" X70 "12345678\xc3\xa4z\"", "\"" X70 "12345678...\""}, /* not cut within a character */
        {"\"" X70 "1234567\\n4\"", "\"" X70 "1234567\\n...\""},     /* nor within an escape */
        {"\"" X70 "12345678\\n\"", "\"" X70 "12345678...\""},
        {"{ \"a\" :\n [ 1,\t2 ] }", "{\"a\":[1,2]}"},       /* one line */
        {"\"a  b\"", "\"a  b\""},                           /* but not within strings */
        {"\"\\u003chtml\\u003E \\u0026\"", "\"<html> &\""}, /* without escapes */
        {"\"\\u0022\\u005c\\u0007\\u2028\"", "\"\\u0022\\u005c\\u0007\\u2028\""},
        {"[\"" X70 "\",\"" X70 "\"]", "[\"" X70 "\",\"xxxxx...\""},
        {"[1111111111,2222222222,3333333333,4444444444,5555555555,6666666666,7777777777,"
         "8888888888]",
         "[1111111111,2222222222,3333333333,4444444444,5555555555,6666666666,7777777777,88..."},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autofindings struct stw_findings f = {0};
        stw_findings_add(&f, "", STW_INVALID, cases[i].value, "%s", "");
        assert_string_equal(f.errors[0].value, cases[i].want);
    }
}

static void test_finding_values_come_from_the_document(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    (void)state;
    scan(&doc, "{\"s\":\"x\",\"n\":7,\"z\":null}");
    struct stw_json root = stw_json_root(&doc);
    stw_findings_at(&f, "s", STW_INVALID, stw_json_get(root, "s"), "bad");
    stw_findings_at(&f, "n", STW_INVALID, stw_json_get(root, "n"), "bad");
    stw_findings_at(&f, "z", STW_INVALID, stw_json_get(root, "z"), "bad");
    stw_findings_at(&f, "-", STW_INVALID, stw_json_get(root, "-"), "bad %d", 4);
    assert_text(&f.errors[0], "s: Invalid value: \"x\": bad");
    assert_text(&f.errors[1], "n: Invalid value: 7: bad");
    assert_text(&f.errors[2], "z: Invalid value: null: bad");
    assert_text(&f.errors[3], "-: Invalid value: bad 4");
}

static void test_number_of_findings_is_capped(void **state)
{
    stw_autofindings struct stw_findings f = {0};
    (void)state;
    for (int i = 0; i < 120; i++) {
        stw_findings_add(&f, "spec.x", STW_INVALID, NULL, "%d", i);
        stw_findings_warn(&f, "warning %d", i);
    }
    assert_int_equal(f.error_count, 100);
    assert_int_equal(f.errors_left_out, 20);
    assert_string_equal(f.errors[99].message, "99");
    assert_int_equal(f.warning_count, 51);
    assert_int_equal(f.warnings_left_out, 70);
    assert_string_equal(f.warnings[49], "warning 49");
    assert_string_equal(f.warnings[50], "70 more warnings are not shown");
    assert_false(f.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finding_texts_equal_the_api_servers),
        cmocka_unit_test(test_finding_texts_have_no_control_characters),
        cmocka_unit_test(test_long_finding_values_are_truncated),
        cmocka_unit_test(test_finding_values_come_from_the_document),
        cmocka_unit_test(test_number_of_findings_is_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
