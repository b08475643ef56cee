/* SPDX-License-Identifier: Apache-2.0
 *
 * Endpoints, headers and resources from the environment; and the JSON of spans. */
#include "base/util.h"
#include "otlp/otlp.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const variables[] = {
    "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",  "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_TIMEOUT",  "OTEL_EXPORTER_OTLP_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",     "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",        "OTEL_BSP_SCHEDULE_DELAY",
};

static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(variables); i++)
        (void)unsetenv(variables[i]);
    return 0;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static int read_config(const char *option, struct stw_otlp_config *c, struct stw_error *err)
{
    return stw_otlp_config_read(option, "steward", "1.0.0", c, err);
}

static void test_tracing_is_off_without_an_endpoint(void **state)
{
    struct stw_otlp_config c;
    (void)state;
    assert_int_equal(read_config(NULL, &c, NULL), 0);
    assert_null(c.endpoint);
    assert_int_equal(read_config("", &c, NULL), 0);
    assert_null(c.endpoint);
    set("OTEL_SDK_DISABLED", "true");
    assert_int_equal(read_config("http://x:4318", &c, NULL), 0);
    assert_null(c.endpoint);
    (void)clear(NULL);
    set("OTEL_TRACES_EXPORTER", "none");
    assert_int_equal(read_config("http://x:4318", &c, NULL), 0);
    assert_null(c.endpoint);
}

static void test_endpoint_urls_are_built(void **state)
{
    static const struct {
        const char *option, *traces, *general, *url;
    } rows[] = {
        {"http://c:4318", NULL, NULL, "http://c:4318/v1/traces"},
        {"https://c/", "http://x", "http://y", "https://c/v1/traces"},
        {"https://c/own/path", NULL, NULL, "https://c/own/path"},
        {"http://[::1]:4318", NULL, NULL, "http://[::1]:4318/v1/traces"},
        {NULL, "http://c:4318/v1/traces", "http://y", "http://c:4318/v1/traces"},
        {NULL, "http://c:4318", "http://y", "http://c:4318/"},
        {NULL, NULL, "http://c:4318", "http://c:4318/v1/traces"},
        {NULL, NULL, "http://c:4318/", "http://c:4318/v1/traces"},
        {NULL, NULL, "https://c/otlp/", "https://c/otlp/v1/traces"},
        {NULL, "", "HTTPS://c", "https://c/v1/traces"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_otlp_config c;
        struct stw_error err = {0};
        (void)clear(NULL);
        if (rows[i].traces)
            set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", rows[i].traces);
        if (rows[i].general)
            set("OTEL_EXPORTER_OTLP_ENDPOINT", rows[i].general);
        assert_int_equal(read_config(rows[i].option, &c, &err), 0);
        assert_string_equal(c.endpoint, rows[i].url);
        stw_otlp_config_done(&c);
    }
}

static void test_malformed_endpoints_are_refused(void **state)
{
    static const char *const rows[] = {
        "collector:4318",
        "collector",
        "http://",
        "http:///v1/traces",
        "ftp://c:4318",
        "file:///etc/passwd",
        "grpc://c:4317",
        "http://c:99999",
        "http://c:port",
        "http://user:secret@c:4318",
        "http://user@c:4318",
        "http://c:4318/#x",
        "http://c:4318/ x",
        "http://c:4318/\r\nX: y",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_otlp_config c;
        struct stw_error err = {0};
        assert_int_equal(read_config(rows[i], &c, &err), -1);
        assert_int_equal(err.code, STW_ERR_INVALID);
        assert_non_null(strstr(err.text, "--traces-endpoint is not a URL of a collector"));
        assert_null(strstr(err.text, "secret"));
        stw_otlp_config_done(&c);
    }
    set("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318");
    struct stw_otlp_config c;
    struct stw_error err = {0};
    assert_int_equal(read_config(NULL, &c, &err), -1);
    assert_non_null(strstr(err.text, "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"));
    stw_otlp_config_done(&c);
}

static void test_otlp_headers_are_parsed(void **state)
{
    static const char *const bad[] = {"x",    "=y",    "a b=c", "k=%0d%0aX: y", "k=%zz",
                                      "k=%0", "k=%00", "a=b,c", "k=s3cret%"};
    struct stw_otlp_config c;
    struct stw_error err = {0};
    (void)state;
    set("OTEL_EXPORTER_OTLP_HEADERS", "ignored=1");
    set("OTEL_EXPORTER_OTLP_TRACES_HEADERS", " authorization = Bearer%20s3cret, x-tenant=a=b,");
    assert_int_equal(read_config("http://c", &c, &err), 0);
    assert_string_equal(c.headers[0], "authorization: Bearer s3cret");
    assert_string_equal(c.headers[1], "x-tenant: a=b");
    assert_null(c.headers[2]);
    stw_otlp_config_done(&c);
    for (size_t i = 0; i < STW_COUNT(bad); i++) {
        set("OTEL_EXPORTER_OTLP_TRACES_HEADERS", bad[i]);
        assert_int_equal(read_config("http://c", &c, &err), -1);
        assert_non_null(strstr(err.text, "OTEL_EXPORTER_OTLP_TRACES_HEADERS is not a list"));
        assert_null(strstr(err.text, "s3cret"));
        stw_otlp_config_done(&c);
    }
}

static void test_sampler_and_batch_settings_are_read(void **state)
{
    struct stw_otlp_config c;
    struct stw_error err = {0};
    (void)state;
    set("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
    set("OTEL_TRACES_SAMPLER_ARG", "0.25");
    set("OTEL_EXPORTER_OTLP_TIMEOUT", "1500");
    set("OTEL_BSP_SCHEDULE_DELAY", "junk");
    set("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
    assert_int_equal(read_config("http://c", &c, &err), 0);
    assert_int_equal(c.sampler.root, STW_SAMPLE_RATIO);
    assert_true(c.sampler.ratio == 0.25);
    assert_int_equal(c.timeout_ms, 1500);
    assert_int_equal(c.delay_ms, STW_OTLP_DELAY_MS);
    stw_otlp_config_done(&c);
    set("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_int_equal(read_config("http://c", &c, &err), -1);
    assert_non_null(strstr(err.text, "OTEL_EXPORTER_OTLP_PROTOCOL: traces are sent by http/json"));
    stw_otlp_config_done(&c);
    set("OTEL_EXPORTER_OTLP_PROTOCOL", "");
    set("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.crt");
    assert_int_equal(read_config("http://c", &c, &err), -1);
    assert_non_null(strstr(err.text, "OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read"));
    stw_otlp_config_done(&c);
}

/* --- the JSON */

static json_t *encode(const struct stw_otlp_config *c, const struct stw_span_record *list)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1u << 20);
    stw_otlp_encode(c, list, &text);
    assert_false(text.failed);
    json_t *j = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(j);
    return j;
}

static const char *resource_value(const json_t *j, const char *key)
{
    const json_t *list = NULL;
    const json_t *one;
    const char *found = NULL;
    size_t i;
    assert_int_equal(json_unpack((json_t *)(uintptr_t)j, "{s:[{s:{s:o}}]}", "resourceSpans",
                                 "resource", "attributes", &list),
                     0);
    json_array_foreach (list, i, one) {
        const char *k, *v;
        assert_int_equal(json_unpack((json_t *)(uintptr_t)one, "{s:s,s:{s:s}}", "key", &k, "value",
                                     "stringValue", &v),
                         0);
        if (stw_streq(k, key)) {
            assert_null(found); /* once */
            found = v;
        }
    }
    return found;
}

static void test_resource_attributes_are_merged(void **state)
{
    static const struct {
        const char *name, *attributes, *service, *tier, *version;
    } rows[] = {
        {NULL, NULL, "steward", NULL, "1.0.0"},
        {"mine", NULL, "mine", NULL, "1.0.0"},
        {NULL, "service.name=other,tier=a%2Cb%22,service.version=2", "other", "a,b\"", "2"},
        {"mine", "service.name=other , tier = c ", "mine", "c", "1.0.0"},
        {NULL, "tier=a,junk", "steward", NULL, "1.0.0"}, /* ignored as a whole */
        {NULL, "tier=%ff", "steward", NULL, "1.0.0"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_otlp_config c;
        (void)clear(NULL);
        if (rows[i].name)
            set("OTEL_SERVICE_NAME", rows[i].name);
        if (rows[i].attributes)
            set("OTEL_RESOURCE_ATTRIBUTES", rows[i].attributes);
        assert_int_equal(read_config("http://c", &c, NULL), 0);
        json_auto_t *j = encode(&c, NULL);
        assert_string_equal(resource_value(j, "service.name"), rows[i].service);
        assert_string_equal(resource_value(j, "service.version"), rows[i].version);
        const char *tier = resource_value(j, "tier");
        assert_true(stw_same(tier, rows[i].tier));
        assert_non_null(resource_value(j, "service.instance.id"));
        stw_otlp_config_done(&c);
    }
}

static void test_spans_are_encoded_as_json(void **state)
{
    static const char expected[] =
        "{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"0102030405060708\","
        "\"parentSpanId\":\"b7ad6b7169203331\",\"flags\":769,\"name\":\"a "
        "\\\"name\\\"\",\"kind\":2,"
        "\"startTimeUnixNano\":\"1700000000000000001\",\"endTimeUnixNano\":\"1700000000000000002\","
        "\"attributes\":[{\"key\":\"s\",\"value\":{\"stringValue\":\"a\\u0001\"}},"
        "{\"key\":\"i\",\"value\":{\"intValue\":\"-9007199254740993\"}},"
        "{\"key\":\"b\",\"value\":{\"boolValue\":false}}],"
        "\"status\":{\"code\":2,\"message\":\"failed\"}}";
    const struct stw_sampler all = {STW_SAMPLE_ALL, true, 1};
    struct stw_otlp_config c;
    struct stw_trace_context caller;
    struct stw_span s;
    (void)state;
    assert_int_equal(read_config("http://c", &c, NULL), 0);
    struct stw_tracer *t = stw_tracer_create(&all, 8, NULL);
    assert_non_null(t);
    stw_tracer_install(t);
    assert_int_equal(
        stw_traceparent_parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", &caller),
        0);
    stw_span_begin(&s, STW_SPAN_SERVER, "a \"name\"", &caller, 0);
    stw_span_str(&s, "s", "a\001");
    stw_span_int(&s, "i", -9007199254740993);
    stw_span_bool(&s, "b", false);
    stw_span_fail(&s, "failed");
    stw_span_end(&s);
    stw_span_begin(&s, STW_SPAN_INTERNAL, "second", NULL, 0);
    stw_span_end(&s);
    struct stw_span_record *list = stw_tracer_take(t, 8, 0);
    memcpy(list->context.span_id, "\1\2\3\4\5\6\7\10", 8);
    list->start_ns = 1700000000000000001;
    list->end_ns = 1700000000000000002;
    json_auto_t *j = encode(&c, list);
    json_auto_t *wanted = json_loads(expected, 0, NULL);
    json_t *spans = NULL;
    assert_int_equal(
        json_unpack(j, "{s:[{s:[{s:o}]}]}", "resourceSpans", "scopeSpans", "spans", &spans), 0);
    assert_int_equal(json_array_size(spans), 2);
    assert_true(json_equal(json_array_get(spans, 0), wanted));
    const json_t *second = json_array_get(spans, 1);
    assert_null(json_object_get(second, "parentSpanId"));
    assert_null(json_object_get(second, "status"));
    assert_int_equal(json_integer_value(json_object_get(second, "kind")), 1);
    stw_tracer_free(list);
    stw_tracer_destroy(t);
    stw_otlp_config_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_tracing_is_off_without_an_endpoint, clear),
        cmocka_unit_test_setup(test_endpoint_urls_are_built, clear),
        cmocka_unit_test_setup(test_malformed_endpoints_are_refused, clear),
        cmocka_unit_test_setup(test_otlp_headers_are_parsed, clear),
        cmocka_unit_test_setup(test_sampler_and_batch_settings_are_read, clear),
        cmocka_unit_test_setup(test_resource_attributes_are_merged, clear),
        cmocka_unit_test_setup(test_spans_are_encoded_as_json, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
