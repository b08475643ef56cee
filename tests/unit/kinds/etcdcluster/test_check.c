/* SPDX-License-Identifier: Apache-2.0
 *
 * What a move waits for, and what is read from the API server before it. */
#include "base/fence.h"
#include "fake.h"
#include "fixture.h"
#include "kinds/etcdcluster/act/act.h"
#include "kinds/etcdcluster/act/maintenance_turn.h"
#include "kinds/etcdcluster/act/turn.h"
#include "kinds/etcdcluster/observe/check.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/runtime.h"

#include <unistd.h>

#define SPEC "{\"size\":3,\"version\":\"3.5.16\"}"
#define STATUS(action)                                                                             \
    "{\"clusterID\":\"000000000000abcd\",\"storage\":{\"medium\":\"Persistent\"},"                 \
    "\"currentAction\":{\"kind\":\"" action "\",\"startTime\":\"2024-01-01T00:00:00Z\"}}"
#define ADDS(name) STATUS("AddMember\",\"member\":\"" name)
#define A "db-bbbbbbbbbb"
#define B "db-cccccccccc"
#define C "db-dddddddddd"

/* --- a cluster with the state of the controller and an API server */

static void begin(struct fixture *f, const char *status)
{
    const struct stw_manager_config config = {0};
    struct stw_error err = {0};
    void *runtime = NULL;
    fixture_init(f, SPEC, status);
    assert_int_equal(ec_runtime_open(NULL, &config, &runtime, &err), 0);
    f->e->runtime = runtime;
    f->run.client = fake.client;
    f->e->view.durable = f->e->view.failover = f->e->view.listed = true;
    f->e->view.unhealthy_s = 300;
    f->e->view.deadline_s = 600;
    f->e->view.max_per_hour = 2;
    f->e->view.action = f->e->state.action;
    fixture_member(f, A, 1)->leader = true;
    fixture_member(f, B, 2);
    ec_fresh_name(f->e, f->e->view.fresh);
}

static void end(struct fixture *f)
{
    ec_runtime_close(f->e->runtime);
    fixture_done(f);
}

static void decides(struct fixture *f, enum ec_act act, const char *member)
{
    if (ec_decide(f->e) != 0)
        fail_msg("%s", f->e->err.text);
    assert_int_equal(f->e->move.act, act);
    assert_string_equal(f->e->move.member, member);
}

static void waits(struct fixture *f, uint64_t ms)
{
    decides(f, EC_WAIT, "");
    assert_null(f->e->move.reason);
    assert_int_equal(f->e->move.wait_ms, ms);
}

/* --- a call to etcd that may be in flight */

/* The calls of the previous steward are not known: only its intent is. */
static void test_intent_of_a_former_process_is_waited_for(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, ADDS(C));
    waits(&f, 10000);
    f.now.ms += 9999;
    waits(&f, 1);
    f.now.ms += 1;
    decides(&f, EC_MEMBER_ADD, C);
    end(&f);
}

/* Another replica led meanwhile. */
static void test_intent_of_another_leader_is_waited_for(void **state)
{
    struct fixture f;
    struct stw_fence_epoch epoch = {.number = 1};
    (void)state;
    begin(&f, "{\"clusterID\":\"000000000000abcd\",\"storage\":{\"medium\":\"Persistent\"}}");
    struct stw_fence *fence = stw_fence_create(&f.clock);
    assert_non_null(fence);
    stw_fence_open(fence, STW_FENCE_FOREVER, &epoch);
    (void)stw_fence_enter(stw_fence_take(fence));
    decides(&f, EC_MEMBER_ADD, f.e->view.fresh);
    stw_fence_close(fence);
    stw_fence_open(fence, STW_FENCE_FOREVER, &epoch);
    (void)stw_fence_enter(stw_fence_take(fence));
    f.e->view.action = f.e->move.intent; /* of the other one */
    waits(&f, 10000);
    f.now.ms += 10000;
    decides(&f, EC_MEMBER_ADD, f.e->view.action.member);
    (void)stw_fence_enter((struct stw_fence_ticket){0});
    stw_fence_destroy(fence);
    end(&f);
}

static void test_intent_shown_by_the_list_is_not_waited_for(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, ADDS(C));
    struct ec_member *c = fixture_member(&f, C, 3);
    c->learner = true;
    c->pod = EC_POD_ABSENT;
    c->healthy = c->answers = false;
    decides(&f, EC_CREATE_POD, C);
    c->pod = EC_POD_RUNNING;
    c->healthy = c->answers = true;
    decides(&f, EC_MEMBER_PROMOTE, C); /* the wait is over */
    end(&f);
}

/* Another intent would be another decision; recreating a pod is not. */
static void test_pods_are_recreated_while_an_intent_is_waited_for(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, ADDS(C));
    f.e->view.size = 2;
    waits(&f, 10000); /* the intent is not dropped */
    struct ec_member *b = &f.e->view.members[1];
    b->healthy = b->answers = false;
    b->pod = EC_POD_ABSENT;
    decides(&f, EC_CREATE_POD, B);
    end(&f);
}

static void test_intent_without_a_call_is_not_waited_for(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, STATUS("RollMember\",\"member\":\"" B));
    f.e->view.members[1].pod_template = false;
    f.e->view.size = 2;
    f.e->view.action = (struct ec_action){0};
    decides(&f, EC_MEMBER_ADD, f.e->view.fresh);
    end(&f);
}

static void test_lost_answer_is_waited_for(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "{\"clusterID\":\"000000000000abcd\",\"storage\":{\"medium\":\"Persistent\"}}");
    decides(&f, EC_MEMBER_ADD, f.e->view.fresh);
    struct ec_kept *kept = ec_runtime_get(f.e->runtime, &f.run);
    f.e->view.action = f.e->move.intent;
    kept->unsure_until_ms = f.now.ms + EC_UNSURE_MS;
    waits(&f, 10000);
    f.now.ms += 10000;
    decides(&f, EC_MEMBER_ADD, f.e->view.action.member);
    end(&f);
}

/* A wait is not an error: a learner that has not caught up is tried again, and nothing is
 * reported. */
static void test_answer_of_etcd_is_done_a_wait_or_an_error(void **state)
{
    static const struct {
        enum stw_etcd_trouble trouble;
        int means;
        bool unsure;
    } cases[] = {
        {STW_ETCD_FINE, 1, false},        {STW_ETCD_EXISTS, 1, false},
        {STW_ETCD_NOT_FOUND, 1, false},   {STW_ETCD_NOT_READY, 0, false},
        {STW_ETCD_UNHEALTHY, 0, false},   {STW_ETCD_TOO_MANY_LEARNERS, 0, false},
        {STW_ETCD_UNREACHABLE, -1, true}, {STW_ETCD_NO_LEADER, -1, true},
        {STW_ETCD_FAILED, -1, true},      {STW_ETCD_AUTH, -1, false},
        {STW_ETCD_CORRUPT, -1, false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        begin(&f, ADDS(C));
        struct ec_kept *kept = ec_runtime_get(f.e->runtime, &f.run);
        int rc = cases[i].trouble == STW_ETCD_FINE
                     ? 0
                     : stw_fail(&f.e->err, STW_ERR_UNAVAILABLE, "not now");
        if (ec_answer(f.e, rc, cases[i].trouble, kept) != cases[i].means)
            fail_msg("case %zu", i);
        assert_int_equal(f.e->err.code, cases[i].means < 0 ? STW_ERR_UNAVAILABLE : STW_OK);
        assert_int_equal(kept->unsure_until_ms, cases[i].unsure ? f.now.ms + EC_UNSURE_MS : 0);
        end(&f);
    }
}

/* --- clients between runs */

static bool keeps_client(struct fixture *f, const char *key, const char *ca)
{
    struct stw_run run = f->run;
    struct stw_error err = {0};
    const struct stw_etcd_config config = {.tls = {.ca = ca}};
    run.key = key;
    struct ec_kept *kept = ec_runtime_get(f->e->runtime, &run);
    assert_int_equal(ec_runtime_use(f->e->runtime, kept, &config, &err), 0);
    (void)snprintf(kept->secret_versions, sizeof(kept->secret_versions), "1");
    ec_runtime_rest(f->e->runtime, key);
    assert_true(kept->etcd || !*kept->secret_versions); /* the next run makes it again */
    return kept->etcd;
}

/* Those of many EtcdClusters would fill the memory. */
static void test_large_certificates_are_not_kept(void **state)
{
    struct fixture f;
    size_t kept = 0;
    char *ca = calloc(1, (40 << 10) + 1), key[32];
    (void)state;
    assert_non_null(ca);
    begin(&f, STATUS("Idle"));
    memset(ca, 'c', 40 << 10);
    assert_false(keeps_client(&f, "shop/large", ca));
    ca[30 << 10] = '\0';
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof(key), "shop/c%d", i);
        kept += keeps_client(&f, key, ca);
    }
    assert_in_range(kept * (30 << 10), (8 << 20) - (30 << 10), 8 << 20);
    assert_false(keeps_client(&f, "shop/more", ca));
    assert_true(keeps_client(&f, "shop/plain", NULL));
    for (int i = 0; i < 10; i++) {
        (void)snprintf(key, sizeof(key), "shop/c%d", i);
        ec_runtime_forget(f.e->runtime, key);
    }
    assert_true(keeps_client(&f, "shop/more", ca));
    free(ca);
    end(&f);
}

/* --- names */

#define PATH "GET /api/v1/namespaces/shop/"
#define USED "db-hhhhhhhhhh"

static void test_used_name_of_a_member_is_not_taken(void **state)
{
    static const char *const plurals[] = {"pods", "persistentvolumeclaims"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(plurals); i++) {
        struct fixture f;
        char step[256], path[128], first[EC_NAME_MAX];
        begin(&f, ADDS(USED));
        ec_runtime_get(f.e->runtime, &f.run)->seen = true;
        (void)snprintf(path, sizeof(path), PATH "%s/" USED, plurals[i]);
        (void)snprintf(step, sizeof(step), "[{'match':'%s$','body':{}}]", path);
        (void)snprintf(first, sizeof(first), "%s", f.e->view.fresh);
        fake_steps(&fake, step);
        assert_int_equal(ec_decide(f.e), 0);
        assert_int_equal(f.e->move.act, EC_MEMBER_ADD);
        assert_string_not_equal(f.e->move.member, USED);
        assert_string_not_equal(f.e->move.member, first);
        assert_string_equal(f.e->move.intent.member, f.e->move.member);
        assert_int_equal(fake_count(&fake, path), 1);
        /* The other name was checked, too: a pod and a claim. */
        (void)snprintf(path, sizeof(path), "/%s ", f.e->move.member);
        assert_int_equal(fake_count(&fake, path), 2);
        end(&f);
    }
}

static void test_unknown_name_of_a_member_is_not_taken(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "{\"clusterID\":\"000000000000abcd\",\"storage\":{\"medium\":\"Persistent\"}}");
    fake_steps(&fake, "[{'match':'" PATH "pods/','status':500,'body':'x'}]");
    assert_int_equal(ec_decide(f.e), -1);
    assert_int_equal(f.e->err.code, STW_ERR_UNAVAILABLE);
    assert_non_null(strstr(f.e->err.text, "cannot see whether Pod \"db-"));
    end(&f);
}

static void test_used_names_end_in_an_error(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "{\"clusterID\":\"000000000000abcd\",\"storage\":{\"medium\":\"Persistent\"}}");
    fake_steps(&fake, "[{'match':'" PATH "pods/','body':{},'times':3}]");
    assert_int_equal(ec_decide(f.e), -1);
    assert_int_equal(f.e->err.code, STW_ERR_CONFLICT);
    end(&f);
}

/* --- before a cluster of one member */

static void test_forced_start_waits_for_pods_that_are_left(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, ADDS(C));
    assert_int_equal(ec_check_cleared(f.e), 0);
    fake_steps(&fake, "[{'match':'" PATH "pods/" B "','body':{}}]");
    assert_int_equal(ec_check_cleared(f.e), -1);
    assert_int_equal(f.e->err.code, STW_ERR_CONFLICT);
    assert_string_equal(f.e->err.text, "pod \"" B "\" is still there");
    end(&f);
}

/* --- the turn of a node */

static void in_pass(struct fixture *f, const char *node)
{
    struct ec_view *v = &f->e->view;
    v->upkeep = (struct ec_upkeep){.open = EC_WHY_REQUEST, .limit_s = 100};
    f->e->state.pass.open = true;
    v->size = (int64_t)v->count;
    for (size_t i = 0; i < v->count; i++) {
        v->members[i].to_defragment = true;
        (void)snprintf(f->e->details[i].pod.node, sizeof(f->e->details[i].pod.node), "%s", node);
    }
}

/* The second cluster waits until the member of the first one is done. */
static void test_two_clusters_on_one_node_take_turns(void **state)
{
    struct fixture f, g;
    (void)state;
    begin(&f, STATUS(""));
    begin(&g, STATUS(""));
    (void)ec_turns_new_term(ec_runtime_turns(f.e->runtime), stw_fence_current().term);
    void *other = g.e->runtime;
    g.e->runtime = f.e->runtime;
    g.run.key = "else/db";
    g.e->owner.ns = "else";
    in_pass(&f, "node-1");
    in_pass(&g, "node-1");
    decides(&f, EC_MEMBER_DEFRAGMENT, B);
    decides(&g, EC_WAIT, "");
    assert_non_null(strstr(g.e->move.pass_waits, "same nodes"));
    f.e->state.action = f.e->move.intent;
    ec_end_turn(f.e); /* it is under way */
    in_pass(&g, "node-1");
    decides(&g, EC_WAIT, "");
    f.e->state.action = (struct ec_action){0};
    ec_end_turn(f.e);
    in_pass(&g, "node-1");
    decides(&g, EC_MEMBER_DEFRAGMENT, B);
    in_pass(&f, "node-2");
    decides(&f, EC_MEMBER_DEFRAGMENT, B);
    g.e->runtime = other;
    end(&g);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_clusters_on_one_node_take_turns),
        cmocka_unit_test(test_intent_of_a_former_process_is_waited_for),
        cmocka_unit_test(test_intent_of_another_leader_is_waited_for),
        cmocka_unit_test(test_intent_shown_by_the_list_is_not_waited_for),
        cmocka_unit_test(test_pods_are_recreated_while_an_intent_is_waited_for),
        cmocka_unit_test(test_intent_without_a_call_is_not_waited_for),
        cmocka_unit_test(test_lost_answer_is_waited_for),
        cmocka_unit_test(test_answer_of_etcd_is_done_a_wait_or_an_error),
        cmocka_unit_test(test_large_certificates_are_not_kept),
        cmocka_unit_test(test_used_name_of_a_member_is_not_taken),
        cmocka_unit_test(test_unknown_name_of_a_member_is_not_taken),
        cmocka_unit_test(test_used_names_end_in_an_error),
        cmocka_unit_test(test_forced_start_waits_for_pods_that_are_left),
    };
    return cmocka_run_group_tests(tests, fake_set_up, fake_tear_down);
}
