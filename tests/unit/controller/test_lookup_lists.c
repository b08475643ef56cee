/* SPDX-License-Identifier: Apache-2.0
 *
 * Lookups over lists give the same results as those over caches, and list each resource once. */
#include "controller/lookup_lists.h"

#include "base/util.h"
#include "fake.h"
#include "kinds/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static char told[256];

static void trouble(void *ctx, const char *plural, const struct stw_error *err)
{
    size_t len = strlen(told);
    (void)ctx;
    (void)err;
    (void)snprintf(told + len, sizeof(told) - len, "%s;", plural);
}

static int set_up(void **state)
{
    told[0] = '\0';
    return fake_set_up(state);
}

static struct stw_lookup_lists *create(const char *const *namespaces)
{
    struct stw_lookup_lists_config config = {.op = &stw_operator_steward,
                                             .client = fake.client,
                                             .namespaces = namespaces,
                                             .trouble = trouble};
    struct stw_lookup_lists *l = stw_lookup_lists_create(&config);
    assert_non_null(l);
    return l;
}

#define MYWEB(ns, name, port)                                                                      \
    "{'metadata':{'namespace':'" ns "','name':'" name "','uid':'1','resourceVersion':'1',"         \
    "'creationTimestamp':'2026-01-01T00:00:00Z','generation':1},"                                  \
    "'spec':{'nodePortNumber':" port "}}"
#define LIST                                                                                       \
    "[{'match':'GET /apis/operator.k8s-summit.org/v1/mywebs','times':0,'body':{'items':[" MYWEB(   \
        "a", "x", "30100") "," MYWEB("b", "x", "30100") "," MYWEB("b", "y", "30200") "]}}]"

static void test_listed_objects_are_indexed(void **state)
{
    static const struct {
        const char *port, *self, *holder; /* NULL: none */
    } rows[] = {
        {"30100", "a/x", "b/x"}, {"30100", "b/x", "a/x"}, {"30100", "c/z", "a/x"},
        {"30200", "b/y", NULL},  {"30200", NULL, "b/y"},  {"30300", "a/x", NULL},
        {"", "a/x", NULL},
    };
    struct stw_lookup_lists *l = create(NULL);
    const struct stw_lookup *k = stw_lookup_lists_get(l);
    (void)state;
    fake_steps(&fake, LIST);
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char holder[512] = "";
        bool found = k->find(k->ctx, "mywebs.nodePort", rows[i].port, rows[i].self, holder);
        assert_int_equal(found, rows[i].holder != NULL);
        assert_string_equal(holder, rows[i].holder ? rows[i].holder : "");
    }
    assert_int_equal(k->has(k->ctx, "mywebs", "b/y"), 1);
    assert_int_equal(k->has(k->ctx, "mywebs", "a/y"), 0);
    assert_int_equal(k->has(k->ctx, "mywebs", "nodePort:30100"), 0);
    assert_int_equal(fake_count(&fake, "GET"), 1);
    assert_string_equal(told, "");
    stw_lookup_lists_destroy(l);
}

static void test_empty_list_has_no_holder(void **state)
{
    char holder[512] = "";
    struct stw_lookup_lists *l = create(NULL);
    const struct stw_lookup *k = stw_lookup_lists_get(l);
    (void)state;
    fake_steps(&fake, "[{'match':'/v1/mywebs','body':{'items':[]}}]");
    assert_false(k->find(k->ctx, "mywebs.nodePort", "30100", NULL, holder));
    assert_int_equal(k->has(k->ctx, "mywebs", "a/x"), 0);
    assert_string_equal(told, "");
    stw_lookup_lists_destroy(l);
}

static void test_unlistable_resource_is_unknown(void **state)
{
    char holder[512] = "";
    struct stw_lookup_lists *l = create(NULL);
    const struct stw_lookup *k = stw_lookup_lists_get(l);
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_false(k->find(k->ctx, "mywebs.nodePort", "30100", NULL, holder));
        assert_int_equal(k->has(k->ctx, "apps", "a/x"), -1);
    }
    assert_int_equal(k->has(k->ctx, "nothing", "a/x"), -1);
    assert_false(k->find(k->ctx, "mywebs", "30100", NULL, holder));
    assert_string_equal(told, "mywebs;apps;");
    stw_lookup_lists_destroy(l);
}

/* Without permission to list all namespaces, the named ones are listed. */
static void test_named_namespaces_are_listed(void **state)
{
    static const char *const namespaces[] = {"a", "b", NULL};
    struct stw_lookup_lists *l = create(namespaces);
    const struct stw_lookup *k = stw_lookup_lists_get(l);
    (void)state;
    fake_steps(&fake,
               "[{'match':'/v1/mywebs','status':403,'body':{'kind':'Status','code':403,"
               "'reason':'Forbidden','message':'no'}},"
               "{'match':'/namespaces/a/mywebs','body':{'items':[" MYWEB(
                   "a", "x", "30100") "]}},"
                                      "{'match':'/namespaces/b/mywebs','body':{'items':[]}}]");
    assert_int_equal(k->has(k->ctx, "mywebs", "a/x"), 1);
    assert_int_equal(k->has(k->ctx, "mywebs", "b/x"), 0);
    assert_string_equal(told, "");
    stw_lookup_lists_destroy(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_listed_objects_are_indexed, set_up, fake_tear_down),
        cmocka_unit_test_setup_teardown(test_empty_list_has_no_holder, set_up, fake_tear_down),
        cmocka_unit_test_setup_teardown(test_unlistable_resource_is_unknown, set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_named_namespaces_are_listed, set_up, fake_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
