/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's thread: takes calls in, starts those that are due, lets libcurl work, and hands
 * results back.  All transfers run here; every other thread only puts calls into the inbox and
 * wakes it. */
#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "kube/client_priv.h"
#include "kube/kubeconfig_priv.h"

#include <limits.h>
#include <stdio.h>
#include <strings.h>

/* What nobody waits for: so many at a time; while others wait, or did a moment ago and will again,
 * one each tenth of a second, unless half of what may be queued is. */
#define BACKGROUND_MAX 4
#define BACKGROUND_EVERY_MS 100
#define QUIET_MS 100
#define BACKGROUND_PRESSED_BYTES (STW_SUBMITTED_MAX_BYTES / 2)
#define STACK_BYTES (512u << 10)
#define POLL_MAX_MS 60000

static void list_append(struct stw_call_list *l, struct stw_call *call)
{
    call->next = NULL;
    call->prev = l->last;
    if (l->last)
        l->last->next = call;
    else
        l->first = call;
    l->last = call;
}

static void list_remove(struct stw_call_list *l, struct stw_call *call)
{
    if (call->prev)
        call->prev->next = call->next;
    else
        l->first = call->next;
    if (call->next)
        call->next->prev = call->prev;
    else
        l->last = call->prev;
    call->next = call->prev = NULL;
}

void stw_call_start(struct stw_client *c, struct stw_call *call)
{
    call->err = (struct stw_error){0};
    stw_buf_clear(&call->body);
    call->client = c;
    call->state = STW_CALL_WAITING;
    call->retried_auth = call->retried_reset = false;
    call->deadline_ms = 0;
    bool writes = !call->background && !stw_streq(call->req.method, "GET");
    call->fence = writes ? stw_fence_current() : (struct stw_fence_ticket){0};
    pthread_mutex_lock(&c->lock);
    list_append(&c->inbox, call);
    pthread_mutex_unlock(&c->lock);
    (void)curl_multi_wakeup(c->multi);
}

void stw_call_cancel(struct stw_client *c, struct stw_call *call)
{
    pthread_mutex_lock(&c->lock);
    call->cancelled = true;
    c->cancels = true;
    pthread_mutex_unlock(&c->lock);
    (void)curl_multi_wakeup(c->multi);
}

/* --- on the client's thread */

/* Somebody waits for its end. */
static bool is_urgent(const struct stw_call *call)
{
    return !call->background && !call->on_line;
}

static void end_transfer(struct stw_client *c, struct stw_call *call)
{
    stw_transfer_end(c, call);
    if (!is_urgent(call))
        return;
    c->urgent--;
    c->urgent_ms = stw_now_ms(c->clock);
}

static void complete(struct stw_client *c, struct stw_call *call)
{
    if (call->state == STW_CALL_ACTIVE)
        end_transfer(c, call);
    list_remove(&c->calls, call);
    c->background -= call->background;
    call->state = STW_CALL_IDLE;
    call->on_done(call);
}

static void wait_again(struct stw_client *c, struct stw_call *call)
{
    end_transfer(c, call);
    call->state = STW_CALL_WAITING;
    stw_buf_clear(&call->body);
    call->err = (struct stw_error){0};
}

static void begin(struct stw_client *c, struct stw_call *call, uint64_t now)
{
    uint32_t timeout = call->req.timeout_ms ? call->req.timeout_ms : STW_CLIENT_TIMEOUT_MS;
    if (call->deadline_ms == 0)
        call->deadline_ms = now + timeout;
    if (!stw_fence_allows(call->fence)) { /* also after a wait for another try */
        (void)stw_fail(&call->err, STW_ERR_CANCELLED, "steward no longer leads");
        complete(c, call);
        return;
    }
    stw_auth_refresh(&c->auth, now, false);
    call->started_ms = call->heard_ms = now;
    call->state = STW_CALL_ACTIVE;
    c->urgent += is_urgent(call);
    if (stw_transfer_begin(c, call) < 0)
        complete(c, call);
}

/* Of the calls that wait their turn, so many as make `max` under way. */
static void take_backlog(struct stw_client *c, unsigned max)
{
    for (struct stw_call *call; c->background < max && (call = c->backlog.first);) {
        list_remove(&c->backlog, call);
        list_append(&c->calls, call);
        c->background++;
    }
}

static bool is_pressed(struct stw_client *c)
{
    pthread_mutex_lock(&c->lock);
    bool pressed = c->submitted_bytes >= BACKGROUND_PRESSED_BYTES;
    pthread_mutex_unlock(&c->lock);
    return pressed;
}

/* When the next of the backlog may go, by what else there is to do; UINT64_MAX: not before one that
 * is under way ends. */
static uint64_t backlog_turn_ms(struct stw_client *c)
{
    if (!c->backlog.first || c->background >= BACKGROUND_MAX)
        return UINT64_MAX;
    if (is_pressed(c))
        return 0;
    uint64_t next = c->backlog_ms + BACKGROUND_EVERY_MS;
    return c->urgent > 0 ? next : STW_MIN(next, c->urgent_ms + QUIET_MS);
}

static void start_backlog(struct stw_client *c, uint64_t now)
{
    while (backlog_turn_ms(c) <= now) {
        take_backlog(c, c->background + 1);
        c->backlog_ms = now;
        begin(c, c->calls.last, now);
    }
}

/* Moves the inbox over and ends what was cancelled. */
static void take_in(struct stw_client *c)
{
    pthread_mutex_lock(&c->lock);
    struct stw_call_list in = c->inbox;
    c->inbox = (struct stw_call_list){0};
    bool all = c->cancelled, some = c->cancels;
    c->cancels = false;
    while (in.first) {
        struct stw_call *call = in.first;
        list_remove(&in, call);
        some = some || call->cancelled;
        list_append(call->background ? &c->backlog : &c->calls, call);
    }
    if (all)
        take_backlog(c, UINT_MAX);
    /* on_done runs without the lock: calls are picked here and ended below. */
    struct stw_call_list ended = {0};
    for (struct stw_call *call = c->calls.first, *next; (all || some) && call; call = next) {
        next = call->next;
        if (all || call->cancelled) {
            list_remove(&c->calls, call);
            list_append(&ended, call);
        }
    }
    pthread_mutex_unlock(&c->lock);
    while (ended.first) {
        struct stw_call *call = ended.first;
        list_remove(&ended, call);
        list_append(&c->calls, call);
        (void)stw_fail(&call->err, STW_ERR_CANCELLED, "the request was given up: stopping");
        complete(c, call);
    }
}

static void start_due(struct stw_client *c, uint64_t now)
{
    for (struct stw_call *call = c->calls.first, *next; call; call = next) {
        next = call->next;
        if (call->state == STW_CALL_WAITING && call->start_at_ms <= now)
            begin(c, call, now);
    }
    start_backlog(c, now);
}

static void reap(struct stw_client *c)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left));) {
        struct stw_call *call = NULL;
        CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE ||
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&call) != CURLE_OK)
            continue;
        if (stw_transfer_result(c, call, code))
            wait_again(c, call);
        else
            complete(c, call);
    }
}

static void end_silent(struct stw_client *c, uint64_t now)
{
    for (struct stw_call *call = c->calls.first, *next; call; call = next) {
        next = call->next;
        if (call->state != STW_CALL_ACTIVE || call->silence_ms == 0 ||
            now - call->heard_ms < call->silence_ms)
            continue;
        (void)stw_fail(&call->err, STW_ERR_TIMEOUT, "%s: nothing was heard for %u s",
                       c->auth.config->server, call->silence_ms / 1000);
        stw_transfer_hang_up(c, call);
        complete(c, call);
    }
}

/* How long there is nothing to do, unless libcurl or another thread says otherwise. */
static int idle_ms(struct stw_client *c, uint64_t now)
{
    uint64_t next = STW_MIN(now + POLL_MAX_MS, backlog_turn_ms(c));
    for (const struct stw_call *call = c->calls.first; call; call = call->next) {
        if (call->state == STW_CALL_ACTIVE && call->silence_ms > 0)
            next = STW_MIN(next, call->heard_ms + call->silence_ms);
        if (call->state == STW_CALL_WAITING)
            next = STW_MIN(next, call->start_at_ms);
    }
    return next > now ? (int)(next - now) : 0;
}

static bool over(struct stw_client *c)
{
    pthread_mutex_lock(&c->lock);
    bool ending = c->ending && !c->inbox.first;
    pthread_mutex_unlock(&c->lock);
    return ending && !c->calls.first && !c->backlog.first;
}

static void *client_thread(void *arg)
{
    struct stw_client *c = arg;
    int running;
    while (!over(c)) {
        take_in(c);
        start_due(c, stw_now_ms(c->clock));
        (void)curl_multi_perform(c->multi, &running);
        reap(c);
        uint64_t now = stw_now_ms(c->clock);
        end_silent(c, now);
        if (!over(c))
            (void)curl_multi_poll(c->multi, NULL, 0, idle_ms(c, now), NULL);
    }
    return NULL;
}

/* --- making and ending */

static void global_init(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void make_metrics(struct stw_client *c, struct stw_metrics *m)
{
    static const char *const total[] = {"code", "method", "host", NULL};
    static const char *const times[] = {"verb", "host", NULL};
    static const double buckets[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, -1};
    if (!m)
        return;
    c->requests = stw_metrics_family(m, STW_COUNTER, "rest_client_requests_total",
                                     "Number of HTTP requests, partitioned by status code, method, "
                                     "and host.",
                                     total, NULL);
    c->durations = stw_metrics_family(m, STW_HISTOGRAM, "rest_client_request_duration_seconds",
                                      "Request latency in seconds. Broken down by verb, and host.",
                                      times, buckets);
    c->dropped = STW_SERIES0(stw_metrics_family(
        m, STW_COUNTER, "steward_client_dropped_total",
        "Requests that nobody waits for, such as events, dropped because too many were queued.",
        NULL, NULL));
}

static int start_thread(struct stw_client *c, struct stw_error *err)
{
    if (stw_thread_start(&c->thread, "api-client", STACK_BYTES, client_thread, c, err) < 0)
        return -1;
    c->running = true;
    return 0;
}

/* The parts of "https://host:port/prefix": `host` without and with its port, and the prefix. */
struct server_url {
    char host[256], authority[270], prefix[256];
    int port;
};

static int split_url(const char *server, struct server_url *ret)
{
    bool secure = strncasecmp(server, "https://", 8) == 0;
    const char *p = server + (secure ? 8 : 7);
    size_t len = strcspn(p, "/");
    int r = snprintf(ret->authority, sizeof(ret->authority), "%.*s", (int)len, p);
    int s = snprintf(ret->prefix, sizeof(ret->prefix), "%s", p + len);
    char *close = strrchr(ret->authority, ']'), *colon = strrchr(ret->authority, ':');
    if (r < 0 || (size_t)r >= sizeof(ret->authority) || (size_t)s >= sizeof(ret->prefix))
        return -1;
    int64_t port = secure ? 443 : 80;
    if (colon && colon > close && stw_parse_int(colon + 1, 1, 65535, &port) < 0)
        return -1;
    int host_len = colon && colon > close ? (int)(colon - ret->authority) : r;
    (void)snprintf(ret->host, sizeof(ret->host), "%.*s", host_len, ret->authority);
    ret->port = (int)port;
    return host_len > 0 && host_len < (int)sizeof(ret->host) ? 0 : -1;
}

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           stw_streq(host, "[::1]");
}

/* With tls-server-name the URL carries that name, so that libcurl asks for and checks it, and the
 * connection goes to the real host all the same. */
static int make_url(struct stw_client *c, const struct stw_kubeconfig *config,
                    struct stw_error *err)
{
    struct server_url u;
    char text[1100];
    if (split_url(config->server, &u) < 0)
        return stw_fail(err, STW_ERR_INVALID, "%s: server \"%s\" is not a usable URL",
                        config->source ? config->source : "kubeconfig", config->server);
    c->no_proxy = is_loopback(u.host) && !config->proxy_url;
    c->secure = strncasecmp(config->server, "https://", 8) == 0;
    c->host = strdup(u.authority);
    if (config->tls_server_name && c->secure) {
        (void)snprintf(text, sizeof(text), "%s:%d:%s:%d", config->tls_server_name, u.port, u.host,
                       u.port);
        c->connect_to = curl_slist_append(NULL, text);
        (void)snprintf(text, sizeof(text), "https://%s:%d%s", config->tls_server_name, u.port,
                       u.prefix);
        c->url = strdup(text);
    } else {
        c->url = strdup(config->server);
    }
    if (!c->host || !c->url || (config->tls_server_name && c->secure && !c->connect_to))
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    return 0;
}

int stw_client_create(const struct stw_kubeconfig *config, const struct stw_clock *clock,
                      struct stw_metrics *metrics, struct stw_client **ret, struct stw_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, global_init);
    struct stw_client *c = calloc(1, sizeof(*c));
    if (!c)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    c->clock = clock;
    c->heard_ms = stw_now_ms(clock);
    (void)pthread_mutex_init(&c->lock, NULL);
    make_metrics(c, metrics);
    c->multi = curl_multi_init();
    if (!c->multi) {
        stw_client_destroy(c);
        return stw_fail(err, STW_ERR_INTERNAL, "cannot set libcurl up");
    }
    (void)curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    if (stw_auth_init(&c->auth, config, c->heard_ms, err) < 0 || make_url(c, config, err) < 0 ||
        start_thread(c, err) < 0) {
        stw_client_destroy(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void stw_client_cancel(struct stw_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    pthread_mutex_unlock(&c->lock);
    (void)curl_multi_wakeup(c->multi);
}

void stw_client_destroy(struct stw_client *c)
{
    if (!c)
        return;
    if (c->running) {
        pthread_mutex_lock(&c->lock);
        c->cancelled = c->ending = true;
        pthread_mutex_unlock(&c->lock);
        (void)curl_multi_wakeup(c->multi);
        (void)pthread_join(c->thread, NULL);
    }
    for (unsigned i = 0; i < c->pooled; i++)
        curl_easy_cleanup(c->pool[i]);
    if (c->multi)
        (void)curl_multi_cleanup(c->multi);
    curl_slist_free_all(c->connect_to);
    stw_auth_done(&c->auth);
    free(c->host);
    free(c->url);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}
