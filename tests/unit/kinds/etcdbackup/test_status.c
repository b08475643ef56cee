/* SPDX-License-Identifier: Apache-2.0
 *
 * The conditions of an EtcdBackup about its source and its store. */
#include "kinds/etcdbackup/access.h"
#include "kinds/etcdbackup/reconcile.h"
#include "kinds/etcdbackup/run.h"
#include "kinds/etcdbackup/state.h"
#include "kinds/etcdbackup/status.h"
#include "kinds/kinds.h"
#include "support/fake_clock.h"
#include "support/status_note.h"

#define URL "http://10.0.0.1:2379"
#define SOURCE_FAILED "SourceReachable=False/SecretMissing/the source has failed"

struct scene {
    struct fake_clock now;
    struct stw_clock clock;
    struct stw_run run;
    struct eb *e;
    json_t *status;
};

static void scene_init(struct scene *s)
{
    *s = (struct scene){.now = {1000}};
    s->clock = (struct stw_clock){&s->now, fake_monotonic, fake_wall};
    s->run = (struct stw_run){.op = &stw_operator_steward,
                              .controller = &stw_controller_etcdbackup,
                              .clock = &s->clock,
                              .key = "shop/daily",
                              .ns = "shop",
                              .name = "daily"};
    s->e = calloc(1, sizeof(*s->e));
    assert_non_null(s->e);
    s->e->run = &s->run;
    s->e->object.generation = 3;
    s->e->object.status = json_object();
    s->e->clock.now = fake_wall(&s->now) / 1000000;
    s->e->due.wake = EB_NEVER;
    eb_state_read(s->e->object.status, &s->e->state);
}

static void scene_done(struct scene *s)
{
    eb_state_done(&s->e->state);
    json_decref(s->e->object.status);
    json_decref(s->status);
    free(s->e);
}

static const char *text_of(const json_t *c, const char *key)
{
    return json_string_value(json_object_get(c, key));
}

/* "SourceReachable=True/Reachable/MESSAGE"; "" if the condition is not there. */
static void assert_condition(struct scene *s, const char *type, const char *want)
{
    struct stw_verdict v = {0};
    char got[512] = "";
    json_decref(s->status);
    eb_judge(s->e, &v, &s->status);
    assert_non_null(s->status);
    note_status("EtcdBackup", s->status, s->e->object.generation);
    const json_t *c = stw_condition_find(json_object_get(s->status, "conditions"), type);
    if (c)
        stw_format(got, sizeof(got), "%s=%s/%s/%s", type, text_of(c, "status"),
                   text_of(c, "reason"), text_of(c, "message"));
    assert_string_equal(got, want);
}

/* A backup that has ended, as reconcile.c takes in its result. */
static void collect(struct scene *s, enum eb_snapshot_fault fault, const char *endpoint)
{
    struct eb *e = s->e;
    e->result = (struct eb_snapshot){.time = 1000, .revision = 7};
    stw_format(e->result.endpoint, sizeof(e->result.endpoint), "%s", endpoint);
    e->collected = true;
    if (fault == EB_SNAPSHOT_FINE) {
        eb_state_succeed(&e->state, &e->result, "s3://b/k");
        return;
    }
    (void)eb_fault(&e->result, fault, "SecretMissing", "%s",
                   fault == EB_SNAPSHOT_SOURCE ? "the source has failed" : "another part failed");
    eb_state_fail(&e->state, &e->result, e->clock.now);
}

/* The next run begins with the status that the last one wrote. */
static void run_again(struct scene *s)
{
    json_decref(s->e->object.status);
    s->e->object.status = json_incref(s->status);
    s->e->collected = s->e->checked = s->e->lacks = false;
    s->e->result = (struct eb_snapshot){0};
}

static void test_asked_source_is_named(void **state)
{
    static const enum eb_snapshot_fault faults[] = {EB_SNAPSHOT_FINE, EB_SNAPSHOT_STORE,
                                                    EB_SNAPSHOT_CONTENT};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(faults); i++) {
        struct scene s;
        scene_init(&s);
        collect(&s, faults[i], URL);
        assert_condition(&s, "SourceReachable", "SourceReachable=True/Reachable/" URL " was asked");
        scene_done(&s);
    }
}

/* A Secret of the store is missing, a pod reports no endpoint: nothing is known of the source, also if
 * an earlier backup asked one. */
static void test_unasked_source_is_not_reported_as_reachable(void **state)
{
    (void)state;
    for (int fault = 0; fault < EB_SNAPSHOT_FAULTS; fault++) {
        struct scene s;
        scene_init(&s);
        stw_format(s.e->state.endpoint, sizeof(s.e->state.endpoint), "%s", URL);
        collect(&s, (enum eb_snapshot_fault)fault, "");
        assert_condition(&s, "SourceReachable", fault == EB_SNAPSHOT_SOURCE ? SOURCE_FAILED : "");
        scene_done(&s);
    }
}

static void test_nothing_is_known_before_a_backup(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s);
    assert_condition(&s, "SourceReachable", "");
    assert_condition(&s, "StoreReachable", "");
    scene_done(&s);
}

static void test_source_stays_reachable_until_its_next_use(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s);
    collect(&s, EB_SNAPSHOT_FINE, URL);
    assert_condition(&s, "SourceReachable", "SourceReachable=True/Reachable/" URL " was asked");
    run_again(&s);
    collect(&s, EB_SNAPSHOT_STORE, "");
    assert_condition(&s, "SourceReachable", "SourceReachable=True/Reachable/" URL " was asked");
    assert_condition(&s, "StoreReachable",
                     "StoreReachable=False/SecretMissing/another part failed");
    scene_done(&s);
}

/* The source's Secret is there now, but the store's is not. */
static void test_restored_source_is_not_reported_as_missing(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s);
    collect(&s, EB_SNAPSHOT_SOURCE, "");
    assert_condition(&s, "SourceReachable", SOURCE_FAILED);
    run_again(&s);
    assert_condition(&s, "SourceReachable", SOURCE_FAILED);
    run_again(&s);
    collect(&s, EB_SNAPSHOT_STORE, "");
    assert_condition(&s, "SourceReachable", "");
    scene_done(&s);
}

static void test_request_to_make_another_one_is_refused_by_a_condition(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s);
    assert_condition(&s, "RequestFollowed", "");
    (void)snprintf(s.e->clock.request, sizeof(s.e->clock.request), "now");
    assert_condition(
        &s, "RequestFollowed",
        "RequestFollowed=False/MadeOnce/the annotation backup-at is ignored: this object "
        "makes one backup only; create another one");
    s.e->clock.mode = EB_INTERVAL;
    assert_condition(&s, "RequestFollowed", "");
    scene_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_to_make_another_one_is_refused_by_a_condition),
        cmocka_unit_test(test_asked_source_is_named),
        cmocka_unit_test(test_unasked_source_is_not_reported_as_reachable),
        cmocka_unit_test(test_nothing_is_known_before_a_backup),
        cmocka_unit_test(test_source_stays_reachable_until_its_next_use),
        cmocka_unit_test(test_restored_source_is_not_reported_as_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
