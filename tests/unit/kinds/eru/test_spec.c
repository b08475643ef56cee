/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/eru/spec.h"

#include "support/judge.h"

#define ERU(members)                                                                               \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{" members "}}"
#define SPEC(members) ERU("\"deploymentname\":\"web\"," members)

static void test_selector_becomes_a_label_query(void **state)
{
    static const char object[] =
        ERU("\"selector\":{\"matchLabels\":{\"tier\":\"web\",\"empty\":\"\"},\"matchExpressions\":["
            "{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\",\"c\"]},"
            "{\"key\":\"example.com/d\",\"operator\":\"NotIn\",\"values\":[\"e\",\"\"]},"
            "{\"key\":\"h\",\"operator\":\"In\",\"values\":[\"\"]},"
            "{\"key\":\"i\",\"operator\":\"NotIn\",\"values\":[\"j\"]},"
            "{\"key\":\"f\",\"operator\":\"Exists\"},"
            "{\"key\":\"g\",\"operator\":\"DoesNotExist\"}]}");
    stw_autobuf struct stw_buf query = STW_BUF_INIT(1024);
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    struct question q;
    struct eru_spec e = {0};
    (void)state;
    ask(&q, &stw_kind_eru, object, NULL, NULL);
    assert_int_equal(
        stw_kind_decode(&stw_kind_eru, stw_json_get(q.a.object, "spec"), arena, &e, NULL), 0);
    eru_selector_query(&e.selector, &query);
    assert_string_equal(stw_buf_str(&query),
                        "tier=web,empty=,a in (b,c),example.com/d notin (e,),h=,i!=j,f,!g");
    ask_done(&q);
}

static void test_spec_of_defaults_is_recognized(void **state)
{
    static const struct {
        const char *object;
        bool is;
    } cases[] = {
        {ERU("\"deploymentname\":\"web\""), true},
        {SPEC("\"schedule\":\"0 0 * * *\",\"timeZone\":\"Etc/UTC\",\"historyLimit\":5"), true},
        {SPEC("\"enabled\":true"), false},
        {SPEC("\"schedule\":\"@daily\""), false},
        {SPEC("\"timeZone\":\"UTC\""), false},
        {SPEC("\"startingDeadlineSeconds\":601"), false},
        {SPEC("\"concurrencyPolicy\":\"Allow\""), false},
        {SPEC("\"requireHealthy\":false"), false},
        {SPEC("\"onlyIfChanged\":true"), false},
        {SPEC("\"jitterSeconds\":1"), false},
        {SPEC("\"rolloutTimeoutSeconds\":30"), false},
        {SPEC("\"historyLimit\":4"), false},
        {SPEC("\"targetKind\":\"StatefulSet\""), false},
        {SPEC("\"excludeDates\":[\"2026-12-24\"]"), false},
        {SPEC("\"windows\":[{\"start\":\"04:00\",\"end\":\"05:00\"}]"), false},
        {SPEC("\"windows\":[],\"excludeDates\":[]"), true},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct question q;
        struct eru_spec e = {0};
        stw_autoarena struct stw_arena *arena = stw_arena_create();
        ask(&q, &stw_kind_eru, cases[i].object, NULL, NULL);
        assert_int_equal(
            stw_kind_decode(&stw_kind_eru, stw_json_get(q.a.object, "spec"), arena, &e, NULL), 0);
        if (eru_is_default(&e) != cases[i].is)
            fail_msg("%s", cases[i].object);
        ask_done(&q);
    }
}

/* Findings beyond the first 100 are counted only. */
static void test_update_with_more_errors_than_are_compared_is_refused(void **state)
{
    stw_autobuf struct stw_buf dates = STW_BUF_INIT(1 << 16), object = STW_BUF_INIT(1 << 16);
    stw_autobuf struct stw_buf other = STW_BUF_INIT(1 << 16);
    struct question q;
    (void)state;
    for (int i = 0; i < 150; i++)
        stw_buf_addf(&dates, "%s\"a%d\"", i ? "," : "", i);
    stw_buf_addf(&object, SPEC("\"excludeDates\":[%s]"), stw_buf_str(&dates));
    stw_buf_addf(&other, SPEC("\"enabled\":true,\"excludeDates\":[%s]"), stw_buf_str(&dates));
    stw_autofindings struct stw_findings same = {0}, changed = {0};

    ask(&q, &stw_kind_eru, stw_buf_str(&object), stw_buf_str(&object), NULL);
    stw_kind_validate(&q.a, &same);
    assert_int_equal(same.error_count, 0);
    assert_int_equal(same.errors_left_out, 0);
    ask_done(&q);

    /* what cannot be compared refuses, and says so */
    ask(&q, &stw_kind_eru, stw_buf_str(&other), stw_buf_str(&object), NULL);
    stw_kind_validate(&q.a, &changed);
    assert_int_equal(changed.error_count, 1);
    assert_string_equal(changed.errors[0].path, "spec");
    assert_string_equal(changed.errors[0].message,
                        "has 50 errors that cannot be compared with those of the old object; "
                        "correct the errors in the warnings first");
    ask_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_with_more_errors_than_are_compared_is_refused),
        cmocka_unit_test(test_spec_of_defaults_is_recognized),
        cmocka_unit_test(test_selector_becomes_a_label_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
