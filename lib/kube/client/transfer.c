/* SPDX-License-Identifier: Apache-2.0
 *
 * One call as one libcurl transfer: its options, its callbacks, and its result. */
#include "base/backoff.h"
#include "base/log.h"
#include "base/process/memory_budget.h"
#include "base/thread.h"
#include "base/util.h"
#include "kube/api/answers_priv.h"
#include "kube/client/client_priv.h"

#include <stdio.h>
#include <strings.h>

#define HEADER_MAX_BYTES (128u << 10)
#define RETRY_AFTER_DEFAULT_MS 1000
#define PAUSE_LOG_MS 10000

/* --- during the transfer */

static void note_heard(struct stw_http_call *call)
{
    call->heard = true;
    call->heard_ms = stw_now_ms(call->client->clock);
}

static long status_of(const struct stw_http_call *call)
{
    long status = 0;
    (void)curl_easy_getinfo(call->handle->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* The series of a method and a status; called with the lock held. */
static struct stw_client_tally *admission_metrics_of(struct stw_client *c, const char *method,
                                                     long status)
{
    char code[16];
    for (unsigned i = 0; i < c->count_admission; i++)
        if (c->tallies[i].status == status && stw_streq(c->tallies[i].method, method))
            return &c->tallies[i];
    struct stw_client_tally *t = &c->tallies[c->count_admission % STW_TALLIES];
    stw_format(code, sizeof(code), "%ld", status);
    stw_format(t->method, sizeof(t->method), "%s", method);
    t->status = status;
    t->requests = STW_SERIES(c->requests, status ? code : "<error>", method, c->host);
    t->durations = STW_SERIES(c->durations, method, c->host);
    c->count_admission += c->count_admission < STW_TALLIES;
    return t;
}

/* Counts a transfer once, when its headers have arrived, so that a watch is counted while it is
 * open. */
static void count_transfer(struct stw_http_call *call, long status)
{
    struct stw_client *c = call->client;
    if (call->counted)
        return;
    call->counted = true;
    double seconds = (double)(stw_now_ms(c->clock) - call->started_ms) / 1000.0;
    pthread_mutex_lock(&c->lock);
    const struct stw_client_tally t = *admission_metrics_of(c, call->req.method, status);
    pthread_mutex_unlock(&c->lock);
    stw_series_add(t.requests, 1);
    stw_series_observe(t.durations, seconds);
}

static void note_date(struct stw_http_call *call, const char *data, size_t len)
{
    char text[64];
    if (len >= sizeof(text) || len < 6 || strncasecmp(data, "date: ", 6) != 0)
        return;
    memcpy(text, data, len);
    text[len] = '\0';
    time_t date = curl_getdate(text + 6, NULL);
    if (date > 0)
        *call->req.ret_date_us = (int64_t)date * 1000000;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct stw_http_call *call = ctx;
    if (!stw_http_head_take(&call->head, size * n)) {
        (void)stw_fail(&call->err, STW_ERR_UNAVAILABLE, "%s: " STW_HTTP_HEAD_TOO_LARGE,
                       call->client->server);
        return 0;
    }
    if (call->req.ret_date_us)
        note_date(call, data, size * n);
    if (size * n > 2 || (data[0] != '\r' && data[0] != '\n'))
        return size * n;
    long status = status_of(call);
    note_heard(call);
    atomic_store(&call->client->answered, true);
    if (status >= 200)
        count_transfer(call, status);
    if (status == 200 && call->on_open)
        call->on_open(call);
    return size * n;
}

static int fail_too_large(struct stw_http_call *call, size_t max)
{
    return stw_fail(&call->err, STW_ERR_TOO_LARGE, "the answer to %s %s is over %zu bytes",
                    call->req.method, call->req.path, max);
}

static int fail_memory_now(struct stw_http_call *call, size_t bytes)
{
    size_t most = stw_answer_most();
    if (bytes <= most)
        return stw_fail(&call->err, STW_ERR_UNAVAILABLE,
                        "there is no memory now for the answer to %s %s, which takes %zu bytes or "
                        "more",
                        call->req.method, call->req.path, bytes);
    return stw_fail(&call->err, STW_ERR_TOO_LARGE,
                    "the answer to %s %s takes %zu bytes of memory or more, and all answers "
                    "together may take %zu",
                    call->req.method, call->req.path, bytes, most);
}

/* Counts the text of an answer whose end has not arrived. */
static int hold_body(struct stw_http_call *call)
{
    size_t bytes = call->body.cap;
    if (stw_answer_hold(&call->held, bytes))
        return 0;
    stw_buf_done(&call->body);
    return fail_memory_now(call, bytes);
}

/* The answer is complete: counts its values, too. */
static bool hold_values(struct stw_http_call *call, size_t *ret_bytes)
{
    *ret_bytes = stw_answer_memory(&call->body);
    return stw_answer_hold(&call->held, *ret_bytes);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    struct stw_http_call *call = ctx;
    size_t len = size * n;
    note_heard(call);
    if (call->on_body && status_of(call) == 200) {
        int r = call->on_body(call, data, len);
        call->paused = r == STW_BODY_LATER;
        if (call->paused)
            return CURL_WRITEFUNC_PAUSE;
        if (r != 0 && call->err.code == STW_OK)
            (void)stw_fail(&call->err, STW_ERR_CANCELLED, "the request was ended");
        return r == 0 ? len : 0;
    }
    stw_buf_add(&call->body, data, len);
    int r = call->body.failed ? fail_too_large(call, call->body.max) : hold_body(call);
    return r == 0 ? len : 0;
}

/* --- options */

static int add_line(struct stw_handle *h, const char *line)
{
    struct curl_slist *more = curl_slist_append(h->headers, line);
    if (!more)
        return -1;
    h->headers = more;
    return 0;
}

static int add_header(struct stw_handle *h, const char *name, const char *value)
{
    char line[512];
    stw_format(line, sizeof(line), "%s: %s", name, value);
    return add_line(h, line);
}

static int add_traceparent(struct stw_handle *h, const struct stw_trace_context *trace)
{
    char value[STW_TRACEPARENT_LEN];
    stw_traceparent_format(trace, value);
    return add_header(h, "traceparent", value);
}

/* Called with auth_lock held. */
static int add_impersonation(struct stw_client *c, struct stw_handle *h)
{
    const char *text = c->auth.config->impersonation;
    stw_autofree char *lines = text ? strdup(text) : NULL;
    char *rest = NULL;
    if (text && !lines)
        return -1;
    for (char *line = lines ? strtok_r(lines, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        if (add_line(h, line) != 0)
            return -1;
    return 0;
}

/* Called with auth_lock held. */
static int add_auth(struct stw_client *c, struct stw_handle *h)
{
    struct stw_buf text = STW_BUF_INIT(HEADER_MAX_BYTES);
    text.secret = true;
    stw_auth_header(&c->auth, &text);
    struct curl_slist *more = text.len > 0 ? curl_slist_append(h->headers, text.data) : h->headers;
    int r = text.failed || (text.len > 0 && !more) ? -1 : 0;
    if (more)
        h->headers = more;
    stw_buf_done(&text);
    return r;
}

/* libcurl copies a PEM that a refresh may replace during a transfer. */
static int set_blob(CURL *easy, CURLoption option, char *pem, bool stays)
{
    struct curl_blob blob = {
        .data = pem, .len = strlen(pem), .flags = stays ? CURL_BLOB_NOCOPY : CURL_BLOB_COPY};
    return (int)curl_easy_setopt(easy, option, &blob);
}

/* Only this CA: libcurl would still trust the system's.  Called with auth_lock held. */
static int set_ca(struct stw_client *c, struct stw_handle *h)
{
    const struct stw_kubeconfig *k = c->auth.config;
    int bad = (int)curl_easy_setopt(h->easy, CURLOPT_CAINFO, NULL);
    if (stw_trust_share(c, h))
        return bad;
    stw_trust_drop(h);
    bad |= (int)curl_easy_setopt(h->easy, CURLOPT_CAPATH, NULL);
    return bad | set_blob(h->easy, CURLOPT_CAINFO_BLOB, k->ca_pem, !k->ca_path);
}

/* Called with auth_lock held.  libcurl does not reuse a connection that was made with other
 * credentials: it compares them. */
static int set_credentials(struct stw_client *c, struct stw_handle *h)
{
    const struct stw_kubeconfig *k = c->auth.config;
    int bad = 0;
    if (!c->secure || (h->trusts && h->generation == c->auth.generation))
        return 0;
    if (k->insecure) {
        bad |= (int)curl_easy_setopt(h->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        bad |= (int)curl_easy_setopt(h->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    } else if (k->ca_pem) {
        bad |= set_ca(c, h);
    }
    if (k->cert_pem && k->key_pem) {
        bool stays = !k->cert_path && !k->exec;
        bad |= set_blob(h->easy, CURLOPT_SSLCERT_BLOB, k->cert_pem, stays);
        bad |= set_blob(h->easy, CURLOPT_SSLKEY_BLOB, k->key_pem, stays);
    }
    h->trusts = true;
    h->generation = c->auth.generation;
    return bad;
}

static int set_headers(struct stw_client *c, struct stw_http_call *call)
{
    const struct stw_request *r = &call->req;
    struct stw_handle *h = call->handle;
    int bad = add_header(h, "Accept", r->accept ? r->accept : "application/json");
    if (r->body) {
        bad |=
            add_header(h, "Content-Type", r->content_type ? r->content_type : "application/json");
        bad |= add_header(h, "Expect", ""); /* no round trip for a 100 Continue */
    }
    if (c->connect_to)
        bad |= add_header(h, "Host", c->host);
    if (r->header)
        bad |= add_line(h, r->header);
    if (call->trace)
        bad |= add_traceparent(h, call->trace);
    pthread_mutex_lock(&c->auth_lock);
    stw_auth_refresh(&c->auth, stw_now_ms(c->clock), false);
    bad |= add_auth(c, h);
    bad |= add_impersonation(c, h);
    bad |= set_credentials(c, h);
    pthread_mutex_unlock(&c->auth_lock);
    return bad | (int)curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers);
}

static _Thread_local const char *part;

void stw_client_set_part(const char *name)
{
    part = name;
}

static int set_agent(const struct stw_client *c, CURL *easy)
{
    char agent[STW_USER_AGENT_LEN + STW_OPERATOR_NAME_MAX + 4];
    stw_format(agent, sizeof(agent), "%s%s%s%s", c->user_agent, part ? " (" : "", part ? part : "",
               part ? ")" : "");
    return (int)curl_easy_setopt(easy, CURLOPT_USERAGENT, agent);
}

static int set_request(struct stw_client *c, struct stw_http_call *call)
{
    const struct stw_request *r = &call->req;
    CURL *easy = call->handle->easy;
    bool plain = !r->body && stw_streq(r->method, "GET");
    char url[4096];
    int n = snprintf(url, sizeof(url), "%s%s", c->url, r->path);
    if (n < 0 || (size_t)n >= sizeof(url))
        return -1;
    int bad = (int)curl_easy_setopt(easy, CURLOPT_URL, url);
    if (r->body) {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
        bad |= (int)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, r->body);
    } else {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    bad |= set_agent(c, easy);
    return bad | (int)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, plain ? NULL : r->method);
}

static int set_callbacks(struct stw_client *c, struct stw_http_call *call)
{
    CURL *easy = call->handle->easy;
    uint64_t now = stw_now_ms(c->clock);
    long left = call->deadline_ms > now ? (long)(call->deadline_ms - now) : 1;
    int bad = (int)curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_text);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, left);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    return bad;
}

/* --- begin and end */

int stw_transfer_prepare(struct stw_client *c, struct stw_http_call *call)
{
    /* Every request passes here: the last guard of shadow mode. */
    if (c->shadow && !stw_streq(call->req.method, "GET"))
        return stw_fail(&call->err, STW_ERR_INTERNAL, "shadow mode does not send %s %s",
                        call->req.method, call->req.path);
    call->client = c;
    call->started_ms = call->heard_ms = stw_now_ms(c->clock);
    call->heard = call->counted = call->paused = false;
    call->head = (struct stw_http_head){0};
    call->curl_text[0] = '\0';
    if (call->body.max == 0)
        call->body = STW_BUF_INIT(c->response_max);
    call->body.secret = call->body.secret || call->req.secret;
    int bad = set_request(c, call);
    bad |= set_headers(c, call);
    bad |= set_callbacks(c, call);
    if (bad)
        return stw_fail(&call->err, STW_ERR_INVALID, "%s %s: libcurl does not take this request",
                        call->req.method, call->req.path);
    return 0;
}

void stw_transfer_clear(struct stw_http_call *call)
{
    struct stw_handle *h = call->handle;
    stw_answer_let_go(&call->held);
    (void)curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, NULL);
    (void)curl_easy_setopt(h->easy, CURLOPT_ERRORBUFFER, NULL);
    for (struct curl_slist *line = h->headers; line; line = line->next)
        stw_wipe(line->data, strlen(line->data));
    curl_slist_free_all(h->headers);
    h->headers = NULL;
}

/* --- results */

static bool in_time(struct stw_client *c, struct stw_http_call *call, uint64_t wait_ms)
{
    uint64_t at = stw_now_ms(c->clock) + wait_ms;
    if (at >= call->deadline_ms)
        return false;
    call->start_at_ms = at;
    return true;
}

/* Lists, watches and the Lease are few: each pause of them is logged.  Of other requests, one in
 * PAUSE_LOG_MS. */
static bool may_log_pause(struct stw_client *c, const struct stw_http_call *call)
{
    uint64_t now = stw_now_ms(c->clock);
    if (call->req.no_retry)
        return true;
    STW_LOCKED(&c->lock);
    if (c->pause_logged_ms != 0 && now < c->pause_logged_ms + PAUSE_LOG_MS)
        return false;
    c->pause_logged_ms = now;
    return true;
}

static void log_pause(struct stw_client *c, const struct stw_http_call *call, long status,
                      int64_t asked_s)
{
    char path[256];
    int64_t wait_ms = call->err.retry_after_ms;
    enum stw_log_level level = asked_s > wait_ms / 1000 ? STW_LOG_WARN : STW_LOG_INFO;
    if (!stw_log_on(level) || !may_log_pause(c, call))
        return;
    stw_client_path_template(call->req.path, path, sizeof(path));
    stw_log(level, "the API server asks for a pause", STW_STR("method", call->req.method),
            STW_STR("path", path), STW_INT("status", status), STW_INT("askedSeconds", asked_s),
            STW_SECONDS("waitSeconds", wait_ms * 1000));
}

/* Sets what the server asks for, at most STW_RETRY_AFTER_MAX_MS: the header counts, else
 * details.retryAfterSeconds of the Status.  Returns whether the header asks for a wait; one that is
 * no number, or a date that has passed, does not. */
static bool read_retry_after(struct stw_client *c, struct stw_http_call *call, long status)
{
    curl_off_t seconds = 0;
    (void)curl_easy_getinfo(call->handle->easy, CURLINFO_RETRY_AFTER, &seconds);
    bool has_header = seconds > 0;
    if (has_header)
        call->err.retry_after_ms =
            (uint32_t)STW_MIN(seconds, (curl_off_t)STW_RETRY_AFTER_MAX_MS / 1000) * 1000;
    else
        seconds = call->err.retry_after_ms / 1000;
    if (call->err.retry_after_ms > 0)
        log_pause(c, call, status, seconds);
    return has_header;
}

/* 429, and 503 with Retry-After, mean that nothing was done and the request may be repeated. */
static bool retry_throttled(struct stw_client *c, struct stw_http_call *call, long status)
{
    bool has_header = read_retry_after(c, call, status);
    uint32_t asked_ms = call->err.retry_after_ms;
    if (call->req.no_retry || !(status == 429 || (status == 503 && has_header)))
        return false;
    return in_time(c, call, asked_ms > 0 ? asked_ms : RETRY_AFTER_DEFAULT_MS);
}

static bool retry_auth(struct stw_client *c, struct stw_http_call *call)
{
    if (call->retried_auth)
        return false;
    call->retried_auth = true;
    pthread_mutex_lock(&c->auth_lock);
    bool replaceable = stw_auth_replaceable(&c->auth);
    if (replaceable)
        stw_auth_refresh(&c->auth, stw_now_ms(c->clock), true);
    pthread_mutex_unlock(&c->auth_lock);
    return replaceable && in_time(c, call, 0);
}

/* The server may close a persistent connection at the moment when it is used.  Idempotent requests
 * are then retried once.  POST is not: the first attempt may have been processed.  Nor is DELETE:
 * the second attempt would get a 404. */
static bool retry_reset(struct stw_client *c, struct stw_http_call *call, CURLcode code)
{
    static const CURLcode cut[] = {CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING,
                                   CURLE_PARTIAL_FILE};
    static const char *const idempotent[] = {"GET", "PUT", "PATCH"};
    bool was_cut = false, may = false;
    long connects = 1;
    for (size_t i = 0; i < STW_COUNT(cut); i++)
        was_cut = was_cut || cut[i] == code;
    for (size_t i = 0; i < STW_COUNT(idempotent); i++)
        may = may || stw_streq(idempotent[i], call->req.method);
    (void)curl_easy_getinfo(call->handle->easy, CURLINFO_NUM_CONNECTS, &connects);
    if (!was_cut || !may || connects > 0 || call->on_body || call->retried_reset)
        return false;
    call->retried_reset = true;
    return in_time(c, call, 0);
}

bool stw_transfer_result(struct stw_client *c, struct stw_http_call *call, CURLcode code)
{
    long status = status_of(call);
    call->status = code == CURLE_OK ? status : 0;
    count_transfer(call, call->status);
    if (call->err.code != STW_OK) /* set by a callback: too large, or ended */
        return false;
    if (code != CURLE_OK) {
        stw_curl_error(code, c->server, call->curl_text, call->handle->easy, &call->err);
        return retry_reset(c, call, code);
    }
    size_t bytes;
    bool held = hold_values(call, &bytes);
    if (status < 300) {
        if (!held)
            (void)fail_memory_now(call, bytes);
        else if (call->given)
            stw_answer_keep(&call->held);
        return false;
    }
    if (!held) /* then without the server's message */
        stw_buf_done(&call->body);
    stw_status_error((int)status, &call->body, &call->err);
    if (status == 401)
        return retry_auth(c, call);
    return retry_throttled(c, call, status);
}
