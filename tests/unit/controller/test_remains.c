/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/child/remains.h"

#include "base/process/memory_budget.h"
#include "base/util.h"
#include "controller/object/finalizer_priv.h"
#include "controller/packed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define FINALIZER "example.com/ours"
#define HAS "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"example.com/x\",\"" FINALIZER "\"]}}"

static void test_only_undeleted_objects_with_finalizer_are_remains(void **state)
{
    static const struct {
        const char *text;
        bool are;
    } cases[] = {
        {HAS, true},
        {"{\"metadata\":{\"finalizers\":[\"example.com/x\"]}}", false},
        {"{\"metadata\":{\"name\":\"a\"}}", false},
        {"{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":["
         "\"" FINALIZER "\"]}}",
         false},
        {"{}", false},
        {"[]", false},
        {"", false},
        {"{", false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        assert_int_equal(stw_finalizer_overtaken(cases[i].text, FINALIZER), cases[i].are);
}

static void test_remains_are_read_from_packed_text(void **state)
{
    struct stw_buf packed = STW_BUF_INIT(4096);
    (void)state;
    stw_pack(HAS, sizeof(HAS) - 1, &packed);
    assert_true(stw_finalizer_overtaken(stw_buf_str(&packed), FINALIZER));
    stw_buf_done(&packed);
}

static void test_remains_are_kept_until_done(void **state)
{
    struct stw_remains *r = stw_remains_create();
    struct stw_buf text = STW_BUF_INIT(4096);
    (void)state;
    assert_int_equal(stw_remains_get(r, "Lamp ns/a", &text), -1);
    assert_true(stw_remains_tried(r, "Lamp ns/a", false)); /* nothing to try again */
    stw_remains_keep(r, "Lamp ns/a", "one");
    stw_remains_keep(r, "Lamp ns/a", "two");
    assert_int_equal(stw_remains_get(r, "Lamp ns/a", &text), 0);
    assert_string_equal(stw_buf_str(&text), "two");
    assert_int_equal(stw_remains_get(r, "Wire ns/a", &text), -1);
    assert_false(stw_remains_tried(r, "Lamp ns/a", false));
    assert_int_equal(stw_remains_get(r, "Lamp ns/a", &text), 0);
    assert_true(stw_remains_tried(r, "Lamp ns/a", true));
    assert_int_equal(stw_remains_get(r, "Lamp ns/a", &text), -1);
    stw_buf_done(&text);
    stw_remains_destroy(r);
    stw_remains_destroy(NULL);
}

static size_t caches_used(void)
{
    return stw_share_facts(STW_SHARE_CACHES).used;
}

/* They are texts of the caches, and may be as many as the limit. */
static void test_remains_count_as_cache_memory(void **state)
{
    struct stw_remains *r = stw_remains_create();
    char text[2000], key[32];
    size_t before = caches_used();
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 10; i++) {
        (void)snprintf(key, sizeof(key), "Lamp ns/%d", i);
        stw_remains_keep(r, key, text);
    }
    assert_true(caches_used() - before > 10 * sizeof(text));
    stw_remains_keep(r, "Lamp ns/0", "short");
    assert_true(stw_remains_tried(r, "Lamp ns/1", true));
    assert_in_range(caches_used() - before, 8 * sizeof(text), 9 * sizeof(text));
    stw_remains_destroy(r);
    assert_int_equal(caches_used(), before);
}

static void test_remains_are_given_up_after_many_tries(void **state)
{
    struct stw_remains *r = stw_remains_create();
    (void)state;
    stw_remains_keep(r, "Lamp ns/a", "one");
    for (unsigned i = 1; i < STW_REMAINS_TRIES_MAX; i++)
        assert_false(stw_remains_tried(r, "Lamp ns/a", false));
    assert_true(stw_remains_tried(r, "Lamp ns/a", false));
    struct stw_buf text = STW_BUF_INIT(4096);
    assert_int_equal(stw_remains_get(r, "Lamp ns/a", &text), -1);
    stw_remains_destroy(r);
}

static void test_number_of_remains_is_limited(void **state)
{
    struct stw_remains *r = stw_remains_create();
    struct stw_buf text = STW_BUF_INIT(4096);
    char key[64];
    (void)state;
    for (unsigned i = 0; i <= STW_REMAINS_MAX; i++) {
        stw_format(key, sizeof(key), "Lamp ns/%u", i);
        stw_remains_keep(r, key, "text");
    }
    assert_int_equal(stw_remains_get(r, key, &text), -1);
    assert_int_equal(stw_remains_get(r, "Lamp ns/0", &text), 0);
    stw_buf_done(&text);
    stw_remains_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_undeleted_objects_with_finalizer_are_remains),
        cmocka_unit_test(test_remains_are_read_from_packed_text),
        cmocka_unit_test(test_remains_are_kept_until_done),
        cmocka_unit_test(test_remains_count_as_cache_memory),
        cmocka_unit_test(test_remains_are_given_up_after_many_tries),
        cmocka_unit_test(test_number_of_remains_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
