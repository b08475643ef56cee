/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/queue/failures.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct seen {
    uint32_t count;
    char first[64], last[64];
    struct stw_failure copy; /* of the first */
};

static void see(void *ctx, const struct stw_failure *one)
{
    struct seen *s = ctx;
    if (s->count++ == 0) {
        stw_format(s->first, sizeof(s->first), "%s", one->key);
        s->copy = *one;
    }
    stw_format(s->last, sizeof(s->last), "%s", one->key);
}

static void add(struct stw_failures *f, const char *key, const char *text, int64_t now_us)
{
    struct stw_error err = {0};
    (void)stw_fail(&err, STW_ERR_UNAVAILABLE, "%s", text);
    stw_failures_add(f, key, false, &err, now_us);
}

static void test_failures_are_listed_latest_first(void **state)
{
    struct stw_failures *f = stw_failures_create();
    (void)state;
    add(f, "ns/a", "one", 1);
    add(f, "ns/b", "two", 2);
    add(f, "ns/a", "three", 3);
    struct seen seen = {0};
    assert_int_equal(stw_failures_each(f, see, &seen), 0);
    assert_int_equal(seen.count, 2);
    assert_string_equal(seen.first, "ns/a");
    assert_string_equal(seen.last, "ns/b");
    assert_string_equal(seen.copy.text, "three");
    assert_int_equal(seen.copy.streak, 2);
    assert_int_equal(seen.copy.at_us, 3);
    assert_int_equal(seen.copy.since_us, 1);
    assert_int_equal(seen.copy.code, STW_ERR_UNAVAILABLE);
    stw_failures_forget(f, "ns/a");
    stw_failures_forget(f, "ns/none");
    add(f, "ns/a", "four", 4);
    seen = (struct seen){0};
    (void)stw_failures_each(f, see, &seen);
    assert_int_equal(seen.copy.streak, 1); /* a success ended the streak */
    assert_int_equal(seen.copy.since_us, 4);
    stw_failures_destroy(f);
}

/* A tenant with 10,000 bad objects costs no more than STW_FAILURES_MAX of them. */
static void test_list_of_failures_is_bounded(void **state)
{
    struct stw_failures *f = stw_failures_create();
    char key[64], text[1000];
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 10000; i++) {
        stw_format(key, sizeof(key), "ns/object-%d", i);
        add(f, key, text, i);
    }
    struct seen seen = {0};
    assert_int_equal(stw_failures_each(f, see, &seen), 10000 - STW_FAILURES_MAX);
    assert_int_equal(seen.count, STW_FAILURES_MAX);
    assert_string_equal(seen.first, "ns/object-9999");
    assert_string_equal(seen.last, "ns/object-9968");
    assert_int_equal(strlen(seen.copy.text), sizeof(seen.copy.text) - 1);
    stw_failures_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures_are_listed_latest_first),
        cmocka_unit_test(test_list_of_failures_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
