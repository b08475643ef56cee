/* SPDX-License-Identifier: Apache-2.0
 *
 * libcurl handles.  Options that never change are set on creation; credentials are set again when
 * they have changed.  Blocking calls take a handle from a pool, the most recently used first, so
 * that connections never outnumber concurrent calls.
 *
 * All requests use HTTP/1.1.  Debian 12's libcurl (7.88) can hold back the end of an HTTP/2 stream
 * until more data arrives on its connection: lists waited for a minute.  A connection for each
 * transfer also needs less CPU than streams on one. */
#include "base/process/footprint.h"
#include "base/thread.h"
#include "base/util.h"
#include "kube/client/client_priv.h"
#include "kube/config/kubeconfig_priv.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_MS 10000L
#define UPLOAD_BUFFER_BYTES 16384L /* the minimum; one per transfer, 64 KiB by default */
/* A peer that acknowledges nothing for this time is gone (RFC 5482). */
#define UNANSWERED_MS 30000u

/* --- sockets: known to the client, so that a cancel can end requests that wait on them */

static int set_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    unsigned ms = UNANSWERED_MS;
    (void)ctx;
    if (purpose == CURLSOCKTYPE_IPCXN)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    return CURL_SOCKOPT_OK;
}

static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct stw_handle *h = ctx;
    (void)purpose;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    STW_LOCKED(&h->client->lock);
    h->fd = fd;
    return fd;
}

static int close_socket(void *ctx, curl_socket_t fd)
{
    struct stw_handle *h = ctx;
    pthread_mutex_lock(&h->client->lock);
    if (h->fd == fd)
        h->fd = -1;
    pthread_mutex_unlock(&h->client->lock);
    return close(fd);
}

/* libcurl calls this at least once a second.  Handles a cancel before there is a socket. */
static int check_cancelled(void *ctx, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                           curl_off_t up)
{
    struct stw_handle *h = ctx;
    (void)down_total, (void)down, (void)up_total, (void)up;
    STW_LOCKED(&h->client->lock);
    return h->client->cancelled;
}

/* --- TLS sessions, shared by all handles: libcurl keeps one for each set of credentials */

static void lock_sessions(CURL *easy, curl_lock_data data, curl_lock_access access, void *ctx)
{
    struct stw_client *c = ctx;
    (void)easy, (void)data, (void)access;
    pthread_mutex_lock(&c->sessions_lock);
}

static void unlock_sessions(CURL *easy, curl_lock_data data, void *ctx)
{
    struct stw_client *c = ctx;
    (void)easy, (void)data;
    pthread_mutex_unlock(&c->sessions_lock);
}

int stw_handle_share_sessions(struct stw_client *c)
{
    c->sessions = curl_share_init();
    if (!c->sessions)
        return -1;
    int bad = (int)curl_share_setopt(c->sessions, CURLSHOPT_USERDATA, c);
    bad |= (int)curl_share_setopt(c->sessions, CURLSHOPT_LOCKFUNC, lock_sessions);
    bad |= (int)curl_share_setopt(c->sessions, CURLSHOPT_UNLOCKFUNC, unlock_sessions);
    bad |= (int)curl_share_setopt(c->sessions, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    return bad ? -1 : 0;
}

/* --- creation */

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
    const char *proxy = c->auth.config->proxy_url; /* never changes */
    int bad = set_protocols(c, easy);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 20L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, set_socket);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER_BYTES);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_SHARE, c->sessions);
    if (c->secure)
        bad |= (int)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (proxy)
        bad |= (int)curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
    if (c->no_proxy)
        bad |= (int)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    if (c->connect_to)
        bad |= (int)curl_easy_setopt(easy, CURLOPT_CONNECT_TO, c->connect_to);
    return bad;
}

static int set_interruptible(struct stw_handle *h)
{
    int bad = (int)curl_easy_setopt(h->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    bad |= (int)curl_easy_setopt(h->easy, CURLOPT_OPENSOCKETDATA, h);
    bad |= (int)curl_easy_setopt(h->easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    bad |= (int)curl_easy_setopt(h->easy, CURLOPT_CLOSESOCKETDATA, h);
    bad |= (int)curl_easy_setopt(h->easy, CURLOPT_XFERINFOFUNCTION, check_cancelled);
    bad |= (int)curl_easy_setopt(h->easy, CURLOPT_XFERINFODATA, h);
    bad |= (int)curl_easy_setopt(h->easy, CURLOPT_NOPROGRESS, 0L);
    return bad;
}

struct stw_handle *stw_handle_create(struct stw_client *c, bool blocking)
{
    struct stw_handle *h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->client = c;
    h->fd = -1;
    h->easy = curl_easy_init();
    if (!h->easy || set_connection(c, h->easy) || (blocking && set_interruptible(h))) {
        stw_handle_destroy(h);
        return NULL;
    }
    return h;
}

void stw_handle_destroy(struct stw_handle *h)
{
    if (!h)
        return;
    curl_easy_cleanup(h->easy);
    X509_STORE_free(h->trust);
    free(h);
}

/* --- the pool of blocking calls */

static void list_busy(struct stw_client *c, struct stw_handle *h)
{
    h->prev = NULL;
    h->next = c->busy;
    if (c->busy)
        c->busy->prev = h;
    c->busy = h;
}

static void unlist_busy(struct stw_client *c, struct stw_handle *h)
{
    if (h->prev)
        h->prev->next = h->next;
    else
        c->busy = h->next;
    if (h->next)
        h->next->prev = h->prev;
}

/* Called with the lock held. */
static struct stw_handle *take_idle(struct stw_client *c)
{
    struct stw_handle *h = c->idle;
    if (h) {
        c->idle = h->next;
        list_busy(c, h);
    }
    return h;
}

struct stw_handle *stw_handle_take(struct stw_client *c, struct stw_error *err)
{
    pthread_mutex_lock(&c->lock);
    bool cancelled = c->cancelled;
    struct stw_handle *h = cancelled ? NULL : take_idle(c);
    pthread_mutex_unlock(&c->lock);
    if (h)
        return h;
    if (cancelled) {
        (void)stw_fail(err, STW_ERR_CANCELLED, "the request was cancelled: stopping");
        return NULL;
    }
    h = stw_handle_create(c, true);
    if (!h) {
        (void)stw_fail_memory(err);
        return NULL;
    }
    pthread_mutex_lock(&c->lock);
    list_busy(c, h); /* if cancelled by now, check_cancelled ends it */
    pthread_mutex_unlock(&c->lock);
    return h;
}

void stw_handle_give_back(struct stw_client *c, struct stw_handle *h)
{
    h->used_ms = stw_now_ms(c->clock);
    STW_LOCKED(&c->lock);
    unlist_busy(c, h);
    h->next = c->idle;
    c->idle = h;
}

uint64_t stw_handle_expire(struct stw_client *c, uint64_t now_ms, bool all)
{
    uint64_t next = UINT64_MAX;
    struct stw_handle *gone = NULL;
    pthread_mutex_lock(&c->lock);
    for (struct stw_handle **at = &c->idle, *h; (h = *at);) {
        uint64_t due = h->used_ms + STW_HANDLE_IDLE_MS;
        if (all || due <= now_ms) {
            *at = h->next;
            h->next = gone;
            gone = h;
            continue;
        }
        next = STW_MIN(next, due);
        at = &h->next;
    }
    pthread_mutex_unlock(&c->lock);
    bool closed = gone != NULL;
    for (struct stw_handle *h; (h = gone);) { /* closing takes the lock */
        gone = h->next;
        stw_handle_destroy(h);
    }
    if (closed && !all) /* also drops the code that closes connections */
        stw_footprint_shrink();
    return next;
}

void stw_handle_interrupt(struct stw_client *c)
{
    for (struct stw_handle *h = c->busy; h; h = h->next)
        if (h->fd >= 0)
            (void)shutdown(h->fd, SHUT_RDWR);
}
