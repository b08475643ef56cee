/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controller keeps of each EtcdCluster beside the caches. */
#include "base/fence.h"
#include "base/metrics.h"
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "controller/controller.h"
#include "kinds/etcdcluster/runtime.h"
#include "kube/cache/usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static size_t counted(void)
{
    size_t used = stw_share_facts(STW_SHARE_CACHES).used;
    assert_int_equal(stw_cache_usage_of("shop"), used);
    return used;
}

static void test_entries_are_counted_with_the_caches(void **state)
{
    enum { CLUSTERS = 100 };
    const struct stw_manager_config config = {0};
    const struct stw_etcd_config etcd = {.timeout_ms = 1000};
    struct stw_error err = {0};
    void *opened;
    (void)state;
    assert_int_equal(ec_runtime_open(NULL, &config, &opened, &err), 0);
    struct ec_runtime *k = opened;
    char key[STW_KEY_LEN], name[32];
    for (int i = 0; i < CLUSTERS; i++) {
        stw_format(name, sizeof(name), "e%d", i);
        stw_key_make("shop", name, key);
        struct stw_run run = {.ns = "shop", .name = name, .key = key};
        size_t before = counted();
        struct ec_kept *kept = ec_runtime_get(k, &run);
        assert_non_null(kept);
        size_t entry = counted() - before;
        assert_true(entry >= sizeof(struct ec_kept));
        assert_int_equal(ec_runtime_use(k, kept, &etcd, &err), 0);
        assert_int_equal(ec_runtime_use(k, kept, &etcd, &err), 0);
        assert_int_equal(counted(), before + entry + stw_etcd_client_bytes());
        assert_ptr_equal(ec_runtime_get(k, &run), kept);
    }
    size_t all = counted();
    ec_runtime_forget(k, "shop/e7");
    assert_true(counted() < all);
    ec_runtime_close(k);
    assert_int_equal(counted(), 0);
}

static bool shows(struct stw_metrics *m, const char *text)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(65536);
    stw_metrics_render(m, &out);
    return strstr(stw_buf_str(&out), text) != NULL;
}

/* The alerts take the worst of all replicas: what a former leader saw last must not stay. */
static void test_gauges_go_with_the_lease(void **state)
{
    struct stw_metrics *metrics = stw_metrics_create("steward");
    const struct stw_manager_config config = {.metrics = metrics};
    const struct stw_run run = {.ns = "shop", .name = "e", .key = "shop/e"};
    struct stw_fence_epoch epoch = {.number = 1};
    struct stw_fence *fence = stw_fence_create(&stw_clock_system);
    struct stw_error err = {0};
    void *k;
    (void)state;
    assert_int_equal(ec_runtime_open(NULL, &config, &k, &err), 0);
    stw_fence_open(fence, STW_FENCE_FOREVER, &epoch);
    (void)stw_fence_enter(stw_fence_take(fence));
    struct ec_kept *kept = ec_runtime_get(k, &run);
    assert_false(shows(metrics, "_etcd_quorum_margin{"));
    ec_runtime_report_margin(k, &run, kept, -1);
    ec_runtime_report_end(k, &run, kept, 1000);
    assert_true(shows(metrics, "_etcd_quorum_margin{namespace=\"shop\",cluster=\"e\"} -1"));
    assert_true(shows(metrics, "_etcd_certificate_not_after_seconds{namespace=\"shop\""));

    stw_fence_close(fence);
    ec_runtime_pause(k);
    ec_runtime_report_margin(k, &run, kept, -1); /* the run has not ended yet */
    ec_runtime_report_end(k, &run, kept, 1000);
    assert_false(shows(metrics, "_etcd_quorum_margin{"));
    assert_false(shows(metrics, "_etcd_certificate_not_after_seconds{"));

    stw_fence_open(fence, STW_FENCE_FOREVER, &epoch);
    (void)stw_fence_enter(stw_fence_take(fence));
    ec_runtime_report_margin(k, &run, kept, 1);
    assert_true(shows(metrics, "_etcd_quorum_margin{namespace=\"shop\",cluster=\"e\"} 1"));
    ec_runtime_forget(k, run.key);
    assert_false(shows(metrics, "_etcd_quorum_margin{"));
    (void)stw_fence_enter((struct stw_fence_ticket){0});
    stw_fence_destroy(fence);
    ec_runtime_close(k);
    stw_metrics_destroy(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_are_counted_with_the_caches),
        cmocka_unit_test(test_gauges_go_with_the_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
