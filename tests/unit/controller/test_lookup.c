/* SPDX-License-Identifier: Apache-2.0
 *
 * Which changes of a custom object cause a run of its key. */
#include "controller/manager/manager_priv.h"
#include "kinds/myweb/reconcile.h"

#include "base/util.h"
#include "controller/packed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define OBJECT(meta, spec, status)                                                                 \
    "{\"metadata\":{\"name\":\"web\"" meta "},\"spec\":{" spec "},\"status\":{" status "}}"

/* What the run of the key itself writes does not cause another run, however early its event
 * comes. */
static const struct {
    const char *what, *before, *after;
    bool working, wakes;
} changes[] = {
    {"new", NULL, OBJECT("", "", ""), false, true},
    {"gone", OBJECT("", "", ""), NULL, true, true},
    {"its own status", OBJECT("", "\"a\":1", ""), OBJECT("", "\"a\":1", "\"b\":1"), true, false},
    {"another client's status", OBJECT("", "", ""), OBJECT("", "", "\"b\":1"), false, true},
    {"spec", OBJECT("", "\"a\":1", ""), OBJECT("", "\"a\":2", ""), true, true},
    {"spec and status", OBJECT("", "\"a\":1", ""), OBJECT("", "\"a\":2", "\"b\":1"), true, true},
    {"an annotation", OBJECT("", "", ""), OBJECT(",\"annotations\":{\"a\":\"b\"}", "", ""), true,
     true},
    {"a finalizer", OBJECT("", "", ""), OBJECT(",\"finalizers\":[\"a\"]", "", ""), true, true},
    {"deletion", OBJECT("", "", ""), OBJECT(",\"deletionTimestamp\":\"2026\"", "", ""), true, true},
};

static bool wakes(size_t i, bool packed)
{
    struct stw_worker_pool pool = {.controller = &stw_controller_myweb};
    struct stw_manager m = {.pools = &pool, .pool_count = 1};
    stw_autobuf struct stw_buf before = STW_BUF_INIT(4096), after = STW_BUF_INIT(4096);
    const char *old_text = changes[i].before, *new_text = changes[i].after;
    struct stw_queue *q = stw_queue_create("t", &stw_clock_system, NULL);
    pool.queue = q;
    if (packed && old_text && new_text) {
        stw_pack(old_text, strlen(old_text), &before);
        stw_pack(new_text, strlen(new_text), &after);
        old_text = stw_buf_str(&before);
        new_text = stw_buf_str(&after);
    }
    if (changes[i].working) {
        assert_int_equal(stw_queue_add(q, "shop/web", 0), 0);
        free(stw_queue_get(q));
    }
    stw_watch_own_changed(&m, stw_controller_myweb.own, "shop/web", old_text, new_text);
    stw_queue_done(q, "shop/web");
    bool woken = stw_queue_depth(q) == 1;
    stw_queue_destroy(q);
    return woken;
}

static void test_waiting_objects_are_woken_by_relevant_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(changes); i++)
        for (int packed = 0; packed < 2; packed++)
            if (wakes(i, packed) != changes[i].wakes)
                fail_msg("%s%s", changes[i].what, packed ? ", packed" : "");
}

/* Objects of other namespaces are not named, also where the names begin alike. */
static void test_objects_of_other_namespaces_are_not_named(void **state)
{
    static const struct {
        const char *self, *key, *told;
    } cases[] = {
        {"shop/other", "shop/web", "shop/web"},
        {"shop/other", "bank/web", "in another namespace"},
        {"shop/other", "shop2/web", "in another namespace"},
        {"shop/other", "sho/web", "in another namespace"},
        {NULL, "bank/web", "in another namespace"},
    };
    char out[512];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_name_to(cases[i].self, cases[i].key, out, sizeof(out));
        assert_string_equal(out, cases[i].told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_objects_are_woken_by_relevant_changes),
        cmocka_unit_test(test_objects_of_other_namespaces_are_not_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
