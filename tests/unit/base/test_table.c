/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct entry {
    char key[16];
    unsigned number;
    bool in; /* the model: whether the table should hold it */
    bool seen;
};

static const char *key_of(const void *entry)
{
    const struct entry *e = entry;
    return e->key;
}

static void test_table_puts_gets_and_removes(void **state)
{
    (void)state;
    struct stw_table t = STW_TABLE_INIT(key_of);
    struct entry a = {.key = "a"}, a2 = {.key = "a"}, b = {.key = "b"};
    void *old = &b;
    uint32_t pos = 0;

    assert_null(stw_table_get(&t, "a"));
    assert_null(stw_table_remove(&t, "a"));
    assert_null(stw_table_next(&t, &pos));
    assert_int_equal(stw_table_put(&t, &a, &old), 0);
    assert_null(old);
    assert_int_equal(stw_table_put(&t, &b, NULL), 0);
    assert_int_equal(stw_table_put(&t, &a2, &old), 0);
    assert_ptr_equal(old, &a);
    assert_int_equal(stw_table_size(&t), 2);
    assert_ptr_equal(stw_table_get(&t, "a"), &a2);
    assert_ptr_equal(stw_table_remove(&t, "a"), &a2);
    assert_null(stw_table_get(&t, "a"));
    assert_int_equal(stw_table_size(&t), 1);
    stw_table_done(&t);
    assert_int_equal(stw_table_size(&t), 0);
}

#define ENTRIES 2000U

static struct entry entries[ENTRIES];

static unsigned check_against_model(const struct stw_table *t)
{
    unsigned count = 0, pos = 0;
    for (unsigned i = 0; i < ENTRIES; i++)
        entries[i].seen = false;
    for (struct entry *e = stw_table_next(t, &pos); e; e = stw_table_next(t, &pos)) {
        assert_true(e->in && !e->seen);
        e->seen = true;
        count++;
    }
    for (unsigned i = 0; i < ENTRIES; i++)
        assert_ptr_equal(stw_table_get(t, entries[i].key), entries[i].in ? &entries[i] : NULL);
    assert_int_equal(count, stw_table_size(t));
    return count;
}

/* A long random sequence of puts and removals, compared with a model.  Churn alone must not make
 * the table grow. */
static void test_table_matches_a_model(void **state)
{
    (void)state;
    struct stw_table t = STW_TABLE_INIT(key_of);
    uint64_t seed = 42;
    for (unsigned i = 0; i < ENTRIES; i++) {
        (void)snprintf(entries[i].key, sizeof(entries[i].key), "key-%u", i);
        entries[i].number = i;
    }
    for (unsigned step = 0; step < 200000; step++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
        struct entry *e = &entries[(seed >> 33) % ENTRIES];
        if (seed >> 63 && step < 150000) {
            assert_int_equal(stw_table_put(&t, e, NULL), 0);
            e->in = true;
        } else {
            assert_ptr_equal(stw_table_remove(&t, e->key), e->in ? e : NULL);
            e->in = false;
        }
        if (step % 20000 == 0)
            (void)check_against_model(&t);
    }
    assert_true(t.cap <= 8192);
    (void)check_against_model(&t);
    stw_table_done(&t);
}

static void test_table_entries_are_removed_while_walking(void **state)
{
    (void)state;
    struct stw_table t = STW_TABLE_INIT(key_of);
    uint32_t pos = 0, seen = 0;
    for (unsigned i = 0; i < ENTRIES; i++) {
        entries[i].in = true;
        assert_int_equal(stw_table_put(&t, &entries[i], NULL), 0);
    }
    for (struct entry *e = stw_table_next(&t, &pos); e; e = stw_table_next(&t, &pos)) {
        seen++;
        if (e->number % 2 == 0) {
            assert_ptr_equal(stw_table_remove(&t, e->key), e);
            e->in = false;
        }
    }
    assert_int_equal(seen, ENTRIES);
    assert_int_equal(check_against_model(&t), ENTRIES / 2);
    stw_table_done(&t);
}

static unsigned releases;

static void count_release(void *entry)
{
    struct entry *e = entry;
    assert_true(e->in);
    e->in = false;
    releases++;
}

/* Every entry that is in the table is released, once; then the table is empty and can be used. */
static void test_table_release_frees_every_entry(void **state)
{
    (void)state;
    struct stw_table t = STW_TABLE_INIT(key_of);
    stw_table_release(&t, count_release);
    assert_int_equal(releases, 0);
    for (unsigned i = 0; i < ENTRIES; i++) {
        assert_int_equal(stw_table_put(&t, &entries[i], NULL), 0);
        entries[i].in = i % 3 != 0;
        if (!entries[i].in)
            assert_ptr_equal(stw_table_remove(&t, entries[i].key), &entries[i]);
    }
    uint32_t left = stw_table_size(&t);
    stw_table_release(&t, count_release);
    assert_int_equal(releases, left);
    assert_int_equal(check_against_model(&t), 0);
    assert_int_equal(stw_table_put(&t, &entries[0], NULL), 0);
    stw_table_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_puts_gets_and_removes),
        cmocka_unit_test(test_table_matches_a_model),
        cmocka_unit_test(test_table_entries_are_removed_while_walking),
        cmocka_unit_test(test_table_release_frees_every_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
