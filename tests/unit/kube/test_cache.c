/* SPDX-License-Identifier: Apache-2.0
 *
 * Which version of an object is kept, for any order of lists, events and own writes. */
#include "base/util.h"
#include "kube/cache/cache_priv.h"
#include "kube/cache/usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void index_by_owner(void *ctx, struct stw_json object, struct stw_buf *out)
{
    struct stw_json none, owner;
    (void)ctx;
    stw_json_foreach (stw_json_get(object, "o"), none, owner) {
        stw_json_str(owner, out);
        stw_buf_addc(out, '\n');
    }
}

struct fixture {
    struct stw_cache cache;
    struct stw_cache_scope scope;
    uint64_t now;
};

static struct fixture begin(void)
{
    struct fixture f = {.scope = {.ns = ""}, .now = 1000};
    return f;
}

static struct stw_version version(const char *key, const char *rv, const char *text)
{
    return (struct stw_version){key, rv, text, text ? strlen(text) : 0};
}

/* "+old>new" for a change, "." for none. */
static const char *deliver(struct fixture *f, bool list, const char *key, const char *rv,
                           const char *text)
{
    static char said[200];
    struct stw_version v = version(key, rv, text);
    struct stw_entry *old = NULL;
    int changed = list ? stw_cache_listed(&f->cache, &f->scope, &v, f->now, &old)
                       : stw_cache_watched(&f->cache, &f->scope, &v, f->now, &old);
    assert_in_range(changed, 0, 1);
    (void)snprintf(said, sizeof(said), "+%s>%s", old ? stw_entry_text(old) : "", text ? text : "");
    stw_entry_free(old);
    return changed ? said : ".";
}

static void saw(struct fixture *f, const char *key, const char *rv, const char *text)
{
    struct stw_version v = version(key, rv, text);
    stw_cache_saw(&f->cache, &f->scope, &v, f->now);
}

static void assert_has(struct fixture *f, const char *key, const char *text)
{
    struct stw_buf out = STW_BUF_INIT(1000);
    int r = stw_cache_get(&f->cache, key, &out, NULL);
    assert_int_equal(r, text ? 0 : -1);
    assert_string_equal(stw_buf_str(&out), text ? text : "");
    stw_buf_done(&out);
}

/* Ends a list.  Returns the keys that vanished, as "a,b,". */
static const char *end_list(struct fixture *f, const char *rv)
{
    static char gone[200];
    struct stw_cache_sweep sweep = {0};
    gone[0] = '\0';
    for (struct stw_entry *e; (e = stw_cache_list_end(&f->cache, &f->scope, rv, &sweep));) {
        (void)snprintf(gone + strlen(gone), sizeof(gone) - strlen(gone), "%s,", stw_entry_key(e));
        stw_entry_free(e);
    }
    return gone;
}

static void test_cache_reports_changes(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    assert_string_equal(deliver(&f, false, "a", "9", "{\"v\":1}"), "+>{\"v\":1}");
    assert_string_equal(deliver(&f, false, "a", "9", "{\"v\":1}"), ".");
    assert_string_equal(deliver(&f, false, "a", "10", "{\"v\":1}"), "."); /* a longer version */
    char rv[STW_RV_LEN];
    struct stw_buf out = STW_BUF_INIT(100);
    assert_int_equal(stw_cache_get(&f.cache, "a", &out, rv), 0);
    assert_string_equal(rv, "10");
    stw_buf_done(&out);
    assert_string_equal(deliver(&f, false, "a", "11", "{\"v\":2}"), "+{\"v\":1}>{\"v\":2}");
    assert_string_equal(deliver(&f, false, "a", "12", NULL), "+{\"v\":2}>");
    assert_string_equal(deliver(&f, false, "a", "12", NULL), ".");
    assert_int_equal(stw_cache_count(&f.cache, NULL), 0);
    stw_cache_done(&f.cache);
}

static void test_own_writes_are_in_the_cache(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    (void)deliver(&f, false, "a", "5", "{\"v\":5}");
    saw(&f, "a", "8", "{\"v\":8}");
    assert_has(&f, "a", "{\"v\":8}");
    /* the events that the watch has yet to deliver are older */
    assert_string_equal(deliver(&f, false, "a", "6", "{\"v\":6}"), ".");
    assert_string_equal(deliver(&f, false, "a", "7", NULL), ".");
    assert_has(&f, "a", "{\"v\":8}");
    assert_string_equal(deliver(&f, false, "a", "8", "{\"v\":8}"), ".");
    assert_string_equal(deliver(&f, false, "a", "9", "{\"v\":9}"), "+{\"v\":8}>{\"v\":9}");
    /* a late response */
    saw(&f, "a", "8", "{\"v\":8}");
    assert_has(&f, "a", "{\"v\":9}");
    stw_cache_done(&f.cache);
}

/* The event of an own write needs no further processing; any other event does. */
static void test_event_of_own_write_is_recognised(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    assert_false(stw_cache_confirmed(&f.cache, &f.scope, "a", "5"));
    (void)deliver(&f, false, "a", "5", "{\"v\":5}");
    saw(&f, "a", "8", "{\"v\":8}");
    assert_false(stw_cache_confirmed(&f.cache, &f.scope, "a", "7"));
    assert_true(stw_cache_confirmed(&f.cache, &f.scope, "a", "8"));
    assert_int_equal(f.scope.seen, 8);
    assert_false(stw_cache_confirmed(&f.cache, &f.scope, "a", "9"));
    assert_string_equal(deliver(&f, false, "a", "9", "{\"v\":9}"), "+{\"v\":8}>{\"v\":9}");
    stw_cache_saw_delete(&f.cache, "a", "9", f.now);
    assert_false(stw_cache_confirmed(&f.cache, &f.scope, "a", "9"));
    stw_cache_done(&f.cache);
}

/* The object was deleted, and the watch reported that, before the response to our write reached the
 * cache. */
static void test_late_response_does_not_restore_deleted_object(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    (void)deliver(&f, false, "a", "5", "{\"v\":5}");
    (void)deliver(&f, false, "a", "7", NULL);
    saw(&f, "a", "6", "{\"v\":6}");
    assert_has(&f, "a", NULL);
    /* nor with a list in between */
    stw_cache_list_begin(&f.cache, &f.scope);
    saw(&f, "b", "8", "{\"v\":8}");
    assert_string_equal(end_list(&f, "10"), "b,");
    saw(&f, "b", "9", "{\"v\":9}");
    assert_has(&f, "b", NULL);
    stw_cache_done(&f.cache);
}

static void test_non_numeric_versions_are_accepted(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    (void)deliver(&f, false, "a", "x1", "{\"v\":1}");
    saw(&f, "a", "x3", "{\"v\":3}");
    assert_string_equal(deliver(&f, false, "a", "x2", "{\"v\":2}"), ".");
    assert_string_equal(deliver(&f, false, "a", "x3", "{\"v\":3}"), ".");
    assert_string_equal(deliver(&f, false, "a", "x2", "{\"v\":2}"), "+{\"v\":3}>{\"v\":2}");
    saw(&f, "a", "x5", "{\"v\":5}");
    assert_string_equal(deliver(&f, false, "a", "x4", NULL), "+{\"v\":5}>"); /* always deletes */
    saw(&f, "a", "x6", "{\"v\":6}");
    f.now += STW_CACHE_GATE_MS + 2000; /* a gate expires */
    assert_string_equal(deliver(&f, false, "a", "x7", "{\"v\":7}"), "+{\"v\":6}>{\"v\":7}");
    stw_cache_done(&f.cache);
}

static void test_own_deletes_are_in_the_cache(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    (void)deliver(&f, false, "a", "5", "{\"v\":5}");
    stw_cache_saw_delete(&f.cache, "a", "5", f.now);
    assert_has(&f, "a", NULL);
    assert_string_equal(deliver(&f, false, "a", "5", "{\"v\":5}"), ".");
    assert_string_equal(deliver(&f, false, "a", "6", NULL), ".");
    assert_string_equal(deliver(&f, false, "a", "7", "{\"v\":7}"), "+>{\"v\":7}"); /* a new one */
    /* a finalizer keeps it: it reappears, and is deleted in the end */
    stw_cache_saw_delete(&f.cache, "a", "7", f.now);
    assert_string_equal(deliver(&f, false, "a", "8", "{\"v\":8}"), "+>{\"v\":8}");
    assert_string_equal(deliver(&f, false, "a", "9", NULL), "+{\"v\":8}>");
    /* an object that was never there */
    stw_cache_saw_delete(&f.cache, "z", "9", f.now);
    assert_int_equal(stw_table_size(&f.cache.deleted), 0);
    stw_cache_done(&f.cache);
}

/* Another object got the name, and the watch reported that, before the response to our delete
 * reached the cache. */
static void test_late_delete_does_not_remove_new_object(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    (void)deliver(&f, false, "a", "5", "{\"v\":5}");
    (void)deliver(&f, false, "a", "6", NULL);
    (void)deliver(&f, false, "a", "7", "{\"v\":7}");
    stw_cache_saw_delete(&f.cache, "a", "5", f.now);
    assert_has(&f, "a", "{\"v\":7}");
    assert_int_equal(stw_table_size(&f.cache.deleted), 0);
    assert_string_equal(deliver(&f, false, "a", "8", NULL), "+{\"v\":7}>");
    /* the entry is behind what was deleted: no event up to that brings it back */
    (void)deliver(&f, false, "b", "9", "{\"v\":9}");
    stw_cache_saw_delete(&f.cache, "b", "11", f.now);
    assert_has(&f, "b", NULL);
    assert_string_equal(deliver(&f, false, "b", "10", "{\"v\":10}"), ".");
    assert_string_equal(deliver(&f, false, "b", "13", "{\"v\":13}"), "+>{\"v\":13}");
    stw_cache_done(&f.cache);
}

static void test_list_replaces_the_cache(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    for (const char *const *k = (const char *const[]){"n/a", "n/b", "n/c", "o/d", NULL}; *k; k++)
        (void)deliver(&f, true, *k, "1", "{}");
    f.scope.ns = "n";
    /* an aborted list deletes nothing, the next one does; objects of other namespaces stay */
    stw_cache_list_begin(&f.cache, &f.scope);
    (void)deliver(&f, true, "n/a", "1", "{}");
    stw_cache_list_begin(&f.cache, &f.scope);
    assert_int_equal(stw_cache_count(&f.cache, NULL), 4);
    assert_string_equal(deliver(&f, true, "n/b", "2", "{\"v\":2}"), "+{}>{\"v\":2}");
    assert_string_equal(deliver(&f, true, "o/e", "2", "{}"), "."); /* in another namespace */
    saw(&f, "n/new", "30", "{}"); /* created while the list was read */
    const char *gone = end_list(&f, "20");
    assert_non_null(strstr(gone, "n/a,"));
    assert_non_null(strstr(gone, "n/c,"));
    assert_int_equal(strlen(gone), 8);
    assert_has(&f, "n/b", "{\"v\":2}");
    assert_has(&f, "n/new", "{}");
    assert_has(&f, "o/d", "{}");
    /* after a restore from a backup, versions are lower: the list wins */
    stw_cache_list_begin(&f.cache, &f.scope);
    f.now += STW_CACHE_GATE_MS + 2000;
    assert_string_equal(deliver(&f, true, "n/b", "1", "{\"v\":1}"), "+{\"v\":2}>{\"v\":1}");
    assert_string_equal(end_list(&f, "5"), "n/new,");
    stw_cache_done(&f.cache);
}

/* An own write during a list stays, whether it comes before or after its item, and however long the
 * list takes; unless the list is newer. */
static void test_own_write_during_a_list_is_kept(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    for (const char *const *k = (const char *const[]){"a", "b", "c", "d", NULL}; *k; k++)
        (void)deliver(&f, true, *k, "5", "{\"v\":5}");
    stw_cache_list_begin(&f.cache, &f.scope);
    assert_string_equal(deliver(&f, true, "a", "5", "{\"v\":5}"), ".");
    saw(&f, "a", "25", "{\"v\":25}"); /* after its item */
    saw(&f, "b", "26", "{\"v\":26}"); /* before its item */
    assert_string_equal(deliver(&f, true, "b", "5", "{\"v\":5}"), ".");
    saw(&f, "c", "27", "{\"v\":27}"); /* deleted and recreated: it has no item */
    saw(&f, "d", "15", "{\"v\":15}"); /* deleted again by another client before the list was read */
    saw(&f, "new", "28", "{\"v\":28}");
    f.now += 10 * STW_CACHE_GATE_MS;
    assert_string_equal(end_list(&f, "20"), "d,");
    assert_has(&f, "a", "{\"v\":25}");
    assert_has(&f, "b", "{\"v\":26}");
    assert_has(&f, "c", "{\"v\":27}");
    assert_has(&f, "new", "{\"v\":28}");
    /* the watch from there repeats these events, which are not reported as changes */
    assert_string_equal(deliver(&f, false, "a", "25", "{\"v\":25}"), ".");
    assert_string_equal(deliver(&f, false, "new", "28", "{\"v\":28}"), ".");
    /* the next list overrides what was written before it began */
    stw_cache_list_begin(&f.cache, &f.scope);
    assert_int_equal(strlen(end_list(&f, "40")), strlen("a,b,c,new,"));
    stw_cache_done(&f.cache);
}

/* Removes what was not in a list, and creates `created` objects after `after` removals.  Returns the
 * number of removed objects. */
static unsigned sweep_with_writes(struct fixture *f, unsigned after, unsigned created)
{
    struct stw_cache_sweep sweep = {0};
    unsigned removed = 0;
    char key[32];
    for (struct stw_entry *e; (e = stw_cache_list_end(&f->cache, &f->scope, "20", &sweep));) {
        stw_entry_free(e);
        for (unsigned i = 0; removed == after && i < created; i++) {
            (void)snprintf(key, sizeof(key), "new%u", i);
            saw(f, key, "30", "{}");
        }
        removed++;
    }
    return removed;
}

/* Objects created while the vanished ones are removed make the table grow, which moves its entries:
 * still every vanished object is removed. */
static void test_write_during_removal_of_vanished_objects(void **state)
{
    enum { OLD = 700 };
    char key[32];
    (void)state;
    for (unsigned after = 0; after < OLD; after += 50) {
        struct fixture f = begin();
        stw_cache_init(&f.cache, NULL, NULL);
        for (unsigned i = 0; i < OLD; i++) {
            (void)snprintf(key, sizeof(key), "old%u", i);
            (void)deliver(&f, true, key, "5", "{}");
        }
        stw_cache_list_begin(&f.cache, &f.scope);
        assert_int_equal(sweep_with_writes(&f, after, 1000), OLD);
        assert_int_equal(stw_cache_count(&f.cache, NULL), 1000);
        stw_cache_done(&f.cache);
    }
}

/* With a label selector, an object that loses the label is reported as deleted.  The response to
 * our write that restores the label may arrive before that event. */
static void test_restored_label_keeps_the_object(void **state)
{
    struct fixture f = begin();
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    (void)deliver(&f, false, "a", "5", "{\"v\":5}");
    saw(&f, "a", "7", "{\"v\":5}");
    assert_string_equal(deliver(&f, false, "a", "6", NULL), ".");
    assert_has(&f, "a", "{\"v\":5}");
    assert_string_equal(deliver(&f, false, "a", "7", "{\"v\":5}"), ".");
    /* lost for good */
    assert_string_equal(deliver(&f, false, "a", "8", NULL), "+{\"v\":5}>");
    stw_cache_done(&f.cache);
}

static unsigned count_keys(struct fixture *f, const char *index_key)
{
    unsigned n = 0;
    struct stw_buf out = STW_BUF_INIT(1u << 20);
    stw_cache_keys(&f->cache, index_key, &out);
    for (const char *p = stw_buf_str(&out); *p; p++)
        n += *p == '\n';
    stw_buf_done(&out);
    return n;
}

static void test_cache_index_follows_changes(void **state)
{
    struct fixture f = begin();
    char key[32];
    (void)state;
    stw_cache_init(&f.cache, index_by_owner, NULL);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        (void)deliver(&f, false, key, "1",
                      i % 2 ? "{\"o\":[\"odd\",\"all\"]}" : "{\"o\":[\"all\"]}");
    }
    assert_int_equal(count_keys(&f, "odd"), 50);
    assert_int_equal(count_keys(&f, "all"), 100);
    assert_int_equal(count_keys(&f, NULL), 100);
    assert_int_equal(count_keys(&f, "none"), 0);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        (void)deliver(&f, false, key, "2", i < 10 ? "{\"o\":[\"few\"]}" : NULL);
    }
    assert_int_equal(count_keys(&f, "odd"), 0);
    assert_int_equal(count_keys(&f, "few"), 10);
    assert_int_equal(stw_table_size(&f.cache.index), 1);
    stw_cache_done(&f.cache);
}

/* At most 64 bytes per object beyond its text, including its key and version. */
static void test_cache_overhead_per_object_is_small(void **state)
{
    struct fixture f = begin();
    char key[64], text[200];
    size_t texts = 0, bytes;
    (void)state;
    stw_cache_init(&f.cache, NULL, NULL);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof(key), "namespace-%d/name-%d", i % 10, i);
        (void)snprintf(text, sizeof(text), "{\"spec\":{\"text\":\"%0100d\"}}", i);
        (void)deliver(&f, false, key, "123456789", text);
        texts += strlen(text);
    }
    (void)stw_cache_count(&f.cache, &bytes);
    assert_true(bytes - texts <= 64 * 1000);
    stw_cache_done(&f.cache);
}

/* They take several times the memory of a text that names many objects. */
static void test_index_keys_count_as_memory(void **state)
{
    struct fixture f = begin();
    char text[2000];
    int len = snprintf(text, sizeof(text), "{\"o\":[");
    (void)state;
    for (int i = 0; i < 100; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%s\"k%d\"", i ? "," : "", i);
    (void)snprintf(text + len, sizeof(text) - (size_t)len, "]}");
    stw_cache_init(&f.cache, index_by_owner, NULL);
    for (int round = 0; round < 3; round++) {
        (void)deliver(&f, false, "shop/a", round % 2 ? "3" : "2", text);
        assert_true(stw_cache_usage_of("shop") >= strlen(text) + 100 * stw_index_key_bytes(2));
        (void)deliver(&f, false, "shop/a", "4", "{\"o\":[]}");
        assert_true(stw_cache_usage_of("shop") < 200);
    }
    (void)deliver(&f, false, "shop/a", "5", text);
    (void)deliver(&f, false, "shop/a", "6", NULL);
    assert_int_equal(stw_cache_usage_of("shop"), 0);
    (void)deliver(&f, false, "shop/a", "7", text);
    stw_cache_done(&f.cache);
    assert_int_equal(stw_cache_usage_of("shop"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_reports_changes),
        cmocka_unit_test(test_own_writes_are_in_the_cache),
        cmocka_unit_test(test_event_of_own_write_is_recognised),
        cmocka_unit_test(test_late_response_does_not_restore_deleted_object),
        cmocka_unit_test(test_non_numeric_versions_are_accepted),
        cmocka_unit_test(test_own_deletes_are_in_the_cache),
        cmocka_unit_test(test_late_delete_does_not_remove_new_object),
        cmocka_unit_test(test_list_replaces_the_cache),
        cmocka_unit_test(test_own_write_during_a_list_is_kept),
        cmocka_unit_test(test_write_during_removal_of_vanished_objects),
        cmocka_unit_test(test_restored_label_keeps_the_object),
        cmocka_unit_test(test_cache_index_follows_changes),
        cmocka_unit_test(test_cache_overhead_per_object_is_small),
        cmocka_unit_test(test_index_keys_count_as_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
