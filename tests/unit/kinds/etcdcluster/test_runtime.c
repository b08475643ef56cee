/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controller keeps of each EtcdCluster beside the caches. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_entries_are_counted_with_the_caches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
