/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of snapshots in a store whose owner chooses what is listed. */
#include "base/util.h"
#include "kinds/etcdbackup/snapshot.h"
#include "store/store_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SIBLINGS 99999
#define MINE 3

/* Lists many keys of another owner, then a few of "me". */
struct liar {
    struct stw_store store;
    int listed, removed;
};

static int list_keys(struct stw_store *s, const char *prefix, stw_store_each_fn *each, void *ctx,
                     enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct liar *l = (struct liar *)s;
    char key[STW_STORE_KEY_MAX + 1];
    (void)trouble;
    (void)err;
    for (int i = 0; i < SIBLINGS + MINE; i++) {
        stw_format(key, sizeof(key), "%s%012d_2026-01-01-00:00:00_00000000000000aa_%s", prefix, i,
                   i < SIBLINGS ? "you" : "me");
        l->listed++;
        if (each(ctx, key, 1) != 0)
            return -1;
    }
    return 0;
}

static int remove_key(struct stw_store *s, const char *key, enum stw_store_trouble *trouble,
                      struct stw_error *err)
{
    struct liar *l = (struct liar *)s;
    (void)trouble;
    (void)err;
    assert_non_null(strstr(key, "_me"));
    l->removed++;
    return 0;
}

static const struct stw_store_ops ops = {.list = list_keys, .remove = remove_key};

struct world {
    struct liar liar;
    char path[STW_STORE_KEY_MAX + 1];
};

static void begin(struct world *w, size_t path_len)
{
    *w = (struct world){0};
    memset(w->path, 'p', path_len);
    assert_int_equal(stw_store_init(&w->liar.store, &ops, NULL), 0);
}

static void test_list_of_all_snapshots_has_a_limit(void **state)
{
    struct world w;
    struct eb_snapshot_list all;
    enum stw_store_trouble trouble;
    struct stw_error err = {0};
    (void)state;
    begin(&w, 890);
    assert_int_equal(eb_snapshot_list(&w.liar.store, w.path, NULL, &all, &trouble, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    assert_int_equal(trouble, STW_STORE_FAILED);
    assert_true(w.liar.listed < (8 << 20) / 890);
    assert_int_equal(all.count, 0);
    stw_store_done(&w.liar.store);
}

/* Of the memory for answers of all servers, three quarters of 8 MiB here. */
static void test_list_waits_for_memory(void **state)
{
    struct world w;
    struct eb_snapshot_list all;
    struct stw_kept other = {0};
    enum stw_store_trouble trouble;
    struct stw_error err = {0};
    (void)state;
    stw_memory_budget_set((uint64_t)128 << 20);
    begin(&w, 890);
    assert_true(stw_kept_set(&other, 5 << 20));
    assert_int_equal(eb_snapshot_list(&w.liar.store, w.path, NULL, &all, &trouble, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "there is no memory now for a list of "));
    assert_true(w.liar.listed < (1 << 20) / 890);
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 5 << 20);
    stw_kept_done(&other);
    stw_store_done(&w.liar.store);
    stw_memory_budget_set(0);
}

static void test_snapshots_of_others_are_not_kept_in_memory(void **state)
{
    const struct eb_snapshot_retention keep = {.max_backups = 1, .owner = "me"};
    const struct eb_snapshot_pruning p = {.keep = &keep, .now = INT32_MAX};
    struct world w;
    enum stw_store_trouble trouble;
    struct stw_error err = {0};
    unsigned count;
    (void)state;
    begin(&w, 890);
    assert_int_equal(eb_snapshot_prune(&w.liar.store, w.path, &p, &count, &trouble, &err), 0);
    assert_int_equal(count, MINE - 1);
    assert_int_equal(w.liar.removed, MINE - 1);
    stw_store_done(&w.liar.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_of_all_snapshots_has_a_limit),
        cmocka_unit_test(test_list_waits_for_memory),
        cmocka_unit_test(test_snapshots_of_others_are_not_kept_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
