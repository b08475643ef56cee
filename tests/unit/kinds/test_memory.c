/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-th allocation fails, for each n: a verdict is either whole or says that it failed; nothing
 * leaks or crashes. */
#include "kinds/myweb.h"

#include "judge.h"

static long allocations_left = -1; /* -1: no limit */

static bool refuse_memory(void)
{
    if (allocations_left < 0)
        return false;
    if (allocations_left == 0)
        return true;
    allocations_left--;
    return false;
}

void *__real_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t size)
{
    return refuse_memory() ? NULL : __real_malloc(size);
}
void *__wrap_realloc(void *p, size_t size)
{
    return refuse_memory() ? NULL : __real_realloc(p, size);
}
char *__wrap_strdup(const char *s)
{
    return refuse_memory() ? NULL : __real_strdup(s);
}

#define BAD                                                                                        \
    "{\"metadata\":{\"name\":\"1web\"},\"spec\":{\"image\":\"No\",\"nodePortNumber\":80,"          \
    "\"replicas\":\"x\",\"contentUpdate\":\"Now\",\"imagePullSecrets\":[{\"name\":\"a\"},"         \
    "{\"name\":\"a\"}],\"resources\":{\"limits\":{\"cpu\":\"x\"},\"requests\":{\"cpu\":0}},"       \
    "\"other\":1}}"

/* Everything that would be said, or "failed". */
static void verdict(const struct stw_admission *a, char *out, size_t size)
{
    stw_autofindings struct stw_findings f = {0};
    size_t used = 0;
    stw_kind_validate(a, &f);
    long left = allocations_left;
    allocations_left = -1;
    snprintf(out, size, "failed");
    for (size_t i = 0; !f.failed && i < f.error_count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s %s %s\n", f.errors[i].path,
                                 f.errors[i].value ? f.errors[i].value : "", f.errors[i].message);
    for (size_t i = 0; !f.failed && i < f.warning_count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s\n", f.warnings[i]);
    allocations_left = left;
}

static void try_all(const char *object, const char *old)
{
    static char want[65536], got[65536];
    struct question q;
    unsigned failures = 0;
    bool whole = false;
    ask(&q, &stw_kind_myweb, object, old, NULL);
    verdict(&q.a, want, sizeof(want));
    assert_true(strlen(want) > 100);
    for (long n = 0; !whole; n++) {
        allocations_left = n;
        verdict(&q.a, got, sizeof(got));
        whole = allocations_left > 0;
        allocations_left = -1;
        if (stw_streq(got, "failed"))
            failures++;
        else
            assert_string_equal(got, want);
        assert_true(n < 10000);
    }
    assert_true(failures > 20);
    ask_done(&q);
}

static void verdicts(void **state)
{
    (void)state;
    try_all(BAD, NULL);
    try_all(BAD, BAD);
}

static void decoding(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err = {0};
    struct stw_myweb web;
    int rc = -1;
    (void)state;
    scan(&doc, "{\"image\":\"nginx\",\"mountPath\":\"/srv\"}");
    for (long n = 0; rc != 0; n++) {
        allocations_left = n;
        struct stw_arena *arena = stw_arena_create();
        rc = arena ? stw_kind_decode(&stw_kind_myweb, stw_json_root(&doc), arena, &web, &err) : -1;
        allocations_left = -1;
        stw_arena_destroy(arena);
        assert_true(n < 100);
    }
    assert_int_equal(web.replicas, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
