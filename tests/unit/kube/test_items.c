/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/items_priv.h"

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

/* Feeds `text` in pieces of `piece` bytes, and writes its objects and the rest to `out`.  Returns
 * the error code. */
static enum stw_err feed(const char *text, size_t piece, struct stw_buf *out)
{
    struct stw_items l = {0};
    stw_autojson struct stw_json_doc rest = {0};
    struct stw_error err = {0};
    size_t size = strlen(text);
    int rc = 0;
    stw_items_reset(&l);
    for (size_t at = 0; rc == 0 && at < size; at += piece)
        rc = stw_items_feed(&l, text + at, size - at < piece ? size - at : piece, collect, out,
                            &err);
    if (rc == 0)
        rc = stw_items_end(&l, &rest, collect, out, &err);
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

static void cut_anywhere(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= strlen(deployments); piece++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
        assert_int_equal(feed(deployments, piece, &out), STW_OK);
        assert_string_equal(stw_buf_str(&out), deployments_out);
    }
}

static void forms_of_lists(void **state)
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
        {"{\"items\":[{\"a\":}]}", "", STW_ERR_INVALID},
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

/* An object is parsed for the first time when nearly as many bytes have arrived as the previous one
 * had.  Objects after a large one are shorter, up to the end of the list. */
static void objects_of_all_sizes(void **state)
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

/* Fed byte by byte, an object of a megabyte is scanned some twenty times, not a million times: the
 * test would take an hour. */
static void large_objects(void **state)
{
    enum { SIZE = 1 << 20 };
    stw_autobuf struct stw_buf text = STW_BUF_INIT(2 * SIZE), out = STW_BUF_INIT(2 * SIZE);
    (void)state;
    stw_buf_adds(&text, "{\"items\":[{\"a\":[0");
    while (text.len < SIZE)
        stw_buf_adds(&text, ",1");
    stw_buf_adds(&text, "]}]}");
    assert_int_equal(feed(text.data, 1, &out), STW_OK);
    assert_true(out.len > SIZE);
}

static void too_large(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_ITEM_MAX_BYTES + 4096);
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
    (void)state;
    stw_buf_adds(&text, "{\"items\":[{\"a\":\"");
    while (text.len < STW_ITEM_MAX_BYTES + 1024)
        stw_buf_adds(&text, "0123456789abcdef");
    assert_int_equal(feed(text.data, 16384, &out), STW_ERR_INVALID);
    assert_int_equal(out.len, 0);
    text.data[1] = 'x'; /* no items: all of it is the rest */
    assert_int_equal(feed(text.data, 16384, &out), STW_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(forms_of_lists),
        cmocka_unit_test(objects_of_all_sizes),
        cmocka_unit_test(large_objects),
        cmocka_unit_test(too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
