/* SPDX-License-Identifier: Apache-2.0
 *
 * One call as one libcurl transfer: options, callbacks, and the verdict on its result. */
#include "base/util.h"
#include "kube/client_priv.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#ifndef STW_VERSION
#define STW_VERSION "0"
#endif

#define CONNECT_TIMEOUT_MS 10000L
#define HEADER_MAX_BYTES (128u << 10)
#define RETRY_AFTER_DEFAULT_MS 1000
#define RETRY_AFTER_MAX_S 3600
/* A peer that acknowledges nothing for so long is gone (RFC 5482). */
#define UNANSWERED_MS 30000u

/* --- while it runs */

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    unsigned ms = UNANSWERED_MS;
    (void)ctx;
    if (purpose == CURLSOCKTYPE_IPCXN)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    return CURL_SOCKOPT_OK;
}

static void note_heard(struct stw_call *call)
{
    call->heard_ms = call->client->heard_ms = stw_now_ms(call->client->clock);
}

static long status_of(CURL *easy)
{
    long status = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* Once a transfer, when its headers are in, so that a watch counts while it lasts. */
static void count(struct stw_call *call, long status)
{
    struct stw_client *c = call->client;
    char code[16];
    if (call->counted)
        return;
    call->counted = true;
    (void)snprintf(code, sizeof(code), "%ld", status);
    stw_series_add(STW_SERIES(c->requests, status ? code : "<error>", call->req.method, c->host),
                   1);
    stw_series_observe(STW_SERIES(c->durations, call->req.method, c->host),
                       (double)(stw_now_ms(c->clock) - call->started_ms) / 1000.0);
}

static void note_date(struct stw_call *call, const char *data, size_t len)
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
    struct stw_call *call = ctx;
    note_heard(call);
    if (call->req.ret_date_us)
        note_date(call, data, size * n);
    if (size * n <= 2 && (data[0] == '\r' || data[0] == '\n')) {
        long status = status_of(call->easy);
        if (status >= 200)
            count(call, status);
        if (status == 200 && call->on_open)
            call->on_open(call);
    }
    return size * n;
}

static int on_line(void *ctx, const char *line, size_t len)
{
    struct stw_call *call = ctx;
    return call->on_line(call, line, len) != 0 ? 1 : 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    struct stw_call *call = ctx;
    size_t len = size * n;
    note_heard(call);
    if (!call->on_line || status_of(call->easy) != 200) {
        stw_buf_add(&call->body, data, len);
        if (!call->body.failed)
            return len;
        (void)stw_fail(&call->err, STW_ERR_TOO_LARGE, "the answer to %s %s is over %zu bytes",
                       call->req.method, call->req.path, call->body.max);
        return 0;
    }
    int r = stw_lines_feed(&call->lines, data, len, on_line, call);
    if (r < 0)
        (void)stw_fail(&call->err, STW_ERR_TOO_LARGE, "an event of the watch is over %u bytes",
                       STW_LINE_MAX_BYTES);
    else if (r > 0 && call->err.code == STW_OK)
        (void)stw_fail(&call->err, STW_ERR_CANCELLED, "the watch was ended");
    return r == 0 ? len : 0;
}

/* --- options */

static int add_header(struct stw_call *call, const char *name, const char *value)
{
    char line[512];
    (void)snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *more = curl_slist_append(call->headers, line);
    if (!more)
        return -1;
    call->headers = more;
    return 0;
}

static int add_auth(struct stw_client *c, struct stw_call *call)
{
    struct stw_buf text = STW_BUF_INIT(HEADER_MAX_BYTES);
    text.secret = true;
    stw_auth_header(&c->auth, &text);
    struct curl_slist *more =
        text.len > 0 ? curl_slist_append(call->headers, text.data) : call->headers;
    int r = text.failed || (text.len > 0 && !more) ? -1 : 0;
    if (more)
        call->headers = more;
    stw_buf_done(&text);
    return r;
}

static int set_headers(struct stw_client *c, struct stw_call *call)
{
    const struct stw_request *r = &call->req;
    int bad = add_header(call, "Accept", r->accept ? r->accept : "application/json");
    if (r->body) {
        bad |= add_header(call, "Content-Type",
                          r->content_type ? r->content_type : "application/json");
        bad |= add_header(call, "Expect", ""); /* no round trip for a 100 Continue */
    }
    if (c->connect_to)
        bad |= add_header(call, "Host", c->host);
    bad |= add_auth(c, call);
    (void)curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return bad;
}

static void free_headers(struct stw_call *call)
{
    for (struct curl_slist *h = call->headers; h; h = h->next)
        stw_wipe(h->data, strlen(h->data));
    curl_slist_free_all(call->headers);
    call->headers = NULL;
}

/* libcurl takes a copy of what a refresh may replace while a transfer goes on. */
static int set_blob(CURL *easy, CURLoption option, char *pem, const char *path)
{
    struct curl_blob blob = {
        .data = pem, .len = strlen(pem), .flags = path ? CURL_BLOB_COPY : CURL_BLOB_NOCOPY};
    return (int)curl_easy_setopt(easy, option, &blob);
}

static int set_tls(const struct stw_client *c, CURL *easy)
{
    const struct stw_kubeconfig *k = c->auth.config;
    int bad = (int)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (k->insecure) {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        bad |= (int)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    } else if (k->ca_pem) { /* that one alone: libcurl would go on trusting the machine's folder */
        bad |= (int)curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        bad |= (int)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        bad |= set_blob(easy, CURLOPT_CAINFO_BLOB, k->ca_pem, k->ca_path);
    }
    if (k->cert_pem && k->key_pem) {
        bad |= set_blob(easy, CURLOPT_SSLCERT_BLOB, k->cert_pem, k->cert_path);
        bad |= set_blob(easy, CURLOPT_SSLKEY_BLOB, k->key_pem, k->key_path);
    }
    return bad;
}

static int set_protocols(const struct stw_client *c, CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return (int)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, c->secure ? "https" : "http");
#else
    return (int)curl_easy_setopt(easy, CURLOPT_PROTOCOLS,
                                 (long)(c->secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP));
#endif
}

static int set_connection(struct stw_client *c, CURL *easy)
{
    int bad = set_protocols(c, easy);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    /* Only TLS can tell whether a connection multiplexes; without it nobody should wait for that.
     */
    bad |= (int)curl_easy_setopt(easy, CURLOPT_PIPEWAIT, c->secure ? 1L : 0L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 20L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (c->auth.config->proxy_url)
        bad |= (int)curl_easy_setopt(easy, CURLOPT_PROXY, c->auth.config->proxy_url);
    if (c->no_proxy)
        bad |= (int)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    if (c->connect_to)
        bad |= (int)curl_easy_setopt(easy, CURLOPT_CONNECT_TO, c->connect_to);
    return c->secure ? bad | set_tls(c, easy) : bad;
}

static int set_request(struct stw_client *c, struct stw_call *call)
{
    const struct stw_request *r = &call->req;
    char url[4096];
    int n = snprintf(url, sizeof(url), "%s%s", c->url, r->path);
    if (n < 0 || (size_t)n >= sizeof(url))
        return -1;
    int bad = (int)curl_easy_setopt(call->easy, CURLOPT_URL, url);
    bad |= (int)curl_easy_setopt(call->easy, CURLOPT_PATH_AS_IS, 1L);
    bad |= (int)curl_easy_setopt(call->easy, CURLOPT_USERAGENT, "steward/" STW_VERSION);
    if (r->body) {
        bad |=
            (int)curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
        bad |= (int)curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, r->body);
    }
    if (r->body || !stw_streq(r->method, "GET"))
        bad |= (int)curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, r->method);
    return bad;
}

static int set_callbacks(struct stw_client *c, struct stw_call *call)
{
    uint64_t now = stw_now_ms(c->clock);
    long left = call->deadline_ms > now ? (long)(call->deadline_ms - now) : 1;
    int bad = (int)curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
    bad |= (int)curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->curl_text);
    bad |= (int)curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, left);
    bad |= (int)curl_easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, on_header);
    bad |= (int)curl_easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
    bad |= (int)curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, on_body);
    bad |= (int)curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
    return bad;
}

/* --- begin and end */

int stw_transfer_begin(struct stw_client *c, struct stw_call *call)
{
    call->curl_text[0] = '\0';
    call->counted = false;
    if (call->body.max == 0)
        call->body = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    call->body.secret = call->body.secret || call->req.secret;
    stw_lines_init(&call->lines, STW_LINE_MAX_BYTES);
    call->easy = c->pooled > 0 ? c->pool[--c->pooled] : curl_easy_init();
    if (!call->easy)
        return stw_fail(&call->err, STW_ERR_INTERNAL, "out of memory");
    int bad = set_request(c, call);
    bad |= set_connection(c, call->easy);
    bad |= set_headers(c, call);
    bad |= set_callbacks(c, call);
    if (bad || curl_multi_add_handle(c->multi, call->easy) != CURLM_OK)
        return stw_fail(&call->err, STW_ERR_INVALID, "%s %s: libcurl does not take this request",
                        call->req.method, call->req.path);
    return 0;
}

void stw_transfer_end(struct stw_client *c, struct stw_call *call)
{
    if (call->easy) {
        (void)curl_multi_remove_handle(c->multi, call->easy);
        curl_easy_reset(call->easy);
        if (c->pooled < STW_EASY_POOL)
            c->pool[c->pooled++] = call->easy;
        else
            curl_easy_cleanup(call->easy);
        call->easy = NULL;
    }
    free_headers(call);
    stw_lines_done(&call->lines);
}

void stw_transfer_hang_up(struct stw_client *c, struct stw_call *call)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (!call->easy || c->heard_ms > call->started_ms + call->silence_ms / 2)
        return;
    if (curl_easy_getinfo(call->easy, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK &&
        fd != CURL_SOCKET_BAD)
        (void)shutdown(fd, SHUT_RDWR);
}

/* --- the verdict */

static bool in_time(struct stw_client *c, struct stw_call *call, uint64_t wait_ms)
{
    uint64_t at = stw_now_ms(c->clock) + wait_ms;
    if (at >= call->deadline_ms)
        return false;
    call->start_at_ms = at;
    return true;
}

/* 429, and 503 with a Retry-After, mean "nothing was done, come again". */
static bool retry_throttled(struct stw_client *c, struct stw_call *call, long status)
{
    curl_off_t seconds = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &seconds);
    seconds = STW_MIN(seconds, (curl_off_t)RETRY_AFTER_MAX_S);
    if (seconds > 0)
        call->err.retry_after_ms = (uint32_t)seconds * 1000;
    if (call->req.no_retry || !(status == 429 || (status == 503 && seconds > 0)))
        return false;
    return in_time(c, call, seconds > 0 ? (uint64_t)seconds * 1000 : RETRY_AFTER_DEFAULT_MS);
}

static bool retry_auth(struct stw_client *c, struct stw_call *call)
{
    const struct stw_kubeconfig *k = c->auth.config;
    if (call->retried_auth || (!k->token_path && !k->cert_path))
        return false;
    call->retried_auth = true;
    stw_auth_refresh(&c->auth, stw_now_ms(c->clock), true);
    return in_time(c, call, 0);
}

/* A kept connection may be closed by the server in the moment we use it.  What may be said twice is
 * then said once more; a POST is not, since its first saying may have been heard, nor a DELETE,
 * whose second saying would be answered with a 404. */
static bool retry_reset(struct stw_client *c, struct stw_call *call, CURLcode code)
{
    static const CURLcode cut[] = {CURLE_SEND_ERROR,   CURLE_RECV_ERROR, CURLE_GOT_NOTHING,
                                   CURLE_PARTIAL_FILE, CURLE_HTTP2,      CURLE_HTTP2_STREAM};
    static const char *const twice[] = {"GET", "PUT", "PATCH"};
    bool was_cut = false, may = false;
    long connects = 1;
    for (size_t i = 0; i < STW_COUNT(cut); i++)
        was_cut = was_cut || cut[i] == code;
    for (size_t i = 0; i < STW_COUNT(twice); i++)
        may = may || stw_streq(twice[i], call->req.method);
    (void)curl_easy_getinfo(call->easy, CURLINFO_NUM_CONNECTS, &connects);
    if (!was_cut || !may || connects > 0 || call->on_line || call->retried_reset)
        return false;
    call->retried_reset = true;
    return in_time(c, call, 0);
}

/* No byte came in all the time of a timed out request: its connection is not to be used again. */
static void suspect(struct stw_client *c, struct stw_call *call)
{
    if (c->heard_ms < call->started_ms)
        stw_transfer_hang_up(c, call);
}

bool stw_transfer_result(struct stw_client *c, struct stw_call *call, CURLcode code)
{
    long status = status_of(call->easy);
    count(call, code == CURLE_OK ? status : 0);
    if (call->err.code != STW_OK) /* a callback's: too large, or ended */
        return false;
    if (code != CURLE_OK) {
        stw_curl_error(code, c->auth.config->server, call->curl_text, call->easy, &call->err);
        if (code == CURLE_OPERATION_TIMEDOUT)
            suspect(c, call);
        return retry_reset(c, call, code);
    }
    if (status < 300)
        return false;
    stw_status_error((int)status, &call->body, &call->err);
    if (status == 401)
        return retry_auth(c, call);
    return retry_throttled(c, call, status);
}
