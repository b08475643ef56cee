/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of an EtcdCluster that follows from all its members. */
#include "fixture.h"
#include "kinds/etcdcluster/observe/ask.h"
#include "kinds/etcdcluster/observe/observe.h"

/* Healthy voters with the IDs 1, 2, ... in the cluster 5; the first one leads. */
static void voters(struct fixture *f, int count)
{
    static char somebody; /* a client, never dereferenced */
    fixture_init(
        f, "{\"version\":\"3.5.16\",\"size\":3,\"options\":{\"quotaBackendBytes\":\"100Mi\"}}",
        "{\"clusterID\":\"0000000000000005\",\"currentVersion\":\"3.5.16\"}");
    f->e->etcd = (void *)&somebody;
    f->e->view.listed = true;
    for (int i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "db-%d", i);
        fixture_member(f, name, (uint64_t)i + 1)->cluster_id = 5;
        f->e->details[i].health = (struct stw_etcd_health){.answers = true,
                                                           .linearizable = true,
                                                           .cluster_id = 5,
                                                           .member_id = (uint64_t)i + 1,
                                                           .leader_id = 1,
                                                           .raft_index = 9000,
                                                           .raft_applied_index = 9000};
    }
}

/* The quorum depends on the voters, not on the spec, which has three; learners do not count. */
static void test_quorum_depends_on_voters_not_on_the_spec(void **state)
{
    static const struct {
        int voters, silent, learners;
        bool unlisted, unasked;
        int64_t was, want; /* lost since */
    } cases[] = {
        {3, 0, 0, false, false, 0, 0},
        {3, 1, 0, false, false, 0, 0}, /* two of three are enough */
        {3, 2, 0, false, false, 0, FIXTURE_NOW},
        {3, 2, 1, false, false, 0, FIXTURE_NOW},
        {3, 2, 0, false, false, 7, 7},
        {5, 2, 0, false, false, 0, 0},
        {5, 3, 0, false, false, 0, FIXTURE_NOW},
        {1, 0, 0, false, false, 0, 0},
        {1, 1, 0, false, false, 0, FIXTURE_NOW},
        {3, 0, 0, true, false, 0, FIXTURE_NOW}, /* no quorum confirms the list */
        {3, 3, 0, true, true, 0, 0},            /* no member was asked: nothing is known */
        {3, 3, 0, true, true, 7, 7},
        {3, 0, 0, false, false, 7, 0},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        voters(&f, cases[i].voters + cases[i].learners);
        struct ec *e = f.e;
        for (int n = 0; n < cases[i].silent; n++)
            e->view.members[n].healthy = e->view.members[n].answers = false;
        for (int n = 0; n < cases[i].learners; n++)
            e->view.members[cases[i].voters + n].learner = true;
        e->view.listed = !cases[i].unlisted;
        if (cases[i].unasked)
            e->etcd = NULL;
        e->state.quorum_lost_since = cases[i].was;
        ec_judge_members(e);
        if (e->view.quorum_lost_since != cases[i].want)
            fail_msg("case %zu: %lld", i, (long long)e->view.quorum_lost_since);
        assert_int_equal(e->state.quorum_lost_since, cases[i].want);
        if (cases[i].was && !cases[i].want)
            assert_int_equal(e->state.quorum_since, FIXTURE_NOW);
        fixture_done(&f);
    }
}

/* The cluster version is the lowest minor; a version is reached when all voters are healthy with
 * it. */
static void test_cluster_version_is_the_lowest_minor(void **state)
{
    static const struct {
        struct stw_semver second;
        bool sick, learner;
        int minor;
        const char *current;
    } cases[] = {
        {{3, 5, 21}, false, false, 5, "3.5.21"}, {{3, 4, 23}, false, false, 4, "3.5.16"},
        {{3, 5, 21}, true, false, 5, "3.5.16"},  {{3, 5, 20}, false, false, 5, "3.5.16"},
        {{3, 4, 23}, false, true, 5, "3.5.21"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        voters(&f, 2);
        struct ec_member *second = &f.e->view.members[1];
        f.e->view.members[0].version = (struct stw_semver){3, 5, 21};
        second->version = cases[i].second;
        second->healthy = !cases[i].sick;
        second->learner = cases[i].learner;
        ec_judge_members(f.e);
        if (!stw_streq(f.e->state.current_version, cases[i].current) ||
            f.e->view.cluster_version.minor != cases[i].minor)
            fail_msg("case %zu: %s", i, f.e->state.current_version);
        fixture_done(&f);
    }
}

static void test_leader_and_lagging_members_are_known(void **state)
{
    struct fixture f;
    (void)state;
    voters(&f, 3);
    f.e->details[1].health.raft_applied_index = 9000 - EC_LAG;
    f.e->details[2].health.raft_applied_index = 9000 - EC_LAG - 1;
    ec_judge_members(f.e);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(f.e->view.members[i].leader, i == 0);
        assert_int_equal(f.e->view.members[i].lagging, i == 2);
    }
    fixture_done(&f);
}

/* The member to ask: the leader, otherwise any that has a quorum of this cluster.  A sick member
 * does not prevent that. */
static void test_member_to_ask_is_the_leader_or_one_with_a_quorum(void **state)
{
    static const struct {
        bool silent[3], strange[3];
        int want; /* -1: none */
    } cases[] = {
        {{false, false, false}, {false, false, false}, 1},
        {{true, false, false}, {false, false, false}, 1},
        {{false, true, false}, {false, false, false}, 0},
        {{true, true, false}, {false, false, false}, 2},
        {{true, true, true}, {false, false, false}, -1},
        {{false, false, false}, {false, true, false}, 0},
        {{true, false, true}, {false, true, false}, -1},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        size_t index = 0;
        voters(&f, 3);
        for (size_t n = 0; n < 3; n++) {
            struct stw_etcd_health *h = &f.e->details[n].health;
            h->leader_id = 2;
            h->linearizable = !cases[i].silent[n];
            h->cluster_id = cases[i].strange[n] ? 6 : 5;
        }
        const struct ec_detail *contact = ec_contact(f.e, &index);
        if ((contact ? (int)index : -1) != cases[i].want)
            fail_msg("case %zu: %d", i, contact ? (int)index : -1);
        fixture_done(&f);
    }
}

/* The limit is nine tenths of the quota; nothing is known of a member that does not respond. */
static void test_space_is_nine_tenths_of_the_quota(void **state)
{
    struct fixture f;
    (void)state;
    voters(&f, 3);
    f.e->details[0].health.db_size = (90 << 20) - 1;
    f.e->details[1].health.db_size = 90 << 20;
    f.e->view.members[2].answers = false;
    ec_judge_members(f.e);
    assert_true(f.e->view.members[0].space);
    assert_false(f.e->view.members[1].space);
    assert_false(f.e->view.members[2].space);
    fixture_done(&f);
}

static void test_member_of_another_cluster_is_a_mismatch(void **state)
{
    struct fixture f;
    (void)state;
    voters(&f, 3);
    ec_judge_members(f.e);
    assert_false(f.e->mismatch);
    f.e->view.members[2].cluster_id = 6;
    ec_judge_members(f.e);
    assert_true(f.e->mismatch);
    fixture_done(&f);
}

/* The alarms of listed members; those of unlisted ones, of which the worst is reported; and if no
 * member could be asked, those of before. */
static void test_alarms_of_unlisted_members_are_reported(void **state)
{
    const struct stw_etcd_alarms raised = {.count = 4,
                                           .all = {{2, STW_ETCD_ALARM_NOSPACE},
                                                   {71, STW_ETCD_ALARM_NOSPACE},
                                                   {72, STW_ETCD_ALARM_CORRUPT},
                                                   {2, STW_ETCD_ALARM_CORRUPT}}};
    struct fixture f;
    (void)state;
    voters(&f, 2);
    struct ec_view *v = &f.e->view;
    ec_take_alarms(f.e, &raised);
    assert_int_equal(v->members[0].alarms, 0);
    assert_int_equal(v->members[1].alarms, STW_ETCD_ALARM_NOSPACE | STW_ETCD_ALARM_CORRUPT);
    assert_int_equal(v->stray_alarms, STW_ETCD_ALARM_NOSPACE | STW_ETCD_ALARM_CORRUPT);
    assert_int_equal(v->stray_id, 72);
    fixture_done(&f);

    voters(&f, 2);
    f.e->view.listed = false; /* removed members are not known then */
    ec_take_alarms(f.e, &raised);
    assert_int_equal(f.e->view.stray_alarms, 0);
    f.e->state.member_count = 1;
    f.e->state.members[0] =
        (struct ec_remembered){.name = "db-0", .alarms = STW_ETCD_ALARM_CORRUPT};
    ec_take_alarms(f.e, NULL);
    assert_int_equal(f.e->view.members[0].alarms, STW_ETCD_ALARM_CORRUPT);
    assert_int_equal(f.e->view.members[1].alarms, 0);
    fixture_done(&f);
}

/* Only of a cluster whose beginning was seen; and it never becomes newer. */
static void test_oldest_version_is_known_since_the_beginning(void **state)
{
    static const struct {
        enum ec_kind action;
        const char *current, *oldest, *want;
        struct stw_semver runs;
    } cases[] = {
        {EC_SEED, "", "", "3.5.21", {3, 5, 21}},
        {EC_IDLE, "", "", "", {3, 5, 21}}, /* the status was lost */
        {EC_IDLE, "3.5.21", "", "", {3, 5, 21}},
        {EC_IDLE, "3.5.21", "3.4.23", "3.4.23", {3, 5, 21}},
        {EC_UPGRADE, "3.6.16", "3.6.16", "3.5.35", {3, 5, 35}}, /* a downgrade */
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        voters(&f, 1);
        f.e->view.members[0].version = cases[i].runs;
        f.e->view.action.kind = cases[i].action;
        f.e->view.current = f.e->view.oldest = (struct stw_semver){0};
        (void)stw_semver_parse(cases[i].current, &f.e->view.current);
        (void)stw_semver_parse(cases[i].oldest, &f.e->view.oldest);
        (void)snprintf(f.e->state.oldest_version, STW_SEMVER_LEN, "%s", cases[i].oldest);
        ec_judge_members(f.e);
        assert_string_equal(f.e->state.oldest_version, cases[i].want);
        fixture_done(&f);
    }
}

static void test_downgrade_that_etcd_was_told_is_read(void **state)
{
    struct fixture f;
    (void)state;
    voters(&f, 2);
    f.e->details[1].health.downgrade_to = (struct stw_semver){3, 5, 0};
    ec_judge_members(f.e);
    assert_int_equal(f.e->view.downgrade_to.minor, 5);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quorum_depends_on_voters_not_on_the_spec),
        cmocka_unit_test(test_oldest_version_is_known_since_the_beginning),
        cmocka_unit_test(test_downgrade_that_etcd_was_told_is_read),
        cmocka_unit_test(test_cluster_version_is_the_lowest_minor),
        cmocka_unit_test(test_leader_and_lagging_members_are_known),
        cmocka_unit_test(test_member_to_ask_is_the_leader_or_one_with_a_quorum),
        cmocka_unit_test(test_space_is_nine_tenths_of_the_quota),
        cmocka_unit_test(test_member_of_another_cluster_is_a_mismatch),
        cmocka_unit_test(test_alarms_of_unlisted_members_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
