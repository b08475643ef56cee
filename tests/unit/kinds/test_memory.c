/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-th allocation and all after it fail, for each n: a verdict is either complete or marked as
 * failed; nothing leaks or crashes. */
#include "kinds/databaseuser/spec.h"
#include "kinds/myweb/spec.h"
#include "sql/target/target.h"

#include "kinds/common/product.h"
#include "support/judge.h"
#include "support/refuse.h"

#define BAD                                                                                        \
    "{\"metadata\":{\"name\":\"1web\"},\"spec\":{\"image\":\"No\",\"nodePortNumber\":80,"          \
    "\"replicas\":\"x\",\"contentUpdate\":\"Now\",\"imagePullSecrets\":[{\"name\":\"a\"},"         \
    "{\"name\":\"a\"}],\"resources\":{\"limits\":{\"cpu\":\"x\"},\"requests\":{\"cpu\":0}},"       \
    "\"other\":1}}"

/* All findings as text, or "failed". */
static void verdict(const struct stw_admission *a, char *out, size_t size)
{
    stw_autofindings struct stw_findings f = {0};
    size_t used = 0;
    stw_kind_validate(a, &f);
    long before = left;
    left = -1;
    snprintf(out, size, "failed");
    for (size_t i = 0; !f.failed && i < f.error_count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s %s %s\n", f.errors[i].path,
                                 f.errors[i].value ? f.errors[i].value : "", f.errors[i].message);
    for (size_t i = 0; !f.failed && i < f.warning_count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s\n", f.warnings[i]);
    left = before;
}

static void try_all(const struct stw_kind *kind, const char *object, const char *old,
                    const struct stw_env *env)
{
    static char want[65536], got[65536];
    struct question q;
    unsigned failures = 0;
    bool whole = false;
    ask(&q, kind, object, old, env);
    verdict(&q.a, want, sizeof(want));
    assert_true(strlen(want) > 100);
    for (long n = 0; !whole; n++) {
        left = n;
        verdict(&q.a, got, sizeof(got));
        whole = left > 0;
        left = -1;
        if (stw_streq(got, "failed"))
            failures++;
        else
            assert_string_equal(got, want);
        assert_true(n < 10000);
    }
    assert_true(failures > 20);
    ask_done(&q);
}

static void test_verdict_survives_failed_allocations(void **state)
{
    (void)state;
    try_all(&stw_kind_myweb, BAD, NULL, NULL);
    try_all(&stw_kind_myweb, BAD, BAD, NULL);
}

/* --- rules with lookups */

#define TARGETS                                                                                    \
    "[{\"name\":\"t\",\"engine\":\"mariadb\",\"host\":\"h\",\"admin\":{\"user\":\"chief\","        \
    "\"passwordFile\":\"/f\"},\"allowedNamespaces\":[\"a\"],\"allowedPrivileges\":[\"SELECT\"]}]"
#define WRONG_TARGETS                                                                              \
    "[{\"name\":\"t\",\"engine\":\"mysql\",\"host\":\"h\",\"admin\":{\"user\":\"chief\"},"         \
    "\"allowedPrivileges\":[\"CONNECT\"]},{\"name\":\"T\",\"engine\":\"x\",\"prot\":5},6]"
#define BAD_USER                                                                                   \
    "{\"metadata\":{\"name\":\"a\",\"labels\":{\"target\":\"t\"}},\"spec\":{\"user\":\"root\","    \
    "\"password\":{\"name\":\"s\"},\"hosts\":[\"a\",\"a\"],\"grants\":[{\"database\":\"*\","       \
    "\"privileges\":[\"DROP\",\"FILE\",\"DROP\"]},{\"database\":\"d\",\"schema\":\"s\","           \
    "\"privileges\":[\"ALL\"],\"grantOption\":true}],\"reassignOwnedTo\":\"r\"}}"

static bool taken(void *ctx, const char *index, const char *key, const char *self, char *ret_holder)
{
    (void)ctx, (void)index, (void)key, (void)self;
    (void)snprintf(ret_holder, 512, "other/one");
    return true;
}

static int short_secret(void *ctx, const char *ns, const char *name, const char *key,
                        struct stw_secret_facts *ret)
{
    (void)ctx, (void)ns, (void)name, (void)key;
    *ret = (struct stw_secret_facts){.secret_there = true, .key_there = true, .len = 3};
    return 0;
}

static void test_verdict_with_targets_survives_failed_allocations(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    struct stw_targets *targets = NULL;
    (void)state;
    scan(&doc, TARGETS);
    assert_int_equal(stw_targets_parse(stw_json_root(&doc), &targets, &f), 0);
    struct stw_lookup lookup = {.ctx = targets, .find = taken, .secret = short_secret};
    const struct stw_product product = {.targets = stw_targets_now, .targets_ctx = targets};
    const struct stw_env env = {.lookup = &lookup, .product = &product};
    try_all(&stw_kind_databaseuser, BAD_USER, NULL, &env);
    try_all(&stw_kind_databaseuser, BAD_USER, BAD_USER, &env);
    stw_targets_unref(targets);
}

/* A list is complete, or refused. */
static void test_target_list_survives_failed_allocations(void **state)
{
    static const char *const texts[] = {TARGETS, WRONG_TARGETS};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        stw_autojson struct stw_json_doc doc = {0};
        bool whole = false;
        size_t errors = 0;
        scan(&doc, texts[i]);
        for (long n = 0; !whole; n++) {
            stw_autofindings struct stw_findings f = {0};
            struct stw_targets *list = NULL;
            left = n;
            int rc = stw_targets_parse(stw_json_root(&doc), &list, &f);
            whole = left > 0;
            left = -1;
            assert_int_equal(rc, list ? 0 : -1);
            assert_true(rc == 0 || f.failed || f.error_count > 0);
            assert_true(!whole || !f.failed);
            errors = f.error_count;
            stw_targets_unref(list);
            assert_true(n < 10000);
        }
        assert_int_equal(errors > 0, i);
    }
}

static void test_decoding_survives_failed_allocations(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err = {0};
    struct myweb_spec web;
    int rc = -1;
    (void)state;
    scan(&doc, "{\"image\":\"nginx\",\"mountPath\":\"/srv\"}");
    for (long n = 0; rc != 0; n++) {
        left = n;
        struct stw_arena *arena = stw_arena_create();
        rc = arena ? stw_kind_decode(&stw_kind_myweb, stw_json_root(&doc), arena, &web, &err) : -1;
        left = -1;
        stw_arena_destroy(arena);
        assert_true(n < 100);
    }
    assert_int_equal(web.replicas, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict_survives_failed_allocations),
        cmocka_unit_test(test_verdict_with_targets_survives_failed_allocations),
        cmocka_unit_test(test_target_list_survives_failed_allocations),
        cmocka_unit_test(test_decoding_survives_failed_allocations),
    };
    all_after = true;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
