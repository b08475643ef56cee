/* SPDX-License-Identifier: Apache-2.0
 *
 * What a selector matches, as the API server lists it. */
#include "base/util.h"
#include "fake.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/target.h"
#include "kinds/eru/workloads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NAMES                                                                                      \
    "{\\'metadata\\':{\\'namespace\\':\\'n\\',\\'name\\':\\'w%d\\',\\'uid\\':\\'u\\',\\'"          \
    "resourceVersion\\':\\'1\\'},\\'v\\':%s}"

/* A list whose first objects cannot be read, and 20 that can. */
static void serve(int unreadable)
{
    stw_autobuf struct stw_buf steps = STW_BUF_INIT((size_t)1 << 20);
    stw_buf_adds(&steps, "[{'match':'/deployments','times':0,'stream':[{'raw':'{\\'items\\':[");
    for (int i = 0; i < unreadable + 20; i++)
        stw_buf_addf(&steps, "%s" NAMES, i > 0 ? "," : "", i, i < unreadable ? "maybe" : "1");
    stw_buf_adds(&steps, "]}'}]}]");
    assert_false(steps.failed);
    fake_steps(&fake, stw_buf_str(&steps));
}

static void list(struct eru_found_list *ret)
{
    struct stw_run run = {.client = fake.client, .ns = "n", .name = "e"};
    struct eru e = {.run = &run, .workload = eru_workload_of("Deployment")};
    struct stw_error err = {0};
    *ret = (struct eru_found_list){0};
    if (eru_ops.list(&e, ret, &err) != 0)
        fail_msg("%s", err.text);
}

static void release(struct eru_found_list *l)
{
    free(l->all);
    json_decref(l->unreadable);
}

static void test_unreadable_workloads_cost_only_themselves(void **state)
{
    struct eru_found_list l;
    (void)state;
    serve(ERU_MATCHES_MAX);
    list(&l);
    assert_false(l.more);
    assert_int_equal(l.count, 20);
    assert_int_equal(json_array_size(l.unreadable), ERU_MATCHES_MAX);
    release(&l);
}

/* Each may have megabytes: the rest is not read. */
static void test_very_many_unreadable_workloads_end_the_list(void **state)
{
    struct eru_found_list l;
    (void)state;
    serve(ERU_MATCHES_MAX + 1);
    list(&l);
    assert_true(l.more);
    assert_int_equal(l.count, 0);
    assert_int_equal(json_array_size(l.unreadable), ERU_MATCHES_MAX);
    release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unreadable_workloads_cost_only_themselves, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_very_many_unreadable_workloads_end_the_list,
                                        fake_set_up, fake_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
