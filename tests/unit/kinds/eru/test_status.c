/* SPDX-License-Identifier: Apache-2.0
 *
 * The status of an Eru, and how a Deployment is read. */
#include "fixture.h"
#include "kinds/eru/status.h"
#include "support/status_note.h"

#include "base/tzfile.h"
#include "controller/condition.h"
#include "kinds/common/product.h"
#include "kinds/kinds.h"
#include "schema/zones.h"
#include "support/fake_clock.h"

/* An enabled Eru in the middle of a run, whose Deployment exists. */
struct scene {
    struct fake_clock now;
    struct stw_clock clock;
    struct stw_product product;
    struct stw_env env;
    struct stw_run run;
    struct eru *e;
    json_t *status;
    struct stw_verdict verdict;
};

static void scene_init(struct scene *s)
{
    *s = (struct scene){.now = {1000}};
    s->clock = (struct stw_clock){&s->now, fake_monotonic, fake_wall};
    s->product.zones = stw_zones_create(stw_tz_read);
    s->env.product = &s->product;
    s->run = (struct stw_run){.op = &stw_operator_steward,
                              .controller = &stw_controller_eru,
                              .clock = &s->clock,
                              .env = &s->env,
                              .key = "shop/web",
                              .ns = "shop",
                              .name = "web"};
    s->e = calloc(1, sizeof(*s->e));
    s->e->run = &s->run;
    s->e->now_us = fake_wall(&s->now);
    s->e->object.generation = 3;
    s->e->object.status = json_object();
    s->e->target_cached = true;
    s->e->workload = eru_workload_of("Deployment");
    s->e->spec = (struct eru_spec){.deployment = "web",
                                   .kind = "Deployment",
                                   .enabled = true,
                                   .schedule = "0 4 * * *",
                                   .time_zone = "Etc/UTC",
                                   .rollout_timeout_seconds = 600};
    eru_state_read(s->e->object.status, &s->e->state);
}

static void scene_done(struct scene *s)
{
    eru_state_done(&s->e->state);
    json_decref(s->e->object.status);
    json_decref(s->status);
    free(s->e);
    stw_zones_destroy(s->product.zones);
}

static void judge(struct scene *s)
{
    json_decref(s->status);
    eru_judge(s->e, &s->verdict, &s->status);
    assert_non_null(s->status);
    note_status("Eru", s->status, s->e->object.generation);
}

/* "Ready=True/Active ScheduleValid=..." */
static void assert_conditions(struct scene *s, const char *want)
{
    stw_autobuf struct stw_buf got = STW_BUF_INIT(4096);
    size_t i;
    json_t *c;
    json_array_foreach (json_object_get(s->status, "conditions"), i, c)
        stw_buf_addf(&got, "%s%s=%s/%s", i ? " " : "",
                     json_string_value(json_object_get(c, "type")),
                     json_string_value(json_object_get(c, "status")),
                     json_string_value(json_object_get(c, "reason")));
    assert_string_equal(stw_buf_str(&got), want);
}

static void test_enabled_and_disabled_are_ready(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s);
    judge(&s);
    assert_conditions(&s, "Ready=True/Active ScheduleValid=True/Valid TargetFound=True/Found");
    assert_int_equal(s.verdict.level, STW_LEVEL_FINE);
    s.e->spec.enabled = false;
    s.e->target_cached = false;
    judge(&s);
    assert_conditions(&s, "Ready=True/Disabled ScheduleValid=True/Valid "
                          "TargetFound=False/DeploymentNotFound");
    scene_done(&s);
}

static void test_missing_deployment_is_waited_for(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s);
    s.e->target_cached = false;
    judge(&s);
    assert_conditions(&s, "Ready=False/DeploymentNotFound Reconciling=True/DependencyNotReady "
                          "ScheduleValid=True/Valid TargetFound=False/DeploymentNotFound");
    assert_int_equal(s.verdict.again_ms, STW_STALLED_AGAIN_MS);
    s.e->state.next_schedule = s.e->now_us / 1000000 + 5; /* its next instant comes first */
    judge(&s);
    assert_in_range(s.verdict.again_ms, 1, 5001);
    scene_done(&s);
}

static void test_unreadable_workloads_are_named(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s);
    s.e->spec.deployment = NULL;
    s.e->state.matched = 3;
    stw_format(s.e->unreadable, sizeof(s.e->unreadable), "\"huge\", \"odd\"");
    judge(&s);
    assert_conditions(&s, "Ready=False/Unreadable Reconciling=True/DependencyNotReady "
                          "ScheduleValid=True/Valid TargetFound=False/Unreadable");
    assert_string_equal(s.verdict.message, "3 Deployments match the selector; others match and "
                                           "cannot be read: \"huge\", \"odd\"");
    s.e->unreadable[0] = '\0';
    judge(&s);
    assert_conditions(&s, "Ready=True/Active ScheduleValid=True/Valid TargetFound=True/Found");
    scene_done(&s);
}

static void test_workload_of_another_eru_is_a_conflict(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s);
    (void)snprintf(s.e->holder, sizeof(s.e->holder), "shop/nightly");
    judge(&s);
    assert_conditions(&s, "Ready=False/Conflict Stalled=True/Conflict ScheduleValid=True/Valid "
                          "TargetFound=True/Found");
    assert_non_null(strstr(s.verdict.message, "already handled by Eru \"nightly\""));
    scene_done(&s);
}

static void test_number_of_matches_is_in_the_message(void **state)
{
    static const struct {
        int64_t matched;
        bool enabled;
        const char *want, *message;
        uint64_t again_ms;
    } cases[] = {
        {7, true, "Ready=True/Active ScheduleValid=True/Valid TargetFound=True/Found",
         "the Deployments that match the selector are restarted by \"0 4 * * *\" in Etc/UTC", 0},
        {0, true,
         "Ready=False/NothingMatches Reconciling=True/DependencyNotReady "
         "ScheduleValid=True/Valid TargetFound=False/NothingMatches",
         "no Deployment in namespace \"shop\" matches the selector", STW_FOREIGN_AGAIN_MS},
        {101, true,
         "Ready=False/TooManyMatch Stalled=True/TooManyMatch ScheduleValid=True/Valid "
         "TargetFound=False/TooManyMatch",
         "more than 100 Deployments in namespace \"shop\" match the selector; none is restarted",
         STW_STALLED_AGAIN_MS},
        {0, false, "Ready=True/Disabled ScheduleValid=True/Valid TargetFound=False/NothingMatches",
         "nothing is restarted while spec.enabled is false", 0},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        scene_init(&s);
        s.e->spec.deployment = NULL;
        s.e->spec.enabled = cases[i].enabled;
        s.e->state.matched = cases[i].matched;
        judge(&s);
        assert_conditions(&s, cases[i].want);
        assert_string_equal(s.verdict.message, cases[i].message);
        assert_int_equal(s.verdict.again_ms, cases[i].again_ms);
        assert_int_equal(json_integer_value(json_object_get(s.status, "matched")),
                         cases[i].matched);
        scene_done(&s);
    }
}

static void test_error_of_a_write_is_a_condition(void **state)
{
    static const struct {
        enum stw_err code;
        const char *want;
        enum stw_level level;
    } cases[] = {
        {STW_ERR_UNAVAILABLE, "Ready=False/ApplyFailed Reconciling=True/ProgressingWithRetry",
         STW_LEVEL_RETRYING},
        {STW_ERR_FORBIDDEN, "Ready=False/Forbidden Stalled=True/Forbidden", STW_LEVEL_STALLED},
        {STW_ERR_INVALID, "Ready=False/InvalidSpec Stalled=True/InvalidSpec", STW_LEVEL_STALLED},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        char want[200];
        scene_init(&s);
        (void)stw_fail(&s.e->err, cases[i].code, "the API server said no");
        judge(&s);
        (void)snprintf(want, sizeof(want), "%s ScheduleValid=True/Valid TargetFound=True/Found",
                       cases[i].want);
        assert_conditions(&s, want);
        assert_int_equal(s.verdict.level, cases[i].level);
        scene_done(&s);
    }
}

static void test_rollout_has_a_condition(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s);
    s.e->state.rollout.there = true;
    s.e->state.rollout.instant = s.e->state.rollout.start = at("2024-01-01T00:00:00Z");
    judge(&s);
    assert_conditions(&s, "Ready=True/Active ScheduleValid=True/Valid TargetFound=True/Found "
                          "RolloutComplete=False/RolloutInProgress");
    json_decref(s.e->object.status);
    s.e->object.status = json_incref(s.status);
    s.e->state.rollout.there = false;
    s.e->rollout_reason = "RolloutTimeout";
    (void)snprintf(s.e->rollout_message, sizeof(s.e->rollout_message), "too slow");
    judge(&s);
    assert_conditions(&s, "Ready=True/Active ScheduleValid=True/Valid TargetFound=True/Found "
                          "RolloutComplete=False/RolloutTimeout");
    json_decref(s.e->object.status);
    s.e->object.status = json_incref(s.status);
    s.e->rollout_reason = NULL; /* a run in which nothing ended keeps the condition */
    judge(&s);
    assert_conditions(&s, "Ready=True/Active ScheduleValid=True/Valid TargetFound=True/Found "
                          "RolloutComplete=False/RolloutTimeout");
    scene_done(&s);
}

static void test_stored_spec_against_the_rules_is_stalled(void **state)
{
    static const struct {
        const char *schedule, *zone, *reason;
    } cases[] = {
        {"often", "Etc/UTC", "Unparseable"},
        {"0 0 31 2 *", "Etc/UTC", "NeverMatches"},
        {"@daily", "Europe/Atlantis", "UnknownTimeZone"},
        {NULL, "Etc/UTC", "Unparseable"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        char want[200];
        scene_init(&s);
        json_object_set_new(s.e->object.status, "nextScheduleTime",
                            json_string("2026-01-01T00:00:00Z"));
        s.e->spec.schedule = cases[i].schedule;
        s.e->spec.time_zone = cases[i].zone;
        s.status = eru_status_invalid(s.e, "spec.x: wrong");
        (void)snprintf(want, sizeof(want),
                       "Ready=False/InvalidSpec Stalled=True/InvalidSpec ScheduleValid=False/%s",
                       cases[i].reason);
        assert_conditions(&s, want);
        /* the last known one stays */
        assert_string_equal(json_string_value(json_object_get(s.status, "nextScheduleTime")),
                            "2026-01-01T00:00:00Z");
        scene_done(&s);
    }
}

/* --- workloads */

static void read_target(const char *kind, const char *json, struct eru_target *t, int want)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err = {0};
    if (stw_json_scan(&doc, json, strlen(json), &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(eru_target_read(eru_workload_of(kind), stw_json_root(&doc), t), want);
}

static void test_deployment_is_read_with_its_rollout(void **state)
{
    struct eru_target t;
    (void)state;
    read_target("Deployment",
                "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"generation\":4},"
                "\"spec\":{\"replicas\":3,\"paused\":true,\"template\":{\"metadata\":{"
                "\"annotations\":{\"mtsre.meitu.com/restarted-at\":\"2026-01-01T00:00:00Z\"}}}},"
                "\"status\":{\"observedGeneration\":4,\"replicas\":4,\"updatedReplicas\":2,"
                "\"availableReplicas\":3,\"conditions\":[{\"type\":\"Progressing\",\"status\":"
                "\"False\",\"reason\":\"ProgressDeadlineExceeded\",\"message\":\"stuck\"}]}}",
                &t, 0);
    assert_true(t.there && t.paused && t.stuck);
    assert_string_equal(t.stamp, "2026-01-01T00:00:00Z");
    assert_string_equal(t.stuck_message, "stuck");
    assert_int_equal(t.wanted, 3);
    assert_int_equal(t.replicas, 4);
    assert_int_equal(t.updated, 2);
    assert_int_equal(t.available, 3);
    /* absent replicas mean 1; a Deployment that is being deleted counts as gone */
    read_target("Deployment",
                "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"deletionTimestamp\":"
                "\"2026-01-01T00:00:00Z\"},\"spec\":{}}",
                &t, 0);
    assert_false(t.there);
    assert_int_equal(t.wanted, 1);
    assert_string_equal(t.stamp, "");
    read_target("Deployment", "{\"kind\":\"Status\"}", &t, -1);
    read_target("Deployment", "[]", &t, -1);
}

/* Kubernetes 1.20 does not report available replicas of StatefulSets. */
static void test_statefulset_is_read_with_its_partition(void **state)
{
    struct eru_target t;
    (void)state;
    read_target("StatefulSet",
                "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\":{\"replicas\":3,"
                "\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":"
                "1}}},\"status\":{\"replicas\":3,\"updatedReplicas\":2,\"readyReplicas\":3}}",
                &t, 0);
    assert_true(t.there && !t.by_hand && !t.paused && !t.stuck);
    assert_int_equal(t.wanted, 3);
    assert_int_equal(t.to_update, 2);
    assert_int_equal(t.updated, 2);
    assert_int_equal(t.replicas, 2);
    assert_int_equal(t.available, 3);
    read_target("StatefulSet",
                "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\":{"
                "\"updateStrategy\":{\"type\":\"OnDelete\",\"rollingUpdate\":{\"partition\":9}}},"
                "\"status\":{\"readyReplicas\":1,\"availableReplicas\":0}}",
                &t, 0);
    assert_true(t.by_hand);
    assert_int_equal(t.wanted, 1);
    assert_int_equal(t.to_update, 0);
    assert_int_equal(t.available, 0);
}

static void test_daemonset_is_read_with_its_rollout(void **state)
{
    struct eru_target t;
    (void)state;
    read_target(
        "DaemonSet",
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"generation\":2},"
        "\"spec\":{\"updateStrategy\":{\"type\":\"RollingUpdate\"}},\"status\":{"
        "\"observedGeneration\":1,\"desiredNumberScheduled\":4,\"updatedNumberScheduled\":3,"
        "\"numberAvailable\":2,\"numberReady\":4}}",
        &t, 0);
    assert_false(t.by_hand);
    assert_int_equal(t.generation, 2);
    assert_int_equal(t.observed_generation, 1);
    assert_int_equal(t.wanted, 4);
    assert_int_equal(t.to_update, 4);
    assert_int_equal(t.updated, 3);
    assert_int_equal(t.available, 2);
    read_target("DaemonSet", "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\":{}}",
                &t, 0);
    assert_int_equal(t.wanted, 0); /* no node runs it */
}

static void test_phase_follows_from_the_conditions(void **state)
{
    static const struct {
        bool enabled, rolling, conflict;
        const char *want;
    } cases[] = {{true, false, false, "Running"},
                 {true, true, false, "Restarting"},
                 {false, false, false, "Stoping"},
                 {false, true, false, "Restarting"},
                 {true, false, true, "Failed"}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        scene_init(&s);
        s.e->spec.enabled = cases[i].enabled;
        s.e->state.rollout.there = cases[i].rolling;
        if (cases[i].conflict)
            (void)snprintf(s.e->holder, sizeof(s.e->holder), "shop/older");
        eru_judge(s.e, &s.verdict, &s.status);
        assert_string_equal(json_string_value(json_object_get(s.status, "phase")), cases[i].want);
        scene_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enabled_and_disabled_are_ready),
        cmocka_unit_test(test_missing_deployment_is_waited_for),
        cmocka_unit_test(test_unreadable_workloads_are_named),
        cmocka_unit_test(test_workload_of_another_eru_is_a_conflict),
        cmocka_unit_test(test_number_of_matches_is_in_the_message),
        cmocka_unit_test(test_error_of_a_write_is_a_condition),
        cmocka_unit_test(test_rollout_has_a_condition),
        cmocka_unit_test(test_stored_spec_against_the_rules_is_stalled),
        cmocka_unit_test(test_deployment_is_read_with_its_rollout),
        cmocka_unit_test(test_statefulset_is_read_with_its_partition),
        cmocka_unit_test(test_daemonset_is_read_with_its_rollout),
        cmocka_unit_test(test_phase_follows_from_the_conditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
