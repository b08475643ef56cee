/* SPDX-License-Identifier: Apache-2.0
 *
 * The status of an EtcdCluster. */
#include "fixture.h"
#include "kinds/etcdcluster/observe/observe.h"
#include "kinds/etcdcluster/status/status.h"
#include "support/status_note.h"

#include "controller/condition.h"

#define SPEC "{\"version\":\"3.5.16\",\"size\":3}"
#define LATCHED "{\"clusterID\":\"0000000000000005\",\"currentVersion\":\"3.5.16\"}"

struct scene {
    struct fixture f;
    struct stw_verdict verdict;
    json_t *status;
};

/* Three healthy voters, nothing to do. */
static void scene_init(struct scene *s, const char *spec, const char *status)
{
    static const char *const names[] = {"db-a", "db-b", "db-c"};
    *s = (struct scene){0};
    fixture_init(&s->f, spec, status);
    for (size_t i = 0; i < STW_COUNT(names); i++)
        fixture_member(&s->f, names[i], i + 1);
    struct ec *e = s->f.e;
    e->view.members[1].leader = true;
    e->view.listed = true;
    e->view.durable = true;
    e->move = (struct ec_move){.act = EC_WAIT, .reason = "Settled", .wait_ms = 10000};
}

static void judge(struct scene *s)
{
    json_decref(s->status);
    ec_judge(s->f.e, &s->verdict, &s->status);
    assert_non_null(s->status);
    note_status("EtcdCluster", s->status, s->f.e->object.generation);
}

static void scene_done(struct scene *s)
{
    json_decref(s->status);
    fixture_done(&s->f);
}

/* "True/Succeeded"; "" if it is absent. */
static void assert_condition(const struct scene *s, const char *type, const char *want)
{
    const json_t *c = stw_condition_find(json_object_get(s->status, "conditions"), type);
    char got[128] = "";
    if (c)
        (void)snprintf(got, sizeof(got), "%s/%s", json_string_value(json_object_get(c, "status")),
                       stw_condition_reason(c));
    if (!stw_streq(got, want))
        fail_msg("%s: %s, not %s", type, got, want);
}

static const char *text(const struct scene *s, const char *key)
{
    const char *t = json_string_value(json_object_get(s->status, key));
    return t ? t : "";
}

static void silence(struct scene *s, size_t i)
{
    struct ec_member *m = &s->f.e->view.members[i];
    m->answers = m->healthy = false;
    m->unhealthy_since = FIXTURE_NOW - 60;
}

static void test_healthy_cluster_is_ready(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    judge(&s);
    assert_condition(&s, "Ready", "True/Succeeded");
    assert_condition(&s, "Reconciling", "");
    assert_condition(&s, "Stalled", "");
    assert_condition(&s, "Available", "True/QuorumHealthy");
    assert_condition(&s, "QuorumLost", "False/QuorumHealthy");
    assert_condition(&s, "AllMembersHealthy", "True/AllHealthy");
    assert_condition(&s, "Scaling", "False/Idle");
    assert_condition(&s, "Degraded", "False/AsExpected");
    assert_condition(&s, "TLSReady", "");
    assert_string_equal(text(&s, "phase"), "Running");
    assert_string_equal(text(&s, "serviceName"), "db-client");
    assert_string_equal(text(&s, "targetVersion"), "");
    assert_int_equal(s.verdict.again_ms, 10000);
    const json_t *quorum = json_object_get(s.status, "quorum");
    assert_int_equal(json_integer_value(json_object_get(quorum, "margin")), 1);
    scene_done(&s);
}

/* Waiting after a lost response does not change the status: otherwise a steward that is killed at
 * each write never makes progress. */
static void test_waiting_does_not_change_the_status(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    s.f.e->state.action =
        (struct ec_action){.kind = EC_ADD, .member = "db-x", .start = FIXTURE_NOW};
    s.f.e->move = (struct ec_move){.act = EC_MEMBER_ADD, .member = "db-x"};
    judge(&s);
    json_auto_t *before = json_incref(s.status);
    s.f.e->move = (struct ec_move){.act = EC_WAIT, .wait_ms = 5000};
    judge(&s);
    assert_true(json_equal(before, s.status));
    assert_int_equal(s.verdict.again_ms, 5000);
    scene_done(&s);
}

/* That a learner was promoted once is stored, and read back; for voters it is implied. */
static void test_promotion_of_a_learner_is_stored(void **state)
{
    static const struct {
        bool learner, promoted, told, read;
    } cases[] = {{false, true, false, true}, {true, true, true, true}, {true, false, false, false}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        struct ec_state back;
        scene_init(&s, SPEC, LATCHED);
        s.f.e->view.members[0].learner = cases[i].learner;
        s.f.e->view.members[0].promoted = cases[i].promoted;
        judge(&s);
        const json_t *m = json_array_get(json_object_get(s.status, "memberList"), 0);
        assert_int_equal(json_is_true(json_object_get(m, "promoted")), cases[i].told);
        ec_state_read(s.status, &back);
        assert_int_equal(back.members[0].promoted, cases[i].read);
        scene_done(&s);
    }
}

/* Kept also for a member that no longer responds: which version can read its data depends on it. */
static void test_storage_version_is_kept_for_silent_members(void **state)
{
    struct scene s;
    struct ec_state back;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    s.f.e->view.members[0].storage = (struct stw_semver){3, 6, 0};
    judge(&s);
    ec_state_read(s.status, &back);
    assert_string_equal(back.members[0].storage_version, "3.6.0");
    assert_string_equal(back.members[1].storage_version, "");
    const struct ec_seen seen = {.state = &back, .now = FIXTURE_NOW};
    struct ec_member m = {.listed = true};
    const struct ec_detail silent = {.asked = true};
    (void)snprintf(m.name, sizeof(m.name), "%s", back.members[0].name);
    ec_judge_member(&seen, &silent, &m);
    assert_int_equal(m.storage.minor, 6);
    scene_done(&s);
}

/* So that users find them in the output of etcdctl; IDs with leading zeros are still read. */
static void test_ids_are_as_etcdctl_prints_them(void **state)
{
    struct scene s;
    struct ec_state back;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    s.f.e->view.members[0].id = 0x0123456789abcdef;
    judge(&s);
    const json_t *m = json_array_get(json_object_get(s.status, "memberList"), 0);
    assert_string_equal(json_string_value(json_object_get(m, "id")), "123456789abcdef");
    assert_string_equal(json_string_value(json_object_get(s.status, "clusterID")), "5");
    ec_state_read(s.status, &back);
    assert_true(back.cluster_id == 5 && back.members[0].id == 0x0123456789abcdef);
    scene_done(&s);
}

/* Ready needs a current list and healthy members (E12). */
static void test_ready_needs_a_current_list(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    s.f.e->view.listed = false;
    s.f.e->move = (struct ec_move){.act = EC_WAIT, .reason = "NoQuorum"};
    judge(&s);
    assert_condition(&s, "Ready", "False/NoQuorum");
    assert_condition(&s, "Available", "False/NoQuorum");
    s.f.e->move.reason = "Settled"; /* regardless of the plan */
    judge(&s);
    assert_condition(&s, "Ready", "False/Settled");
    s.f.e->view.listed = true;
    s.f.e->view.members[0].healthy = false;
    judge(&s);
    assert_condition(&s, "Ready", "False/Settled");
    assert_condition(&s, "Available", "True/QuorumHealthy");
    scene_done(&s);
}

/* The cause of a lost quorum, reported only after 30 s. */
static void test_lost_quorum_is_reported_after_30_seconds(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    struct ec *e = s.f.e;
    e->view.listed = false;
    silence(&s, 0);
    silence(&s, 1);
    e->view.quorum_lost_since = FIXTURE_NOW - 29;
    e->move = (struct ec_move){.act = EC_WAIT, .reason = "NoQuorum"};
    judge(&s);
    assert_condition(&s, "QuorumLost", "False/QuorumHealthy");
    assert_condition(&s, "Stalled", "");

    e->view.quorum_lost_since = FIXTURE_NOW - 30;
    e->move = (struct ec_move){.act = EC_FREEZE, .reason = "QuorumLost", .text = "type this"};
    judge(&s);
    assert_condition(&s, "QuorumLost", "True/MembersDown");
    assert_condition(&s, "Stalled", "True/QuorumLost");
    assert_condition(&s, "Reconciling", "");
    assert_string_equal(text(&s, "phase"), "Failed");
    assert_string_equal(text(&s, "reason"), "type this");
    const json_t *c = stw_condition_find(json_object_get(s.status, "conditions"), "QuorumLost");
    assert_string_equal(json_string_value(json_object_get(c, "message")), "type this");

    for (size_t i = 0; i < 3; i++)
        e->view.members[i].pod = EC_POD_ABSENT;
    judge(&s);
    assert_condition(&s, "QuorumLost", "True/AllPodsDown");
    for (size_t i = 0; i < 3; i++)
        e->view.members[i].data = EC_DATA_LOST;
    judge(&s);
    assert_condition(&s, "QuorumLost", "True/StorageLost");
    scene_done(&s);
}

static void test_alarm_is_a_condition(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    s.f.e->view.members[2].alarms = STW_ETCD_ALARM_NOSPACE;
    judge(&s);
    assert_condition(&s, "AlarmActive", "True/NoSpace");
    assert_condition(&s, "Ready", "False/NoSpace");
    assert_condition(&s, "AllMembersHealthy", "False/AlarmActive");
    s.f.e->view.members[2].alarms = STW_ETCD_ALARM_CORRUPT;
    s.f.e->move = (struct ec_move){.act = EC_FREEZE, .reason = "Corrupt", .text = "look"};
    judge(&s);
    assert_condition(&s, "AlarmActive", "True/Corrupt");
    assert_condition(&s, "Stalled", "True/Corrupt");
    s.f.e->view.members[2].alarms = 0;
    s.f.e->view.stray_alarms = STW_ETCD_ALARM_CORRUPT;
    judge(&s);
    assert_condition(&s, "AlarmActive", "True/Corrupt");
    scene_done(&s);
}

static void test_current_action_is_a_condition(void **state)
{
    static const struct {
        enum ec_kind kind;
        const char *type, *want;
    } cases[] = {
        {EC_ADD, "Scaling", "True/ScalingUp"},
        {EC_PROMOTE, "Scaling", "True/Promoting"},
        {EC_REMOVE, "Scaling", "True/ScalingDown"},
        {EC_REPLACE, "Recovering", "True/ReplacingMember"},
        {EC_ROLL, "Rolling", "True/SpecChange"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        scene_init(&s, SPEC, LATCHED);
        s.f.e->state.action =
            (struct ec_action){.kind = cases[i].kind, .member = "db-a", .start = FIXTURE_NOW};
        s.f.e->move = (struct ec_move){.act = EC_MEMBER_ADD};
        judge(&s);
        assert_condition(&s, cases[i].type, cases[i].want);
        assert_condition(&s, "Ready", "False/Progressing");
        assert_condition(&s, "Degraded", "False/AsExpected");
        s.f.e->state.action.start = FIXTURE_NOW - 600;
        judge(&s);
        assert_condition(&s, "Degraded", "True/DeadlineExceeded");
        scene_done(&s);
    }
}

/* The condition names the volumes that are too small, and what to do. */
static void test_volumes_that_are_too_small_are_named(void **state)
{
    static const struct {
        enum ec_volume volume;
        bool failed, agreed;
        const char *want, *text;
    } cases[] = {
        {EC_VOLUME_FINE, false, false, "False/Idle", NULL},
        {EC_VOLUME_SMALL, false, false, "True/ExpandingVolume", NULL},
        {EC_VOLUME_GROWS, false, false, "True/ExpandingVolume", NULL},
        {EC_VOLUME_GROWS, true, false, "True/ExpansionFailed", NULL},
        {EC_VOLUME_REFUSED, false, true, "True/ExpansionRefused", NULL},
        {EC_VOLUME_FIXED, false, true, "True/ReplacingMember", NULL},
        {EC_VOLUME_FIXED, false, false, "True/ExpansionNotAllowed",
         "volumes are to have 8Gi; db-b has 1Gi. To replace these members one by one, with new "
         "volumes: `kubectl annotate --overwrite etcdcluster db -n shop "
         "etcd.database.coreos.com/replace-volumes=8Gi`"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        scene_init(&s, SPEC, LATCHED);
        struct ec *e = s.f.e;
        e->view.replace_volumes = cases[i].agreed;
        e->view.members[1].volume = cases[i].volume;
        e->details[1].claim.resize_failed = cases[i].failed;
        (void)snprintf(e->details[1].volume_text, 64, "db-b has 1Gi");
        judge(&s);
        assert_condition(&s, "Resizing", cases[i].want);
        const json_t *c = stw_condition_find(json_object_get(s.status, "conditions"), "Resizing");
        if (cases[i].text)
            assert_string_equal(json_string_value(json_object_get(c, "message")), cases[i].text);
        scene_done(&s);
    }
}

static void test_upgrade_is_a_condition(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    s.f.e->view.members[0].version = (struct stw_semver){3, 4, 23};
    judge(&s);
    assert_condition(&s, "Upgrading", "True/UpgradeInProgress");
    assert_string_equal(text(&s, "targetVersion"), "3.5.16");
    scene_done(&s);
}

static void test_trouble_of_pods_is_a_condition(void **state)
{
    static const struct {
        enum ec_trouble trouble;
        const char *reason, *want;
    } cases[] = {
        {EC_TROUBLE_IMAGE, "ImagePullBackOff", "True/ImagePullBackOff"},
        {EC_TROUBLE_UNSCHEDULABLE, "Unschedulable", "True/Unschedulable"},
        {EC_TROUBLE_VOLUME, "VolumePending", "True/VolumePending"},
        {EC_TROUBLE_CRASH, "CrashLoopBackOff", "True/CrashLoopBackOff"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        char ready[64];
        scene_init(&s, SPEC, LATCHED);
        silence(&s, 2);
        s.f.e->view.members[2].trouble = cases[i].trouble;
        stw_format(s.f.e->details[2].pod.reason, STW_POD_REASON_MAX, "%s", cases[i].reason);
        s.f.e->move = (struct ec_move){.act = EC_WAIT, .reason = "MembersUnready"};
        judge(&s);
        assert_condition(&s, "Degraded", cases[i].want);
        stw_format(ready, sizeof(ready), "False%s", strchr(cases[i].want, '/'));
        assert_condition(&s, "Ready", ready);
        assert_condition(&s, "AllMembersHealthy", "False/MembersUnready");
        scene_done(&s);
    }
}

static void test_two_cluster_ids_are_a_condition(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    s.f.e->mismatch = true;
    s.f.e->move = (struct ec_move){.act = EC_FREEZE, .reason = "SplitBrain", .text = "two"};
    judge(&s);
    assert_condition(&s, "ClusterIDMismatch", "True/SplitBrain");
    assert_condition(&s, "Stalled", "True/SplitBrain");
    scene_done(&s);
}

/* Ready keeps its status. */
static void test_paused_cluster_keeps_ready(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, "{\"version\":\"3.5.16\",\"size\":3,\"paused\":true}",
               "{\"clusterID\":\"0000000000000005\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
               "\"True\",\"reason\":\"Succeeded\"}]}");
    s.f.e->move = (struct ec_move){.act = EC_WAIT, .reason = "Paused"};
    judge(&s);
    assert_condition(&s, "Ready", "True/Paused");
    assert_condition(&s, "Reconciling", "");
    assert_true(json_is_true(json_object_get(s.status, "controlPaused")));
    scene_done(&s);
}

/* Numbers that change all the time do not change the status; another change updates them, too. */
static void test_changing_numbers_do_not_change_the_status(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, SPEC, LATCHED);
    s.f.e->details[0].health.db_size = 1000;
    judge(&s);
    json_decref(s.f.e->object.status);
    s.f.e->object.status = json_deep_copy(s.status);
    ec_state_read(s.f.e->object.status, &s.f.e->state);
    s.f.e->details[0].health.db_size = 2000;
    s.f.e->details[0].health.raft_index = 99;
    judge(&s);
    assert_true(json_equal(json_object_get(s.status, "memberList"),
                           json_object_get(s.f.e->object.status, "memberList")));
    s.f.e->details[0].health.db_size = 64 << 20; /* but a large change does */
    judge(&s);
    assert_false(json_equal(json_object_get(s.status, "memberList"),
                            json_object_get(s.f.e->object.status, "memberList")));
    scene_done(&s);
}

/* Fields of other writers are kept. */
static void test_fields_of_other_writers_stay(void **state)
{
    struct scene s;
    (void)state;
    scene_init(
        &s, SPEC,
        "{\"clusterID\":\"0000000000000005\",\"lastBackup\":{\"name\":\"n\"},\"conditions\":["
        "{\"type\":\"BackupReady\",\"status\":\"True\",\"reason\":\"Fresh\"}]}");
    judge(&s);
    assert_condition(&s, "BackupReady", "True/Fresh");
    assert_non_null(json_object_get(s.status, "lastBackup"));
    scene_done(&s);
}

static void test_certificate_trouble_is_a_condition(void **state)
{
    static const struct {
        enum ec_tls_state state;
        const char *want;
    } cases[] = {
        {EC_TLS_READY, "True/Ready"},
        {EC_TLS_MISSING, "False/SecretMissing"},
        {EC_TLS_BAD, "False/BadKeyPair"},
        {EC_TLS_SAN, "False/SANMismatch"},
        {EC_TLS_EXPIRING, "False/ExpiringSoon"},
        {EC_TLS_EXPIRED, "False/Expired"},
        {EC_TLS_OLD, "False/OldSerialServed"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct scene s;
        scene_init(&s, SPEC, LATCHED);
        s.f.e->tls.state = cases[i].state;
        judge(&s);
        assert_condition(&s, "TLSReady", cases[i].want);
        if (cases[i].state == EC_TLS_EXPIRED) /* no client can connect */
            assert_condition(&s, "Ready", "False/Expired");
        scene_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy_cluster_is_ready),
        cmocka_unit_test(test_ready_needs_a_current_list),
        cmocka_unit_test(test_waiting_does_not_change_the_status),
        cmocka_unit_test(test_promotion_of_a_learner_is_stored),
        cmocka_unit_test(test_storage_version_is_kept_for_silent_members),
        cmocka_unit_test(test_ids_are_as_etcdctl_prints_them),
        cmocka_unit_test(test_lost_quorum_is_reported_after_30_seconds),
        cmocka_unit_test(test_alarm_is_a_condition),
        cmocka_unit_test(test_current_action_is_a_condition),
        cmocka_unit_test(test_volumes_that_are_too_small_are_named),
        cmocka_unit_test(test_upgrade_is_a_condition),
        cmocka_unit_test(test_trouble_of_pods_is_a_condition),
        cmocka_unit_test(test_two_cluster_ids_are_a_condition),
        cmocka_unit_test(test_paused_cluster_keeps_ready),
        cmocka_unit_test(test_changing_numbers_do_not_change_the_status),
        cmocka_unit_test(test_fields_of_other_writers_stay),
        cmocka_unit_test(test_certificate_trouble_is_a_condition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
