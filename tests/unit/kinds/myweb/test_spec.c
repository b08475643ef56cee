/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/myweb/spec.h"

#include "support/judge.h"

static char *page_of(size_t size)
{
    struct stw_buf b = STW_BUF_INIT(2 << 20);
    stw_buf_adds(&b, "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"image\":\"nginx:1\","
                     "\"pageContentHtml\":\"");
    char *at = stw_buf_reserve(&b, size);
    assert_non_null(at);
    memset(at, 'p', size);
    b.len += size;
    stw_buf_adds(&b, "\"}}");
    return stw_buf_take(&b);
}

static void test_page_is_bounded_and_a_large_one_is_warned_of(void **state)
{
#define P10 "pppppppppp"
#define P79 P10 P10 P10 P10 P10 P10 P10 "ppppppppp"
    static const struct {
        size_t size;
        const char *want;
    } cases[] = {
        {1, ""},
        {204800, ""},
        {204801, "W: page has 204801 bytes: kubectl apply keeps a copy in an annotation, and "
                 "annotations hold at most 262144 bytes; use kubectl apply --server-side\n"},
        {921600, "W: page has 921600 bytes: kubectl apply keeps a copy in an annotation, and "
                 "annotations hold at most 262144 bytes; use kubectl apply --server-side\n"},
        {921601,
         "spec.pageContentHtml: Invalid value: \"" P79 "...\": must be at most 921600 bytes\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autofree char *object = page_of(cases[i].size);
        assert_answer(&stw_kind_myweb, object, NULL, NULL, cases[i].want);
    }
}

/* The API server takes it from the old object, and drops it from what is created. */
static void test_only_objects_that_are_being_deleted_get_no_defaults(void **state)
{
    static const char leaving[] =
        "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{}}";
    stw_autofree char *plain = defaults(&stw_kind_myweb, NULL, "{\"spec\":{}}");
    (void)state;
    assert_string_not_equal(plain, "");
    const struct {
        const char *old, *object, *want;
    } rows[] = {
        {NULL, leaving, plain},
        {"{\"spec\":{}}", leaving, plain},
        {leaving, leaving, ""},
        {leaving, "{\"spec\":{}}", ""},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autofree char *got = defaults(&stw_kind_myweb, rows[i].old, rows[i].object);
        assert_string_equal(got, rows[i].want);
    }
}

static int decode(struct stw_arena *arena, struct stw_json_doc *doc, const char *spec,
                  struct myweb_spec *web, struct stw_error *err)
{
    scan(doc, spec);
    return stw_kind_decode(&stw_kind_myweb, stw_json_root(doc), arena, web, err);
}

static void test_spec_is_decoded_with_its_defaults(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    struct stw_error err = {0};
    struct myweb_spec web;
    (void)state;
    assert_int_equal(decode(arena, &doc,
                            "{\"image\":\"n\\u0067inx\",\"nodePortNumber\":30001,\"replicas\":2.0,"
                            "\"pageContentHtml\":\"\\u003cp>\",\"contentUpdate\":\"Live\","
                            "\"securityContext\":{\"a\":1}}",
                            &web, &err),
                     0);
    assert_string_equal(web.image, "nginx");
    assert_int_equal(web.node_port, 30001);
    assert_int_equal(web.replicas, 2);
    assert_int_equal(web.container_port, 80);
    assert_string_equal(web.mount_path, "/usr/share/nginx/html");
    assert_string_equal(web.content_update, "Live");
    assert_int_equal(stw_json_size(web.page), 3);
    assert_int_equal(stw_json_type(web.security_context), STW_JSON_OBJECT);
    assert_int_equal(stw_json_type(web.resources), STW_JSON_ABSENT);
}

static void test_field_of_a_wrong_type_keeps_its_default(void **state)
{
    static const struct {
        const char *spec, *error;
    } cases[] = {
        {"{\"image\":\"a\",\"replicas\":\"2\",\"containerPort\":\"x\"}",
         "spec.replicas: Invalid value: \"2\": must be an integer"},
        {"[]", "spec: Invalid value: must be an object"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autojson struct stw_json_doc doc = {0};
        stw_autoarena struct stw_arena *arena = stw_arena_create();
        struct stw_error err = {0};
        struct myweb_spec web;
        assert_int_equal(decode(arena, &doc, cases[i].spec, &web, &err), -1);
        assert_int_equal(err.code, STW_ERR_INVALID);
        assert_string_equal(err.text, cases[i].error);
        assert_int_equal(web.replicas, 1);
        assert_int_equal(web.container_port, 80);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_is_bounded_and_a_large_one_is_warned_of),
        cmocka_unit_test(test_only_objects_that_are_being_deleted_get_no_defaults),
        cmocka_unit_test(test_spec_is_decoded_with_its_defaults),
        cmocka_unit_test(test_field_of_a_wrong_type_keeps_its_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
