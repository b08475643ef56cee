/* SPDX-License-Identifier: Apache-2.0
 *
 * The context of traces from hostile clients, samplers, spans, and the bounded queue. */
#include "base/telemetry/trace.h"

#include "base/clock.h"
#include "base/util.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define ZEROS "0000000000000000"

static const struct stw_sampler all = {STW_SAMPLE_ALL, true, 1};

static void test_valid_traceparent_is_parsed(void **state)
{
    static const struct {
        const char *text;
        bool sampled;
    } rows[] = {
        {"00-" TRACE "-" SPAN "-01", true},
        {"00-" TRACE "-" SPAN "-00", false},
        {"00-" TRACE "-" SPAN "-ff", true}, /* flags that are not known yet */
        {"00-" TRACE "-" SPAN "-02", false},
        {"01-" TRACE "-" SPAN "-01", true}, /* a later version */
        {"cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like", true},
    };
    struct stw_trace_context c;
    char again[STW_TRACEPARENT_LEN];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        assert_int_equal(stw_traceparent_parse(rows[i].text, &c), 0);
        assert_true(stw_trace_context_is_set(&c));
        assert_int_equal(c.sampled, rows[i].sampled);
        stw_traceparent_format(&c, again);
        assert_string_equal(again, rows[i].sampled ? "00-" TRACE "-" SPAN "-01"
                                                   : "00-" TRACE "-" SPAN "-00");
    }
}

static void test_invalid_traceparent_is_refused(void **state)
{
    static const char *const rows[] = {
        NULL,
        "",
        "-",
        "00",
        "00-" TRACE "-" SPAN,
        "00-" TRACE "-" SPAN "-",
        "00-" TRACE "-" SPAN "-1",
        "00-" TRACE "-" SPAN "-0x",
        "00-" TRACE "-" SPAN "-01 ",
        "00-" TRACE "-" SPAN "-01-more",
        "00-" TRACE "-" SPAN "-011",
        "01-" TRACE "-" SPAN "-01.more",
        "ff-" TRACE "-" SPAN "-01",
        "0g-" TRACE "-" SPAN "-01",
        "0-" TRACE "-" SPAN "-01",
        " 00-" TRACE "-" SPAN "-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-" TRACE "-B7AD6B7169203331-01",
        "00-" ZEROS ZEROS "-" SPAN "-01",
        "00-" TRACE "-" ZEROS "-01",
        "00-0af7651916cd43dd8448eb211c80319-" SPAN "-01",
        "00-0af7651916cd43dd8448eb211c80319zz" SPAN "-01",
        "00_" TRACE "_" SPAN "_01",
        "\xff\xfe-" TRACE "-" SPAN "-01",
    };
    struct stw_trace_context c;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        memset(&c, 0xaa, sizeof(c));
        assert_int_equal(stw_traceparent_parse(rows[i], &c), -1);
        assert_false(stw_trace_context_is_set(&c));
        assert_false(c.sampled);
    }
}

/* Of any length, at the end of its memory, so that a sanitizer finds a read beyond it. */
static void test_traceparent_of_any_length_is_read_safely(void **state)
{
    static const char future[] = "cc-" TRACE "-" SPAN "-01-";
    (void)state;
    for (size_t len = 0; len < 2000; len += len < 80 ? 1 : 97) {
        struct stw_trace_context c;
        char *text = malloc(len + 1);
        assert_non_null(text);
        memset(text, 'a', len);
        memcpy(text, future, STW_MIN(len, sizeof(future) - 1));
        text[len] = '\0';
        assert_int_equal(stw_traceparent_parse(text, &c),
                         len == 55 || (len > 55 && len <= 512) ? 0 : -1);
        free(text);
    }
}

static void test_samplers_are_chosen_by_name(void **state)
{
    static const struct {
        const char *name, *arg;
        int result;
        struct stw_sampler is;
    } rows[] = {
        {NULL, NULL, 0, {STW_SAMPLE_ALL, true, 1}},
        {"", "0.5", 0, {STW_SAMPLE_ALL, true, 1}},
        {"always_on", NULL, 0, {STW_SAMPLE_ALL, false, 1}},
        {"always_off", NULL, 0, {STW_SAMPLE_NONE, false, 1}},
        {"parentbased_always_off", "junk", 0, {STW_SAMPLE_NONE, true, 1}},
        {"traceidratio", "0.25", 0, {STW_SAMPLE_RATIO, false, 0.25}},
        {"parentbased_traceidratio", "0", 0, {STW_SAMPLE_RATIO, true, 0}},
        {"parentbased_traceidratio", "1.0", 0, {STW_SAMPLE_RATIO, true, 1}},
        {"parentbased_traceidratio", NULL, 0, {STW_SAMPLE_RATIO, true, 1}},
        {"parentbased_traceidratio", "1.5", -1, {STW_SAMPLE_RATIO, true, 1}},
        {"parentbased_traceidratio", "-0.5", -1, {STW_SAMPLE_RATIO, true, 1}},
        {"parentbased_traceidratio", "0.5x", -1, {STW_SAMPLE_RATIO, true, 1}},
        {"parentbased_traceidratio", ".", -1, {STW_SAMPLE_RATIO, true, 1}},
        {"parentbased_traceidratio", "0.1.1", -1, {STW_SAMPLE_RATIO, true, 1}},
        {"jaeger_remote", NULL, -1, {STW_SAMPLE_ALL, true, 1}},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_sampler s;
        assert_int_equal(stw_sampler_parse(rows[i].name, rows[i].arg, &s), rows[i].result);
        assert_int_equal(s.root, rows[i].is.root);
        assert_int_equal(s.parent_based, rows[i].is.parent_based);
        assert_true(s.ratio == rows[i].is.ratio);
    }
}

static void test_sampling_decision_follows_the_sampler(void **state)
{
    const struct stw_trace_context yes = {{1}, {1}, true}, no = {{1}, {1}, false}, none = {0};
    const struct stw_sampler ratio = {STW_SAMPLE_RATIO, true, 0.5};
    const struct stw_sampler alone = {STW_SAMPLE_RATIO, false, 0.5};
    const struct stw_sampler off = {STW_SAMPLE_NONE, true, 1}, never = {STW_SAMPLE_NONE, false, 1};
    uint8_t low[16] = {[8] = 0x7f, [15] = 0xff}, high[16] = {[8] = 0x80};
    (void)state;
    assert_true(stw_sampler_decides(&ratio, low, NULL));
    assert_true(stw_sampler_decides(&ratio, low, &none));
    assert_false(stw_sampler_decides(&ratio, high, NULL));
    assert_true(stw_sampler_decides(&ratio, high, &yes));
    assert_false(stw_sampler_decides(&ratio, low, &no));
    assert_false(stw_sampler_decides(&alone, high, &yes));
    assert_true(stw_sampler_decides(&alone, low, &no));
    assert_true(stw_sampler_decides(&off, low, &yes));
    assert_false(stw_sampler_decides(&off, low, NULL));
    assert_false(stw_sampler_decides(&never, low, &yes));
}

/* --- spans */

static struct stw_tracer *begin(const struct stw_sampler *sampler, uint32_t max)
{
    struct stw_tracer *t = stw_tracer_create(sampler, max, NULL);
    assert_non_null(t);
    stw_tracer_install(t);
    return t;
}

/* All that is queued. */
static struct stw_span_record *end(struct stw_tracer *t)
{
    stw_tracer_close(t);
    struct stw_span_record *list = stw_tracer_take(t, UINT32_MAX, 0);
    stw_tracer_destroy(t);
    assert_false(stw_trace_on());
    return list;
}

static void test_nothing_is_recorded_without_a_tracer(void **state)
{
    struct stw_span s, child;
    char id[STW_TRACE_ID_LEN];
    (void)state;
    assert_false(stw_trace_on());
    stw_span_begin(&s, STW_SPAN_SERVER, "x", NULL, 0);
    stw_span_begin_child(&child, STW_SPAN_CLIENT, "y");
    assert_false(s.active || s.recording || child.active || child.recording);
    stw_span_str(&s, "k", "v");
    stw_span_fail(&s, "v");
    assert_null(stw_span_trace_id(id));
    stw_span_end(&child);
    stw_span_end(&s);
}

static void test_spans_have_their_parents(void **state)
{
    struct stw_tracer *t = begin(&all, 10);
    struct stw_trace_context caller;
    struct stw_span outer, inner, alone;
    char id[STW_TRACE_ID_LEN];
    (void)state;
    stw_span_begin_child(&alone, STW_SPAN_CLIENT, "without a parent");
    assert_false(alone.active);
    stw_span_end(&alone);
    assert_int_equal(stw_traceparent_parse("00-" TRACE "-" SPAN "-01", &caller), 0);
    stw_span_begin(&outer, STW_SPAN_SERVER, "outer", &caller, 5000000);
    assert_string_equal(stw_span_trace_id(id), TRACE);
    stw_span_begin_child(&inner, STW_SPAN_CLIENT, "inner");
    stw_span_int(&inner, "n", -7);
    stw_span_bool(&inner, "b", true);
    stw_span_end(&inner);
    stw_span_str(&outer, "s", "text");
    stw_span_str(&outer, "none", NULL);
    stw_span_fail(&outer, "it failed");
    stw_span_end(&outer);
    assert_null(stw_span_trace_id(id));
    struct stw_span_record *list = end(t), *first = list, *second = list->next;
    assert_null(second->next);
    assert_string_equal(first->text + first->name, "inner");
    assert_memory_equal(first->parent_id, second->context.span_id, 8);
    assert_memory_equal(first->context.trace_id, caller.trace_id, 16);
    assert_false(first->remote || first->failed);
    assert_int_equal(first->attributes[0].num, -7);
    assert_int_equal(first->attributes[1].type, STW_ATTRIBUTE_BOOL);
    assert_true(second->remote && second->failed);
    assert_memory_equal(second->parent_id, caller.span_id, 8);
    assert_string_equal(second->text + second->message, "it failed");
    assert_int_equal(second->attribute_count, 1);
    assert_string_equal(second->text + second->attributes[0].num, "text");
    assert_true(second->end_ns - second->start_ns >= 5000000);
    stw_tracer_free(list);
}

static void test_unsampled_spans_are_propagated_only(void **state)
{
    struct stw_tracer *t = begin(&all, 10);
    struct stw_trace_context caller;
    struct stw_span s, child;
    char id[STW_TRACE_ID_LEN];
    (void)state;
    assert_int_equal(stw_traceparent_parse("00-" TRACE "-" SPAN "-00", &caller), 0);
    stw_span_begin(&s, STW_SPAN_SERVER, "x", &caller, 0);
    stw_span_begin_child(&child, STW_SPAN_CLIENT, "y");
    assert_true(child.active && !child.recording && !child.record.context.sampled);
    assert_memory_equal(child.record.context.trace_id, caller.trace_id, 16);
    assert_null(stw_span_trace_id(id));
    stw_span_str(&child, "k", "v");
    stw_span_end(&child);
    stw_span_end(&s);
    assert_null(end(t));
}

static void test_span_texts_are_truncated_and_valid_utf8(void **state)
{
    struct stw_tracer *t = begin(&all, 10);
    struct stw_span s;
    char *longer = malloc(4001);
    (void)state;
    assert_non_null(longer);
    memset(longer, 'x', 4000);
    longer[4000] = '\0';
    memcpy(longer + 255, "\xc3\xa4", 2); /* cut within this character */
    stw_span_begin(&s, STW_SPAN_INTERNAL, "n", NULL, 0);
    stw_span_str(&s, "bad", "a\xff\xc3z\xf0\x9f");
    for (int i = 0; i < 20; i++)
        stw_span_str(&s, "long", longer);
    stw_span_fail(&s, "no room");
    stw_span_end(&s);
    struct stw_span_record *r = end(t);
    assert_int_equal(r->attribute_count, STW_SPAN_ATTRIBUTES_MAX);
    assert_string_equal(r->text + r->attributes[0].num, "a??z");
    assert_int_equal(strlen(r->text + r->attributes[1].num), 255);
    assert_string_equal(r->text + r->attributes[11].num, ""); /* no room */
    assert_true(r->used <= STW_SPAN_TEXT_MAX);
    stw_tracer_free(r);
    free(longer);
}

/* --- the queue */

static void record(enum stw_span_kind kind)
{
    struct stw_span s;
    stw_span_begin(&s, kind, "x", NULL, 0);
    stw_span_end(&s);
}

static uint64_t count_list(struct stw_span_record *list)
{
    uint64_t n = 0;
    for (const struct stw_span_record *r = list; r; r = r->next)
        n++;
    stw_tracer_free(list);
    return n;
}

static void test_full_span_queue_drops_and_counts(void **state)
{
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_tracer *t = stw_tracer_create(&all, 8, m);
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    (void)state;
    assert_non_null(t);
    stw_tracer_install(t);
    for (int i = 0; i < 100; i++)
        record(STW_SPAN_INTERNAL);
    assert_int_equal(stw_tracer_counted(t, STW_TRACE_QUEUE_FULL), 92);
    stw_metrics_render(m, &text);
    assert_non_null(
        strstr(stw_buf_str(&text), "steward_trace_spans_dropped_total{reason=\"queue_full\"} 92"));
    assert_non_null(strstr(stw_buf_str(&text), "steward_trace_spans_exported_total 0"));
    assert_int_equal(count_list(stw_tracer_take(t, 3, 0)), 3);
    record(STW_SPAN_INTERNAL);
    assert_int_equal(count_list(stw_tracer_take(t, 100, 0)), 6);
    stw_tracer_close(t);
    record(STW_SPAN_INTERNAL);
    assert_int_equal(stw_tracer_counted(t, STW_TRACE_QUEUE_FULL), 93);
    assert_null(stw_tracer_take(t, 100, 60000));
    stw_tracer_destroy(t);
    stw_metrics_destroy(m);
}

/* Clients of the webhook decide how many spans it has. */
static void test_admission_spans_leave_half_of_the_queue(void **state)
{
    struct stw_tracer *t = begin(&all, 8);
    (void)state;
    for (int i = 0; i < 100; i++)
        record(STW_SPAN_SERVER);
    for (int i = 0; i < 4; i++)
        record(STW_SPAN_INTERNAL);
    assert_int_equal(stw_tracer_counted(t, STW_TRACE_QUEUE_FULL), 96);
    assert_int_equal(count_list(end(t)), 8);
}

static void *record_many(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 20000; i++)
        record(i % 2 ? STW_SPAN_INTERNAL : STW_SPAN_SERVER);
    return NULL;
}

struct taker {
    struct stw_tracer *tracer;
    uint64_t taken;
};

static void *take_until_closed(void *ctx)
{
    struct taker *k = ctx;
    while (!stw_tracer_closed(k->tracer))
        k->taken += count_list(stw_tracer_take(k->tracer, 16, 1));
    return NULL;
}

static void test_lost_spans_are_counted(void **state)
{
    struct taker k = {.tracer = begin(&all, 64)};
    pthread_t threads[4], taker;
    (void)state;
    assert_int_equal(pthread_create(&taker, NULL, take_until_closed, &k), 0);
    for (size_t i = 0; i < STW_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, record_many, NULL), 0);
    for (size_t i = 0; i < STW_COUNT(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    stw_tracer_close(k.tracer);
    assert_int_equal(pthread_join(taker, NULL), 0);
    uint64_t dropped = stw_tracer_counted(k.tracer, STW_TRACE_QUEUE_FULL);
    k.taken += count_list(end(k.tracer));
    assert_int_equal(k.taken + dropped, 80000);
}

static void *close_it(void *ctx)
{
    stw_tracer_close(ctx);
    return NULL;
}

static void test_closing_the_tracer_ends_waits(void **state)
{
    struct stw_tracer *t = begin(&all, 64);
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, close_it, t), 0);
    assert_null(stw_tracer_take(t, 16, 3600000));
    stw_tracer_pause(t, stw_now_ms(&stw_clock_system) + 3600000);
    assert_true(stw_tracer_closed(t));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_null(end(t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_traceparent_is_parsed),
        cmocka_unit_test(test_invalid_traceparent_is_refused),
        cmocka_unit_test(test_traceparent_of_any_length_is_read_safely),
        cmocka_unit_test(test_samplers_are_chosen_by_name),
        cmocka_unit_test(test_sampling_decision_follows_the_sampler),
        cmocka_unit_test(test_nothing_is_recorded_without_a_tracer),
        cmocka_unit_test(test_spans_have_their_parents),
        cmocka_unit_test(test_unsampled_spans_are_propagated_only),
        cmocka_unit_test(test_span_texts_are_truncated_and_valid_utf8),
        cmocka_unit_test(test_full_span_queue_drops_and_counts),
        cmocka_unit_test(test_admission_spans_leave_half_of_the_queue),
        cmocka_unit_test(test_lost_spans_are_counted),
        cmocka_unit_test(test_closing_the_tracer_ends_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
