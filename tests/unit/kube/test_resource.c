/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/resource.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_resource_paths_are_built(void **state)
{
    static const struct {
        const struct stw_resource *r;
        const char *ns, *name, *sub, *want;
    } rows[] = {
        {&stw_res_configmap, NULL, NULL, NULL, "/api/v1/configmaps"},
        {&stw_res_configmap, "a", NULL, NULL, "/api/v1/namespaces/a/configmaps"},
        {&stw_res_deployment, "a", "b", "status",
         "/apis/apps/v1/namespaces/a/deployments/b/status"},
        /* the namespace of a cluster-scoped kind is ignored */
        {&stw_res_namespace, "a", "b", NULL, "/api/v1/namespaces/b"},
        /* no character of a name may end its segment of the path */
        {&stw_res_secret, "..", "a/b?c%#\xc3\xa9", NULL,
         "/api/v1/namespaces/../secrets/a%2Fb%3Fc%25%23%C3%A9"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stw_buf out = STW_BUF_INIT(1000);
        stw_resource_path(rows[i].r, rows[i].ns, rows[i].name, rows[i].sub, &out);
        assert_string_equal(stw_buf_str(&out), rows[i].want);
        stw_buf_done(&out);
    }
}

static void test_api_versions_are_written(void **state)
{
    struct stw_buf out = STW_BUF_INIT(100);
    (void)state;
    stw_resource_api_version(&stw_res_service, &out);
    assert_string_equal(stw_buf_str(&out), "v1");
    stw_buf_clear(&out);
    stw_resource_api_version(&stw_res_deployment, &out);
    assert_string_equal(stw_buf_str(&out), "apps/v1");
    stw_buf_done(&out);
}

static void test_object_keys_are_split_and_joined(void **state)
{
    static const char *const rows[][3] = {
        {"ns", "name", "ns/name"}, {"", "name", "name"}, {NULL, "name", "name"}};
    char key[STW_KEY_LEN], ns[STW_KEY_LEN], name[STW_KEY_LEN];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stw_key_make(rows[i][0], rows[i][1], key);
        assert_string_equal(key, rows[i][2]);
        stw_key_split(key, ns, name);
        assert_string_equal(ns, rows[i][0] ? rows[i][0] : "");
        assert_string_equal(name, rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resource_paths_are_built),
        cmocka_unit_test(test_api_versions_are_written),
        cmocka_unit_test(test_object_keys_are_split_and_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
