/* SPDX-License-Identifier: Apache-2.0
 *
 * The exporter's thread: one batch after the other, one request at a time. */
#include "base/backoff.h"
#include "base/clock.h"
#include "base/http_head.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "otlp/otlp.h"

#include <curl/curl.h>
#include <stdatomic.h>

#define STACK_BYTES (512u << 10)
#define BODY_MAX_BYTES (8u << 20)
#define ANSWER_MAX_BYTES (16u << 10) /* what is longer is read and ignored */
#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MAX_MS 30000
#define TELL_EVERY_MS 60000

struct stw_otlp {
    const struct stw_otlp_config *config;
    struct stw_tracer *tracer;
    pthread_t thread;
    CURL *easy;
    struct curl_slist *headers;
    _Atomic uint64_t stop_ms; /* the end of the flush; UINT64_MAX: not stopping */
    uint64_t not_before_ms;   /* what a Retry-After asks for */
    uint64_t logged_ms;       /* when a failure was last logged; 0: never */
    bool failing;
    struct stw_buf answer;
    struct stw_http_head head;
    char curl_text[CURL_ERROR_SIZE];
};

/* The result of one request. */
struct attempt {
    CURLcode code;
    long status;
    uint64_t retry_after_ms;
};

/* --- one request */

static size_t on_answer(char *data, size_t one, size_t len, void *ctx)
{
    struct stw_otlp *x = ctx;
    len *= one;
    stw_buf_add(&x->answer, data, STW_MIN(len, (size_t)ANSWER_MAX_BYTES - x->answer.len));
    return len;
}

static size_t on_header(char *data, size_t one, size_t len, void *ctx)
{
    struct stw_otlp *x = ctx;
    (void)data;
    return stw_http_head_take(&x->head, one * len) ? one * len : 0;
}

/* libcurl calls this at least once a second: ends a request when the flush is over. */
static int check_stop(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct stw_otlp *x = ctx;
    (void)a, (void)b, (void)c, (void)d;
    return stw_now_ms(&stw_clock_system) >= atomic_load(&x->stop_ms);
}

static int append_header(struct stw_otlp *x, const char *line)
{
    struct curl_slist *more = curl_slist_append(x->headers, line);
    if (!more)
        return -1;
    x->headers = more;
    return 0;
}

static int set_headers(struct stw_otlp *x)
{
    int bad = append_header(x, "Content-Type: application/json");
    bad |= append_header(x, "Accept: application/json");
    bad |= append_header(x, "Expect:");
    for (char **h = x->config->headers; h && *h; h++)
        bad |= append_header(x, *h);
    return bad | (int)curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
}

/* Redirects are not followed: headers may hold credentials. */
static int set_options(struct stw_otlp *x)
{
    const struct stw_otlp_config *c = x->config;
    char agent[128];
    stw_format(agent, sizeof(agent), "%s/%s", c->scope, c->version);
    int bad = (int)curl_easy_setopt(x->easy, CURLOPT_URL, c->endpoint);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_NOSIGNAL, 1L);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_USERAGENT, agent);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->curl_text);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, on_answer);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_HEADERFUNCTION, on_header);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_HEADERDATA, x);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_XFERINFOFUNCTION, check_stop);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_XFERINFODATA, x);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_NOPROGRESS, 0L);
    if (c->ca_file) {
        bad |= (int)curl_easy_setopt(x->easy, CURLOPT_CAINFO, c->ca_file);
        bad |= (int)curl_easy_setopt(x->easy, CURLOPT_CAPATH, NULL);
    }
    return bad | set_headers(x);
}

static struct attempt post_body(struct stw_otlp *x, const struct stw_buf *body)
{
    struct attempt a = {0};
    curl_off_t seconds = 0;
    uint64_t now = stw_now_ms(&stw_clock_system), stop = atomic_load(&x->stop_ms);
    uint64_t left = stop > now ? STW_MIN(stop - now, (uint64_t)x->config->timeout_ms) : 1;
    stw_buf_clear(&x->answer);
    x->head = (struct stw_http_head){0};
    x->curl_text[0] = '\0';
    (void)curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)left);
    (void)curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
    (void)curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, body->data);
    a.code = curl_easy_perform(x->easy);
    if (a.code != CURLE_OK)
        return a;
    (void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &a.status);
    (void)curl_easy_getinfo(x->easy, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0)
        a.retry_after_ms =
            STW_MIN((uint64_t)seconds, (uint64_t)STW_RETRY_AFTER_MAX_MS / 1000) * 1000;
    return a;
}

/* The statuses that OTLP says to retry; and no answer at all. */
static bool may_retry(const struct attempt *a)
{
    return a->code != CURLE_OK || a->status == 429 || a->status == 502 || a->status == 503 ||
           a->status == 504;
}

static bool is_accepted(const struct attempt *a)
{
    return a->code == CURLE_OK && a->status >= 200 && a->status <= 299;
}

/* --- what is logged: the first failure, then one a minute; and the end of the failures */

static void tell_failure(struct stw_otlp *x, const struct attempt *a, uint64_t spans)
{
    uint64_t now = stw_now_ms(&stw_clock_system);
    char status[32];
    stw_format(status, sizeof(status), "HTTP status %ld", a->status);
    x->failing = true;
    if (x->logged_ms > 0 && now - x->logged_ms < TELL_EVERY_MS)
        return;
    x->logged_ms = now;
    stw_log(STW_LOG_WARN, "spans were dropped: the collector does not take them",
            STW_STR("endpoint", x->config->name),
            STW_STR("error", a->code == CURLE_OK ? status
                             : *x->curl_text     ? x->curl_text
                                                 : curl_easy_strerror(a->code)),
            STW_INT("spans", spans));
}

static void tell_success(struct stw_otlp *x)
{
    if (x->failing)
        stw_log_write(STW_LOG_INFO, "spans are exported again",
                      (const struct stw_log_field[]){STW_STR("endpoint", x->config->name), {0}});
    x->failing = false;
}

/* The spans of an accepted batch that the collector rejected: partialSuccess.rejectedSpans, a number
 * or a string.  Garbage: none. */
static uint64_t read_rejected(const struct stw_buf *answer, uint64_t spans)
{
    stw_autojson struct stw_json_doc doc = {.max = 1024};
    char text[24];
    int64_t n = 0;
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, NULL) != 0)
        return 0;
    struct stw_json v = stw_json_path(stw_json_root(&doc), "partialSuccess.rejectedSpans");
    if (stw_json_int(v, &n) != 0 &&
        (stw_json_strcpy(v, text, sizeof(text)) != 0 || stw_parse_int(text, 0, INT64_MAX, &n) != 0))
        n = 0;
    return STW_MIN((uint64_t)STW_MAX(n, INT64_C(0)), spans);
}

/* --- a batch */

static void end_batch(struct stw_otlp *x, const struct attempt *a, uint64_t spans)
{
    if (!is_accepted(a)) {
        stw_tracer_count(x->tracer, may_retry(a) ? STW_TRACE_UNREACHABLE : STW_TRACE_REJECTED,
                         spans);
        tell_failure(x, a, spans);
        return;
    }
    uint64_t rejected = read_rejected(&x->answer, spans);
    stw_tracer_count(x->tracer, STW_TRACE_EXPORTED, spans - rejected);
    stw_tracer_count(x->tracer, STW_TRACE_REJECTED, rejected);
    if (rejected > 0)
        tell_failure(x, a, rejected);
    else
        tell_success(x);
}

static void send_batch(struct stw_otlp *x, const struct stw_buf *body, uint64_t spans)
{
    struct attempt a;
    stw_tracer_pause(x->tracer, x->not_before_ms);
    uint64_t deadline = stw_now_ms(&stw_clock_system) + x->config->batch_ms;
    for (uint32_t tries = 0;; tries++) {
        bool last = stw_tracer_closed(x->tracer);
        a = post_body(x, body);
        uint64_t now = stw_now_ms(&stw_clock_system);
        uint64_t wait =
            stw_backoff_ms(x->config->endpoint, tries, BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
        wait = STW_MAX(wait, a.retry_after_ms);
        if (!may_retry(&a) || last || now + wait >= deadline)
            break;
        stw_tracer_pause(x->tracer, now + wait);
    }
    x->not_before_ms = stw_now_ms(&stw_clock_system) + a.retry_after_ms;
    end_batch(x, &a, spans);
}

static void export_list(struct stw_otlp *x, const struct stw_span_record *list)
{
    stw_autobuf struct stw_buf body = STW_BUF_INIT(BODY_MAX_BYTES);
    uint64_t spans = 0;
    for (const struct stw_span_record *r = list; r; r = r->next)
        spans++;
    bool late = stw_now_ms(&stw_clock_system) >= atomic_load(&x->stop_ms);
    if (!late)
        stw_otlp_encode(x->config, list, &body);
    if (late || body.failed)
        stw_tracer_count(x->tracer, STW_TRACE_UNREACHABLE, spans);
    else
        send_batch(x, &body, spans);
}

static void *run_exporter(void *ctx)
{
    struct stw_otlp *x = ctx;
    struct stw_span_record *list;
    while ((list = stw_tracer_take(x->tracer, STW_TRACE_BATCH_SPANS, x->config->delay_ms))) {
        export_list(x, list);
        stw_tracer_free(list);
    }
    return NULL;
}

/* --- start and stop */

static void free_exporter(struct stw_otlp *x)
{
    if (x->easy)
        curl_easy_cleanup(x->easy);
    for (struct curl_slist *line = x->headers; line; line = line->next)
        stw_wipe(line->data, strlen(line->data));
    curl_slist_free_all(x->headers);
    stw_buf_done(&x->answer);
    stw_tracer_destroy(x->tracer);
    free(x);
}

int stw_otlp_start(const struct stw_otlp_config *config, struct stw_metrics *metrics,
                   struct stw_otlp **ret, struct stw_error *err)
{
    struct stw_otlp *x = calloc(1, sizeof(*x));
    if (!x)
        return stw_fail_memory(err);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT); /* counted */
    x->config = config;
    x->answer = STW_BUF_INIT(ANSWER_MAX_BYTES);
    atomic_store(&x->stop_ms, UINT64_MAX);
    x->tracer = stw_tracer_create(&config->sampler, STW_TRACE_QUEUE_SPANS, metrics);
    x->easy = curl_easy_init();
    int r = x->tracer && x->easy ? 0 : stw_fail_memory(err);
    if (r == 0 && set_options(x) != 0)
        r = stw_fail(err, STW_ERR_INVALID, "libcurl does not take the settings of traces for %s",
                     config->name);
    if (r == 0)
        r = stw_thread_start(&x->thread, "traces", STACK_BYTES, run_exporter, x, err);
    if (r != 0) {
        free_exporter(x);
        return -1;
    }
    stw_tracer_install(x->tracer);
    *ret = x;
    return 0;
}

void stw_otlp_stop(struct stw_otlp *x, uint32_t flush_ms)
{
    if (!x)
        return;
    atomic_store(&x->stop_ms, stw_now_ms(&stw_clock_system) + flush_ms);
    stw_tracer_close(x->tracer);
    (void)pthread_join(x->thread, NULL);
    free_exporter(x);
}
