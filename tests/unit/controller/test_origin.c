/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages are what API servers 1.20.2 and 1.37.2 answered to an apply of the objects below. */
#include "controller/origin.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CONTAINER "spec.template.spec.containers[app]"

static const struct stw_origin of_deployment[] = {
    {CONTAINER ".resources", "spec.resources"},
    {CONTAINER ".env", "spec.env"},
    {"spec.template.spec", "spec"},
    {"spec.template", "spec.podTemplate"},
    {0},
};
static const struct stw_origin of_autoscaler[] = {{"spec", "spec.autoscaling"}, {0}};

static const char deployment[] =
    "{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"app\":\"web\"}},\"spec\":{"
    "\"volumes\":[{\"name\":\"data\",\"emptyDir\":{}},{\"name\":\"\",\"configMap\":{}}],"
    "\"tolerations\":[{\"operator\":\"Exists\",\"effect\":\"Never\"}],\"fromTheFuture\":1,"
    "\"terminationGracePeriodSeconds\":30,"
    "\"topologySpreadConstraints\":[{\"topologyKey\":\"a,b\",\"maxSkew\":1},"
    "{\"topologyKey\":\"zone\",\"maxSkew\":2,\"labelSelector\":{\"matchLabels\":{\"a\":\"b\"}}}],"
    "\"containers\":[{\"name\":\"app\",\"image\":\"i\",\"fromTheFuture\":true,"
    "\"env\":[{\"name\":\"PORT\",\"value\":\"80\"},{\"name\":\"A\",\"value\":\"b\"}],"
    "\"resources\":{\"limits\":{\"cpu\":\"1\"},\"requests\":{\"cpu\":\"2\"}}},"
    "{\"name\":\"side\",\"image\":\"i\",\"volumeMounts\":[{\"name\":\"none\",\"mountPath\":\"/"
    "x\"}],"
    "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"fromTheFuture\":{}}}]}]}}}}";

/* The containers of the template are in another order. */
static const char app[] =
    "{\"spec\":{\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"1\"},\"requests\":{\"cpu\":"
    "\"2\"}},"
    "\"env\":[{\"name\":\"A\",\"value\":\"b\"}],"
    "\"tolerations\":[{\"operator\":\"Exists\",\"effect\":\"Never\"}],"
    "\"topologySpreadConstraints\":[{\"topologyKey\":\"zone\",\"maxSkew\":2}],"
    "\"podTemplate\":{\"metadata\":{\"labels\":{\"app\":\"web\"}},\"spec\":{\"fromTheFuture\":1,"
    "\"volumes\":[{\"name\":\"data\",\"emptyDir\":{}},{\"name\":\"\",\"configMap\":{}}],"
    "\"containers\":[{\"name\":\"side\",\"image\":\"i\","
    "\"volumeMounts\":[{\"name\":\"none\",\"mountPath\":\"/x\"}],"
    "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"fromTheFuture\":{}}}]},"
    "{\"name\":\"app\",\"fromTheFuture\":true}]}},"
    "\"autoscaling\":{\"metrics\":[{\"type\":\"External\",\"fromTheFuture\":1,\"external\":{"
    "\"metric\":{\"name\":\"q\"},\"target\":{\"type\":\"Value\"}}}],"
    "\"behavior\":{\"scaleUp\":{\"fromTheFuture\":3,\"policies\":[{\"type\":\"Pods\",\"value\":0}]}"
    "}}}}";

/* A metric of another field comes first, and the server has set a default. */
static const char autoscaler[] =
    "{\"spec\":{\"maxReplicas\":3,\"metrics\":[{\"type\":\"Resource\"},{\"type\":\"External\","
    "\"fromTheFuture\":1,\"external\":{\"metric\":{\"name\":\"q\"},"
    "\"target\":{\"type\":\"Value\",\"averageValue\":\"1\"}}}],"
    "\"behavior\":{\"scaleUp\":{\"fromTheFuture\":3,\"policies\":[{\"type\":\"Pods\",\"value\":0}]}"
    "}}}";

static void assert_named(const struct stw_origin *origins, const char *sent, const char *message,
                         const char *expected)
{
    stw_autojson struct stw_json_doc doc = {0};
    json_auto_t *tree = json_loads(sent, 0, NULL);
    struct stw_error err;
    assert_int_equal(stw_json_scan(&doc, app, strlen(app), NULL), 0);
    (void)stw_fail(&err, STW_ERR_INVALID, "%s", message);
    stw_origin_name(origins, tree, stw_json_root(&doc), &err);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.code, STW_ERR_INVALID);
}

static void test_invalid_values_have_the_path_of_the_object(void **state)
{
    (void)state;
    assert_named(
        of_deployment, deployment,
        "Deployment.apps \"web\" is invalid: [spec.template.spec.volumes[1].configMap.name: "
        "Required "
        "value, spec.template.spec.containers[0].resources.requests: Invalid value: \"2\": must be "
        "less than or equal to cpu limit of 1, "
        "spec.template.spec.containers[1].volumeMounts[0].name: "
        "Not found: \"none\", spec.template.spec.tolerations[0].effect: Unsupported value: "
        "\"Never\"]",
        "Deployment.apps \"web\" is invalid: [spec.podTemplate.spec.volumes[1].configMap.name: "
        "Required value, spec.resources.requests: Invalid value: \"2\": must be less than or equal "
        "to cpu limit of 1, spec.podTemplate.spec.containers[0].volumeMounts[0].name: Not found: "
        "\"none\", spec.tolerations[0].effect: Unsupported value: \"Never\"]");
    assert_named(
        of_autoscaler, autoscaler,
        "HorizontalPodAutoscaler.autoscaling \"web\" is invalid: "
        "[spec.metrics[1].external.target.averageValue: Required value: must set either, "
        "spec.behavior.scaleUp.policies[0].value: Invalid value: 0]",
        "HorizontalPodAutoscaler.autoscaling \"web\" is invalid: "
        "[spec.autoscaling.metrics[0].external.target.averageValue: Required value: must "
        "set either, spec.autoscaling.behavior.scaleUp.policies[0].value: Invalid value: 0]");
}

static void test_unknown_members_have_the_path_of_the_object(void **state)
{
    (void)state;
    assert_named(of_deployment, deployment,
                 "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
                 ".spec.template.spec.fromTheFuture: field not declared in schema",
                 "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
                 "spec.podTemplate.spec.fromTheFuture: field not declared in schema");
    assert_named(
        of_deployment, deployment,
        "failed to create typed patch object: errors:\n"
        "  .spec.template.spec.containers[name=\"app\"].fromTheFuture: field not declared\n"
        "  .spec.template.spec.containers[name=\"side\"].env[name=\"A\"].valueFrom."
        "fromTheFuture: field not declared",
        "failed to create typed patch object: errors:\n"
        "  spec.podTemplate.spec.containers[1].fromTheFuture: field not declared\n"
        "  spec.podTemplate.spec.containers[0].env[0].valueFrom.fromTheFuture: field not "
        "declared");
    assert_named(of_autoscaler, autoscaler,
                 "failed to create typed patch object: errors:\n"
                 "  .spec.metrics[1].fromTheFuture: field not declared in schema\n"
                 "  .spec.behavior.scaleUp.fromTheFuture: field not declared in schema",
                 "failed to create typed patch object: errors:\n"
                 "  spec.autoscaling.metrics[0].fromTheFuture: field not declared in schema\n"
                 "  spec.autoscaling.behavior.scaleUp.fromTheFuture: field not declared in schema");
}

static void test_elements_and_keys_are_looked_up(void **state)
{
    (void)state;
    assert_named(of_deployment, deployment, "spec.template.spec.containers[0].env[1].name: Invalid",
                 "spec.env[0].name: Invalid");
    assert_named(of_deployment, deployment,
                 "x: .spec.template.spec.topologySpreadConstraints[maxSkew=2,topologyKey=\"zone\"]"
                 ".maxSkew: bad",
                 "x: spec.topologySpreadConstraints[0].maxSkew: bad");
    assert_named(of_deployment, deployment,
                 "spec.template.spec.containers[0].resources.limits[cpu]: Invalid value",
                 "spec.resources.limits[cpu]: Invalid value");
    assert_named(of_deployment, deployment, "spec.template.metadata.labels[app]: Invalid value",
                 "spec.podTemplate.metadata.labels[app]: Invalid value");
}

/* What steward sets itself, values and words that look like paths. */
static void test_text_that_is_no_path_is_kept(void **state)
{
    (void)state;
    static const char *const same[] = {
        "",
        "spec",
        "spec.",
        "spec.template.spec.terminationGracePeriodSeconds: Invalid value: 30",
        "spec.template.spec.containers[0].image: Invalid value",
        "spec.template.spec.containers[0].env[0].value: Invalid value",
        "spec.template.spec.containers[7].image: Required value",
        "spec.template.spec.containers[99999999999999999999].image: Required value",
        "spec.template.spec.containers[name=\"nobody\"].image: Required value",
        "spec.template.spec.containers[name=].image: Required value",
        "spec.template.spec.containers[.image",
        "spec.template.spec.containers[name=\"a].image",
        "spec.selector: Required value",
        "Invalid value: \"spec.template.spec.fromTheFuture\": no path",
        "myspec.template.spec.fromTheFuture",
        "spec.template.spec.topologySpreadConstraints[topologyKey=\"a,b\"].maxSkew: bad",
    };
    for (size_t i = 0; i < STW_COUNT(same); i++)
        assert_named(of_deployment, deployment, same[i], same[i]);
    assert_named(NULL, deployment, "spec.template.spec.fromTheFuture: x",
                 "spec.template.spec.fromTheFuture: x");
}

static void test_long_paths_and_texts_are_truncated(void **state)
{
    (void)state;
    char text[512] = "";
    for (int i = 0; i < 60; i++)
        stw_format(text + strlen(text), sizeof(text) - strlen(text), "spec.a.b.c");
    assert_named(of_deployment, deployment, text, text);
    memset(text, 'a', 200);
    memcpy(text, "spec.", 5);
    text[200] = '\0';
    assert_named(of_deployment, deployment, text, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invalid_values_have_the_path_of_the_object),
        cmocka_unit_test(test_unknown_members_have_the_path_of_the_object),
        cmocka_unit_test(test_elements_and_keys_are_looked_up),
        cmocka_unit_test(test_text_that_is_no_path_is_kept),
        cmocka_unit_test(test_long_paths_and_texts_are_truncated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
