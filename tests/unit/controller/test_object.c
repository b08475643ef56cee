/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/object.h"

#include "base/util.h"
#include "controller/finalizer.h"
#include "controller/packed.h"
#include "kinds/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    const char *about, *in, *out;
} projections[] = {
    {"all that is kept, and what is not",
     "{\"apiVersion\":\"x/v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
     "\"uid\":\"u\",\"resourceVersion\":\"7\",\"generation\":2,\"labels\":{\"l\":\"v\"},"
     "\"creationTimestamp\":\"2024-01-01T00:00:00Z\",\"managedFields\":[{}],\"annotations\":{"
     "\"kubectl.kubernetes.io/last-applied-configuration\":\"long\","
     "\"steward.dev/paused\":\"true\",\"steward.dev/reconcile-at\":\"\\\"now\\\"\"}},"
     "\"spec\":{\"a\":[1,{\"b\":null}]},\"status\":{\"completed\":true,\"observedGeneration\":2}}",
     "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"generation\":2,"
     "\"creationTimestamp\":\"2024-01-01T00:00:00Z\",\"annotations\":{"
     "\"steward.dev/paused\":\"true\",\"steward.dev/reconcile-at\":\"\\\"now\\\"\"}},"
     "\"spec\":{\"a\":[1,{\"b\":null}]},\"status\":{\"completed\":true,\"observedGeneration\":2}}"},
    {"conditions are arrays",
     "{\"metadata\":{\"name\":\"a\"},\"spec\":{},\"status\":{\"conditions\":["
     "{\"lastTransitionTime\":\"t\",\"message\":\"m \\\"q\\\"\",\"observedGeneration\":3,"
     "\"reason\":\"R\",\"status\":\"True\",\"type\":\"Ready\"},"
     "{\"type\":\"Other\",\"status\":\"False\"}],\"url\":\":1\"}}",
     "{\"metadata\":{\"name\":\"a\"},\"spec\":{},\"status\":{\"conditions\":["
     "[\"Ready\",\"True\",3,\"t\",\"R\",\"m \\\"q\\\"\"],"
     "[\"Other\",\"False\",null,null,null,null]],\"url\":\":1\"}}"},
    {"being deleted, and without a status",
     "{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":\"2024-01-01T00:00:00Z\"},\"spec\":{}}",
     "{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":\"2024-01-01T00:00:00Z\"},\"spec\":{},"
     "\"status\":{}}"},
    {"no list of conditions", "{\"metadata\":{\"name\":\"a\"},\"status\":{\"conditions\":null}}",
     "{\"metadata\":{\"name\":\"a\"},\"status\":{\"conditions\":[]}}"},
};

static void test_cached_object_keeps_needed_members(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(projections); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
        stw_autojson struct stw_json_doc in = {0}, back = {0};
        assert_int_equal(stw_json_scan(&in, projections[i].in, strlen(projections[i].in), NULL), 0);
        stw_object_project(&stw_operator_steward, stw_json_root(&in), &out);
        assert_string_equal(stw_buf_str(&out), projections[i].out);
        assert_int_equal(stw_json_scan(&back, out.data, out.len, NULL), 0);
    }
}

static void test_cached_object_keeps_listed_labels(void **state)
{
    static const char *const labels[] = {"target", "other", NULL};
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"1\",\"target\":\"db\"},"
         "\"finalizers\":[\"f/one\"]}}",
         "{\"metadata\":{\"name\":\"a\",\"labels\":{\"target\":\"db\"},\"finalizers\":[\"f/one\"]},"
         "\"status\":{}}"},
        {"{\"metadata\":{\"name\":\"a\",\"labels\":{\"other\":\"2\",\"target\":\"db\"}}}",
         "{\"metadata\":{\"name\":\"a\",\"labels\":{\"target\":\"db\",\"other\":\"2\"}},"
         "\"status\":{}}"},
        {"{\"metadata\":{\"name\":\"a\"}}", "{\"metadata\":{\"name\":\"a\"},\"status\":{}}"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20), back = STW_BUF_INIT(1 << 20);
        stw_autojson struct stw_json_doc in = {0}, doc = {0};
        assert_int_equal(stw_json_scan(&in, rows[i].in, strlen(rows[i].in), NULL), 0);
        stw_object_project_packed(&stw_operator_steward, stw_json_root(&in), labels, &out);
        assert_int_equal(stw_unpack_scan(stw_buf_str(&out), out.len, &back, &doc), 0);
        assert_string_equal(stw_buf_str(&back), rows[i].out);
    }
}

static void test_finalizers_of_object_are_read(void **state)
{
    static const struct {
        const char *list;
        bool ours, others;
    } rows[] = {
        {"[]", false, false},
        {"[\"a/mine\"]", true, false},
        {"[\"a/other\"]", false, true},
        {"[\"a/other\",\"a/mine\"]", true, true},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_object o = {.text = STW_BUF_INIT(1024)};
        stw_buf_addf(&o.text, "{\"metadata\":{\"finalizers\":%s}}", rows[i].list);
        assert_int_equal(stw_json_scan(&o.doc, stw_buf_str(&o.text), o.text.len, NULL), 0);
        o.root = stw_json_root(&o.doc);
        assert_int_equal(stw_finalizer_has(&o, "a/mine"), rows[i].ours);
        assert_int_equal(stw_finalizer_has_others(&o, "a/mine"), rows[i].others);
        stw_object_done(&o);
    }
}

/* The wait after a transient error: 1 s, doubled up to 5 min, plus or minus 20 %. */
static void test_retry_delay_grows_with_failures(void **state)
{
    struct stw_run run = {.key = "n/a", .clock = &stw_clock_system};
    struct stw_error err = {.code = STW_ERR_UNAVAILABLE, .http = 500};
    struct stw_error nobody = {.code = STW_ERR_UNAVAILABLE};
    struct stw_error asked = {.code = STW_ERR_THROTTLED, .http = 429, .retry_after_ms = 777000};
    (void)state;
    for (run.failures = 0; run.failures < 40; run.failures++) {
        uint64_t want = run.failures < 9 ? 1000u << run.failures : 300000;
        assert_in_range(stw_object_retry_ms(&run, &err), want * 8 / 10, want * 12 / 10);
        assert_in_range(stw_object_retry_ms(&run, &nobody), STW_MIN(want, 30000) * 8 / 10,
                        STW_MIN(want, 30000) * 12 / 10);
        assert_int_equal(stw_object_retry_ms(&run, &asked), 777000);
    }
    run.failures = 2;
    (void)stw_fail(&err, STW_ERR_UNAVAILABLE, "down \xe2\x82");
    json_auto_t *retry = stw_object_retry(&run, &err, 4000);
    assert_non_null(retry);
    assert_int_equal(json_integer_value(json_object_get(retry, "count")), 3);
    assert_string_equal(json_string_value(json_object_get(retry, "lastError")), "down ??");
    assert_int_equal(strlen(json_string_value(json_object_get(retry, "nextTime"))), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cached_object_keeps_needed_members),
        cmocka_unit_test(test_cached_object_keeps_listed_labels),
        cmocka_unit_test(test_finalizers_of_object_are_read),
        cmocka_unit_test(test_retry_delay_grows_with_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
