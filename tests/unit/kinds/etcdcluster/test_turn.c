/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdcluster/act/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define HOLD_MS 100000

static struct ec_turn of(const char *ns, const char *cluster, const char *one, const char *two,
                         uint64_t now_ms)
{
    return (struct ec_turn){.ns = ns,
                            .cluster = cluster,
                            .nodes = {one, two},
                            .count = two ? 2 : 1,
                            .now_ms = now_ms,
                            .time_ms = HOLD_MS};
}

static bool take(struct ec_turns *t, const char *ns, const char *cluster, const char *one,
                 const char *two, uint64_t now_ms)
{
    struct ec_turn turn = of(ns, cluster, one, two, now_ms);
    return ec_turns_take(t, &turn);
}

static void test_one_cluster_at_a_time_on_a_node(void **state)
{
    struct ec_turns *t = ec_turns_create();
    (void)state;
    assert_true(take(t, "a", "a/x", "n1", "n2", 1000));
    assert_false(take(t, "b", "b/x", "n2", "n3", 2000));
    assert_true(take(t, "c", "c/x", "n4", NULL, 2000)); /* no node in common */
    assert_true(take(t, "a", "a/x", "n1", "n2", 3000)); /* the same again */
    ec_turns_end(t, "a/x");
    assert_true(take(t, "b", "b/x", "n2", "n3", 4000));
    assert_false(take(t, "a", "a/x", "n1", "n2", 5000));
    ec_turns_destroy(t);
}

/* Its process may have forgotten it, or its member never answers. */
static void test_turn_ends_after_its_time(void **state)
{
    struct ec_turns *t = ec_turns_create();
    (void)state;
    assert_true(take(t, "a", "a/x", "n1", NULL, 1000));
    assert_false(take(t, "b", "b/x", "n1", NULL, 1000 + HOLD_MS - 1));
    assert_true(take(t, "b", "b/x", "n1", NULL, 1000 + HOLD_MS));
    ec_turns_destroy(t);
}

/* A tenant with many clusters that always want a turn delays another one by one turn. */
static void test_namespace_that_had_its_turn_comes_last(void **state)
{
    struct ec_turns *t = ec_turns_create();
    uint64_t now = 1000;
    char names[100][24];
    unsigned turns = 0;
    (void)state;
    for (int i = 0; i < 100; i++)
        (void)snprintf(names[i], sizeof(names[i]), "evil/%02d", i);
    assert_true(take(t, "evil", names[0], "n1", "n2", now));
    assert_false(take(t, "good", "good/x", "n2", NULL, ++now));
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 100; i++)
            (void)take(t, "evil", names[i], "n1", "n2", ++now);
        if (take(t, "good", "good/x", "n2", NULL, ++now))
            break;
        turns++;
        for (int i = 0; i < 100; i++) /* the one that has it gives it back */
            ec_turns_end(t, names[i]);
    }
    assert_in_range(turns, 0, 1);
    ec_turns_destroy(t);
}

/* It must not keep a place that it does not use. */
static void test_one_that_asks_no_more_waits_no_more(void **state)
{
    struct ec_turns *t = ec_turns_create();
    (void)state;
    assert_true(take(t, "a", "a/x", "n1", NULL, 1000));
    assert_false(take(t, "b", "b/x", "n1", "n2", 2000));
    ec_turns_end(t, "a/x");
    assert_false(take(t, "a", "a/y", "n1", NULL, 3000)); /* b comes first */
    assert_true(take(t, "a", "a/y", "n1", NULL, 2000 + EC_TURN_STALE_MS));
    ec_turns_destroy(t);
}

/* Each waits for two nodes of which the other one has a place: one of them gets both. */
static void test_crossed_nodes_do_not_block_each_other(void **state)
{
    struct ec_turns *t = ec_turns_create();
    (void)state;
    assert_true(take(t, "h", "h/x", "n1", "n2", 1000));
    assert_false(take(t, "a", "a/x", "n1", "n2", 2000));
    assert_false(take(t, "b", "b/x", "n2", "n1", 2000));
    ec_turns_end(t, "h/x");
    bool b = take(t, "b", "b/x", "n2", "n1", 3000), a = take(t, "a", "a/x", "n1", "n2", 3000);
    assert_true(a != b);
    ec_turns_end(t, a ? "a/x" : "b/x");
    assert_true(take(t, a ? "b" : "a", a ? "b/x" : "a/x", "n1", "n2", 4000));
    ec_turns_destroy(t);
}

static void test_new_leader_adopts_what_is_under_way(void **state)
{
    struct ec_turns *t = ec_turns_create();
    struct ec_turn old = of("a", "a/x", "n1", NULL, 1000);
    (void)state;
    assert_true(ec_turns_new_term(t, 3));
    assert_false(ec_turns_new_term(t, 3));
    assert_true(ec_turns_new_term(t, 4));
    ec_turns_hold(t, &old);
    assert_false(take(t, "b", "b/x", "n1", NULL, 2000));
    ec_turns_end(t, "a/x");
    assert_true(take(t, "b", "b/x", "n1", NULL, 3000));
    ec_turns_destroy(t);
}

static void test_nodes_are_forgotten(void **state)
{
    struct ec_turns *t = ec_turns_create();
    char name[24];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        assert_true(take(t, "a", "a/x", name, NULL, 1000 + (uint64_t)i * HOLD_MS));
    }
    assert_in_range(ec_turns_size(t), 1, 2);
    ec_turns_end(t, "a/x");
    assert_int_equal(ec_turns_size(t), 0);
    ec_turns_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_cluster_at_a_time_on_a_node),
        cmocka_unit_test(test_turn_ends_after_its_time),
        cmocka_unit_test(test_namespace_that_had_its_turn_comes_last),
        cmocka_unit_test(test_one_that_asks_no_more_waits_no_more),
        cmocka_unit_test(test_crossed_nodes_do_not_block_each_other),
        cmocka_unit_test(test_new_leader_adopts_what_is_under_way),
        cmocka_unit_test(test_nodes_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
