/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/child.h"

#include "base/util.h"
#include "kinds/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define OWNER                                                                                      \
    "\"ownerReferences\":[{\"apiVersion\":\"operator.k8s-summit.org/v1\",\"kind\":\"MyWeb\","      \
    "\"name\":\"web\",\"uid\":\"owner-uid\",\"controller\":true}]"
#define MANAGED                                                                                    \
    "\"managedFields\":[{\"manager\":\"steward-myweb\",\"operation\":\"Apply\","                   \
    "\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\","                                           \
    "\"fieldsV1\":{\"f:data\":{\"f:index.html\":{}},"                                              \
    "\"f:metadata\":{\"f:deletionGracePeriodSeconds\":{}}}}]"

static void project(const struct stw_watch *w, const char *text, struct stw_buf *out)
{
    struct stw_json_doc doc = {0};
    struct stw_error err = {0};
    if (stw_json_scan(&doc, text, strlen(text), &err) != 0)
        fail_msg("%s", err.text);
    w->project(&stw_operator_steward, stw_json_root(&doc), out);
    assert_false(out->failed);
    stw_json_done(&doc);
}

static void read_back(const struct stw_watch *w, const char *text, struct stw_child_live *live)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
    project(w, text, &out);
    assert_true(out.len > 0);
    assert_int_equal(stw_child_read(out.data, out.len, live), 0);
}

static void expect_dropped(const struct stw_watch *w, const char *text)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
    project(w, text, &out);
    assert_int_equal(out.len, 0);
}

static void test_configmap_is_read_from_the_watch(void **state)
{
    struct stw_child_live a, b;
    struct stw_hash wanted;
    (void)state;
    read_back(&stw_watch_configmaps,
              "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u1\"," OWNER
              "," MANAGED "},\"data\":{\"index.html\":\"hello\",\"other\":\"x\"}}",
              &a);
    assert_string_equal(a.uid, "u1");
    assert_string_equal(a.owner_kind, "MyWeb");
    assert_string_equal(a.owner_name, ""); /* the same as that of the child */
    assert_string_equal(a.owner_uid, "owner-uid");
    assert_false(a.terminating);
    json_auto_t *desired = json_pack("{s:{s:s}}", "data", "index.html", "hello");
    assert_int_equal(stw_child_digest(desired, &wanted), 0);
    assert_memory_equal(&wanted, &a.digest, sizeof(wanted));

    read_back(&stw_watch_configmaps,
              "{\"metadata\":{\"name\":\"other\",\"uid\":\"u1\",\"deletionTimestamp\":"
              "\"2024-01-01T00:00:00Z\"," OWNER "," MANAGED
              "},\"data\":{\"index.html\":\"edited\"}}",
              &b);
    assert_string_equal(b.owner_name, "web");
    assert_true(b.terminating);
    assert_memory_not_equal(&b.digest, &a.digest, sizeof(b.digest));
}

static void test_objects_of_others_are_not_cached(void **state)
{
    (void)state;
    expect_dropped(&stw_watch_configmaps, "{\"metadata\":{\"name\":\"a\"},\"data\":{}}");
    expect_dropped(&stw_watch_deployments,
                   "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"kind\":\"Other\","
                   "\"name\":\"x\",\"uid\":\"y\",\"controller\":true}]}}");
    expect_dropped(&stw_watch_configmaps,
                   "{\"metadata\":{\"name\":\"web\",\"ownerReferences\":[{\"apiVersion\":"
                   "\"other.example.org/v1\",\"kind\":\"MyWeb\",\"name\":\"web\",\"uid\":\"y\","
                   "\"controller\":true}]," MANAGED "}}");
    expect_dropped(&stw_watch_services,
                   "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"ports\":[{\"port\":80}]}}");
}

static void test_deployment_is_read_from_the_watch(void **state)
{
    struct stw_child_live live;
    (void)state;
    read_back(&stw_watch_deployments,
              "{\"metadata\":{\"name\":\"web\",\"uid\":\"u\",\"generation\":7," OWNER
              "},\"status\":{\"observedGeneration\":6,\"replicas\":3,\"updatedReplicas\":2,"
              "\"availableReplicas\":1,\"conditions\":[{\"type\":\"Available\",\"status\":"
              "\"False\",\"message\":\"no\"},{\"type\":\"Progressing\",\"status\":\"False\","
              "\"reason\":\"ProgressDeadlineExceeded\",\"message\":\"it \\\"hangs\\\"\"}]}}",
              &live);
    assert_int_equal(live.rollout.generation, 7);
    assert_int_equal(live.rollout.observed_generation, 6);
    assert_int_equal(live.rollout.replicas, 3);
    assert_int_equal(live.rollout.updated, 2);
    assert_int_equal(live.rollout.available, 1);
    assert_string_equal(live.rollout.stuck_reason, "ProgressDeadlineExceeded");
    assert_string_equal(live.rollout.stuck_message, "it \"hangs\"");

    read_back(&stw_watch_deployments,
              "{\"metadata\":{\"name\":\"web\",\"uid\":\"u\"," OWNER
              "},\"status\":{\"conditions\":[{\"type\":\"ReplicaFailure\",\"status\":\"True\","
              "\"reason\":\"FailedCreate\",\"message\":\"quota\"}]}}",
              &live);
    assert_string_equal(live.rollout.stuck_reason, "ReplicaFailure");
    assert_string_equal(live.rollout.stuck_message, "quota");
}

/* Since when the API server refuses the pods of a Deployment, or when they were retried. */
static void test_time_of_refused_pods_is_read(void **state)
{
#define REFUSED(annotations, status, reason, time)                                                 \
    "{\"metadata\":{\"name\":\"web\",\"uid\":\"u\",\"annotations\":{" annotations "}," OWNER       \
    "},\"status\":{\"conditions\":[{\"type\":\"Progressing\",\"status\":\"False\"},"               \
    "{\"type\":\"ReplicaFailure\",\"status\":\"" status "\",\"reason\":\"" reason                  \
    "\",\"lastTransitionTime\":" time "}]}}"
#define RETRIED(time) "\"steward.dev/pods-retried-at\":" time
    static const struct {
        const char *object;
        int64_t want_us;
    } cases[] = {
        {REFUSED("", "True", "FailedCreate", "\"1970-01-01T00:00:07Z\""), 7000000},
        {REFUSED(RETRIED("\"1970-01-01T00:00:09Z 00000000000000010000000000000007\""), "True",
                 "FailedCreate", "\"1970-01-01T00:00:07Z\""),
         9000000},
        {REFUSED(RETRIED("\"soon\""), "True", "FailedCreate", "\"1970-01-01T00:00:07Z\""), 7000000},
        {REFUSED(RETRIED("\"1970-01-01T00:00:09Z x\""), "True", "FailedCreate",
                 "\"1970-01-01T00:00:07Z\""),
         7000000},
        {REFUSED(RETRIED("7"), "True", "FailedCreate", "null"), 1}, /* long ago */
        {REFUSED("", "True", "FailedDelete", "\"1970-01-01T00:00:07Z\""), 0},
        {REFUSED("", "False", "FailedCreate", "\"1970-01-01T00:00:07Z\""), 0},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_child_live live;
        read_back(&stw_watch_deployments, cases[i].object, &live);
        assert_int_equal(live.rollout.refused_us, cases[i].want_us);
    }
}

/* For an App, which other clients may scale: the wanted number of pods, and whether we set it.  For
 * a MyWeb none of this is cached. */
static void test_scaled_deployment_has_its_replica_owner(void **state)
{
#define SCALED(version, kind, manager)                                                             \
    "{\"metadata\":{\"name\":\"web\",\"uid\":\"u\",\"ownerReferences\":[{\"apiVersion\":"          \
    "\"" version "\",\"kind\":\"" kind                                                             \
    "\",\"name\":\"web\",\"uid\":\"o\",\"controller\":true}],\"managedFields\":[{\"manager\":"     \
    "\"" manager "\",\"operation\":\"Apply\",\"fieldsV1\":{\"f:spec\":{\"f:replicas\":{}}}}]},"    \
    "\"spec\":{\"replicas\":7},\"status\":{\"readyReplicas\":4}}"
    struct stw_child_live live;
    (void)state;
    read_back(&stw_watch_deployments, SCALED("mycompany.com/v1", "App", "steward-app"), &live);
    assert_int_equal(live.rollout.wanted, 7);
    assert_int_equal(live.rollout.ready, 4);
    assert_true(live.rollout.scaled_by_us);
    read_back(&stw_watch_deployments, SCALED("mycompany.com/v1", "App", "steward-app-replicas"),
              &live);
    assert_int_equal(live.rollout.wanted, 7);
    assert_false(live.rollout.scaled_by_us);
    read_back(&stw_watch_deployments,
              SCALED("operator.k8s-summit.org/v1", "MyWeb", "steward-myweb"), &live);
    assert_int_equal(live.rollout.wanted, 0);
    assert_int_equal(live.rollout.ready, 0);
}

/* autoscaling/v1 has its conditions in an annotation, as text. */
static void test_autoscaler_conditions_are_read(void **state)
{
#define SCALER(annotations, status)                                                                \
    "{\"metadata\":{\"name\":\"web\",\"uid\":\"u\",\"annotations\":{" annotations "}," OWNER       \
    "},\"status\":{" status "}}"
    static const struct {
        const char *object;
        bool reported, active;
        const char *reason, *message;
    } cases[] = {
        {SCALER("", ""), false, false, "", ""},
        {SCALER("", "\"conditions\":[{\"type\":\"AbleToScale\",\"status\":\"False\"},{\"type\":"
                    "\"ScalingActive\",\"status\":\"True\",\"reason\":\"ValidMetricFound\"}]"),
         true, true, "", ""},
        {SCALER("", "\"conditions\":[{\"type\":\"ScalingActive\",\"status\":\"False\",\"reason\":"
                    "\"FailedGetResourceMetric\",\"message\":\"no \\\"metrics\\\"\"}]"),
         true, false, "FailedGetResourceMetric", "no \"metrics\""},
        {SCALER("\"autoscaling.alpha.kubernetes.io/conditions\":\"[{\\\"type\\\":"
                "\\\"ScalingActive\\\",\\\"status\\\":\\\"False\\\",\\\"reason\\\":\\\"X\\\"}]\"",
                ""),
         true, false, "X", ""},
        {SCALER("\"autoscaling.alpha.kubernetes.io/conditions\":\"[{\"", ""), false, false, "", ""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_child_live live;
        read_back(&stw_watch_autoscalers, cases[i].object, &live);
        assert_int_equal(live.report.reported, cases[i].reported);
        assert_int_equal(live.report.active, cases[i].active);
        assert_string_equal(live.report.reason, cases[i].reason);
        assert_string_equal(live.report.message, cases[i].message);
    }
}

/* Each Gateway has conditions of its own; the first that is not true is reported. */
static void test_route_conditions_of_all_gateways_are_read(void **state)
{
#define ROUTE(status)                                                                              \
    "{\"metadata\":{\"name\":\"web\",\"uid\":\"u\"," OWNER "},\"status\":{" status "}}"
#define SAID(type, status)                                                                         \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"Why\",\"message\":\"so\"}"
    static const struct {
        const char *object;
        bool reported, active;
    } cases[] = {
        {ROUTE(""), false, false},
        {ROUTE("\"parents\":[]"), false, false},
        {ROUTE("\"parents\":[{\"conditions\":[" SAID("Accepted", "True") "]}]"), true, true},
        {ROUTE("\"parents\":[{\"conditions\":[" SAID(
             "Accepted", "True") "]},{\"conditions\":[" SAID("ResolvedRefs", "False") "]}]"),
         true, false},
        {ROUTE("\"parents\":[{\"conditions\":[" SAID("Accepted", "False") "," SAID("ResolvedRefs",
                                                                                   "True") "]}]"),
         true, false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_child_live live;
        read_back(&stw_watch_http_routes, cases[i].object, &live);
        assert_int_equal(live.report.reported, cases[i].reported);
        assert_int_equal(live.report.active, cases[i].active);
        assert_string_equal(live.report.reason, cases[i].reported && !cases[i].active ? "Why" : "");
    }
}

static void test_services_and_their_ports_are_indexed(void **state)
{
    struct stw_child_live live;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096), keys = STW_BUF_INIT(4096);
    stw_autojson struct stw_json_doc doc = {0};
    (void)state;
    read_back(&stw_watch_services,
              "{\"metadata\":{\"name\":\"web\",\"uid\":\"u\"," OWNER
              "},\"spec\":{\"ports\":[{\"port\":80,\"nodePort\":30100}]}}",
              &live);
    assert_int_equal(live.node_port, 30100);
    assert_string_equal(live.owner_uid, "owner-uid");
    read_back(&stw_watch_services,
              "{\"metadata\":{\"name\":\"web\",\"uid\":\"u\"," OWNER "},\"spec\":{}}", &live);
    assert_int_equal(live.node_port, 0);
    /* another owner's, with node ports: cached to find who uses a port */
    project(&stw_watch_services,
            "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"ports\":[{\"nodePort\":30001},"
            "{\"port\":1},{\"nodePort\":30002}]}}",
            &text);
    assert_string_equal(stw_buf_str(&text), "{\"p\":[30001,30002]}");
    assert_int_equal(stw_json_scan(&doc, text.data, text.len, NULL), 0);
    stw_watch_services.index(NULL, stw_json_root(&doc), &keys);
    assert_string_equal(stw_buf_str(&keys), "nodePort:30001\nnodePort:30002\n");
    assert_int_equal(stw_child_read(text.data, text.len, &live), 0);
    assert_string_equal(live.owner_kind, "");
}

static void test_malformed_cache_text_is_read_safely(void **state)
{
    struct stw_child_live live;
    static const char *const texts[] = {"", "{", "[]", "{\"o\":3,\"d\":\"zz\",\"p\":{},\"r\":[]}"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        (void)stw_child_read(texts[i], strlen(texts[i]), &live);
        assert_string_equal(live.uid, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configmap_is_read_from_the_watch),
        cmocka_unit_test(test_objects_of_others_are_not_cached),
        cmocka_unit_test(test_deployment_is_read_from_the_watch),
        cmocka_unit_test(test_time_of_refused_pods_is_read),
        cmocka_unit_test(test_services_and_their_ports_are_indexed),
        cmocka_unit_test(test_malformed_cache_text_is_read_safely),
        cmocka_unit_test(test_scaled_deployment_has_its_replica_owner),
        cmocka_unit_test(test_autoscaler_conditions_are_read),
        cmocka_unit_test(test_route_conditions_of_all_gateways_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
