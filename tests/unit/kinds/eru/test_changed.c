/* SPDX-License-Identifier: Apache-2.0
 *
 * spec.onlyIfChanged: an instant restarts what has changed since the restart before, and nothing
 * else; no change is lost, wherever a run is interrupted. */
#include "fixture.h"

#include "kinds/common/inputs.h"

static struct fixture w; /* of the running test */

static int done(void **state)
{
    (void)state;
    fixture_done(&w);
    return 0;
}

static void set_digest(const char *digest)
{
    (void)snprintf(w.inputs.digest, sizeof(w.inputs.digest), "%s", digest);
}

/* An Eru of one Deployment that reads two objects, after its first run. */
static void begin(void)
{
    fixture_done(&w);
    fixture_init(&w, "0 4 * * *");
    w.spec.only_if_changed = true;
    w.inputs.count = 2;
    set_digest("one");
    run_at(&w, "2026-01-01T00:00:00Z");
}

/* Runs at an instant and after the rollout; true: the Deployment was restarted. */
static bool restarts_on(int day)
{
    char time[STW_TIME_LEN];
    unsigned before = w.stamps;
    (void)snprintf(time, sizeof(time), "2026-01-%02dT04:00:00Z", day);
    run_at(&w, time);
    bool restarted = w.stamps == before + 1;
    assert_true(restarted || w.stamps == before);
    if (restarted) {
        assert_string_equal(w.live.stamp, time);
        settle(&w);
        w.now += 60;
        run_once(&w, true);
        assert_string_equal(text(&w, "lastResult"), "Succeeded");
    }
    return restarted;
}

/* A skip that is expected: a Normal event, a result, and the next instant. */
static void assert_nothing_changed(void)
{
    assert_string_equal(text(&w, "lastResult"), "Skipped");
    assert_string_equal(reason(&w, 0), "SkippedNothingChanged");
    assert_int_equal(w.event_count, 1);
    assert_string_equal(w.events[0].reason, "SkippedNothingChanged");
    assert_false(w.events[0].warning);
}

static void test_only_changed_inputs_restart(void **state)
{
    (void)state;
    begin();
    assert_int_equal(w.inputs_reads, 0); /* nothing is read before an instant */
    assert_true(restarts_on(1));         /* what the pods have read is not known */
    assert_string_equal(w.live.inputs, "one");
    assert_false(restarts_on(2));
    assert_nothing_changed();
    assert_string_equal(text(&w, "lastScheduleTime"), "2026-01-02T04:00:00Z");
    assert_string_equal(text(&w, "nextScheduleTime"), "2026-01-03T04:00:00Z");
    assert_false(restarts_on(3));
    set_digest("two");
    assert_true(restarts_on(4));
    assert_string_equal(w.live.inputs, "two");
    assert_false(restarts_on(5));
    set_digest("one"); /* back again is a change, too */
    assert_true(restarts_on(6));
}

/* Switched off, it reads nothing, and its restarts keep what was recorded: another Eru of the workload
 * may compare it, and so does this one when it is switched on again. */
static void test_disabled_comparison_keeps_the_record(void **state)
{
    (void)state;
    begin();
    assert_true(restarts_on(1));
    w.spec.only_if_changed = false;
    unsigned reads = w.inputs_reads;
    assert_true(restarts_on(2));
    assert_int_equal(w.inputs_reads, reads);
    assert_string_equal(w.live.inputs, "one");
    w.spec.only_if_changed = true;
    assert_false(restarts_on(3));
    w.spec.only_if_changed = false;
    set_digest("two");
    assert_true(restarts_on(4));
    w.spec.only_if_changed = true;
    assert_true(restarts_on(5)); /* it is not known that the pods have read it */
    assert_string_equal(w.live.inputs, "two");
    assert_false(restarts_on(6));
}

static void test_pods_without_inputs_are_not_restarted(void **state)
{
    (void)state;
    begin();
    w.inputs.count = 0;
    assert_false(restarts_on(1));
    assert_nothing_changed();
    assert_non_null(strstr(w.events[0].note, "its pods read no ConfigMap and no Secret"));
}

/* New pods would not start.  The change counts when the object is there again. */
static void test_missing_input_skips_the_restart(void **state)
{
    (void)state;
    begin();
    assert_true(restarts_on(1));
    (void)snprintf(w.inputs.missing, sizeof(w.inputs.missing), "Secret \"db\"");
    set_digest("missing");
    assert_false(restarts_on(2));
    assert_string_equal(reason(&w, 0), "SkippedInputNotFound");
    assert_true(w.events[0].warning);
    assert_non_null(strstr(w.events[0].note, "Secret \"db\", which its pods read, does not exist"));
    w.inputs.missing[0] = '\0';
    set_digest("two");
    assert_true(restarts_on(3));
}

/* What is not compared may have changed. */
static void test_too_many_inputs_count_as_changed(void **state)
{
    (void)state;
    begin();
    w.inputs = (struct eru_inputs){.count = STW_INPUTS_MAX, .more = true};
    assert_true(restarts_on(1));
    assert_true(restarts_on(2));
    assert_string_equal(w.live.inputs, "");
}

static void test_run_killed_around_the_stamp_restarts_once(void **state)
{
    (void)state;
    begin();
    assert_true(restarts_on(1));
    set_digest("two");
    w.now = at("2026-01-02T04:00:00Z");
    run_once(&w, false); /* after the stamp, before the status */
    assert_int_equal(w.stamps, 2);
    set_digest("three"); /* a change during the restart */
    start_again(&w);
    run_once(&w, true);
    assert_int_equal(w.stamps, 2);
    assert_string_equal(w.live.inputs, "two");
    settle(&w);
    w.now += 60;
    run_once(&w, true);
    assert_true(restarts_on(3));
    assert_string_equal(w.live.inputs, "three");
    assert_false(restarts_on(4));
}

/* The status of a run that skipped is lost: it looks again, and sees what came in the meantime. */
static void test_run_killed_after_a_skip_looks_again(void **state)
{
    (void)state;
    begin();
    assert_true(restarts_on(1));
    w.now = at("2026-01-02T04:00:00Z");
    run_once(&w, false);
    assert_int_equal(w.stamps, 1);
    set_digest("two");
    run_once(&w, true);
    assert_int_equal(w.stamps, 2);
}

/* No change is lost at an instant without a restart; the reason for that does not matter. */
static void test_change_at_a_skipped_instant_is_not_lost(void **state)
{
    (void)state;
    begin();
    assert_true(restarts_on(1));
    set_digest("two");
    w.live.paused = true;
    touch(&w);
    unsigned reads = w.inputs_reads;
    assert_false(restarts_on(2));
    assert_string_equal(reason(&w, 0), "SkippedTargetPaused");
    assert_int_equal(w.inputs_reads, reads);
    w.live.paused = false;
    touch(&w);
    run_at(&w, "2026-01-03T05:00:00Z"); /* after an outage: missed */
    assert_int_equal(w.stamps, 1);
    assert_true(restarts_on(4));
}

static void test_restart_by_hand_records_the_inputs(void **state)
{
    (void)state;
    begin();
    assert_true(restarts_on(1));
    w.token = "one";
    (void)snprintf(w.inputs.missing, sizeof(w.inputs.missing), "Secret \"db\"");
    run_at(&w, "2026-01-01T12:00:00Z");
    run_once(&w, true);
    assert_int_equal(w.stamps, 2);
    assert_string_equal(w.live.inputs, "one");
    w.inputs.missing[0] = '\0';
    settle(&w);
    run_at(&w, "2026-01-01T12:01:00Z");
    assert_false(restarts_on(2));
    assert_nothing_changed();
}

/* Without the rights, or without an answer, nothing is restarted and nothing is recorded. */
static void test_unreadable_inputs_restart_nothing(void **state)
{
    static const enum stw_err codes[] = {STW_ERR_FORBIDDEN, STW_ERR_UNAVAILABLE, STW_ERR_CONFLICT};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(codes); i++) {
        begin();
        w.inputs_refusal = codes[i];
        run_at(&w, "2026-01-01T04:00:00Z");
        assert_int_equal(w.err, codes[i]);
        assert_int_equal(w.stamps, 0);
        assert_string_equal(text(&w, "lastScheduleTime"), "");
        w.inputs_refusal = STW_OK;
        assert_true(restarts_on(1));
    }
}

/* What another client writes on the template only causes a restart. */
static void test_forged_digest_only_causes_a_restart(void **state)
{
    (void)state;
    begin();
    assert_true(restarts_on(1));
    (void)snprintf(w.live.inputs, sizeof(w.live.inputs), "forged");
    assert_true(restarts_on(2));
    assert_string_equal(w.live.inputs, "one");
}

/* --- images */

/* The pods run one image whose registry may be asked. */
static void begin_image(const char *hash)
{
    begin();
    w.inputs.images = 1;
    (void)snprintf(w.inputs.image_hash, sizeof(w.inputs.image_hash), "%s", hash);
}

static void set_image(const char *hash, const char *unknown)
{
    (void)snprintf(w.inputs.image_hash, sizeof(w.inputs.image_hash), "%s", hash);
    (void)snprintf(w.inputs.unknown, sizeof(w.inputs.unknown), "%s", unknown);
}

static void test_moved_tag_restarts(void **state)
{
    (void)state;
    begin_image("i1");
    assert_true(restarts_on(1));
    assert_string_equal(w.live.inputs, "one-i1");
    assert_false(restarts_on(2));
    assert_nothing_changed();
    assert_non_null(strstr(w.events[0].note, "nothing changed that its pods read or run"));
    set_image("i2", "");
    assert_true(restarts_on(3));
    assert_string_equal(w.live.inputs, "one-i2");
    assert_false(restarts_on(4));
    set_digest("two");
    assert_true(restarts_on(5));
    assert_string_equal(w.live.inputs, "two-i2");
    set_image("", ""); /* the registry is no longer listed */
    w.inputs.images = 0;
    assert_false(restarts_on(6));
    set_image("i3", ""); /* listed again: the recorded digest counts */
    w.inputs.images = 1;
    assert_true(restarts_on(7));
}

/* A registry that does not answer restarts nothing, and loses no change. */
static void test_unknown_digest_restarts_nothing_and_loses_nothing(void **state)
{
    (void)state;
    begin_image("i1");
    assert_true(restarts_on(1));
    set_image("", "app:1: registry r cannot be reached");
    assert_false(restarts_on(2));
    assert_string_equal(text(&w, "lastResult"), "Skipped");
    assert_string_equal(reason(&w, 0), "SkippedImageDigestUnknown");
    assert_int_equal(w.event_count, 1);
    assert_true(w.events[0].warning);
    assert_non_null(strstr(w.events[0].note, "app:1: registry r cannot be reached"));
    set_image("i1", "");
    assert_false(restarts_on(3));
    assert_nothing_changed();

    set_image("", "app:1: registry r cannot be reached");
    set_digest("two");
    run_at(&w, "2026-01-04T04:00:00Z"); /* ConfigMaps and Secrets are compared nevertheless */
    assert_int_equal(w.stamps, 2);
    assert_string_equal(w.live.inputs, "two-i1");
    assert_true(said(&w, "Restarted") && said(&w, "ImageDigestUnknown"));
    settle(&w);
    run_at(&w, "2026-01-04T04:01:00Z");
    set_image("i2", "");
    assert_true(restarts_on(5));
    assert_string_equal(w.live.inputs, "two-i2");
}

/* From the start: nothing is recorded that is not known. */
static void test_unknown_first_digest_is_not_recorded(void **state)
{
    (void)state;
    begin_image("");
    set_image("", "app:1: registry r cannot be reached");
    assert_true(restarts_on(1)); /* because of the ConfigMaps */
    assert_string_equal(w.live.inputs, "one");
    assert_false(restarts_on(2));
    set_image("i1", "");
    assert_true(restarts_on(3));
    assert_string_equal(w.live.inputs, "one-i1");
}

/* Pods that read nothing but run an image that is compared. */
static void test_image_alone_is_compared(void **state)
{
    (void)state;
    begin_image("");
    w.inputs.count = 0;
    set_image("", "app:1: registry r cannot be reached");
    assert_false(restarts_on(1));
    assert_string_equal(reason(&w, 0), "SkippedImageDigestUnknown");
    set_image("i1", "");
    assert_true(restarts_on(2));
    assert_false(restarts_on(3));
    assert_nothing_changed();
    set_image("i2", "");
    assert_true(restarts_on(4));
}

static void test_restart_by_hand_records_the_image(void **state)
{
    (void)state;
    begin_image("i1");
    assert_true(restarts_on(1));
    w.token = "one";
    set_image("i2", "");
    run_at(&w, "2026-01-01T12:00:00Z");
    run_once(&w, true);
    assert_int_equal(w.stamps, 2);
    assert_string_equal(w.live.inputs, "one-i2");
    settle(&w);
    run_at(&w, "2026-01-01T12:01:00Z");
    assert_false(restarts_on(2));
}

static void test_run_killed_with_a_moved_tag_restarts_again(void **state)
{
    (void)state;
    begin_image("i1");
    assert_true(restarts_on(1));
    set_image("i2", "");
    w.now = at("2026-01-02T04:00:00Z");
    run_once(&w, false); /* after the stamp, before the status */
    assert_string_equal(w.live.inputs, "one-i2");
    set_image("i3", ""); /* the tag moves during the restart */
    start_again(&w);
    run_once(&w, true);
    assert_int_equal(w.stamps, 2);
    assert_string_equal(w.live.inputs, "one-i2");
    settle(&w);
    w.now += 60;
    run_once(&w, true);
    assert_true(restarts_on(3));
    assert_false(restarts_on(4));
}

/* --- with a selector */

static void begin_selected(size_t count)
{
    begin();
    fixture_select(&w, count);
    run_at(&w, "2026-01-01T00:00:01Z");
}

/* Runs until nothing is due at once; the number of runs. */
static unsigned run_all(const char *time)
{
    unsigned runs = 0;
    w.now = at(time);
    do {
        run_once(&w, true);
        runs++;
    } while (w.wake_ms > 0 && w.wake_ms <= 2 && runs < 100);
    return runs;
}

static void restart_all(const char *time, const char *after)
{
    (void)run_all(time);
    settle_all(&w);
    run_at(&w, after);
    assert_false(rolling(&w));
}

static void test_only_changed_workloads_are_restarted(void **state)
{
    (void)state;
    begin_selected(4);
    restart_all("2026-01-01T04:00:00Z", "2026-01-01T04:01:00Z");
    assert_int_equal(w.stamps, 4);
    assert_string_equal(w.many[3].target.inputs, "one");
    w.other = "d-01";
    w.other_digest = "two";
    (void)run_all("2026-01-02T04:00:00Z");
    assert_int_equal(w.stamps, 5);
    assert_string_equal(w.many[1].target.stamp, "2026-01-02T04:00:00Z");
    assert_string_equal(w.many[1].target.inputs, "two");
    assert_true(said(&w, "Restarted"));
    assert_true(said(&w, "SkippedNothingChanged"));
    assert_false(said(&w, "SkippedWorkloads"));
    settle_all(&w);
    run_at(&w, "2026-01-02T04:01:00Z");
    assert_string_equal(text(&w, "lastResult"), "Succeeded");

    (void)run_all("2026-01-03T04:00:00Z");
    assert_int_equal(w.stamps, 5);
    assert_false(rolling(&w));
    assert_string_equal(text(&w, "lastResult"), "Skipped");
    assert_string_equal(reason(&w, 0), "SkippedNothingChanged");
    for (unsigned i = 0; i < w.event_count; i++)
        assert_false(w.events[i].warning);
}

/* However many objects the pods read, a run reads some, and the next run continues. */
static void test_reads_of_a_run_are_bounded(void **state)
{
    (void)state;
    begin_selected(ERU_MATCHES_MAX);
    w.inputs.count = STW_INPUTS_MAX;
    w.now = at("2026-01-01T04:00:00Z");
    run_once(&w, true);
    assert_int_equal(w.inputs_reads, 0);
    for (unsigned i = 1; i <= ERU_MATCHES_MAX; i++) {
        run_once(&w, true);
        assert_int_equal(w.inputs_reads, i);
        assert_int_equal(w.stamps, i);
    }
    settle_all(&w);
    restart_all("2026-01-01T04:01:00Z", "2026-01-01T04:02:00Z");
    assert_string_equal(text(&w, "lastResult"), "Succeeded");
}

static void test_unchanged_workloads_are_named_last(void **state)
{
    (void)state;
    begin_selected(ERU_MATCHES_MAX);
    restart_all("2026-01-01T04:00:00Z", "2026-01-01T04:01:00Z");
    w.many[ERU_MATCHES_MAX - 1].target.paused = true;
    (void)run_all("2026-01-02T04:00:00Z");
    const json_t *list = json_object_get(json_object_get(w.status, "selected"), "workloads");
    assert_int_equal(json_array_size(list), ERU_NAMED_MAX);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "reason")),
                        "SkippedTargetPaused");
    assert_string_equal(reason(&w, 0), "SkippedForSeveralReasons");
}

static void test_unreadable_inputs_of_a_workload_fail_it(void **state)
{
    (void)state;
    begin_selected(3);
    w.now = at("2026-01-01T04:00:00Z");
    run_once(&w, true);
    w.inputs_refusal = STW_ERR_FORBIDDEN;
    run_once(&w, true);
    assert_int_equal(w.stamps, 0);
    assert_string_equal(text(&w, "lastResult"), "Failed");
}

static void test_unknown_digest_skips_workloads(void **state)
{
    (void)state;
    begin_selected(3);
    w.inputs.images = 1;
    set_image("i1", "");
    restart_all("2026-01-01T04:00:00Z", "2026-01-01T04:01:00Z");
    assert_int_equal(w.stamps, 3);
    set_image("", "app:1: registry r cannot be reached");
    w.other = "d-01";
    w.other_digest = "two";
    w.now = at("2026-01-02T04:00:00Z");
    run_once(&w, true);
    run_once(&w, true);
    assert_int_equal(w.stamps, 4);
    assert_string_equal(w.many[1].target.inputs, "two-i1");
    unsigned told = 0;
    for (unsigned i = 0; i < w.event_count; i++)
        told += stw_streq(w.events[i].reason, "ImageDigestUnknown");
    assert_int_equal(told, 1); /* of a run, not of each workload */
    assert_true(said(&w, "SkippedWorkloads"));
}

/* --- names */

static void assert_inputs(const char *pod, const char *want)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(65536);
    struct stw_inputs inputs = {0};
    assert_int_equal(stw_json_scan(&doc, pod, strlen(pod), NULL), 0);
    stw_inputs_add_pod(&inputs, stw_json_root(&doc));
    for (size_t i = 0; i < inputs.count; i++)
        stw_buf_addf(&out, "%s%s ", inputs.all[i].name, inputs.all[i].required ? "" : "?");
    assert_string_equal(stw_buf_str(&out), want);
    stw_inputs_done(&inputs);
}

/* Required, if one of several places requires it.  Credentials of the kubelet are not read by pods. */
static void test_optional_input_is_required_by_one_place(void **state)
{
    (void)state;
    assert_inputs(
        "{\"imagePullSecrets\":[{\"name\":\"registry\"}],\"containers\":[{\"envFrom\":[{"
        "\"configMapRef\":{\"name\":\"a\",\"optional\":true}}],\"env\":[{\"valueFrom\":{"
        "\"secretKeyRef\":{\"name\":\"b\",\"key\":\"k\",\"optional\":true}}},{\"valueFrom\":{"
        "\"secretKeyRef\":{\"name\":\"c\",\"key\":\"k\",\"optional\":false}}}]}],\"volumes\":[{"
        "\"configMap\":{\"name\":\"d\",\"optional\":true}},{\"secret\":{\"secretName\":\"b\"}},{"
        "\"projected\":{\"sources\":[{\"secret\":{\"name\":\"e\",\"optional\":true}},{"
        "\"serviceAccountToken\":{\"path\":\"t\"}}]}}]}",
        "configmap:a? configmap:d? secret:b secret:c secret:e? ");
    assert_inputs("{\"containers\":7,\"volumes\":[7,{\"secret\":[]}]}", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_only_changed_inputs_restart, done),
        cmocka_unit_test_teardown(test_disabled_comparison_keeps_the_record, done),
        cmocka_unit_test_teardown(test_pods_without_inputs_are_not_restarted, done),
        cmocka_unit_test_teardown(test_missing_input_skips_the_restart, done),
        cmocka_unit_test_teardown(test_too_many_inputs_count_as_changed, done),
        cmocka_unit_test_teardown(test_run_killed_around_the_stamp_restarts_once, done),
        cmocka_unit_test_teardown(test_run_killed_after_a_skip_looks_again, done),
        cmocka_unit_test_teardown(test_change_at_a_skipped_instant_is_not_lost, done),
        cmocka_unit_test_teardown(test_restart_by_hand_records_the_inputs, done),
        cmocka_unit_test_teardown(test_unreadable_inputs_restart_nothing, done),
        cmocka_unit_test_teardown(test_forged_digest_only_causes_a_restart, done),
        cmocka_unit_test_teardown(test_moved_tag_restarts, done),
        cmocka_unit_test_teardown(test_unknown_digest_restarts_nothing_and_loses_nothing, done),
        cmocka_unit_test_teardown(test_unknown_first_digest_is_not_recorded, done),
        cmocka_unit_test_teardown(test_image_alone_is_compared, done),
        cmocka_unit_test_teardown(test_restart_by_hand_records_the_image, done),
        cmocka_unit_test_teardown(test_run_killed_with_a_moved_tag_restarts_again, done),
        cmocka_unit_test_teardown(test_only_changed_workloads_are_restarted, done),
        cmocka_unit_test_teardown(test_unknown_digest_skips_workloads, done),
        cmocka_unit_test_teardown(test_reads_of_a_run_are_bounded, done),
        cmocka_unit_test_teardown(test_unchanged_workloads_are_named_last, done),
        cmocka_unit_test_teardown(test_unreadable_inputs_of_a_workload_fail_it, done),
        cmocka_unit_test(test_optional_input_is_required_by_one_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
