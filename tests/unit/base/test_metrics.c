/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"
#include "base/util.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static const char *const two_labels[] = {"webhook", "code", NULL};
static const double buckets[] = {0.005, 0.1, 1, 2.5, -1};

static void test_metrics_are_rendered(void **state)
{
    (void)state;
    struct stw_metrics *m = stw_metrics_create("steward");
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
    struct stw_family *requests = stw_metrics_family(m, STW_COUNTER, "b_requests_total",
                                                     "Requests \\ by\npath.", two_labels, NULL);
    struct stw_family *depth = stw_metrics_family(m, STW_GAUGE, "a_depth", "Depth.", NULL, NULL);
    struct stw_family *took = stw_metrics_family(m, STW_HISTOGRAM, "c_seconds", "Time.",
                                                 (const char *[]){"kind", NULL}, buckets);
    (void)stw_metrics_family(m, STW_GAUGE, "d_unused", "No series, no text.", NULL, NULL);

    stw_series_add(STW_SERIES(requests, "/a\"b\\c\nd", "200"), 3);
    stw_series_add(STW_SERIES(requests, "/", "500"), 0);
    stw_series_set(STW_SERIES0(depth), -1.5);
    struct stw_series *s = STW_SERIES(took, "MyWeb");
    static const double seen[] = {0.005, 0.0051, 0.5, 1, 100};
    for (size_t i = 0; i < STW_COUNT(seen); i++)
        stw_series_observe(s, seen[i]);
    stw_metrics_render(m, &out);
    assert_string_equal(stw_buf_str(&out),
                        "# HELP a_depth Depth.\n"
                        "# TYPE a_depth gauge\n"
                        "a_depth -1.5\n"
                        "# HELP b_requests_total Requests \\\\ by\\npath.\n"
                        "# TYPE b_requests_total counter\n"
                        "b_requests_total{webhook=\"/a\\\"b\\\\c\\nd\",code=\"200\"} 3\n"
                        "b_requests_total{webhook=\"/\",code=\"500\"} 0\n"
                        "# HELP c_seconds Time.\n"
                        "# TYPE c_seconds histogram\n"
                        "c_seconds_bucket{kind=\"MyWeb\",le=\"0.005\"} 1\n"
                        "c_seconds_bucket{kind=\"MyWeb\",le=\"0.1\"} 2\n"
                        "c_seconds_bucket{kind=\"MyWeb\",le=\"1\"} 4\n"
                        "c_seconds_bucket{kind=\"MyWeb\",le=\"2.5\"} 4\n"
                        "c_seconds_bucket{kind=\"MyWeb\",le=\"+Inf\"} 5\n"
                        "c_seconds_sum{kind=\"MyWeb\"} 101.5101\n"
                        "c_seconds_count{kind=\"MyWeb\"} 5\n");
    assert_true(stw_series_value(s) > 4.5 && stw_series_value(s) < 5.5);
    stw_metrics_destroy(m);
}

static void test_own_metrics_get_the_operator_prefix(void **state)
{
    (void)state;
    struct stw_metrics *one = stw_metrics_create("one"), *two = stw_metrics_create("two");
    struct stw_metrics *const both[] = {one, two};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
    char long_name[300];
    memset(long_name, '_', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    for (size_t i = 0; i < STW_COUNT(both); i++) {
        struct stw_family *own =
            stw_metrics_family(both[i], STW_GAUGE, "_objects", "O.", NULL, NULL);
        struct stw_family *common =
            stw_metrics_family(both[i], STW_GAUGE, "workqueue_depth", "D.", NULL, NULL);
        stw_series_set(STW_SERIES0(own), (double)i);
        stw_series_set(STW_SERIES0(common), (double)i);
        assert_ptr_equal(stw_metrics_family(both[i], STW_GAUGE, "_objects", "O.", NULL, NULL), own);
        assert_null(stw_metrics_family(both[i], STW_GAUGE, long_name, "L.", NULL, NULL));
        stw_metrics_render(both[i], &out);
    }
    assert_string_equal(stw_buf_str(&out),
                        "# HELP one_objects O.\n# TYPE one_objects gauge\n"
                        "one_objects 0\n"
                        "# HELP workqueue_depth D.\n# TYPE workqueue_depth gauge\n"
                        "workqueue_depth 0\n"
                        "# HELP two_objects O.\n# TYPE two_objects gauge\n"
                        "two_objects 1\n"
                        "# HELP workqueue_depth D.\n# TYPE workqueue_depth gauge\n"
                        "workqueue_depth 1\n");
    stw_metrics_destroy(one);
    stw_metrics_destroy(two);
}

static void test_metric_numbers_are_formatted(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1, "1"},
        {0.1, "0.1"},
        {1e6, "1000000"},
        {1e300, "1e+300"},
        {1.0 / 3, "0.3333333333333333"},
        {5e-324, "4.94065645841247e-324"},
        {1795232366.25, "1795232366.25"},
        {HUGE_VAL, "+Inf"},
        {-HUGE_VAL, "-Inf"},
        {(double)NAN, "NaN"},
    };
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_series *s = STW_SERIES0(stw_metrics_family(m, STW_GAUGE, "g", "h", NULL, NULL));
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
        char want[80];
        stw_series_set(s, rows[i].v);
        stw_metrics_render(m, &out);
        (void)snprintf(want, sizeof(want), "# HELP g h\n# TYPE g gauge\ng %s\n", rows[i].text);
        assert_string_equal(stw_buf_str(&out), want);
    }
    stw_metrics_destroy(m);
}

static void test_same_labels_are_the_same_series(void **state)
{
    (void)state;
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_family *f = stw_metrics_family(m, STW_COUNTER, "n", "h", two_labels, NULL);
    assert_ptr_equal(f, stw_metrics_family(m, STW_COUNTER, "n", "h", two_labels, NULL));
    struct stw_series *s = STW_SERIES(f, "a", "b");
    assert_non_null(s);
    assert_ptr_equal(s, STW_SERIES(f, "a", "b"));
    assert_ptr_not_equal(s, STW_SERIES(f, "a", "c"));
    /* a quote in a value must not make two pairs of values equal */
    assert_ptr_not_equal(STW_SERIES(f, "a\",code=\"b", "c"), STW_SERIES(f, "a", "b\",code=\"c"));
    /* exactly one value per label */
    assert_null(STW_SERIES(f, "a"));
    assert_null(STW_SERIES(f, "a", "b", "c"));
    stw_metrics_destroy(m);
}

static void test_number_of_series_is_bounded(void **state)
{
    (void)state;
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_family *f =
        stw_metrics_family(m, STW_COUNTER, "n", "h", (const char *[]){"l", NULL}, NULL);
    char value[16];
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(value, sizeof(value), "%u", i);
        assert_non_null(STW_SERIES(f, value));
    }
    assert_null(STW_SERIES(f, "one too many"));
    assert_non_null(STW_SERIES(f, "999"));
    stw_metrics_destroy(m);
}

static void test_metrics_accept_null(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf out = STW_BUF_INIT(10);
    assert_null(stw_metrics_family(NULL, STW_GAUGE, "n", "h", NULL, NULL));
    assert_null(STW_SERIES0(NULL));
    stw_series_add(NULL, 1);
    stw_series_set(NULL, 1);
    stw_series_observe(NULL, 1);
    assert_true(stw_series_value(NULL) <= 0);
    stw_metrics_render(NULL, &out);
    stw_metrics_add_process(NULL);
    assert_int_equal(stw_metrics_on_collect(NULL, NULL, NULL), -1);
    stw_metrics_destroy(NULL);
    assert_int_equal(out.len, 0);
}

struct shared {
    struct stw_metrics *m;
    struct stw_family *counter, *histogram;
};

static void *update(void *arg)
{
    const struct shared *s = arg;
    for (unsigned i = 0; i < 20000; i++) {
        stw_series_add(STW_SERIES(s->counter, i % 2 ? "odd" : "even"), 1);
        stw_series_observe(STW_SERIES0(s->histogram), i % 2 ? 0.05 : 5);
    }
    return NULL;
}

/* Nothing is lost when several threads update and another renders. */
static void test_concurrent_metric_updates_are_not_lost(void **state)
{
    (void)state;
    struct shared s = {.m = stw_metrics_create("steward")};
    pthread_t ids[4];
    s.counter = stw_metrics_family(s.m, STW_COUNTER, "c", "h", (const char *[]){"l", NULL}, NULL);
    s.histogram = stw_metrics_family(s.m, STW_HISTOGRAM, "h", "h", NULL, buckets);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, update, &s), 0);
    for (unsigned i = 0; i < 50; i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 16);
        stw_metrics_render(s.m, &out);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
    assert_int_equal((int)stw_series_value(STW_SERIES(s.counter, "odd")), 40000);
    assert_int_equal((int)stw_series_value(STW_SERIES(s.counter, "even")), 40000);
    assert_int_equal((int)stw_series_value(STW_SERIES0(s.histogram)), 80000);
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 16);
    stw_metrics_render(s.m, &out);
    assert_non_null(strstr(stw_buf_str(&out), "h_bucket{le=\"0.1\"} 40000\n"));
    stw_metrics_destroy(s.m);
}

static void count_call(void *ctx)
{
    struct stw_metrics *m = ctx;
    stw_series_add(STW_SERIES0(stw_metrics_family(m, STW_GAUGE, "calls", "h", NULL, NULL)), 1);
}

static void test_metric_collectors_are_called(void **state)
{
    (void)state;
    struct stw_metrics *m = stw_metrics_create("steward");
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 16);
    assert_int_equal(stw_metrics_on_collect(m, count_call, m), 0);
    assert_int_equal(stw_metrics_on_collect(m, count_call, m), 0);
    stw_metrics_render(m, &out);
    assert_non_null(strstr(stw_buf_str(&out), "\ncalls 2\n"));
    stw_metrics_destroy(m);
}

static double sample(const char *text, const char *name)
{
    char line[80];
    (void)snprintf(line, sizeof(line), "\n%s ", name);
    const char *at = strstr(text, line);
    assert_non_null(at);
    return strtod(at + strlen(line), NULL);
}

static void test_process_metrics_are_present(void **state)
{
    (void)state;
    struct stw_metrics *m = stw_metrics_create("steward");
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 16);
    stw_metrics_add_process(m);
    stw_metrics_render(m, &out);
    const char *text = stw_buf_str(&out);
    double started = sample(text, "process_start_time_seconds"), now = (double)time(NULL);
    assert_true(started > now - 600 && started < now + 2);
    assert_true(sample(text, "process_resident_memory_bytes") > 100000);
    assert_true(sample(text, "process_virtual_memory_bytes") >
                sample(text, "process_resident_memory_bytes"));
    assert_true(sample(text, "process_max_fds") >= sample(text, "process_open_fds"));
    assert_true(sample(text, "process_open_fds") >= 3);
    assert_true(sample(text, "process_cpu_seconds_total") > 0);
    /* it counts the descriptors that are open */
    double before = sample(text, "process_open_fds");
    int fd = dup(1);
    stw_buf_clear(&out);
    stw_metrics_render(m, &out);
    (void)close(fd);
    double after = sample(stw_buf_str(&out), "process_open_fds");
    assert_true(after > before && after < before + 2);
    stw_metrics_destroy(m);
}

/* Checks the output with promtool, if that is installed. */
static void test_promtool_accepts_the_metrics(void **state)
{
    (void)state;
    if (system("command -v promtool >/dev/null 2>&1") != 0)
        skip();
    struct stw_metrics *m = stw_metrics_create("steward");
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 16);
    stw_metrics_add_process(m);
    stw_series_add(STW_SERIES(stw_metrics_family(m, STW_COUNTER, "some_requests_total",
                                                 "Help \\ x.", two_labels, NULL),
                              "/a\"b\\c\nd\xe6\xac\xa2", "200"),
                   3);
    stw_series_observe(STW_SERIES(stw_metrics_family(m, STW_HISTOGRAM, "some_seconds", "Time.",
                                                     two_labels, buckets),
                                  "/", "200"),
                       0.3);
    stw_metrics_render(m, &out);
    FILE *judge = popen("promtool check metrics", "w");
    assert_non_null(judge);
    assert_int_equal(fwrite(out.data, 1, out.len, judge), out.len);
    assert_int_equal(pclose(judge), 0);
    stw_metrics_destroy(m);
}

static void test_removed_series_disappear(void **state)
{
    (void)state;
    struct stw_metrics *m = stw_metrics_create("steward");
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
    struct stw_family *f =
        stw_metrics_family(m, STW_GAUGE, "of_objects", "x", (const char *[]){"name", NULL}, NULL);
    stw_series_remove(NULL);
    stw_series_remove(STW_SERIES(f, "only"));
    (void)STW_SERIES(f, "first");
    struct stw_series *second = STW_SERIES(f, "second"), *last = STW_SERIES(f, "last");
    stw_series_remove(second);
    stw_series_remove(last);
    struct stw_series *shared = STW_SERIES(f, "again");
    assert_ptr_equal(STW_SERIES(f, "again"), shared);
    stw_series_remove(shared); /* one of two references is dropped */
    stw_series_set(shared, 4);
    stw_metrics_render(m, &out);
    assert_string_equal(stw_buf_str(&out),
                        "# HELP of_objects x\n# TYPE of_objects gauge\n"
                        "of_objects{name=\"first\"} 0\nof_objects{name=\"again\"} 4\n");
    for (unsigned i = 0; i < 3000; i++) { /* the limit of a family counts existing series only */
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        struct stw_series *s = STW_SERIES(f, name);
        assert_non_null(s);
        stw_series_remove(s);
    }
    stw_metrics_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics_are_rendered),
        cmocka_unit_test(test_metric_numbers_are_formatted),
        cmocka_unit_test(test_same_labels_are_the_same_series),
        cmocka_unit_test(test_number_of_series_is_bounded),
        cmocka_unit_test(test_metrics_accept_null),
        cmocka_unit_test(test_concurrent_metric_updates_are_not_lost),
        cmocka_unit_test(test_metric_collectors_are_called),
        cmocka_unit_test(test_process_metrics_are_present),
        cmocka_unit_test(test_promtool_accepts_the_metrics),
        cmocka_unit_test(test_removed_series_disappear),
        cmocka_unit_test(test_own_metrics_get_the_operator_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
