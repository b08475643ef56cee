/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache when any of its allocations fails. */
#include "base/util.h"
#include "kube/cache/cache_priv.h"
#include "support/refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Like the index functions of kinds: through a buffer of its own, so that a failure looks like an
 * object without keys. */
static void index_by_owner(void *ctx, struct stw_json object, struct stw_buf *out)
{
    struct stw_json none, owner;
    (void)ctx;
    stw_json_foreach (stw_json_get(object, "o"), none, owner) {
        stw_autobuf struct stw_buf name = STW_BUF_INIT(100);
        stw_json_str(owner, &name);
        if (!name.failed)
            stw_index_add(out, "o", stw_buf_str(&name));
    }
}

static const struct stw_cache_scope everywhere = {.ns = ""};

static int deliver(struct stw_cache *c, const char *key, const char *rv, const char *text)
{
    struct stw_version v = {key, rv, text, text ? strlen(text) : 0};
    struct stw_cache_scope scope = everywhere;
    struct stw_entry *old = NULL;
    int rc = stw_cache_watched(c, &scope, &v, 1000, &old);
    stw_entry_free(old);
    return rc;
}

/* The keys of the objects with this index key, each ended by a comma. */
static const char *find(struct stw_cache *c, const char *index_key)
{
    static char said[200];
    struct stw_buf out = STW_BUF_INIT(1000);
    stw_cache_keys(c, index_key, &out);
    assert_false(out.failed);
    (void)snprintf(said, sizeof(said), "%s", stw_buf_str(&out));
    for (char *p = said; (p = strchr(p, '\n'));)
        *p = ',';
    stw_buf_done(&out);
    return said;
}

static void fill(struct stw_cache *c)
{
    stw_cache_init(c, index_by_owner, NULL);
    (void)deliver(c, "a", "1", "{\"o\":[\"x\",\"y\"]}");
    (void)deliver(c, "b", "1", "{\"o\":[\"x\"]}");
    /* Scratch memory that is kept would hide failures. */
    stw_json_done(&c->doc);
}

/* However an allocation fails, the index never names an object that is gone.  (With a dangling
 * pointer, AddressSanitizer reports it here, and without it the key is garbage.) */
static void test_index_is_consistent_after_failed_allocation(void **state)
{
    static const char *const texts[] = {NULL, "{\"o\":[\"z\"]}", "{\"o\":[\"y\",\"z\"]}"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        bool failed = true;
        for (long n = 0; failed; n++) {
            struct stw_cache c;
            assert_true(n < 100);
            fill(&c);
            left = n;
            (void)deliver(&c, "a", "2", texts[i]);
            failed = left < 0;
            left = -1;
            (void)deliver(&c, "a", "3", NULL);
            assert_string_equal(find(&c, "o:x"), "b,");
            assert_string_equal(find(&c, "o:y"), "");
            assert_string_equal(find(&c, "o:z"), "");
            assert_int_equal(stw_table_size(&c.index), 1);
            stw_cache_done(&c);
        }
    }
}

static void assert_text(struct stw_cache *c, const char *key, const char *text)
{
    struct stw_buf out = STW_BUF_INIT(1000);
    assert_int_equal(stw_cache_get(c, key, &out, NULL), text ? 0 : -1);
    assert_string_equal(stw_buf_str(&out), text ? text : "");
    stw_buf_done(&out);
}

/* A version is either stored or reported as not stored.  The former one then stays. */
static void test_cache_reports_an_unstored_version(void **state)
{
    static const struct {
        const char *key, *before;
    } cases[] = {{"a", "{\"o\":[\"x\",\"y\"]}"}, {"new", NULL}};
    static const char text[] = "{\"o\":[\"z\"],\"v\":2}";
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        bool failed = true, refused = false;
        for (long n = 0; failed; n++) {
            struct stw_cache c;
            assert_true(n < 100);
            fill(&c);
            left = n;
            int rc = deliver(&c, cases[i].key, "2", text);
            failed = left < 0;
            left = -1;
            assert_int_not_equal(rc, 0);
            assert_text(&c, cases[i].key, rc < 0 ? cases[i].before : text);
            refused |= rc < 0;
            assert_int_equal(deliver(&c, cases[i].key, "2", text), rc < 0 ? 1 : 0);
            assert_text(&c, cases[i].key, text);
            stw_cache_done(&c);
        }
        assert_true(refused);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_reports_an_unstored_version),
        cmocka_unit_test(test_index_is_consistent_after_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
