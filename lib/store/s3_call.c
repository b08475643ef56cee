/* SPDX-License-Identifier: Apache-2.0
 *
 * One request to S3, retried where that may help: 5xx, no connection, timeout.  The body's hash is
 * in a signed header, so that the server can compare it with the data that it received. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/hex.h"
#include "base/http_head.h"
#include "base/log.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "store/s3_priv.h"
#include "store/xml.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#define TRIES 4
#define PAUSE_MS 250 /* before the second try; multiplied by four before each further one */
#define CONNECT_TIMEOUT_MS 10000
#define STAND_STILL_S 30
#define STAND_STILL_BYTES 1024
#define LAST_WISH_MS 5000
#define ERROR_MAX_BYTES (64u << 10)
#define ANSWER_MAX_BYTES (64u << 10) /* of requests that list nothing */
#define URL_MAX 8192
#define S3_DATE_LEN 17

/* A try. */
struct s3_transfer {
    struct s3 *s;
    struct s3_call *call;
    size_t sent;
    bool refused;   /* the operator does not allow this address */
    bool delivered; /* the sink got data: no retry */
    bool too_large; /* the head or the trailers are */
    struct stw_http_head head;
    struct stw_buf error;
    struct stw_error sink_err;
    char curl_text[CURL_ERROR_SIZE];
};

/* Why a request was not sent, or was aborted: also when the right to write has ended. */
static int fail_when_stopped(struct s3 *s, enum stw_store_trouble *trouble, struct stw_error *err)
{
    if (stw_store_check(&s->store, trouble, err) != 0)
        return -1;
    *trouble = STW_STORE_FAILED;
    return stw_fail(err, STW_ERR_CANCELLED, "stopped");
}

static int fail_by_curl(struct s3_transfer *t, CURLcode rc, enum stw_store_trouble *trouble,
                        struct stw_error *err)
{
    enum stw_store_trouble what = STW_STORE_CONNECT;
    if (rc == CURLE_ABORTED_BY_CALLBACK)
        return fail_when_stopped(t->s, trouble, err);
    if (t->refused && rc == CURLE_COULDNT_CONNECT)
        return stw_store_fail(trouble, STW_STORE_NOT_ALLOWED, err,
                              "the endpoint of bucket \"%s\" has an address that steward does not "
                              "connect to for users (--store-endpoints)",
                              t->s->bucket);
    if (rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CONNECT_ERROR ||
        rc == CURLE_SSL_CACERT_BADFILE)
        what = STW_STORE_TLS;
    bool whole = *t->curl_text && !t->s->reach; /* it can contain parts of a certificate */
    if (!whole)
        stw_log(STW_LOG_DEBUG, "the store cannot be reached", STW_STR("bucket", t->s->bucket),
                STW_STR("detail", t->curl_text));
    return stw_store_fail(trouble, what, err, "%s of bucket \"%s\": %s", t->call->method,
                          t->s->bucket, whole ? t->curl_text : curl_easy_strerror(rc));
}

/* --- libcurl's callbacks */

static size_t on_body(char *data, size_t one, size_t len, void *ctx)
{
    struct s3_transfer *t = ctx;
    struct s3_call *c = t->call;
    long status = 0;
    len *= one;
    (void)curl_easy_getinfo(t->s->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status > 299) {
        stw_buf_add(&t->error, data, STW_MIN(len, (size_t)ERROR_MAX_BYTES - t->error.len));
        return len;
    }
    if (!c->sink) {
        stw_buf_add(&c->answer, data, len);
        c->no_room = !stw_kept_set(&c->kept, c->answer.cap);
        return c->answer.failed || c->no_room ? 0 : len;
    }
    t->delivered = true;
    c->sink_refused = c->sink(c->sink_ctx, data, len, &t->sink_err) != 0;
    return c->sink_refused ? 0 : len;
}

/* Copies the value if the line is of this header and the value fits. */
static void take_header(const char *line, size_t len, const char *name, char *out, size_t size)
{
    size_t from = strlen(name), to = len;
    if (len < from || strncasecmp(line, name, from) != 0)
        return;
    while (from < to && line[from] == ' ')
        from++;
    while (to > from && (unsigned char)line[to - 1] <= ' ')
        to--;
    if (to - from >= size)
        return;
    memcpy(out, line + from, to - from);
    out[to - from] = '\0';
}

static size_t on_header(char *data, size_t one, size_t len, void *ctx)
{
    struct s3_transfer *t = ctx;
    struct s3_call *c = t->call;
    len *= one;
    t->too_large = t->too_large || !stw_http_head_take(&t->head, len);
    if (t->too_large)
        return 0;
    take_header(data, len, "etag:", c->etag, sizeof(c->etag));
    take_header(data, len, "x-amz-bucket-region:", c->region, sizeof(c->region));
    return len;
}

static size_t on_read(char *to, size_t one, size_t room, void *ctx)
{
    struct s3_transfer *t = ctx;
    size_t n = STW_MIN(room * one, t->call->body_len - t->sent);
    if (n > 0)
        memcpy(to, (const char *)t->call->body + t->sent, n);
    t->sent += n;
    return n;
}

static int on_seek(void *ctx, curl_off_t to, int origin)
{
    struct s3_transfer *t = ctx;
    if (origin != SEEK_SET || to < 0 || (uint64_t)to > t->call->body_len)
        return CURL_SEEKFUNC_CANTSEEK;
    t->sent = (size_t)to;
    return CURL_SEEKFUNC_OK;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct s3_transfer *t = ctx;
    enum stw_store_trouble trouble;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return !t->call->last_desired &&
           (stw_store_check(&t->s->store, &trouble, NULL) != 0 || !stw_fence_may_write());
}

/* Checks the address right before the connect; the name may have resolved to others before. */
static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct s3_transfer *t = ctx;
    (void)purpose;
    if (!t->s->trusted && !stw_reach_address(t->s->reach, &a->addr)) {
        t->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* --- setting up a try */

static void add_header(struct curl_slist **list, bool *failed, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void add_header(struct curl_slist **list, bool *failed, const char *fmt, ...)
{
    stw_autobuf struct stw_buf line = {.max = 8192, .secret = true};
    va_list ap;
    va_start(ap, fmt);
    stw_buf_vaddf(&line, fmt, ap);
    va_end(ap);
    struct curl_slist *longer = line.failed ? NULL : curl_slist_append(*list, stw_buf_str(&line));
    *failed = *failed || !longer;
    *list = longer ? longer : *list;
}

static void add_signature(const struct s3 *s, const struct s3_to_sign *r, struct curl_slist **list,
                          bool *failed)
{
    struct stw_buf line = {.max = 4096, .secret = true};
    struct s3_url u = s3_url_parts(r->url);
    if (s3_sign(s, r, &line) != 0)
        *failed = true;
    add_header(list, failed, "Host: %.*s", (int)u.host_len, u.host); /* as it was signed */
    add_header(list, failed, "x-amz-date: %s", r->date);
    add_header(list, failed, "%s", stw_buf_str(&line));
    stw_buf_done(&line);
}

static void date_now(char out[S3_DATE_LEN])
{
    time_t now = (time_t)(stw_wall_us(&stw_clock_system) / 1000000);
    struct tm tm;
    (void)strftime(out, S3_DATE_LEN, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
}

/* "" if this library computes no MD5, as in a FIPS mode: the store then refuses the request. */
static void make_md5(const struct s3_call *c, struct stw_buf *out)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (EVP_Digest(c->body_len > 0 ? c->body : "", c->body_len, sum, &len, EVP_md5(), NULL) == 1)
        stw_base64_encode(sum, len, out);
}

/* NULL: out of memory. */
static struct curl_slist *make_headers(const struct s3 *s, const struct s3_call *c, const char *url)
{
    struct curl_slist *list = NULL;
    stw_autobuf struct stw_buf md5 = STW_BUF_INIT(64);
    char hex[S3_HASH_HEX], date[S3_DATE_LEN];
    bool failed = false;
    s3_hash_hex(c->body, c->body_len, hex);
    date_now(date);
    if (s->with_md5 && stw_streq(c->method, "PUT"))
        make_md5(c, &md5);
    const struct s3_to_sign r = {.method = c->method,
                                 .url = url,
                                 .md5 = md5.len > 0 ? stw_buf_str(&md5) : NULL,
                                 .body_hash = hex,
                                 .date = date,
                                 .with_sse = c->with_sse};
    add_header(&list, &failed, "x-amz-content-sha256: %s", hex);
    if (r.md5)
        add_header(&list, &failed, "Content-MD5: %s", r.md5);
    if (s->access_key)
        add_signature(s, &r, &list, &failed);
    if (s->token_header)
        add_header(&list, &failed, "%s", s->token_header);
    if (s->sse_header && c->with_sse)
        add_header(&list, &failed, "%s", s->sse_header);
    if (c->content_type)
        add_header(&list, &failed, "Content-Type: %s", c->content_type);
    if (!failed)
        return list;
    curl_slist_free_all(list);
    return NULL;
}

static void set_method(CURL *h, struct s3_transfer *t)
{
    const struct s3_call *c = t->call;
    if (stw_streq(c->method, "PUT")) {
        curl_easy_setopt(h, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)c->body_len);
        curl_easy_setopt(h, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(h, CURLOPT_READDATA, t);
        curl_easy_setopt(h, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(h, CURLOPT_SEEKDATA, t);
    } else if (stw_streq(c->method, "POST")) {
        curl_easy_setopt(h, CURLOPT_POST, 1L);
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_len);
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, c->body_len > 0 ? c->body : "");
    } else if (!stw_streq(c->method, "GET")) {
        curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, c->method);
    }
}

static void set_limits(CURL *h, const struct s3 *s, const struct s3_call *c)
{
    long total = c->last_desired ? LAST_WISH_MS : (long)s->timeout_ms;
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, STW_MIN(total, (long)CONNECT_TIMEOUT_MS));
    if (!c->moves_data) {
        curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, total);
        return;
    }
    long still_s = STW_MAX(1L, STW_MIN((long)STAND_STILL_S, total / 1000));
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, (long)STAND_STILL_BYTES);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, still_s);
}

static void set_trust(CURL *h, const struct s3 *s)
{
    if (s->ca) { /* only this CA: by default libcurl also trusts the system's folder of CAs */
        curl_easy_setopt(h, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
        struct curl_blob blob = {.data = s->ca, .len = strlen(s->ca), .flags = CURL_BLOB_NOCOPY};
        curl_easy_setopt(h, CURLOPT_CAINFO_BLOB, &blob);
    }
}

static void set_up(struct s3_transfer *t, const char *url, struct curl_slist *headers)
{
    CURL *h = t->s->easy;
    curl_easy_reset(h);
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, t->curl_text);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(h, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(h, CURLOPT_OPENSOCKETDATA, t);
    if (!t->s->trusted) /* a proxy would resolve the name itself, unchecked */
        curl_easy_setopt(h, CURLOPT_NOPROXY, "*");
    set_method(h, t);
    set_limits(h, t->s, t->call);
    set_trust(h, t->s);
}

/* --- tries */

static int check_try_result(struct s3_transfer *t, CURLcode rc, enum stw_store_trouble *trouble,
                            struct stw_error *err)
{
    struct s3_call *c = t->call;
    long status = 0;
    (void)curl_easy_getinfo(t->s->easy, CURLINFO_RESPONSE_CODE, &status);
    if (c->sink_refused) {
        if (err)
            *err = t->sink_err;
        return -1;
    }
    if (t->too_large)
        return stw_store_fail(trouble, STW_STORE_FAILED, err, STW_HTTP_HEAD_TOO_LARGE);
    if (c->answer.failed)
        return stw_store_fail(trouble, STW_STORE_FAILED, err, "the store's answer is too long");
    if (c->no_room)
        return stw_store_fail(trouble, STW_STORE_CONNECT, err,
                              "there is no memory for the store's answer now");
    if (status >= 300 && rc != CURLE_ABORTED_BY_CALLBACK) /* even if it cut the upload short */
        return s3_fail_by_answer(t->s, c, status, &t->error, trouble, err);
    return rc == CURLE_OK ? 0 : fail_by_curl(t, rc, trouble, err);
}

static int try_once(struct s3 *s, struct s3_call *c, const char *url, bool *ret_again,
                    enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct s3_transfer t = {.s = s, .call = c, .error = STW_BUF_INIT(ERROR_MAX_BYTES)};
    struct curl_slist *headers = make_headers(s, c, url);
    if (!headers)
        return stw_store_fail_memory(trouble, err);
    stw_buf_clear(&c->answer);
    c->etag[0] = c->code[0] = c->region[0] = '\0';
    c->no_room = c->asks_checksum = false;
    *trouble = STW_STORE_FINE;
    set_up(&t, url, headers);
    int rc = check_try_result(&t, curl_easy_perform(s->easy), trouble, err);
    stw_fault_point("store");
    *ret_again = rc != 0 && *trouble == STW_STORE_CONNECT && !t.delivered;
    stw_buf_done(&t.error);
    curl_slist_free_all(headers);
    return rc;
}

/* Appends the query, which is already sorted, unchanged.  The bucket's own URL ends in a slash. */
static int make_url(const struct s3 *s, const struct s3_call *c, struct stw_buf *url)
{
    stw_buf_adds(url, s->base);
    stw_buf_addc(url, '/');
    if (c->key)
        stw_url_escape_path(c->key, url);
    if (c->query)
        stw_buf_addf(url, "?%s", c->query);
    return url->failed ? -1 : 0;
}

/* What the last try found is a better error than that there is no time for another one. */
static bool is_last_try(const struct s3 *s, const struct s3_call *c, unsigned tries,
                        uint32_t pause_ms)
{
    return c->last_desired ? tries == 2
                           : tries == TRIES || !stw_store_has_time(&s->store, pause_ms);
}

static int try_until_done(struct s3 *s, struct s3_call *c, const char *url,
                          enum stw_store_trouble *trouble, struct stw_error *err)
{
    uint32_t pause_ms = PAUSE_MS;
    bool again = false;
    for (unsigned tries = 1;; tries++, pause_ms *= 4) {
        /* Aborting our own upload is always allowed: only we know its ID. */
        if (!c->last_desired && stw_store_check(&s->store, trouble, err) != 0)
            return -1;
        if (!c->last_desired && stw_fence_check(err) != 0) {
            *trouble = STW_STORE_FAILED;
            return -1;
        }
        int rc = try_once(s, c, url, &again, trouble, err);
        if (rc == 0 || !again || is_last_try(s, c, tries, pause_ms))
            return rc;
        if (!c->last_desired)
            stw_store_pause(&s->store, pause_ms);
    }
}

/* A bucket with Object Lock takes data only with a checksum in a header, beside the hash that is
 * signed.  Some stores refuse such a header, so it is sent only to one that asked for it.  If that
 * does not help, the first error is the better one. */
static int try_with_checksum(struct s3 *s, struct s3_call *c, const char *url,
                             enum stw_store_trouble *trouble, struct stw_error *err)
{
    enum stw_store_trouble second = STW_STORE_FINE;
    struct stw_error why = {0};
    s->with_md5 = true;
    if (try_until_done(s, c, url, &second, &why) == 0) {
        *trouble = STW_STORE_FINE;
        if (err)
            *err = (struct stw_error){0};
        return 0;
    }
    s->with_md5 = false;
    if (second == STW_STORE_FAILED && why.http != 0)
        return -1;
    *trouble = second;
    if (err)
        *err = why;
    return -1;
}

int s3_do(struct s3 *s, struct s3_call *c, enum stw_store_trouble *trouble, struct stw_error *err)
{
    stw_autobuf struct stw_buf url = STW_BUF_INIT(URL_MAX);
    c->answer.max = c->lists ? STW_XML_BYTES_MAX : ANSWER_MAX_BYTES;
    if (make_url(s, c, &url) != 0)
        return stw_store_fail(trouble, STW_STORE_FAILED, err, "the key is too long");
    int rc = try_until_done(s, c, stw_buf_str(&url), trouble, err);
    if (rc != 0 && c->asks_checksum && !s->with_md5 && stw_streq(c->method, "PUT"))
        rc = try_with_checksum(s, c, stw_buf_str(&url), trouble, err);
    return rc;
}

void s3_call_done(struct s3_call *c)
{
    stw_buf_done(&c->answer);
    stw_kept_done(&c->kept);
}
