/* SPDX-License-Identifier: Apache-2.0
 *
 * What an Eru does at which time, with the clock passed in; and that each instant restarts once,
 * wherever a run is interrupted. */
#include "fixture.h"

#include "base/tzfile.h"
#include "schema/zones.h"

static struct fixture w; /* of the running test */

static int done(void **state)
{
    (void)state;
    fixture_done(&w);
    return 0;
}

/* A new fixture, with an Eru that was never reconciled. */
static void create(const char *schedule)
{
    fixture_done(&w);
    fixture_init(&w, schedule);
}

/* The same after one run, at the time of creation. */
static void begin(const char *schedule)
{
    create(schedule);
    run_at(&w, "2026-01-01T00:00:00Z");
}

static void test_restart_comes_at_its_instant(void **state)
{
    (void)state;
    begin("0 4 * * *");
    assert_string_equal(text(&w, "nextScheduleTime"), "2026-01-01T04:00:00Z");
    assert_int_equal(w.wake_ms, 4 * 3600 * 1000 + 1);
    assert_int_equal(w.looks, 0); /* no read before there is something to do */

    run_at(&w, "2026-01-01T03:59:59Z");
    assert_int_equal(w.stamps, 0);
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.stamps, 1);
    assert_int_equal(w.looks, 1);
    assert_string_equal(w.live.stamp, "2026-01-01T04:00:00Z");
    assert_true(said(&w, "Restarted"));
    assert_true(rolling(&w));
    assert_string_equal(text(&w, "lastScheduleTime"), "2026-01-01T04:00:00Z");
    assert_string_equal(text(&w, "lastRestartTime"), "2026-01-01T04:00:00Z");
    assert_string_equal(text(&w, "nextScheduleTime"), "2026-01-02T04:00:00Z");
    assert_int_equal(w.wake_ms, 600 * 1000 + 1); /* the rollout's deadline */

    run_at(&w, "2026-01-01T04:00:30Z"); /* not complete yet */
    assert_int_equal(w.event_count, 0);
    settle(&w);
    run_at(&w, "2026-01-01T04:01:00Z");
    assert_true(said(&w, "RolloutSucceeded"));
    assert_false(rolling(&w));
    assert_string_equal(text(&w, "lastResult"), "Succeeded");
    json_t *entry = json_array_get(json_object_get(w.status, "history"), 0);
    assert_int_equal(json_integer_value(json_object_get(entry, "durationSeconds")), 60);
    run_at(&w, "2026-01-01T05:00:00Z");
    assert_int_equal(w.stamps, 1);
    assert_int_equal(w.event_count, 0);
}

static void test_run_killed_before_its_status_restarts_once(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.now = at("2026-01-01T04:00:00Z");
    run_once(&w, false);
    assert_int_equal(w.stamps, 1);
    for (int i = 0; i < 3; i++) { /* also more than once */
        w.now += 5;
        run_once(&w, i == 2);
        assert_int_equal(w.stamps, 1);
    }
    assert_true(rolling(&w));
    assert_string_equal(text(&w, "lastScheduleTime"), "2026-01-01T04:00:00Z");
    settle(&w);
    run_at(&w, "2026-01-01T04:02:00Z");
    assert_string_equal(text(&w, "lastResult"), "Succeeded");
    assert_int_equal(w.stamps, 1);
}

/* The rollout completed before any replica led again: no change of the Deployment triggers a
 * run. */
static void test_rollout_completed_unseen_is_recorded(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.now = at("2026-01-01T04:00:00Z");
    run_once(&w, false);
    settle(&w);
    run_at(&w, "2026-01-01T04:00:15Z");
    assert_int_equal(w.stamps, 1);
    assert_int_equal(w.looks, 2);
    assert_true(said(&w, "Restarted"));
    assert_true(said(&w, "RolloutSucceeded"));
    assert_false(rolling(&w));
}

static void test_lost_answer_restarts_once(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.answer_lost = true;
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.err, STW_ERR_TIMEOUT);
    assert_string_equal(text(&w, "lastScheduleTime"), "");
    w.answer_lost = false;
    run_at(&w, "2026-01-01T04:00:10Z");
    assert_int_equal(w.stamps, 1);
    assert_true(rolling(&w));
}

/* Between look and stamp: nothing is written, and the next leader does it. */
static void test_lost_lease_writes_nothing(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.lease_lost = true;
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.err, STW_ERR_CANCELLED);
    assert_int_equal(w.stamps, 0);
    assert_string_equal(text(&w, "lastScheduleTime"), "");
    w.lease_lost = false;
    run_at(&w, "2026-01-01T04:00:02Z");
    assert_int_equal(w.stamps, 1);
    assert_string_equal(w.live.stamp, "2026-01-01T04:00:00Z");
}

/* Another replica that believes it leads stamps just before we do. */
static void the_other_stamps(struct fixture *fixture)
{
    (void)snprintf(fixture->live.stamp, sizeof(fixture->live.stamp), "2026-01-01T04:00:00Z");
    fixture->live.generation++;
    fixture->stamps++;
    touch(fixture);
}

static void test_two_leaders_restart_once(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.meanwhile = the_other_stamps;
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.err, STW_ERR_CONFLICT);
    assert_int_equal(w.stamps, 1);
    run_at(&w, "2026-01-01T04:00:01Z"); /* from a fresh read */
    assert_int_equal(w.err, STW_OK);
    assert_int_equal(w.stamps, 1);
    assert_true(rolling(&w));
}

/* A leader that was suspended, with an old status, must not undo what the other has done since. */
static void test_suspended_leader_restarts_nothing(void **state)
{
    (void)state;
    begin("*/10 * * * *");
    (void)snprintf(w.live.stamp, sizeof(w.live.stamp), "2026-01-01T00:20:00Z");
    run_at(&w, "2026-01-01T00:20:01Z"); /* its latest instant is already stamped */
    assert_int_equal(w.stamps, 0);

    begin("*/10 * * * *");
    (void)snprintf(w.live.stamp, sizeof(w.live.stamp), "2026-01-01T00:10:05Z");
    run_at(&w, "2026-01-01T00:10:06Z"); /* by hand, later than the instant */
    assert_int_equal(w.stamps, 0);
    assert_string_equal(text(&w, "lastScheduleTime"), "2026-01-01T00:10:00Z");
}

static void test_future_stamp_does_not_block_restarts(void **state)
{
    (void)state;
    begin("0 4 * * *");
    (void)snprintf(w.live.stamp, sizeof(w.live.stamp), "2099-01-01T00:00:00Z");
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.stamps, 1);
    assert_string_equal(w.live.stamp, "2026-01-01T04:00:00Z");
}

static void test_instant_within_the_deadline_is_made_up_for(void **state)
{
    (void)state;
    begin("0 4 * * *");
    run_at(&w, "2026-01-01T04:10:00Z"); /* just within the deadline */
    assert_int_equal(w.stamps, 1);
    assert_string_equal(w.live.stamp, "2026-01-01T04:00:00Z");
    assert_int_equal(number(&w, "missedCount"), 0);
}

static void test_instant_past_the_deadline_is_missed(void **state)
{
    (void)state;
    begin("0 4 * * *");
    run_at(&w, "2026-01-01T04:10:01Z");
    assert_int_equal(w.stamps, 0);
    assert_int_equal(w.looks, 1); /* an earlier run may have restarted it */
    assert_true(said(&w, "MissedSchedule"));
    assert_string_equal(text(&w, "lastResult"), "Missed");
    assert_string_equal(text(&w, "lastMissedTime"), "2026-01-01T04:00:00Z");
    assert_int_equal(number(&w, "missedCount"), 1);
    assert_string_equal(text(&w, "nextScheduleTime"), "2026-01-02T04:00:00Z");
    run_at(&w, "2026-01-01T04:20:00Z"); /* not counted again */
    assert_int_equal(number(&w, "missedCount"), 1);
    assert_int_equal(w.event_count, 0);
}

static void test_restart_made_before_a_crash_is_not_missed(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.now = at("2026-01-01T04:00:00Z");
    run_once(&w, false);
    assert_int_equal(w.stamps, 1);
    run_at(&w, "2026-01-01T04:11:00Z");
    assert_true(rolling(&w));
    assert_false(said(&w, "MissedSchedule"));
    assert_int_equal(number(&w, "missedCount"), 0);
    settle(&w);
    run_at(&w, "2026-01-01T04:12:00Z");
    assert_string_equal(text(&w, "lastResult"), "Succeeded");
    assert_int_equal(w.stamps, 1);
}

static void test_only_the_latest_of_many_missed_instants_restarts(void **state)
{
    (void)state;
    begin("*/15 * * * *");
    run_at(&w, "2026-01-11T10:00:30Z"); /* 1,000 instants */
    assert_int_equal(w.stamps, 1);
    assert_string_equal(w.live.stamp, "2026-01-11T10:00:00Z");
    assert_int_equal(number(&w, "missedCount"), 100);
    assert_string_equal(text(&w, "lastMissedTime"), "2026-01-11T09:45:00Z");
    assert_true(said(&w, "Restarted"));
    assert_true(said(&w, "MissedSchedule"));
    settle(&w);
    run_at(&w, "2026-01-11T10:15:00Z"); /* and the schedule goes on */
    assert_int_equal(w.stamps, 2);
}

static void test_changed_schedule_counts_from_its_change(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.spec.schedule = "0 1 * * *";
    w.changed_at = at("2026-01-01T01:00:30Z");
    run_at(&w, "2026-01-01T01:00:31Z"); /* 1:00 was before the change */
    assert_int_equal(w.stamps, 0);
    assert_string_equal(text(&w, "nextScheduleTime"), "2026-01-02T01:00:00Z");
    w.spec.time_zone = "UTC"; /* another name, the same zone */
    w.changed_at = at("2026-01-01T12:00:00Z");
    run_at(&w, "2026-01-01T12:00:00Z");
    assert_int_equal(w.stamps, 0);
}

/* Changed while no replica ran, and due since then. */
static void test_schedule_changed_while_down_is_followed(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.spec.schedule = "0 1 * * *";
    w.changed_at = at("2026-01-01T00:59:00Z");
    run_at(&w, "2026-01-01T01:05:00Z");
    assert_int_equal(w.stamps, 1);
    assert_string_equal(w.live.stamp, "2026-01-01T01:00:00Z");
}

static void test_enabling_counts_from_its_time(void **state)
{
    (void)state;
    create("*/5 * * * *");
    w.spec.enabled = false;
    run_at(&w, "2026-01-01T00:02:00Z");
    assert_int_equal(w.wake_ms, 0);
    assert_string_equal(text(&w, "nextScheduleTime"), "");
    run_at(&w, "2026-01-01T01:00:00Z");
    w.spec.enabled = true;
    w.changed_at = at("2026-01-01T01:01:00Z");
    run_at(&w, "2026-01-01T01:01:00Z");
    assert_int_equal(w.stamps, 0); /* not for earlier instants */
    assert_int_equal(number(&w, "missedCount"), 0);
    run_at(&w, "2026-01-01T01:05:00Z");
    assert_int_equal(w.stamps, 1);
}

/* Due before its first run: the creation time counts. */
static void test_creation_time_counts_for_the_first_instant(void **state)
{
    (void)state;
    create("0 4 * * *");
    run_at(&w, "2026-01-01T04:00:05Z");
    assert_int_equal(w.stamps, 1);
}

static void test_clock_steps_restart_once(void **state)
{
    (void)state;
    begin("30 * * * *");
    run_at(&w, "2026-01-01T03:30:00Z");
    settle(&w);
    run_at(&w, "2026-01-01T03:31:00Z");
    unsigned stamps = w.stamps;
    run_at(&w, "2026-01-01T02:31:00Z"); /* back an hour: 2:30 and 3:30 are done */
    assert_int_equal(w.stamps, stamps);
    assert_string_equal(text(&w, "nextScheduleTime"), "2026-01-01T04:30:00Z");
    run_at(&w, "2026-01-01T03:30:00Z");
    assert_int_equal(w.stamps, stamps);
    run_at(&w, "2026-01-01T04:31:00Z"); /* and forward */
    assert_int_equal(w.stamps, stamps + 1);
    assert_string_equal(w.live.stamp, "2026-01-01T04:30:00Z");
}

static void test_clock_that_was_ahead_stops_no_schedule(void **state)
{
    (void)state;
    begin("0 4 * * *");
    run_at(&w, "2027-06-01T04:00:00Z");
    settle(&w);
    run_at(&w, "2027-06-01T04:01:00Z");
    unsigned stamps = w.stamps;
    run_at(&w, "2026-01-02T04:10:00Z");
    assert_int_equal(w.stamps, stamps);
    assert_true(said(&w, "ClockWasAhead"));
    assert_string_equal(text(&w, "lastScheduleTime"), "2026-01-02T04:00:00Z");
    assert_string_equal(text(&w, "nextScheduleTime"), "2026-01-03T04:00:00Z");
    run_at(&w, "2026-01-02T04:10:05Z");
    assert_int_equal(w.event_count, 0);
    run_at(&w, "2026-01-03T04:00:00Z");
    assert_int_equal(w.stamps, stamps + 1);
    assert_string_equal(w.live.stamp, "2026-01-03T04:00:00Z");
}

/* The schedule was put into force by it. */
static void test_schedule_of_a_clock_that_was_ahead_begins_now(void **state)
{
    (void)state;
    create("0 4 * * *");
    run_at(&w, "2027-06-01T05:00:00Z");
    run_at(&w, "2026-01-02T03:00:00Z");
    run_at(&w, "2026-01-02T04:00:00Z");
    assert_int_equal(w.stamps, 1);
}

/* A step of the wall clock does not change how long a rollout has taken, in either direction. */
static void test_clock_steps_do_not_change_the_timeout_of_a_rollout(void **state)
{
    static const struct {
        int64_t set_by;
        const char *early, *late;
    } cases[] = {
        {3600, "2026-01-01T05:09:59Z", "2026-01-01T05:10:00Z"},
        {-3600, "2026-01-01T03:09:59Z", "2026-01-01T03:10:00Z"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        begin("0 4 * * *");
        run_at(&w, "2026-01-01T04:00:00Z");
        w.set_by = cases[i].set_by;
        run_at(&w, cases[i].early);
        assert_true(rolling(&w));
        assert_int_equal(w.wake_ms, 1000 + 1);
        run_at(&w, cases[i].late);
        assert_string_equal(reason(&w, 0), "RolloutTimeout");
        json_t *entry = json_array_get(json_object_get(w.status, "history"), 0);
        assert_int_equal(json_integer_value(json_object_get(entry, "durationSeconds")), 600);
    }
}

/* A new process knows only what was written. */
static void test_clock_steps_and_a_new_process_end_a_rollout_in_time(void **state)
{
    (void)state;
    begin("0 4 * * *");
    run_at(&w, "2026-01-01T04:00:00Z");
    start_again(&w);
    run_at(&w, "2026-01-01T04:09:00Z"); /* nine minutes are over */
    assert_true(rolling(&w));
    w.set_by = 3600;
    run_at(&w, "2026-01-01T05:09:59Z");
    assert_true(rolling(&w));
    start_again(&w);
    run_at(&w, "2026-01-01T05:09:59Z");
    assert_string_equal(reason(&w, 0), "RolloutTimeout");
}

static void replaced_by_another(struct fixture *fixture)
{
    (void)snprintf(fixture->live.uid, sizeof(fixture->live.uid), "d-2");
    fixture->live.stamp[0] = '\0';
    fixture->live.generation = 1;
    settle(fixture);
}

static void pause_it(struct fixture *fixture)
{
    fixture->live.paused = true;
}
static void scale_to_zero(struct fixture *fixture)
{
    fixture->live.wanted = 0;
    settle(fixture);
}
static void delete_it(struct fixture *fixture)
{
    fixture->live.there = false;
}
static void lose_one(struct fixture *fixture)
{
    fixture->live.available = 2;
}
static void roll_out(struct fixture *fixture)
{
    fixture->live.generation++;
    fixture->live.updated = 1;
}
static void get_stuck(struct fixture *fixture)
{
    fixture->live.stuck = true;
    fixture->live.observed_generation = fixture->live.generation;
    (void)snprintf(fixture->live.stuck_message, sizeof(fixture->live.stuck_message), "no progress");
}
static void fail_and_get_stuck(struct fixture *fixture)
{
    lose_one(fixture);
    get_stuck(fixture);
}

static void test_unfit_workload_is_skipped_with_a_reason(void **state)
{
    static const struct {
        void (*before)(struct fixture *fixture);
        const char *policy;
        bool require_healthy;
        const char *reason; /* NULL: restarted */
    } cases[] = {
        {pause_it, "Forbid", true, "SkippedTargetPaused"},
        {pause_it, "Allow", false, "SkippedTargetPaused"},
        {scale_to_zero, "Forbid", true, "SkippedScaledToZero"},
        {delete_it, "Forbid", true, "SkippedTargetNotFound"},
        {lose_one, "Forbid", true, "SkippedTargetUnhealthy"},
        {lose_one, "Forbid", false, NULL},
        {roll_out, "Forbid", true, "SkippedRolloutRunning"},
        {roll_out, "Forbid", false, "SkippedRolloutRunning"},
        {roll_out, "Allow", true, NULL},
        {fail_and_get_stuck, "Forbid", true, "SkippedTargetUnhealthy"},
        {fail_and_get_stuck, "Forbid", false, NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        create("0 4 * * *");
        w.spec.concurrency_policy = cases[i].policy;
        w.spec.require_healthy = cases[i].require_healthy;
        run_at(&w, "2026-01-01T00:00:00Z");
        cases[i].before(&w);
        run_at(&w, "2026-01-01T04:00:00Z");
        if (w.stamps != (cases[i].reason ? 0u : 1u) ||
            (cases[i].reason && !said(&w, cases[i].reason)))
            fail_msg("case %zu: %u stamps, %s", i, w.stamps, w.events[0].reason);
        assert_string_equal(text(&w, "lastScheduleTime"), "2026-01-01T04:00:00Z");
        if (cases[i].reason) {
            assert_string_equal(text(&w, "lastResult"), "Skipped");
            assert_string_equal(reason(&w, 0), cases[i].reason);
        }
        run_at(&w, "2026-01-01T04:00:30Z"); /* an instant is skipped for good */
        assert_int_equal(w.stamps, cases[i].reason ? 0 : 1);
    }
}

static void test_rollout_ends_as_its_workload_does(void **state)
{
    static const struct {
        void (*during)(struct fixture *fixture);
        const char *reason;
        const char *result; /* "" still running */
    } cases[] = {
        {delete_it, "DeploymentNotFound", "Failed"},
        {replaced_by_another, "Replaced", "Failed"},
        {get_stuck, "RolloutFailed", "Failed"},
        {scale_to_zero, "RolloutSucceeded", "Succeeded"},
        {settle, "RolloutSucceeded", "Succeeded"},
        {pause_it, "", ""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        begin("0 4 * * *");
        run_at(&w, "2026-01-01T04:00:00Z");
        cases[i].during(&w);
        run_at(&w, "2026-01-01T04:01:00Z");
        assert_string_equal(text(&w, "lastResult"), cases[i].result);
        assert_string_equal(reason(&w, 0), cases[i].reason);
        assert_int_equal(rolling(&w), !*cases[i].result);
        assert_int_equal(w.stamps, 1);
        run_at(&w, "2026-01-01T04:10:00Z"); /* the timeout has passed */
        assert_false(rolling(&w));
        if (!*cases[i].result)
            assert_string_equal(reason(&w, 0), "RolloutTimeout");
    }
}

static void test_instant_during_a_rollout_follows_the_policy(void **state)
{
    (void)state;
    begin("*/5 * * * *");
    run_at(&w, "2026-01-01T00:05:00Z");
    run_at(&w, "2026-01-01T00:10:00Z");
    assert_int_equal(w.stamps, 1);
    assert_true(said(&w, "SkippedRolloutRunning"));
    assert_true(rolling(&w));
    w.spec.concurrency_policy = "Allow";
    run_at(&w, "2026-01-01T00:15:00Z"); /* at this moment it also times out */
    assert_int_equal(w.stamps, 2);

    create("*/5 * * * *");
    w.spec.concurrency_policy = "Allow";
    run_at(&w, "2026-01-01T00:00:00Z");
    run_at(&w, "2026-01-01T00:05:00Z");
    run_at(&w, "2026-01-01T00:10:00Z");
    assert_int_equal(w.stamps, 2);
    assert_string_equal(reason(&w, 0), "Superseded");
    assert_true(rolling(&w));
}

static void test_jitter_puts_off_the_restart(void **state)
{
    (void)state;
    create("0 4 * * *");
    w.spec.jitter_seconds = 300;
    run_at(&w, "2026-01-01T00:00:00Z");
    uint64_t off = w.wake_ms / 1000 - 4 * 3600;
    assert_true(off > 0 && off <= 300); /* of this uid */
    w.now = at("2026-01-01T04:00:00Z") + (int64_t)off - 1;
    run_once(&w, true);
    assert_int_equal(w.stamps, 0);
    assert_string_equal(text(&w, "nextScheduleTime"), "2026-01-01T04:00:00Z");
    w.now++;
    run_once(&w, true);
    assert_int_equal(w.stamps, 1);
    assert_string_equal(w.live.stamp, "2026-01-01T04:00:00Z"); /* the instant, not the time */
}

static void test_jitter_is_spread_evenly(void **state)
{
    unsigned thirds[3] = {0};
    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct eru *e = calloc(1, sizeof(*e));
        e->spec.jitter_seconds = 2;
        (void)snprintf(e->object.uid, sizeof(e->object.uid), "uid-%d", i);
        thirds[eru_plan_jitter(e)]++;
        assert_int_equal(eru_plan_jitter(e), eru_plan_jitter(e));
        free(e);
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(thirds[i], 900, 1100);
}

static void test_unavailable_server_is_tried_again(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.look_fails = true;
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.err, STW_ERR_UNAVAILABLE);
    assert_string_equal(text(&w, "lastScheduleTime"), "");
    w.look_fails = false;
    run_at(&w, "2026-01-01T04:05:00Z");
    assert_int_equal(w.stamps, 1);
}

static void test_restart_by_hand_comes_once_a_token(void **state)
{
    (void)state;
    create("0 4 * * *");
    w.spec.enabled = false;
    run_at(&w, "2026-01-01T00:00:00Z");
    w.token = "one";
    run_at(&w, "2026-01-01T01:00:00Z"); /* recorded first */
    assert_int_equal(w.stamps, 0);
    assert_int_equal(w.wake_ms, 1);
    run_once(&w, false); /* interrupted after the stamp */
    assert_int_equal(w.stamps, 1);
    run_at(&w, "2026-01-01T01:00:05Z");
    assert_int_equal(w.stamps, 1);
    assert_string_equal(w.live.stamp, "2026-01-01T01:00:00Z");
    assert_true(rolling(&w));
    settle(&w);
    run_at(&w, "2026-01-01T01:01:00Z");
    run_at(&w, "2026-01-01T01:02:00Z");
    assert_int_equal(w.stamps, 1);
    w.token = "two";
    run_at(&w, "2026-01-01T02:00:00Z");
    run_at(&w, "2026-01-01T02:00:01Z");
    assert_int_equal(w.stamps, 2);
    w.token = ""; /* removed: no restart */
    settle(&w);
    run_at(&w, "2026-01-01T03:00:00Z");
    assert_int_equal(w.stamps, 2);
}

/* Interrupted after the stamp; the next run is at an instant of the schedule, which replaces that stamp. */
static void test_restart_by_hand_before_an_instant_does_not_replace_it(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.token = "one";
    run_at(&w, "2026-01-01T03:59:50Z");
    w.now = at("2026-01-01T03:59:51Z");
    run_once(&w, false);
    assert_int_equal(w.stamps, 1);
    settle(&w);
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.stamps, 2);
    assert_string_equal(w.live.stamp, "2026-01-01T04:00:00Z");
    settle(&w);
    run_at(&w, "2026-01-01T04:01:00Z");
    run_at(&w, "2026-01-01T04:02:00Z");
    assert_int_equal(w.stamps, 2);
}

/* The stamp has whole seconds: of two restarts in one second, the second one gets the next
 * second. */
static void test_second_restart_by_hand_in_a_second_waits(void **state)
{
    (void)state;
    create("0 4 * * *");
    w.spec.enabled = false;
    run_at(&w, "2026-01-01T01:00:00Z");
    w.token = "one";
    run_at(&w, "2026-01-01T01:00:00Z");
    run_at(&w, "2026-01-01T01:00:00Z");
    assert_string_equal(w.live.stamp, "2026-01-01T01:00:00Z");
    settle(&w);
    run_at(&w, "2026-01-01T01:00:00Z");
    w.token = "two";
    run_at(&w, "2026-01-01T01:00:00Z");
    run_at(&w, "2026-01-01T01:00:00Z");
    assert_int_equal(w.stamps, 2);
    assert_string_equal(w.live.stamp, "2026-01-01T01:00:01Z");
}

static void test_restart_by_hand_waits_for_a_rollout(void **state)
{
    (void)state;
    begin("0 4 * * *");
    roll_out(&w);
    w.token = "one";
    run_at(&w, "2026-01-01T01:00:00Z");
    run_at(&w, "2026-01-01T01:00:01Z");
    assert_int_equal(w.stamps, 0);
    settle(&w);
    lose_one(&w); /* unhealthy does not prevent it */
    run_at(&w, "2026-01-01T01:05:00Z");
    assert_int_equal(w.stamps, 1);
}

static void test_restart_by_hand_of_a_paused_workload_is_skipped(void **state)
{
    (void)state;
    begin("0 4 * * *");
    pause_it(&w);
    w.token = "one";
    run_at(&w, "2026-01-01T01:00:00Z");
    run_at(&w, "2026-01-01T01:00:01Z");
    assert_string_equal(reason(&w, 0), "SkippedTargetPaused");
    w.live.paused = false;
    run_at(&w, "2026-01-01T01:00:02Z");
    assert_int_equal(w.stamps, 0);
}

static void test_history_is_bounded(void **state)
{
    (void)state;
    create("*/10 * * * *");
    w.spec.history_limit = 2;
    run_at(&w, "2026-01-01T00:00:00Z");
    pause_it(&w);
    for (int i = 1; i <= 5; i++) {
        w.now = at("2026-01-01T00:00:00Z") + i * 600;
        run_once(&w, true);
    }
    json_t *history = json_object_get(w.status, "history");
    assert_int_equal(json_array_size(history), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(history, 0), "instant")),
                        "2026-01-01T00:50:00Z"); /* newest first */
    w.spec.history_limit = 0;
    run_at(&w, "2026-01-01T01:00:00Z");
    assert_null(json_object_get(w.status, "history"));
}

static void test_invalid_status_is_replaced(void **state)
{
    (void)state;
    create("0 4 * * *");
    json_decref(w.status);
    w.status = json_loads("{\"observedGeneration\":1,\"lastScheduleTime\":7,\"history\":\"x\","
                          "\"activeSchedule\":[],\"currentRollout\":{\"instant\":\"soon\"},"
                          "\"restartNow\":3,\"missedCount\":\"many\",\"lastResult\":\"Odd\"}",
                          0, NULL);
    w.changed_at = at("2026-01-01T03:00:00Z");
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.stamps, 1);
    assert_string_equal(text(&w, "lastScheduleTime"), "2026-01-01T04:00:00Z");
}

/* --- excluded dates and windows */

static struct stw_json_doc hours_docs[2];

static void set_hours(const char *dates, const char *windows)
{
    struct stw_error err = {0};
    const char *const texts[] = {dates, windows};
    struct stw_json *const lists[] = {&w.spec.hours.exclude_dates, &w.spec.hours.windows};
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        stw_json_done(&hours_docs[i]);
        assert_int_equal(stw_json_scan(&hours_docs[i], texts[i], strlen(texts[i]), &err), 0);
        *lists[i] = stw_json_root(&hours_docs[i]);
    }
}

static int done_hours(void **state)
{
    for (size_t i = 0; i < STW_COUNT(hours_docs); i++)
        stw_json_done(&hours_docs[i]);
    return done(state);
}

#define NIGHT "[{\"days\":[\"Thu\"],\"start\":\"22:00\",\"end\":\"05:00\"}]"

static void test_excluded_date_is_skipped(void **state)
{
    (void)state;
    begin("0 4 * * *");
    set_hours("[\"2026-01-02\"]", "[]");
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.stamps, 1);
    settle(&w);
    run_at(&w, "2026-01-01T04:01:00Z");
    unsigned looks = w.looks;
    run_at(&w, "2026-01-02T04:00:00Z");
    assert_int_equal(w.stamps, 1);
    assert_int_equal(w.looks, looks);
    assert_true(said(&w, "SkippedExcluded"));
    assert_string_equal(text(&w, "lastResult"), "Skipped");
    assert_string_equal(text(&w, "lastScheduleTime"), "2026-01-02T04:00:00Z");
    run_at(&w, "2026-01-02T04:00:30Z"); /* once */
    assert_int_equal(w.event_count, 0);
    run_at(&w, "2026-01-03T04:00:00Z");
    assert_int_equal(w.stamps, 2);
}

/* 1 January 2026 is a Thursday. */
static void test_window_over_midnight_belongs_to_its_first_day(void **state)
{
    (void)state;
    begin("30 4,22 * * *");
    set_hours("[]", NIGHT);
    run_at(&w, "2026-01-01T04:30:00Z"); /* the night from Wednesday */
    assert_true(said(&w, "SkippedExcluded"));
    assert_int_equal(w.stamps, 0);
    run_at(&w, "2026-01-01T22:30:00Z");
    assert_int_equal(w.stamps, 1);
    settle(&w);
    run_at(&w, "2026-01-01T22:31:00Z");
    run_at(&w, "2026-01-02T04:30:00Z");
    assert_int_equal(w.stamps, 2);
    settle(&w);
    run_at(&w, "2026-01-02T04:31:00Z");
    run_at(&w, "2026-01-02T22:30:00Z"); /* Friday */
    assert_int_equal(w.stamps, 2);
    assert_true(said(&w, "SkippedExcluded"));
}

/* steward was down until the window was over. */
static void test_late_restart_outside_of_windows_is_skipped(void **state)
{
    (void)state;
    begin("55 4 * * *");
    w.spec.starting_deadline_seconds = 3600;
    set_hours("[]", "[{\"start\":\"04:00\",\"end\":\"05:00\"}]");
    run_at(&w, "2026-01-01T05:10:00Z");
    assert_int_equal(w.stamps, 0);
    assert_true(said(&w, "SkippedExcluded"));
    run_at(&w, "2026-01-02T04:59:59Z");
    assert_int_equal(w.stamps, 1);
}

/* It was stamped in the window; the status was not written before its end. */
static void test_restart_killed_at_the_end_of_a_window_is_recorded(void **state)
{
    (void)state;
    begin("59 4 * * *");
    set_hours("[]", "[{\"start\":\"04:00\",\"end\":\"05:00\"}]");
    w.now = at("2026-01-01T04:59:59Z");
    run_once(&w, false);
    assert_int_equal(w.stamps, 1);
    run_at(&w, "2026-01-01T05:00:01Z");
    assert_int_equal(w.stamps, 1);
    assert_true(rolling(&w));
}

static void test_restart_by_hand_ignores_windows(void **state)
{
    (void)state;
    begin("59 4 * * *");
    set_hours("[\"2026-01-01\"]", NIGHT);
    w.token = "now";
    run_at(&w, "2026-01-01T12:00:00Z");
    run_at(&w, "2026-01-01T12:00:01Z");
    assert_int_equal(w.stamps, 1);
}

/* The date is that of the zone, on both sides of a change of its clock. */
static void test_windows_are_in_the_time_zone(void **state)
{
    static const struct {
        const char *at;
        enum stw_hours_verdict want;
    } cases[] = {{"2026-03-28T23:59:00Z", STW_HOURS_EXCLUDED}, /* 00:59 on the 29th */
                 {"2026-03-28T22:59:00Z", STW_HOURS_OUTSIDE},  /* 23:59 on the 28th */
                 {"2026-03-29T21:59:00Z", STW_HOURS_EXCLUDED}, /* 23:59 in summer time */
                 {"2026-03-29T22:00:00Z", STW_HOURS_ALLOWED},
                 {"2026-03-30T00:59:00Z", STW_HOURS_ALLOWED},
                 {"2026-03-30T01:00:00Z", STW_HOURS_OUTSIDE}}; /* 03:00 in summer time */
    struct stw_zones *zones = stw_zones_create(stw_tz_read);
    const struct stw_zone *berlin = stw_zones_get(zones, "Europe/Berlin");
    (void)state;
    begin("0 0 * * *");
    set_hours("[\"2026-03-29\"]", "[{\"start\":\"00:00\",\"end\":\"03:00\"}]");
    assert_non_null(berlin);
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        if (stw_hours_at(&w.spec.hours, berlin, at(cases[i].at)) != cases[i].want)
            fail_msg("%s", cases[i].at);
    stw_zones_destroy(zones);
}

/* --- StatefulSets and DaemonSets */

static void test_on_delete_workloads_are_skipped(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.spec.kind = "StatefulSet";
    w.live.by_hand = true;
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_true(said(&w, "SkippedOnDelete"));
    w.live.by_hand = false;
    w.live.to_update = 0;
    run_at(&w, "2026-01-02T04:00:00Z");
    assert_true(said(&w, "SkippedScaledToZero"));
    assert_int_equal(w.stamps, 0);
}

/* With a partition only the pods at or above it are replaced. */
static void test_partition_limits_the_pods_to_wait_for(void **state)
{
    (void)state;
    begin("0 4 * * *");
    w.spec.kind = "StatefulSet";
    w.live.to_update = 1;
    run_at(&w, "2026-01-01T04:00:00Z");
    assert_int_equal(w.stamps, 1);
    w.live.observed_generation = w.live.generation;
    w.live.replicas = w.live.updated = 1;
    touch(&w);
    run_at(&w, "2026-01-01T04:00:10Z");
    assert_true(said(&w, "RolloutSucceeded"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_restart_comes_at_its_instant, done),
        cmocka_unit_test_teardown(test_run_killed_before_its_status_restarts_once, done),
        cmocka_unit_test_teardown(test_rollout_completed_unseen_is_recorded, done),
        cmocka_unit_test_teardown(test_lost_answer_restarts_once, done),
        cmocka_unit_test_teardown(test_lost_lease_writes_nothing, done),
        cmocka_unit_test_teardown(test_two_leaders_restart_once, done),
        cmocka_unit_test_teardown(test_suspended_leader_restarts_nothing, done),
        cmocka_unit_test_teardown(test_future_stamp_does_not_block_restarts, done),
        cmocka_unit_test_teardown(test_instant_within_the_deadline_is_made_up_for, done),
        cmocka_unit_test_teardown(test_instant_past_the_deadline_is_missed, done),
        cmocka_unit_test_teardown(test_only_the_latest_of_many_missed_instants_restarts, done),
        cmocka_unit_test_teardown(test_changed_schedule_counts_from_its_change, done),
        cmocka_unit_test_teardown(test_schedule_changed_while_down_is_followed, done),
        cmocka_unit_test_teardown(test_enabling_counts_from_its_time, done),
        cmocka_unit_test_teardown(test_creation_time_counts_for_the_first_instant, done),
        cmocka_unit_test_teardown(test_clock_steps_restart_once, done),
        cmocka_unit_test_teardown(test_clock_that_was_ahead_stops_no_schedule, done),
        cmocka_unit_test_teardown(test_schedule_of_a_clock_that_was_ahead_begins_now, done),
        cmocka_unit_test_teardown(test_clock_steps_do_not_change_the_timeout_of_a_rollout, done),
        cmocka_unit_test_teardown(test_clock_steps_and_a_new_process_end_a_rollout_in_time, done),
        cmocka_unit_test_teardown(test_unfit_workload_is_skipped_with_a_reason, done),
        cmocka_unit_test_teardown(test_rollout_ends_as_its_workload_does, done),
        cmocka_unit_test_teardown(test_instant_during_a_rollout_follows_the_policy, done),
        cmocka_unit_test_teardown(test_jitter_puts_off_the_restart, done),
        cmocka_unit_test_teardown(test_jitter_is_spread_evenly, done),
        cmocka_unit_test_teardown(test_unavailable_server_is_tried_again, done),
        cmocka_unit_test_teardown(test_restart_by_hand_comes_once_a_token, done),
        cmocka_unit_test_teardown(test_restart_by_hand_before_an_instant_does_not_replace_it, done),
        cmocka_unit_test_teardown(test_restart_made_before_a_crash_is_not_missed, done),
        cmocka_unit_test_teardown(test_second_restart_by_hand_in_a_second_waits, done),
        cmocka_unit_test_teardown(test_restart_by_hand_waits_for_a_rollout, done),
        cmocka_unit_test_teardown(test_restart_by_hand_of_a_paused_workload_is_skipped, done),
        cmocka_unit_test_teardown(test_history_is_bounded, done),
        cmocka_unit_test_teardown(test_invalid_status_is_replaced, done),
        cmocka_unit_test_teardown(test_excluded_date_is_skipped, done_hours),
        cmocka_unit_test_teardown(test_window_over_midnight_belongs_to_its_first_day, done_hours),
        cmocka_unit_test_teardown(test_late_restart_outside_of_windows_is_skipped, done_hours),
        cmocka_unit_test_teardown(test_restart_killed_at_the_end_of_a_window_is_recorded,
                                  done_hours),
        cmocka_unit_test_teardown(test_restart_by_hand_ignores_windows, done_hours),
        cmocka_unit_test_teardown(test_windows_are_in_the_time_zone, done_hours),
        cmocka_unit_test_teardown(test_on_delete_workloads_are_skipped, done),
        cmocka_unit_test_teardown(test_partition_limits_the_pods_to_wait_for, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
