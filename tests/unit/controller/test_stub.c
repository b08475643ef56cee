/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/cache/stub.h"

#include "base/process/memory_budget.h"
#include "base/util.h"
#include "kube/cache/usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define FINALIZER "steward.dev/kind"

static void index_port(void *ctx, struct stw_json object, struct stw_buf *out)
{
    int64_t port;
    assert_null(ctx);
    if (stw_json_int(stw_json_path(object, "spec.port"), &port) == 0)
        stw_buf_addf(out, "port:%lld\n", (long long)port);
}

static void repeat(struct stw_buf *out, char c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stw_buf_addc(out, c);
}

/* With a page of this length. */
static void make_text(struct stw_buf *out, size_t page, const char *status)
{
    stw_buf_adds(
        out, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"shop\",\"uid\":\"u\",\"annotations\":"
             "{\"steward.dev/long\":\"");
    repeat(out, 'n', page / 2);
    stw_buf_adds(out, "\",\"steward.dev/paused\":\"true\"},\"finalizers\":[");
    for (size_t i = 0; i < page / 32; i++)
        stw_buf_addf(out, "\"example.org/finalizer-%zu\",", i);
    stw_buf_adds(out, "\"" FINALIZER "\"]},\"spec\":{\"page\":\"");
    repeat(out, 'p', page);
    stw_buf_adds(out, "\",\"port\":30001,\"size\":{\"a\":1}},\"status\":");
    stw_buf_adds(out, status);
    stw_buf_addc(out, '}');
}

#define STATUS "{\"conditions\":[[\"Ready\",\"True\",1,\"t\",\"R\",\"m\"]],\"url\":\":1\"}"

static void shrink(struct stw_buf *text)
{
    stw_stub_shrink(
        text, &(struct stw_stub_of){.ns = "shop", .finalizer = FINALIZER, .index = index_port});
    assert_false(text->failed);
}

static bool has_finalizer(struct stw_json root)
{
    struct stw_json key, one;
    stw_json_foreach (stw_json_path(root, "metadata.finalizers"), key, one)
        if (stw_json_is(one, FINALIZER))
            return true;
    return false;
}

static void test_shortened_object_keeps_short_members(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8 << 20), keys = STW_BUF_INIT(4096);
    stw_autojson struct stw_json_doc doc = {0};
    int64_t bytes;
    (void)state;
    make_text(&text, 100000, STATUS);
    size_t whole = text.len;
    shrink(&text);
    assert_true(text.len < 3000);
    assert_int_equal(stw_json_scan(&doc, text.data, text.len, NULL), 0);
    struct stw_json root = stw_json_root(&doc);
    assert_true(stw_stub_is(root));
    assert_true(stw_json_is(stw_json_path(root, "metadata.name"), "a"));
    struct stw_json notes = stw_json_path(root, "metadata.annotations");
    assert_true(stw_json_is(stw_json_get(notes, "steward.dev/paused"), "true"));
    assert_int_equal(stw_json_size(notes), 1);
    assert_true(has_finalizer(root));
    assert_int_equal(stw_json_size(stw_json_get(root, "spec")), 2);
    assert_true(stw_json_is(stw_json_path(root, "status.url"), ":1"));
    assert_int_equal(stw_json_size(stw_json_path(root, "status.conditions")), 1);
    assert_int_equal(stw_json_int(stw_json_path(root, "stub.bytes"), &bytes), 0);
    assert_int_equal(bytes, whole);
    assert_true(stw_json_is(stw_json_path(root, "stub.large"), "spec.page"));
    assert_int_equal(stw_json_int(stw_json_path(root, "stub.largeBytes"), &bytes), 0);
    assert_int_equal(bytes, 100002);
    stw_stub_index(root, &keys);
    assert_string_equal(stw_buf_str(&keys), "port:30001\n");
}

static void test_shortened_annotations_are_named(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8 << 20);
    stw_autojson struct stw_json_doc doc = {0};
    int64_t bytes;
    (void)state;
    stw_buf_adds(&text, "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"steward.dev/note\":\"");
    for (int i = 0; i < 30000; i++)
        stw_buf_addc(&text, 'x');
    stw_buf_adds(&text, "\"}},\"spec\":{\"a\":1},\"status\":{}}");
    shrink(&text);
    assert_int_equal(stw_json_scan(&doc, text.data, text.len, NULL), 0);
    struct stw_json stub = stw_json_get(stw_json_root(&doc), "stub");
    assert_true(stw_json_is(stw_json_get(stub, "large"), "metadata.annotations"));
    assert_int_equal(stw_json_int(stw_json_get(stub, "largeBytes"), &bytes), 0);
    assert_int_equal(bytes, 30000 + strlen("{\"steward.dev/note\":\"\"}"));
}

static void test_short_object_is_not_shortened(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8 << 20), before = STW_BUF_INIT(8 << 20);
    (void)state;
    make_text(&text, 4000, STATUS);
    make_text(&before, 4000, STATUS);
    shrink(&text);
    assert_string_equal(stw_buf_str(&text), stw_buf_str(&before));
}

/* The digest of one text differs from that of another where the cut members differ. */
static void digest(char page, const char *status, const char *path, char out[40])
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8 << 20);
    stw_autojson struct stw_json_doc doc = {0};
    make_text(&text, 40000, status);
    for (char *p = strstr(stw_buf_str(&text), "ppp"); p && *p == 'p'; p++)
        *p = page;
    shrink(&text);
    assert_int_equal(stw_json_scan(&doc, text.data, text.len, NULL), 0);
    assert_int_equal(stw_json_strcpy(stw_json_path(stw_json_root(&doc), path), out, 40), 0);
}

static void test_change_of_a_shortened_value_is_seen(void **state)
{
    char a[40], b[40];
    (void)state;
    digest('p', STATUS, "stub.spec", a);
    digest('q', STATUS, "stub.spec", b);
    assert_string_not_equal(a, b);
    digest('p', "{}", "stub.spec", b);
    assert_string_equal(a, b);
    digest('p', STATUS, "stub.status", a);
    digest('p', "{}", "stub.status", b);
    assert_string_not_equal(a, b);
}

/* A quarter of the share is for one namespace. */
static void test_full_namespace_is_shortened_first(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8 << 20), other = STW_BUF_INIT(8 << 20);
    size_t quarter = stw_share_limit(STW_SHARE_CACHES) / STW_CACHE_NAMESPACE_PART;
    (void)state;
    stw_cache_usage_change("shop/all", 0, quarter);
    make_text(&text, 4000, STATUS);
    make_text(&other, 4000, STATUS);
    size_t whole = text.len;
    shrink(&text);
    assert_true(text.len < 1000);
    stw_stub_shrink(&other, &(struct stw_stub_of){.ns = "press", .index = index_port});
    assert_int_equal(other.len, whole);
    stw_cache_usage_change("shop/all", quarter, 0);
    assert_int_equal(stw_cache_usage_of("shop"), 0);
    assert_int_equal(stw_share_facts(STW_SHARE_CACHES).used, 0);
}

static void index_names(void *ctx, struct stw_json object, struct stw_buf *out)
{
    struct stw_json key, name;
    (void)ctx;
    stw_json_foreach (stw_json_path(object, "spec.names"), key, name) {
        stw_buf_adds(out, "secret:shop/");
        stw_json_str(name, out);
        stw_buf_addc(out, '\n');
    }
}

static size_t index_bytes(struct stw_json root, size_t *ret_count)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(64 << 10);
    size_t bytes = 0;
    *ret_count = 0;
    if (stw_stub_is(root))
        stw_stub_index(root, &keys);
    else
        index_names(NULL, root, &keys);
    for (const char *p = stw_buf_str(&keys); *p; p += strcspn(p, "\n") + 1) {
        bytes += stw_index_key_bytes(strcspn(p, "\n"));
        ++*ret_count;
    }
    return bytes;
}

/* Its index would need more than its text. */
static void test_full_namespace_keeps_few_index_keys(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8 << 20);
    stw_autojson struct stw_json_doc doc = {0};
    const struct stw_stub_of of = {.ns = "shop", .index = index_names};
    size_t quarter = stw_share_limit(STW_SHARE_CACHES) / STW_CACHE_NAMESPACE_PART, count;
    (void)state;
    stw_buf_adds(&text,
                 "{\"metadata\":{\"name\":\"a\",\"namespace\":\"shop\"},\"spec\":{\"names\":[");
    for (int i = 0; i < 100; i++)
        stw_buf_addf(&text, "%s\"n%d\"", i ? "," : "", i);
    stw_buf_adds(&text, "]}}");
    stw_stub_shrink(&text, &of);
    assert_int_equal(stw_json_scan(&doc, text.data, text.len, NULL), 0);
    assert_false(stw_stub_is(stw_json_root(&doc)));
    stw_cache_usage_change("shop/all", 0, quarter);
    stw_stub_shrink(&text, &of);
    assert_int_equal(stw_json_scan(&doc, text.data, text.len, NULL), 0);
    assert_true(stw_stub_is(stw_json_root(&doc)));
    assert_true(text.len + index_bytes(stw_json_root(&doc), &count) < 2048);
    assert_in_range(count, 7, 8); /* those of kinds that need all of theirs */
    stw_cache_usage_change("shop/all", quarter, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortened_object_keeps_short_members),
        cmocka_unit_test(test_shortened_annotations_are_named),
        cmocka_unit_test(test_short_object_is_not_shortened),
        cmocka_unit_test(test_change_of_a_shortened_value_is_seen),
        cmocka_unit_test(test_full_namespace_is_shortened_first),
        cmocka_unit_test(test_full_namespace_keeps_few_index_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
