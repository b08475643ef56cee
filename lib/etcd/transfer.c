/* SPDX-License-Identifier: Apache-2.0
 *
 * One request as one libcurl transfer: options, callbacks, and the verdict on its result. */
#include "base/clock.h"
#include "base/util.h"
#include "etcd/etcd_priv.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <sys/socket.h>

/* --- while it runs */

static long status_of(CURL *easy)
{
    long status = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    struct stw_etcd_exchange *x = ctx;
    size_t len = size * n;
    if (x->data && x->phase == STW_ETCD_ASKING && status_of(x->easy) == 200) {
        int r = x->data(x, data, len);
        x->heard_ms = stw_now_ms(&stw_clock_system); /* the sink's time does not count */
        return r == 0 ? len : 0;
    }
    stw_buf_add(&x->answer, data, len);
    if (!x->answer.failed)
        return len;
    (void)stw_etcd_refuse(x, STW_ETCD_FAILED, STW_ERR_TOO_LARGE,
                          "%s: the answer to %s is over %zu bytes", x->at->url, x->path,
                          x->answer.max);
    return 0;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct stw_etcd_exchange *x = ctx;
    (void)data;
    if (stw_http_head_take(&x->head, size * n))
        return size * n;
    (void)stw_etcd_refuse(x, STW_ETCD_FAILED, STW_ERR_TOO_LARGE, "%s: " STW_HTTP_HEAD_TOO_LARGE,
                          x->at->url);
    return 0;
}

/* Checks the address right before the connect; the name may have resolved to others before. */
static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct stw_etcd_exchange *x = ctx;
    (void)purpose;
    if (!stw_reach_address(x->reach, &a->addr)) {
        x->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* --- options */

static int add_header(struct stw_etcd_exchange *x, const char *line)
{
    struct curl_slist *more = curl_slist_append(x->headers, line);
    if (!more)
        return -1;
    x->headers = more;
    return 0;
}

static int add_token(struct stw_etcd_exchange *x, const char *token)
{
    char line[STW_ETCD_TOKEN_MAX + 32];
    if (!token[0])
        return 0;
    int r = stw_format_whole(line, sizeof(line), "Authorization: %s", token);
    if (r == 0)
        r = add_header(x, line);
    stw_wipe(line, sizeof(line));
    return r;
}

/* The gateway passes the time limit on to the member.  The member gives up a little before we do,
 * so its answer distinguishes a member without a quorum from one that is gone. */
static int add_time_limit(struct stw_etcd_exchange *x, uint64_t left_ms)
{
    char line[64];
    stw_format(line, sizeof(line), "Grpc-Timeout: %llum",
               (unsigned long long)(left_ms - left_ms / 8));
    return x->data ? 0 : add_header(x, line);
}

/* "Expect" would make libcurl wait for a 100 Continue that the server does not send. */
static int set_headers(struct stw_etcd_exchange *x, const char *token, uint64_t left_ms)
{
    int bad = add_header(x, "Content-Type: application/json");
    bad |= add_header(x, "Accept: application/json");
    bad |= add_header(x, "Expect:");
    bad |= add_time_limit(x, left_ms);
    bad |= add_token(x, token);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
    return bad;
}

static int set_blob(CURL *easy, CURLoption option, char *pem)
{
    struct curl_blob blob = {.data = pem, .len = strlen(pem), .flags = CURL_BLOB_NOCOPY};
    return (int)curl_easy_setopt(easy, option, &blob);
}

static CURLcode limit_chain(CURL *easy, void *ssl_ctx, void *ctx)
{
    (void)easy, (void)ctx;
    (void)SSL_CTX_set_max_cert_list(ssl_ctx, STW_ETCD_CHAIN_MAX_BYTES);
    return CURLE_OK;
}

/* CURLOPT_SSL_CTX_FUNCTION passes the type of the TLS library that libcurl was built with. */
static bool uses_openssl(void)
{
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    return info->ssl_version && strncmp(info->ssl_version, "OpenSSL/", 8) == 0;
}

/* Only this CA is trusted: by default libcurl also trusts the system's CAs. */
static int set_tls(const struct stw_etcd *e, CURL *easy)
{
    int bad = (int)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (uses_openssl())
        bad |= (int)curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, limit_chain);
    if (e->ca) {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        bad |= (int)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        bad |= set_blob(easy, CURLOPT_CAINFO_BLOB, e->ca);
    }
    if (e->cert && e->key) {
        bad |= set_blob(easy, CURLOPT_SSLCERT_BLOB, e->cert);
        bad |= set_blob(easy, CURLOPT_SSLKEY_BLOB, e->key);
    }
    return bad;
}

static int set_protocols(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return (int)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return (int)curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* "::ADDRESS:" means: for any host and port of the URL, connect to ADDRESS and the same port. */
static int set_address(struct stw_etcd_exchange *x)
{
    char line[80];
    if (!x->at->address)
        return 0;
    bool v6 = strchr(x->at->address, ':') != NULL;
    if (stw_format_whole(line, sizeof(line), v6 ? "::[%s]:" : "::%s:", x->at->address) != 0)
        return -1;
    x->connect_to = curl_slist_append(NULL, line);
    if (!x->connect_to)
        return -1;
    return (int)curl_easy_setopt(x->easy, CURLOPT_CONNECT_TO, x->connect_to);
}

/* A request that changes something uses a fresh connection: libcurl repeats a request when a reused
 * connection turns out to be closed, and the first attempt may have been processed. */
static int set_connection(const struct stw_etcd *e, struct stw_etcd_exchange *x)
{
    CURL *easy = x->easy;
    int bad = set_protocols(easy);
    bool free_choice = x->at->address || stw_reach_host(e->reach, x->at->url);
    x->reach = free_choice ? NULL : e->reach;
    x->refused = false;
    bad |= (int)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, x);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    bad |= (int)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, x->change ? 1L : 0L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 20L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
    bad |= set_address(x);
    return bad | set_tls(e, easy);
}

static int set_request(const struct stw_etcd *e, struct stw_etcd_exchange *x, const char *path,
                       const char *body, uint64_t left_ms)
{
    char url[STW_ETCD_URL_MAX + 64];
    size_t len = strlen(x->at->url);
    while (len > 0 && x->at->url[len - 1] == '/')
        len--;
    if (stw_format_whole(url, sizeof(url), "%.*s%s", (int)STW_MIN(len, sizeof(url)), x->at->url,
                         path) != 0)
        return -1;
    int bad = (int)curl_easy_setopt(x->easy, CURLOPT_URL, url);
    if (*e->user_agent)
        bad |= (int)curl_easy_setopt(x->easy, CURLOPT_USERAGENT, e->user_agent);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, body);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS,
                                 (long)STW_MIN(left_ms, (uint64_t)INT32_MAX));
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_PRIVATE, x);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->curl_text);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, on_body);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_HEADERFUNCTION, on_header);
    bad |= (int)curl_easy_setopt(x->easy, CURLOPT_HEADERDATA, x);
    return bad;
}

/* --- begin and end */

int stw_etcd_transfer_begin(struct stw_etcd *e, CURLM *multi, struct stw_etcd_exchange *x,
                            const char *path, const char *body, const char *token)
{
    uint64_t now = stw_now_ms(&stw_clock_system);
    uint64_t left_ms = x->deadline_ms > now ? x->deadline_ms - now : 1;
    x->curl_text[0] = '\0';
    x->heard_ms = now;
    x->head = (struct stw_http_head){0};
    stw_buf_done(&x->answer);
    x->answer = STW_BUF_INIT(x->answer_max ? x->answer_max : STW_ETCD_ANSWER_MAX_BYTES);
    x->answer.secret = true; /* a token may be in it */
    x->easy = curl_easy_init();
    if (!x->easy)
        return stw_etcd_refuse(x, STW_ETCD_FAILED, STW_ERR_INTERNAL, "out of memory");
    int bad = set_request(e, x, path, body, left_ms);
    bad |= set_connection(e, x);
    bad |= set_headers(x, token, left_ms);
    if (bad || curl_multi_add_handle(multi, x->easy) != CURLM_OK)
        return stw_etcd_refuse(x, STW_ETCD_FAILED, STW_ERR_INVALID,
                               "%s: libcurl does not take this URL, address or certificate",
                               x->at->url);
    return 0;
}

void stw_etcd_transfer_end(CURLM *multi, struct stw_etcd_exchange *x)
{
    if (x->easy) {
        (void)curl_multi_remove_handle(multi, x->easy);
        curl_easy_cleanup(x->easy);
        x->easy = NULL;
    }
    for (struct curl_slist *h = x->headers; h; h = h->next)
        stw_wipe(h->data, strlen(h->data));
    curl_slist_free_all(x->headers);
    curl_slist_free_all(x->connect_to);
    x->headers = x->connect_to = NULL;
}

/* --- the result */

static const CURLcode tls_codes[] = {
    CURLE_SSL_CONNECT_ERROR,  CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
    CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR,         CURLE_SSL_CIPHER,
};

/* With TLS 1.3 a server rejects our certificate only after the handshake. */
static bool is_tls(const struct stw_etcd_exchange *x, CURLcode code)
{
    for (size_t i = 0; i < STW_COUNT(tls_codes); i++)
        if (tls_codes[i] == code && !strstr(x->curl_text, "SSL_ERROR_SYSCALL"))
            return true;
    return (code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR) &&
           (strstr(x->curl_text, "alert") || strstr(x->curl_text, "certificate"));
}

#define NOT_ALLOWED_TEXT                                                                           \
    "%s: this address is one that steward does not connect to for users (--store-endpoints)"

static void connection_failed(struct stw_etcd_exchange *x, CURLcode code)
{
    if (x->refused && code == CURLE_COULDNT_CONNECT) {
        (void)stw_etcd_refuse(x, STW_ETCD_NOT_ALLOWED, STW_ERR_FORBIDDEN, NOT_ALLOWED_TEXT,
                              x->at->url);
        return;
    }
    const char *text = x->curl_text[0] ? x->curl_text : curl_easy_strerror(code);
    bool tls = is_tls(x, code), late = code == CURLE_OPERATION_TIMEDOUT;
    (void)stw_etcd_refuse(x, tls ? STW_ETCD_TLS : STW_ETCD_UNREACHABLE,
                          late ? STW_ERR_TIMEOUT : STW_ERR_UNAVAILABLE, "%s: %s", x->at->url, text);
}

void stw_etcd_transfer_result(struct stw_etcd_exchange *x, CURLcode code)
{
    long status = status_of(x->easy);
    struct stw_etcd_refusal r;
    if (x->err.code != STW_OK) /* set by a callback */
        return;
    if (code != CURLE_OK) {
        connection_failed(x, code);
    } else if (status != 200) {
        stw_etcd_refusal_read((int)status, stw_buf_str(&x->answer), x->answer.len, &r);
        x->unknown = r.login;
        (void)stw_etcd_refuse(x, r.trouble, STW_ERR_UNAVAILABLE, "%s: %s", x->at->url, r.text);
        x->err.http = (int)status;
    }
}
