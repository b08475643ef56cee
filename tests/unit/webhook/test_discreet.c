/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/discreet.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct world {
    const char *holder;
    struct stw_secret_facts facts;
    int rc;
    unsigned looks;
    uint64_t now_ms;
};

static bool world_find(void *ctx, const char *index, const char *key, const char *self,
                       char *ret_holder)
{
    const struct world *w = ctx;
    (void)index, (void)key, (void)self;
    if (w->holder)
        snprintf(ret_holder, 512, "%s", w->holder);
    return w->holder != NULL;
}

static int world_secret(void *ctx, const char *ns, const char *name, const char *key,
                        struct stw_secret_facts *ret)
{
    struct world *w = ctx;
    (void)ns, (void)name, (void)key;
    w->looks++;
    *ret = w->facts;
    return w->rc;
}

static uint64_t world_now(void *ctx)
{
    const struct world *w = ctx;
    return w->now_ms;
}

static const struct stw_secret_facts all = {.secret_there = true, .key_there = true, .len = 3};

static void test_holder_of_a_name_is_shown_in_own_namespace(void **state)
{
    static const struct {
        const char *holder, *self, *told;
    } cases[] = {
        {"shop/web", "shop/other", "shop/web"},
    };
    char holder[512];
    struct world w = {0};
    struct stw_discreet d;
    struct stw_clock clock = {.ctx = &w, .monotonic_ms = world_now};
    const struct stw_lookup inner = {.ctx = &w, .find = world_find};
    (void)state;
    stw_discreet_init(&d, &inner, true, &clock);
    assert_null(d.lookup.has);
    assert_null(d.lookup.secret);
    assert_false(d.lookup.find(d.lookup.ctx, "i", "k", "shop/a", holder));
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        w.holder = cases[i].holder;
        assert_true(d.lookup.find(d.lookup.ctx, "i", "k", cases[i].self, holder));
        assert_string_equal(holder, cases[i].told);
    }
    stw_discreet_done(&d);
}

static void test_secret_facts_are_hidden_from_unknown_callers(void **state)
{
    struct world w = {.facts = all};
    struct stw_discreet d;
    struct stw_secret_facts got;
    struct stw_clock clock = {.ctx = &w, .monotonic_ms = world_now};
    const struct stw_lookup inner = {.ctx = &w, .secret = world_secret};
    (void)state;
    stw_discreet_init(&d, &inner, true, &clock);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(d.lookup.secret(d.lookup.ctx, "n", "s", "k", &got), 0);
    assert_memory_equal(&got, &all, sizeof(all));
    stw_discreet_done(&d);

    stw_discreet_init(&d, &inner, false, &clock);
    stw_discreet_serve(1);
    w.looks = 0;
    assert_int_equal(d.lookup.secret(d.lookup.ctx, "n", "s", "k", &got), -1);
    assert_false(got.key_there || got.len || got.secret_there);
    w.facts = (struct stw_secret_facts){0};
    assert_int_equal(d.lookup.secret(d.lookup.ctx, "n", "s", "k", &got), 0);
    assert_false(got.secret_there);
    for (unsigned i = 0; i < 100; i++)
        (void)d.lookup.secret(d.lookup.ctx, "n", "s", "k", &got);
    assert_int_equal(w.looks, 20);
    w.now_ms += 1000;
    for (unsigned i = 0; i < 100; i++)
        (void)d.lookup.secret(d.lookup.ctx, "n", "s", "k", &got);
    assert_int_equal(w.looks, 25);
    w.rc = -1;
    w.now_ms += 1000;
    assert_int_equal(d.lookup.secret(d.lookup.ctx, "n", "s", "k", &got), -1);
    stw_discreet_done(&d);
}

/* One address uses all that it gets; another one is still served, and the sum is bounded. */
static void test_lookups_of_one_address_are_limited(void **state)
{
    struct world w = {0};
    struct stw_discreet d;
    struct stw_secret_facts got;
    struct stw_clock clock = {.ctx = &w, .monotonic_ms = world_now};
    const struct stw_lookup inner = {.ctx = &w, .secret = world_secret};
    (void)state;
    stw_discreet_init(&d, &inner, false, &clock);
    for (int second = 0; second < 20; second++) {
        stw_discreet_serve(66);
        for (unsigned i = 0; i < 100; i++)
            (void)d.lookup.secret(d.lookup.ctx, "n", "s", "k", &got);
        stw_discreet_serve(7);
        assert_int_equal(d.lookup.secret(d.lookup.ctx, "n", "s", "k", &got), 0);
        w.now_ms += 1000;
    }
    for (uint64_t peer = 100; peer < 1000; peer++) {
        stw_discreet_serve(peer);
        (void)d.lookup.secret(d.lookup.ctx, "n", "s", "k", &got);
    }
    assert_in_range(w.looks, 100, 60 + 20 * 5);
    stw_discreet_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holder_of_a_name_is_shown_in_own_namespace),
        cmocka_unit_test(test_secret_facts_are_hidden_from_unknown_callers),
        cmocka_unit_test(test_lookups_of_one_address_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
