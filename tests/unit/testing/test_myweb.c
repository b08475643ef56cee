/* SPDX-License-Identifier: Apache-2.0
 *
 * A kind of steward on the server in memory: five children, resources that the server may lack, one in several
 * versions, and pods that only the test starts. */
#include "base/util.h"
#include "kinds/kinds.h"
#include "kube/resource.h"
#include "testing/test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEY "default/hello"

static const struct stw_kind *kinds[2];
static const struct stw_controller *controllers[2];
static struct stw_operator program;

static void fail_test(const char *text)
{
    fail_msg("%s", text);
}

static struct stw_test *begin(const struct stw_resource *const *resources)
{
    program = stw_operator_steward;
    for (size_t i = 0; stw_operator_steward.kinds[i]; i++) {
        if (!stw_streq(stw_operator_steward.kinds[i]->kind, "MyWeb"))
            continue;
        kinds[0] = stw_operator_steward.kinds[i];
        controllers[0] = stw_operator_steward.controllers[i];
    }
    assert_non_null(kinds[0]);
    program.kinds = kinds;
    program.controllers = controllers;
    return stw_test_begin(
        &(struct stw_test_config){.op = &program, .resources = resources, .fail = fail_test});
}

static json_t *web(const char *image)
{
    return json_pack("{s:s,s:s,s:{s:s},s:{s:s,s:i,s:s}}", "apiVersion",
                     "operator.k8s-summit.org/v1", "kind", "MyWeb", "metadata", "name", "hello",
                     "spec", "image", image, "nodePortNumber", 30010, "pageContentHtml", "hello");
}

/* As its controller does when the pods are ready. */
static void start_pods(struct stw_test *t)
{
    json_t *deployment = json_deep_copy(stw_test_get(t, &stw_res_deployment, KEY));
    assert_non_null(deployment);
    json_t *generation = json_object_get(json_object_get(deployment, "metadata"), "generation");
    json_object_set_new(deployment, "status",
                        json_pack("{s:O,s:i,s:i,s:i,s:i}", "observedGeneration", generation,
                                  "replicas", 1, "updatedReplicas", 1, "readyReplicas", 1,
                                  "availableReplicas", 1));
    stw_test_put(t, deployment);
    stw_test_settle(t);
}

static const char *ready(struct stw_test *t)
{
    return stw_test_condition(t, &kinds[0]->resource, KEY, "Ready");
}

static void test_its_life(void **state)
{
    (void)state;
    struct stw_test *t = begin(NULL);
    stw_test_put(t, web("nginx:1.22"));
    stw_test_settle(t);
    assert_string_equal(ready(t), "False");
    assert_non_null(stw_test_get(t, &stw_res_configmap, KEY));
    assert_non_null(strstr(stw_test_text(t, &stw_res_service, KEY, "spec.ports"), "30010"));
    start_pods(t);
    assert_string_equal(ready(t), "True");
    stw_test_forget(t);
    stw_test_restart(t);
    stw_test_settle(t);
    assert_int_equal(stw_test_count(t, &(struct stw_test_request){.verb = "write"}), 0);
    stw_test_put(t, web("nginx:1.23"));
    stw_test_settle(t);
    assert_non_null(strstr(
        stw_test_text(t, &stw_res_deployment, KEY, "spec.template.spec.containers"), "nginx:1.23"));
    start_pods(t);
    stw_test_delete(t, &kinds[0]->resource, KEY);
    stw_test_settle(t);
    assert_null(stw_test_get(t, &stw_res_deployment, KEY));
    assert_null(stw_test_get(t, &stw_res_service, KEY));
    stw_test_end(t);
}

/* Another client changes a field of ours by hand: it is set back, and what is not ours stays. */
static void test_drift(void **state)
{
    (void)state;
    struct stw_test *t = begin(NULL);
    stw_test_put(t, web("nginx:1.22"));
    stw_test_settle(t);
    start_pods(t);
    json_t *service = json_deep_copy(stw_test_get(t, &stw_res_service, KEY));
    json_object_set_new(
        json_array_get(json_object_get(json_object_get(service, "spec"), "ports"), 0), "targetPort",
        json_integer(9));
    json_object_set_new(json_object_get(service, "metadata"), "annotations",
                        json_pack("{s:s}", "other.example.org/mine", "yes"));
    stw_test_put(t, service);
    assert_non_null(
        strstr(stw_test_text(t, &stw_res_service, KEY, "spec.ports"), "\"targetPort\":9"));
    stw_test_settle(t);
    assert_null(strstr(stw_test_text(t, &stw_res_service, KEY, "spec.ports"), "\"targetPort\":9"));
    assert_string_equal(ready(t), "True");
    assert_string_not_equal(stw_test_event(t, "hello", "DriftRepaired"), "");
    assert_non_null(
        strstr(stw_test_text(t, &stw_res_service, KEY, "metadata.annotations"), "\"yes\""));
    stw_test_end(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_its_life),
        cmocka_unit_test(test_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
