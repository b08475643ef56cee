/* SPDX-License-Identifier: Apache-2.0
 *
 * Which backups are made at a time, and which lose their places, with the clock passed in. */
#include "kinds/etcdbackup/places.h"

#include "base/process/memory_budget.h"
#include "base/util.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MIB(n) ((size_t)(n) << 20)
#define MINUTE 60000

struct world {
    struct eb_places p;
    uint64_t now_ms;
    struct eb_place *used[8];
    size_t count;
};

static void begin(struct world *w, size_t share)
{
    *w = (struct world){.now_ms = 1000000};
    eb_places_init(&w->p, share);
}

static void end(struct world *w)
{
    for (size_t i = 0; i < w->count; i++)
        eb_places_end(&w->p, w->used[i]);
    eb_places_done(&w->p);
}

static void come(struct world *w, const char *key)
{
    assert_non_null(eb_places_come(&w->p, key, w->now_ms));
}

/* Calls the next one, which must be `want`, and starts its transfer. */
static struct eb_place *start(struct world *w, const char *want)
{
    const struct eb_place *called = eb_places_call(&w->p, w->now_ms);
    assert_string_equal(called ? called->key : "none", want);
    struct eb_place *used = eb_places_use(&w->p, want, w->now_ms);
    assert_non_null(used);
    w->used[w->count++] = used;
    return used;
}

static void assert_nobody_is_called(struct world *w)
{
    assert_null(eb_places_call(&w->p, w->now_ms));
}

/* All of them: two attackers' namespaces have two each. */
static void fill(struct world *w)
{
    static const char *const keys[] = {"a/1", "a/2", "a/3", "b/1", "b/2", "b/3"};
    static const char *const order[] = {"a/1", "b/1", "a/2", "b/2"};
    for (size_t i = 0; i < STW_COUNT(keys); i++)
        come(w, keys[i]);
    for (size_t i = 0; i < STW_COUNT(order); i++)
        (void)start(w, order[i]);
    assert_nobody_is_called(w);
}

static enum eb_verdict judge_all(struct world *w, struct eb_place **ret)
{
    enum eb_verdict worst = EB_GOES_ON;
    *ret = NULL;
    for (size_t i = 0; i < w->count; i++) {
        enum eb_verdict v = eb_places_judge(&w->p, w->used[i], w->now_ms);
        if (v != EB_GOES_ON) {
            worst = v;
            *ret = w->used[i];
        }
    }
    return worst;
}

static void pass(struct world *w, uint64_t ms, uint64_t bytes_per_s)
{
    w->now_ms += ms;
    for (size_t i = 0; i < w->count; i++)
        w->used[i]->moved += ms / 1000 * bytes_per_s;
}

static void test_transfer_slots_fit_into_the_memory_share(void **state)
{
    static const struct {
        size_t limit_mib;
        unsigned places, of_namespace;
    } rows[] = {{64, 1, 1}, {128, 1, 1}, {256, 2, 1}, {512, 4, 2}, {4096, 4, 2}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct world w;
        stw_memory_budget_set((uint64_t)rows[i].limit_mib << 20);
        size_t share = stw_share_limit(STW_SHARE_TRANSFERS), part = eb_places_part_bytes(share);
        begin(&w, share);
        assert_int_equal(w.p.max, rows[i].places);
        assert_int_equal(w.p.of_namespace, rows[i].of_namespace);
        assert_true(part >= STW_STORE_PART_MIN_BYTES && part <= STW_STORE_PART_BYTES);
        if (rows[i].limit_mib >= 128)
            assert_true(w.p.max * (part + EB_TRANSFER_BYTES) <= share);
        end(&w);
    }
    stw_memory_budget_set(0);
}

static void test_namespaces_take_turns(void **state)
{
    struct world w;
    (void)state;
    begin(&w, MIB(64));
    fill(&w);
    come(&w, "c/1");
    eb_places_end(&w.p, w.used[--w.count]); /* b/2 */
    (void)start(&w, "c/1");                 /* before b/3 and a/3, whose namespaces have places */
    end(&w);
}

static void test_absent_key_loses_its_slot(void **state)
{
    struct world w;
    (void)state;
    begin(&w, MIB(8));
    come(&w, "a/paused");
    come(&w, "b/1");
    assert_non_null(eb_places_call(&w.p, w.now_ms));
    assert_nobody_is_called(&w);
    w.now_ms += EB_CALLED_MS + 1;
    (void)start(&w, "b/1");
    assert_null(eb_places_use(&w.p, "a/paused", w.now_ms));
    end(&w);
}

static void test_slow_transfers_end_while_others_wait(void **state)
{
    struct world w;
    struct eb_place *ended;
    (void)state;
    begin(&w, MIB(64));
    fill(&w);
    pass(&w, 10L * MINUTE, 0);
    assert_int_equal(judge_all(&w, &ended), EB_GOES_ON); /* of a and b only, which have theirs */
    come(&w, "c/1");
    for (int i = 0; i < 3; i++) {
        w.used[1]->moved += (uint64_t)MIB(16);
        w.used[2]->moved += (uint64_t)MIB(16);
        w.used[3]->moved += (uint64_t)MIB(16);
        enum eb_verdict v = judge_all(&w, &ended);
        if (i > 0) {
            assert_int_equal(v, i == 1 ? EB_TOO_SLOW : EB_GOES_ON); /* told once */
            assert_true(i > 1 || ended == w.used[0]);
        }
        w.now_ms += MINUTE;
    }
    end(&w);
}

static void test_steady_transfers_continue_until_their_turn_ends(void **state)
{
    struct world w;
    struct eb_place *ended;
    uint64_t waited_ms = 0;
    (void)state;
    begin(&w, MIB(64));
    fill(&w);
    come(&w, "c/1");
    while (judge_all(&w, &ended) == EB_GOES_ON) {
        pass(&w, MINUTE, 2UL * EB_SLOWEST_BYTES_PER_S);
        waited_ms += MINUTE;
        assert_true(waited_ms <= EB_TURN_MS);
    }
    assert_int_equal(waited_ms, EB_TURN_MS);
    pass(&w, MINUTE, 2UL * EB_SLOWEST_BYTES_PER_S);
    struct eb_place *second;
    assert_int_equal(judge_all(&w, &second), EB_GOES_ON); /* one is enough */
    for (size_t i = 0; i < w.count; i++)
        if (w.used[i] == ended)
            w.used[i] = w.used[--w.count];
    eb_places_end(&w.p, ended);
    (void)start(&w, "c/1");
    pass(&w, 2UL * EB_TURN_MS, 2UL * EB_SLOWEST_BYTES_PER_S);
    assert_int_equal(judge_all(&w, &ended), EB_GOES_ON); /* no namespace waits without a place */
    end(&w);
}

/* With a search through all of them for each, this takes minutes. */
static void test_very_many_waiting_keys_are_served_fast(void **state)
{
    enum { COUNT = 100000 };
    struct world w;
    char key[32];
    (void)state;
    begin(&w, MIB(64));
    for (int i = 0; i < COUNT; i++) {
        stw_format(key, sizeof(key), "ns%d/%d", i % 7, i);
        come(&w, key);
    }
    for (int i = 0; i < COUNT; i++) {
        const struct eb_place *called = eb_places_call(&w.p, w.now_ms);
        assert_non_null(called);
        stw_format(key, sizeof(key), "%s", called->key);
        eb_places_end(&w.p, eb_places_use(&w.p, key, w.now_ms));
    }
    assert_nobody_is_called(&w);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfer_slots_fit_into_the_memory_share),
        cmocka_unit_test(test_namespaces_take_turns),
        cmocka_unit_test(test_absent_key_loses_its_slot),
        cmocka_unit_test(test_slow_transfers_end_while_others_wait),
        cmocka_unit_test(test_steady_transfers_continue_until_their_turn_ends),
        cmocka_unit_test(test_very_many_waiting_keys_are_served_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
