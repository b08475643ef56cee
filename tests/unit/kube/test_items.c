/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cache/items_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int collect(void *ctx, struct stw_json item, struct stw_error *err)
{
    size_t len;
    const char *raw = stw_json_raw(item, &len);
    stw_buf_add(ctx, raw, len);
    stw_buf_addc(ctx, '|');
    return stw_json_there(stw_json_get(item, "stop")) ? stw_fail(err, STW_ERR_CANCELLED, "stopped")
                                                      : 0;
}

/* Writes where it is, its start and the reason. */
static int collect_unreadable(void *ctx, const struct stw_unreadable_item *u, struct stw_error *err)
{
    (void)err;
    stw_buf_addf(ctx, "#%u ", u->number);
    stw_buf_add(ctx, u->text, STW_MIN(u->len, (size_t)20));
    stw_buf_addf(ctx, " %zu: %.20s|", u->len, u->why);
    return 0;
}

/* Feeds `text` in pieces of `piece` bytes, and writes its objects and the rest to `out`.  Returns
 * the error code. */
static enum stw_err feed(const char *text, size_t piece, struct stw_buf *out)
{
    const struct stw_items_sink to = {
        .item = collect, .unreadable = collect_unreadable, .ctx = out};
    struct stw_items l = {0};
    stw_autojson struct stw_json_doc rest = {0};
    struct stw_error err = {0};
    size_t size = strlen(text);
    int rc = 0;
    stw_items_reset(&l);
    for (size_t at = 0; rc == 0 && at < size; at += piece)
        rc = stw_items_feed(&l, text + at, size - at < piece ? size - at : piece, &to, &err);
    if (rc == 0)
        rc = stw_items_end(&l, &rest, &err);
    if (rc == 0)
        stw_buf_add(out, rest.text, rest.len);
    stw_items_done(&l);
    assert_true((rc == 0) == (err.code == STW_OK));
    return err.code;
}

static const char deployments[] =
    "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"7\",\"items\":[{\"no\":1}]},\"items\":["
    " "
    "{\"a\":\"]},{\\\"\"} ,\n{\"b\":[{},[1]]},{}] ,\"z\":\"items\"}\n";
static const char deployments_out[] = "{\"a\":\"]},{\\\"\"}|{\"b\":[{},[1]]}|{}|"
                                      "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"7\","
                                      "\"items\":[{\"no\":1}]},\"items\":[]"
                                      " ,\"z\":\"items\"}\n";

static void test_list_items_are_read_in_any_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= strlen(deployments); piece++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
        assert_int_equal(feed(deployments, piece, &out), STW_OK);
        assert_string_equal(stw_buf_str(&out), deployments_out);
    }
}

static void test_list_forms_are_accepted(void **state)
{
    static const struct {
        const char *text, *out;
        enum stw_err code;
    } rows[] = {
        {"{\"items\":[]}", "{\"items\":[]}", STW_OK},
        {"{\"items\":null,\"a\":1}", "{\"items\":null,\"a\":1}", STW_OK},
        {"{\"kind\":\"List\"}", "{\"kind\":\"List\"}", STW_OK},
        {"{\"a\":\"items\",\"b\":[1]}", "{\"a\":\"items\",\"b\":[1]}", STW_OK},
        {"{\"a\":{\"items\":1},\"items\":[{\"c\":2}]}",
         "{\"c\":2}|{\"a\":{\"items\":1},\"items\":[]}", STW_OK},
        {"{\"a\\\"\":\"\\\\\",\"items\":[{}]}", "{}|{\"a\\\"\":\"\\\\\",\"items\":[]}", STW_OK},
        {"", "", STW_ERR_INVALID},
        {"[]", "", STW_ERR_INVALID},
        {"{\"items\":{}}", "", STW_ERR_INVALID},
        {"{\"items\":[{}", "{}|", STW_ERR_INVALID},
        {"{\"items\":[{},]}", "{}|", STW_ERR_INVALID},
        {"{\"items\":[,{}]}", "", STW_ERR_INVALID},
        {"{\"items\":[{} {}]}", "{}|", STW_ERR_INVALID},
        {"{\"items\":[1]}", "", STW_ERR_INVALID},
        {"{\"items\":[[1]]}", "", STW_ERR_INVALID},
        {"{\"items\":[{\"a\":}]}", "#1 {\"a\":} 6: invalid JSON at line|{\"items\":[]}", STW_OK},
        {"{\"items\":[{},{\"a\":\"]}\\\"\"x},{\"b\":1}]}",
         "{}|#2 {\"a\":\"]}\\\"\"x} 13: invalid JSON at line|{\"b\":1}|{\"items\":[]}", STW_OK},
        {"{\"items\":[{\"a\":\"\x01\"},{}]}",
         "#1 {\"a\":\"\x01\"} 9: invalid JSON at line|{}|{\"items\":[]}", STW_OK},
        {"{\"items\":[{\"a\":\"\\u0000\",\"b\":100000000000000000000}]}",
         "{\"a\":\"\\u0000\",\"b\":100000000000000000000}|{\"items\":[]}", STW_OK},
        {"{\"items\":[{\"a\":1", "", STW_ERR_INVALID},
        {"{\"items\":[{\"a\":\"]}", "", STW_ERR_INVALID},
        {"{\"items\":[{}]", "{}|", STW_ERR_INVALID},
        {"{\"items\":[{}]}}", "{}|", STW_ERR_INVALID},
        {"{\"items\":[{}],\"items\":[{}]}", "{}|", STW_ERR_INVALID},
        {"{\"item\\u0073\":[{}]}", "", STW_ERR_INVALID},
        {"{\"items\":[{\"stop\":1},{}]}", "{\"stop\":1}|", STW_ERR_CANCELLED},
        {"{\"items\":[{}],\"metadata\":{}", "{}|", STW_ERR_INVALID},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t piece = 1; piece <= strlen(rows[i].text) + 1; piece++) {
            stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
            assert_int_equal(feed(rows[i].text, piece, &out), rows[i].code);
            assert_string_equal(stw_buf_str(&out), rows[i].out);
        }
}

static void test_list_items_of_all_sizes_are_read(void **state)
{
    static const int sizes[] = {1, 700, 3, 40, 900, 500, 250, 120, 60, 30, 1};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8192), want = STW_BUF_INIT(8192);
    (void)state;
    stw_buf_adds(&text, "{\"items\":[");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        stw_buf_addf(&text, "%s{\"a\":\"%0*d\"}", i ? "," : "", sizes[i], 1);
        stw_buf_addf(&want, "{\"a\":\"%0*d\"}|", sizes[i], 1);
    }
    stw_buf_adds(&text, "]}");
    stw_buf_adds(&want, "{\"items\":[]}");
    for (size_t piece = 1; piece <= text.len; piece++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(8192);
        assert_int_equal(feed(text.data, piece, &out), STW_OK);
        assert_string_equal(stw_buf_str(&out), stw_buf_str(&want));
    }
}

/* Fed byte by byte, an object of a megabyte is scanned once, not a million times: the test would take
 * an hour. */
static void test_large_list_items_are_scanned_once(void **state)
{
    enum { SIZE = 1 << 20 };
    stw_autobuf struct stw_buf text = STW_BUF_INIT(2 * SIZE), out = STW_BUF_INIT(2 * SIZE);
    (void)state;
    stw_buf_adds(&text, "{\"items\":[{\"a\":[0");
    while (text.len < SIZE)
        stw_buf_adds(&text, ",\"sixteen bytes ..\"");
    stw_buf_adds(&text, "]}]}");
    assert_int_equal(feed(text.data, 1, &out), STW_OK);
    assert_true(out.len > SIZE);
}

/* A string of `size` bytes in an object of a list, between two others. */
static void write_around(size_t size, struct stw_buf *text)
{
    stw_buf_adds(text, "{\"items\":[{\"a\":1},{\"a\":\"");
    char *to = stw_buf_reserve(text, size);
    assert_non_null(to);
    memset(to, 'x', size);
    text->len += size;
    text->data[text->len] = '\0';
    stw_buf_adds(text, "\"},{\"a\":2}]}");
}

/* It is skipped, in the memory of the limit, and the objects behind it are read. */
static void test_oversized_list_item_is_skipped(void **state)
{
    static const size_t pieces[] = {1000, 16384, 3u << 20, 64u << 20};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(3 * STW_ITEM_MAX_BYTES);
    (void)state;
    write_around(2 * STW_ITEM_MAX_BYTES, &text);
    for (size_t i = 0; i < STW_COUNT(pieces); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
        assert_int_equal(feed(text.data, pieces[i], &out), STW_OK);
        assert_string_equal(stw_buf_str(&out),
                            "{\"a\":1}|#2 {\"a\":\"xxxxxxxxxxxxxx 8388608: it has more than 8 M|"
                            "{\"a\":2}|{\"items\":[]}");
    }
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    text.data[2] = 'x'; /* no items: all of it is the rest */
    assert_int_equal(feed(text.data, 16384, &out), STW_ERR_INVALID);
}

/* As large as is allowed: `{"a":""}` is around the string. */
static void test_largest_list_item_is_read(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(3 * STW_ITEM_MAX_BYTES);
    stw_autobuf struct stw_buf out = STW_BUF_INIT(3 * STW_ITEM_MAX_BYTES);
    (void)state;
    write_around(STW_ITEM_MAX_BYTES - 8, &text);
    assert_int_equal(feed(text.data, 16384, &out), STW_OK);
    assert_true(out.len > STW_ITEM_MAX_BYTES);
    assert_null(strchr(out.data, '#'));
}

static void test_list_item_with_too_many_values_is_skipped(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_ITEM_MAX_BYTES);
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    (void)state;
    stw_buf_adds(&text, "{\"items\":[{\"a\":[1");
    for (unsigned i = 0; i < STW_ITEM_VALUES_MAX; i++)
        stw_buf_adds(&text, ",1");
    stw_buf_adds(&text, "]},{}]}");
    assert_true(text.len < (size_t)1 << 20); /* an object that etcd stores */
    assert_int_equal(feed(text.data, 16384, &out), STW_OK);
    assert_non_null(strstr(stw_buf_str(&out), "#1 {\"a\":[1,1,1,1,1,1,1, "));
    assert_non_null(strstr(stw_buf_str(&out), "|{}|{\"items\":[]}"));
}

/* Without a way to skip it, it is an error of the list. */
static void test_unreadable_list_item_is_an_error(void **state)
{
    static const char text[] = "{\"items\":[{},{\"a\":}]}";
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    const struct stw_items_sink to = {.item = collect, .ctx = &out};
    struct stw_items l = {0};
    struct stw_error err = {0};
    (void)state;
    stw_items_reset(&l);
    assert_int_equal(stw_items_feed(&l, text, strlen(text), &to, &err), -1);
    assert_non_null(strstr(err.text, "object 2 of the list: invalid JSON"));
    stw_items_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_items_are_read_in_any_pieces),
        cmocka_unit_test(test_list_forms_are_accepted),
        cmocka_unit_test(test_list_items_of_all_sizes_are_read),
        cmocka_unit_test(test_large_list_items_are_scanned_once),
        cmocka_unit_test(test_oversized_list_item_is_skipped),
        cmocka_unit_test(test_largest_list_item_is_read),
        cmocka_unit_test(test_list_item_with_too_many_values_is_skipped),
        cmocka_unit_test(test_unreadable_list_item_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
