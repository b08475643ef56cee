/* SPDX-License-Identifier: Apache-2.0
 *
 * The client against the scripted server: errors, retries, deadlines, cancelling, credentials. */
#include "base/fence.h"
#include "base/log.h"
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "fake.h"
#include "kube/api/answers.h"
#include "kube/client/client_priv.h"
#include "kube/owned/shadow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

static int get(struct stw_client *c, const char *path, struct stw_buf *ret, struct stw_error *err)
{
    return stw_client_do(c, &(struct stw_request){.method = "GET", .path = path}, ret, err);
}

#define STATUS(code, reason, message)                                                              \
    "'status':" #code ",'body':{'kind':'Status','code':" #code ",'reason':'" reason                \
    "','message':'" message "'}"

static void test_responses_map_to_error_codes(void **state)
{
    static const struct {
        const char *step, *text;
        enum stw_err code;
    } rows[] = {
        {"'body':{'a':1}", "", STW_OK},
        {"'status':201,'body':'x'", "", STW_OK},
        {STATUS(409, "AlreadyExists", "x exists"), "x exists", STW_ERR_EXISTS},
        {STATUS(409, "Conflict", "was modified"), "was modified", STW_ERR_CONFLICT},
        {STATUS(422, "Invalid", "Service x is invalid: no"), "Service x is invalid: no",
         STW_ERR_INVALID},
        {STATUS(400, "BadRequest", "bad"), "bad", STW_ERR_INVALID},
        {STATUS(404, "NotFound", "gone"), "gone", STW_ERR_NOT_FOUND},
        {STATUS(410, "Expired", "old"), "old", STW_ERR_GONE},
        {STATUS(401, "Unauthorized", "who"), "who", STW_ERR_FORBIDDEN},
        {STATUS(403, "Forbidden", "no"), "no", STW_ERR_FORBIDDEN},
        {STATUS(500, "InternalError", "oops"), "oops", STW_ERR_UNAVAILABLE},
        {STATUS(500, "", "failed to create typed patch object (shop/web)"),
         "failed to create typed patch object (shop/web)", STW_ERR_INVALID},
        {STATUS(504, "Timeout", "slow"), "slow", STW_ERR_TIMEOUT},
        {"'status':503,'body':'<html>'", "the server answered 503", STW_ERR_UNAVAILABLE},
        {"'status':502,'body':'no backend\\nx'", "the server answered 502: no backend",
         STW_ERR_UNAVAILABLE},
        {"'status':302,'headers':{'Location':'/y'}", "the server answered 302", STW_ERR_INVALID},
        {"'status':413", "the server answered 413", STW_ERR_TOO_LARGE},
    };
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char path[32], step[512];
        struct stw_error err = {0};
        (void)snprintf(path, sizeof(path), "/answers/%zu", i);
        (void)snprintf(step, sizeof(step), "[{'match':'GET %s$',%s}]", path, rows[i].step);
        fake_steps(&fake, step);
        assert_int_equal(get(c, path, NULL, &err), rows[i].code == STW_OK ? 0 : -1);
        assert_int_equal(err.code, rows[i].code);
        assert_string_equal(err.text, rows[i].text);
    }
    stw_client_destroy(c);
}

static void test_unreachable_server_is_unavailable(void **state)
{
    struct stw_kubeconfig config = {.server = (char[]){"http://127.0.0.1:1"}};
    struct stw_client *c = NULL;
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_client_create(&fake_operator, &config, &stw_clock_system, NULL, &c, &err),
                     0);
    assert_int_equal(get(c, "/x", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    assert_string_equal(err.text, "http://127.0.0.1:1: connection refused");
    stw_client_destroy(c);
}

/* The message names what was waited for. */
static void test_timeout_names_what_was_waited_for(void **state)
{
    static const struct {
        const char *curl, *said;
        enum stw_err code;
    } rows[] = {
        {"Operation timed out after 0 milliseconds with 0 bytes received",
         "https://a: no connection in time", STW_ERR_TIMEOUT},
        {"Operation timed out after 5000 milliseconds with 0 bytes received",
         "https://a: Operation timed out after 5000 milliseconds with 0 bytes received",
         STW_ERR_TIMEOUT},
        {"Connection timed out after 10002 milliseconds",
         "https://a: Connection timed out after 10002 milliseconds", STW_ERR_UNAVAILABLE},
        {"Resolving timed out after 10000 milliseconds",
         "https://a: Resolving timed out after 10000 milliseconds", STW_ERR_UNAVAILABLE},
        {"", "https://a: Timeout was reached", STW_ERR_TIMEOUT},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {0};
        stw_curl_error(CURLE_OPERATION_TIMEDOUT, "https://a", rows[i].curl, NULL, &err);
        assert_int_equal(err.code, rows[i].code);
        assert_string_equal(err.text, rows[i].said);
    }
}

static void test_throttled_request_is_retried(void **state)
{
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_error err = {0};
    struct stw_request once = {.method = "POST", .path = "/once", .no_retry = true},
                       soon = {.method = "GET", .path = "/late", .timeout_ms = 20000};
    (void)state;
    fake_steps(&fake,
               "[{'match':'/busy','status':429,'headers':{'Retry-After':'1'}},"
               "{'match':'/busy','status':503,'headers':{'Retry-After':'1'}},{'match':'/busy'},"
               "{'match':'/once','times':0,'status':429,'headers':{'Retry-After':'7'}},"
               "{'match':'/late','times':0,'status':429,'headers':{'Retry-After':'60'}},"
               "{'match':'/plain503','times':0,'status':503}]");
    uint64_t began = stw_now_ms(&stw_clock_system);
    assert_int_equal(get(c, "/busy", NULL, &err), 0);
    assert_true(stw_now_ms(&stw_clock_system) - began >= 2000);
    assert_int_equal(fake_count(&fake, "GET /busy"), 3);
    assert_int_equal(stw_client_do(c, &once, NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_THROTTLED);
    assert_int_equal(err.retry_after_ms, 7000);
    assert_int_equal(fake_count(&fake, "POST /once"), 1);
    /* a retry after the deadline is not waited for */
    began = stw_now_ms(&stw_clock_system);
    assert_int_equal(stw_client_do(c, &soon, NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_THROTTLED);
    assert_true(stw_now_ms(&stw_clock_system) - began < 15000);
    assert_int_equal(get(c, "/plain503", NULL, &err), -1);
    assert_int_equal(fake_count(&fake, "GET /plain503"), 1);
    stw_client_destroy(c);
}

/* What `value` of the header, or of the Status, makes of a list that is refused. */
static uint32_t pause_of(struct stw_client *c, int status, const char *header, const char *body)
{
    char step[400];
    struct stw_error err = {0};
    struct stw_request once = {.method = "GET", .path = "/pause", .no_retry = true};
    (void)snprintf(step, sizeof(step),
                   "[{'match':'/pause','status':%d%s%s%s,'body':{'kind':'Status','code':%d%s}}]",
                   status, header ? ",'headers':{'Retry-After':'" : "", header ? header : "",
                   header ? "'}" : "", status, body);
    fake_steps(&fake, step);
    assert_int_equal(stw_client_do(c, &once, NULL, &err), -1);
    return err.retry_after_ms;
}

/* The pause that a server asks for is at most 30 s, however it is written. */
static void test_retry_after_is_limited_to_30_s(void **state)
{
    static const struct {
        int status;
        const char *header, *body;
        uint32_t ms;
    } rows[] = {
        {429, "7", "", 7000},
        {429, "30", "", 30000},
        {429, "31", "", 30000},
        {503, "3600", "", 30000},
        {429, "4294968", "", 30000}, /* over 2^32 ms */
        {429, "9223372036854775807", "", 30000},
        {503, "Fri, 31 Dec 2100 23:59:59 GMT", "", 30000},
        {503, "Sun, 06 Nov 1994 08:49:37 GMT", "", 0},
        {429, "0", "", 0},
        {429, "-5", "", 0},
        {429, "soon", "", 0},
        {429, NULL, ",'details':{'retryAfterSeconds':3}", 3000},
        {429, NULL, ",'details':{'retryAfterSeconds':3600}", 30000},
        {429, NULL, ",'details':{'retryAfterSeconds':-1}", 0},
        {429, "2", ",'details':{'retryAfterSeconds':3600}", 2000},
    };
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    FILE *log = tmpfile();
    char line[1024];
    (void)state;
    assert_non_null(log);
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, fileno(log));
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        off_t before = lseek(fileno(log), 0, SEEK_END);
        uint32_t ms = pause_of(c, rows[i].status, rows[i].header, rows[i].body);
        ssize_t n = pread(fileno(log), line, sizeof(line) - 1, before);
        assert_in_range(n, 0, sizeof(line) - 1);
        line[n] = '\0';
        if (ms != rows[i].ms)
            fail_msg("row %zu: %u ms", i, ms);
        char wait[64];
        (void)snprintf(wait, sizeof(wait), " waitSeconds=%u.000000\n", ms / 1000);
        assert_true((strstr(line, "asks for a pause method=GET path=/pause ") != NULL) == (ms > 0));
        assert_true(ms == 0 || strstr(line, wait) != NULL);
    }
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, 2);
    (void)fclose(log);
    stw_client_destroy(c);
}

static void test_stalled_request_times_out(void **state)
{
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_error err = {0};
    struct stw_request req = {.method = "GET", .path = "/stall", .timeout_ms = 150};
    (void)state;
    fake_steps(&fake, "[{'match':'/stall','then':'stall'},{'match':'/after','times':0}]");
    assert_int_equal(stw_client_do(c, &req, NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_TIMEOUT);
    assert_int_equal(get(c, "/after", NULL, &err), 0);
    stw_client_destroy(c);
}

/* On a kept connection that breaks: PUT and PATCH are sent twice, DELETE is not. */
static void test_reset_connection_repeats_idempotent_writes(void **state)
{
    static const struct {
        const char *method;
        unsigned times;
    } rows[] = {{"PUT", 2}, {"PATCH", 2}, {"DELETE", 1}};
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    (void)state;
    fake_steps(&fake, "[{'match':'/warm','times':0}]");
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char step[256], name[32];
        struct stw_error err = {0};
        struct stw_request req = {
            .method = rows[i].method, .path = "/cut", .body = "{}", .body_len = 2};
        /* Headers are sent first: on a silent connection libcurl would retry by itself. */
        (void)snprintf(step, sizeof(step),
                       "[{'match':'%s /cut','status':200,'body':'abc','then':'cut'},"
                       "{'match':'%s /cut'}]",
                       rows[i].method, rows[i].method);
        (void)snprintf(name, sizeof(name), "%s /cut", rows[i].method);
        fake_steps(&fake, step);
        assert_int_equal(get(c, "/warm", NULL, &err), 0);
        int r = stw_client_do(c, &req, NULL, &err);
        assert_int_equal(r, rows[i].times == 2 ? 0 : -1);
        assert_int_equal(fake_count(&fake, name), rows[i].times);
    }
    stw_client_destroy(c);
}

static void test_truncated_response_is_an_error(void **state)
{
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_error err = {0};
    struct stw_buf body = STW_BUF_INIT(100);
    (void)state;
    fake_steps(&fake, "[{'match':'/half','status':200,'body':'{\\'a\\':','then':'cut','times':0}]");
    assert_int_equal(get(c, "/half", &body, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    assert_int_equal(body.len, 0);
    stw_client_destroy(c);
}

static void test_oversized_response_is_an_error(void **state)
{
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_error err = {0};
    (void)state;
    fake_steps(&fake,
               "[{'match':'/huge','stream':[{'repeat':'0123456789abcdef','bytes':67200000}]}]");
    assert_int_equal(get(c, "/huge", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    stw_client_destroy(c);
}

/* libcurl keeps every line: short ones in a head, and any number of them in trailers. */
static void test_response_headers_and_trailers_are_limited(void **state)
{
    static const struct {
        const char *step;
        bool served;
    } rows[] = {
        {"'lines':['X-One: 1',100]", true},
        {"'trailers':['X-One: 1',100]", true},
        {"'lines':['a:',5000]", false},
        {"'trailers':['a:',5000]", false},
        {"'trailers':['X-Long: 0123456789abcdef0123456789abcdef0123456789abcdef',1000]", false},
    };
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char step[256];
        struct stw_error err = {0};
        (void)snprintf(step, sizeof(step), "[{'match':'/head/%zu$','stream':[{'raw':'{}'}],%s}]", i,
                       rows[i].step);
        fake_steps(&fake, step);
        (void)snprintf(step, sizeof(step), "/head/%zu", i);
        assert_int_equal(get(c, step, NULL, &err), rows[i].served ? 0 : -1);
        assert_int_equal(err.code, rows[i].served ? STW_OK : STW_ERR_UNAVAILABLE);
        if (!rows[i].served)
            assert_non_null(
                strstr(err.text, "the head or the trailers of the answer are too large"));
    }
    stw_client_destroy(c);
}

/* What is kept of answers is counted until their end. */
static void test_kept_responses_are_counted(void **state)
{
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_error err = {0};
    size_t limit = stw_share_limit(STW_SHARE_ANSWERS);
    (void)state;
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, (size_t)4 << 20);
    fake_steps(&fake, "[{'match':'/large$','times':3,'stream':[{'repeat':'x','bytes':1500000}]},"
                      "{'match':'/larger$','stream':[{'repeat':'x','bytes':6000000}]}]");
    assert_int_equal(get(c, "/large", NULL, &err), 0);
    stw_share_add(STW_SHARE_ANSWERS, (size_t)3 << 20);
    assert_int_equal(get(c, "/large", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    stw_share_give_back(STW_SHARE_ANSWERS, (size_t)3 << 20);
    assert_int_equal(get(c, "/large", NULL, &err), 0);
    assert_int_equal(get(c, "/larger", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, limit);
    stw_client_destroy(c);
}

/* The values of an answer take 14 times its text: these are counted, too. */
static void test_json_values_of_responses_are_counted(void **state)
{
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_error err = {0};
    size_t limit = stw_share_limit(STW_SHARE_ANSWERS);
    (void)state;
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, (size_t)4 << 20);
    fake_steps(&fake, "[{'match':'/few$','times':0,'stream':[{'repeat':'1,','bytes':200000}]},"
                      "{'match':'/many$','stream':[{'repeat':'1,','bytes':400000}]},"
                      "{'match':'/text$','stream':[{'raw':'\\\"'},{'repeat':',','bytes':1000000}]},"
                      "{'match':'/bad$','status':500,'stream':[{'repeat':'1,','bytes':400000}]}]");
    assert_int_equal(get(c, "/few", NULL, &err), 0);
    assert_int_equal(get(c, "/text", NULL, &err), 0);
    stw_share_add(STW_SHARE_ANSWERS, (size_t)2 << 20);
    assert_int_equal(get(c, "/few", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    stw_share_give_back(STW_SHARE_ANSWERS, (size_t)2 << 20);
    assert_int_equal(get(c, "/many", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    assert_int_equal(get(c, "/bad", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "the server answered 500"));
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, limit);
    stw_client_destroy(c);
}

static void test_reconcile_counts_its_responses(void **state)
{
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_error err = {0};
    stw_autobuf struct stw_buf text = STW_BUF_INIT((size_t)1 << 20);
    size_t limit = stw_share_limit(STW_SHARE_ANSWERS);
    (void)state;
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, (size_t)8 << 20);
    fake_steps(&fake, "[{'match':'/kept$','times':0,'stream':[{'repeat':'1,','bytes':200000}]}]");
    stw_answers_begin();
    assert_int_equal(get(c, "/kept", NULL, &err), 0); /* its caller drops it */
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
    assert_int_equal(get(c, "/kept", &text, &err), 0);
    assert_true(stw_share_facts(STW_SHARE_ANSWERS).used > (size_t)2 << 20);
    assert_int_equal(get(c, "/kept", &text, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    stw_answers_reserve((size_t)1 << 20);
    assert_int_equal(get(c, "/kept", &text, &err), -1);
    stw_answers_reserve((size_t)4 << 20);
    assert_int_equal(get(c, "/kept", &text, &err), 0);
    stw_answers_end();
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
    assert_int_equal(get(c, "/kept", &text, &err), 0);
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, limit);
    stw_client_destroy(c);
}

static void *cancel_soon(void *c)
{
    wait_until(fake_count(&fake, "GET /hang") > 0);
    stw_client_cancel(c);
    return NULL;
}

static void test_cancelled_client_fails_requests(void **state)
{
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_error err = {0};
    pthread_t thread;
    (void)state;
    fake_steps(&fake, "[{'match':'/hang','then':'stall'}]");
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, c), 0);
    assert_int_equal(get(c, "/hang", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(get(c, "/hang", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_CANCELLED);
    stw_client_cancel(c);
    stw_client_destroy(c);
}

static void test_submitted_request_is_sent_in_the_background(void **state)
{
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_client *c = fake_client(&fake, NULL, m);
    struct stw_request req = {.method = "POST", .path = "/submit", .body = "{}", .body_len = 2};
    struct stw_series *dropped =
        STW_SERIES0(stw_metrics_family(m, STW_COUNTER, "_client_dropped_total", "", NULL, NULL));
    (void)state;
    fake_steps(&fake, "[{'match':'/submit','stream':[{'wait':'submit'}],'times':4},"
                      "{'match':'/submit','times':0}]");
    for (int i = 0; i < 500; i++)
        assert_true(stw_client_submit(c, &req));
    assert_int_equal((int)stw_series_value(dropped), 0);
    fake_go(&fake, "submit");
    wait_until(fake_count(&fake, "POST /submit {}") == 500);
    stw_client_destroy(c);
    stw_metrics_destroy(m);
}

/* Submitted requests that the server does not accept do not fill the memory. */
static void test_submitted_requests_are_limited_in_memory(void **state)
{
    static char body[256 << 10];
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_client *c = fake_client(&fake, NULL, m);
    struct stw_request req = {
        .method = "POST", .path = "/much", .body = body, .body_len = sizeof(body)};
    struct stw_series *dropped =
        STW_SERIES0(stw_metrics_family(m, STW_COUNTER, "_client_dropped_total", "", NULL, NULL));
    int taken = 0;
    (void)state;
    memset(body, '1', sizeof(body));
    fake_steps(&fake, "[{'match':'/much','stream':[{'wait':'much'}],'times':4},"
                      "{'match':'/much','times':0}]");
    for (int i = 0; i < 50; i++)
        taken += stw_client_submit(c, &req);
    assert_int_equal(taken, 31); /* 8 MiB, including the overhead of each call */
    assert_int_equal((int)stw_series_value(dropped), 50 - taken);
    fake_go(&fake, "much");
    wait_until(fake_count(&fake, "POST /much 1") == (unsigned)taken);
    wait_until(stw_client_submit(c, &req)); /* there is space again */
    stw_client_destroy(c);
    stw_metrics_destroy(m);
}

static void *get_slow(void *c)
{
    assert_int_equal(get(c, "/slow", NULL, NULL), 0);
    return NULL;
}

/* While a caller waits for a response, submitted requests still go out, but one at a time. */
static void test_submitted_requests_go_out_during_waits(void **state)
{
    enum { EVENTS = 4, APART_MS = 100 };
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_request req = {.method = "POST", .path = "/late", .body = "{}", .body_len = 2};
    pthread_t thread;
    (void)state;
    fake_steps(&fake, "[{'match':'/slow','stream':[{'wait':'slow'}]},"
                      "{'match':'/late','times':0}]");
    assert_int_equal(pthread_create(&thread, NULL, get_slow, c), 0);
    wait_until(fake_count(&fake, "GET /slow") > 0);
    uint64_t begin = stw_now_ms(&stw_clock_system);
    for (int i = 0; i < EVENTS; i++)
        stw_client_submit(c, &req);
    wait_until(fake_count(&fake, "POST /late {}") == EVENTS);
    assert_true(stw_now_ms(&stw_clock_system) - begin >= (EVENTS - 1) * APART_MS);
    fake_go(&fake, "slow");
    assert_int_equal(pthread_join(thread, NULL), 0);
    stw_client_destroy(c);
}

static atomic_uint_fast64_t moved_ms; /* of a clock that only the test advances */

static uint64_t read_moved(void *ctx)
{
    (void)ctx;
    return moved_ms;
}

static int64_t no_wall(void *ctx)
{
    (void)ctx;
    return 0;
}

/* Submitted requests do not use the short pause between two requests of a worker. */
static void test_submitted_requests_keep_the_short_pauses(void **state)
{
    static const struct stw_clock clock = {.monotonic_ms = read_moved, .wall_us = no_wall};
    struct stw_kubeconfig config = {.server = fake.server};
    struct stw_request req = {.method = "POST", .path = "/between", .body = "{}", .body_len = 2};
    struct stw_client *c = NULL;
    struct stw_error err = {0};
    (void)state;
    moved_ms = 1000000;
    assert_int_equal(stw_client_create(&fake_operator, &config, &clock, NULL, &c, &err), 0);
    fake_steps(&fake, "[{'match':'/often','times':0},{'match':'/between','times':0}]");
    assert_int_equal(get(c, "/often", NULL, &err), 0);
    for (int i = 0; i < 6; i++)
        assert_true(stw_client_submit(c, &req));
    wait_until(fake_count(&fake, "POST /between {}") == 1);
    for (int i = 0; i < 20; i++)
        assert_int_equal(get(c, "/often", NULL, &err), 0);
    assert_int_equal(fake_count(&fake, "POST /between {}"), 1);
    moved_ms += 100;
    wait_until(fake_count(&fake, "POST /between {}") == 6);
    stw_client_destroy(c);
}

static void write_token(const char *path, const char *token)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f, "%s\n", token);
    (void)fclose(f);
}

static void test_rotated_token_is_read_again(void **state)
{
    char path[] = "/tmp/steward-token-XXXXXX";
    struct stw_kubeconfig config = {.token_path = path, .token = (char[]){"unused"}};
    struct stw_error err = {0};
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    write_token(path, "old");
    struct stw_client *c = fake_client(&fake, &config, NULL);
    fake_steps(&fake, "[{'match':'/who','times':2},{'match':'/who','status':401},{'match':'/who'},"
                      "{'match':'/never','status':401,'times':0}]");
    assert_int_equal(get(c, "/who", NULL, &err), 0);
    write_token(path, "new");
    assert_int_equal(get(c, "/who", NULL, &err), 0); /* not reread for a minute */
    assert_int_equal(fake_count(&fake, "Bearer old"), 2);
    assert_int_equal(get(c, "/who", NULL, &err), 0); /* 401: reread, and retried once */
    assert_int_equal(fake_count(&fake, "Bearer new"), 1);
    assert_int_equal(get(c, "/never", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_FORBIDDEN);
    assert_int_equal(fake_count(&fake, "GET /never"), 2);
    assert_int_equal(fake_count(&fake, "unused"), 0);
    stw_client_destroy(c);
    (void)unlink(path);
}

static void test_basic_credentials_are_sent(void **state)
{
    struct stw_kubeconfig config = {.username = (char[]){"me"}, .password = (char[]){"pass"}};
    struct stw_client *c = fake_client(&fake, &config, NULL);
    struct stw_error err = {0};
    (void)state;
    fake_steps(&fake, "[{'match':'/basic'}]");
    assert_int_equal(get(c, "/basic", NULL, &err), 0);
    assert_int_equal(fake_count(&fake, "/basic  Basic bWU6cGFzcw=="), 1);
    stw_client_destroy(c);
}

static void test_verbs_send_their_requests(void **state)
{
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_error err = {0};
    json_auto_t *o = json_pack("{s:s}", "a", "b");
    (void)state;
    fake_steps(&fake, "[{'match':'/verb','times':0}]");
    assert_int_equal(stw_kube_get(c, &stw_res_secret, "verb", "n", NULL, &err), 0);
    assert_int_equal(stw_kube_get_since(c, &stw_res_secret, "verb", "n", "17", NULL, &err), 0);
    assert_int_equal(stw_kube_create(c, &stw_res_configmap, "verb", o, NULL, &err), 0);
    assert_int_equal(stw_kube_delete(c, &stw_res_service, "verb", "n", "U", NULL, &err), 0);
    assert_int_equal(stw_kube_delete(c, &stw_res_service, "verb", "m", NULL, NULL, &err), 0);
    assert_int_equal(
        stw_kube_apply(c, STW_PLACE(&stw_res_service, "verb", "n"), o, "the manager", NULL, &err),
        0);
    assert_int_equal(stw_kube_merge_patch(c, STW_PLACE(&stw_res_service, "verb", "n", "status"), o,
                                          "m", NULL, &err),
                     0);
    static const char *const want[] = {
        "GET /api/v1/namespaces/verb/secrets/n  ",
        "GET /api/v1/namespaces/verb/secrets/n?resourceVersion=17  ",
        "POST /api/v1/namespaces/verb/configmaps {\"a\":\"b\"}",
        "\"propagationPolicy\":\"Background\",\"preconditions\":{\"uid\":\"U\"}}",
        "\"propagationPolicy\":\"Background\"}",
        "PATCH /api/v1/namespaces/verb/services/n?fieldManager=the%20manager&force=true {",
        "PATCH /api/v1/namespaces/verb/services/n/status?fieldManager=m {"};
    for (size_t i = 0; i < STW_COUNT(want); i++)
        if (fake_count(&fake, want[i]) != 1)
            fail_msg("not asked: %s", want[i]);
    stw_client_destroy(c);
}

static void test_requests_are_counted_in_metrics(void **state)
{
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_client *c = fake_client(&fake, NULL, m);
    struct stw_error err;
    struct stw_buf text = STW_BUF_INIT(1u << 20);
    char want[1024];
    (void)state;
    (void)get(c, "/no-such-thing", NULL, &err);
    stw_metrics_render(m, &text);
    (void)snprintf(want, sizeof(want),
                   "rest_client_requests_total{code=\"404\",method=\"GET\",host=\"%s\"} 1",
                   fake.server + 7);
    assert_non_null(strstr(stw_buf_str(&text), want));
    assert_non_null(
        strstr(stw_buf_str(&text), "rest_client_request_duration_seconds_count{verb=\"GET\""));
    stw_buf_done(&text);
    stw_client_destroy(c);
    stw_metrics_destroy(m);
}

/* --- TLS */

static void test_server_certificate_is_verified(void **state)
{
    struct fake tls;
    size_t len;
    struct stw_kubeconfig config = {0};
    struct stw_error err = {0};
    (void)state;
    fake_start_tls(&tls, "api.example");
    fake_steps(&tls, "[{'match':'/','times':0}]");
    /* not trusted */
    struct stw_client *c = fake_client(&tls, &config, NULL);
    assert_int_equal(get(c, "/x", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "certificate"));
    stw_client_destroy(c);
    /* trusted, with another name */
    assert_int_equal(stw_read_file(tls.cert, 1u << 20, &config.ca_pem, &len, &err), 0);
    c = fake_client(&tls, &config, NULL);
    assert_int_equal(get(c, "/x", NULL, &err), -1);
    stw_client_destroy(c);
    /* the configured name; the Host header keeps the real one */
    config.tls_server_name = (char[]){"api.example"};
    c = fake_client(&tls, &config, NULL);
    if (get(c, "/x", NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(fake_count(&tls, "GET /x   127.0.0.1:"), 1);
    stw_client_destroy(c);
    free(config.ca_pem);
    fake_stop(&tls);
}

/* Replaces `to` with a copy of `from`, as a new file. */
static void replace_file(const char *to, const char *from)
{
    char command[1200];
    (void)snprintf(command, sizeof(command), "cp %s %s.new && mv %s.new %s", from, to, to, to);
    assert_int_equal(system(command), 0);
}

/* A 401 makes the client read its files again.  A connection or TLS session that the former CA has
 * vouched for is not used again, whether the CA is read by us or by libcurl. */
static void test_rotated_ca_is_read_again(void **state)
{
    struct fake tls, other;
    struct stw_error err = {0};
    char token[] = "/tmp/steward-token-XXXXXX", command[1200];
    size_t len;
    (void)state;
    int fd = mkstemp(token);
    assert_true(fd >= 0);
    (void)close(fd);
    write_token(token, "t");
    fake_start_tls(&tls, "api.example");
    fake_start_tls(&other, "api.example");
    char *ca = other.key; /* its key is not needed: a file of ours */
    struct stw_kubeconfig config = {.token_path = token, .ca_path = ca};
    config.tls_server_name = (char[]){"api.example"};
    (void)snprintf(command, sizeof(command), "cat %s %s > %s", other.cert, tls.cert, ca);
    assert_int_equal(system(command), 0);
    assert_int_equal(stw_read_file(ca, 1u << 20, &config.ca_pem, &len, &err), 0);
    struct stw_client *c = fake_client(&tls, &config, NULL);
    fake_steps(&tls, "[{'match':'/a'},{'match':'/b','status':401},{'match':'/b'},"
                     "{'match':'/c','status':401},{'match':'/c','times':0}]");
    if (get(c, "/a", NULL, &err) != 0)
        fail_msg("%s", err.text);
    replace_file(ca, tls.cert); /* still vouches for the server */
    if (get(c, "/b", NULL, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(fake_count(&tls, "GET /b"), 2);
    replace_file(ca, other.cert); /* no longer */
    assert_int_equal(get(c, "/c", NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "certificate"));
    assert_int_equal(fake_count(&tls, "GET /c"), 1);
    stw_client_destroy(c);
    free(config.ca_pem);
    fake_stop(&tls);
    fake_stop(&other);
    (void)unlink(token);
}

static void test_rotated_client_certificate_is_used(void **state)
{
    struct fake first, second;
    struct stw_auth a = {0};
    struct stw_error err = {0};
    size_t len;
    (void)state;
    fake_start_tls(&first, "one.example");
    fake_start_tls(&second, "two.example");
    struct stw_kubeconfig config = {.cert_path = first.cert, .key_path = first.key};
    assert_int_equal(stw_read_file(first.cert, 1u << 20, &config.cert_pem, &len, &err), 0);
    assert_int_equal(stw_read_file(first.key, 1u << 20, &config.key_pem, &len, &err), 0);
    assert_int_equal(stw_auth_init(&a, &config, 1000, &err), 0);
    /* half of the new pair: the old pair stays in use */
    replace_file(first.cert, second.cert);
    stw_auth_refresh(&a, 61000, false);
    assert_string_equal(a.config->cert_pem, config.cert_pem);
    assert_string_equal(a.config->key_pem, config.key_pem);
    replace_file(first.key, second.key);
    stw_auth_refresh(&a, 62000, false); /* not reread for a minute */
    assert_string_equal(a.config->cert_pem, config.cert_pem);
    stw_auth_refresh(&a, 121000, false);
    assert_string_not_equal(a.config->cert_pem, config.cert_pem);
    assert_string_not_equal(a.config->key_pem, config.key_pem);
    /* the key is missing */
    assert_int_equal(unlink(first.key), 0);
    stw_auth_refresh(&a, 181000, true);
    assert_non_null(strstr(a.config->key_pem, "PRIVATE KEY"));
    stw_auth_done(&a);
    free(config.cert_pem);
    free(config.key_pem);
    fake_stop(&first);
    fake_stop(&second);
}

static void test_metric_paths_are_templates(void **state)
{
    static const char *const rows[][2] = {
        {"/api/v1/namespaces/shop/services/web", "/api/v1/namespaces/{namespace}/services/{name}"},
        {"/api/v1/namespaces/shop/pods/web/log?container=x",
         "/api/v1/namespaces/{namespace}/pods/{name}/log"},
        {"/api/v1/namespaces/shop/pods?limit=1", "/api/v1/namespaces/{namespace}/pods"},
        {"/api/v1/namespaces/shop", "/api/v1/namespaces/{name}"},
        {"/api/v1/namespaces/shop/status", "/api/v1/namespaces/{name}/status"},
        {"/api/v1/nodes/n1", "/api/v1/nodes/{name}"},
        {"/api/v1/namespaces", "/api/v1/namespaces"},
        {"/api/v1", "/api/v1"},
        {"/apis/apps/v1/namespaces/shop/deployments/web/scale?fieldManager=steward&force=true",
         "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"},
        {"/apis/storage.k8s.io/v1/storageclasses/fast",
         "/apis/storage.k8s.io/v1/storageclasses/{name}"},
        {"/apis/apps", "/apis/apps"},
        {"/version", "/version"},
        {"/a/b/c/d/e/f/g/h/i/j/k/l/m/n", "/a/b/c/d/e/f/g/h/i/j/k/l"},
        {"/", "/"},
        {"", ""},
    };
    char out[200], small[8];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_client_path_template(rows[i][0], out, sizeof(out));
        assert_string_equal(out, rows[i][1]);
        stw_client_path_template(rows[i][0], small, sizeof(small));
        assert_true(strlen(small) < sizeof(small));
    }
}

/* A request within a span is its child, and the server gets its context; others have neither. */
static void test_traced_request_sends_its_context(void **state)
{
    const struct stw_sampler all = {STW_SAMPLE_ALL, true, 1};
    struct stw_client *c = fake_client(&fake, NULL, NULL);
    struct stw_tracer *t = stw_tracer_create(&all, 16, NULL);
    struct stw_error err = {0};
    struct stw_span run;
    char sent[STW_TRACEPARENT_LEN];
    (void)state;
    assert_non_null(t);
    stw_tracer_install(t);
    fake_steps(&fake, "[{'match':'GET /api/v1/nodes/traced','status':200,'body':{}},"
                      "{'match':'GET /api/v1/nodes/traced','status':404}]");
    assert_int_equal(get(c, "/api/v1/nodes/traced-not", NULL, &err), 0);
    stw_span_begin(&run, STW_SPAN_INTERNAL, "run", NULL, 0);
    assert_int_equal(get(c, "/api/v1/nodes/traced", NULL, &err), -1);
    stw_span_end(&run);
    struct stw_span_record *r = stw_tracer_take(t, 16, 0);
    assert_string_equal(r->text + r->name, "GET /api/v1/nodes/{name}");
    assert_int_equal(r->kind, STW_SPAN_CLIENT);
    assert_true(r->failed);
    assert_memory_equal(r->context.trace_id, r->next->context.trace_id, 16);
    assert_memory_equal(r->parent_id, r->next->context.span_id, 8);
    stw_traceparent_format(&r->context, sent);
    json_t *log = fake_log(&fake), *requests = json_object_get(log, "requests"), *one;
    size_t i, with = 0;
    json_array_foreach (requests, i, one) {
        const char *value = json_string_value(json_object_get(one, "traceparent"));
        if (*value) {
            assert_string_equal(value, sent);
            with++;
        }
    }
    assert_int_equal(with, 1);
    json_decref(log);
    stw_tracer_free(r);
    stw_tracer_destroy(t);
    stw_client_destroy(c);
}

/* Nothing listens there: a request that is sent is STW_ERR_UNAVAILABLE. */
static void test_writes_need_an_open_fence(void **state)
{
    char server[] = "http://127.0.0.1:1";
    struct stw_kubeconfig config = {.server = server};
    json_auto_t *object = json_pack("{s:{}}", "metadata");
    struct stw_fence *fence = stw_fence_create(&stw_clock_system);
    (void)state;
    for (int shadowed = 0; shadowed < 2; shadowed++) {
        struct stw_shadow *shadow = shadowed ? stw_shadow_create() : NULL;
        struct stw_client *c;
        struct stw_error err = {0};
        assert_int_equal(
            stw_client_create(&fake_operator, &config, &stw_clock_system, NULL, &c, &err), 0);
        if (shadow)
            stw_client_set_shadow(c, shadow);
        struct stw_fence_ticket before = stw_fence_enter(stw_fence_take(fence));
        const struct stw_place *at = STW_PLACE(&stw_res_secret, "ns", "s");
        struct stw_error errors[5] = {0};
        assert_int_equal(stw_kube_apply(c, at, object, "us", NULL, &errors[0]), -1);
        assert_int_equal(stw_kube_merge_patch(c, at, object, "us", NULL, &errors[1]), -1);
        assert_int_equal(stw_kube_json_patch(c, at, "[]", "us", NULL, &errors[2]), -1);
        assert_int_equal(stw_kube_create(c, &stw_res_secret, "ns", object, NULL, &errors[3]), -1);
        assert_int_equal(stw_kube_delete(c, &stw_res_secret, "ns", "s", "u", NULL, &errors[4]), -1);
        for (size_t i = 0; i < STW_COUNT(errors); i++) {
            assert_int_equal(errors[i].code, STW_ERR_CANCELLED);
            assert_string_equal(errors[i].text, "this process no longer leads");
        }
        (void)stw_fence_enter(before);
        stw_client_destroy(c);
        stw_shadow_destroy(shadow);
    }
    stw_fence_destroy(fence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_responses_map_to_error_codes),
        cmocka_unit_test(test_unreachable_server_is_unavailable),
        cmocka_unit_test(test_timeout_names_what_was_waited_for),
        cmocka_unit_test(test_throttled_request_is_retried),
        cmocka_unit_test(test_retry_after_is_limited_to_30_s),
        cmocka_unit_test(test_stalled_request_times_out),
        cmocka_unit_test(test_reset_connection_repeats_idempotent_writes),
        cmocka_unit_test(test_truncated_response_is_an_error),
        cmocka_unit_test(test_oversized_response_is_an_error),
        cmocka_unit_test(test_response_headers_and_trailers_are_limited),
        cmocka_unit_test(test_kept_responses_are_counted),
        cmocka_unit_test(test_json_values_of_responses_are_counted),
        cmocka_unit_test(test_reconcile_counts_its_responses),
        cmocka_unit_test(test_cancelled_client_fails_requests),
        cmocka_unit_test(test_submitted_request_is_sent_in_the_background),
        cmocka_unit_test(test_submitted_requests_go_out_during_waits),
        cmocka_unit_test(test_submitted_requests_keep_the_short_pauses),
        cmocka_unit_test(test_submitted_requests_are_limited_in_memory),
        cmocka_unit_test(test_rotated_token_is_read_again),
        cmocka_unit_test(test_basic_credentials_are_sent),
        cmocka_unit_test(test_verbs_send_their_requests),
        cmocka_unit_test(test_writes_need_an_open_fence),
        cmocka_unit_test(test_requests_are_counted_in_metrics),
        cmocka_unit_test(test_server_certificate_is_verified),
        cmocka_unit_test(test_rotated_ca_is_read_again),
        cmocka_unit_test(test_rotated_client_certificate_is_used),
        cmocka_unit_test(test_metric_paths_are_templates),
        cmocka_unit_test(test_traced_request_sends_its_context),
    };
    return cmocka_run_group_tests(tests, fake_set_up, fake_tear_down);
}
