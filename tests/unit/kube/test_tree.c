/* SPDX-License-Identifier: Apache-2.0
 *
 * The output equals that of jansson. */
#include "kube/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_tree_is_written_as_by_jansson(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "[{},[],null,true,false]",
        "{\"b\":1,\"a\":-9223372036854775808}",
        "[0.1,1e300,-2.5,1.0]",
        "[\"\\u0000\\u0011\\b\\f\\n\\r\\t\\\"\\\\/\\u00e9\\ud83d\\ude00\"]",
        "{\"\":{\"x\\u0001\":[1,[2,[3,{\"y\":\"z\"}]]]}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_auto_t *tree = json_loads(texts[i], JSON_ALLOW_NUL, NULL);
        char *want = json_dumps(tree, JSON_COMPACT);
        stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
        assert_non_null(tree);
        assert_int_equal(stw_tree_write(tree, &out), 0);
        assert_string_equal(stw_buf_str(&out), want);
        free(want);
    }
}

static json_t *read_text(const char *text)
{
    stw_autojson struct stw_json_doc doc = {0};
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), NULL), 0);
    return stw_tree_read(stw_json_root(&doc));
}

/* The tree of tokens is that of jansson, and has what jansson refuses. */
static void test_tree_is_read_as_by_jansson(void **state)
{
    static const struct {
        const char *text, *want; /* NULL: as jansson reads it */
    } rows[] = {
        {"[{},[],null,true,false,\"\",\"a\",\"\\u0000\\\"\\u00e9\",-1,9223372036854775807,0.5,"
         "1e300]",
         NULL},
        {"{\"b\":1,\"a\":{\"c\\n\":[[2]]}}", NULL},
        {"[100000000000000000000,-9223372036854775809]", "[1e20,-9.2233720368547758e18]"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        json_auto_t *tree = read_text(rows[i].text);
        const char *want = rows[i].want ? rows[i].want : rows[i].text;
        json_auto_t *theirs = json_loads(want, JSON_ALLOW_NUL, NULL);
        assert_non_null(tree);
        assert_true(json_equal(tree, theirs));
    }
    assert_null(read_text("{\"a\":{\"b\\u0000\":1}}"));
    assert_null(stw_tree_read(STW_JSON_NONE));
}

static void test_tree_beyond_the_buffer_is_an_error(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(4);
    json_auto_t *tree = json_pack("{s:s}", "a", "too long");
    (void)state;
    assert_int_equal(stw_tree_write(tree, &out), -1);
}

static void test_too_deep_tree_is_an_error(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1u << 20);
    json_t *tree = json_array();
    (void)state;
    for (int i = 0; i < 600; i++)
        tree = json_pack("[o]", tree);
    assert_int_equal(stw_tree_write(tree, &out), -1);
    json_decref(tree);
}

static void test_empty_text_adds_no_member(void **state)
{
    json_auto_t *tree = json_object();
    (void)state;
    stw_tree_set_text(tree, "a", "one");
    stw_tree_set_text(tree, "b", "");
    stw_tree_set_text(tree, "c", NULL);
    assert_int_equal(json_object_size(tree), 1);
    stw_tree_set_text(tree, "a", ""); /* what is there stays */
    assert_string_equal(stw_tree_text(tree, "a"), "one");
}

/* Any client that may write a status can put any number there. */
static void test_large_counts_are_capped(void **state)
{
    static const struct {
        const char *json;
        int64_t count;
    } cases[] = {{"7", 7},
                 {"0", 0},
                 {"9223372036854775807", STW_TREE_COUNT_MAX},
                 {"-1", 0},
                 {"1.5", 0},
                 {"-9223372036854775808", 0},
                 {"\"7\"", 0},
                 {"null", 0},
                 {"9007199254740993", STW_TREE_COUNT_MAX},
                 {"[9007199254740992]", 0}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        json_auto_t *tree = json_object();
        assert_int_equal(
            json_object_set_new(tree, "n", json_loads(cases[i].json, JSON_DECODE_ANY, NULL)), 0);
        assert_int_equal(stw_tree_count(tree, "n"), cases[i].count);
        assert_int_equal(stw_tree_count(tree, "other"), 0);
    }
    assert_int_equal(stw_tree_count(NULL, "n"), 0);
}

/* What stw_tree_pack() lacked; it must have failed. */
static void assert_missing(unsigned line, json_t *tree, const char *want)
{
    char path[STW_TREE_PATH_LEN];
    stw_tree_take_missing(path);
    if (tree || !stw_streq(path, want))
        fail_msg("line %u: want \"%s\", got \"%s\"", line, want, path);
}
#define MISSING(want, ...) assert_missing(__LINE__, stw_tree_pack(__VA_ARGS__), (want))

static void test_null_value_is_named(void **state)
{
    const char *none = NULL;
    json_t *no_tree = NULL;
    (void)state;
    MISSING("a", "{s:s}", "a", none);
    MISSING("a.b", "{s:{s:s}}", "a", "b", none);
    MISSING("c", "{s:s, s:i, s:s}", "a", "x", "b", 1, "c", none);
    MISSING("f.g", "{s:I,s:f,s:b,s:n,s:s?,s:{s:o}}", "a", (json_int_t)1, "b", 1.5, "c", 1, "d", "e",
            none, "f", "g", no_tree);
    MISSING("a[1].b", "{s:[i,{s:s}],s:s}", "a", 1, "b", none, "z", "z");
    MISSING("c", "{s:s#,s:s%,s:s+}", "a", "xy", 1, "b", "xy", (size_t)1, "c", "x", none);
    MISSING("metadata.labels.app", "{s:s,s:o,s:o}", "kind", "Service", "metadata",
            stw_tree_pack("{s:s,s:o}", "name", "x", "labels", stw_tree_pack("{s:s}", "app", none)),
            "spec", json_object());
    MISSING("", "{s:s}", "a", "\xff"); /* not UTF-8: nothing is NULL */
}

static void test_tree_is_packed_as_by_jansson(void **state)
{
    char path[STW_TREE_PATH_LEN];
    const char *none = NULL;
    (void)state;
    json_auto_t *tree = stw_tree_pack("{s:s,s:[i,b],s:s?,s:s*,s:{s:o}}", "a", "x", "b", 1, 1, "c",
                                      none, "d", none, "e", "f", json_object());
    json_auto_t *want =
        json_loads("{\"a\":\"x\",\"b\":[1,true],\"c\":null,\"e\":{\"f\":{}}}", 0, NULL);
    assert_true(json_equal(tree, want));
    stw_tree_take_missing(path);
    assert_string_equal(path, "");
}

/* The first word says of what; it is said once. */
static void test_pack_error_names_the_value_once(void **state)
{
    struct stw_error err = {0};
    const char *none = NULL;
    (void)state;
    assert_null(stw_tree_pack("{s:{s:s}}", "spec", "clusterIP", none));
    assert_int_equal(stw_tree_fail("the manifest of Service", &err), -1);
    assert_string_equal(err.text, "the manifest of Service has no value for spec.clusterIP");
    assert_int_equal(stw_tree_fail("the manifest of Service", &err), -1);
    assert_non_null(strstr(err.text, "the manifest of Service is NULL: a value in it is NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_is_written_as_by_jansson),
        cmocka_unit_test(test_tree_is_read_as_by_jansson),
        cmocka_unit_test(test_tree_beyond_the_buffer_is_an_error),
        cmocka_unit_test(test_too_deep_tree_is_an_error),
        cmocka_unit_test(test_empty_text_adds_no_member),
        cmocka_unit_test(test_large_counts_are_capped),
        cmocka_unit_test(test_null_value_is_named),
        cmocka_unit_test(test_tree_is_packed_as_by_jansson),
        cmocka_unit_test(test_pack_error_names_the_value_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
