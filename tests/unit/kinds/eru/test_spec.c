/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/eru/spec.h"

#include "base/tzfile.h"
#include "kinds/common/product.h"
#include "schema/core.h"
#include "schema/zones.h"
#include "support/judge.h"

#define ERU(members)                                                                               \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{" members "}}"
#define SPEC(members) ERU("\"deploymentname\":\"web\"," members)

#define SELECTOR(members) ERU("\"selector\":{" members "}")

static struct stw_product product;
static const struct stw_env env = {.product = &product};

static void fields_one_by_one(void **state)
{
    static const struct {
        const char *object, *want;
    } cases[] = {
        {ERU("\"deploymentname\":\"web\""), ""},
        /* deploymentname */
        {ERU("\"enabled\":true"), "spec.deploymentname: Required value: set exactly one of "
                                  "deploymentname, selector\n"},
        {ERU("\"deploymentname\":\"Web\""),
         "spec.deploymentname: Invalid value: \"Web\": must consist of lower case alphanumeric "
         "characters, '-' or '.', and must start and end with an alphanumeric character\n"},
        /* enabled */
        {SPEC("\"enabled\":\"yes\""), "spec.enabled: Invalid value: \"yes\": must be a boolean\n"},
        /* schedule */
        {SPEC("\"schedule\":\"@daily\""), ""},
        {SPEC("\"schedule\":\"0 0 * *\""),
         "spec.schedule: Invalid value: \"0 0 * *\": must have 5 fields, got 4\n"},
        {SPEC("\"schedule\":\"0 24 * * *\""),
         "spec.schedule: Invalid value: \"0 24 * * *\": field 2 (hour): 24 is outside 0-23\n"},
        {SPEC("\"schedule\":\"TZ=UTC 0 0 * * *\""),
         "spec.schedule: Invalid value: \"TZ=UTC 0 0 * * *\": use spec.timeZone\n"},
        {SPEC("\"schedule\":\"0 0 31 2 *\""),
         "spec.schedule: Invalid value: \"0 0 31 2 *\": never matches any date\n"},
        {SPEC("\"schedule\":\"*/60 0 * * *\""),
         "W: spec.schedule: field 1 (minute): the step is larger than the range\n"},
        {SPEC("\"schedule\":\"*/4 * * * *\""),
         "W: spec.schedule: restarts more often than every 5 minutes\n"},
        {SPEC("\"schedule\":\"0 0 13 * 5\""),
         "W: spec.schedule: both day fields are restricted; it matches when either day field "
         "matches\n"},
        {SPEC("\"schedule\":\"0 0 */2 * 1\""),
         "W: spec.schedule: both day fields are restricted; it matches when either day field "
         "matches\n"},
        {SPEC("\"schedule\":7"), "spec.schedule: Invalid value: 7: must be a string\n"},
        /* timeZone */
        {SPEC("\"timeZone\":\"Europe/Berlin\""), ""},
        {SPEC("\"timeZone\":\"Europe/Atlantis\""),
         "spec.timeZone: Invalid value: \"Europe/Atlantis\": unknown time zone\n"},
        {SPEC("\"timeZone\":\"Local\""),
         "spec.timeZone: Invalid value: \"Local\": unknown time zone\n"},
        {SPEC("\"timeZone\":\"../../../etc/localtime\""),
         "spec.timeZone: Invalid value: \"../../../etc/localtime\": unknown time zone\n"},
        /* the numbers */
        {SPEC("\"startingDeadlineSeconds\":9"),
         "spec.startingDeadlineSeconds: Invalid value: 9: must be between 10 and 86400\n"},
        {SPEC("\"startingDeadlineSeconds\":10,\"jitterSeconds\":9"), ""},
        {SPEC("\"startingDeadlineSeconds\":10,\"jitterSeconds\":10"),
         "spec.jitterSeconds: Invalid value: 10: must be less than startingDeadlineSeconds "
         "(10)\n"},
        {SPEC("\"jitterSeconds\":600"), "spec.jitterSeconds: Invalid value: 600: must be less "
                                        "than startingDeadlineSeconds (600)\n"},
        {SPEC("\"jitterSeconds\":3601,\"startingDeadlineSeconds\":4000"),
         "spec.jitterSeconds: Invalid value: 3601: must be between 0 and 3600\n"},
        {SPEC("\"rolloutTimeoutSeconds\":29"),
         "spec.rolloutTimeoutSeconds: Invalid value: 29: must be between 30 and 7200\n"},
        {SPEC("\"historyLimit\":21"),
         "spec.historyLimit: Invalid value: 21: must be between 0 and 20\n"},
        {SPEC("\"concurrencyPolicy\":\"Replace\""),
         "spec.concurrencyPolicy: Unsupported value: \"Replace\": supported values: \"Forbid\", "
         "\"Allow\"\n"},
        /* several errors */
        {ERU("\"schedule\":\"x\",\"timeZone\":\"y z\""),
         "spec.deploymentname: Required value: set exactly one of deploymentname, selector\n"
         "spec.schedule: Invalid value: \"x\": must have 5 fields, got 1\n"
         "spec.timeZone: Invalid value: \"y z\": unknown time zone\n"},
        /* onlyIfChanged */
        {SPEC("\"onlyIfChanged\":true"), ""},
        {SPEC("\"onlyIfChanged\":\"yes\""),
         "spec.onlyIfChanged: Invalid value: \"yes\": must be a boolean\n"},
        /* workloads */
        {SPEC("\"targetKind\":\"StatefulSet\""), ""},
        {SPEC("\"targetKind\":\"DaemonSet\""), ""},
        {SPEC("\"targetKind\":\"ReplicaSet\""),
         "spec.targetKind: Unsupported value: \"ReplicaSet\": supported values: \"Deployment\", "
         "\"StatefulSet\", \"DaemonSet\"\n"},
        /* selector */
        {SELECTOR("\"matchLabels\":{\"tier\":\"web\",\"example.com/a\":\"\"}"), ""},
        {SELECTOR("\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]},"
                  "{\"key\":\"c\",\"operator\":\"DoesNotExist\"}]"),
         ""},
        {SPEC("\"selector\":{\"matchLabels\":{\"a\":\"b\"}}"),
         "spec.selector: Forbidden: set exactly one of deploymentname, selector\n"},
        {SELECTOR(""), "spec.selector: Required value: needs matchLabels or matchExpressions\n"},
        {SELECTOR("\"matchLabels\":{},\"matchExpressions\":[]"),
         "spec.selector: Required value: needs matchLabels or matchExpressions\n"},
        {SELECTOR("\"matchLabels\":{\"a b\":\"c\",\"d\":\"e,f\"}"),
         "spec.selector.matchLabels[a b]: Invalid value: \"a b\": " STW_CORE_KEY_TEXT "\n"
         "spec.selector.matchLabels[d]: Invalid value: \"e,f\": " STW_CORE_LABEL_TEXT "\n"},
        {SELECTOR("\"matchExpressions\":[{\"key\":\"a,b\",\"operator\":\"in\"},"
                  "{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"x\",\"y)\"]},"
                  "{\"operator\":\"Exists\"}]"),
         "spec.selector.matchExpressions[0].key: Invalid value: \"a,b\": " STW_CORE_KEY_TEXT "\n"
         "spec.selector.matchExpressions[0].operator: Unsupported value: \"in\": supported values: "
         "\"In\", \"NotIn\", \"Exists\", \"DoesNotExist\"\n"
         "spec.selector.matchExpressions[1].values[1]: Invalid value: \"y)\": " STW_CORE_LABEL_TEXT
         "\n"
         "spec.selector.matchExpressions[2].key: Required value\n"},
        {SELECTOR("\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"},"
                  "{\"key\":\"b\",\"operator\":\"Exists\",\"values\":[\"c\"]}]"),
         "spec.selector.matchExpressions[0].values: Required value: In and NotIn need values\n"
         "spec.selector.matchExpressions[1].values: Forbidden: Exists and DoesNotExist have no "
         "values\n"},
        {SELECTOR("\"matchLabel\":{\"a\":\"b\"},\"matchLabels\":{\"a\":\"b\"}"),
         "W: unknown field \"spec.selector.matchLabel\"; did you mean \"matchLabels\"?\n"},
        /* dates */
        {SPEC("\"excludeDates\":[\"2028-02-29\",\"2026-12-24\"]"), ""},
        {SPEC("\"excludeDates\":[\"2026-02-29\",\"24.12.2026\",\"2026-13-01\"]"),
         "spec.excludeDates[0]: Invalid value: \"2026-02-29\": there is no such date\n"
         "spec.excludeDates[1]: Invalid value: \"24.12.2026\": must be a date such as "
         "2026-12-24\n"
         "spec.excludeDates[2]: Invalid value: \"2026-13-01\": there is no such date\n"},
        {SPEC("\"excludeDates\":[\"\"]"),
         "spec.excludeDates[0]: Invalid value: \"\": must be a date such as 2026-12-24\n"},
        /* windows */
        {SPEC("\"windows\":[{\"days\":[\"Fri\"],\"start\":\"22:00\",\"end\":\"02:00\"}]"), ""},
        {SPEC("\"windows\":[{\"days\":[\"friday\"],\"start\":\"24:00\",\"end\":\"2:00\"}]"),
         "spec.windows[0].days[0]: Unsupported value: \"friday\": supported values: \"Sun\", "
         "\"Mon\", \"Tue\", \"Wed\", \"Thu\", \"Fri\", \"Sat\"\n"
         "spec.windows[0].start: Invalid value: \"24:00\": must be a time from 00:00 to 23:59\n"
         "spec.windows[0].end: Invalid value: \"2:00\": must be a time from 00:00 to 23:59\n"},
        {SPEC("\"windows\":[{\"start\":\"04:00\"}]"), "spec.windows[0].end: Required value\n"},
        {SPEC("\"windows\":[{\"start\":\"04:00\",\"end\":\"05:00\"},{\"start\":\"04:00\","
              "\"end\":\"04:00\"}]"),
         "spec.windows[1].end: Invalid value: must differ from start (04:00)\n"},
        {SPEC("\"windows\":[{\"start\":\"04:00\",\"end\":\"05:00\"}]"),
         "W: spec.windows: no instant of the schedule is in a window; nothing is restarted\n"},
        {SPEC("\"schedule\":\"0 4 * * mon\",\"windows\":[{\"days\":[\"Tue\"],\"start\":\"04:00\","
              "\"end\":\"05:00\"}]"),
         "W: spec.windows: no instant of the schedule is in a window; nothing is restarted\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        assert_answer(&stw_kind_eru, cases[i].object, NULL, &env, cases[i].want);
}

static void updates(void **state)
{
    (void)state;
    assert_answer(&stw_kind_eru, ERU("\"deploymentname\":\"api\""),
                  ERU("\"deploymentname\":\"web\""), &env,
                  "spec.deploymentname: Forbidden: field is immutable (was \"web\")\n");
    assert_answer(&stw_kind_eru, SPEC("\"targetKind\":\"DaemonSet\""),
                  ERU("\"deploymentname\":\"web\""), &env,
                  "spec.targetKind: Forbidden: field is immutable (was not set)\n");
    assert_answer(&stw_kind_eru, SPEC("\"targetKind\":\"Deployment\""),
                  ERU("\"deploymentname\":\"web\""), &env, "");
    assert_answer(&stw_kind_eru, SPEC("\"schedule\":\"@hourly\",\"enabled\":true"),
                  ERU("\"deploymentname\":\"web\""), &env, "");
}

static void the_form_of_the_target_stays(void **state)
{
    const char *by_label = SELECTOR("\"matchLabels\":{\"a\":\"b\"}");
    (void)state;
    assert_answer(&stw_kind_eru, SELECTOR("\"matchLabels\":{\"a\":\"c\"}"), by_label, &env, "");
    assert_answer(&stw_kind_eru, by_label, ERU("\"deploymentname\":\"web\""), &env,
                  "spec.deploymentname: Forbidden: field is immutable (was \"web\")\n");
    assert_answer(&stw_kind_eru, ERU("\"deploymentname\":\"web\""), by_label, &env,
                  "spec.deploymentname: Forbidden: field is immutable (was not set)\n");
}

static void as_a_query(void **state)
{
    static const char object[] =
        SELECTOR("\"matchLabels\":{\"tier\":\"web\",\"empty\":\"\"},\"matchExpressions\":["
                 "{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\",\"c\"]},"
                 "{\"key\":\"example.com/d\",\"operator\":\"NotIn\",\"values\":[\"e\",\"\"]},"
                 "{\"key\":\"h\",\"operator\":\"In\",\"values\":[\"\"]},"
                 "{\"key\":\"i\",\"operator\":\"NotIn\",\"values\":[\"j\"]},"
                 "{\"key\":\"f\",\"operator\":\"Exists\"},"
                 "{\"key\":\"g\",\"operator\":\"DoesNotExist\"}]");
    stw_autobuf struct stw_buf query = STW_BUF_INIT(1024);
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    struct question q;
    struct stw_eru e = {0};
    (void)state;
    ask(&q, &stw_kind_eru, object, NULL, NULL);
    assert_int_equal(
        stw_kind_decode(&stw_kind_eru, stw_json_get(q.a.object, "spec"), arena, &e, NULL), 0);
    stw_eru_selector_query(&e.selector, &query);
    assert_string_equal(stw_buf_str(&query),
                        "tier=web,empty=,a in (b,c),example.com/d notin (e,),h=,i!=j,f,!g");
    ask_done(&q);
}

static bool find_other(void *ctx, const char *index, const char *key, const char *self,
                       char *ret_holder)
{
    const char *holder = ctx;
    if (!stw_streq(index, "erus.deployment") || !stw_streq(key, "shop/web") ||
        stw_streq(self, holder))
        return false;
    (void)snprintf(ret_holder, 512, "%s", holder);
    return true;
}

static int has_none(void *ctx, const char *plural, const char *key)
{
    (void)ctx;
    assert_string_equal(plural, "deployments");
    assert_string_equal(key, "shop/web");
    return 0;
}

static void what_stands_in_the_cluster(void **state)
{
    char other[] = "shop/nightly", self[] = "shop/web";
    struct stw_lookup lookup = {.ctx = other, .find = find_other};
    struct stw_env there = {.lookup = &lookup};
    (void)state;
    assert_answer(&stw_kind_eru, SPEC("\"enabled\":true"), NULL, &there,
                  "spec.deploymentname: Forbidden: Deployment \"web\" is already handled by Eru "
                  "\"nightly\"\n");
    lookup.ctx = self; /* its own entry is not a conflict */
    assert_answer(&stw_kind_eru, SPEC("\"enabled\":true"), NULL, &there, "");
    /* a StatefulSet of the same name is another workload */
    lookup.ctx = other;
    assert_answer(&stw_kind_eru, SPEC("\"targetKind\":\"StatefulSet\""), NULL, &there, "");
    lookup.ctx = self;
    lookup.has = has_none;
    assert_answer(&stw_kind_eru, SPEC("\"enabled\":true"), NULL, &there,
                  "W: Deployment \"web\" not found; nothing is restarted until it is there\n");
    assert_answer(&stw_kind_eru, SPEC("\"enabled\":true"), SPEC("\"enabled\":false"), &there, "");
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    assert_defaults(
        &stw_kind_eru, ERU("\"deploymentname\":\"web\""),
        "/spec/targetKind=\"Deployment\"\n/spec/enabled=false\n/spec/schedule=\"0 0 * * *\"\n"
        "/spec/timeZone=\"Etc/UTC\"\n/spec/startingDeadlineSeconds=600\n"
        "/spec/concurrencyPolicy=\"Forbid\"\n/spec/requireHealthy=true\n"
        "/spec/onlyIfChanged=false\n/spec/jitterSeconds=0\n/spec/rolloutTimeoutSeconds=600\n"
        "/spec/historyLimit=5\n");
}

static void what_is_still_the_default(void **state)
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
        struct stw_eru e = {0};
        stw_autoarena struct stw_arena *arena = stw_arena_create();
        ask(&q, &stw_kind_eru, cases[i].object, NULL, NULL);
        assert_int_equal(
            stw_kind_decode(&stw_kind_eru, stw_json_get(q.a.object, "spec"), arena, &e, NULL), 0);
        if (stw_eru_is_default(&e) != cases[i].is)
            fail_msg("%s", cases[i].object);
        ask_done(&q);
    }
}

static int make_zones(void **state)
{
    (void)state;
    product.zones = stw_zones_create(stw_tz_read);
    return product.zones ? 0 : -1;
}

static int end_zones(void **state)
{
    (void)state;
    stw_zones_destroy(product.zones);
    return 0;
}

/* Findings beyond the first 100 are counted only. */
static void more_old_errors_than_are_kept(void **state)
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

    ask(&q, &stw_kind_eru, stw_buf_str(&object), stw_buf_str(&object), &env);
    stw_kind_validate(&q.a, &same);
    assert_int_equal(same.error_count, 0);
    assert_int_equal(same.errors_left_out, 0);
    ask_done(&q);

    /* what cannot be compared refuses, and says so */
    ask(&q, &stw_kind_eru, stw_buf_str(&other), stw_buf_str(&object), &env);
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
        cmocka_unit_test(fields_one_by_one),
        cmocka_unit_test(more_old_errors_than_are_kept),
        cmocka_unit_test(updates),
        cmocka_unit_test(what_stands_in_the_cluster),
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(what_is_still_the_default),
        cmocka_unit_test(as_a_query),
        cmocka_unit_test(the_form_of_the_target_stays),
    };
    return cmocka_run_group_tests(tests, make_zones, end_zones);
}
