/* SPDX-License-Identifier: Apache-2.0
 *
 * Each allocation fails in turn: every call must then fail with an error, leak nothing and work
 * again afterwards. */
#include "base/json.h"
#include "base/metrics.h"
#include "base/table.h"
#include "base/util.h"
#include "base/yaml/yaml.h"
#include "support/refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Runs `call` with the n-th allocation failing, for n from 0 on, until it succeeds. */
static void exhaust(int (*call)(struct stw_error *err))
{
    for (long n = 0; n < 10000; n++) {
        struct stw_error err = {.text = ""};
        left = n;
        int rc = call(&err);
        bool failed = left < 0;
        left = -1;
        if (!failed) {
            assert_int_equal(rc, 0);
            assert_true(n > 0);
            return;
        }
        assert_int_equal(rc, -1);
        assert_true(err.code == STW_ERR_INTERNAL || err.code == STW_ERR_TOO_LARGE);
    }
    fail_msg("it never gets through");
}

static int scan(struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    static char text[8192];
    size_t n = 0;
    text[n++] = '{';
    for (unsigned i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"ke\\u0079-%u\":[%u]", i ? "," : "",
                              i, i);
    text[n++] = '}';
    return stw_json_scan(&doc, text, n, err);
}

static int ignore(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    (void)ctx;
    (void)index;
    (void)line;
    return json->failed ? -1 : 0;
}

static int convert(const char *text, struct stw_error *err)
{
    struct stw_yaml_marks *marks = stw_yaml_marks_create();
    if (!marks)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    int rc = stw_yaml_each_marked("f", text, strlen(text), ignore, NULL, marks, err);
    stw_yaml_marks_destroy(marks);
    return rc;
}

static int read_yaml(struct stw_error *err)
{
    return convert("a: &a {k: 1, 2: x}\nb: [*a, 1.5, !!binary aGk=]\nc: {<<: [*a], true: y}\n",
                   err);
}

static int read_json_as_yaml(struct stw_error *err)
{
    return convert("{\"a\": {\"b\": [1, 2, {\"c\": null}]}}", err);
}

static int count(struct stw_error *err)
{
    static const double bounds[] = {0.1, 1, -1};
    struct stw_metrics *m = stw_metrics_create("steward");
    stw_autobuf struct stw_buf out = STW_BUF_INIT(10000);
    struct stw_family *f =
        stw_metrics_family(m, STW_HISTOGRAM, "h", "help", (const char *[]){"a", "b", NULL}, bounds);
    struct stw_series *s = STW_SERIES(f, "x", "y");
    stw_series_observe(s, 0.5);
    stw_metrics_render(m, &out);
    stw_metrics_destroy(m);
    bool good = s && !out.failed && out.len > 0;
    return good ? 0 : stw_fail(err, STW_ERR_INTERNAL, "out of memory");
}

static const char *key_of(const void *entry)
{
    return entry;
}

/* A table that could not grow keeps its entries. */
static int fill_table(struct stw_error *err)
{
    static char keys[100][8];
    struct stw_table t = STW_TABLE_INIT(key_of);
    unsigned i, found = 0;
    for (i = 0; i < 100; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "%u", i);
        if (stw_table_put(&t, keys[i], NULL) != 0)
            break;
    }
    for (unsigned k = 0; k < i; k++)
        found += stw_table_get(&t, keys[k]) == keys[k];
    bool whole = found == i && stw_table_size(&t) == i;
    stw_table_done(&t);
    if (!whole)
        return stw_fail(err, STW_ERR_INVALID, "an entry was lost");
    return i == 100 ? 0 : stw_fail(err, STW_ERR_INTERNAL, "out of memory");
}

static int read_file(struct stw_error *err)
{
    stw_autofree char *text = NULL;
    return stw_read_file("/proc/self/maps", 1 << 20, &text, NULL, err);
}

static void test_each_failed_allocation_is_handled(void **state)
{
    (void)state;
    exhaust(scan);
    exhaust(read_yaml);
    exhaust(read_json_as_yaml);
    exhaust(count);
    exhaust(fill_table);
    exhaust(read_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_failed_allocation_is_handled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
