/* SPDX-License-Identifier: Apache-2.0
 *
 * Restarts of what a selector matches: each workload once for each instant, wherever a run is
 * interrupted, and no other workload. */
#include "fixture.h"

static struct fixture w; /* of the running test */

static int done(void **state)
{
    (void)state;
    fixture_done(&w);
    return 0;
}

/* An Eru whose selector matches `count` Deployments, after its first run. */
static void begin(size_t count)
{
    fixture_done(&w);
    fixture_init(&w, "0 4 * * *");
    fixture_select(&w, count);
    run_at(&w, "2026-01-01T00:00:00Z");
}

static const json_t *selected(void)
{
    return json_object_get(w.status, "selected");
}

static int64_t count_of(const char *key)
{
    return json_integer_value(json_object_get(selected(), key));
}

static const json_t *entry_of(const char *name)
{
    size_t i;
    const json_t *one;
    json_array_foreach (json_object_get(selected(), "workloads"), i, one)
        if (stw_streq(json_string_value(json_object_get(one, "name")), name))
            return one;
    return NULL;
}

/* "Failed/Forbidden"; "" when the status does not name it. */
static const char *state_of(const char *name)
{
    static char out[100];
    const json_t *one = entry_of(name);
    const char *why = json_string_value(json_object_get(one, "reason"));
    (void)snprintf(out, sizeof(out), "%s%s%s",
                   one ? json_string_value(json_object_get(one, "state")) : "", why ? "/" : "",
                   why ? why : "");
    return out;
}

/* Runs until nothing is due at once; the number of runs. */
static int run_all(void)
{
    int runs = 0;
    do {
        run_once(&w, true);
        runs++;
    } while (w.wake_ms > 0 && w.wake_ms <= 2 && runs < 100);
    return runs;
}

/* Each was restarted once, for the instant. */
static void assert_each_once(size_t count, const char *instant)
{
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(w.many[i].target.stamp, instant);
        assert_int_equal(w.many[i].target.generation, 2);
    }
    assert_int_equal(w.stamps, count);
}

static void test_matches_are_recorded_before_the_first_restart(void **state)
{
    (void)state;
    begin(3);
    assert_int_equal(number(&w, "matched"), 3);
    assert_int_equal(w.lists, 1);
    run_at(&w, "2026-01-01T03:00:00Z");
    assert_int_equal(w.lists, 1); /* it costs nothing until it is due */

    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.stamps, 0);
    assert_string_equal(state_of("d-02"), "Pending");
    assert_int_equal(count_of("matched"), 3);
    assert_string_equal(text(&w, "lastScheduleTime"), "2026-01-01T04:00:00Z");
    assert_int_equal(w.wake_ms, 2);

    run_once(&w, true);
    assert_each_once(3, "2026-01-01T04:00:00Z");
    assert_true(said(&w, "Restarted"));
    assert_int_equal(w.event_count, 1); /* for all of them */
    assert_int_equal(count_of("restarted"), 3);
    assert_string_equal(state_of("d-02"), "Restarting");
    assert_int_equal(w.wake_ms, 2001);

    settle_target(&w, &w.many[1].target);
    run_at(&w, "2026-01-01T04:00:10Z");
    assert_int_equal(count_of("succeeded"), 1);
    assert_string_equal(state_of("d-01"), "");
    assert_true(rolling(&w));
    settle_all(&w);
    run_at(&w, "2026-01-01T04:00:30Z");
    assert_false(rolling(&w));
    assert_string_equal(text(&w, "lastResult"), "Succeeded");
    assert_true(said(&w, "RolloutSucceeded"));
    assert_null(json_object_get(selected(), "workloads"));
    assert_int_equal(w.stamps, 3);
}

/* The status of a run that was killed is lost, the stamps are not. */
static void test_run_killed_between_restarts_restarts_each_once(void **state)
{
    (void)state;
    for (unsigned after = 1; after <= 5; after++) {
        begin(5);
        run_at(&w, "2026-01-01T04:00:00Z");
        w.dies_after = after;
        run_once(&w, false);
        assert_int_equal(w.stamps, after);
        w.lease_lost = false;
        w.dies_after = 0;
        start_again(&w);
        run_once(&w, true);
        assert_each_once(5, "2026-01-01T04:00:00Z");
        assert_int_equal(count_of("restarted"), 5);
        settle_all(&w);
        run_at(&w, "2026-01-01T04:01:00Z");
        assert_string_equal(text(&w, "lastResult"), "Succeeded");
    }
}

static void test_run_killed_before_the_record_restarts_each_once(void **state)
{
    (void)state;
    begin(3);
    w.now = at("2026-01-01T04:00:00Z");
    run_once(&w, false);
    assert_int_equal(w.stamps, 0);
    (void)run_all();
    assert_each_once(3, "2026-01-01T04:00:00Z");
}

static void stamp_others(struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->count; i++) {
        struct eru_target *t = &fixture->many[i].target;
        (void)snprintf(t->stamp, sizeof(t->stamp), "2026-01-01T04:00:00Z");
        t->generation++;
        touch_target(fixture, t);
        fixture->stamps++;
    }
}

/* Another process that believes to be the leader restarts them between the list and the writes. */
static void test_two_leaders_restart_each_once(void **state)
{
    (void)state;
    begin(3);
    run_at(&w, "2026-01-01T04:00:00Z");
    w.meanwhile = stamp_others;
    run_once(&w, true);
    assert_each_once(3, "2026-01-01T04:00:00Z");
    assert_string_equal(state_of("d-00"), "Pending"); /* a conflict: it is read again */
    assert_int_equal(w.wake_ms, 1001);
    run_once(&w, true);
    assert_each_once(3, "2026-01-01T04:00:00Z");
    assert_int_equal(count_of("restarted"), 3);
}

static void add_one(const char *name, const char *created)
{
    struct eru_found *f = &w.many[w.count++];
    *f = w.many[0];
    f->target = (struct eru_target){.there = true, .wanted = 1, .generation = 1};
    f->created = at(created);
    (void)snprintf(f->name, sizeof(f->name), "%s", name);
    (void)snprintf(f->target.uid, sizeof(f->target.uid), "uid-%s", name);
    settle_target(&w, &f->target);
}

static void test_workloads_created_later_are_skipped(void **state)
{
    (void)state;
    begin(2);
    w.now = at("2026-01-01T04:01:00Z"); /* steward was down */
    add_one("fresh", "2026-01-01T04:00:30Z");
    run_once(&w, true);
    add_one("late", "2025-12-01T00:00:00Z"); /* matches since it was recorded */
    run_once(&w, true);
    assert_int_equal(w.stamps, 2);
    assert_string_equal(state_of("fresh"), "Skipped/SkippedCreatedLater");
    assert_string_equal(state_of("late"), "");
    assert_string_equal(w.many[3].target.stamp, "");
}

static void test_replaced_workload_is_skipped(void **state)
{
    (void)state;
    begin(3);
    run_at(&w, "2026-01-01T04:00:00Z");
    (void)snprintf(w.many[1].target.uid, sizeof(w.many[1].target.uid), "another");
    w.many[2].target.there = false;
    run_once(&w, true);
    assert_int_equal(w.stamps, 1);
    assert_string_equal(state_of("d-01"), "Skipped/SkippedCreatedLater");
    assert_string_equal(state_of("d-02"), "Skipped/SkippedTargetNotFound");
    assert_true(said(&w, "SkippedWorkloads"));
}

static void test_selector_without_matches_is_skipped(void **state)
{
    (void)state;
    begin(0);
    assert_int_equal(number(&w, "matched"), 0);
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_string_equal(reason(&w, 0), "SkippedNothingMatches");
    assert_true(said(&w, "SkippedNothingMatches"));
    assert_null(selected());
    fixture_select(&w, 2);
    run_at(&w, "2026-01-01T05:00:00Z"); /* counted again */
    assert_int_equal(number(&w, "matched"), 2);
    assert_int_equal(w.stamps, 0); /* not for the instant before */
}

static void test_too_many_matches_restart_nothing(void **state)
{
    (void)state;
    begin(ERU_MATCHES_MAX + 1);
    assert_int_equal(number(&w, "matched"), ERU_MATCHES_MAX + 1);
    run_at(&w, "2026-01-01T04:00:00Z");
    (void)run_all();
    assert_int_equal(w.stamps, 0);
    assert_string_equal(reason(&w, 0), "SkippedTooManyMatch");
    assert_null(selected());
}

static void test_all_allowed_matches_are_restarted(void **state)
{
    unsigned events = 0;
    (void)state;
    begin(ERU_MATCHES_MAX);
    w.now = at("2026-01-01T04:00:00Z");
    for (int runs = 0; runs < 6; runs++) { /* one records, five restart 20 each */
        run_once(&w, true);
        events += w.event_count;
    }
    assert_each_once(ERU_MATCHES_MAX, "2026-01-01T04:00:00Z");
    assert_in_range(events, 1, 5);
    settle_all(&w);
    run_at(&w, "2026-01-01T04:01:00Z");
    assert_string_equal(text(&w, "lastResult"), "Succeeded");
}

/* It is not restarted; the others are. */
static void test_unreadable_workload_does_not_hold_up_others(void **state)
{
    (void)state;
    begin(4);
    w.unreadable = "d-01";
    run_at(&w, "2026-01-01T04:00:00Z");
    (void)run_all();
    settle_all(&w);
    run_at(&w, "2026-01-01T04:01:00Z");
    assert_int_equal(w.stamps, 3);
    assert_string_equal(w.many[1].target.stamp, "");
    assert_int_equal(count_of("succeeded"), 3);
}

/* ... during a restart: it is neither lost nor holds up the others. */
static void test_workload_unreadable_during_a_restart_is_not_lost(void **state)
{
    (void)state;
    begin(3);
    run_at(&w, "2026-01-01T04:00:00Z");
    w.unreadable = "d-01";
    (void)run_all();
    assert_int_equal(w.stamps, 2);
    w.unreadable = NULL;
    run_at(&w, "2026-01-01T04:01:00Z");
    (void)run_all();
    settle_all(&w);
    run_at(&w, "2026-01-01T04:02:00Z");
    assert_each_once(3, "2026-01-01T04:00:00Z");
    assert_int_equal(count_of("succeeded"), 3);
}

static void test_refused_workload_fails_alone(void **state)
{
    static const struct {
        enum stw_err code;
        const char *want;
    } cases[] = {{STW_ERR_FORBIDDEN, "Failed/Forbidden"},
                 {STW_ERR_INVALID, "Failed/ApplyFailed"},
                 {STW_ERR_NOT_FOUND, "Skipped/SkippedTargetNotFound"}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        bool failed = cases[i].want[0] == 'F';
        begin(3);
        w.refused = "d-00";
        w.refusal = cases[i].code;
        run_at(&w, "2026-01-01T04:00:00Z");
        run_once(&w, true);
        assert_int_equal(w.err, STW_OK);
        assert_int_equal(w.stamps, 2);
        assert_string_equal(state_of("d-00"), cases[i].want);
        settle_all(&w);
        run_at(&w, "2026-01-01T04:01:00Z");
        assert_string_equal(text(&w, "lastResult"), failed ? "Failed" : "Succeeded");
        assert_int_equal(count_of("failed"), failed);
        assert_int_equal(said(&w, "RolloutFailed"), failed);
    }
}

/* It does not keep the others from being restarted, and ends with the deadline. */
static void test_failing_workload_ends_with_the_deadline(void **state)
{
    (void)state;
    begin(30);
    w.refused = "d-00";
    w.refusal = STW_ERR_UNAVAILABLE;
    run_at(&w, "2026-01-01T04:00:00Z");
    run_at(&w, "2026-01-01T04:00:01Z");
    assert_int_equal(w.err, STW_ERR_UNAVAILABLE); /* retried, by the queue */
    run_at(&w, "2026-01-01T04:00:03Z");
    assert_int_equal(w.stamps, 29);
    assert_string_equal(state_of("d-00"), "Pending");
    settle_all(&w);
    run_at(&w, "2026-01-01T04:10:01Z");
    assert_string_equal(state_of("d-00"), "Failed/MissedSchedule");
    assert_string_equal(text(&w, "lastResult"), "Failed");
    assert_int_equal(count_of("succeeded"), 29);
}

/* They give way to the others, although a run ends after a few errors. */
static void test_failing_workloads_give_way_to_others(void **state)
{
    (void)state;
    begin(30);
    w.refused = "d-0";
    w.refusal = STW_ERR_UNAVAILABLE;
    w.now = at("2026-01-01T04:00:00Z");
    for (int runs = 0; runs < 6; runs++)
        run_once(&w, true);
    assert_int_equal(w.stamps, 20);
    assert_string_equal(state_of("d-09"), "Pending");
}

/* The API server is away: a run does not try each of them. */
static void test_unavailable_server_ends_a_run_after_a_few_errors(void **state)
{
    (void)state;
    begin(50);
    w.answer_lost = true;
    run_at(&w, "2026-01-01T04:00:00Z");
    run_once(&w, true);
    assert_int_equal(w.stamps, 3);
    w.answer_lost = false;
    (void)run_all();
    assert_each_once(50, "2026-01-01T04:00:00Z");
}

static void test_unfit_workloads_are_skipped_with_their_reasons(void **state)
{
    (void)state;
    begin(6);
    w.many[0].target.paused = true;
    w.many[1].target.wanted = w.many[1].target.to_update = 0;
    w.many[2].target.available = 0;
    w.many[3].target.updated = 0;
    w.own = "d-04";
    run_at(&w, "2026-01-01T04:00:00Z");
    run_once(&w, true);
    assert_int_equal(w.stamps, 1);
    assert_string_equal(state_of("d-00"), "Skipped/SkippedTargetPaused");
    assert_string_equal(state_of("d-01"), "Skipped/SkippedScaledToZero");
    assert_string_equal(state_of("d-02"), "Skipped/SkippedTargetUnhealthy");
    assert_string_equal(state_of("d-03"), "Skipped/SkippedRolloutRunning");
    assert_string_equal(state_of("d-04"), "Skipped/SkippedHasOwnEru");
    assert_int_equal(w.event_count, 2);
    settle_target(&w, &w.many[5].target);
    run_at(&w, "2026-01-01T04:00:10Z");
    assert_string_equal(text(&w, "lastResult"), "Succeeded");
    assert_int_equal(count_of("skipped"), 5);
    assert_string_equal(state_of("d-04"), "Skipped/SkippedHasOwnEru"); /* stays in the status */
}

static void test_restart_of_skipped_workloads_alone_is_skipped(void **state)
{
    (void)state;
    begin(2);
    w.many[0].target.paused = w.many[1].target.paused = true;
    run_at(&w, "2026-01-01T04:00:00Z");
    run_once(&w, true);
    assert_string_equal(reason(&w, 0), "SkippedTargetPaused");
    assert_string_equal(text(&w, "lastResult"), "Skipped");
    begin(2);
    w.many[0].target.paused = true;
    w.own = "d-01";
    run_at(&w, "2026-01-01T04:00:00Z");
    run_once(&w, true);
    assert_string_equal(reason(&w, 0), "SkippedForSeveralReasons");
}

static void test_disabling_ends_a_restart(void **state)
{
    (void)state;
    begin(30);
    run_at(&w, "2026-01-01T04:00:00Z");
    run_once(&w, true);
    assert_int_equal(w.stamps, 20);
    w.spec.enabled = false;
    settle_all(&w);
    (void)run_all();
    assert_int_equal(w.stamps, 20);
    assert_int_equal(count_of("skipped"), 10);
    assert_string_equal(state_of("d-29"), "Skipped/SkippedDisabled");
}

static void test_failed_rollouts_have_reasons(void **state)
{
    (void)state;
    begin(4);
    run_at(&w, "2026-01-01T04:00:00Z");
    run_once(&w, true);
    w.many[0].target.there = false;
    w.many[1].target.stamp[0] = '\0';
    w.many[2].target.stuck = true;
    w.many[2].target.observed_generation = w.many[2].target.generation;
    run_at(&w, "2026-01-01T04:01:00Z");
    assert_string_equal(state_of("d-00"), "Failed/NoLongerMatches");
    assert_string_equal(state_of("d-01"), "Failed/Replaced");
    assert_string_equal(state_of("d-02"), "Failed/RolloutFailed");
    assert_string_equal(state_of("d-03"), "Restarting");
    run_at(&w, "2026-01-01T04:10:00Z");
    assert_string_equal(state_of("d-03"), "Failed/RolloutTimeout");
    assert_string_equal(text(&w, "lastResult"), "Failed");
    assert_non_null(strstr(w.events[0].note, "4 of 4 Deployments failed: "));
    assert_non_null(strstr(w.events[0].note, "d-00 (NoLongerMatches)"));
}

static void test_number_of_named_workloads_is_bounded(void **state)
{
    (void)state;
    begin(60);
    for (size_t i = 0; i < 30; i++)
        w.many[i].target.paused = true;
    run_at(&w, "2026-01-01T04:00:00Z");
    (void)run_all();
    for (size_t i = 30; i < 60; i++)
        w.many[i].target.there = false;
    run_once(&w, true);
    assert_int_equal(count_of("failed"), 30);
    assert_int_equal(count_of("skipped"), 30);
    assert_int_equal(json_array_size(json_object_get(selected(), "workloads")), ERU_NAMED_MAX);
    assert_string_equal(state_of("d-30"), "Failed/NoLongerMatches"); /* before skipped ones */
    assert_string_equal(state_of("d-00"), "");
}

static void test_instant_during_a_restart_follows_the_policy(void **state)
{
    (void)state;
    for (int allow = 0; allow < 2; allow++) {
        begin(2);
        w.spec.schedule = "*/5 * * * *";
        w.spec.concurrency_policy = allow ? "Allow" : "Forbid";
        run_at(&w, "2026-01-01T00:00:01Z");
        run_at(&w, "2026-01-01T00:05:00Z");
        run_once(&w, true);
        assert_int_equal(w.stamps, 2);
        w.many[0].target.observed_generation = w.many[0].target.generation;
        run_at(&w, "2026-01-01T00:10:00Z");
        run_once(&w, true);
        assert_int_equal(w.stamps, allow ? 4 : 2);
        assert_string_equal(reason(&w, 0), allow ? "Superseded" : "SkippedRolloutRunning");
    }
}

static void test_restart_by_hand_takes_unhealthy_workloads(void **state)
{
    (void)state;
    begin(3);
    w.spec.enabled = false;
    w.many[1].target.updated = 0; /* a rollout is running */
    w.many[2].target.available = 0;
    w.token = "one";
    run_at(&w, "2026-01-01T02:00:00Z"); /* stores the token */
    assert_int_equal(w.wake_ms, 1);
    (void)run_all();
    assert_int_equal(w.stamps, 2);
    assert_string_equal(state_of("d-01"), "Pending");
    assert_true(json_is_true(json_object_get(selected(), "manual")));
    settle_all(&w);
    run_at(&w, "2026-01-01T02:00:10Z");
    settle_all(&w);
    run_at(&w, "2026-01-01T02:00:20Z");
    assert_each_once(3, "2026-01-01T02:00:00Z");
    assert_string_equal(text(&w, "lastResult"), "Succeeded");
    (void)run_all();
    assert_int_equal(w.stamps, 3); /* once for each token */
    w.token = "two";
    run_at(&w, "2026-01-01T02:01:00Z");
    (void)run_all();
    assert_int_equal(w.stamps, 6);
}

static void test_killed_restart_by_hand_restarts_each_once(void **state)
{
    (void)state;
    begin(2);
    w.token = "one";
    run_at(&w, "2026-01-01T02:00:00Z");
    run_once(&w, false); /* dies before it has recorded what matches */
    run_at(&w, "2026-01-01T02:00:01Z");
    run_once(&w, false); /* dies after the restarts */
    assert_int_equal(w.stamps, 2);
    run_at(&w, "2026-01-01T02:00:02Z");
    assert_each_once(2, "2026-01-01T02:00:00Z");
}

static void test_invalid_status_is_replaced(void **state)
{
    (void)state;
    begin(2);
    run_at(&w, "2026-01-01T04:00:00Z");
    (void)json_object_del(w.status, "selected");
    run_once(&w, true);
    assert_false(rolling(&w));
    assert_int_equal(w.stamps, 0);
    begin(2);
    run_at(&w, "2026-01-01T04:00:00Z");
    (void)json_object_set_new(json_object_get(w.status, "selected"), "instant",
                              json_string("2026-01-01T03:59:59Z"));
    run_once(&w, true);
    assert_false(rolling(&w));
    assert_int_equal(w.stamps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_matches_are_recorded_before_the_first_restart, done),
        cmocka_unit_test_teardown(test_run_killed_between_restarts_restarts_each_once, done),
        cmocka_unit_test_teardown(test_run_killed_before_the_record_restarts_each_once, done),
        cmocka_unit_test_teardown(test_two_leaders_restart_each_once, done),
        cmocka_unit_test_teardown(test_workloads_created_later_are_skipped, done),
        cmocka_unit_test_teardown(test_replaced_workload_is_skipped, done),
        cmocka_unit_test_teardown(test_selector_without_matches_is_skipped, done),
        cmocka_unit_test_teardown(test_too_many_matches_restart_nothing, done),
        cmocka_unit_test_teardown(test_all_allowed_matches_are_restarted, done),
        cmocka_unit_test_teardown(test_unreadable_workload_does_not_hold_up_others, done),
        cmocka_unit_test_teardown(test_workload_unreadable_during_a_restart_is_not_lost, done),
        cmocka_unit_test_teardown(test_refused_workload_fails_alone, done),
        cmocka_unit_test_teardown(test_failing_workload_ends_with_the_deadline, done),
        cmocka_unit_test_teardown(test_failing_workloads_give_way_to_others, done),
        cmocka_unit_test_teardown(test_unavailable_server_ends_a_run_after_a_few_errors, done),
        cmocka_unit_test_teardown(test_unfit_workloads_are_skipped_with_their_reasons, done),
        cmocka_unit_test_teardown(test_restart_of_skipped_workloads_alone_is_skipped, done),
        cmocka_unit_test_teardown(test_disabling_ends_a_restart, done),
        cmocka_unit_test_teardown(test_failed_rollouts_have_reasons, done),
        cmocka_unit_test_teardown(test_number_of_named_workloads_is_bounded, done),
        cmocka_unit_test_teardown(test_instant_during_a_restart_follows_the_policy, done),
        cmocka_unit_test_teardown(test_restart_by_hand_takes_unhealthy_workloads, done),
        cmocka_unit_test_teardown(test_killed_restart_by_hand_restarts_each_once, done),
        cmocka_unit_test_teardown(test_invalid_status_is_replaced, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
