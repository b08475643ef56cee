/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/admission_metrics_priv.h"

#include "base/util.h"
#include "kinds/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void fields_have_no_keys(void **state)
{
    static const struct {
        const char *path, *field;
    } cases[] = {
        {"spec.image", "spec.image"},
        {"spec.ports[3].port", "spec.ports[].port"},
        {"metadata.annotations[steward.dev/paused]", "metadata.annotations[]"},
        {"spec.a[0][1].b", "spec.a[][].b"},
        {"spec.open[", "spec.open["}, /* never written, must not be read past */
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char field[64];
        stw_admission_metrics_field(cases[i].path, field, sizeof(field));
        assert_string_equal(field, cases[i].field);
    }
    char small[8];
    stw_admission_metrics_field("spec.replicas", small, sizeof(small));
    assert_string_equal(small, "spec.r");
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

static void counts(void **state)
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

static void works_without_a_registry(void **state)
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
        cmocka_unit_test(fields_have_no_keys),
        cmocka_unit_test(counts),
        cmocka_unit_test(works_without_a_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
