/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/cache/memo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void test_memo_is_found_only_for_equal_inputs(void **state)
{
    (void)state;
    struct stw_memo *m = stw_memo_create();
    struct stw_hash inputs = {1, 2}, others = {1, 3};
    struct stw_digests result = {{5, 6}, {7, 8}}, got = {0};
    assert_false(stw_memo_get(m, "a", inputs, &got));
    stw_memo_put(m, "a", inputs, result);
    assert_true(stw_memo_get(m, "a", inputs, &got));
    assert_true(stw_hash_equal(got.whole, result.whole));
    assert_true(stw_hash_equal(got.template, result.template));
    assert_false(stw_memo_get(m, "a", others, &got));
    assert_false(stw_memo_get(m, "b", inputs, &got));
    stw_memo_destroy(m);
}

/* Many more entries than places: those that are found are right, and the last one is found. */
static void test_memo_entries_are_replaced_when_full(void **state)
{
    (void)state;
    struct stw_memo *m = stw_memo_create();
    unsigned found = 0;
    char what[32];
    struct stw_digests got;
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(what, sizeof(what), "services/ns/web-%u", i);
        stw_memo_put(m, what, (struct stw_hash){i, 1}, (struct stw_digests){.whole = {i, 2}});
    }
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(what, sizeof(what), "services/ns/web-%u", i);
        if (!stw_memo_get(m, what, (struct stw_hash){i, 1}, &got))
            continue;
        found++;
        assert_true(stw_hash_equal(got.whole, (struct stw_hash){i, 2}));
    }
    assert_in_range(found, 500, 1024);
    assert_true(stw_memo_get(m, what, (struct stw_hash){4999, 1}, &got));
    stw_memo_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memo_is_found_only_for_equal_inputs),
        cmocka_unit_test(test_memo_entries_are_replaced_when_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
