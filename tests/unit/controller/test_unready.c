/* SPDX-License-Identifier: Apache-2.0
 *
 * Which objects are named as not ready, and how namespaces share the places. */
#include "base/util.h"
#include "controller/manager/manager_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct stw_manager manager = {.pool_count = 2};

static void look(struct stw_unready *u, uint32_t pool, const char *key, const char *object)
{
    stw_autojson struct stw_json_doc doc = {0};
    assert_int_equal(stw_json_scan(&doc, object, strlen(object), NULL), 0);
    stw_unready_look(u, pool, key, stw_json_root(&doc));
}

static void add(struct stw_unready *u, uint32_t pool, const char *ns, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char key[64];
        stw_format(key, sizeof(key), "%s/web-%u", ns, i);
        look(u, pool, key, "{}");
    }
}

static unsigned count_named(const struct stw_unready *u, const char *ns)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < u->count; i++)
        n += strncmp(u->all[i].key, ns, strlen(ns)) == 0 && u->all[i].key[strlen(ns)] == '/';
    return n;
}

/* Conditions as the caches keep them: type, status, generation, since, reason, message. */
#define CONDITION(type, status)                                                                    \
    "[\"" type "\",\"" status "\",1,\"2026-01-01T00:00:00Z\",\"Why\",\"m\"]"
#define OBJECT(conditions) "{\"status\":{\"conditions\":[" conditions "]}}"

static void test_unready_reason_follows_the_conditions(void **state)
{
    static const struct {
        const char *object, *want; /* NULL: ready */
    } rows[] = {
        {OBJECT(CONDITION("Ready", "True")), NULL},
        {OBJECT(CONDITION("Ready", "False") "," CONDITION("Stalled", "True")), "Stalled"},
        {OBJECT(CONDITION("Ready", "False") "," CONDITION("Reconciling", "True")), "Reconciling"},
        {OBJECT(CONDITION("Ready", "Unknown")), "NotReady"},
        {OBJECT(""), "New"},
        {"{\"status\":{\"conditions\":7}}", "New"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_unready *u = stw_unready_create(&manager);
        assert_non_null(u);
        look(u, 1, "shop/web", rows[i].object);
        assert_int_equal(u->count, rows[i].want ? 1 : 0);
        if (rows[i].want) {
            assert_string_equal(u->all[0].state, rows[i].want);
            assert_int_equal(u->all[0].pool, 1);
        }
        stw_unready_destroy(u);
    }
}

static void test_namespaces_share_the_unready_list(void **state)
{
    (void)state;
    struct stw_unready *u = stw_unready_create(&manager);
    assert_non_null(u);
    add(u, 0, "many", 600);
    assert_int_equal(u->count, STW_UNREADY_MAX);
    assert_int_equal(u->left_out[0], 100);
    add(u, 1, "few", 3);
    assert_int_equal(count_named(u, "few"), 3);
    assert_int_equal(count_named(u, "many"), STW_UNREADY_MAX - 3);
    assert_int_equal(u->left_out[0], 103);
    assert_int_equal(u->left_out[1], 0);
    add(u, 1, "other", 1000); /* until both have as many */
    assert_int_equal(count_named(u, "few"), 3);
    assert_in_range(count_named(u, "other"), 248, 249);
    assert_int_equal(u->count, STW_UNREADY_MAX);
    assert_int_equal(u->left_out[0] + u->left_out[1], 1603 - STW_UNREADY_MAX);
    stw_unready_destroy(u);
}

static void test_more_namespaces_than_unready_entries(void **state)
{
    (void)state;
    struct stw_unready *u = stw_unready_create(&manager);
    assert_non_null(u);
    for (unsigned i = 0; i < 2 * STW_UNREADY_MAX; i++) {
        char ns[32];
        stw_format(ns, sizeof(ns), "ns-%u", i);
        add(u, 0, ns, 1);
    }
    assert_int_equal(u->count, STW_UNREADY_MAX);
    assert_int_equal(u->left_out[0], STW_UNREADY_MAX);
    stw_unready_destroy(u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unready_reason_follows_the_conditions),
        cmocka_unit_test(test_namespaces_share_the_unready_list),
        cmocka_unit_test(test_more_namespaces_than_unready_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
