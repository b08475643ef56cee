/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of an EtcdCluster, case by case: the moves that the model check does not reach (alarms,
 * limits, pauses, foreign members), and the messages for people. */
#include "etcd/etcd.h"
#include "kinds/etcdcluster/plan/facts.h"
#include "kinds/etcdcluster/plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1000000
#define A "db-aaaaaaaaaa"
#define B "db-bbbbbbbbbb"
#define C "db-cccccccccc"
#define FRESH "db-zzzzzzzzzz"

static const struct stw_semver old_version = {3, 5, 16}, new_version = {3, 5, 21};

struct cluster {
    struct ec_view v;
    struct ec_move move;
    struct ec_member *a, *b, *c;
};

static struct ec_member *member(struct cluster *s, const char *name)
{
    struct ec_member *m = &s->v.members[s->v.count++];
    *m = (struct ec_member){.listed = true,
                            .id = 0x10 + s->v.count,
                            .started = true,
                            .answers = true,
                            .healthy = true,
                            .cluster_id = 0xabc,
                            .space = true,
                            .version = old_version,
                            .pod_version = old_version,
                            .pod = EC_POD_RUNNING,
                            .pod_template = true,
                            .pod_guarded = true,
                            .data = EC_DATA_THERE,
                            .claim = true,
                            .created = NOW - 5000 + (int64_t)s->v.count};
    (void)snprintf(m->name, sizeof(m->name), "%s", name);
    return m;
}

/* Three healthy members; the first one leads. */
static struct cluster three(void)
{
    static struct cluster s;
    s = (struct cluster){.v = {.size = 3,
                               .version = old_version,
                               .durable = true,
                               .failover = true,
                               .unhealthy_s = 300,
                               .max_per_hour = 2,
                               .deadline_s = 600,
                               .pause_s = 30,
                               .cluster_id = 0xabc,
                               .current = old_version,
                               .cluster_version = {3, 5, 0},
                               .now = NOW,
                               .listed = true,
                               .fresh = FRESH}};
    member(&s, A)->leader = true;
    member(&s, B);
    member(&s, C);
    return s;
}

static struct cluster *point(struct cluster *s)
{
    s->a = &s->v.members[0];
    s->b = &s->v.members[1];
    s->c = &s->v.members[2];
    return s;
}

#define CLUSTER(s)                                                                                 \
    struct cluster s = three();                                                                    \
    (void)state;                                                                                   \
    point(&s)

static void fall(struct ec_member *m, int64_t since)
{
    m->healthy = m->answers = m->leader = false;
    m->cluster_id = 0;
    m->unhealthy_since = NOW - since;
}

static void nobody_answers(struct cluster *s, int64_t since)
{
    for (size_t i = 0; i < s->v.count; i++)
        fall(&s->v.members[i], since);
    s->v.listed = false;
    s->v.quorum_lost_since = NOW - since;
}

static void expect(struct cluster *s, enum ec_act act, const char *name)
{
    ec_plan(&s->v, &s->move);
    if (s->move.text[0])
        assert_in_range(strlen(s->move.text), 1, sizeof(s->move.text) - 2);
    assert_int_equal(s->move.act, act);
    assert_string_equal(s->move.member, name);
}

static void expect_words(struct cluster *s, enum ec_act act, const char *reason, const char *words)
{
    expect(s, act, "");
    assert_string_equal(s->move.reason, reason);
    if (!strstr(s->move.text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, s->move.text);
}

static void intends(const struct cluster *s, enum ec_kind kind, const char *name)
{
    assert_int_equal(s->move.intent.kind, kind);
    assert_string_equal(s->move.intent.member, name);
    assert_false(ec_intended(&s->v, &s->move));
}

/* --- calls whose response was lost */

/* Whether a call of that intent may still be in flight, by what the list shows of member C. */
static void test_intent_may_be_in_flight_until_the_list_shows_it(void **state)
{
    static const struct {
        enum ec_kind kind;
        bool none, voter, learner, unknown; /* not listed; listed as; no list */
    } cases[] = {
        {EC_ADD, .none = true, .unknown = true},
        {EC_PROMOTE, true, .learner = true, .unknown = true},
        {EC_REMOVE, .voter = true, .learner = true, .unknown = true},
        {EC_REPLACE, .voter = true, .learner = true, .unknown = true},
        {EC_ABANDON, .voter = true, .learner = true, .unknown = true},
        {EC_EXPAND, .none = false},
        {EC_LEADER, .unknown = true},
        {EC_IDLE},
        {EC_SEED},
        {EC_UPGRADE},
        {EC_ROLL},
        {EC_FORCE},
    };
    CLUSTER(s);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        s.v.action = (struct ec_action){.kind = cases[i].kind, .member = C};
        s.v.listed = s.c->listed = true;
        s.c->learner = false;
        assert_int_equal(ec_unsettled(&s.v), cases[i].voter);
        s.c->learner = true;
        assert_int_equal(ec_unsettled(&s.v), cases[i].learner);
        s.c->listed = false;
        assert_int_equal(ec_unsettled(&s.v), cases[i].none);
        s.v.listed = false;
        assert_int_equal(ec_unsettled(&s.v), cases[i].unknown);
    }
    s.v.listed = s.c->listed = true;
    s.v.action.kind = EC_LEADER;
    s.c->leader = true;
    assert_true(ec_unsettled(&s.v));
    s.v.action =
        (struct ec_action){.kind = EC_ADD, .member = FRESH}; /* no object has the name yet */
    assert_true(ec_unsettled(&s.v));
}

static void test_only_changes_of_members_are_decisions(void **state)
{
    CLUSTER(s);
    expect(&s, EC_WAIT, "");
    assert_false(ec_decides(&s.move));
    s.v.action = (struct ec_action){.kind = EC_REMOVE, .member = FRESH};
    expect(&s, EC_FINISH, "");
    assert_true(ec_decides(&s.move));
    s.v.size = 5;
    s.v.action.kind = EC_IDLE;
    expect(&s, EC_MEMBER_ADD, FRESH);
    assert_true(ec_decides(&s.move));
    s.v.size = 3;
    s.c->pod = EC_POD_ABSENT;
    fall(s.c, 1);
    expect(&s, EC_CREATE_POD, C); /* it removes nothing */
    assert_false(ec_decides(&s.move));
}

/* The intended addition keeps its name; it gets another one if that is in use. */
static void test_intended_addition_keeps_its_name(void **state)
{
    CLUSTER(s);
    s.v.size = 5;
    s.v.action = (struct ec_action){.kind = EC_ADD, .member = "db-yyyyyyyyyy"};
    expect(&s, EC_MEMBER_ADD, "db-yyyyyyyyyy");
    assert_true(ec_intended(&s.v, &s.move));
    s.v.name_used = true;
    expect(&s, EC_MEMBER_ADD, FRESH);
    intends(&s, EC_ADD, FRESH);
}

/* --- drains */

/* A pod is being deleted: its member responds for some seconds more, but does not count. */
static void test_member_of_a_deleted_pod_does_not_count(void **state)
{
    CLUSTER(s);
    s.v.size = 1;
    expect(&s, EC_MEMBER_REMOVE, C);
    s.a->pod = EC_POD_GOING;
    expect_words(&s, EC_WAIT, "ScalingDown", "when more members are healthy");
    fall(s.c, 400);
    expect(&s, EC_MEMBER_REMOVE, C); /* which does not count anyway */
    s.v.size = 3;
    expect(&s, EC_MEMBER_REMOVE, C);
    intends(&s, EC_REPLACE, C);
    CLUSTER(again);
    s = again;
    point(&s);
    s.a->pod = EC_POD_GOING;
    s.b->pod_template = false;
    expect(&s, EC_WAIT, "");
    s.a->pod = EC_POD_RUNNING;
    expect(&s, EC_DELETE_POD, B);
}

/* --- lesson E6: promotions that get lost in a change of version */

static void test_lost_promotion_freezes_the_cluster(void **state)
{
    CLUSTER(s);
    for (size_t i = 0; i < 3; i++)
        s.v.members[i].promoted = true;
    expect_words(&s, EC_WAIT, "Settled", "3 of 3");
    s.c->learner = true; /* 100 times too old for a learner */
    s.c->created = NOW - 60000;
    expect_words(&s, EC_FREEZE, "PromotionLost", "`etcdctl member promote 13`");
    s.c->pod = EC_POD_ABSENT;
    fall(s.c, 10);
    expect(&s, EC_CREATE_POD, C);
    assert_true(s.move.guarded);
    nobody_answers(&s, 60);
    s.c->pod = EC_POD_RUNNING;
    expect_words(&s, EC_FREEZE, "QuorumLost", "are needed");
}

/* The first upgraded member reports it, and the others are not upgraded. */
static void test_doubted_promotion_stops_an_upgrade(void **state)
{
    CLUSTER(s);
    s.v.version = new_version;
    s.c->version = s.c->pod_version = new_version;
    expect(&s, EC_DELETE_POD, B);
    s.c->doubts = true;
    expect_words(&s, EC_WAIT, "PromotionLost",
                 "member " C " is a voter, but reports itself as a learner");
    s.v.version = old_version;
    s.c->version = s.c->pod_version = old_version;
    expect_words(&s, EC_WAIT, "PromotionLost", "etcd issue 19557");
}

/* --- at rest */

static void test_settled_cluster_waits(void **state)
{
    CLUSTER(s);
    expect_words(&s, EC_WAIT, "Settled", "3 of 3 members are healthy");
    assert_int_equal(s.move.wait_ms, 10000);
    struct ec_quorum q = ec_quorum_of(&s.v);
    assert_int_equal(q.voters, 3);
    assert_int_equal(q.needed, 2);
    assert_int_equal(q.margin, 1);
    s.v.paused = true;
    s.c->pod = EC_POD_ABSENT;
    expect_words(&s, EC_WAIT, "Paused", "spec.paused");
}

static void test_missing_pod_is_recreated(void **state)
{
    CLUSTER(s);
    fall(s.c, 5);
    s.c->pod = EC_POD_ABSENT;
    expect(&s, EC_CREATE_POD, C);
    assert_true(s.move.guarded);
    assert_false(s.move.seed || s.move.forced);
    assert_int_equal(stw_semver_compare(s.move.version, old_version), 0);
    nobody_answers(&s, 1000); /* also without a quorum */
    expect(&s, EC_CREATE_POD, C);
    s.c->data = EC_DATA_LOST; /* but never without data */
    expect(&s, EC_FREEZE, "");
}

/* --- the seed */

static void test_new_cluster_begins_with_a_seed(void **state)
{
    CLUSTER(s);
    s.v.cluster_id = 0;
    s.v.listed = false;
    s.v.count = 0;
    expect(&s, EC_INTEND, FRESH);
    intends(&s, EC_SEED, FRESH);
    s.v.action = s.move.intent;
    (void)snprintf(s.v.fresh, sizeof(s.v.fresh), "db-yyyyyyyyyy"); /* a new fresh name */
    expect(&s, EC_CREATE_CLAIM, FRESH);
    struct ec_member *seed = member(&s, FRESH);
    *seed = (struct ec_member){.claim = true, .data = EC_DATA_THERE};
    (void)snprintf(seed->name, sizeof(seed->name), FRESH);
    expect(&s, EC_CREATE_POD, FRESH);
    assert_true(s.move.seed && !s.move.guarded);
}

static void test_restored_seed_keeps_its_volume(void **state)
{
    CLUSTER(s);
    s.v.cluster_id = 0;
    s.v.listed = false;
    s.v.restored = A;
    s.v.count = 1;
    *s.a = (struct ec_member){.name = A, .claim = true, .data = EC_DATA_THERE};
    expect(&s, EC_INTEND, A);
    s.v.action = s.move.intent;
    expect(&s, EC_CREATE_POD, A);
    assert_true(s.move.guarded && !s.move.seed); /* it is never started empty */
    s.a->claim = false;
    s.a->data = EC_DATA_NONE;
    expect_words(&s, EC_FREEZE, "SeedDataLost", "volume claim " A);
}

static void test_lost_status_is_restored_from_the_members(void **state)
{
    CLUSTER(s);
    s.v.cluster_id = 0;
    expect(&s, EC_LATCH, ""); /* all that answer agree */
    assert_int_equal(s.move.id, 0xabc);
    s.b->cluster_id = 0xdef;
    expect_words(&s, EC_FREEZE, "StatusLost", "status.clusterID");
    nobody_answers(&s, 60);
    expect_words(&s, EC_FREEZE, "StatusLost", "pods or volumes of a cluster, such as " C);
}

/* --- when nothing may be done */

static void test_lost_quorum_freezes_with_advice(void **state)
{
    CLUSTER(s);
    nobody_answers(&s, 29);
    expect_words(&s, EC_WAIT, "NoQuorum", "a quorum");
    s.v.quorum_lost_since = NOW - 30;
    expect_words(&s, EC_FREEZE, "QuorumLost", "0 of 3 members are healthy, 2 are needed");
    expect_words(&s, EC_FREEZE, "QuorumLost", "`kubectl get pods -l etcd_cluster=db`");
    expect_words(&s, EC_FREEZE, "QuorumLost",
                 "`kubectl annotate etcdcluster db " EC_FORCE_NEW_CLUSTER "=" A "`");
    s.b->answers = true; /* the better choice */
    expect_words(&s, EC_FREEZE, "QuorumLost", "=" B "`");
    expect_words(&s, EC_FREEZE, "QuorumLost", "those that do not may have more");
    s.v.durable = false;
    expect_words(&s, EC_FREEZE, "QuorumLost", "EtcdRestore");
}

/* In raft's order: the term, then the index; members that respond come before those that do not. */
static void test_best_survivor_has_the_newest_term_and_index(void **state)
{
    static const struct {
        struct {
            bool answers;
            uint64_t term, index;
        } of[3];
        const char *best, *words;
    } cases[] = {
        {{{false, 0, 0}, {false, 0, 0}, {false, 0, 0}}, A, "not known who has most of it"},
        {{{true, 3, 70}, {false, 0, 0}, {true, 3, 71}}, C, "(raft term 3, index 71); those that"},
        {{{true, 3, 900}, {true, 4, 10}, {true, 4, 9}}, B, "(raft term 4, index 10)"},
        {{{true, 4, 10}, {true, 4, 10}, {true, 3, 99}}, A, "got farthest of those that answer"},
        {{{false, 9, 99}, {true, 1, 1}, {false, 9, 99}}, B, "those that do not may have more"},
    };
    CLUSTER(s);
    nobody_answers(&s, 60);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t n = 0; n < 3; n++) {
            s.v.members[n].answers = cases[i].of[n].answers;
            s.v.members[n].raft_term = cases[i].of[n].term;
            s.v.members[n].raft_index = cases[i].of[n].index;
        }
        char command[160];
        (void)snprintf(command, sizeof(command), EC_FORCE_NEW_CLUSTER "=%s`", cases[i].best);
        expect_words(&s, EC_FREEZE, "QuorumLost", command);
        expect_words(&s, EC_FREEZE, "QuorumLost", cases[i].words);
    }
    s.v.force = "db-xxxxxxxxxx"; /* also suggested instead of a wrong one */
    expect_words(&s, EC_FREEZE, "QuorumLost", "as for instance " B " is");
}

static void test_nothing_is_forced_while_pods_are_ready(void **state)
{
    CLUSTER(s);
    nobody_answers(&s, 400);
    s.b->pod_ready = true;
    s.v.force = A;
    expect_words(&s, EC_FREEZE, "QuorumLost", "pod " B " is ready");
    s.b->pod_ready = false;
    expect(&s, EC_FORCE_NEXT, A);
    intends(&s, EC_FORCE, A);
    assert_int_equal(s.move.force_step, EC_FORCE_CLEAR);
    s.v.force = "db-xxxxxxxxxx";
    expect_words(&s, EC_FREEZE, "QuorumLost", "names \"db-xxxxxxxxxx\", which is not a member");
}

static void test_forced_start_goes_step_by_step(void **state)
{
    CLUSTER(s);
    nobody_answers(&s, 400);
    s.v.force_step = EC_FORCE_CLEAR;
    (void)snprintf(s.v.force_member, sizeof(s.v.force_member), "%s", B);
    expect(&s, EC_DELETE_POD, A);
    s.v.listed = true; /* back by itself */
    expect(&s, EC_FORCE_NEXT, B);
    assert_int_equal(s.move.force_step, EC_FORCE_NOT);
    s.v.listed = false;
    s.a->pod = s.b->pod = EC_POD_ABSENT;
    s.c->pod = EC_POD_GOING;
    expect_words(&s, EC_WAIT, "ForceNewCluster", "pod " C " is still being deleted");
    s.c->pod = EC_POD_ABSENT;
    expect(&s, EC_FORCE_NEXT, B);
    assert_int_equal(s.move.force_step, EC_FORCE_START);
    s.v.force_step = EC_FORCE_START;
    expect(&s, EC_CREATE_POD, B);
    assert_true(s.move.forced && s.move.guarded);
    s.b->pod = EC_POD_RUNNING;
    s.b->pod_forced = true;
    expect_words(&s, EC_WAIT, "ForceNewCluster", "member " B " is coming up alone");
    s.v.force_step = EC_FORCE_RESTART;
    expect(&s, EC_DELETE_POD, B);
    s.b->data = EC_DATA_LOST;
    expect_words(&s, EC_FREEZE, "QuorumLost", "the volume of " B);
}

/* Set while there is a quorum, the annotation must not be there in a later outage. */
static void test_force_annotation_without_an_outage_expires(void **state)
{
    CLUSTER(s);
    assert_false(ec_force_expired(&s.v));
    s.v.force = A;
    assert_true(ec_force_expired(&s.v));
    s.v.paused = true;
    assert_false(ec_force_expired(&s.v));
    s.v.paused = false;
    s.v.force_step = EC_FORCE_RESTART; /* its survivor serves already */
    assert_false(ec_force_expired(&s.v));
    s.v.force_step = EC_FORCE_NOT;
    nobody_answers(&s, 1);
    assert_false(ec_force_expired(&s.v));
}

static void test_two_clusters_or_corrupt_data_freeze(void **state)
{
    CLUSTER(s);
    s.c->cluster_id = 0xdef;
    s.b->pod = EC_POD_ABSENT;
    expect_words(&s, EC_FREEZE, "SplitBrain", "member " C " is in cluster def");
    s.c->cluster_id = 0xabc;
    s.c->alarms = STW_ETCD_ALARM_CORRUPT;
    expect_words(&s, EC_FREEZE, "Corrupt", "member " C);
    s.c->alarms = STW_ETCD_ALARM_NOSPACE;
    expect(&s, EC_CREATE_POD, B);
    s.c->alarms = 0;
    s.v.stray_alarms = STW_ETCD_ALARM_CORRUPT; /* removed, and not disarmed yet */
    s.v.stray_id = 0xbad;
    expect_words(&s, EC_FREEZE, "Corrupt", "member bad was removed");
}

static void test_foreign_member_freezes(void **state)
{
    CLUSTER(s);
    struct ec_member *d = member(&s, "mine");
    d->foreign = true;
    d->pod = EC_POD_ABSENT;
    d->data = EC_DATA_NONE;
    expect_words(&s, EC_FREEZE, "ForeignMember", "etcdctl member remove 14");
    fall(s.c, 5);
    s.c->pod = EC_POD_ABSENT;
    expect(&s, EC_CREATE_POD, C);
}

static void test_size_out_of_range_freezes(void **state)
{
    CLUSTER(s);
    s.v.size = 0;
    expect_words(&s, EC_FREEZE, "InvalidSpec", "spec.size: Invalid value: 0: must be between 1");
    s.v.size = 8;
    expect_words(&s, EC_FREEZE, "InvalidSpec", "between 1 and 7");
}

/* --- dead members */

static void test_failed_member_is_replaced_after_five_minutes(void **state)
{
    CLUSTER(s);
    fall(s.c, 299);
    expect_words(&s, EC_WAIT, "MembersUnready", "member " C " is not healthy");
    fall(s.c, 300);
    expect(&s, EC_MEMBER_REMOVE, C);
    intends(&s, EC_REPLACE, C);
    assert_int_equal(s.move.id, s.c->id);
    s.c->trouble = EC_TROUBLE_IMAGE;
    expect(&s, EC_WAIT, "");
    s.c->trouble = EC_TROUBLE_NONE;
    s.v.failover = false;
    expect_words(&s, EC_WAIT, "MembersUnready", "spec.failover.enabled is false");
    s.v.failover = true;
    s.v.failovers_last_hour = 2;
    expect_words(&s, EC_WAIT, "RateLimited", "spec.failover.maxPerHour");
    s.v.action = (struct ec_action){.kind = EC_REPLACE, .member = C, .start = NOW - 3};
    expect(&s, EC_MEMBER_REMOVE, C); /* this one has been counted */
    assert_true(ec_intended(&s.v, &s.move));
    assert_int_equal(s.move.intent.start, NOW - 3);
}

static void test_member_without_data_is_replaced_at_once(void **state)
{
    CLUSTER(s);
    fall(s.c, 3);
    s.c->data = EC_DATA_LOST;
    expect(&s, EC_MEMBER_REMOVE, C);
    fall(s.b, 3); /* one of three is left, although there is a list: no move */
    expect(&s, EC_WAIT, "");
}

/* --- the size */

static void test_member_is_added_as_a_learner(void **state)
{
    CLUSTER(s);
    s.v.size = 4;
    expect(&s, EC_MEMBER_ADD, FRESH);
    intends(&s, EC_ADD, FRESH);
    s.v.action = s.move.intent;
    struct ec_member *d = member(&s, FRESH);
    *d =
        (struct ec_member){.name = FRESH, .listed = true, .id = 9, .learner = true, .created = NOW};
    expect(&s, EC_CREATE_CLAIM, FRESH);
    d->claim = true;
    d->data = EC_DATA_THERE;
    expect(&s, EC_CREATE_POD, FRESH);
    assert_false(s.move.guarded);
    d->pod = EC_POD_RUNNING;
    d->pod_template = d->started = d->answers = d->healthy = true;
    d->version = d->pod_version = old_version;
    expect(&s, EC_GUARD, FRESH);
    d->pod_guarded = d->lagging = true;
    expect_words(&s, EC_WAIT, "LearnerCatchingUp", FRESH);
    d->lagging = false;
    expect(&s, EC_MEMBER_PROMOTE, FRESH);
    s.v.action.start = NOW - 600; /* late, but there */
    expect(&s, EC_MEMBER_PROMOTE, FRESH);
    d->healthy = d->answers = false;
    expect(&s, EC_MEMBER_REMOVE, FRESH);
    intends(&s, EC_ABANDON, FRESH);
    d->trouble = EC_TROUBLE_IMAGE; /* a new one could not pull it either */
    expect(&s, EC_WAIT, "");
}

static void test_newest_member_is_removed(void **state)
{
    CLUSTER(s);
    s.v.size = 2;
    expect(&s, EC_MEMBER_REMOVE, C); /* the newest */
    intends(&s, EC_REMOVE, C);
    s.b->lagging = true;
    expect(&s, EC_MEMBER_REMOVE, B);
    s.a->pod_template = false;
    expect(&s, EC_MOVE_LEADER, A); /* the outdated member leads */
    assert_string_equal(s.move.to, C);
    assert_int_equal(s.move.to_id, s.c->id);
    fall(s.c, 1);
    expect(&s, EC_MEMBER_REMOVE, C); /* the sick one first */
}

static void test_pods_and_volumes_of_former_members_are_removed(void **state)
{
    CLUSTER(s);
    struct ec_member *d = member(&s, "db-dddddddddd");
    *d = (struct ec_member){.name = "db-dddddddddd", .pod = EC_POD_RUNNING, .claim = true};
    expect(&s, EC_DELETE_POD, "db-dddddddddd");
    d->pod = EC_POD_GOING;
    expect(&s, EC_WAIT, "");
    d->pod = EC_POD_ABSENT;
    expect(&s, EC_DELETE_CLAIM, "db-dddddddddd");
    s.v.keep_scaled = true;
    expect(&s, EC_WAIT, "");
    s.v.keep_scaled = false;
    fall(s.c, 3);
    expect(&s, EC_WAIT, "");
}

/* --- recreated pods */

static void test_members_are_upgraded_one_by_one(void **state)
{
    CLUSTER(s);
    s.v.version = new_version;
    s.v.last_rolled = NOW - 10;
    expect_words(&s, EC_WAIT, "UpgradeInProgress", "in 20 s");
    s.v.last_rolled = NOW - 30;
    expect(&s, EC_DELETE_POD, B); /* not the leader */
    intends(&s, EC_UPGRADE, B);
    s.v.action = s.move.intent;
    fall(s.b, 2);
    s.b->pod = EC_POD_ABSENT;
    expect(&s, EC_CREATE_POD, B);
    assert_int_equal(stw_semver_compare(s.move.version, new_version), 0);
    s.b->pod = EC_POD_RUNNING;
    s.b->pod_version = new_version;
    s.b->trouble = EC_TROUBLE_CRASH;
    fall(s.b, 4000); /* it does not start: neither it nor the next one is deleted */
    expect(&s, EC_WAIT, "");
    s.v.version = old_version; /* back to the old version */
    expect(&s, EC_DELETE_POD, B);
}

/* The next member waits until the previous one serves, keeps up with the leader and itself reports
 * the version.  Until then the action for the previous one is not finished either. */
static void test_next_member_waits_until_the_previous_one_serves(void **state)
{
    static const struct {
        bool sick, lagging, says_old, done;
    } cases[] = {
        {.done = true},
        {.sick = true},
        {.lagging = true},
        {.says_old = true}, /* a new pod that runs the old version */
    };
    CLUSTER(s);
    s.v.version = s.b->pod_version = new_version;
    s.v.last_rolled = NOW - 30;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        s.b->healthy = !cases[i].sick;
        s.b->lagging = cases[i].lagging;
        s.b->version = cases[i].says_old ? old_version : new_version;
        s.v.action = (struct ec_action){0};
        if (cases[i].done)
            expect(&s, EC_DELETE_POD, C);
        else
            expect_words(&s, EC_WAIT, "MembersUnready",
                         "the pod of member " C " is recreated when");
        s.v.action = (struct ec_action){.kind = EC_UPGRADE, .member = B, .start = NOW - 5};
        ec_plan(&s.v, &s.move);
        assert_int_equal(s.move.act == EC_FINISH, cases[i].done);
    }
}

static void test_leader_is_upgraded_last(void **state)
{
    CLUSTER(s);
    s.v.version = new_version;
    s.b->version = s.b->pod_version = s.c->version = s.c->pod_version = new_version;
    expect(&s, EC_MOVE_LEADER, A);
    intends(&s, EC_LEADER, A);
    assert_string_equal(s.move.to, B);
    s.a->leader = false;
    s.b->leader = true;
    expect(&s, EC_DELETE_POD, A);
    s.v.version = (struct stw_semver){3, 5, 16}; /* two have moved: no way back */
    expect_words(&s, EC_FREEZE, "InvalidSpec", "spec.version: downgrade from 3.5.21");
}

static void test_versions_out_of_reach_freeze(void **state)
{
    CLUSTER(s);
    s.v.version = (struct stw_semver){3, 7, 0};
    expect_words(&s, EC_FREEZE, "InvalidSpec", "next is 3.6");
    fall(s.c, 5);
    s.c->pod = EC_POD_ABSENT;
    expect(&s, EC_CREATE_POD, C); /* kept at its version */
    assert_int_equal(stw_semver_compare(s.move.version, old_version), 0);
    s = three();
    point(&s);
    s.v.version = (struct stw_semver){3, 6, 1};
    expect_words(&s, EC_FREEZE, "InvalidSpec", "upgrade to 3.5.20 or newer first");
}

static const struct stw_semver line_36 = {3, 6, 16}, line_35 = {3, 5, 35};

/* A downgrade of three members from 3.6 to 3.5. */
static void go_down(struct cluster *s)
{
    struct ec_member *all[] = {s->a, s->b, s->c};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        all[i]->version = all[i]->pod_version = line_36;
        all[i]->storage = (struct stw_semver){3, 6, 0};
    }
    s->v.current = line_36;
    s->v.cluster_version = (struct stw_semver){3, 6, 0};
    s->v.version = line_35;
}

static void etcd_is_told(struct cluster *s)
{
    s->v.downgrade_to = (struct stw_semver){3, 5, 0};
    s->a->storage = s->b->storage = s->c->storage = s->v.downgrade_to;
}

static void test_downgrade_is_announced_to_etcd_first(void **state)
{
    CLUSTER(s);
    go_down(&s);
    fall(s.c, 3);
    expect_words(&s, EC_WAIT, "MembersUnready", "the downgrade to 3.5 begins when");
    s = three();
    go_down(point(&s));
    expect(&s, EC_DOWNGRADE, "");
    assert_int_equal(stw_semver_compare(s.move.version, line_35), 0);
    assert_true(ec_decides(&s.move));
    s.v.downgrade_to = (struct stw_semver){3, 5, 0};
    expect_words(&s, EC_WAIT, "UpgradeInProgress", "member " B " is not ready for it yet");
    s.b->storage = s.v.downgrade_to;
    expect(&s, EC_DELETE_POD, B);
    intends(&s, EC_UPGRADE, B);
    /* and it comes back as 3.5, by what is recorded of its data */
    s.v.action = s.move.intent;
    fall(s.b, 3);
    s.b->pod = EC_POD_ABSENT;
    expect(&s, EC_CREATE_POD, B);
    assert_int_equal(stw_semver_compare(s.move.version, line_35), 0);
}

/* The pod was deleted for another reason, and its data is not prepared. */
static void test_no_older_etcd_on_newer_data(void **state)
{
    CLUSTER(s);
    go_down(&s);
    s.v.action = (struct ec_action){.kind = EC_ROLL, .member = B, .start = NOW - 5};
    fall(s.b, 3);
    s.b->pod = EC_POD_ABSENT;
    expect(&s, EC_CREATE_POD, B);
    assert_int_equal(stw_semver_compare(s.move.version, line_36), 0);
    s.b->pod = EC_POD_RUNNING;
    s.b->pod_template = false;
    s.b->trouble = EC_TROUBLE_CRASH;
    s.v.action = (struct ec_action){0};
    ec_plan(&s.v, &s.move);
    if (s.move.act == EC_DELETE_POD) /* recreated with a version that can read its data */
        assert_int_equal(s.move.intent.kind, EC_IDLE);
}

/* The last known storage version proves nothing unless the downgrade is enabled in etcd. */
static void test_no_older_etcd_before_etcd_is_told(void **state)
{
    CLUSTER(s);
    go_down(&s);
    etcd_is_told(&s);
    s.v.downgrade_to = (struct stw_semver){0};
    fall(s.b, 3);
    s.b->trouble = EC_TROUBLE_CRASH;
    expect_words(&s, EC_WAIT, "MembersUnready", "the downgrade to 3.5 begins when");
    s.v.downgrade_to = (struct stw_semver){3, 5, 0};
    expect(&s, EC_DELETE_POD, B);
}

static void test_two_members_cannot_be_downgraded(void **state)
{
    CLUSTER(s);
    go_down(&s);
    s.v.size = 2;
    s.v.count = 2;
    expect_words(&s, EC_FREEZE, "InvalidSpec", "one by one. Set spec.size to 3 first");
    s.v.durable = false;
    expect_words(&s, EC_FREEZE, "InvalidSpec", "one by one. These have none");
}

static void test_downgrade_can_be_turned_back(void **state)
{
    CLUSTER(s);
    go_down(&s);
    etcd_is_told(&s);
    s.b->version = s.b->pod_version = line_35;
    s.b->storage = (struct stw_semver){0};
    s.v.cluster_version = (struct stw_semver){3, 5, 0};
    expect(&s, EC_DELETE_POD, C);
    s.v.version = line_36;
    expect(&s, EC_DOWNGRADE, "");
    assert_false(stw_semver_known(s.move.version));
    s.v.downgrade_to = (struct stw_semver){0};
    expect(&s, EC_DELETE_POD, B);
    s.v.downgrade_to = (struct stw_semver){3, 5, 0}; /* set by hand, to an unwanted version */
    expect(&s, EC_DOWNGRADE, "");
    assert_false(stw_semver_known(s.move.version));
    s.v.downgrade_to = (struct stw_semver){0};
    s.v.version = line_35; /* and down again: a member of 3.5 keeps the data as it is */
    expect(&s, EC_DELETE_POD, C);
}

/* The upgrade to 3.6 of three members that may once have run 3.4. */
static void step_to_36(struct cluster *s)
{
    struct ec_member *all[] = {s->a, s->b, s->c};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        all[i]->version = all[i]->pod_version = line_35;
    s->v.current = line_35;
    s->v.version = line_36;
}

static void test_log_of_34_is_trimmed_before_36(void **state)
{
    CLUSTER(s);
    step_to_36(&s);
    expect(&s, EC_DELETE_POD, B);
    intends(&s, EC_ROLL, B);
    s.v.action = s.move.intent;
    fall(s.b, 3);
    s.b->pod = EC_POD_ABSENT;
    expect(&s, EC_CREATE_POD, B);
    assert_true(s.move.trimmed);
    assert_int_equal(stw_semver_compare(s.move.version, line_35), 0);
    s.a->pod_trimmed = s.c->pod_trimmed = true; /* it is the last one: done, and then the upgrade */
    s.b->pod_trimmed = s.b->healthy = s.b->answers = true;
    s.b->pod = EC_POD_RUNNING;
    s.b->cluster_id = 0xabc;
    expect(&s, EC_FINISH, B);
    s.v.action = (struct ec_action){0};
    expect(&s, EC_DELETE_POD, B);
    intends(&s, EC_UPGRADE, B);
    s.v.action = s.move.intent;
    fall(s.b, 3);
    s.b->pod = EC_POD_ABSENT;
    s.b->pod_trimmed = false;
    expect(&s, EC_CREATE_POD, B);
    assert_false(s.move.trimmed);
    assert_int_equal(stw_semver_compare(s.move.version, line_36), 0);
}

static void test_no_36_on_a_log_of_34(void **state)
{
    CLUSTER(s);
    s.v.size = 4;
    struct ec_member *d = member(&s, "db-dddddddddd");
    step_to_36(&s);
    d->version = d->pod_version = line_35;
    s.a->pod_trimmed = s.c->pod_trimmed = d->pod_trimmed = true;
    s.v.action = (struct ec_action){.kind = EC_ROLL, .member = B, .start = NOW - 5};
    fall(s.b, 3);
    s.b->pod = EC_POD_ABSENT;
    s.b->learner = s.b->promoted = true; /* etcd has forgotten that it votes */
    expect(&s, EC_CREATE_POD, B);
    assert_int_equal(stw_semver_compare(s.move.version, line_35), 0);
    assert_true(s.move.trimmed);

    s = three();
    step_to_36(point(&s));
    s.a->pod_trimmed = s.c->pod_trimmed = true;
    s.b->version = s.b->pod_version = line_36;
    s.v.size = 4;
    struct ec_member *fresh = member(&s, FRESH);
    *fresh = (struct ec_member){.listed = true, .learner = true, .id = 9, .claim = true};
    (void)snprintf(fresh->name, sizeof(fresh->name), "%s", FRESH);
    fresh->created = NOW - 1;
    expect(&s, EC_CREATE_POD, FRESH); /* the others send it their log */
    assert_int_equal(stw_semver_compare(s.move.version, line_35), 0);
    assert_true(s.move.trimmed);
}

static void test_log_without_34_is_not_trimmed(void **state)
{
    CLUSTER(s);
    step_to_36(&s);
    s.v.oldest = (struct stw_semver){3, 5, 0};
    expect(&s, EC_DELETE_POD, B);
    intends(&s, EC_UPGRADE, B);
    s.v.oldest = (struct stw_semver){3, 4, 23};
    expect(&s, EC_DELETE_POD, B);
    intends(&s, EC_ROLL, B);
    s.v.version = line_35; /* back: trimmed pods are recreated like others */
    s.b->pod_trimmed = true;
    expect(&s, EC_DELETE_POD, B);
    s.b->pod_trimmed = false;
    expect(&s, EC_WAIT, "");
}

/* No member can be restarted, and a new member is sent the log of the others. */
static void test_log_of_34_that_cannot_be_trimmed_freezes(void **state)
{
    CLUSTER(s);
    step_to_36(&s);
    s.v.size = 1;
    s.v.count = 1;
    expect_words(&s, EC_FREEZE, "InvalidSpec", "Set spec.size to 3 first");
    s.v.durable = false;
    expect_words(&s, EC_FREEZE, "InvalidSpec", "Make a backup and restore it");
    s.v.oldest = line_35;
    expect(&s, EC_MEMBER_ADD, FRESH);
}

/* The versions that the members came from show that it is an upgrade. */
static void test_upgrade_cannot_be_turned_back(void **state)
{
    CLUSTER(s);
    go_down(&s);
    s.b->version = s.b->pod_version = line_35;
    s.v.current = line_35;
    s.v.cluster_version = (struct stw_semver){3, 5, 0};
    expect_words(&s, EC_FREEZE, "InvalidSpec", "upgrade to 3.6 is still running");
}

static void test_version_without_learners_freezes(void **state)
{
    CLUSTER(s);
    s.v.count = 0;
    s.v.cluster_id = 0;
    s.v.version = s.v.current = (struct stw_semver){3, 3, 27};
    expect_words(&s, EC_FREEZE, "InvalidSpec", "\"3.3.27\": members are added as learners");
    s.v.version = s.v.current = (struct stw_semver){3, 4, 0};
    ec_plan(&s.v, &s.move);
    assert_int_not_equal(s.move.act, EC_FREEZE);
}

static void test_two_members_get_a_third_for_an_upgrade(void **state)
{
    CLUSTER(s);
    s.v.size = 2;
    s.v.count = 2;
    s.v.version = new_version;
    expect(&s, EC_MEMBER_ADD, FRESH); /* stopping one of two would stop all */
    fall(s.b, 3);
    expect(&s, EC_WAIT, "");
}

static void test_corrected_spec_replaces_pods_that_do_not_start(void **state)
{
    CLUSTER(s);
    s.c->trouble = EC_TROUBLE_IMAGE;
    fall(s.c, 50);
    expect(&s, EC_WAIT, "");
    s.c->pod_template = false;
    expect(&s, EC_DELETE_POD, C);
    nobody_answers(&s, 50); /* also when too many of them do not start */
    expect(&s, EC_DELETE_POD, C);
    s.c->trouble = EC_TROUBLE_NONE;
    expect(&s, EC_FREEZE, "");
}

static void test_alarm_is_disarmed_when_there_is_space(void **state)
{
    CLUSTER(s);
    s.b->alarms = STW_ETCD_ALARM_NOSPACE;
    s.b->space = false;
    expect(&s, EC_WAIT, "");
    s.b->space = true;
    s.v.disarm_rests = true;
    expect(&s, EC_WAIT, "");
    s.v.disarm_rests = false;
    expect(&s, EC_DISARM, B);
    assert_int_equal(s.move.id, s.b->id);
    s.b->alarms = 0;
    s.v.stray_alarms = STW_ETCD_ALARM_NOSPACE;
    s.v.stray_id = 0xbad;
    expect(&s, EC_DISARM, "");
    assert_int_equal(s.move.id, 0xbad);
    s.c->space = false;
    expect(&s, EC_WAIT, "");
}

/* --- larger volumes */

static void test_volumes_grow_one_at_a_time(void **state)
{
    CLUSTER(s);
    s.a->volume = s.b->volume = s.c->volume = EC_VOLUME_SMALL;
    expect(&s, EC_EXPAND_CLAIM, A); /* the oldest */
    intends(&s, EC_EXPAND, A);
    s.v.action = s.move.intent;
    expect(&s, EC_EXPAND_CLAIM, A); /* steward died before it sent the patch */
    assert_true(ec_intended(&s.v, &s.move));
    s.a->volume = EC_VOLUME_GROWS;
    expect_words(&s, EC_WAIT, "ExpandingVolume", A);
    s.v.action.start = NOW - 6000; /* it takes long: no other one begins */
    expect_words(&s, EC_WAIT, "ExpandingVolume", A);
    s.a->volume = EC_VOLUME_FINE;
    expect(&s, EC_FINISH, A);
    s.v.action = (struct ec_action){0};
    expect(&s, EC_EXPAND_CLAIM, B);
    s.v.action = (struct ec_action){.kind = EC_EXPAND, .member = C, .start = NOW};
    expect(&s, EC_EXPAND_CLAIM, C); /* what was begun goes on */
}

static void test_growing_volume_becomes_the_current_action_again(void **state)
{
    CLUSTER(s);
    s.b->volume = EC_VOLUME_GROWS;
    s.c->volume = EC_VOLUME_SMALL;
    expect(&s, EC_INTEND, B);
    intends(&s, EC_EXPAND, B);
    s.c->pod_template = false; /* a change of the spec does not wait for the volume */
    s.v.action = s.move.intent;
    expect(&s, EC_DELETE_POD, C);
    intends(&s, EC_ROLL, C);
}

static void test_volumes_grow_while_there_is_a_quorum(void **state)
{
    CLUSTER(s);
    s.a->volume = s.b->volume = s.c->volume = EC_VOLUME_SMALL;
    fall(s.c, 50); /* its volume may be full */
    expect(&s, EC_EXPAND_CLAIM, C);
    s.c->volume = EC_VOLUME_FINE; /* it is something else */
    expect_words(&s, EC_WAIT, "MembersUnready", C);
    s.c->volume = EC_VOLUME_SMALL;
    nobody_answers(&s, 50);
    expect(&s, EC_FREEZE, "");
    assert_string_equal(s.move.reason, "QuorumLost");
}

static void test_no_volume_grows_while_a_member_lags(void **state)
{
    CLUSTER(s);
    s.a->volume = EC_VOLUME_SMALL;
    s.c->lagging = true;
    expect_words(&s, EC_WAIT, "ExpandingVolume", "when all members are healthy");
    s.c->lagging = false;
    s.a->foreign = true; /* it has no volume of ours */
    expect_words(&s, EC_FREEZE, "ForeignMember", A);
}

static void test_no_volume_grows_before_a_failed_learner_is_gone(void **state)
{
    CLUSTER(s);
    s.a->volume = EC_VOLUME_SMALL;
    s.v.action = (struct ec_action){.kind = EC_ABANDON, .member = FRESH, .start = NOW};
    *member(&s, FRESH) = (struct ec_member){
        .name = FRESH, .pod = EC_POD_GOING, .data = EC_DATA_THERE, .claim = true};
    expect_words(&s, EC_WAIT, "ExpandingVolume", "when all members are healthy");
    s.v.size = 4;
    expect_words(&s, EC_WAIT, "ScalingUp", "when pods and volumes of former ones are gone");
    s.v.action.start = NOW - 600; /* the node of its pod is lost: nothing waits for it any more */
    s.v.size = 3;
    expect(&s, EC_EXPAND_CLAIM, A);
    s.v.size = 4;
    s.v.fresh[0] = '\0'; /* there is no room for another member */
    expect_words(&s, EC_WAIT, "ScalingUp", "when pods and volumes of former ones are gone");
}

static void test_volume_that_cannot_grow_is_replaced_with_consent(void **state)
{
    CLUSTER(s);
    s.b->volume = EC_VOLUME_FIXED;
    s.c->volume = EC_VOLUME_REFUSED;
    expect_words(&s, EC_WAIT, "Settled", "3 of 3");
    s.v.replace_volumes = true;
    s.c->volume = EC_VOLUME_FINE;
    s.c->pod_template = false; /* its pod comes first */
    expect(&s, EC_DELETE_POD, C);
    s.c->pod_template = true;
    expect(&s, EC_MEMBER_ADD, FRESH);
    struct ec_member *d = member(&s, FRESH);
    expect(&s, EC_MEMBER_REMOVE, B); /* not the newest */
    d->healthy = d->answers = false;
    expect(&s, EC_MEMBER_REMOVE, FRESH);
}

static void test_refused_expansion_is_no_reason_to_replace(void **state)
{
    CLUSTER(s);
    s.v.replace_volumes = true;
    s.a->volume = s.b->volume = s.c->volume = EC_VOLUME_REFUSED;
    expect_words(&s, EC_WAIT, "Settled", "3 of 3");
}

/* --- intents */

static void test_intent_that_came_true_or_is_not_needed_ends(void **state)
{
    static const struct {
        enum ec_kind kind;
        const char *member;
    } cases[] = {
        {EC_SEED, A},        {EC_ADD, B},         {EC_PROMOTE, B}, {EC_REMOVE, FRESH},
        {EC_REPLACE, FRESH}, {EC_UPGRADE, C},     {EC_ROLL, C},    {EC_LEADER, B},
        {EC_FORCE, A},       {EC_ABANDON, FRESH}, {EC_EXPAND, A},  {EC_EXPAND, FRESH}, /* done */
        {EC_ADD, FRESH},     {EC_REPLACE, C},     {EC_LEADER, A}, /* not needed */
    };
    CLUSTER(s);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        s.v.action = (struct ec_action){.kind = cases[i].kind, .start = NOW - 5};
        (void)snprintf(s.v.action.member, EC_NAME_MAX, "%s", cases[i].member);
        ec_plan(&s.v, &s.move);
        assert_int_equal(s.move.act, EC_FINISH);
    }
}

/* --- defragmentation */

/* Three members in a pass; the first one leads. */
static struct cluster in_pass(void)
{
    struct cluster s = three();
    point(&s);
    s.v.upkeep = (struct ec_upkeep){.open = EC_WHY_REQUEST, .limit_s = 100};
    s.a->to_defragment = s.b->to_defragment = s.c->to_defragment = true;
    return s;
}

#define PASS(s)                                                                                    \
    struct cluster s = in_pass();                                                                  \
    (void)state;                                                                                   \
    point(&s)

static void begin_call(struct cluster *s, const char *name, int64_t age)
{
    s->v.action = (struct ec_action){.kind = EC_DEFRAGMENT, .start = NOW - age};
    (void)snprintf(s->v.action.member, EC_NAME_MAX, "%s", name);
}

static void expect_result(struct cluster *s, enum ec_result result)
{
    ec_plan(&s->v, &s->move);
    assert_int_equal(s->move.act, EC_FINISH);
    assert_int_equal(s->move.result, result);
}

static void test_leader_is_defragmented_last(void **state)
{
    PASS(s);
    expect(&s, EC_MEMBER_DEFRAGMENT, B);
    assert_int_equal(s.move.intent.kind, EC_DEFRAGMENT);
    s.b->to_defragment = false;
    expect(&s, EC_MEMBER_DEFRAGMENT, C);
    s.c->to_defragment = false;
    expect(&s, EC_MOVE_LEADER, A);
    assert_int_equal(s.move.intent.kind, EC_LEADER);
    s.a->leader = false;
    s.b->leader = true;
    expect(&s, EC_MEMBER_DEFRAGMENT, A);
    s.a->to_defragment = false;
    expect(&s, EC_END_PASS, "");
    assert_int_equal(s.move.result, EC_RESULT_DONE);
}

static void test_member_alone_is_defragmented(void **state)
{
    PASS(s);
    s.v.count = 1;
    s.v.size = 1;
    expect(&s, EC_MEMBER_DEFRAGMENT, A);
}

static void test_pass_begins_when_it_is_due(void **state)
{
    CLUSTER(s);
    expect(&s, EC_WAIT, "");
    s.v.upkeep.due = EC_WHY_SCHEDULE;
    expect(&s, EC_BEGIN_PASS, "");
    assert_int_equal(s.move.why, EC_WHY_SCHEDULE);
    s.v.paused = true;
    expect(&s, EC_WAIT, "");
}

/* Each of these, alone, lets a pass wait. */
static void test_pass_waits_while_something_else_is_wrong(void **state)
{
    (void)state;
    for (int i = 0;; i++) {
        PASS(s);
        switch (i) {
        case 0:
            fall(s.c, 5);
            break;
        case 1:
            s.c->lagging = true;
            break;
        case 2:
            s.c->pod = EC_POD_GOING;
            break;
        case 3:
            s.v.durable = true;
            begin_call(&s, C, 5);
            s.v.action.kind = EC_EXPAND;
            s.c->volume = EC_VOLUME_GROWS;
            break;
        case 4:
            s.v.downgrade_to = (struct stw_semver){3, 5, 0};
            break;
        case 5:
            s.a->leader = false;
            break;
        case 6:
            s.c->pod_template = false;
            s.v.last_rolled = NOW - 5;
            break;
        case 7:
            s.v.upkeep.busy = true;
            break;
        case 8:
            s.v.upkeep.taken = true;
            break;
        default:
            return;
        }
        ec_plan(&s.v, &s.move);
        if (s.move.act != EC_WAIT || !s.move.pass_waits)
            fail_msg("case %d: act %d", i, (int)s.move.act);
    }
}

/* It is dropped first. */
static void test_action_that_is_not_needed_comes_before_a_pass(void **state)
{
    PASS(s);
    s.v.action = (struct ec_action){.kind = EC_ADD, .start = NOW - 5};
    (void)snprintf(s.v.action.member, EC_NAME_MAX, "%s", FRESH);
    expect(&s, EC_FINISH, "");
}

static void test_nothing_is_changed_while_a_member_is_defragmented(void **state)
{
    PASS(s);
    begin_call(&s, C, 99);
    fall(s.c, 99);
    s.v.unhealthy_s = 60;
    s.v.size = 5;
    expect_words(&s, EC_WAIT, "Defragmenting", "is being defragmented");
    s.v.listed = false;
    s.v.quorum_lost_since = NOW - 90;
    expect_words(&s, EC_WAIT, "Defragmenting", "is being defragmented");
    s.v.listed = true;
    begin_call(&s, C, 100);
    expect_result(&s, EC_RESULT_FAILED);
    begin_call(&s, C, -1); /* a status that another client wrote */
    expect_result(&s, EC_RESULT_FAILED);
}

static void test_answer_ends_a_defragmentation(void **state)
{
    PASS(s);
    begin_call(&s, C, 3);
    s.v.upkeep.call = EC_RESULT_DONE;
    expect_result(&s, EC_RESULT_DONE);
    s.v.upkeep.call = EC_RESULT_FAILED;
    expect_result(&s, EC_RESULT_FAILED);
}

/* It is not known whether the call was made, or what etcd answered. */
static void test_interrupted_defragmentation_goes_on(void **state)
{
    PASS(s);
    begin_call(&s, C, 3);
    assert_true(ec_unsettled(&s.v));
    expect(&s, EC_MEMBER_DEFRAGMENT, C);
    assert_int_equal(s.move.intent.start, NOW - 3);
    s.c->to_defragment = false; /* its database has become smaller */
    expect_result(&s, EC_RESULT_DONE);
    s.c->to_defragment = true;
    s.a->leader = false;
    s.c->leader = true; /* it was elected meanwhile */
    expect_result(&s, EC_RESULT_NONE);
    s.a->leader = true;
    s.c->leader = false;
    fall(s.b, 5);
    expect_result(&s, EC_RESULT_NONE);
    s.b->healthy = s.b->answers = true;
    s.b->cluster_id = 0xabc;
    s.b->unhealthy_since = 0;
    s.b->volume = EC_VOLUME_GROWS;
    expect_result(&s, EC_RESULT_NONE);
    s.b->volume = EC_VOLUME_FINE;
    expect(&s, EC_MEMBER_DEFRAGMENT, C);
    s.v.upkeep.tries = 5; /* its process ends each time */
    expect_result(&s, EC_RESULT_FAILED);
    s.v.upkeep.tries = 4;
    s.v.action.member[0] = 'x'; /* it was removed */
    expect_result(&s, EC_RESULT_NONE);
}

static void test_member_whose_data_is_lost_is_not_waited_for(void **state)
{
    PASS(s);
    begin_call(&s, C, 3);
    fall(s.c, 3);
    s.c->data = EC_DATA_LOST;
    s.c->pod = EC_POD_ABSENT;
    s.c->claim = false;
    expect_result(&s, EC_RESULT_NONE);
}

static void test_history_is_compacted_before_members_are_defragmented(void **state)
{
    PASS(s);
    s.v.upkeep.open = EC_WHY_SPACE;
    s.v.upkeep.compact = true;
    s.a->alarms = STW_ETCD_ALARM_NOSPACE;
    s.a->space = false;
    expect(&s, EC_COMPACT_HISTORY, A);
    assert_int_equal(s.move.intent.kind, EC_COMPACT);
    s.v.action = s.move.intent;
    s.v.upkeep.call = EC_RESULT_DONE;
    expect_result(&s, EC_RESULT_DONE);
    s.v.action = (struct ec_action){0};
    s.v.upkeep.call = EC_RESULT_NONE;
    s.v.upkeep.compact = false;
    expect(&s, EC_MEMBER_DEFRAGMENT, B);
}

/* It has waited, or its answer was lost. */
static void test_history_is_not_compacted_once_the_reason_is_gone(void **state)
{
    PASS(s);
    s.v.upkeep.open = EC_WHY_SPACE;
    s.v.upkeep.compact = true;
    s.v.upkeep.ends = "no member has the alarm NOSPACE any more";
    expect(&s, EC_END_PASS, "");
    assert_int_equal(s.move.result, EC_RESULT_STOPPED);
    s.v.upkeep.ends = NULL;
    expect(&s, EC_COMPACT_HISTORY, A);
    s.v.action = s.move.intent;
    s.v.upkeep.ends = "maintenance.recoverSpace is false by now";
    expect_result(&s, EC_RESULT_NONE);
}

static void test_window_ends_a_pass_between_two_members(void **state)
{
    PASS(s);
    s.v.upkeep.ends = "its window has ended";
    begin_call(&s, C, 3);
    fall(s.c, 3);
    expect_words(&s, EC_WAIT, "Defragmenting", "is being defragmented");
    s.c->healthy = s.c->answers = true;
    s.v.action = (struct ec_action){0};
    expect(&s, EC_END_PASS, "");
    assert_int_equal(s.move.result, EC_RESULT_STOPPED);
}

static void test_versions_that_a_crash_damages_are_not_defragmented(void **state)
{
    PASS(s);
    for (size_t i = 0; i < 3; i++)
        s.v.members[i].version = s.v.members[i].pod_version = (struct stw_semver){3, 5, 5};
    s.v.version = s.v.current = (struct stw_semver){3, 5, 5};
    expect(&s, EC_END_PASS, "");
    assert_int_equal(s.move.result, EC_RESULT_FAILED);
    assert_non_null(strstr(s.move.text, "14685"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leader_is_defragmented_last),
        cmocka_unit_test(test_member_alone_is_defragmented),
        cmocka_unit_test(test_pass_begins_when_it_is_due),
        cmocka_unit_test(test_pass_waits_while_something_else_is_wrong),
        cmocka_unit_test(test_action_that_is_not_needed_comes_before_a_pass),
        cmocka_unit_test(test_nothing_is_changed_while_a_member_is_defragmented),
        cmocka_unit_test(test_answer_ends_a_defragmentation),
        cmocka_unit_test(test_interrupted_defragmentation_goes_on),
        cmocka_unit_test(test_member_whose_data_is_lost_is_not_waited_for),
        cmocka_unit_test(test_history_is_compacted_before_members_are_defragmented),
        cmocka_unit_test(test_history_is_not_compacted_once_the_reason_is_gone),
        cmocka_unit_test(test_window_ends_a_pass_between_two_members),
        cmocka_unit_test(test_versions_that_a_crash_damages_are_not_defragmented),
        cmocka_unit_test(test_member_of_a_deleted_pod_does_not_count),
        cmocka_unit_test(test_lost_promotion_freezes_the_cluster),
        cmocka_unit_test(test_doubted_promotion_stops_an_upgrade),
        cmocka_unit_test(test_intent_may_be_in_flight_until_the_list_shows_it),
        cmocka_unit_test(test_only_changes_of_members_are_decisions),
        cmocka_unit_test(test_intended_addition_keeps_its_name),
        cmocka_unit_test(test_settled_cluster_waits),
        cmocka_unit_test(test_missing_pod_is_recreated),
        cmocka_unit_test(test_new_cluster_begins_with_a_seed),
        cmocka_unit_test(test_restored_seed_keeps_its_volume),
        cmocka_unit_test(test_lost_status_is_restored_from_the_members),
        cmocka_unit_test(test_lost_quorum_freezes_with_advice),
        cmocka_unit_test(test_best_survivor_has_the_newest_term_and_index),
        cmocka_unit_test(test_nothing_is_forced_while_pods_are_ready),
        cmocka_unit_test(test_forced_start_goes_step_by_step),
        cmocka_unit_test(test_force_annotation_without_an_outage_expires),
        cmocka_unit_test(test_two_clusters_or_corrupt_data_freeze),
        cmocka_unit_test(test_foreign_member_freezes),
        cmocka_unit_test(test_size_out_of_range_freezes),
        cmocka_unit_test(test_failed_member_is_replaced_after_five_minutes),
        cmocka_unit_test(test_member_without_data_is_replaced_at_once),
        cmocka_unit_test(test_member_is_added_as_a_learner),
        cmocka_unit_test(test_newest_member_is_removed),
        cmocka_unit_test(test_pods_and_volumes_of_former_members_are_removed),
        cmocka_unit_test(test_members_are_upgraded_one_by_one),
        cmocka_unit_test(test_next_member_waits_until_the_previous_one_serves),
        cmocka_unit_test(test_leader_is_upgraded_last),
        cmocka_unit_test(test_versions_out_of_reach_freeze),
        cmocka_unit_test(test_downgrade_is_announced_to_etcd_first),
        cmocka_unit_test(test_no_older_etcd_on_newer_data),
        cmocka_unit_test(test_no_older_etcd_before_etcd_is_told),
        cmocka_unit_test(test_two_members_cannot_be_downgraded),
        cmocka_unit_test(test_downgrade_can_be_turned_back),
        cmocka_unit_test(test_log_of_34_is_trimmed_before_36),
        cmocka_unit_test(test_no_36_on_a_log_of_34),
        cmocka_unit_test(test_log_without_34_is_not_trimmed),
        cmocka_unit_test(test_log_of_34_that_cannot_be_trimmed_freezes),
        cmocka_unit_test(test_upgrade_cannot_be_turned_back),
        cmocka_unit_test(test_version_without_learners_freezes),
        cmocka_unit_test(test_two_members_get_a_third_for_an_upgrade),
        cmocka_unit_test(test_corrected_spec_replaces_pods_that_do_not_start),
        cmocka_unit_test(test_alarm_is_disarmed_when_there_is_space),
        cmocka_unit_test(test_volumes_grow_one_at_a_time),
        cmocka_unit_test(test_growing_volume_becomes_the_current_action_again),
        cmocka_unit_test(test_volumes_grow_while_there_is_a_quorum),
        cmocka_unit_test(test_no_volume_grows_while_a_member_lags),
        cmocka_unit_test(test_no_volume_grows_before_a_failed_learner_is_gone),
        cmocka_unit_test(test_volume_that_cannot_grow_is_replaced_with_consent),
        cmocka_unit_test(test_refused_expansion_is_no_reason_to_replace),
        cmocka_unit_test(test_intent_that_came_true_or_is_not_needed_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
