/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/content_priv.h"

#include "base/util.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct stw_operator op = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward"};

static struct stw_content read_ok(const char *json)
{
    struct stw_content c;
    struct stw_error err = {0};
    if (stw_content_read(json, strlen(json), &c, &err) < 0)
        fail_msg("%s", err.text);
    return c;
}

static void test_secret_content_is_read(void **state)
{
    (void)state;
    struct stw_content c =
        read_ok("{\"metadata\":{\"resourceVersion\":\"17\"},\"data\":{\"tls.crt\":\"Y2VydA==\","
                "\"tls.key\":\"\",\"ca.crt\":\"***\",\"ca.key\":5,\"more\":\"eA==\","
                "\"ca-old.until\":\"b3Blbg==\"}}");
    assert_true(c.exists);
    assert_false(c.foreign);
    assert_string_equal(c.rv, "17");
    assert_string_equal(c.slot[STW_SLOT_TLS_CRT], "cert");
    assert_string_equal(c.slot[STW_SLOT_OLD_UNTIL], "open");
    /* empty, not base64, not a string: treated as absent */
    assert_null(c.slot[STW_SLOT_TLS_KEY]);
    assert_null(c.slot[STW_SLOT_CA_CRT]);
    assert_null(c.slot[STW_SLOT_CA_KEY]);
    stw_content_done(&c);
    assert_null(c.slot[STW_SLOT_TLS_CRT]);
}

static void test_secret_without_data_is_empty(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{\"metadata\":{\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"resourceVersion\":\"1\"},\"data\":null}",
        "{\"metadata\":{\"resourceVersion\":\"1\"},\"data\":[1]}",
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_content c = read_ok(rows[i]);
        for (unsigned s = 0; s < STW_SLOTS; s++)
            assert_null(c.slot[s]);
        stw_content_done(&c);
    }
}

static void test_malformed_secret_is_an_error(void **state)
{
    (void)state;
    static const char *const rows[] = {"", "{", "[]", "{\"metadata\":{}}",
                                       "{\"metadata\":{\"resourceVersion\":5}}"};
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_content c;
        struct stw_error err = {0};
        assert_int_equal(stw_content_read(rows[i], strlen(rows[i]), &c, &err), -1);
        assert_int_equal(err.code, STW_ERR_INVALID);
    }
}

static void test_secret_of_cert_manager_is_foreign(void **state)
{
    (void)state;
    struct stw_content c = read_ok("{\"metadata\":{\"resourceVersion\":\"1\",\"annotations\":{"
                                   "\"cert-manager.io/certificate-name\":\"x\"}}}");
    assert_true(c.foreign);
    stw_content_done(&c);
}

static void test_secret_content_is_created(void **state)
{
    (void)state;
    struct stw_content c = {0};
    struct stw_buf stw_autobuf out = {.max = STW_SECRET_MAX_BYTES, .secret = true};
    stw_content_set(&c, STW_SLOT_NEXT_CRT, strdup("one"));
    assert_int_equal(stw_content_write(&op, &c, "n\"s", "name", NULL, &out, NULL), 0);
    json_t *j = json_loads(stw_buf_str(&out), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(j);
    json_t *want =
        json_pack("{s:s,s:s,s:s,s:{s:s,s:s,s:{s:s,s:s,s:s}},s:{s:s,s:s,s:s}}", "apiVersion", "v1",
                  "kind", "Secret", "type", "kubernetes.io/tls", "metadata", "name", "name",
                  "namespace", "n\"s", "labels", "app.kubernetes.io/name", "steward",
                  "app.kubernetes.io/component", "webhook", "app.kubernetes.io/managed-by",
                  "steward", "data", "tls.crt", "", "tls.key", "", "ca-next.crt", "b25l");
    assert_true(json_equal(j, want));
    json_decref(j);
    json_decref(want);
    stw_content_done(&c);
}

/* Only the slots change, and managedFields is not sent back. */
static void test_secret_update_keeps_other_fields(void **state)
{
    (void)state;
    static const char was_text[] =
        "{\"kind\":\"Secret\",\"immutable\":false,\"type\":\"Opaque\",\"metadata\":{\"name\":\"a\","
        "\"resourceVersion\":\"9\",\"managedFields\":[{}],\"labels\":{\"x\":\"y\"}},"
        "\"data\":{\"tls.crt\":\"YQ==\",\"ca.key\":\"YQ==\",\"mine\":\"Yg==\"}}";
    struct stw_buf stw_autobuf was = STW_BUF_INIT(4096);
    struct stw_buf stw_autobuf out = {.max = STW_SECRET_MAX_BYTES, .secret = true};
    stw_buf_adds(&was, was_text);
    struct stw_content c = read_ok(was_text);
    stw_content_set(&c, STW_SLOT_TLS_CRT, strdup("new"));
    stw_content_move(&c, STW_SLOT_CA_KEY, STW_SLOT_OLD_CRT);
    assert_int_equal(stw_content_write(&op, &c, "ns", "a", &was, &out, NULL), 0);
    json_t *j = json_loads(stw_buf_str(&out), JSON_REJECT_DUPLICATES, NULL);
    json_t *want = json_pack("{s:s,s:b,s:s,s:{s:s,s:s,s:{s:s}},s:{s:s,s:s,s:s,s:s}}", "kind",
                             "Secret", "immutable", 0, "type", "Opaque", "metadata", "name", "a",
                             "resourceVersion", "9", "labels", "x", "y", "data", "mine",
                             "Yg==", "tls.crt", "bmV3", "tls.key", "", "ca-old.crt", "YQ==");
    assert_non_null(j);
    assert_true(json_equal(j, want));
    json_decref(j);
    json_decref(want);
    stw_content_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secret_content_is_read),
        cmocka_unit_test(test_secret_without_data_is_empty),
        cmocka_unit_test(test_malformed_secret_is_an_error),
        cmocka_unit_test(test_secret_of_cert_manager_is_foreign),
        cmocka_unit_test(test_secret_content_is_created),
        cmocka_unit_test(test_secret_update_keeps_other_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
