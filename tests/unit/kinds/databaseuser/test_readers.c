/* SPDX-License-Identifier: Apache-2.0
 *
 * What reads a connection Secret, by the objects of the API server. */
#include "kinds/databaseuser/secret/readers.h"

#include "fake.h"
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_reader_is_one_of_the_listed_names(void **state)
{
    (void)state;
    assert_true(dbu_readers_has_name("shop", "shop"));
    assert_true(dbu_readers_has_name("a, shop ,b", "shop"));
    assert_true(dbu_readers_has_name("a b\nshop", "shop"));
    assert_false(dbu_readers_has_name("", "shop"));
    assert_false(dbu_readers_has_name(" , ", "shop"));
    assert_false(dbu_readers_has_name("shop-2,my-shop,sho", "shop"));
}

static bool rolled_out(const struct stw_resource *resource, const char *text, char why[600])
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err;
    *why = '\0';
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), &err), 0);
    return dbu_readers_is_rolled_out(resource, stw_json_root(&doc), why, 600);
}

#define META "\"metadata\":{\"name\":\"web\",\"generation\":4}"
#define DONE "\"observedGeneration\":4,\"updatedReplicas\":2,\"replicas\":2"

static void test_rolled_out_is_what_the_status_of_the_workload_says(void **state)
{
    static const struct {
        const struct stw_resource *resource;
        const char *object, *why; /* "": it is rolled out */
    } rows[] = {
        {&stw_res_deployment,
         "{" META ",\"spec\":{\"replicas\":2},\"status\":{" DONE ",\"availableReplicas\":2}}", ""},
        {&stw_res_deployment,
         "{" META ",\"spec\":{\"replicas\":0},\"status\":"
         "{\"observedGeneration\":4}}",
         ""},
        /* the controller has not seen it, has an old pod left, or a new one is not available */
        {&stw_res_deployment,
         "{" META ",\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":3,"
         "\"updatedReplicas\":2,\"replicas\":2,\"availableReplicas\":2}}",
         "rollout status deployment/web"},
        {&stw_res_deployment,
         "{" META ",\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":4,"
         "\"updatedReplicas\":2,\"replicas\":3,\"availableReplicas\":3}}",
         "rollout status deployment/web"},
        {&stw_res_deployment,
         "{" META ",\"spec\":{\"replicas\":2},\"status\":{" DONE ",\"availableReplicas\":1}}",
         "rollout status deployment/web"},
        {&stw_res_deployment, "{" META ",\"spec\":{\"paused\":true},\"status\":{}}",
         "rollout resume deployment/web"},
        {&stw_res_statefulset,
         "{" META ",\"spec\":{\"replicas\":2},\"status\":{" DONE ",\"readyReplicas\":2}}", ""},
        {&stw_res_statefulset,
         "{" META ",\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":4,"
         "\"updatedReplicas\":1,\"replicas\":2,\"readyReplicas\":2}}",
         "rollout status statefulset/web"},
        {&stw_res_statefulset, "{" META ",\"spec\":{\"updateStrategy\":{\"type\":\"OnDelete\"}}}",
         "OnDelete: delete its pods"},
        {&stw_res_daemonset,
         "{" META ",\"status\":{\"observedGeneration\":4,\"desiredNumberScheduled\":3,"
         "\"updatedNumberScheduled\":3}}",
         ""},
        {&stw_res_daemonset,
         "{" META ",\"status\":{\"observedGeneration\":4,\"desiredNumberScheduled\":3,"
         "\"updatedNumberScheduled\":2}}",
         "rollout status daemonset/web"},
        {&stw_res_daemonset,
         "{" META ",\"status\":{\"observedGeneration\":4,\"desiredNumberScheduled\":3,"
         "\"updatedNumberScheduled\":3,\"numberUnavailable\":1}}",
         "rollout status daemonset/web"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char why[600];
        bool done = rolled_out(rows[i].resource, rows[i].object, why);
        if (done != (*rows[i].why == '\0') || !strstr(why, rows[i].why))
            fail_msg("row %zu: %d, \"%s\"", i, done, why);
    }
}

#define SINCE "2024-01-01T00:10:00Z"
#define BY_KEY                                                                                     \
    "\"env\":[{\"name\":\"A\",\"value\":\"b\"},{\"name\":\"U\",\"valueFrom\":"                     \
    "{\"secretKeyRef\":{\"name\":\"conn\",\"key\":\"uri\"}}}]"
#define RUNS(t) "\"state\":{\"running\":{\"startedAt\":\"" t "\"}}"

static bool is_old(const char *created, const char *container, const char *status)
{
    char text[2048];
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err;
    (void)snprintf(text, sizeof(text),
                   "{\"metadata\":{\"name\":\"web-1\",\"creationTimestamp\":\"%s\"},"
                   "\"spec\":{\"containers\":[{\"name\":\"side\"},{\"name\":\"main\",%s}]},"
                   "\"status\":{\"containerStatuses\":[{\"name\":\"side\"," RUNS(
                       "2024-01-01T00:00:00Z") "},{\"name\":\"main\",%s}]}}",
                   created, container, status);
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), &err), 0);
    return dbu_readers_has_old_env(stw_json_root(&doc), "conn", SINCE);
}

static void test_pods_older_than_the_secret_read_the_old_password(void **state)
{
    const char *early = "2024-01-01T00:09:59Z", *started = RUNS("2024-01-01T00:09:59Z");
    (void)state;
    assert_true(is_old(early, BY_KEY, started));
    assert_true(is_old(early, "\"envFrom\":[{\"secretRef\":{\"name\":\"conn\"}}]", started));
    /* created afterwards; or another Secret; or a file, which the kubelet keeps up to date */
    assert_false(is_old(SINCE, BY_KEY, started));
    assert_false(is_old(early, "\"envFrom\":[{\"secretRef\":{\"name\":\"conn-2\"}}]", started));
    assert_false(is_old(early, "\"volumeMounts\":[]", started));
    /* a container that starts again reads it again; the clocks of nodes are not exact */
    assert_false(is_old(early, BY_KEY, RUNS("2024-01-01T00:11:00Z")));
    assert_true(is_old(early, BY_KEY, RUNS("2024-01-01T00:10:30Z")));
    assert_false(is_old(early, BY_KEY, "\"state\":{\"waiting\":{}}"));
    assert_false(is_old(early, BY_KEY, "\"state\":{\"terminated\":{}}"));
    /* no time at all */
    assert_false(is_old("", BY_KEY, started));
}

/* --- how many are read */

#define SPEC                                                                                       \
    "{\"user\":\"app\",\"password\":{\"name\":\"app-db\",\"key\":\"password\"},"                   \
    "\"connectionSecret\":{\"name\":\"shop\"}}"

/* Answers the list of Pods with `count` times this text; the others are empty. */
static void serve_pods(const char *object, unsigned count)
{
    stw_autobuf struct stw_buf steps = STW_BUF_INIT(64u << 20);
    stw_buf_adds(&steps, "[{'match':'/(deployments|statefulsets|daemonsets)[?]','times':0,"
                         "'body':{'items':[]}},{'match':'/pods[?]','stream':["
                         "{'raw':'{\\'items\\':['},{'raw':'");
    for (unsigned i = 0; i < count; i++)
        stw_buf_addf(&steps, "%s%s", i ? "," : "", object);
    stw_buf_adds(&steps, "'},{'raw':']}'}]}]");
    fake_steps(&fake, stw_buf_str(&steps));
}

/* The tenant of a namespace decides how many objects there are, and what is in them. */
static void test_list_of_pods_is_cut(void **state)
{
    static const struct {
        const char *object;
        unsigned count;
        const char *said; /* NULL: nothing waits */
    } rows[] = {
        {"{\\'spec\\':{}}", 10000, NULL},
        {"{\\'spec\\':{}}", 10001,
         "the list of pods was cut after 10000 objects, and there are more than 10000"},
        {"{\\'spec\\':nothing}", 100, "Pod object 1 of a page of the list cannot be read"},
        {"{\\'spec\\':nothing}", 101,
         "the list of pods was cut after 100 objects: more than 100 of them cannot be read"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct fixture f;
        assert_int_equal(fixture_init(&f, SPEC, ""), 0);
        f.run.client = fake.client;
        serve_pods(rows[i].object, rows[i].count);
        dbu_readers_look(&f.d, "app-b", "2026-01-01T00:00:00Z");
        assert_int_equal(f.d.readers.waits > 0, rows[i].said != NULL);
        if (rows[i].said && !strstr(f.d.readers.first, rows[i].said))
            fail_msg("row %zu: %s", i, f.d.readers.first);
        fixture_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_list_of_pods_is_cut, fake_set_up, fake_tear_down),
        cmocka_unit_test(test_reader_is_one_of_the_listed_names),
        cmocka_unit_test(test_rolled_out_is_what_the_status_of_the_workload_says),
        cmocka_unit_test(test_pods_older_than_the_secret_read_the_old_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
