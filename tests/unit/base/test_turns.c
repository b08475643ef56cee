/* SPDX-License-Identifier: Apache-2.0 */
#include "base/turns.h"

#include "base/clock.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct entry {
    struct stw_turn turn; /* first */
    char key[32];
};

static struct entry *add(struct stw_turns *t, struct entry *e, const char *key)
{
    *e = (struct entry){0};
    stw_format(e->key, sizeof(e->key), "%s", key);
    assert_int_equal(stw_turns_join(t, &e->turn, key), 0);
    stw_turns_wait(t, &e->turn);
    return e;
}

static const char *key_of(const struct stw_turn *turn)
{
    return turn ? ((const struct entry *)turn)->key : "none";
}

static void assert_takes(struct stw_turns *t, const char *want)
{
    struct stw_turn *turn = stw_turns_first(t);
    assert_string_equal(key_of(turn), want);
    if (turn)
        stw_turns_take(t, turn);
}

static void quit_all(struct stw_turns *t, struct entry *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stw_turns_quit(t, &all[i].turn);
    assert_int_equal(stw_table_size(&t->groups), 0);
    assert_int_equal(t->waiting, 0);
    stw_turns_done(t);
}

static void test_groups_take_turns(void **state)
{
    struct stw_turns t;
    struct entry e[6];
    (void)state;
    stw_turns_init(&t, 0);
    add(&t, &e[0], "a/1");
    add(&t, &e[1], "a/2");
    add(&t, &e[2], "a/3");
    add(&t, &e[3], "b/1");
    add(&t, &e[4], "node");
    assert_takes(&t, "a/1");
    assert_takes(&t, "b/1");
    add(&t, &e[5], "b/2");
    assert_takes(&t, "node");
    assert_takes(&t, "a/2");
    assert_takes(&t, "b/2");
    assert_takes(&t, "a/3");
    assert_takes(&t, "none");
    quit_all(&t, e, STW_COUNT(e));
}

static void test_second_lane_waits_for_the_first(void **state)
{
    struct stw_turns t;
    struct entry e[3];
    (void)state;
    stw_turns_init(&t, 0);
    add(&t, &e[0], "a/1");
    stw_turns_stop_waiting(&t, &e[0].turn);
    e[0].turn.lane = 1;
    stw_turns_wait(&t, &e[0].turn);
    add(&t, &e[1], "a/2");
    add(&t, &e[2], "b/1");
    assert_string_equal(key_of(stw_turns_after(&t, &e[2].turn)), "a/1");
    assert_takes(&t, "a/2");
    assert_takes(&t, "b/1");
    assert_takes(&t, "a/1");
    quit_all(&t, e, STW_COUNT(e));
}

static void test_group_at_its_limit_is_skipped(void **state)
{
    struct stw_turns t;
    struct entry e[5];
    (void)state;
    stw_turns_init(&t, 2);
    for (int i = 0; i < 4; i++) {
        char key[8];
        stw_format(key, sizeof(key), "a/%d", i);
        add(&t, &e[i], key);
    }
    assert_takes(&t, "a/0");
    assert_takes(&t, "a/1");
    assert_int_equal(stw_turns_held(&e[0].turn), 2);
    assert_takes(&t, "none");
    add(&t, &e[4], "b/1");
    stw_turns_give_back(&t, &e[1].turn);
    stw_turns_give_back(&t, &e[1].turn); /* holds none any more */
    assert_takes(&t, "b/1");
    assert_takes(&t, "a/2");
    assert_takes(&t, "none");
    stw_turns_quit(&t, &e[0].turn);
    assert_takes(&t, "a/3");
    quit_all(&t, e, STW_COUNT(e));
}

static void test_turn_order_matches_a_model(void **state)
{
    enum { COUNT = 300 };
    static struct entry e[COUNT];
    struct stw_turns t;
    unsigned seed = 1, taken_of[5] = {0}, held[5] = {0};
    (void)state;
    stw_turns_init(&t, 3);
    for (int i = 0; i < COUNT; i++) {
        char key[16];
        stw_format(key, sizeof(key), "%d/%d", i % 5, i);
        add(&t, &e[i], key);
    }
    for (int step = 0; step < 5000; step++) {
        seed = seed * 1103515245U + 12345U;
        struct entry *any = &e[(seed >> 8) % COUNT];
        int ns = any->key[0] - '0';
        struct stw_turn *next = stw_turns_first(&t);
        if (any->turn.holds) {
            stw_turns_give_back(&t, &any->turn);
            held[ns]--;
            stw_turns_wait(&t, &any->turn);
        } else if (next) {
            int of = ((struct entry *)next)->key[0] - '0';
            stw_turns_take(&t, next);
            taken_of[of]++;
            assert_true(++held[of] <= 3);
        }
        unsigned all_held = 0;
        for (int i = 0; i < 5; i++)
            all_held += held[i];
        assert_true(stw_turns_first(&t) || all_held == 15);
        assert_int_equal(t.waiting, COUNT - all_held);
    }
    for (int i = 0; i < 5; i++)
        assert_true(taken_of[i] > 20);
    quit_all(&t, e, COUNT);
}

static void test_groups_without_a_slot_are_first(void **state)
{
    struct stw_turns t;
    struct entry e[5];
    (void)state;
    stw_turns_init(&t, STW_TURNS_NO_LIMIT);
    add(&t, &e[0], "a/1");
    add(&t, &e[1], "a/2");
    assert_takes(&t, "a/1");
    add(&t, &e[2], "b/1");
    add(&t, &e[3], "c/1");
    add(&t, &e[4], "c/2");
    assert_string_equal(key_of(stw_turns_after(&t, &e[3].turn)), "a/2");
    assert_takes(&t, "b/1");
    assert_takes(&t, "c/1");
    assert_takes(&t, "a/2");
    stw_turns_quit(&t, &e[0].turn);
    assert_takes(&t, "c/2");
    quit_all(&t, e, STW_COUNT(e));
}

/* With a search through those that wait, this takes minutes. */
static void test_many_waiting_entries_are_fast(void **state)
{
    enum { COUNT = 200000 };
    struct entry *e = calloc(COUNT, sizeof(*e));
    struct stw_turns t;
    (void)state;
    assert_non_null(e);
    stw_turns_init(&t, 1);
    for (int i = 0; i < COUNT; i++) {
        char key[32];
        stw_format(key, sizeof(key), "%d/%d", i % 2 ? 0 : i, i);
        add(&t, &e[i], key);
    }
    for (int taken = 0; taken < COUNT; taken++) {
        struct stw_turn *turn = stw_turns_first(&t);
        assert_non_null(turn);
        stw_turns_take(&t, turn);
        stw_turns_quit(&t, turn);
    }
    assert_null(stw_turns_first(&t));
    quit_all(&t, e, COUNT);
    free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_take_turns),
        cmocka_unit_test(test_second_lane_waits_for_the_first),
        cmocka_unit_test(test_group_at_its_limit_is_skipped),
        cmocka_unit_test(test_turn_order_matches_a_model),
        cmocka_unit_test(test_groups_without_a_slot_are_first),
        cmocka_unit_test(test_many_waiting_entries_are_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
