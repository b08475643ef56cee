/* SPDX-License-Identifier: Apache-2.0
 *
 * The identity of the cluster, read from a scripted API server. */
#include "base/util.h"
#include "fake.h"
#include "kinds/databaseuser/cluster_id.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PATH "'match':'^GET /api/v1/namespaces/kube-system$'"

static struct dbu_cluster_id *id;

static int set_up(void **state)
{
    id = dbu_cluster_id_create();
    return id ? fake_set_up(state) : -1;
}

static int tear_down(void **state)
{
    dbu_cluster_id_destroy(id);
    return fake_tear_down(state);
}

static void test_cluster_id_is_read_once(void **state)
{
    const char *first = NULL, *second = NULL;
    struct stw_error err = {0};
    (void)state;
    fake_steps(&fake, "[{" PATH ",'body':{'metadata':{'name':'kube-system','uid':'u-7'}}}]");
    assert_int_equal(dbu_cluster_id_get(id, fake.client, &first, &err), 0);
    assert_string_equal(first, "u-7");
    assert_int_equal(dbu_cluster_id_get(id, fake.client, &second, &err), 0);
    assert_ptr_equal(first, second);
    unsigned asked = fake_count(&fake, "/namespaces/kube-system");
    assert_int_equal(dbu_cluster_id_get(id, fake.client, &second, &err), 0);
    assert_int_equal(fake_count(&fake, "/namespaces/kube-system"), asked);
}

/* Every answer without a UID is an error that says what to do; the next call asks again. */
static void test_answer_without_a_cluster_id_is_an_error(void **state)
{
    static const struct {
        const char *step, *why;
    } cases[] = {
        {"[{" PATH
         ",'status':403,'body':{'kind':'Status','message':'forbidden: no right','code':403}}]",
         "no right"},
        {"[{" PATH ",'status':404,'body':{'kind':'Status','message':'not found','code':404}}]",
         "not found"},
        {"[{" PATH ",'body':{'metadata':{'name':'kube-system'}}}]", "no metadata.uid"},
        {"[{" PATH ",'body':{'metadata':{'uid':''}}}]", "no metadata.uid"},
        {"[{" PATH ",'body':{'metadata':{'uid':7}}}]", "no metadata.uid"},
        {"[{" PATH ",'body':'nothing'}]", "no metadata.uid"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        const char *uid = NULL;
        struct stw_error err = {0};
        fake_steps(&fake, cases[i].step);
        assert_int_equal(dbu_cluster_id_get(id, fake.client, &uid, &err), -1);
        assert_null(uid);
        if (!strstr(err.text, cases[i].why) ||
            !strstr(err.text, "the UID of the namespace kube-system"))
            fail_msg("%s", err.text);
    }
    test_cluster_id_is_read_once(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cluster_id_is_read_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answer_without_a_cluster_id_is_an_error, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
