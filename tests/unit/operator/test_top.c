/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of `steward top`: what a tenant can put into them, reports of other versions, rates, and
 * windows of any size.  tests/integration/test_top.py has the terminal, tests/e2e/test_top.py the
 * way through the API server. */
#include "operator/top/top.h"

#include "base/util.h"
#include "base/visible.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_text_is_truncated_at_columns(void **state)
{
    static const struct {
        const char *text;
        size_t columns, bytes, used;
    } rows[] = {
        {"abc", 80, 3, 3},
        {"abc", 2, 2, 2},
        {"gr\xc3\xbc\xc3\x9f", 3, 4, 3},
        {"\xe6\x97\xa5\xe6\x9c\xac", 3, 3, 2}, /* two columns each */
        {"\xf0\x9f\x98\x80!", 3, 5, 3},
        {"\xff\xfe", 1, 1, 1},
        {"", 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        size_t used = 99;
        assert_int_equal(stw_top_cut(rows[i].text, strlen(rows[i].text), rows[i].columns, &used),
                         rows[i].bytes);
        assert_int_equal(used, rows[i].used);
    }
}

static void test_durations_are_formatted(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {{0, "0.0s"},    {0.44, "0.4s"}, {9.9, "9.9s"},  {10, "10s"},
                {119, "119s"},  {120, "2m"},    {7199, "119m"}, {7200, "2h"},
                {200000, "2d"}, {-1, "0.0s"},   {1e300, "0.0s"}};
    char text[16];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_top_duration(rows[i].seconds, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void test_writes_are_counted_from_metrics(void **state)
{
    double writes = 0;
    (void)state;
    assert_true(stw_top_count_writes(
        "# HELP rest_client_requests_total x\n"
        "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"h\"} 100\n"
        "rest_client_requests_total{code=\"200\",method=\"PATCH\",host=\"h\"} 5\n"
        "rest_client_requests_total{code=\"201\",method=\"POST\",host=\"h\"} 2.5e1\n"
        "rest_client_requests_total{code=\"200\",method=\"DELETE\",host=\"h\"} NaN\n"
        "rest_client_requests_total{code=\"200\",method=\"PUT\",host=\"h\"} -3\n"
        "other{method=\"POST\"} 7",
        &writes));
    assert_float_equal(writes, 30, 1e-9);
    assert_false(stw_top_count_writes("", &writes));
    assert_false(stw_top_count_writes("rest_client_requests_total{method=\"POST\"", &writes));
}

/* --- pages */

/* A replica that reported this JSON, with ' for ". */
static void add_replica(struct stw_top_look *look, const char *name, const char *json,
                        uint64_t at_ms)
{
    struct stw_top_replica *r = &look->replicas[look->count++];
    struct stw_error err = {0};
    stw_format(r->name, sizeof(r->name), "%s", name);
    r->at_ms = at_ms;
    r->state.text = STW_BUF_INIT(1u << 20);
    for (const char *p = json; *p; p++)
        stw_buf_addc(&r->state.text, *p == '\'' ? '"' : *p);
    if (stw_json_scan(&r->state.doc, stw_buf_str(&r->state.text), r->state.text.len, &err) != 0)
        fail_msg("%s", err.text);
    r->state.root = stw_json_root(&r->state.doc);
}

static char *page_of(const struct stw_top_look *before, const struct stw_top_look *now)
{
    struct stw_buf page = STW_BUF_INIT(4u << 20);
    stw_top_page(before, now, &page);
    assert_false(page.failed);
    char *text = stw_buf_take(&page);
    assert_non_null(text);
    stw_autobuf struct stw_buf shown = STW_BUF_INIT(4u << 20);
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        stw_visible_add(&shown, line, len);
        stw_buf_addc(&shown, '\n');
        line += len + (line[len] == '\n');
    }
    assert_string_equal(stw_buf_str(&shown), text); /* nothing in it needs an escape */
    return text;
}

static void expect_line(const char *page, const char *line)
{
    const char *found = strstr(page, line);
    if (!found || (found != page && found[-1] != '\n') || found[strlen(line)] != '\n')
        fail_msg("no line \"%s\" in:\n%s", line, page);
}

#define HEAD                                                                                       \
    "'build':{'program':'steward','version':'1.2.3'},'time':'2026-01-01T00:10:00Z',"               \
    "'started':'2026-01-01T00:00:00Z','uptimeSeconds':600,'reconciles':true,"                      \
    "'leases':[{'held':true}],'checks':[{'name':'webhook','problem':'','ok':true}]"
#define QUEUE(runs, failed)                                                                        \
    "'queues':[{'kind':'MyWeb','depth':3,'oldestSeconds':12.500,'delayed':4,'failing':2,"          \
    "'workersMax':4,'runs':" runs ",'failedRuns':" failed                                          \
    ",'inWork':[{'name':'a','seconds':0.5},{'name':'b','seconds':75.0}]}]"

static void test_page_shows_replicas_and_objects(void **state)
{
    struct stw_top_look look = {0};
    (void)state;
    add_replica(
        &look, "pod-a",
        "{" HEAD "," QUEUE(
            "1200",
            "60") ",'caches':[{'group':'apps','resource':"
                  "'deployments','objects':7,'bytes':2048,'synced':true,'lastEvent':"
                  "'2026-01-01T00:09:00Z','lists':1,'failures':0,'problem':''}],'errors':["
                  "{'kind':'MyWeb','namespace':'shop','name':'web','reason':'Unavailable',"
                  "'since':'2026-01-01T00:05:00Z','time':'2026-01-01T00:09:59Z',"
                  "'nextRunInSeconds':30.000,'stalled':false,'error':'no answer'},"
                  "{'kind':'MyWeb','namespace':'','name':'old','time':'2026-01-01T00:09:50Z',"
                  "'nextRunInSeconds':null,'stalled':true,'error':'taken'},"
                  "{'kind':'App','namespace':'shop','name':'api','error':'told already'}],"
                  "'errorsDropped':5,'notReady':[{'kind':'App','namespace':'shop','name':'api',"
                  "'state':'Reconciling','reason':'Progressing','since':'2026-01-01T00:08:00Z',"
                  "'nextRunInSeconds':null,'message':'1 of 2 replicas'}],'notReadyLeftOut':7}",
        1000);
    look.replicas[0].counts_writes = true;
    look.replicas[0].writes = 300;
    struct stw_top_replica *r = &look.replicas[look.count++];
    stw_format(r->name, sizeof(r->name), "pod-b");
    (void)stw_fail(&r->err, STW_ERR_TIMEOUT, "no \x1b[2Janswer");
    look.more = 2;
    stw_autofree char *page = page_of(NULL, &look);
    expect_line(page,
                "1  pod-a    1.2.3    10m  leader           2.0       0.1       0.5  2.0 KiB  ok");
    expect_line(page,
                "2  pod-b    -          -  -                  -         -         -        -  "
                "cannot be read: no \\x1b[2Janswer");
    expect_line(page, "2 more replicas are not shown");
    expect_line(page,
                "1  App    shop/api  Reconciling  Progressing     2m         -  1 of 2 replicas");
    expect_line(page, "1  MyWeb  shop/web  Failing      Unavailable     5m       30s  no answer");
    expect_line(page, "1  MyWeb  old       Stalled      -              10s         -  taken");
    assert_null(strstr(page, "told already"));
    expect_line(page, "7 more are not shown");
    expect_line(page, "5 more failures were not shown");
    expect_line(page,
                "1  MyWeb      3     12s   2 of 4      75s        2        4     2.0       0.1");
    expect_line(page, "1  deployments.apps        7  2.0 KiB         60s      1         0  synced");
    stw_top_look_done(&look);
}

/* What it did in its time is over. */
static void test_former_leader_shows_no_objects(void **state)
{
    struct stw_top_look look = {0};
    (void)state;
    add_replica(&look, "pod-a",
                "{'reconciles':false,'errors':[{'kind':'MyWeb','name':'old'}],'errorsDropped':3,"
                "'notReady':[{'kind':'MyWeb','name':'web'}],'unreadable':[{'name':'big'}]}",
                1000);
    stw_autofree char *page = page_of(NULL, &look);
    assert_null(strstr(page, "MyWeb"));
    assert_null(strstr(page, "more"));
    assert_non_null(strstr(page, "big"));
    stw_top_look_done(&look);
}

static void test_resource_row_names_its_kinds(void **state)
{
    struct stw_top_look look = {0};
    (void)state;
    add_replica(&look, "pod-a",
                "{'caches':[{'resource':'pods','kinds':['App','MyWeb']},{'resource':'pods',"
                "'kinds':['EtcdCluster']},{'resource':'pods','group':'other','kinds':['X']}]}",
                1000);
    stw_autofree char *page = page_of(NULL, &look);
    assert_non_null(strstr(page, "1  pods (App, MyWeb)  "));
    assert_non_null(strstr(page, "1  pods (EtcdCluster) "));
    assert_non_null(strstr(page, "1  pods.other         "));
    stw_top_look_done(&look);
}

/* Between two looks; a process that has started again is another one. */
static void test_rates_are_computed_between_two_reads(void **state)
{
    struct stw_top_look before = {0}, now = {0};
    (void)state;
    add_replica(&before, "pod-a", "{" HEAD "," QUEUE("1200", "60") "}", 1000);
    add_replica(&now, "pod-a", "{" HEAD "," QUEUE("1225", "65") "}", 3000);
    stw_autofree char *page = page_of(&before, &now);
    expect_line(page,
                "1  MyWeb      3     12s   2 of 4      75s        2        4    12.5       2.5");
    stw_top_look_done(&now);
    add_replica(&now, "pod-a",
                "{'started':'2026-01-01T00:09:58Z','uptimeSeconds':2,'reconciles':true," QUEUE(
                    "10", "1") "}",
                3000);
    stw_autofree char *again = page_of(&before, &now);
    expect_line(again,
                "1  MyWeb      3     12s   2 of 4      75s        2        4     5.0       0.5");
    stw_top_look_done(&now);
    add_replica(&now, "pod-a", "{" HEAD "," QUEUE("7", "1") "}", 3000); /* counters went back */
    stw_autofree char *back = page_of(&before, &now);
    expect_line(back,
                "1  MyWeb      3     12s   2 of 4      75s        2        4       -         -");
    stw_top_look_done(&before);
    stw_top_look_done(&now);
}

/* What a tenant names, and a report that no version writes. */
static void test_malformed_reports_are_survived(void **state)
{
    static const char *const reports[] = {
        "{}",
        "[]",
        "{'queues':{},'caches':7,'errors':'x','checks':[1,null],'leases':{},'build':[]}",
        "{'reconciles':true,'queues':[1,[],{}],'caches':[{}],'errors':[{}],'notReady':[{}]}",
        "{'reconciles':true,'notReady':[1,{'kind':7,'message':'\\u001b[2J','state':[]}],"
        "'notReadyLeftOut':1e99}",
        "{'caches':[{'resource':'a','kinds':['\\u001b[2J',1]},{'resource':'a','kinds':{}}]}",
        "{'reconciles':true,'queues':[{'kind':'\\u001b[2J\\u009b2J\\u202e','depth':1e99}]}",
        "{'reconciles':true,'uptimeSeconds':-5,'queues':[{'depth':-1,'runs':1.5e300,"
        "'workersMax':99999999999999999,'oldestSeconds':1e17}]}",
        "{'build':{'version':'\\u001b]0;x\\u0007'},'checks':[{'ok':false,'problem':'\\u001bc'}]}",
        "{'reconciles':true,'errors':[{'kind':'\\n','namespace':'\\u001b[A','name':'\\r','error':"
        "'\\u001b]52;c;cm0gLXJmIC8=\\u0007','reason':'\\u0001x','since':'\\u001b'}]}",
        "{'caches':[{'resource':'\\u001bP','group':'\\u0090','bytes':9e17,'problem':'\\u001b\\\\'}]"
        "}",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(reports); i++) {
        struct stw_top_look look = {0};
        add_replica(&look, "pod\x1b[5m", reports[i], 1);
        stw_autofree char *page = page_of(&look, &look);
        assert_non_null(strstr(page, "1  pod\\x1b[5m"));
        stw_top_look_done(&look);
    }
}

static void test_number_of_rows_is_limited(void **state)
{
    struct stw_top_look look = {0};
    stw_autobuf struct stw_buf json = STW_BUF_INIT(1u << 20);
    (void)state;
    stw_buf_adds(&json, "{'reconciles':true,'errors':[{}");
    for (unsigned i = 1; i < STW_TOP_ROWS_MAX + 9; i++)
        stw_buf_adds(&json, ",{'name':'n'}");
    stw_buf_adds(&json, "]}");
    add_replica(&look, "pod", stw_buf_str(&json), 1);
    stw_autofree char *page = page_of(NULL, &look);
    expect_line(page, "9 more failures were not shown");
    stw_top_look_done(&look);
}

/* --- the window */

static void expect_fit(unsigned width, unsigned height, unsigned from, const char *want)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
    stw_top_screen_fit("header", "one line\ntwo\nthree\n", width, height, &from, &out);
    assert_string_equal(stw_buf_str(&out), want);
}

static void test_page_fits_the_window(void **state)
{
    (void)state;
#define END "\x1b[K\n"
    expect_fit(80, 24, 0, "\x1b[Hheader" END "one line" END "two" END "three" END "\x1b[J");
    expect_fit(3, 24, 0, "\x1b[Hhea" END "one" END "two" END "thr" END "\x1b[J");
    expect_fit(80, 4, 0,
               "\x1b[Hheader" END "one line" END "two" END
               "lines 1 to 2 of 3; arrows, PgUp and PgDn scroll\x1b[J");
    expect_fit(80, 4, 7,
               "\x1b[Hheader" END "two" END "three" END
               "lines 2 to 3 of 3; arrows, PgUp and PgDn scroll\x1b[J");
    expect_fit(1, 1, 0, "\x1b[Hh" END "o" END "l\x1b[J");
    expect_fit(80, 24, 9, "\x1b[Hheader" END "one line" END "two" END "three" END "\x1b[J");
}

static void test_keys_map_to_actions(void **state)
{
    static const struct {
        const char *typed;
        unsigned from;
        enum stw_top_event event;
    } rows[] = {
        {"q", 5, STW_TOP_QUIT},
        {" ", 5, STW_TOP_NOW},
        {"x\x1b", 5, STW_TOP_RESIZED},
        {"j", 6, STW_TOP_RESIZED},
        {"\x1b[A\x1b[Ak", 2, STW_TOP_RESIZED},
        {"kkkkkkkk\x1b[B", 1, STW_TOP_RESIZED},
        {"\x1b[6~", 25, STW_TOP_RESIZED},
        {"\x1b[5~", 0, STW_TOP_RESIZED},
        {"gj", 1, STW_TOP_RESIZED},
        {"jjq", 7, STW_TOP_QUIT},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        unsigned from = 5;
        assert_int_equal(stw_top_screen_keys(rows[i].typed, 20, &from), rows[i].event);
        assert_int_equal(from, rows[i].from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_truncated_at_columns),
        cmocka_unit_test(test_durations_are_formatted),
        cmocka_unit_test(test_writes_are_counted_from_metrics),
        cmocka_unit_test(test_page_shows_replicas_and_objects),
        cmocka_unit_test(test_former_leader_shows_no_objects),
        cmocka_unit_test(test_resource_row_names_its_kinds),
        cmocka_unit_test(test_keys_map_to_actions),
        cmocka_unit_test(test_rates_are_computed_between_two_reads),
        cmocka_unit_test(test_malformed_reports_are_survived),
        cmocka_unit_test(test_number_of_rows_is_limited),
        cmocka_unit_test(test_page_fits_the_window),
    };
    return cmocka_run_group_tests_name("operator/top", tests, NULL, NULL);
}
