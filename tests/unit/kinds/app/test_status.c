/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "kinds/app/status.h"
#include "support/status_shape.h"

#include "controller/status.h"

#define SPEC "{\"image\":\"shop:1.4\",\"replicas\":2}"
#define SCALED                                                                                     \
    "{\"image\":\"shop:1.4\",\"replicas\":1,\"autoscaling\":{\"enabled\":true,\"maxReplicas\":5}}"

/* For the running test: a healthy App, and the verdict on it. */
static struct fixture f;
static struct stw_verdict v;

static void begin(const char *spec, const char *status)
{
    fixture_init(&f, spec, status);
    f.app.children[APP_DEPLOYMENT].live.rollout = (struct stw_rollout){.generation = 5,
                                                                       .observed_generation = 5,
                                                                       .replicas = 2,
                                                                       .updated = 2,
                                                                       .available = 2,
                                                                       .wanted = 2,
                                                                       .ready = 2};
}

static int all_well(void **state)
{
    (void)state;
    begin(SPEC, "");
    return 0;
}

static int done(void **state)
{
    (void)state;
    fixture_done(&f);
    return 0;
}

static struct stw_rollout *rollout(void)
{
    return &f.app.children[APP_DEPLOYMENT].live.rollout;
}

static void fail_child(int child, enum stw_err code, const char *text)
{
    struct stw_child *c = &f.app.children[child];
    c->state = STW_CHILD_FAILED;
    (void)stw_fail(&c->err, code, "%s", text);
}

static void trouble(const char *reason, const char *message, bool passing)
{
    f.app.trouble = (struct stw_pod_trouble){.found = true, .passing = passing};
    (void)snprintf(f.app.trouble.reason, sizeof(f.app.trouble.reason), "%s", reason);
    (void)snprintf(f.app.trouble.message, sizeof(f.app.trouble.message), "%s", message);
}

static void check_shape(const json_t *status)
{
    static const char *const order[] = {
        "Ready",        "Reconciling",  "Stalled",           "Available", "Progressing",
        "ConfigSynced", "ServiceReady", "AutoscalingActive", "Degraded",  NULL};
    check_conditions(status, order, 3);
    note_status("App", status, 3);
}

static json_t *judge(void)
{
    json_t *status;
    app_judge(&f.app, &v, &status);
    assert_non_null(status);
    check_shape(status);
    return status;
}

/* "True/Reason" of a condition, "" if it is absent. */
static const char *says(const json_t *status, const char *type)
{
    static char out[128];
    const json_t *c = condition(status, type);
    (void)snprintf(out, sizeof(out), "%s%s%s", text(c, "status"), c ? "/" : "", text(c, "reason"));
    return out;
}

static int64_t number(const json_t *status, const char *key)
{
    return json_integer_value(json_object_get(status, key));
}

static void test_ready_when_all_replicas_are_available(void **state)
{
    (void)state;
    json_auto_t *s = judge();
    assert_int_equal(v.level, STW_LEVEL_FINE);
    assert_string_equal(says(s, "Ready"), "True/Succeeded");
    assert_string_equal(says(s, "Available"), "True/MinimumReplicasAvailable");
    assert_string_equal(says(s, "Progressing"), "False/NewReplicaSetAvailable");
    assert_string_equal(says(s, "ConfigSynced"), "True/Synced");
    assert_string_equal(says(s, "ServiceReady"), "True/Endpoints");
    assert_string_equal(says(s, "AutoscalingActive"), "");
    assert_string_equal(says(s, "Degraded"), "False/Healthy");
    assert_string_equal(text(s, "phase"), "Running");
    assert_string_equal(text(s, "url"), "http://web.shop.svc:80");
    assert_string_equal(text(s, "selector"),
                        "app.kubernetes.io/instance=web,app.kubernetes.io/name=app");
    assert_string_equal(text(json_object_get(s, "lastGood"), "image"), "shop:1.4");
    assert_int_equal(strlen(text(s, "configHash")), 32);
    assert_int_equal(number(s, "desiredReplicas"), 2);
    assert_int_equal(number(s, "readyReplicas"), 2);
    assert_null(json_object_get(s, "startReplicas"));
    assert_null(json_object_get(s, "lastError"));
}

/* Each of these alone means that a rollout is in progress. */
static void test_each_sign_of_a_rollout_is_progress(void **state)
{
    static const struct {
        int64_t observed, replicas, updated, available, ready;
        const char *available_says, *service_says;
        int64_t updated_told;
    } cases[] = {
        {4, 2, 2, 2, 2, "True/MinimumReplicasAvailable", "True/Endpoints", 0}, /* not observed */
        {5, 2, 1, 2, 2, "True/MinimumReplicasAvailable", "True/Endpoints", 1},
        {5, 3, 2, 2, 2, "True/MinimumReplicasAvailable", "True/Endpoints",
         2}, /* an old pod is left */
        {5, 2, 2, 1, 1, "False/MinimumReplicasUnavailable", "True/Endpoints",
         2}, /* maxUnavailable is 0 */
        {5, 2, 2, 0, 0, "False/MinimumReplicasUnavailable", "False/NoEndpoints", 2},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        *rollout() = (struct stw_rollout){.generation = 5,
                                          .observed_generation = cases[i].observed,
                                          .replicas = cases[i].replicas,
                                          .updated = cases[i].updated,
                                          .available = cases[i].available,
                                          .ready = cases[i].ready};
        json_auto_t *s = judge();
        assert_int_equal(v.level, STW_LEVEL_PROGRESSING);
        assert_string_equal(says(s, "Ready"), "False/Progressing");
        assert_string_equal(says(s, "Progressing"), "True/NewReplicaSet");
        assert_string_equal(says(s, "Available"), cases[i].available_says);
        assert_string_equal(says(s, "ServiceReady"), cases[i].service_says);
        assert_string_equal(text(s, "phase"), "Progressing");
        assert_int_equal(number(s, "updatedReplicas"), cases[i].updated_told);
        assert_null(json_object_get(s, "lastGood"));
    }
}

static void test_pending_before_the_first_replica(void **state)
{
    (void)state;
    *rollout() = (struct stw_rollout){.generation = 1};
    json_auto_t *s = judge();
    assert_string_equal(text(s, "phase"), "Pending");
}

static void test_scaled_to_zero_is_ready(void **state)
{
    (void)state;
    f.app.spec.replicas = 0;
    *rollout() = (struct stw_rollout){.generation = 5, .observed_generation = 5};
    json_auto_t *s = judge();
    assert_string_equal(says(s, "Ready"), "True/Succeeded");
    assert_string_equal(says(s, "Available"), "False/NoReplicas");
    assert_string_equal(text(condition(s, "Ready"), "message"), "scaled to zero");
    assert_null(json_object_get(s, "lastGood")); /* nothing has run */
}

static void test_trouble_of_a_pod_is_the_reason(void **state)
{
    (void)state;
    rollout()->available = rollout()->ready = 0;
    trouble("OOMKilled", "container app of pod web-1 was killed", false);
    json_auto_t *s = judge();
    assert_string_equal(says(s, "Ready"), "False/OOMKilled");
    assert_string_equal(says(s, "Reconciling"), "True/Progressing");
    assert_string_equal(says(s, "Degraded"), "True/OOMKilled");
    assert_string_equal(text(condition(s, "Ready"), "message"),
                        "2 of 2 replicas are up to date, 0 are available: container app of pod "
                        "web-1 was killed");
    assert_string_equal(text(s, "lastError"), text(condition(s, "Ready"), "message"));
    assert_string_equal(text(s, "phase"), "Degraded");
    /* An event reports it once. */
    assert_true(stw_pod_trouble_is_new(&f.app.trouble, &f.app.object, "Degraded"));
    json_t *old = f.app.object.status;
    f.app.object.status = s;
    assert_false(stw_pod_trouble_is_new(&f.app.trouble, &f.app.object, "Degraded"));
    trouble("CrashLoopBackOff", "x", false);
    assert_true(stw_pod_trouble_is_new(&f.app.trouble, &f.app.object, "Degraded"));
    f.app.object.status = old;
}

/* During a rollout, more pods and the first ready pod of the Service are minor changes. */
static void test_more_ready_pods_are_a_minor_change(void **state)
{
    static const char *const numbers[] = {"readyReplicas", "availableReplicas", "ServiceReady",
                                          NULL};
    (void)state;
    rollout()->updated = 1;
    rollout()->ready = rollout()->available = 0;
    json_auto_t *before = judge();
    rollout()->ready = rollout()->available = 1;
    json_auto_t *after = judge();
    assert_true(stw_status_is_minor(before, after, numbers));
    assert_false(stw_status_is_minor(before, after, numbers + 2));
    rollout()->available = 2;
    json_auto_t *available = judge();
    assert_false(stw_status_is_minor(before, available, numbers));
}

/* A pod that is only starting is reported, but is not a failure. */
static void test_starting_pod_is_no_failure(void **state)
{
    (void)state;
    rollout()->available = 1;
    trouble("NotReady", "container app of pod web-1 runs but is not ready", true);
    json_auto_t *s = judge();
    assert_string_equal(says(s, "Ready"), "False/Progressing");
    assert_non_null(strstr(text(condition(s, "Ready"), "message"), "runs but is not ready"));
    assert_string_equal(says(s, "Degraded"), "False/Healthy");
    assert_null(json_object_get(s, "lastError"));
}

static void test_missing_secret_is_named(void **state)
{
    (void)state;
    rollout()->available = 0;
    trouble("SecretNotFound", "secret \"db\" not found", false);
    json_auto_t *s = judge();
    assert_string_equal(says(s, "ConfigSynced"), "False/SecretNotFound");
    assert_string_equal(says(s, "Ready"), "False/SecretNotFound");
}

static void test_rollout_that_stands_is_failed_or_degraded(void **state)
{
    static const struct {
        const char *reason, *message, *want;
        int64_t available;
        const char *degraded, *phase;
    } cases[] = {
        {"ProgressDeadlineExceeded", "timed out", "ProgressDeadlineExceeded", 0, "False/Healthy",
         "Failed"},
        {"ProgressDeadlineExceeded", "timed out", "ProgressDeadlineExceeded", 2, "False/Healthy",
         "Degraded"},
        {"ReplicaFailure", "pods \"x\" is forbidden: exceeded quota: q", "QuotaExceeded", 1,
         "True/QuotaExceeded", "Degraded"},
        {"ReplicaFailure", "no", "ReplicaFailure", 0, "False/Healthy", "Failed"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char want[64];
        struct stw_rollout *r = rollout();
        (void)snprintf(r->stuck_reason, sizeof(r->stuck_reason), "%s", cases[i].reason);
        (void)snprintf(r->stuck_message, sizeof(r->stuck_message), "%s", cases[i].message);
        r->available = cases[i].available;
        r->updated = 1;
        json_auto_t *s = judge();
        assert_int_equal(v.level, STW_LEVEL_STALLED);
        (void)snprintf(want, sizeof(want), "True/%s", cases[i].want);
        assert_string_equal(says(s, "Stalled"), want);
        assert_string_equal(says(s, "Degraded"), cases[i].degraded);
        assert_string_equal(text(s, "phase"), cases[i].phase);
        assert_non_null(strstr(text(s, "lastError"), cases[i].message));
    }
}

/* Each child that fails, and the condition that reports it. */
static void test_failed_child_is_in_its_condition(void **state)
{
    static const struct {
        int child;
        const char *type;
    } cases[] = {{APP_CONFIGMAP, "ConfigSynced"},
                 {APP_DEPLOYMENT, "Available"},
                 {APP_SERVICE, "ServiceReady"},
                 {APP_BUDGET, "Ready"},
                 {APP_AUTOSCALER, "AutoscalingActive"}};
    static const struct {
        enum stw_err code;
        const char *text, *want;
        enum stw_level level;
    } errors[] = {
        {STW_ERR_UNAVAILABLE, "the server is down", "False/ApplyFailed", STW_LEVEL_RETRYING},
        {STW_ERR_FORBIDDEN, "exceeded quota: q", "False/QuotaExceeded", STW_LEVEL_STALLED},
        {STW_ERR_FORBIDDEN, "no right", "False/Forbidden", STW_LEVEL_STALLED},
        {STW_ERR_INVALID, "spec.x: wrong", "False/InvalidSpec", STW_LEVEL_STALLED},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        for (size_t e = 0; e < STW_COUNT(errors); e++) {
            fixture_done(&f);
            begin(SCALED, "");
            fail_child(cases[i].child, errors[e].code, errors[e].text);
            json_auto_t *s = judge();
            assert_int_equal(v.level, errors[e].level);
            assert_string_equal(says(s, cases[i].type), errors[e].want);
            assert_string_equal(says(s, "Ready"), errors[e].want);
            assert_non_null(strstr(text(s, "lastError"), errors[e].text));
            assert_null(json_object_get(s, "lastGood"));
        }
}

/* The pods that are ready may be of a Deployment that the Service does not select. */
static void test_service_without_its_deployment_is_not_ready(void **state)
{
    static const enum stw_child_state states[] = {
        STW_CHILD_TERMINATING, STW_CHILD_FOREIGN,    STW_CHILD_HOT_LOOP,
        STW_CHILD_FAILED,      STW_CHILD_UNREADABLE, STW_CHILD_NOT_ADOPTED,
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(states); i++) {
        fixture_done(&f);
        begin(SCALED, "");
        fail_child(APP_DEPLOYMENT, STW_ERR_EXISTS, "it is another one's");
        f.app.children[APP_DEPLOYMENT].state = states[i];
        json_auto_t *s = judge();
        assert_string_equal(says(s, "ServiceReady"), "Unknown/Progressing");
    }
}

static void test_missing_node_port_is_tried_again_in_a_minute(void **state)
{
    (void)state;
    fail_child(APP_SERVICE, STW_ERR_INVALID, "failed to allocate a nodePort: range is full");
    json_auto_t *s = judge();
    assert_string_equal(says(s, "ServiceReady"), "False/PortConflict");
    assert_string_equal(says(s, "Reconciling"), "True/DependencyNotReady");
    assert_int_equal(v.again_ms, 60000);
}

static void test_autoscaler_conditions_are_passed_on(void **state)
{
    static const struct {
        bool reported, active;
        const char *reason, *want;
    } cases[] = {
        {false, false, "", "Unknown/Progressing"},
        {true, true, "", "True/ScalingActive"},
        {true, false, "FailedGetResourceMetric", "False/MetricsUnavailable"},
        {true, false, "ScalingDisabled", "False/ScalingDisabled"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        fixture_done(&f);
        begin(SCALED, "");
        struct stw_child_report *a = &f.app.children[APP_AUTOSCALER].live.report;
        *a = (struct stw_child_report){.reported = cases[i].reported, .active = cases[i].active};
        (void)snprintf(a->reason, sizeof(a->reason), "%s", cases[i].reason);
        json_auto_t *s = judge();
        assert_string_equal(says(s, "AutoscalingActive"), cases[i].want);
        assert_string_equal(says(s, "Ready"), "True/Succeeded"); /* it still runs */
        assert_int_equal(number(s, "desiredReplicas"), 2);       /* not spec.replicas */
        assert_int_equal(number(s, "startReplicas"), 1);
    }
}

/* lastGood stays until something else is good. */
static void test_last_good_stays_until_something_else_is_good(void **state)
{
    char old[256];
    (void)state;
    (void)snprintf(
        old, sizeof(old),
        "{\"lastGood\":{\"image\":\"shop:1.4\",\"configHash\":\"%s\",\"time\":\"then\"}}",
        f.app.config_hash);
    fixture_done(&f);
    begin(SPEC, old);
    json_auto_t *same = judge();
    assert_string_equal(text(json_object_get(same, "lastGood"), "time"), "then");
    fixture_done(&f);
    begin("{\"image\":\"shop:1.5\",\"replicas\":2}", old);
    rollout()->updated = 1;
    json_auto_t *rolling = judge();
    assert_string_equal(text(json_object_get(rolling, "lastGood"), "image"), "shop:1.4");
    rollout()->updated = 2;
    json_auto_t *good = judge();
    assert_string_equal(text(json_object_get(good, "lastGood"), "image"), "shop:1.5");
}

static void test_child_counts_as_applied_by_its_condition(void **state)
{
    static const struct {
        int child;
        const char *type, *reason;
        int generation;
        bool want;
    } cases[] = {
        {APP_CONFIGMAP, "ConfigSynced", "Synced", 3, true},
        {APP_CONFIGMAP, "ConfigSynced", "Synced", 2, false},
        {APP_CONFIGMAP, "ConfigSynced", "SecretNotFound", 3, true},
        {APP_DEPLOYMENT, "Available", "NoReplicas", 3, true},
        {APP_DEPLOYMENT, "Available", "MinimumReplicasUnavailable", 3, true},
        {APP_DEPLOYMENT, "Available", "QuotaExceeded", 3, false},
        {APP_SERVICE, "ServiceReady", "NoEndpoints", 3, true},
        {APP_SERVICE, "ServiceReady", "PortConflict", 3, false},
        {APP_BUDGET, "Ready", "Succeeded", 3, true},
        {APP_BUDGET, "Ready", "NameConflict", 3, false},
        {APP_AUTOSCALER, "AutoscalingActive", "MetricsUnavailable", 3, true},
        {APP_AUTOSCALER, "Available", "NoReplicas", 3, false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char status[256];
        (void)snprintf(status, sizeof(status),
                       "{\"securityProfile\":\"Baseline\",\"conditions\":[{\"type\":\"%s\","
                       "\"reason\":\"%s\",\"observedGeneration\":%d}]}",
                       cases[i].type, cases[i].reason, cases[i].generation);
        fixture_done(&f);
        begin(SPEC, status);
        assert_int_equal(app_was_applied(&f.app, cases[i].child), cases[i].want);
        f.app.restricted = true; /* the namespace has another label now */
        assert_false(app_was_applied(&f.app, cases[i].child));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, all_well, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ready_when_all_replicas_are_available),
        TEST(test_each_sign_of_a_rollout_is_progress),
        TEST(test_pending_before_the_first_replica),
        TEST(test_scaled_to_zero_is_ready),
        TEST(test_trouble_of_a_pod_is_the_reason),
        TEST(test_more_ready_pods_are_a_minor_change),
        TEST(test_starting_pod_is_no_failure),
        TEST(test_missing_secret_is_named),
        TEST(test_rollout_that_stands_is_failed_or_degraded),
        TEST(test_failed_child_is_in_its_condition),
        TEST(test_service_without_its_deployment_is_not_ready),
        TEST(test_missing_node_port_is_tried_again_in_a_minute),
        TEST(test_autoscaler_conditions_are_passed_on),
        TEST(test_last_good_stays_until_something_else_is_good),
        TEST(test_child_counts_as_applied_by_its_condition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
