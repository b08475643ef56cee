/* SPDX-License-Identifier: Apache-2.0
 *
 * The server by itself: what tests/contract/test_memory_server.py cannot compare with a real one. */
#include "greeting.h"

#include "base/util.h"
#include "kube/client.h"
#include "testing/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct pair {
    struct stw_test_server *server;
    struct stw_client *client;
};

static struct pair begin(size_t bytes_max)
{
    static const struct stw_resource *const resources[] = {&stw_res_configmap, &stw_res_secret,
                                                           &stw_res_deployment, NULL};
    struct pair p;
    struct stw_error err = {0};
    assert_int_equal(stw_test_server_start(&(struct stw_test_server_config){.resources = resources,
                                                                            .bytes_max = bytes_max},
                                           &p.server, &err),
                     0);
    stw_autofree char *url = strdup(stw_test_server_url(p.server));
    assert_int_equal(stw_client_create(&greeter, &(struct stw_kubeconfig){.server = url},
                                       &stw_clock_system, NULL, &p.client, &err),
                     0);
    return p;
}

static void end(struct pair *p)
{
    stw_client_destroy(p->client);
    stw_test_server_stop(p->server);
}

/* A ConfigMap with a value, and an owner or "". */
static json_t *configmap(const char *name, const char *value, const char *owner)
{
    json_t *object =
        json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap",
                  "metadata", "name", name, "namespace", "default", "data", "value", value);
    if (*owner)
        json_object_set_new(json_object_get(object, "metadata"), "ownerReferences",
                            json_pack("[{s:s,s:s,s:s,s:s}]", "apiVersion", "v1", "kind",
                                      "ConfigMap", "name", "any", "uid", owner));
    return object;
}

static void put(struct pair *p, json_t *object)
{
    struct stw_error err = {0};
    if (stw_test_server_put(p->server, object, &err) != 0)
        fail_msg("%s", err.text);
    json_decref(object);
}

static bool is_there(struct pair *p, const char *name)
{
    json_auto_t *found = stw_test_server_get(p->server, &stw_res_configmap, "default", name);
    return found != NULL;
}

static void copy_uid(struct pair *p, const char *name, char out[64])
{
    json_auto_t *found = stw_test_server_get(p->server, &stw_res_configmap, "default", name);
    assert_non_null(found);
    stw_format(out, 64, "%s",
               json_string_value(json_object_get(json_object_get(found, "metadata"), "uid")));
}

static int ask(struct pair *p, const char *path, struct stw_buf *answer, struct stw_error *err)
{
    return stw_client_do(p->client, &(struct stw_request){.method = "GET", .path = path}, answer,
                         err);
}

#define MAPS "/api/v1/namespaces/default/configmaps"

static void test_dependents(void **state)
{
    (void)state;
    struct pair p = begin(0);
    struct stw_error err = {0};
    char first[64], second[64];
    put(&p, configmap("first", "", ""));
    put(&p, configmap("second", "", ""));
    copy_uid(&p, "first", first);
    copy_uid(&p, "second", second);
    put(&p, configmap("child", "", first));
    copy_uid(&p, "child", second);
    put(&p, configmap("grandchild", "", second));
    assert_true(is_there(&p, "grandchild"));
    put(&p, configmap("orphan", "", "no-such-uid"));
    assert_false(is_there(&p, "orphan"));
    assert_int_equal(stw_test_server_delete(p.server, &stw_res_configmap, "default", "first", &err),
                     0);
    assert_false(is_there(&p, "child"));
    assert_false(is_there(&p, "grandchild"));
    assert_true(is_there(&p, "second"));
    end(&p);
}

/* A page of a list, and a watch, from before what is forgotten. */
static void test_gone(void **state)
{
    (void)state;
    struct pair p = begin(0);
    struct stw_error err = {0};
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(1u << 20);
    put(&p, configmap("a", "", ""));
    put(&p, configmap("b", "", ""));
    put(&p, configmap("c", "", ""));
    assert_int_equal(ask(&p, MAPS "?limit=1&continue=4%20default%2Fa", &answer, &err), 0);
    assert_non_null(strstr(stw_buf_str(&answer), "\"name\":\"b\""));
    put(&p, configmap("b", "changed later", ""));
    stw_buf_clear(&answer);
    assert_int_equal(ask(&p, MAPS "?limit=1&continue=4%20default%2Fa", &answer, &err), 0);
    assert_null(strstr(stw_buf_str(&answer), "changed later")); /* one state */
    stw_test_server_break_watches(p.server, NULL, true);
    assert_int_equal(ask(&p, MAPS "?limit=1&continue=4%20default%2Fa", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_GONE);
    stw_buf_clear(&answer);
    assert_int_equal(ask(&p, MAPS "?watch=1&resourceVersion=4", &answer, &err), 0);
    assert_non_null(strstr(stw_buf_str(&answer), "\"type\":\"ERROR\""));
    assert_non_null(strstr(stw_buf_str(&answer), "410"));
    end(&p);
}

static void test_limits(void **state)
{
    (void)state;
    struct pair p = begin(100000);
    struct stw_error err = {0};
    stw_autofree char *large = calloc(1, 60001), *huge = calloc(1, (4u << 20) + 1);
    memset(large, 'x', 60000);
    memset(huge, 'x', 4u << 20);
    put(&p, configmap("first", large, ""));
    json_auto_t *second = configmap("second", large, ""), *third = configmap("third", huge, "");
    assert_int_equal(stw_test_server_put(p.server, second, &err), -1);
    assert_non_null(strstr(err.text, "database space exceeded"));
    put(&p, configmap("first", "small", "")); /* what was there does not count */
    assert_int_equal(stw_test_server_put(p.server, second, &err), 0);
    assert_int_equal(stw_kube_create(p.client, &stw_res_configmap, "default", third, NULL, &err),
                     -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    for (int i = 0; i < 20; i++) /* the history is bounded as well */
        put(&p, configmap("first", i % 2 ? "a" : "b", ""));
    assert_int_equal(ask(&p, MAPS "?watch=1&resourceVersion=1&timeoutSeconds=0", NULL, &err), 0);
    end(&p);
}

static void test_faults(void **state)
{
    (void)state;
    struct pair p = begin(0);
    struct stw_error err = {0};
    put(&p, configmap("a", "", ""));
    const struct stw_test_fault fault = {.at = {.verb = "get", .resource = &stw_res_configmap},
                                         .skip = 1,
                                         .times = 2,
                                         .status = 409,
                                         .reason = "AlreadyExists"};
    assert_int_equal(stw_test_server_fail(p.server, &fault), 0);
    static const int results[] = {0, -1, -1, 0};
    for (size_t i = 0; i < STW_COUNT(results); i++) {
        assert_int_equal(ask(&p, MAPS "/a", NULL, &err), results[i]);
        if (results[i])
            assert_int_equal(err.code, STW_ERR_EXISTS);
    }
    assert_int_equal(stw_test_server_faults_left(p.server), 0);
    for (unsigned i = 0; i < STW_TEST_FAULTS_MAX; i++)
        assert_int_equal(stw_test_server_fail(p.server, &fault), 0);
    assert_int_equal(stw_test_server_fail(p.server, &fault), -1);
    stw_test_server_forget_faults(p.server);
    assert_int_equal(stw_test_server_fail(p.server, &fault), 0);
    end(&p);
}

static void test_the_record(void **state)
{
    (void)state;
    struct pair p = begin(0);
    struct stw_error err = {0};
    struct stw_test_request r;
    stw_autobuf struct stw_buf story = STW_BUF_INIT(1u << 20);
    json_auto_t *a = configmap("a", "1", "");
    assert_int_equal(stw_kube_create(p.client, &stw_res_configmap, "default", a, NULL, &err), 0);
    assert_int_equal(stw_kube_create(p.client, &stw_res_configmap, "default", a, NULL, &err), -1);
    assert_int_equal(stw_kube_apply(p.client, STW_PLACE(&stw_res_configmap, "default", "b"), a,
                                    "me", NULL, &err),
                     -1); /* its name is another one */
    assert_int_equal(ask(&p, MAPS "/a", NULL, &err), 0);
    const struct stw_test_request created = {.verb = "create", .status = 201};
    assert_int_equal(stw_test_server_requests(p.server, &created), 1);
    assert_true(stw_test_server_request(p.server, &created, 0, &r));
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(r.body, "data"), "value")), "1");
    assert_false(stw_test_server_request(p.server, &created, 1, &r));
    assert_int_equal(
        stw_test_server_requests(p.server, &(struct stw_test_request){.verb = "write"}), 3);
    assert_int_equal(
        stw_test_server_requests(p.server, &(struct stw_test_request){.manager = "me"}), 1);
    stw_test_server_tell(p.server, &story);
    assert_string_equal(stw_buf_str(&story), "  create configmaps default/a: 201\n"
                                             "  create configmaps default/a: 409\n"
                                             "  apply  configmaps default/b: 400\n");
    stw_test_server_forget_requests(p.server);
    assert_int_equal(stw_test_server_requests(p.server, &(struct stw_test_request){0}), 0);
    for (int i = 0; i < 4200; i++)
        assert_int_equal(ask(&p, MAPS "/a", NULL, &err), 0);
    assert_int_equal(stw_test_server_requests(p.server, &(struct stw_test_request){0}), 4096);
    end(&p);
}

static void test_bad_requests(void **state)
{
    (void)state;
    struct pair p = begin(0);
    struct stw_error err = {0};
    static const struct {
        const char *method, *path, *type, *body;
        int status;
    } requests[] = {
        {"POST", MAPS, NULL, "{", 400},
        {"POST", MAPS, NULL, NULL, 400},
        {"POST", MAPS, NULL, "[1]", 400},
        {"POST", MAPS "/a", NULL, "{}", 405},
        {"PUT", MAPS, NULL, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}", 405},
        {"PATCH", MAPS "/a", "application/strategic-merge-patch+json", "{}", 415},
        {"PATCH", MAPS "/a", "application/json-patch+json", "{}", 200},
        {"PATCH", MAPS "/a", "application/json-patch+json", "[7]", 422},
        {"PATCH", MAPS "/a", "application/merge-patch+json", "7", 400},
        {"DELETE", MAPS, NULL, NULL, 405},
        {"GET", MAPS "?continue=nonsense", NULL, NULL, 400},
        {"GET", "/api/v1/a/b/c/d/e/f/g/h/i/j", NULL, NULL, 404},
        {"GET", "/apis/apps", NULL, NULL, 200},
        {"GET", "/version", NULL, NULL, 200},
        {"OPTIONS", MAPS, NULL, NULL, 405},
    };
    put(&p, configmap("a", "", ""));
    for (size_t i = 0; i < STW_COUNT(requests); i++) {
        err = (struct stw_error){.http = 200};
        (void)!stw_client_do(
            p.client,
            &(struct stw_request){.method = requests[i].method,
                                  .path = requests[i].path,
                                  .content_type = requests[i].type,
                                  .body = requests[i].body,
                                  .body_len = requests[i].body ? strlen(requests[i].body) : 0},
            NULL, &err);
        if (err.http != requests[i].status)
            fail_msg("%s %s: %d %s", requests[i].method, requests[i].path, err.http, err.text);
    }
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dependents), cmocka_unit_test(test_gone),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_faults),
        cmocka_unit_test(test_the_record), cmocka_unit_test(test_bad_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
