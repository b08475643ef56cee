/* SPDX-License-Identifier: Apache-2.0
 *
 * Upkeep of an EtcdCluster: when a pass is due, which members it is about, and what its status keeps. */
#include "fixture.h"
#include "kinds/common/product.h"
#include "kinds/etcdcluster/maintenance.h"
#include "kinds/etcdcluster/plan/maintenance_limits.h"
#include "kinds/etcdcluster/runtime.h"
#include "schema/zones.h"

#define MIB (1LL << 20)
#define SPEC(more) "{\"version\":\"3.5.16\",\"size\":1" more "}"
#define DEFRAGMENTATION(more) SPEC(",\"maintenance\":{\"defragmentation\":{" more "}}")
#define OPEN(reason, members)                                                                      \
    "{\"clusterID\":\"7\",\"defragmentation\":{\"phase\":\"Running\",\"reason\":\"" reason         \
    "\",\"startTime\":\"2024-01-01T00:00:00Z\",\"members\":[" members "]}}"

/* UTC needs none. */
static int no_zone(const char *name, size_t max, char **ret, size_t *ret_len, struct stw_error *err)
{
    (void)name;
    (void)max;
    (void)ret;
    (void)ret_len;
    return stw_fail(err, STW_ERR_NOT_FOUND, "no zones");
}

struct scene {
    struct fixture f;
    struct stw_env env;
    struct stw_product product;
    struct stw_manager_config config;
    void *runtime;
};

static void scene_init(struct scene *s, const char *spec, const char *status)
{
    *s = (struct scene){0};
    fixture_init(&s->f, spec, status);
    s->product.zones = stw_zones_create(no_zone);
    s->env.product = &s->product;
    s->f.run.env = &s->env;
    assert_int_equal(ec_runtime_open(NULL, &s->config, &s->runtime, NULL), 0);
    s->f.e->runtime = s->runtime;
    (void)snprintf(s->f.e->object.created, sizeof(s->f.e->object.created), "2020-01-01T00:00:00Z");
    fixture_member(&s->f, "db-a", 1)->leader = true;
}

static void scene_done(struct scene *s)
{
    ec_runtime_close(s->runtime);
    stw_zones_destroy(s->product.zones);
    fixture_done(&s->f);
}

static void sizes(struct scene *s, int64_t size, int64_t in_use)
{
    s->f.e->details[0].health.db_size = size;
    s->f.e->details[0].health.db_size_in_use = in_use;
}

static enum ec_why due(struct scene *s)
{
    ec_judge_upkeep(s->f.e);
    return s->f.e->view.upkeep.due;
}

static bool chosen(struct scene *s)
{
    ec_judge_upkeep(s->f.e);
    return s->f.e->view.members[0].to_defragment;
}

static void carry_out(struct scene *s, enum ec_act act, enum ec_kind kind, enum ec_result result)
{
    struct ec *e = s->f.e;
    e->move = (struct ec_move){.act = act, .result = result, .why = e->view.upkeep.due};
    (void)snprintf(e->move.member, sizeof(e->move.member), "db-a");
    if (act != EC_FINISH && kind != EC_IDLE) {
        e->move.intent = (struct ec_action){.kind = kind, .id = 1, .start = e->view.now};
        (void)snprintf(e->move.intent.member, EC_NAME_MAX, "db-a");
    }
    ec_record_upkeep(e);
    if (e->move.intent.kind != EC_IDLE)
        e->state.action = e->view.action = e->move.intent;
    if (act == EC_FINISH)
        e->state.action = e->view.action = (struct ec_action){0};
    e->was = e->state;
}

/* --- due */

static void test_schedule_is_due_once_for_each_instant(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, DEFRAGMENTATION("\"schedule\":\"0 0 * * *\""), ""); /* a second ago */
    assert_int_equal(due(&s), EC_WHY_SCHEDULE);
    carry_out(&s, EC_BEGIN_PASS, EC_IDLE, EC_RESULT_NONE);
    assert_int_equal(s.f.e->state.pass.tick, FIXTURE_NOW - 1);
    carry_out(&s, EC_END_PASS, EC_IDLE, EC_RESULT_DONE);
    s.f.e->view.now += 3000;
    assert_int_equal(due(&s), EC_WHY_NOT);
    scene_done(&s);
}

/* The instant that was honoured last is next year's. */
static void test_schedule_goes_on_after_a_clock_that_was_ahead(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, DEFRAGMENTATION("\"schedule\":\"0 0 * * *\""), "");
    s.f.e->state.pass.tick = FIXTURE_NOW - 1 + 366 * 86400;
    s.f.e->was = s.f.e->state;
    assert_int_equal(due(&s), EC_WHY_SCHEDULE);
    s.f.e->move = (struct ec_move){.act = EC_BEGIN_PASS, .why = EC_WHY_SCHEDULE};
    ec_record_upkeep(s.f.e);
    ec_note_upkeep_news(s.f.e);
    assert_int_equal(s.f.e->state.pass.tick, FIXTURE_NOW - 1);
    assert_true(s.f.e->news.ahead);
    carry_out(&s, EC_END_PASS, EC_IDLE, EC_RESULT_DONE);
    s.f.e->view.now += 600;
    assert_int_equal(due(&s), EC_WHY_NOT);
    s.f.e->view.now -= 600 + 2; /* two seconds back: it was honoured */
    assert_int_equal(due(&s), EC_WHY_NOT);
    scene_done(&s);
    /* by the clock of the API server */
    scene_init(&s, DEFRAGMENTATION("\"schedule\":\"0 0 * * *\""), "");
    (void)snprintf(s.f.e->object.created, sizeof(s.f.e->object.created), "2030-01-01T00:00:00Z");
    assert_int_equal(due(&s), EC_WHY_SCHEDULE);
    scene_done(&s);
}

static void test_instant_of_long_ago_is_not_made_up_for(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, DEFRAGMENTATION("\"schedule\":\"0 22 * * *\""), "");
    assert_int_equal(due(&s), EC_WHY_NOT);
    scene_done(&s);
}

static void test_outside_of_its_windows_the_schedule_is_not_due(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s,
               DEFRAGMENTATION("\"schedule\":\"0 0 * * *\",\"windows\":[{\"start\":\"01:00\","
                               "\"end\":\"02:00\"}]"),
               "");
    assert_int_equal(due(&s), EC_WHY_NOT);
    scene_done(&s);
    scene_init(&s,
               DEFRAGMENTATION("\"schedule\":\"0 0 * * *\",\"windows\":[{\"start\":\"01:00\","
                               "\"end\":\"02:00\"}]"),
               OPEN("Schedule", ""));
    ec_judge_upkeep(s.f.e);
    assert_string_equal(s.f.e->view.upkeep.ends, "its window has ended");
    scene_done(&s);
}

/* A tenant who writes another value each second gets a pass each ten minutes. */
static void test_request_is_honoured_once_and_not_too_often(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(""), "");
    (void)snprintf(s.f.e->defragment, EC_NAME_MAX, "1");
    assert_int_equal(due(&s), EC_WHY_REQUEST);
    carry_out(&s, EC_BEGIN_PASS, EC_IDLE, EC_RESULT_NONE);
    carry_out(&s, EC_END_PASS, EC_IDLE, EC_RESULT_DONE);
    s.f.e->view.now += 3600;
    assert_int_equal(due(&s), EC_WHY_NOT);
    (void)snprintf(s.f.e->defragment, EC_NAME_MAX, "2");
    s.f.e->view.now += -3600 + 599;
    assert_int_equal(due(&s), EC_WHY_NOT);
    assert_int_equal(s.f.e->pass_from, FIXTURE_NOW + 600);
    s.f.e->view.now += 1;
    assert_int_equal(due(&s), EC_WHY_REQUEST);
    scene_done(&s);
}

static void test_full_database_is_due_only_where_the_spec_allows_it(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(""), "");
    s.f.e->view.members[0].alarms = STW_ETCD_ALARM_NOSPACE;
    assert_int_equal(due(&s), EC_WHY_NOT);
    scene_done(&s);
    scene_init(&s, SPEC(",\"maintenance\":{\"recoverSpace\":true}"), "");
    assert_int_equal(due(&s), EC_WHY_NOT);
    s.f.e->view.members[0].alarms = STW_ETCD_ALARM_NOSPACE;
    assert_int_equal(due(&s), EC_WHY_SPACE);
    s.f.e->view.members[0].alarms = 0;
    s.f.e->view.stray_alarms = STW_ETCD_ALARM_NOSPACE;
    assert_int_equal(due(&s), EC_WHY_SPACE);
    scene_done(&s);
}

/* Consent counts when history is removed, not when the pass was begun. */
static void test_pass_for_space_ends_when_its_reason_is_gone(void **state)
{
    static const char waiting[] =
        "{\"clusterID\":\"7\",\"defragmentation\":{\"phase\":\"Running\",\"reason\":\"NoSpace\","
        "\"startTime\":\"2024-01-01T00:00:00Z\",\"compactPending\":true,\"members\":[]}}";
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(",\"maintenance\":{\"recoverSpace\":true}"), waiting);
    s.f.e->view.members[0].alarms = STW_ETCD_ALARM_NOSPACE;
    ec_judge_upkeep(s.f.e);
    assert_null(s.f.e->view.upkeep.ends);
    s.f.e->view.members[0].alarms = 0;
    ec_judge_upkeep(s.f.e);
    assert_string_equal(s.f.e->view.upkeep.ends, "no member has the alarm NOSPACE any more");
    s.f.e->state.pass.compact = false; /* once it is compacted, the members follow */
    ec_judge_upkeep(s.f.e);
    assert_null(s.f.e->view.upkeep.ends);
    scene_done(&s);
    scene_init(&s, SPEC(""), waiting);
    s.f.e->view.members[0].alarms = STW_ETCD_ALARM_NOSPACE;
    ec_judge_upkeep(s.f.e);
    assert_string_equal(s.f.e->view.upkeep.ends, "maintenance.recoverSpace is false by now");
    scene_done(&s);
}

/* A client that fills it with keys causes a defragmentation each hour. */
static void test_database_full_of_keys_is_tried_again_each_hour(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(",\"maintenance\":{\"recoverSpace\":true}"), OPEN("NoSpace", ""));
    s.f.e->view.members[0].alarms = STW_ETCD_ALARM_NOSPACE;
    carry_out(&s, EC_END_PASS, EC_IDLE, EC_RESULT_DONE);
    s.f.e->view.now += 3599;
    assert_int_equal(due(&s), EC_WHY_NOT);
    assert_int_equal(s.f.e->pass_from, FIXTURE_NOW + 3600);
    s.f.e->view.now += 1;
    assert_int_equal(due(&s), EC_WHY_SPACE);
    scene_done(&s);
}

/* Ten minutes after any other pass, also while the one for space rests for an hour. */
static void test_database_full_of_keys_holds_up_no_other_pass(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s,
               SPEC(",\"maintenance\":{\"recoverSpace\":true,\"defragmentation\":{\"schedule\":"
                    "\"*/20 * * * *\"}}"),
               OPEN("NoSpace", ""));
    s.f.e->view.members[0].alarms = STW_ETCD_ALARM_NOSPACE;
    carry_out(&s, EC_END_PASS, EC_IDLE, EC_RESULT_DONE);
    (void)snprintf(s.f.e->defragment, EC_NAME_MAX, "1");
    s.f.e->view.now = FIXTURE_NOW + 599;
    assert_int_equal(due(&s), EC_WHY_NOT);
    assert_int_equal(s.f.e->pass_from, FIXTURE_NOW + 600);
    s.f.e->view.now = FIXTURE_NOW + 600;
    assert_int_equal(due(&s), EC_WHY_REQUEST);
    carry_out(&s, EC_BEGIN_PASS, EC_IDLE, EC_RESULT_NONE);
    carry_out(&s, EC_END_PASS, EC_IDLE, EC_RESULT_DONE);
    s.f.e->view.now = FIXTURE_NOW + 1300;
    assert_int_equal(due(&s), EC_WHY_SCHEDULE);
    carry_out(&s, EC_BEGIN_PASS, EC_IDLE, EC_RESULT_NONE);
    carry_out(&s, EC_END_PASS, EC_IDLE, EC_RESULT_DONE);
    s.f.e->view.now = FIXTURE_NOW + 2000; /* they do not shorten its rest */
    assert_int_equal(due(&s), EC_WHY_NOT);
    s.f.e->view.now = FIXTURE_NOW + 3600;
    assert_int_equal(due(&s), EC_WHY_SPACE);
    scene_done(&s);
}

/* etcd has ended a compaction after the pass that began it has failed. */
static void test_pass_for_space_follows_soon_when_there_are_free_pages(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(",\"maintenance\":{\"recoverSpace\":true}"), OPEN("NoSpace", ""));
    s.f.e->view.members[0].alarms = STW_ETCD_ALARM_NOSPACE;
    sizes(&s, 100 * MIB, 99 * MIB);
    carry_out(&s, EC_COMPACT_HISTORY, EC_COMPACT, EC_RESULT_NONE);
    carry_out(&s, EC_FINISH, EC_IDLE, EC_RESULT_FAILED);
    const char *text = "CompactHistory db-a takes longer than 325 s, or was interrupted again and "
                       "again";
    assert_string_equal(s.f.e->state.pass.message, text);
    s.f.e->view.now += 601;
    assert_int_equal(due(&s), EC_WHY_NOT);
    json_auto_t *status = json_object(); /* the message stays */
    ec_state_write(&s.f.e->state, status);
    ec_add_upkeep(s.f.e, status);
    const json_t *o = json_object_get(status, "defragmentation");
    assert_string_equal(json_string_value(json_object_get(o, "message")), text);
    assert_string_equal(json_string_value(json_object_get(o, "notBeforeTime")),
                        "2024-01-01T01:00:01Z");
    sizes(&s, 100 * MIB, 40 * MIB);
    assert_int_equal(due(&s), EC_WHY_SPACE);
    scene_done(&s);
}

/* --- which members */

static void test_schedule_is_for_members_with_enough_free_pages(void **state)
{
    static const struct {
        const char *more;
        int64_t size, in_use;
        bool chosen;
    } rows[] = {
        {"", 100 * MIB, 20 * MIB, true},    /* 80 % and 80 MiB */
        {"", 100 * MIB, 37 * MIB, false},   /* less than 64 MiB */
        {"", 1000 * MIB, 810 * MIB, false}, /* less than 20 % */
        {"", 1000 * MIB, 800 * MIB, true},
        {"\"minReclaimableBytes\":\"1Mi\"", 10 * MIB, 5 * MIB, true},
        {"\"minReclaimable\":\"60%\",\"minReclaimableBytes\":1", 10 * MIB, 5 * MIB, false},
        {"\"minReclaimable\":\"0%\",\"minReclaimableBytes\":0", 10 * MIB, 10 * MIB, false},
        /* what a member may report that lies */
        {"", 10 * MIB, 100 * MIB, false},
        {"", 0, 0, false},
        {"", INT64_MAX, 0, true},
        {"\"minReclaimable\":\"0%\"", 0, INT64_MAX, false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct scene s;
        char spec[400];
        (void)snprintf(spec, sizeof(spec), DEFRAGMENTATION("%s"), rows[i].more);
        scene_init(&s, spec, OPEN("Schedule", ""));
        sizes(&s, rows[i].size, rows[i].in_use);
        if (chosen(&s) != rows[i].chosen)
            fail_msg("row %zu", i);
        scene_done(&s);
    }
}

/* Its defaults count for a pass that goes on. */
static void test_schedule_is_removed_during_its_pass(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(""), OPEN("Schedule", ""));
    sizes(&s, 100 * MIB, 37 * MIB);
    assert_false(chosen(&s));
    sizes(&s, 100 * MIB, 20 * MIB);
    assert_true(chosen(&s));
    scene_done(&s);
}

static void test_request_is_for_all_that_were_not_done_yet(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(""), OPEN("Requested", ""));
    sizes(&s, 10 * MIB, 10 * MIB);
    assert_true(chosen(&s));
    s.f.e->view.members[0].answers = false;
    assert_false(chosen(&s));
    scene_done(&s);
    scene_init(&s, SPEC(""),
               OPEN("Requested", "{\"name\":\"db-a\",\"dbSizeBefore\":5,\"dbSizeAfter\":5}"));
    assert_false(chosen(&s));
    scene_done(&s);
}

/* Its size shows whether the call was carried out. */
static void test_unanswered_call_is_judged_by_the_size(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(""), OPEN("Requested", ""));
    sizes(&s, 100 * MIB, 20 * MIB);
    assert_true(chosen(&s));
    carry_out(&s, EC_MEMBER_DEFRAGMENT, EC_DEFRAGMENT, EC_RESULT_NONE);
    assert_true(chosen(&s));
    assert_int_equal(s.f.e->view.upkeep.tries, 1);
    s.f.e->move.intent = s.f.e->state.action; /* again */
    ec_record_upkeep(s.f.e);
    assert_true(chosen(&s));
    assert_int_equal(s.f.e->view.upkeep.tries, 2);
    sizes(&s, 21 * MIB, 20 * MIB);
    assert_false(chosen(&s));
    carry_out(&s, EC_FINISH, EC_IDLE, EC_RESULT_DONE);
    assert_int_equal(s.f.e->state.pass.reclaimed_total, 79 * MIB);
    scene_done(&s);
}

/* The intent is dropped while the member lags, and written again: its tries count in the whole pass. */
static void test_tries_are_counted_over_intents(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(""), OPEN("Requested", ""));
    sizes(&s, 100 * MIB, 20 * MIB);
    for (int n = 1; n <= 5; n++) {
        carry_out(&s, EC_MEMBER_DEFRAGMENT, EC_DEFRAGMENT, EC_RESULT_NONE);
        ec_judge_upkeep(s.f.e);
        assert_int_equal(s.f.e->view.upkeep.tries, n);
        if (n < 5)
            carry_out(&s, EC_FINISH, EC_IDLE, EC_RESULT_NONE);
        sizes(&s, 21 * MIB, 20 * MIB);
    }
    carry_out(&s, EC_FINISH, EC_IDLE, EC_RESULT_DONE); /* what the first one won */
    assert_int_equal(s.f.e->state.pass.reclaimed_total, 79 * MIB);
    carry_out(&s, EC_END_PASS, EC_IDLE, EC_RESULT_DONE);
    s.f.e->move.why = EC_WHY_REQUEST; /* the next pass counts from the beginning */
    s.f.e->move.act = EC_BEGIN_PASS;
    ec_record_upkeep(s.f.e);
    carry_out(&s, EC_MEMBER_DEFRAGMENT, EC_DEFRAGMENT, EC_RESULT_NONE);
    assert_int_equal(s.f.e->state.pass.members[0].tries, 1);
    scene_done(&s);
}

/* --- limits */

static void test_limit_grows_with_the_database(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(""), OPEN("Requested", ""));
    assert_int_equal(ec_action_limit(s.f.e), 600); /* of other actions */
    sizes(&s, 1600 * MIB, MIB);
    carry_out(&s, EC_MEMBER_DEFRAGMENT, EC_DEFRAGMENT, EC_RESULT_NONE);
    assert_int_equal(ec_action_limit(s.f.e), 160);
    sizes(&s, INT64_MAX, 0); /* a lie is worth 20 minutes at most */
    s.f.e->view.action = (struct ec_action){0};
    carry_out(&s, EC_MEMBER_DEFRAGMENT, EC_DEFRAGMENT, EC_RESULT_NONE);
    assert_int_equal(ec_action_limit(s.f.e), 1200);
    scene_done(&s);
}

static void test_limit_of_a_compaction_grows_with_the_largest_database(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(""), OPEN("NoSpace", ""));
    s.f.e->state.action.kind = EC_COMPACT;
    assert_int_equal(ec_action_limit(s.f.e), 300);
    sizes(&s, 2048 * MIB, MIB);
    assert_int_equal(ec_action_limit(s.f.e), 812);
    sizes(&s, INT64_MAX, 0);
    assert_int_equal(ec_action_limit(s.f.e), 3600);
    scene_done(&s);
}

/* --- compaction */

static uint64_t kept_from(const char *options, uint64_t revision)
{
    struct scene s;
    char spec[300];
    (void)snprintf(spec, sizeof(spec), SPEC(",\"options\":{%s}"), options);
    scene_init(&s, spec, OPEN("NoSpace", ""));
    s.f.e->details[0].health.revision = revision;
    carry_out(&s, EC_COMPACT_HISTORY, EC_COMPACT, EC_RESULT_NONE);
    uint64_t to = s.f.e->state.pass.compact_to;
    carry_out(&s, EC_FINISH, EC_IDLE, EC_RESULT_DONE);
    assert_int_equal(s.f.e->state.pass.compacted, to);
    scene_done(&s);
    return to;
}

static void test_compaction_keeps_revisions(void **state)
{
    (void)state;
    assert_int_equal(kept_from("", 5000), 4000);
    assert_int_equal(kept_from("", 1000), 0); /* nothing is old */
    assert_int_equal(kept_from("\"autoCompactionMode\":\"revision\","
                               "\"autoCompactionRetention\":\"3000\"",
                               5000),
                     2000);
    assert_int_equal(kept_from("\"autoCompactionMode\":\"revision\","
                               "\"autoCompactionRetention\":\"10\"",
                               5000),
                     4000);
    assert_int_equal(kept_from("", UINT64_MAX), 0);
}

/* That is not a compaction of steward's, unless the answer to an earlier call was lost. */
static void test_history_that_was_compacted_before_is_not_reported(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct scene s;
        scene_init(&s, SPEC(""), OPEN("NoSpace", ""));
        s.f.e->details[0].health.revision = 5000;
        carry_out(&s, EC_COMPACT_HISTORY, EC_COMPACT, EC_RESULT_NONE);
        struct ec_kept *kept = ec_runtime_get(s.runtime, &s.f.run);
        if (lost)
            ec_answer_upkeep(s.f.e, -1, STW_ETCD_UNREACHABLE, kept);
        ec_answer_upkeep(s.f.e, -1, STW_ETCD_EXISTS, kept);
        carry_out(&s, EC_FINISH, EC_IDLE, EC_RESULT_DONE);
        assert_int_equal(s.f.e->state.pass.compacted, lost ? 4000 : 0);
        assert_false(s.f.e->state.pass.compact);
        scene_done(&s);
    }
}

/* etcd, or who poses as it, lists the alarm again each time. */
static void test_alarm_that_comes_again_is_disarmed_more_and_more_seldom(void **state)
{
    struct scene s;
    unsigned times = 0;
    (void)state;
    scene_init(&s, SPEC(",\"maintenance\":{\"recoverSpace\":true}"), "");
    s.f.e->view.listed = true;
    s.f.e->view.members[0].space = true;
    s.f.e->view.members[0].alarms = STW_ETCD_ALARM_NOSPACE;
    for (int i = 0; i < 7200; i++) {
        assert_int_equal(due(&s), EC_WHY_NOT); /* it has space, and keeps its history */
        if (!s.f.e->view.disarm_rests) {
            ec_note_disarmed(s.f.e, ec_runtime_get(s.runtime, &s.f.run));
            times++;
        }
        s.f.now.ms += 1000;
    }
    assert_in_range(times, 15, 25);
    s.f.e->view.members[0].alarms = 0;
    s.f.now.ms += 600000;
    (void)due(&s);
    s.f.e->view.members[0].alarms = STW_ETCD_ALARM_NOSPACE;
    ec_note_disarmed(s.f.e, ec_runtime_get(s.runtime, &s.f.run));
    s.f.now.ms += 1000;
    (void)due(&s);
    assert_false(s.f.e->view.disarm_rests);
    scene_done(&s);
}

/* --- results */

static void test_answers_of_etcd_are_kept_for_their_action(void **state)
{
    static const struct {
        int rc;
        enum stw_etcd_trouble trouble;
        enum ec_result result;
    } rows[] = {
        {0, STW_ETCD_FINE, EC_RESULT_DONE},         {-1, STW_ETCD_EXISTS, EC_RESULT_DONE},
        {-1, STW_ETCD_UNREACHABLE, EC_RESULT_NONE}, {-1, STW_ETCD_NO_LEADER, EC_RESULT_NONE},
        {-1, STW_ETCD_FAILED, EC_RESULT_FAILED},    {-1, STW_ETCD_AUTH, EC_RESULT_FAILED},
    };
    struct scene s;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        scene_init(&s, SPEC(""), OPEN("Requested", ""));
        carry_out(&s, EC_MEMBER_DEFRAGMENT, EC_DEFRAGMENT, EC_RESULT_NONE);
        struct ec_kept *kept = ec_runtime_get(s.runtime, &s.f.run);
        (void)snprintf(s.f.e->err.text, sizeof(s.f.e->err.text), "no room");
        s.f.e->err.code = rows[i].rc ? STW_ERR_UNAVAILABLE : STW_OK;
        ec_answer_upkeep(s.f.e, rows[i].rc, rows[i].trouble, kept);
        assert_int_equal(s.f.e->err.code, STW_OK);
        ec_judge_upkeep(s.f.e);
        assert_int_equal(s.f.e->view.upkeep.call, rows[i].result);
        s.f.e->state.action.start++; /* another call */
        ec_judge_upkeep(s.f.e);
        assert_int_equal(s.f.e->view.upkeep.call, EC_RESULT_NONE);
        scene_done(&s);
    }
}

static void test_failure_ends_the_pass_with_its_reason(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC(""), OPEN("Requested", ""));
    carry_out(&s, EC_MEMBER_DEFRAGMENT, EC_DEFRAGMENT, EC_RESULT_NONE);
    (void)snprintf(s.f.e->err.text, sizeof(s.f.e->err.text), "no room");
    ec_answer_upkeep(s.f.e, -1, STW_ETCD_FAILED, ec_runtime_get(s.runtime, &s.f.run));
    carry_out(&s, EC_FINISH, EC_IDLE, EC_RESULT_FAILED);
    assert_false(s.f.e->state.pass.open);
    assert_int_equal(s.f.e->state.pass.result, EC_RESULT_FAILED);
    assert_string_equal(s.f.e->state.pass.message, "DefragmentMember db-a: no room");
    scene_done(&s);
}

/* --- status */

static void test_status_keeps_a_pass(void **state)
{
    static const char text[] =
        "{\"phase\":\"Running\",\"reason\":\"NoSpace\",\"request\":\"x\","
        "\"startTime\":\"2024-01-01T00:00:00Z\",\"vainTime\":\"2023-02-01T00:00:00Z\","
        "\"lastScheduleTime\":\"2023-01-01T00:00:00Z\","
        "\"members\":[{\"name\":\"db-a\",\"dbSizeBefore\":50,\"dbSizeAfter\":20,\"tries\":1},"
        "{\"name\":\"db-b\",\"dbSizeBefore\":60,\"tries\":2}],\"reclaimedBytes\":30,"
        "\"reclaimedBytesTotal\":99,\"compactPending\":true,\"compactRevision\":7,"
        "\"compactedRevision\":6}";
    struct ec_pass p, again;
    (void)state;
    json_auto_t *o = json_loads(text, 0, NULL);
    ec_pass_read(o, &p);
    assert_true(p.open && p.compact && p.count == 2 && p.members[1].after == -1);
    json_auto_t *back = ec_pass_json(&p);
    if (!json_equal(o, back))
        fail_msg("%s", json_dumps(back, 0));
    ec_pass_read(back, &again);
    assert_true(ec_pass_same(&p, &again));
    again.members[1].after = 1;
    assert_false(ec_pass_same(&p, &again));
    ec_pass_read(NULL, &again);
    assert_null(ec_pass_json(&again));
}

/* Sizes are a member's word. */
static void test_sums_do_not_overflow(void **state)
{
    struct ec_pass p = {.count = 2};
    (void)state;
    p.members[0].before = p.members[1].before = INT64_MAX;
    assert_int_equal(ec_pass_reclaimed(&p), INT64_MAX);
    p.members[1].before = 1;
    p.members[1].after = 5;
    assert_int_equal(ec_pass_reclaimed(&p), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_is_due_once_for_each_instant),
        cmocka_unit_test(test_schedule_goes_on_after_a_clock_that_was_ahead),
        cmocka_unit_test(test_instant_of_long_ago_is_not_made_up_for),
        cmocka_unit_test(test_outside_of_its_windows_the_schedule_is_not_due),
        cmocka_unit_test(test_request_is_honoured_once_and_not_too_often),
        cmocka_unit_test(test_full_database_is_due_only_where_the_spec_allows_it),
        cmocka_unit_test(test_pass_for_space_ends_when_its_reason_is_gone),
        cmocka_unit_test(test_database_full_of_keys_is_tried_again_each_hour),
        cmocka_unit_test(test_database_full_of_keys_holds_up_no_other_pass),
        cmocka_unit_test(test_pass_for_space_follows_soon_when_there_are_free_pages),
        cmocka_unit_test(test_schedule_is_for_members_with_enough_free_pages),
        cmocka_unit_test(test_schedule_is_removed_during_its_pass),
        cmocka_unit_test(test_request_is_for_all_that_were_not_done_yet),
        cmocka_unit_test(test_unanswered_call_is_judged_by_the_size),
        cmocka_unit_test(test_tries_are_counted_over_intents),
        cmocka_unit_test(test_limit_grows_with_the_database),
        cmocka_unit_test(test_limit_of_a_compaction_grows_with_the_largest_database),
        cmocka_unit_test(test_compaction_keeps_revisions),
        cmocka_unit_test(test_history_that_was_compacted_before_is_not_reported),
        cmocka_unit_test(test_alarm_that_comes_again_is_disarmed_more_and_more_seldom),
        cmocka_unit_test(test_answers_of_etcd_are_kept_for_their_action),
        cmocka_unit_test(test_failure_ends_the_pass_with_its_reason),
        cmocka_unit_test(test_status_keeps_a_pass),
        cmocka_unit_test(test_sums_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
