/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "base/util.h"
#include "etcd/etcd_priv.h"
#include "snapshot_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct got {
    struct stw_buf data;
    size_t fail_at; /* the sink fails beyond this many bytes; 0: never */
};

static int sink(void *ctx, const void *data, size_t len, struct stw_error *err)
{
    struct got *g = ctx;
    if (g->fail_at > 0 && g->data.len + len > g->fail_at)
        return stw_fail(err, STW_ERR_TOO_LARGE, "full");
    stw_buf_add(&g->data, data, len);
    return 0;
}

static void add_line(struct stw_buf *out, const unsigned char *data, size_t len)
{
    stw_buf_adds(out, "{\"result\":{\"blob\":\"");
    stw_base64_encode(data, len, out);
    stw_buf_adds(out, "\"}}\n");
}

/* The stream of the fixture, as etcd sends it: the hash is on a line of its own. */
static void make(struct stw_buf *out)
{
    unsigned char data[WHOLE_BYTES];
    snapshot_make(data);
    for (size_t at = 0; at < PAGES_BYTES; at += 100)
        add_line(out, data + at, STW_MIN(100u, PAGES_BYTES - at));
    add_line(out, data + PAGES_BYTES, 32);
}

static int run(const char *text, size_t len, size_t piece, struct got *g, struct stw_error *err)
{
    struct stw_etcd_stream s;
    uint64_t size = 0;
    char sha256[65];
    int r = 0;
    g->data = STW_BUF_INIT(1u << 20);
    assert_int_equal(stw_etcd_stream_init(&s, sink, g), 0);
    for (size_t at = 0; r == 0 && at < len; at += piece)
        r = stw_etcd_stream_add(&s, text + at, STW_MIN(piece, len - at), err);
    if (r == 0)
        r = stw_etcd_stream_end(&s, &size, sha256, err);
    assert_true(r != 0 || size == g->data.len);
    assert_int_equal(s.sink_failed, g->fail_at > 0);
    stw_etcd_stream_done(&s);
    return r;
}

static void test_snapshot_stream_accepts_any_piece_size(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1u << 20);
    unsigned char data[WHOLE_BYTES];
    (void)state;
    snapshot_make(data);
    make(&text);
    for (size_t piece = 1; piece <= text.len; piece += piece < 300 ? 1 : 97) {
        struct got g = {0};
        assert_int_equal(run(text.data, text.len, piece, &g, NULL), 0);
        assert_int_equal(g.data.len, sizeof(data));
        assert_memory_equal(g.data.data, data, sizeof(data));
        stw_buf_done(&g.data);
    }
}

/* A proxy may drop the end of the last line; etcd 3.6 sends other members besides the blob, and may
 * send messages without a blob; empty lines are ignored. */
static void test_variants_of_snapshot_stream_are_accepted(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1u << 20);
    (void)state;
    stw_buf_adds(&text, "\n\n{\"result\":{\"remaining_bytes\":\"5\",\"version\":\"3.6.0\"}}\n{"
                        "\"result\":{\"blob\":\"\"}}\n{\"result\":{\"blob\":null}}\n");
    make(&text);
    struct got g = {0};
    assert_int_equal(run(text.data, text.len - 1, 1000, &g, NULL), 0);
    stw_buf_done(&g.data);
}

static void test_malformed_snapshot_stream_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "cut"},
        {"\n", "cut"},
        {"{\"result\":{\"blob\":\"AAAA\"}}\n", "cut"},
        {"hello\n", "not JSON"},
        {"{\"result\":{\"blob\":\"AAAA\"}}{}\n", "not JSON"},
        {"{}\n", "no result"},
        {"{\"result\":[]}\n", "no result"},
        {"{\"result\":{\"blob\":\"AAA\"}}\n", "not base64"},
        {"{\"result\":{\"blob\":\"\\u0041AAA\"}}\n", "not base64"},
        {"{\"result\":{\"blob\":{}}}\n", "not base64"},
        {"{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}\n", "no leader"},
        {"{\"error\":{}}\n", "without a reason"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct got g = {0};
        struct stw_error err = {0};
        assert_int_equal(run(rows[i].text, strlen(rows[i].text), 7, &g, &err), -1);
        if (!strstr(err.text, rows[i].says))
            fail_msg("row %zu: %s", i, err.text);
        stw_buf_done(&g.data);
    }
}

/* Memory stays bounded for any input. */
static void test_endless_stream_line_is_refused(void **state)
{
    struct stw_etcd_stream s;
    struct stw_error err = {0};
    struct got g = {.data = STW_BUF_INIT(1024)};
    char block[4096];
    size_t sent = 0;
    (void)state;
    memset(block, ' ', sizeof(block));
    assert_int_equal(stw_etcd_stream_init(&s, sink, &g), 0);
    while (stw_etcd_stream_add(&s, block, sizeof(block), &err) == 0 && sent < 1u << 24)
        sent += sizeof(block);
    assert_int_equal(sent, STW_ETCD_LINE_MAX_BYTES);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    assert_true(s.line.cap <= 2 * STW_ETCD_LINE_MAX_BYTES);
    stw_etcd_stream_done(&s);
}

static void test_sink_error_ends_the_stream(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1u << 20);
    struct stw_error err = {0};
    struct got g = {.fail_at = 150};
    (void)state;
    make(&text);
    assert_int_equal(run(text.data, text.len, 1000, &g, &err), -1);
    assert_string_equal(err.text, "full");
    assert_int_equal(g.data.len, 100);
    stw_buf_done(&g.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshot_stream_accepts_any_piece_size),
        cmocka_unit_test(test_variants_of_snapshot_stream_are_accepted),
        cmocka_unit_test(test_malformed_snapshot_stream_is_refused),
        cmocka_unit_test(test_endless_stream_line_is_refused),
        cmocka_unit_test(test_sink_error_ends_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
