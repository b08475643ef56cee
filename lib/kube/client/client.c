/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's thread: it accepts calls, starts those that are due, lets libcurl work on the
 * sockets that epoll reports, and returns results.  It handles only what caused the wake-up: a
 * transfer on which nothing has arrived costs nothing.  Other threads put calls into the inbox; the
 * first of a batch wakes it. */
#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "kube/client/client_priv.h"
#include "kube/client/pulse.h"
#include "kube/config/kubeconfig_priv.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Background calls, for which no caller waits: at most BACKGROUND_MAX run at a time.  While
 * blocking calls run, and until QUIET_MS after the last one, one is started every
 * BACKGROUND_EVERY_MS.  When the queue is half full, they are not delayed. */
#define BACKGROUND_MAX 4
#define BACKGROUND_EVERY_MS 100
#define QUIET_MS 100
#define BACKGROUND_PRESSED_BYTES (STW_SUBMITTED_MAX_BYTES / 2)
#define STACK_BYTES (512u << 10)
#define POLL_MAX_MS 60000
#define FIRST_MS 1000 /* the longest wait of other calls for the first connection */
#define READY_MAX 16
/* Watch events come in bursts: one wake-up handles what arrives in this time.  The first event
 * after a longer pause is handled at once. */
#define BATCH_MS 20
#define PAUSE_MS 20   /* until what a call did not take is offered again */
#define ROUNDS_MAX 16 /* of reading what has gathered */

static void list_append(struct stw_call_list *l, struct stw_http_call *call)
{
    call->next = NULL;
    call->prev = l->last;
    if (l->last)
        l->last->next = call;
    else
        l->first = call;
    l->last = call;
}

static void list_remove(struct stw_call_list *l, struct stw_http_call *call)
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

static void wake_client_thread(struct stw_client *c)
{
    const uint64_t one = 1;
    ssize_t n = write(c->wake, &one, sizeof(one)); /* a full counter has also woken it */
    (void)n;
}

/* The client whose thread this is, or NULL. */
static _Thread_local const struct stw_client *own;

void stw_call_start(struct stw_client *c, struct stw_http_call *call)
{
    assert(call->state == STW_CALL_IDLE);
    assert(call->req.method && call->req.path);
    call->err = (struct stw_error){0};
    stw_buf_clear(&call->body);
    call->client = c;
    call->state = STW_CALL_WAITING;
    call->retried_auth = call->retried_reset = false;
    call->deadline_ms = 0;
    bool writes = !call->background && !stw_streq(call->req.method, "GET");
    call->fence = writes ? stw_fence_current() : (struct stw_fence_ticket){0};
    pthread_mutex_lock(&c->lock);
    bool first = !c->inbox.first;
    list_append(&c->inbox, call);
    pthread_mutex_unlock(&c->lock);
    if (first && own != c)
        wake_client_thread(c);
}

void stw_call_cancel(struct stw_client *c, struct stw_http_call *call)
{
    pthread_mutex_lock(&c->lock);
    call->cancelled = true;
    c->cancels = true;
    pthread_mutex_unlock(&c->lock);
    wake_client_thread(c);
}

/* --- on the client's thread */

/* Gives the call a handle and adds it to the multi.  -1 with call->err. */
static int begin_transfer(struct stw_client *c, struct stw_http_call *call)
{
    struct stw_handle *h = c->pool;
    if (h) {
        c->pool = h->next;
        c->pooled--;
    } else {
        h = stw_handle_create(c, false);
    }
    call->handle = h;
    if (!h)
        return stw_fail_memory(&call->err);
    if (stw_transfer_prepare(c, call) != 0)
        return -1;
    if (curl_multi_add_handle(c->multi, h->easy) != CURLM_OK)
        return stw_fail(&call->err, STW_ERR_INTERNAL, "%s %s: libcurl does not take this request",
                        call->req.method, call->req.path);
    return 0;
}

static void end_transfer(struct stw_client *c, struct stw_http_call *call)
{
    struct stw_handle *h = call->handle;
    if (!h)
        return;
    (void)curl_multi_remove_handle(c->multi, h->easy);
    stw_transfer_clear(call);
    call->handle = NULL;
    if (c->pooled >= STW_HANDLE_POOL) {
        stw_handle_destroy(h);
        return;
    }
    h->next = c->pool;
    c->pool = h;
    c->pooled++;
}

static void complete_call(struct stw_client *c, struct stw_http_call *call)
{
    if (call->state == STW_CALL_ACTIVE)
        end_transfer(c, call);
    list_remove(&c->calls, call);
    c->background -= call->background;
    call->state = STW_CALL_IDLE;
    call->on_done(call);
}

static void wait_again(struct stw_client *c, struct stw_http_call *call)
{
    end_transfer(c, call);
    call->state = STW_CALL_WAITING;
    stw_buf_clear(&call->body);
    call->err = (struct stw_error){0};
}

static void begin_call(struct stw_client *c, struct stw_http_call *call, uint64_t now)
{
    uint32_t timeout = call->req.timeout_ms ? call->req.timeout_ms : STW_CLIENT_TIMEOUT_MS;
    if (call->deadline_ms == 0)
        call->deadline_ms = now + timeout;
    if (!stw_fence_allows(call->fence)) { /* also before a retry */
        (void)stw_fail(&call->err, STW_ERR_CANCELLED, "this process no longer leads");
        complete_call(c, call);
        return;
    }
    call->state = STW_CALL_ACTIVE;
    if (begin_transfer(c, call) != 0)
        complete_call(c, call);
}

/* Moves calls from the backlog to `calls` until `max` background calls are there. */
static void take_backlog(struct stw_client *c, unsigned max)
{
    for (struct stw_http_call *call; c->background < max && (call = c->backlog.first);) {
        list_remove(&c->backlog, call);
        list_append(&c->calls, call);
        c->background++;
    }
}

static bool is_pressed(struct stw_client *c)
{
    STW_LOCKED(&c->lock);
    return c->submitted_bytes >= BACKGROUND_PRESSED_BYTES;
}

/* When the next call of the backlog may start, depending on the other load; UINT64_MAX: none waits,
 * or a running one must end first. */
static uint64_t backlog_turn_ms(struct stw_client *c)
{
    if (!c->backlog.first || c->background >= BACKGROUND_MAX)
        return UINT64_MAX;
    if (is_pressed(c))
        return 0;
    uint64_t next = c->backlog_ms + BACKGROUND_EVERY_MS;
    uint64_t quiet = atomic_load(&c->urgent_ms) + QUIET_MS;
    return atomic_load(&c->urgent) > 0 ? next : STW_MIN(next, quiet);
}

static void start_backlog(struct stw_client *c, uint64_t now)
{
    while (backlog_turn_ms(c) <= now) {
        take_backlog(c, c->background + 1);
        c->backlog_ms = now;
        begin_call(c, c->calls.last, now);
    }
}

/* Takes the calls out of the inbox and ends cancelled ones. */
static void take_in(struct stw_client *c)
{
    pthread_mutex_lock(&c->lock);
    struct stw_call_list in = c->inbox;
    c->inbox = (struct stw_call_list){0};
    bool all = c->cancelled, some = c->cancels;
    c->cancels = false;
    while (in.first) {
        struct stw_http_call *call = in.first;
        list_remove(&in, call);
        some = some || call->cancelled;
        list_append(call->background ? &c->backlog : &c->calls, call);
    }
    if (all)
        take_backlog(c, UINT_MAX);
    /* on_done runs without the lock: calls are selected here and ended below. */
    struct stw_call_list ended = {0};
    for (struct stw_http_call *call = c->calls.first, *next; (all || some) && call; call = next) {
        next = call->next;
        if (all || call->cancelled) {
            list_remove(&c->calls, call);
            list_append(&ended, call);
        }
    }
    pthread_mutex_unlock(&c->lock);
    while (ended.first) {
        struct stw_http_call *call = ended.first;
        list_remove(&ended, call);
        list_append(&c->calls, call);
        (void)stw_fail(&call->err, STW_ERR_CANCELLED, "the request was cancelled: stopping");
        complete_call(c, call);
    }
}

/* All lists begin at the same time.  The first connection is made alone: later ones resume its TLS
 * session, without an exchange of certificates. */
static bool waits_for_first(const struct stw_client *c, uint64_t now)
{
    if (!c->secure || atomic_load(&c->answered))
        return false;
    for (const struct stw_http_call *call = c->calls.first; call; call = call->next)
        if (call->state == STW_CALL_ACTIVE && call->started_ms + FIRST_MS > now)
            return true;
    return false;
}

static void start_due(struct stw_client *c, uint64_t now)
{
    for (struct stw_http_call *call = c->calls.first, *next; call; call = next) {
        next = call->next;
        if (waits_for_first(c, now))
            break;
        if (call->state == STW_CALL_WAITING && call->start_at_ms <= now)
            begin_call(c, call, now);
    }
    start_backlog(c, now);
}

static void collect_finished_calls(struct stw_client *c)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left));) {
        struct stw_http_call *call = NULL;
        CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE ||
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&call) != CURLE_OK)
            continue;
        if (stw_transfer_result(c, call, code))
            wait_again(c, call);
        else
            complete_call(c, call);
    }
}

/* When the call times out unless the server sends something; UINT64_MAX: no limit. */
static uint64_t silent_until_ms(const struct stw_http_call *call)
{
    uint32_t limit = call->heard ? call->silence_ms : call->answer_ms;
    return call->state == STW_CALL_ACTIVE && limit > 0 ? call->heard_ms + limit : UINT64_MAX;
}

/* libcurl closes the connection of a transfer that is ended early. */
static void end_silent(struct stw_client *c, uint64_t now)
{
    for (struct stw_http_call *call = c->calls.first, *next; call; call = next) {
        next = call->next;
        if (now < silent_until_ms(call))
            continue;
        (void)stw_fail(&call->err, STW_ERR_TIMEOUT, "%s: no data for %u s", c->server,
                       (unsigned)((now - call->heard_ms) / 1000));
        complete_call(c, call);
    }
}

/* Offers again what on_body did not take. */
static void resume_paused(struct stw_client *c)
{
    for (struct stw_http_call *call = c->calls.first, *next; call; call = next) {
        next = call->next;
        if (call->state != STW_CALL_ACTIVE || !call->paused)
            continue;
        call->paused = false;
        CURLcode code = curl_easy_pause(call->handle->easy, CURLPAUSE_CONT);
        if (code == CURLE_OK)
            continue;
        if (stw_transfer_result(c, call, code)) /* libcurl would go on without the data */
            wait_again(c, call);
        else
            complete_call(c, call);
    }
}

/* How long the thread may sleep unless a socket or another thread wakes it. */
static int idle_ms(struct stw_client *c, uint64_t now)
{
    bool waits = waits_for_first(c, now);
    uint64_t next = STW_MIN(now + POLL_MAX_MS, backlog_turn_ms(c));
    next = STW_MIN(next, stw_handle_expire(c, now, false));
    for (const struct stw_http_call *call = c->calls.first; call; call = call->next) {
        next = STW_MIN(next, silent_until_ms(call));
        if (call->state == STW_CALL_ACTIVE && call->paused)
            next = STW_MIN(next, now + PAUSE_MS);
        if (call->state == STW_CALL_WAITING)
            next = STW_MIN(next, waits ? now + FIRST_MS : call->start_at_ms);
    }
    uint64_t system_now = stw_now_ms(&stw_clock_system), idle = next > now ? next - now : 0;
    uint64_t curl = c->curl_due_ms > system_now ? c->curl_due_ms - system_now : 0;
    pthread_mutex_lock(&c->lock);
    bool more = c->inbox.first != NULL; /* started by a callback */
    pthread_mutex_unlock(&c->lock);
    return more ? 0 : (int)STW_MIN(idle, curl);
}

/* --- libcurl's sockets and its timer */

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct stw_client *c = ctx;
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(c->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    event.events |= what & CURL_POLL_IN ? EPOLLIN : 0;
    event.events |= what & CURL_POLL_OUT ? EPOLLOUT : 0;
    (void)epoll_ctl(c->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    (void)curl_multi_assign(c->multi, fd, c);
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    struct stw_client *c = ctx;
    (void)multi;
    uint64_t now = stw_now_ms(&stw_clock_system);
    c->curl_due_ms = timeout_ms < 0 ? UINT64_MAX : now + (uint64_t)timeout_ms;
    return 0;
}

static void wake_seen(struct stw_client *c)
{
    uint64_t times;
    ssize_t n = read(c->wake, &times, sizeof(times));
    (void)n;
}

static void work_on(struct stw_client *c, const struct epoll_event *event)
{
    int running, what = 0;
    if (event->data.fd == c->wake) {
        wake_seen(c);
        return;
    }
    what |= event->events & EPOLLIN ? CURL_CSELECT_IN : 0;
    what |= event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
    what |= event->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0;
    (void)curl_multi_socket_action(c->multi, event->data.fd, what, &running);
}

/* True when only background calls and open watches run and the queue is not half full.  A call that
 * is tried again later, such as the list of a kind that is not installed, runs then. */
static bool may_gather(struct stw_client *c)
{
    uint64_t now = stw_now_ms(c->clock);
    for (const struct stw_http_call *call = c->calls.first; call; call = call->next) {
        bool later = call->state == STW_CALL_WAITING && call->start_at_ms > now;
        if (!later && !call->background && !(call->watch && call->heard))
            return false;
    }
    return !is_pressed(c);
}

/* Lets events gather until BATCH_MS after the last batch.  False: the inbox must be handled
 * first. */
static bool wait_for_event_batch(struct stw_client *c)
{
    uint64_t now = stw_now_ms(&stw_clock_system), next = c->batch_ms + BATCH_MS;
    struct pollfd wake = {.fd = c->wake, .events = POLLIN};
    if (next > now && may_gather(c)) {
        if (poll(&wake, 1, (int)(next - now)) > 0) {
            wake_seen(c);
            return false;
        }
        now = stw_now_ms(&stw_clock_system);
    }
    c->batch_ms = now;
    return true;
}

/* False: no socket was ready, or another thread has work for this one. */
static bool work_on_ready(struct stw_client *c, int wait_ms)
{
    struct epoll_event ready[READY_MAX];
    bool woken = false;
    int n = epoll_wait(c->epoll, ready, READY_MAX, wait_ms);
    for (int i = 0; i < n; i++) {
        woken = woken || ready[i].data.fd == c->wake;
        work_on(c, &ready[i]);
    }
    return n > 0 && !woken;
}

/* libcurl takes one TLS record of a socket at a time: of a batch, several are there. */
static void wait_and_work(struct stw_client *c)
{
    int running;
    if (!wait_for_event_batch(c))
        return;
    bool more = work_on_ready(c, idle_ms(c, stw_now_ms(c->clock)));
    for (int i = 1; more && i < ROUNDS_MAX; i++)
        more = work_on_ready(c, 0);
    if (c->curl_due_ms <= stw_now_ms(&stw_clock_system)) {
        c->curl_due_ms = UINT64_MAX; /* libcurl sets it again */
        (void)curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static bool is_over(struct stw_client *c)
{
    pthread_mutex_lock(&c->lock);
    bool ending = c->ending && !c->inbox.first;
    pthread_mutex_unlock(&c->lock);
    return ending && !c->calls.first && !c->backlog.first;
}

static void *client_thread(void *arg)
{
    struct stw_client *c = arg;
    own = c;
    for (;;) {
        stw_pulse_answer(&c->pulse);
        take_in(c);
        if (is_over(c))
            return NULL;
        start_due(c, stw_now_ms(c->clock));
        wait_and_work(c);
        collect_finished_calls(c);
        resume_paused(c);
        end_silent(c, stw_now_ms(c->clock));
    }
}

uint64_t stw_client_silent_ms(struct stw_client *c)
{
    bool wake;
    uint64_t silent = stw_pulse_silent_ms(&c->pulse, stw_now_ms(&stw_clock_system), &wake);
    if (wake)
        wake_client_thread(c);
    return silent;
}

/* --- create and destroy */

static void global_init(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void register_client_metrics(struct stw_client *c, struct stw_metrics *m)
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
        m, STW_COUNTER, "_client_dropped_total",
        "Requests without a waiting caller, such as events, dropped because too many were queued.",
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
    if (stw_format_whole(ret->authority, sizeof(ret->authority), "%.*s", (int)len, p) != 0 ||
        stw_format_whole(ret->prefix, sizeof(ret->prefix), "%s", p + len) != 0)
        return -1;
    char *close = strrchr(ret->authority, ']'), *colon = strrchr(ret->authority, ':');
    int64_t port = secure ? 443 : 80;
    if (colon && colon > close && stw_parse_int(colon + 1, 1, 65535, &port) < 0)
        return -1;
    int host_len = colon && colon > close ? (int)(colon - ret->authority) : (int)len;
    ret->port = (int)port;
    if (host_len == 0)
        return -1;
    return stw_format_whole(ret->host, sizeof(ret->host), "%.*s", host_len, ret->authority);
}

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           stw_streq(host, "[::1]");
}

/* With tls-server-name the URL has that name, so that libcurl sends and verifies it; `connect_to`
 * directs the connection to the real host. */
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
    c->server = strdup(config->server);
    if (config->tls_server_name && c->secure) {
        const char *name = config->tls_server_name;
        if (strlen(name) >= sizeof(u.host))
            return stw_fail(err, STW_ERR_INVALID, "%s: tls-server-name is too long",
                            config->source ? config->source : "kubeconfig");
        stw_format(text, sizeof(text), "%s:%d:%s:%d", name, u.port, u.host, u.port);
        c->connect_to = curl_slist_append(NULL, text);
        stw_format(text, sizeof(text), "https://%s:%d%s", name, u.port, u.prefix);
        c->url = strdup(text);
    } else {
        c->url = strdup(config->server);
    }
    if (!c->server || !c->host || !c->url ||
        (config->tls_server_name && c->secure && !c->connect_to))
        return stw_fail_memory(err);
    return 0;
}

static void init_locks(struct stw_client *c)
{
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_mutex_init(&c->auth_lock, NULL);
    (void)pthread_mutex_init(&c->sessions_lock, NULL);
    (void)stw_cond_init(&c->changed); /* glibc's cannot fail */
}

static int make_multi(struct stw_client *c, struct stw_error *err)
{
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->multi = curl_multi_init();
    struct epoll_event event = {.events = EPOLLIN, .data.fd = c->wake};
    if (c->epoll < 0 || c->wake < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->wake, &event) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot make epoll or an eventfd: %s",
                        strerrordesc_np(errno));
    if (!c->multi || stw_handle_share_sessions(c) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot set libcurl up");
    (void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    (void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    (void)curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    (void)curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    return 0;
}

static void set_operator(struct stw_client *c, const struct stw_operator *op)
{
    size_t max = op->limits.response_bytes;
    stw_operator_agent(op, c->user_agent);
    c->response_max = max > 0 ? max : STW_RESPONSE_MAX_BYTES;
}

int stw_client_create(const struct stw_operator *op, const struct stw_kubeconfig *config,
                      const struct stw_clock *clock, struct stw_metrics *metrics,
                      struct stw_client **ret, struct stw_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    assert(op && config->server && clock && ret);
    (void)pthread_once(&once, global_init);
    struct stw_client *c = calloc(1, sizeof(*c));
    if (!c)
        return stw_fail_memory(err);
    c->clock = clock;
    c->epoll = c->wake = -1;
    c->curl_due_ms = UINT64_MAX;
    init_locks(c);
    set_operator(c, op);
    register_client_metrics(c, metrics);
    if (stw_auth_init(&c->auth, config, stw_now_ms(clock), err) < 0 ||
        make_url(c, config, err) < 0 || make_multi(c, err) < 0 || start_thread(c, err) < 0) {
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
    stw_handle_interrupt(c);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    wake_client_thread(c);
}

static void free_multi(struct stw_client *c)
{
    for (struct stw_handle *h; (h = c->pool);) {
        c->pool = h->next;
        stw_handle_destroy(h);
    }
    if (c->multi)
        (void)curl_multi_cleanup(c->multi);
    if (c->sessions)
        (void)curl_share_cleanup(c->sessions);
    if (c->epoll >= 0)
        (void)close(c->epoll);
    if (c->wake >= 0)
        (void)close(c->wake);
}

/* Cancels the requests of other threads and waits until they have returned. */
static void await_blocking(struct stw_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    stw_handle_interrupt(c);
    pthread_cond_broadcast(&c->changed);
    while (atomic_load(&c->urgent) > 0)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void stw_client_destroy(struct stw_client *c)
{
    if (!c)
        return;
    if (c->running) {
        pthread_mutex_lock(&c->lock);
        c->cancelled = c->ending = true;
        pthread_mutex_unlock(&c->lock);
        wake_client_thread(c);
        (void)pthread_join(c->thread, NULL);
    }
    await_blocking(c);
    (void)stw_handle_expire(c, 0, true);
    free_multi(c);
    X509_STORE_free(c->trust);
    curl_slist_free_all(c->connect_to);
    stw_auth_done(&c->auth);
    free(c->server);
    free(c->host);
    free(c->url);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->sessions_lock);
    (void)pthread_mutex_destroy(&c->auth_lock);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}
