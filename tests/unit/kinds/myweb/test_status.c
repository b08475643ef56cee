/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "support/status_shape.h"

#include "controller/status.h"

#define SPEC "{\"image\":\"nginx:1.25\",\"replicas\":2,\"nodePortNumber\":30100}"

/* For the running test: a healthy MyWeb, and the verdict on it. */
static struct fixture f;
static struct stw_verdict v;

static int all_well(void **state)
{
    (void)state;
    assert_int_equal(fixture_init(&f, SPEC, ""), 0);
    f.web.children[MYWEB_SERVICE].live.node_port = 30100;
    f.web.children[MYWEB_DEPLOYMENT].live.rollout = (struct stw_rollout){
        .generation = 5, .observed_generation = 5, .replicas = 2, .updated = 2, .available = 2};
    return 0;
}

static int done(void **state)
{
    (void)state;
    fixture_done(&f);
    return 0;
}

/* Restores the healthy state. */
static void anew(void)
{
    (void)done(NULL);
    (void)all_well(NULL);
}

static struct stw_rollout *rollout(void)
{
    return &f.web.children[MYWEB_DEPLOYMENT].live.rollout;
}

static void check_shape(const json_t *status)
{
    static const char *const order[] = {"Ready",           "Reconciling",         "Stalled",
                                        "ConfigMapSynced", "DeploymentAvailable", "ServiceSynced",
                                        "IngressSynced",   "NodePortAllocated",   NULL};
    check_conditions(status, order, 3);
    note_status("MyWeb", status, 3);
}

static json_t *judge(void)
{
    json_t *status;
    stw_children_judge(&f.web.subject, &v, &status);
    assert_non_null(status);
    check_shape(status);
    return status;
}

static void test_completed_when_all_replicas_run(void **state)
{
    (void)state;
    json_auto_t *s = judge();
    assert_int_equal(v.level, STW_LEVEL_FINE);
    assert_true(json_is_true(json_object_get(s, "completed")));
    assert_string_equal(text(condition(s, "Ready"), "status"), "True");
    assert_string_equal(text(condition(s, "Ready"), "reason"), "Completed");
    assert_null(condition(s, "Reconciling"));
    assert_null(condition(s, "Stalled"));
    assert_string_equal(text(s, "url"), ":30100");
    assert_int_equal(json_integer_value(json_object_get(s, "nodePort")), 30100);
    assert_int_equal(json_integer_value(json_object_get(s, "availableReplicas")), 2);
    assert_int_equal(strlen(text(s, "contentHash")), 32);
    assert_null(json_object_get(s, "repairs"));
}

/* Without a node port it is complete, too; the Ingress has a condition. */
static void test_completed_without_a_node_port(void **state)
{
    (void)state;
    f.web.spec.service_type = MYWEB_CLUSTER_IP;
    f.web.children[MYWEB_SERVICE].live.node_port = 0;
    json_auto_t *s = judge();
    assert_true(json_is_true(json_object_get(s, "completed")));
    assert_null(condition(s, "NodePortAllocated"));
    assert_null(condition(s, "IngressSynced"));
    assert_null(json_object_get(s, "nodePort"));
    assert_string_equal(text(s, "url"), "http://web.shop.svc");
    f.web.spec.ingress = (struct stw_ingress){.host = "a.example.com", .tls_secret = "cert"};
    json_auto_t *with = judge();
    assert_string_equal(text(with, "url"), "https://a.example.com/");
    assert_string_equal(text(condition(with, "IngressSynced"), "status"), "True");
    f.web.children[MYWEB_INGRESS].state = STW_CHILD_TERMINATING;
    json_auto_t *foreign = judge();
    assert_true(json_is_false(json_object_get(foreign, "completed")));
}

/* Each of these alone means "not completed". */
static void test_each_missing_step_is_not_completed(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct stw_rollout *r = rollout();
        switch (i) {
        case 0:
            r->observed_generation = 4; /* the Deployment controller has not observed it yet */
            break;
        case 1:
            r->updated = 1;
            break;
        case 2:
            r->available = 1;
            break;
        case 3:
            r->replicas = 3; /* an old pod is still there */
            break;
        case 4:
            f.web.children[MYWEB_SERVICE].live.node_port = 0;
            break;
        default:
            f.web.children[MYWEB_CONFIGMAP].state = STW_CHILD_TERMINATING;
            break;
        }
        json_auto_t *s = judge();
        assert_true(json_is_false(json_object_get(s, "completed")));
        assert_string_equal(text(condition(s, "Ready"), "status"), "False");
        assert_string_equal(text(condition(s, "Reconciling"), "status"), "True");
        anew();
    }
}

static void test_replicas_zero_completes(void **state)
{
    (void)state;
    f.web.spec.replicas = 0;
    *rollout() = (struct stw_rollout){.generation = 1, .observed_generation = 1};
    json_auto_t *s = judge();
    assert_int_equal(v.level, STW_LEVEL_FINE);
    assert_true(json_is_true(json_object_get(s, "completed")));
}

static const struct {
    const char *about;
    enum stw_child_state state;
    enum stw_err code;
    const char *error;
    enum stw_level level;
    const char *reason; /* of Ready and of ServiceSynced */
    const char *says;   /* part of the message */
} child_cases[] = {
    {"quota", STW_CHILD_FAILED, STW_ERR_FORBIDDEN,
     "services \"web\" is forbidden: exceeded quota: small", STW_LEVEL_STALLED, "QuotaExceeded",
     "exceeded quota"},
    {"no right", STW_CHILD_FAILED, STW_ERR_FORBIDDEN, "services is forbidden: User \"x\" cannot",
     STW_LEVEL_STALLED, "Forbidden", "cannot"},
    {"namespace goes", STW_CHILD_FAILED, STW_ERR_FORBIDDEN,
     "forbidden: unable to create new content in namespace x because it is being terminated",
     STW_LEVEL_WAITING, "Terminating", "being terminated"},
    {"refused", STW_CHILD_FAILED, STW_ERR_INVALID, "Service \"web\" is invalid: spec.x",
     STW_LEVEL_STALLED, "InvalidSpec", "spec.x"},
    {"too large", STW_CHILD_FAILED, STW_ERR_TOO_LARGE, "request is too large", STW_LEVEL_STALLED,
     "InvalidSpec", "too large"},
    {"server down", STW_CHILD_FAILED, STW_ERR_UNAVAILABLE, "connection refused", STW_LEVEL_RETRYING,
     "ApplyFailed", "connection refused"},
    {"timeout", STW_CHILD_FAILED, STW_ERR_TIMEOUT, "no answer in 30 s", STW_LEVEL_RETRYING,
     "ApplyFailed", "30 s"},
    {"throttled", STW_CHILD_FAILED, STW_ERR_THROTTLED, "too many requests", STW_LEVEL_RETRYING,
     "ApplyFailed", "too many"},
    {"name conflict", STW_CHILD_FOREIGN, STW_ERR_EXISTS,
     "Service \"web\" exists and is not controlled by this object (owner: none)", STW_LEVEL_STALLED,
     "NameConflict", "(owner: none)"},
    {"terminating", STW_CHILD_TERMINATING, STW_OK, "", STW_LEVEL_WAITING, "Terminating",
     "being deleted"},
    {"left behind", STW_CHILD_TERMINATING, STW_ERR_EXISTS,
     "Service \"web\" is left from a former MyWeb of this name", STW_LEVEL_WAITING, "Terminating",
     "a former MyWeb"},
    {"hot loop", STW_CHILD_HOT_LOOP, STW_OK, "", STW_LEVEL_STALLED, "HotLoop",
     "--show-managed-fields"},
};

static void test_failed_child_is_in_its_condition(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(child_cases); i++) {
        struct stw_child *c = &f.web.children[MYWEB_SERVICE];
        c->state = child_cases[i].state;
        (void)stw_fail(&c->err, child_cases[i].code, "%s", child_cases[i].error);
        json_auto_t *s = judge();
        const json_t *ready = condition(s, "Ready"), *synced = condition(s, "ServiceSynced");
        const char *other = child_cases[i].level == STW_LEVEL_STALLED ? "Stalled" : "Reconciling";
        if (v.level != child_cases[i].level || !strstr(v.message, child_cases[i].says))
            fail_msg("%s: level %d, %s", child_cases[i].about, v.level, v.message);
        /* What refuses is not watched; only the object itself can make it valid. */
        if (v.level == STW_LEVEL_STALLED)
            assert_int_equal(v.again_ms,
                             stw_streq(v.reason, "InvalidSpec") || stw_streq(v.reason, "HotLoop")
                                 ? 600000
                                 : 60000);
        assert_string_equal(text(ready, "reason"), child_cases[i].reason);
        assert_string_equal(text(synced, "reason"), child_cases[i].reason);
        assert_string_equal(text(synced, "status"), "False");
        assert_string_equal(text(condition(s, other), "status"), "True");
        assert_string_equal(text(condition(s, "ConfigMapSynced"), "status"), "True");
        anew();
    }
}

static void test_stuck_rollout_is_stalled(void **state)
{
    static const char *const reasons[] = {"ProgressDeadlineExceeded", "ReplicaFailure"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(reasons); i++) {
        struct stw_rollout *r = rollout();
        r->available = 0;
        (void)snprintf(r->stuck_reason, sizeof(r->stuck_reason), "%s", reasons[i]);
        (void)snprintf(r->stuck_message, sizeof(r->stuck_message), "pods \"web\" is forbidden");
        json_auto_t *s = judge();
        assert_int_equal(v.level, STW_LEVEL_STALLED);
        assert_string_equal(text(condition(s, "DeploymentAvailable"), "reason"), reasons[i]);
        assert_non_null(strstr(text(condition(s, "Stalled"), "message"), "is forbidden"));
        anew();
    }
}

static void test_taken_node_port_is_named(void **state)
{
    (void)state;
    f.web.children[MYWEB_SERVICE].state = STW_CHILD_FAILED;
    f.web.port = MYWEB_PORT_TAKEN;
    (void)snprintf(f.web.holder, sizeof(f.web.holder), "Service other/x");
    json_auto_t *taken = judge();
    assert_int_equal(v.level, STW_LEVEL_WAITING);
    assert_int_equal(v.again_ms, 60000);
    assert_string_equal(text(condition(taken, "NodePortAllocated"), "reason"),
                        "NodePortUnavailable");
    assert_string_equal(text(condition(taken, "Ready"), "message"),
                        "node port 30100 is in use by Service other/x; free it, or choose another "
                        "spec.nodePortNumber");
    f.web.port = MYWEB_PORT_NONE_LEFT;
    json_auto_t *full = judge();
    assert_int_equal(v.level, STW_LEVEL_WAITING);
    assert_string_equal(text(condition(full, "NodePortAllocated"), "reason"),
                        "NodePortUnavailable");
    assert_non_null(strstr(v.message, "all node ports"));
    f.web.port = MYWEB_PORT_IMPOSSIBLE;
    json_auto_t *range = judge();
    assert_int_equal(v.level, STW_LEVEL_STALLED);
    assert_string_equal(text(condition(range, "NodePortAllocated"), "reason"), "OutOfRange");
}

/* A port of a Service that is not visible may soon be free: a short wait.  Once that was reported,
 * the wait is long. */
static void test_port_that_may_be_free_soon_is_tried_soon(void **state)
{
    (void)state;
    f.web.children[MYWEB_SERVICE].state = STW_CHILD_FAILED;
    f.web.port = MYWEB_PORT_TAKEN;
    (void)snprintf(f.web.holder, sizeof(f.web.holder), MYWEB_HOLDER_UNSEEN);
    json_t *told = judge();
    assert_int_equal(v.level, STW_LEVEL_WAITING);
    assert_int_equal(v.again_ms, 2000);
    json_decref(f.web.object.status);
    f.web.object.status = told;
    json_auto_t *again = judge();
    assert_int_equal(v.level, STW_LEVEL_WAITING);
    assert_int_equal(v.again_ms, 60000);
    assert_string_equal(text(condition(again, "NodePortAllocated"), "reason"),
                        "NodePortUnavailable");
}

static void test_repairs_are_counted(void **state)
{
    (void)state;
    json_decref(f.web.object.status);
    f.web.object.status = json_loads("{\"repairs\":4}", 0, NULL);
    f.web.children[MYWEB_SERVICE].state = STW_CHILD_REPAIRED;
    (void)snprintf(f.web.children[MYWEB_SERVICE].fields, 256, "spec.type");
    json_auto_t *s = judge();
    const json_t *last = json_object_get(s, "lastRepair");
    assert_int_equal(json_integer_value(json_object_get(s, "repairs")), 5);
    assert_string_equal(text(last, "object"), "Service/web");
    assert_string_equal(text(last, "fields"), "spec.type");
    assert_string_equal(text(last, "time"), "2024-01-01T00:00:01Z");
}

/* The next run, from the status of the last one. */
static void next_run(const json_t *status)
{
    json_t *copy = json_deep_copy(status);
    anew();
    json_decref(f.web.object.status);
    f.web.object.status = copy;
}

static void test_paused_object_keeps_its_status(void **state)
{
    (void)state;
    json_auto_t *before = judge();
    next_run(before);
    f.web.object.generation = 4; /* edited while paused: not reconciled */
    json_auto_t *s = stw_status_paused(f.web.run, &f.web.object);
    assert_string_equal(text(condition(s, "Ready"), "status"), "True");
    assert_string_equal(text(condition(s, "Ready"), "reason"), "Paused");
    assert_int_equal(json_integer_value(json_object_get(s, "observedGeneration")), 3);
    assert_true(json_is_true(json_object_get(s, "completed")));
    fixture_done(&f);
    assert_int_equal(fixture_init(&f, SPEC, "{\"observedGeneration\":-1}"), 0);
    json_auto_t *fresh = stw_status_paused(f.web.run, &f.web.object);
    assert_string_equal(text(condition(fresh, "Ready"), "status"), "Unknown");
}

static void test_invalid_spec_is_stalled(void **state)
{
    (void)state;
    json_auto_t *before = judge();
    next_run(before);
    json_auto_t *s = stw_controller_myweb.status_unchecked(
        &f.web.subject, STW_UNCHECKED_INVALID, "spec.replicas: Invalid value: 900: too many");
    check_shape(s);
    assert_string_equal(text(condition(s, "Stalled"), "reason"), "InvalidSpec");
    assert_string_equal(text(condition(s, "Stalled"), "message"),
                        "spec.replicas: Invalid value: 900: too many");
    assert_true(json_is_false(json_object_get(s, "completed")));
    assert_int_equal(json_integer_value(json_object_get(s, "nodePort")), 30100);
}

static bool was_applied(const struct myweb *w, int child)
{
    const struct stw_child_row *row = &stw_controller_myweb.children[child];
    return stw_status_was_applied(&w->object, row->condition, row->not_applied);
}

static void test_child_counts_as_applied_by_its_condition(void **state)
{
    (void)state;
    assert_false(was_applied(&f.web, MYWEB_SERVICE)); /* no status yet */
    f.web.children[MYWEB_SERVICE].state = STW_CHILD_FOREIGN;
    (void)stw_fail(&f.web.children[MYWEB_SERVICE].err, STW_ERR_EXISTS, "it is foreign");
    rollout()->available = 0;
    json_auto_t *status = judge();
    next_run(status);
    assert_true(was_applied(&f.web, MYWEB_CONFIGMAP));
    assert_true(was_applied(&f.web, MYWEB_DEPLOYMENT));
    assert_false(was_applied(&f.web, MYWEB_SERVICE));
    f.web.object.generation++;
    assert_false(was_applied(&f.web, MYWEB_CONFIGMAP));
}

/* An annotation on the Deployment changes its generation, which is not reported. */
static void test_annotation_on_the_deployment_is_no_change(void **state)
{
    (void)state;
    json_auto_t *ready = judge();
    next_run(ready);
    rollout()->generation = 6;
    json_auto_t *s = judge();
    assert_int_equal(v.level, STW_LEVEL_FINE);
    assert_true(json_equal(ready, s));
    rollout()->updated = 1; /* more than an annotation */
    json_auto_t *rolling = judge();
    assert_int_equal(v.level, STW_LEVEL_PROGRESSING);
    next_run(rolling);
    rollout()->generation = 6; /* not observed yet: the numbers may be old */
    json_auto_t *still = judge();
    assert_true(json_is_false(json_object_get(still, "completed")));
    next_run(ready);
    rollout()->generation = 6;
    f.web.children[MYWEB_DEPLOYMENT].state = STW_CHILD_REPAIRED; /* by our own write */
    json_auto_t *written = judge();
    assert_true(json_is_false(json_object_get(written, "completed")));
    next_run(ready);
    rollout()->generation = 6;
    f.web.object.generation = 4; /* nor does Ready of a former generation count */
    json_auto_t *edited = NULL;
    struct stw_verdict verdict;
    stw_children_judge(&f.web.subject, &verdict, &edited);
    assert_int_equal(verdict.level, STW_LEVEL_PROGRESSING);
}

static void test_last_available_replica_is_not_minor(void **state)
{
    static const char *const numbers[] = {"availableReplicas", NULL};
    (void)state;
    struct stw_rollout *r = rollout();
    r->available = 0;
    json_auto_t *none = judge();
    r->available = 1;
    json_auto_t *one = judge();
    r->available = 2;
    json_auto_t *two = judge();
    assert_true(stw_status_is_minor(none, one, numbers));
    assert_false(stw_status_is_minor(one, two, numbers));
}

/* What a pod suffers from is told while replicas are missing, with its reason when it lasts. */
static void test_trouble_of_a_pod_is_told_while_replicas_are_missing(void **state)
{
    static const struct {
        int available;
        bool passing, stuck;
        const char *reason; /* of DeploymentAvailable */
        bool told;
    } cases[] = {
        {1, false, false, "ImagePullBackOff", true},
        {1, true, false, "Progressing", true},
        {1, false, true, "ProgressDeadlineExceeded", true},
        {2, false, false, "MinimumReplicasAvailable", false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        anew();
        rollout()->available = cases[i].available;
        if (cases[i].stuck)
            stw_format(rollout()->stuck_reason, sizeof(rollout()->stuck_reason),
                       "ProgressDeadlineExceeded");
        f.web.trouble = (struct stw_pod_trouble){.found = true,
                                                 .passing = cases[i].passing,
                                                 .reason = "ImagePullBackOff",
                                                 .message = "cannot pull image"};
        json_auto_t *s = judge();
        const json_t *pods = condition(s, "DeploymentAvailable");
        assert_string_equal(text(pods, "reason"), cases[i].reason);
        assert_int_equal(strstr(text(pods, "message"), "cannot pull image") != NULL, cases[i].told);
        if (cases[i].told)
            assert_string_equal(text(condition(s, "Ready"), "reason"), cases[i].reason);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, all_well, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_completed_when_all_replicas_run),
        TEST(test_completed_without_a_node_port),
        TEST(test_each_missing_step_is_not_completed),
        TEST(test_replicas_zero_completes),
        TEST(test_failed_child_is_in_its_condition),
        TEST(test_stuck_rollout_is_stalled),
        TEST(test_trouble_of_a_pod_is_told_while_replicas_are_missing),
        TEST(test_taken_node_port_is_named),
        TEST(test_port_that_may_be_free_soon_is_tried_soon),
        TEST(test_repairs_are_counted),
        TEST(test_paused_object_keeps_its_status),
        TEST(test_invalid_spec_is_stalled),
        TEST(test_child_counts_as_applied_by_its_condition),
        TEST(test_annotation_on_the_deployment_is_no_change),
        TEST(test_last_available_replica_is_not_minor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
