/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/skim_priv.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct stw_piece piece(const char *text)
{
    return (struct stw_piece){text, strlen(text)};
}

static void expect(struct stw_piece got, const char *text)
{
    if (!text) {
        assert_null(got.at);
        return;
    }
    assert_non_null(got.at);
    assert_int_equal(got.len, strlen(text));
    assert_memory_equal(got.at, text, got.len);
}

static void test_skimmed_members_are_found(void **state)
{
    static const struct {
        const char *object, *name, *value;
    } cases[] = {
        {"{\"a\":1}", "a", "1"},
        {" {\t\"x\" : {\"a\":[2]} ,\n\"a\": \"}\\\"]\" } ", "a", "\"}\\\"]\""},
        {"{\"a\":{},\"a\":1}", "a", "{}"},
        {"{\"b\":\"a\",\"a\":[[],{}]}", "a", "[[],{}]"},
        {"{\"\\u0061\":1}", "a", NULL},
        {"{\"aa\":1}", "a", NULL},
        {"{}", "a", NULL},
        {"[\"a\",1]", "a", NULL},
        {"", "a", NULL},
        {"{\"a\"", "a", NULL},
        {"{\"a\":", "a", NULL},
        {"{\"a\":[1", "a", NULL},
        {"{\"a\":\"1", "a", NULL},
        {"{\"a\":\"1\\", "a", NULL},
        {"{\"b\":1 \"a\":2}", "a", NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        expect(stw_skim_member(piece(cases[i].object), cases[i].name), cases[i].value);
    expect(stw_skim_member((struct stw_piece){0}, "a"), NULL);
}

static void test_skimmed_elements_follow_each_other(void **state)
{
    static const char *const values[] = {"{\"a\":\"]\"}", "[1,2]", "7 ", "\"x,y\"", "{}"};
    struct stw_piece at = piece("[ {\"a\":\"]\"},[1,2] ,7 ,\"x,y\",\n{} ]"), got;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(values); i++) {
        assert_int_equal(stw_skim_element(&at, &got), 1);
        expect(got, values[i]);
    }
    assert_int_equal(stw_skim_element(&at, &got), 0);
    at = piece("[ ]");
    assert_int_equal(stw_skim_element(&at, &got), 0);
}

static void test_malformed_lists_are_refused(void **state)
{
    static const char *const texts[] = {"",      "[",      "{}",       "7",           "[1",   "[1,",
                                        "[1,]",  "[,1]",   "[1 {}]x",  "[{}{}]",      "[1]2", "[]x",
                                        "[\"a]", "[{\"a]", "[{},,{}]", "[\"a\"\"b\"]"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        struct stw_piece at = piece(texts[i]), got;
        int more = 1;
        for (size_t n = 0; more > 0; n++) {
            assert_true(n < 16);
            more = stw_skim_element(&at, &got);
        }
        if (more != -1)
            fail_msg("%s", texts[i]);
    }
}

static void add_random(struct stw_buf *out, unsigned *seed, unsigned depth)
{
    unsigned n = (unsigned)rand_r(seed) % 5, kind = (unsigned)rand_r(seed) % (depth ? 4 : 2);
    if (kind == 0) {
        stw_buf_adds(out, n & 1 ? "-1.5e3" : "null");
        return;
    }
    if (kind == 1) {
        stw_buf_adds(out, n & 1 ? "\"a,b:[{\\\"\\\\\"" : "\"\\u0041\"");
        return;
    }
    stw_buf_addc(out, kind == 2 ? '[' : '{');
    for (unsigned i = 0; i < n; i++) {
        if (i)
            stw_buf_adds(out, " ,");
        if (kind == 3)
            stw_buf_addf(out, "\"k\\n%u\" :", i);
        add_random(out, seed, depth - 1);
    }
    stw_buf_addc(out, kind == 2 ? ']' : '}');
}

/* As the scanner reads them; and it takes no more memory than was foretold. */
static void test_skimmed_lists_equal_scanned_ones(void **state)
{
    unsigned seed = 7;
    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(1 << 20);
        stw_autojson struct stw_json_doc doc = {0};
        struct stw_json key, value;
        struct stw_error err;
        stw_buf_addc(&text, '[');
        for (unsigned i = 0; i < round % 4; i++) {
            if (i)
                stw_buf_addc(&text, ',');
            add_random(&text, &seed, 5);
        }
        stw_buf_addc(&text, ']');
        if (stw_json_scan(&doc, stw_buf_str(&text), text.len, &err) != 0)
            fail_msg("%s: %s", err.text, stw_buf_str(&text));
        struct stw_piece at = {stw_buf_str(&text), text.len}, got;
        assert_true(stw_skim_memory(at) >= doc.count * sizeof(struct stw_json_token));
        stw_json_foreach (stw_json_root(&doc), key, value) {
            size_t len;
            const char *raw = stw_json_raw(value, &len);
            assert_int_equal(stw_skim_element(&at, &got), 1);
            assert_ptr_equal(got.at, raw);
            assert_int_equal(got.len, len);
        }
        assert_int_equal(stw_skim_element(&at, &got), 0);
    }
}

static void test_memory_of_long_keys_is_predicted(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1 << 20);
    (void)state;
    stw_buf_adds(&text, "{\"\\n");
    for (unsigned i = 0; i < 100000; i++)
        stw_buf_addc(&text, 'x');
    stw_buf_adds(&text, "\" : 1}");
    assert_true(stw_skim_memory((struct stw_piece){stw_buf_str(&text), text.len}) > 2 * text.len);
    text.data[2] = '_';
    text.data[3] = '_';
    assert_true(stw_skim_memory((struct stw_piece){stw_buf_str(&text), text.len}) < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skimmed_members_are_found),
        cmocka_unit_test(test_skimmed_elements_follow_each_other),
        cmocka_unit_test(test_malformed_lists_are_refused),
        cmocka_unit_test(test_skimmed_lists_equal_scanned_ones),
        cmocka_unit_test(test_memory_of_long_keys_is_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
