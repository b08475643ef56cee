/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Scans a copy of the exact size, so that a sanitizer reports reads past the end. */
static int scan(struct stw_json_doc *doc, const char *text, size_t len, struct stw_error *err)
{
    static char *copy;
    free(copy);
    copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    return stw_json_scan(doc, copy, len, err);
}

static void test_valid_json_is_accepted(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "[]",
        " \t\r\n[ ] \n",
        "[0,-0,1,-1,10,9223372036854775807,-9223372036854775808]",
        "[0.0,-0.0,1.5,1e5,1E+5,1e-5,1.25e10,1e-400,0e999999999999999999999]",
        "[1.7976931348623157e308,179769313486231570000000e285,0.00000017976931348623157e315]",
        /* the largest real that still rounds down to a finite one */
        "[1.7976931348623158079e308]",
        "[true,false,null]",
        "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}],\"\":0}",
        "[\"\",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\u0001\\uABCD\\uabcd\",\"\\ud83d\\ude00\"]",
        "[\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\"]",
        "[\"\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"]",
        "{\"ab\":1,\"ba\":2,\"\\u0061b\\u0063\":3}",
    };
    stw_autojson struct stw_json_doc doc = {0};
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {.text = ""};
        int rc = scan(&doc, rows[i], strlen(rows[i]), &err);
        if (rc != 0)
            fail_msg("%s: %s", rows[i], err.text);
        assert_true(stw_json_type(stw_json_root(&doc)) >= STW_JSON_ARRAY);
    }
}

static const struct {
    const char *text, *what; /* part of the message */
} refusals[] = {
    {"", "line 1 column 1 (byte 0): the text ends too early"},
    {" ", "the text ends too early"},
    {"1", "an object or an array is expected here"},
    {"\"a\"", "an object or an array"},
    {"\xef\xbb\xbf{}", "an object or an array"},
    {"{", "the text ends too early"},
    {"{\"a\"", "the text ends too early"},
    {"{\"a\":", "the text ends too early"},
    {"{\"a\":1", "the text ends too early"},
    {"[1,", "the text ends too early"},
    {"[1,]", "a value is expected here"},
    {"[,1]", "a value is expected here"},
    {"{\"a\":1,}", "a key in double quotes"},
    {"{a:1}", "a key in double quotes"},
    {"{'a':1}", "a key in double quotes"},
    {"{1:1}", "a key in double quotes"},
    {"{\"a\" 1}", "a colon is expected"},
    {"{\"a\":1 \"b\":2}", "a comma or a closing brace"},
    {"[1 2]", "a comma or a closing bracket"},
    {"[1}", "a comma or a closing bracket"},
    {"{\"a\":1]", "a comma or a closing brace"},
    {"[]]", "more text after the end"},
    {"{}{}", "more text after the end"},
    {"[tru]", "a value is expected"},
    {"[True]", "a value is expected"},
    {"[truee]", "a comma or a closing bracket"},
    {"[nul", "a value is expected"},
    {"[01]", "must not begin with 0"},
    {"[-01]", "must not begin with 0"},
    {"[-]", "not followed by a digit"},
    {"[+1]", "a value is expected"},
    {"[.5]", "a value is expected"},
    {"[1.]", "point is not followed"},
    {"[1.e5]", "point is not followed"},
    {"[1e]", "an exponent has no digits"},
    {"[1e+]", "an exponent has no digits"},
    {"[0x1]", "a comma or a closing bracket"},
    {"[NaN]", "a value is expected"},
    {"[1e309]", "a number is too large"},
    {"[-1e309]", "a number is too large"},
    {"[1.7976931348623159e308]", "a number is too large"},
    {"[1e99999999999999999999]", "a number is too large"},
    {"[\"a]", "a string is not closed"},
    {"[\"a\\\"]", "a string is not closed"},
    {"[\"\\", "a string is not closed"},
    {"[\"\n\"]", "a control character"},
    {"[\"\x1f\"]", "a control character"},
    {"[\"\\x\"]", "not an escape"},
    {"[\"\\u12\"]", "four hexadecimal digits"},
    {"[\"\\u12g4\"]", "four hexadecimal digits"},
    {"[\"\\u000\"]", "four hexadecimal digits"},
    {"[\"\\ud800\"]", "surrogate"},
    {"[\"\\ud800\\u0041\"]", "surrogate"},
    {"[\"\\ud800\\ud800\"]", "surrogate"},
    {"[\"\\udc00\"]", "surrogate"},
    {"[\"\\ud800\\udc\"]", "surrogate"},
    {"[\"\x80\"]", "not valid UTF-8"},
    {"[\"\xc0\xaf\"]", "not valid UTF-8"},
    {"[\"\xc1\xbf\"]", "not valid UTF-8"},
    {"[\"\xe0\x9f\xbf\"]", "not valid UTF-8"},
    {"[\"\xed\xa0\x80\"]", "not valid UTF-8"},
    {"[\"\xf0\x8f\xbf\xbf\"]", "not valid UTF-8"},
    {"[\"\xf4\x90\x80\x80\"]", "not valid UTF-8"},
    {"[\"\xf5\x80\x80\x80\"]", "not valid UTF-8"},
    {"[\"\xe6\xac\"]", "not valid UTF-8"},
    {"[\"\xe6", "not valid UTF-8"},
    {"{\"a\":1,\"a\":2}", "line 1 column 8 (byte 7): duplicate key \"a\""},
    {"{\"a\":1,\"\\u0061\":2}", "duplicate key \"\\u0061\""},
    {"[{\"x\":{\"kk\":1,\"b\":2,\"kk\":3}}]", "duplicate key \"kk\""},
    {"{\"\":1,\"\":2}", "duplicate key \"\""},
    {"[\n  1,\n  \"\xe6\xac\xa2\" x]", "line 3 column 7 (byte 15)"},
};

static void test_invalid_json_is_refused(void **state)
{
    (void)state;
    stw_autojson struct stw_json_doc doc = {0};
    for (size_t i = 0; i < STW_COUNT(refusals); i++) {
        struct stw_error err = {.text = ""};
        const char *text = refusals[i].text;
        assert_int_equal(scan(&doc, text, strlen(text), &err), -1);
        assert_int_equal(err.code, STW_ERR_INVALID);
        if (!strstr(err.text, refusals[i].what))
            fail_msg("%s: \"%s\" lacks \"%s\"", text, err.text, refusals[i].what);
        assert_int_equal(stw_json_type(stw_json_root(&doc)), STW_JSON_ABSENT);
    }
    assert_int_equal(scan(&doc, "[1\0]", 4, NULL), -1);
    assert_int_equal(scan(&doc, "[\"\0\"]", 5, NULL), -1);
}

/* Every proper prefix of a text is refused. */
static void test_truncated_json_is_refused(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1,-2.5e3,true,null,\"x\\u00e9\\ud83d\\ude00 long enough for a vector\"],\"b\":{}}";
    stw_autojson struct stw_json_doc doc = {0};
    assert_int_equal(scan(&doc, text, sizeof(text) - 1, NULL), 0);
    for (size_t len = 0; len < sizeof(text) - 1; len++)
        assert_int_equal(scan(&doc, text, len, NULL), -1);
}

static int scan_nested(unsigned depth, struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf b = STW_BUF_INIT(1 << 20);
    for (unsigned i = 0; i < depth; i++)
        stw_buf_adds(&b, i % 2 ? "{\"a\":" : "[");
    if (depth % 2 == 0)
        stw_buf_addc(&b, '1');
    for (unsigned i = depth; i-- > 0;)
        stw_buf_addc(&b, i % 2 ? '}' : ']');
    return stw_json_scan(&doc, stw_buf_str(&b), b.len, err);
}

static void test_json_depth_is_limited(void **state)
{
    (void)state;
    struct stw_error err;
    assert_int_equal(scan_nested(STW_JSON_MAX_DEPTH, &err), 0);
    assert_int_equal(scan_nested(STW_JSON_MAX_DEPTH + 1, &err), 0);
    assert_int_equal(scan_nested(STW_JSON_NESTING_MAX, &err), 0);
    assert_int_equal(scan_nested(STW_JSON_NESTING_MAX + 1, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    assert_non_null(strstr(err.text, "nested too deeply"));
    assert_int_equal(scan_nested(100001, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
}

/* `inner` below STW_JSON_MAX_DEPTH - 1 lists in the member "a", with a member "b" behind it. */
static void write_deep(const char *inner, struct stw_buf *out)
{
    stw_buf_adds(out, "{\"a\":");
    for (unsigned i = 1; i < STW_JSON_MAX_DEPTH; i++)
        stw_buf_addc(out, '[');
    stw_buf_adds(out, inner);
    for (unsigned i = 1; i < STW_JSON_MAX_DEPTH; i++)
        stw_buf_addc(out, ']');
    stw_buf_adds(out, ",\"b\":[1,2]}");
}

/* What is nested too deeply is checked, kept as text, and hides nothing beside it. */
static void test_too_deep_json_values_are_opaque(void **state)
{
    static const struct {
        const char *inner;
        int rc;
    } rows[] = {
        {"{}", 0},
        {"[]", 0},
        {"{\"c\":[1,-2e3,\"x\\n\",{\"d\":null}],\"e\":true}", 0},
        {"[[],{},[{}]]", 0},
        {"[[],{},[{}]", -1},
        {"{\"c\":[1}]", -1},
        {"{\"c\"}", -1},
        {"{\"c\":1,}", -1},
        {"[1,]", -1},
        {"[,1]", -1},
        {"{,}", -1},
        {"{1:2}", -1},
        {"[01]", -1},
        {"[nul]", -1},
        {"[\"\\x\"]", -1},
        {"[1 2]", -1},
        {"[1}", -1},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autojson struct stw_json_doc doc = {0}, same = {0};
        stw_autobuf struct stw_buf b = STW_BUF_INIT(4096);
        struct stw_json v;
        int64_t n = 0;
        size_t len;
        write_deep(rows[i].inner, &b);
        assert_int_equal(scan(&doc, stw_buf_str(&b), b.len, NULL), rows[i].rc);
        if (rows[i].rc != 0)
            continue;
        v = stw_json_get(stw_json_root(&doc), "a");
        assert_true(stw_json_has_deep(stw_json_root(&doc)) && stw_json_has_deep(v));
        assert_false(stw_json_has_deep(stw_json_get(stw_json_root(&doc), "b")));
        for (unsigned level = 1; level < STW_JSON_MAX_DEPTH; level++)
            v = stw_json_at(v, 0);
        assert_int_equal(stw_json_type(v), STW_JSON_DEEP);
        assert_true(stw_json_there(v));
        assert_int_equal(stw_json_size(v), 0);
        assert_int_equal(stw_json_weight(v), 1);
        const char *raw = stw_json_raw(v, &len);
        assert_int_equal(len, strlen(rows[i].inner));
        assert_memory_equal(raw, rows[i].inner, len);
        v = stw_json_at(stw_json_get(stw_json_root(&doc), "b"), 1);
        assert_true(stw_json_int(v, &n) == 0 && n == 2);
        assert_int_equal(stw_json_scan(&same, stw_buf_str(&b), b.len, NULL), 0);
        assert_true(stw_json_equal(stw_json_root(&doc), stw_json_root(&same)));
    }
}

/* The API server sends the escape for NUL: it is part of a string, and of no C string. */
static void test_json_strings_may_contain_nul(void **state)
{
    static const char text[] = "{\"v\":\"a\\u0000b\",\"k\\u0000\":1,\"plain\":\"\\u0001\"}";
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(64);
    char copy[16] = "before";
    (void)state;
    assert_int_equal(scan(&doc, text, strlen(text), NULL), 0);
    struct stw_json v = stw_json_get(stw_json_root(&doc), "v"), key;
    assert_true(stw_json_has_nul(v));
    assert_int_equal(stw_json_size(v), 3);
    assert_int_equal(stw_json_strcpy(v, copy, sizeof(copy)), -1);
    assert_null(stw_json_strdup(v));
    assert_false(stw_json_is(v, "a"));
    stw_json_cut(v, copy, sizeof(copy));
    assert_string_equal(copy, "a?b");
    stw_json_str(v, &out);
    assert_int_equal(out.len, 3);
    assert_memory_equal(out.data, "a\0b", 3);
    assert_int_equal(stw_json_type(stw_json_get(stw_json_root(&doc), "k")), STW_JSON_ABSENT);
    (void)stw_json_first(stw_json_root(&doc), &key);
    assert_false(stw_json_has_nul(key));
    assert_false(stw_json_has_nul(stw_json_get(stw_json_root(&doc), "plain")));
    assert_true(stw_json_has_nul_key(stw_json_root(&doc)));
    assert_false(stw_json_has_nul_key(v));
    assert_int_equal(scan(&doc, "{\"a\\u0000\":1,\"a\\u0000\":1}", 25, NULL), -1);
}

/* As Go reads them: an integer if it fits, else a real. */
static void test_large_json_integers_are_reals(void **state)
{
    static const struct {
        const char *text;
        enum stw_json_type type;
    } rows[] = {
        {"9223372036854775807", STW_JSON_INT},    {"9223372036854775808", STW_JSON_REAL},
        {"-9223372036854775808", STW_JSON_INT},   {"-9223372036854775809", STW_JSON_REAL},
        {"100000000000000000000", STW_JSON_REAL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char text[64];
        size_t len;
        int64_t n;
        stw_autojson struct stw_json_doc doc = {0};
        stw_format(text, sizeof(text), "[%s]", rows[i].text);
        assert_int_equal(scan(&doc, text, strlen(text), NULL), 0);
        struct stw_json v = stw_json_at(stw_json_root(&doc), 0);
        assert_int_equal(stw_json_type(v), rows[i].type);
        assert_int_equal(stw_json_int(v, &n), rows[i].type == STW_JSON_INT ? 0 : -1);
        const char *raw = stw_json_raw(v, &len);
        assert_int_equal(len, strlen(rows[i].text));
        assert_memory_equal(raw, rows[i].text, len);
    }
}

/* Special bytes at each position in a vector and around it. */
static void test_json_string_escapes_at_every_position(void **state)
{
    (void)state;
    static const struct {
        const char *piece, *value; /* NULL: refused */
    } rows[] = {
        {"\\n", "\n"},  {"\\\"", "\""}, {"\\u003c", "<"}, {"\xe6\xac\xa2", "\xe6\xac\xa2"},
        {"\x1f", NULL}, {"\x80", NULL}, {"\x7f", "\x7f"}, {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
    };
    stw_autojson struct stw_json_doc doc = {0};
    for (size_t row = 0; row < STW_COUNT(rows); row++) {
        for (int before = 0; before < 40; before++) {
            for (int behind = 0; behind < 40; behind += 13) {
                char text[160], want[160], got[160];
                static const char fill[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
                (void)snprintf(text, sizeof(text), "[\"%.*s%s%.*s\"]", before, fill,
                               rows[row].piece, behind, fill);
                (void)snprintf(want, sizeof(want), "%.*s%s%.*s", before, fill,
                               rows[row].value ? rows[row].value : "", behind, fill);
                int rc = scan(&doc, text, strlen(text), NULL);
                assert_int_equal(rc, rows[row].value ? 0 : -1);
                if (rc != 0)
                    continue;
                struct stw_json v = stw_json_at(stw_json_root(&doc), 0);
                assert_int_equal(stw_json_size(v), strlen(want));
                assert_int_equal(stw_json_strcpy(v, got, sizeof(got)), 0);
                assert_string_equal(got, want);
                assert_true(stw_json_is(v, want));
            }
        }
    }
}

static void test_duplicate_json_keys_are_found_among_many(void **state)
{
    (void)state;
    /* Counts around the switch from comparing pairs to hashing.  Each key is duplicated in turn. */
    static const unsigned counts[] = {2, 8, 24, 25, 26, 200};
    for (size_t c = 0; c < STW_COUNT(counts); c++) {
        for (unsigned twin = 0; twin <= counts[c]; twin++) {
            stw_autojson struct stw_json_doc doc = {0};
            stw_autobuf struct stw_buf b = STW_BUF_INIT(1 << 20);
            struct stw_error err;
            for (unsigned i = 0; i < counts[c]; i++)
                stw_buf_addf(&b, "%s\"app.kubernetes.io/%03u-same-end\":[%u]", i ? "," : "{", i, i);
            /* the last `twin` duplicates no key; the others are duplicates spelled with an
             * escape */
            stw_buf_addf(&b, ",\"app.kubernetes.io\\u002f%03u-same-end\":0}", twin);
            int rc = scan(&doc, stw_buf_str(&b), b.len, &err);
            assert_int_equal(rc, twin < counts[c] ? -1 : 0);
            if (rc != 0)
                assert_non_null(strstr(err.text, "duplicate key"));
        }
    }
}

static void test_json_accessors_read_values(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":{\"b\":{\"c\":-42}},\"list\":[10,\"two\",3.5,true,null],\"s\":\"x\\u00e9\","
        "\"e\\\"s\":1,\"yes\":true,\"no\":false}";
    stw_autojson struct stw_json_doc doc = {0};
    assert_int_equal(scan(&doc, text, sizeof(text) - 1, NULL), 0);
    struct stw_json root = stw_json_root(&doc), list = stw_json_get(root, "list"), key, v;
    int64_t n = 0;
    size_t len;
    char small[4];

    assert_int_equal(stw_json_size(root), 6);
    assert_int_equal(stw_json_int(stw_json_path(root, "a.b.c"), &n), 0);
    assert_int_equal(n, -42);
    assert_int_equal(stw_json_type(stw_json_path(root, "a.b.x")), STW_JSON_ABSENT);
    assert_int_equal(stw_json_type(stw_json_path(root, "a.x.c")), STW_JSON_ABSENT);
    assert_int_equal(stw_json_type(stw_json_path(root, "list.x")), STW_JSON_ABSENT);
    assert_int_equal(stw_json_type(stw_json_get(root, "e\"s")), STW_JSON_INT);
    assert_int_equal(stw_json_type(stw_json_get(root, "e\\\"s")), STW_JSON_ABSENT);
    assert_int_equal(stw_json_size(list), 5);
    assert_true(stw_json_is(stw_json_at(list, 1), "two"));
    assert_false(stw_json_is(stw_json_at(list, 1), "tw"));
    assert_false(stw_json_is(stw_json_at(list, 0), "10"));
    assert_false(stw_json_there(stw_json_at(list, 4)));
    assert_int_equal(stw_json_type(stw_json_at(list, 4)), STW_JSON_NULL);
    assert_int_equal(stw_json_type(stw_json_at(list, 5)), STW_JSON_ABSENT);
    assert_int_equal(stw_json_int(stw_json_at(list, 2), &n), -1);
    assert_int_equal(n, -42);
    assert_true(stw_json_bool(stw_json_get(root, "yes"), false));
    assert_false(stw_json_bool(stw_json_get(root, "no"), true));
    assert_true(stw_json_bool(stw_json_get(root, "s"), true));
    assert_false(stw_json_bool(stw_json_get(root, "none"), false));
    assert_int_equal(stw_json_strcpy(stw_json_get(root, "s"), small, sizeof(small)), 0);
    assert_string_equal(small, "x\xc3\xa9");
    assert_int_equal(stw_json_strcpy(stw_json_get(root, "s"), small, 3), -1);
    assert_memory_equal(stw_json_raw(stw_json_get(root, "s"), &len), "\"x\\u00e9\"", 9);
    assert_int_equal(len, 9);
    assert_memory_equal(stw_json_raw(stw_json_get(root, "a"), &len), "{\"b\":{\"c\":-42}}", 15);
    assert_int_equal(len, 15);
    n = 0;
    stw_json_foreach (root, key, v)
        n += stw_json_type(key) == STW_JSON_STRING;
    assert_int_equal(n, 6);
    n = 0;
    stw_json_foreach (list, key, v)
        n += stw_json_type(key) == STW_JSON_ABSENT;
    assert_int_equal(n, 5);
}

static void test_accessors_of_absent_json_are_safe(void **state)
{
    (void)state;
    struct stw_json none = STW_JSON_NONE, key, v;
    struct stw_json_doc empty = {0};
    stw_autobuf struct stw_buf b = STW_BUF_INIT(10);
    int64_t n;
    size_t len = 9;
    char out[4];

    assert_int_equal(stw_json_type(stw_json_root(&empty)), STW_JSON_ABSENT);
    assert_int_equal(stw_json_type(none), STW_JSON_ABSENT);
    assert_int_equal(stw_json_size(none), 0);
    assert_int_equal(stw_json_type(stw_json_get(none, "a")), STW_JSON_ABSENT);
    assert_int_equal(stw_json_type(stw_json_path(none, "a.b")), STW_JSON_ABSENT);
    assert_int_equal(stw_json_type(stw_json_at(none, 0)), STW_JSON_ABSENT);
    assert_false(stw_json_is(none, ""));
    assert_null(stw_json_strdup(none));
    assert_int_equal(stw_json_strcpy(none, out, sizeof(out)), -1);
    assert_int_equal(stw_json_int(none, &n), -1);
    assert_string_equal(stw_json_raw(none, &len), "");
    assert_int_equal(len, 0);
    assert_true(stw_json_equal(none, none));
    assert_false(stw_json_there(none));
    assert_true(stw_json_bool(none, true));
    assert_int_equal(stw_json_weight(none), 0);
    assert_int_equal(stw_json_compare(none, none), 0);
    stw_json_cut(none, out, sizeof(out));
    assert_string_equal(out, "");
    stw_json_str(none, &b);
    assert_int_equal(b.len, 0);
    assert_int_equal(stw_json_type(stw_json_first(none, &key)), STW_JSON_ABSENT);
    assert_int_equal(stw_json_type(stw_json_after(none, none, &key)), STW_JSON_ABSENT);
    assert_int_equal(stw_json_type(key), STW_JSON_ABSENT);
    stw_json_foreach (none, key, v)
        fail();
    stw_json_done(&empty);
}

/* In the order of stw_json_compare(); those that are not strings are equal. */
static void test_json_comparison_accepts_any_type(void **state)
{
    static const char text[] =
        "[null,1,-2.5,true,[\"a\\n\"],{\"a\":1},\"\",\"b\",\"aa\",\"a\\u0062\"]";
    const uint32_t first_string = 6, count = 10;
    stw_autojson struct stw_json_doc doc = {0};
    (void)state;
    assert_int_equal(scan(&doc, text, strlen(text), NULL), 0);
    struct stw_json all = stw_json_root(&doc);
    assert_int_equal(stw_json_size(all), count);
    for (uint32_t i = 0; i <= count; i++) /* the last one is absent */
        for (uint32_t k = 0; k <= count; k++) {
            uint32_t a = i < first_string || i == count ? 0 : i;
            uint32_t b = k < first_string || k == count ? 0 : k;
            int order = stw_json_compare(stw_json_at(all, i), stw_json_at(all, k));
            assert_int_equal((order > 0) - (order < 0), (a > b) - (a < b));
        }
}

static void test_json_values_are_compared(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"{}", "{ }", true},
        {"{}", "[]", false},
        {"[1,2]", "[1, 2]", true},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1]", false},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}", false},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"\\u0061\":\"\\u003cp\\u003e\"}", "{\"a\":\"<p>\"}", true},
        {"[\"a\"]", "[\"b\"]", false},
        {"[-0]", "[0]", true},
        {"[1]", "[1.0]", false}, /* integers and reals are different types, as in jansson */
        {"[1.50]", "[15e-1]", true},
        {"[1.5]", "[1.6]", false},
        {"[null]", "[false]", false},
        {"[true]", "[true]", true},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autojson struct stw_json_doc a = {0}, b = {0};
        assert_int_equal(stw_json_scan(&a, rows[i].a, strlen(rows[i].a), NULL), 0);
        assert_int_equal(stw_json_scan(&b, rows[i].b, strlen(rows[i].b), NULL), 0);
        assert_int_equal(stw_json_equal(stw_json_root(&a), stw_json_root(&b)), rows[i].same);
        assert_int_equal(stw_json_equal(stw_json_root(&b), stw_json_root(&a)), rows[i].same);
    }
}

/* Members in a different order at every level: neither depth nor width may multiply the work. */
static void test_json_comparison_of_reordered_members_is_fast(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf x = STW_BUF_INIT(1 << 24), y = STW_BUF_INIT(1 << 24);
    stw_autojson struct stw_json_doc a = {0}, b = {0};

    for (unsigned i = 0; i < STW_JSON_MAX_DEPTH - 1; i++) {
        stw_buf_adds(&x, "{\"b\":1,\"c\":2,\"a\":");
        stw_buf_adds(&y, "{\"c\":2,\"b\":1,\"a\":");
    }
    stw_buf_addc(&x, '{');
    stw_buf_addc(&y, '{');
    for (unsigned i = 0; i < 50000; i++) {
        stw_buf_addf(&x, "%s\"k%u\":%u", i ? "," : "", i, i);
        stw_buf_addf(&y, "%s\"k%u\":%u", i ? "," : "", 49999 - i, 49999 - i);
    }
    for (unsigned i = 0; i < STW_JSON_MAX_DEPTH; i++) {
        stw_buf_addc(&x, '}');
        stw_buf_addc(&y, '}');
    }
    assert_int_equal(stw_json_scan(&a, stw_buf_str(&x), x.len, NULL), 0);
    assert_int_equal(stw_json_scan(&b, stw_buf_str(&y), y.len, NULL), 0);
    assert_true(stw_json_equal(stw_json_root(&a), stw_json_root(&b)));
}

static void test_json_prefix_is_scanned(void **state)
{
    static const struct {
        const char *text;
        int rc;
        size_t len;
    } rows[] = {
        {"{}", 0, 2},      {"{\"a\":[1]},{", 0, 9}, {" [] x", 0, 3}, {"{\"a\":1", -1, 0},
        {"{\"a\"", -1, 0}, {"{\"a", -1, 0},         {"", -1, 0},     {"1", -1, 0},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_json_doc doc = {0};
        size_t len = 0;
        assert_int_equal(stw_json_scan_first(&doc, rows[i].text, strlen(rows[i].text), &len, NULL),
                         rows[i].rc);
        assert_int_equal(len, rows[i].len);
        assert_int_equal(doc.len, rows[i].len);
        stw_json_done(&doc);
    }
}

static void test_trusted_json_skips_the_duplicate_check(void **state)
{
    struct stw_json_doc doc = {.trusted = true};
    const char *text = "{\"a\":1,\"a\":2}";
    int64_t n = 0;
    (void)state;
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), NULL), 0);
    assert_int_equal(stw_json_int(stw_json_get(stw_json_root(&doc), "a"), &n), 0);
    assert_int_equal(n, 1);
    doc.trusted = false;
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), NULL), -1);
    stw_json_done(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_json_is_accepted),
        cmocka_unit_test(test_invalid_json_is_refused),
        cmocka_unit_test(test_truncated_json_is_refused),
        cmocka_unit_test(test_json_depth_is_limited),
        cmocka_unit_test(test_too_deep_json_values_are_opaque),
        cmocka_unit_test(test_json_strings_may_contain_nul),
        cmocka_unit_test(test_large_json_integers_are_reals),
        cmocka_unit_test(test_json_string_escapes_at_every_position),
        cmocka_unit_test(test_duplicate_json_keys_are_found_among_many),
        cmocka_unit_test(test_json_accessors_read_values),
        cmocka_unit_test(test_accessors_of_absent_json_are_safe),
        cmocka_unit_test(test_json_comparison_accepts_any_type),
        cmocka_unit_test(test_json_values_are_compared),
        cmocka_unit_test(test_json_comparison_of_reordered_members_is_fast),
        cmocka_unit_test(test_json_prefix_is_scanned),
        cmocka_unit_test(test_trusted_json_skips_the_duplicate_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
