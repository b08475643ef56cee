/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/admission_metrics_priv.h"

#include "base/util.h"
#include "kinds/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_metric_fields_have_no_map_keys(void **state)
{
    static const struct stw_field text = {.name = "", .type = STW_T_STRING};
    static const struct stw_field port_rows[] = {{.name = "port"}, {0}};
    static const struct stw_field port = {.name = "", .type = STW_T_OBJECT, .fields = port_rows};
    static const struct stw_field list = {.name = "", .type = STW_T_LIST, .item = &text};
    static const struct stw_field known_rows[] = {
        {.name = "ports", .type = STW_T_LIST, .item = &port}, {0}};
    static const struct stw_field spec[] = {
        {.name = "image", .type = STW_T_STRING},
        {.name = "ports", .type = STW_T_LIST, .item = &port},
        {.name = "a", .type = STW_T_LIST, .item = &list},
        {.name = "labels", .type = STW_T_MAP, .item = &text},
        {.name = "template", .type = STW_T_RAW, .known = known_rows},
        {0},
    };
    static const struct {
        const char *path, *field;
    } cases[] = {
        {"spec.image", "spec.image"},
        {"spec.ports[3].port", "spec.ports[].port"},
        {"spec.template.ports[12].port", "spec.template.ports[].port"},
        {"spec.a[0][1]", "spec.a[][]"},
        {"metadata.annotations[steward.dev/paused]", "metadata.annotations[]"},
        /* keys that look like more of the path */
        {"spec.labels[a].b\xff\n]", "spec.labels[]"},
        {"spec.labels[]a]", "spec.labels[]"},
        {"spec.labels[0].a1]", "spec.labels[]"},
        {"spec.labels[0].ports[0]]", "spec.labels[]"},
        {"metadata.annotations[0].a[1]", "metadata.annotations[]"},
        {"spec.template.env[0].a", "spec.template.env[]"},
        {"spec.ports[x].port", "spec.ports[]"},
        {"spec.open[", "spec.open[]"}, /* never written, must not be read past */
        {"spec.ports[3", "spec.ports[]"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char field[64];
        stw_admission_metrics_field(spec, cases[i].path, field, sizeof(field));
        assert_string_equal(field, cases[i].field);
    }
    stw_autofree char *small = malloc(8); /* for AddressSanitizer */
    stw_admission_metrics_field(spec, "spec.replicas", small, 8);
    assert_string_equal(small, "spec.r");
    stw_admission_metrics_field(spec, "spec.a[0][1]", small, 8);
    assert_string_equal(small, "spec.a");
    stw_admission_metrics_field(NULL, "spec.a", small, 8);
    assert_string_equal(small, "spec.a");
}

static char *rendered(struct stw_metrics *m)
{
    struct stw_buf out = STW_BUF_INIT(1 << 20);
    stw_metrics_render(m, &out);
    return stw_buf_take(&out);
}

static void assert_has(struct stw_metrics *m, const char *line)
{
    stw_autofree char *text = rendered(m);
    if (!strstr(text, line))
        fail_msg("%s\nis not in\n%s", line, text);
}

static void test_admission_results_are_counted(void **state)
{
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_admission_metrics t;
    struct stw_route r = {0};
    struct stw_review_result v = {.operation = "CREATE", .dry_run = true};
    (void)state;
    stw_admission_metrics_init(&t, m);
    stw_route_init(&r, &t, stw_kinds[0], false, strdup("/validate-x"));
    /* present before the first request */
    assert_has(
        m, "controller_runtime_webhook_requests_total{webhook=\"/validate-x\",code=\"200\"} 0\n");
    assert_has(
        m, "controller_runtime_webhook_requests_total{webhook=\"/validate-x\",code=\"500\"} 0\n");
    assert_has(m, "controller_runtime_webhook_requests_in_flight{webhook=\"/validate-x\"} 0\n");
    assert_has(m,
               "steward_admission_reviews_total{webhook=\"/validate-x\",kind=\"MyWeb\",operation="
               "\"CREATE\",allowed=\"false\",dry_run=\"false\"} 0\n");
    stw_findings_add(&v.findings, "spec.ports[4]", STW_INVALID, "1", "bad");
    stw_admission_metrics_verdict(&r, &v);
    stw_admission_metrics_reply(&r, 200, 0.00002);
    stw_admission_metrics_reply(&r, 413, 0.00002);
    assert_has(m, "requests_total{webhook=\"/validate-x\",code=\"200\"} 1\n");
    assert_has(m, "requests_total{webhook=\"/validate-x\",code=\"413\"} 1\n");
    assert_has(m, "latency_seconds_count{webhook=\"/validate-x\"} 2\n");
    assert_has(m, "allowed=\"false\",dry_run=\"true\"} 1\n");
    assert_has(m, "steward_admission_violations_total{kind=\"MyWeb\",field=\"spec.ports[]\",code="
                  "\"FieldValueInvalid\"} 1\n");
    stw_findings_done(&v.findings);
    stw_route_done(&r);
    stw_metrics_destroy(m);
}

static void test_admission_metrics_work_without_a_registry(void **state)
{
    struct stw_admission_metrics t;
    struct stw_route r = {0};
    struct stw_review_result v = {.operation = "DELETE", .allowed = true};
    (void)state;
    stw_admission_metrics_init(&t, NULL);
    stw_route_init(&r, &t, stw_kinds[0], true, strdup("/mutate-x"));
    stw_admission_metrics_verdict(&r, &v);
    stw_admission_metrics_reply(&r, 500, 1);
    stw_route_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metric_fields_have_no_map_keys),
        cmocka_unit_test(test_admission_results_are_counted),
        cmocka_unit_test(test_admission_metrics_work_without_a_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
