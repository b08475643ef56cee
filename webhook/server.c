/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/server.h"

#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "schema/conversion.h"
#include "webhook/client_auth.h"
#include "webhook/server_priv.h"
#include "webhook/shares.h"
#include "webhook/tls_alert_priv.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define BODY_MAX_DEFAULT ((size_t)7 << 20)
#define REQUEST_TIMEOUT_DEFAULT_MS 10000U
/* More than the 90 s of the API server, so that the client closes first and no request is lost. */
#define IDLE_TIMEOUT_DEFAULT_MS 120000U
#define CONNECTION_LIMIT_DEFAULT 1024U
/* libmicrohttpd's pool of a connection. Half of it is the read buffer, which holds a TLS record of
 * 16 KiB. Not larger, because the library clears all of it after each request. */
#define CONNECTION_MEMORY ((size_t)40 << 10)
#define DRAIN_POLL_MS 5
#define HANG_UP_MS 500

void stw_webhook_path(const struct stw_kind *k, bool mutate, struct stw_buf *out)
{
    size_t start = out->len;
    stw_buf_addf(out, "/%s-%s-%s-%s", mutate ? "mutate" : "validate", k->group, k->version,
                 k->kind);
    for (size_t i = start; i < out->len && out->data; i++)
        out->data[i] = out->data[i] == '.' ? '-' : (char)tolower((unsigned char)out->data[i]);
}

static struct stw_http_conn *conn_of(gnutls_session_t session)
{
    struct MHD_Connection *mhd = gnutls_session_get_ptr(session);
    const union MHD_ConnectionInfo *info =
        mhd ? MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT) : NULL;
    return info ? info->socket_context : NULL;
}

/* gnutls_certificate_retrieve_function3 */
static int retrieve_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                                gnutls_pcert_st **pcert, unsigned *pcert_length,
                                gnutls_ocsp_data_st **ocsp, unsigned *ocsp_length,
                                gnutls_privkey_t *key, unsigned *flags)
{
    const struct stw_http_conn *conn = conn_of(session);
    (void)info;
    if (!conn || !conn->bundle)
        return stw_bundle_missing(session);
    return stw_bundle_retrieve(conn->bundle, pcert, pcert_length, ocsp, ocsp_length, key, flags);
}

/* gnutls_handshake_hook_func: called before and after each handshake message. */
static int look_at_message(gnutls_session_t session, unsigned int type, unsigned int when,
                           unsigned int incoming, const gnutls_datum_t *message)
{
    struct stw_http_conn *conn = conn_of(session);
    if (!conn || !incoming)
        return 0;
    struct stw_server *s = conn->worker->server;
    if (when == GNUTLS_HOOK_PRE)
        return stw_tls_check_message(session, type, message, s->c.client_auth != NULL);
    if (type == GNUTLS_HANDSHAKE_FINISHED) { /* the client's last message */
        stw_tls_input_advance(&conn->input, STW_TLS_STEP_MAX);
        stw_gate_settle(s->gate, &conn->entry, stw_now_ms(s->c.clock));
        if (s->c.client_auth)
            atomic_store_explicit(&conn->entry.known, true, memory_order_relaxed);
    }
    return 0;
}

/* A connection that only asks the thread whether it gets round: no client has this address. */
static bool is_question(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info && info->client_addr && info->client_addr->sa_family == AF_UNIX;
}

static struct stw_http_conn *open_connection(struct stw_worker *w, struct MHD_Connection *mhd)
{
    struct stw_server *s = w->server;
    int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct stw_http_conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        (void)shutdown(fd, SHUT_RDWR);
        return NULL;
    }
    conn->worker = w;
    conn->opened_ms = stw_now_ms(s->c.clock);
    conn->bundle = stw_bundle_slot_ref(&s->bundle);
    gnutls_session_t tls =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session;
    stw_tls_input_limit(&conn->input, tls, fd,
                        s->c.client_auth ? STW_TLS_HELLO_AND_CHAIN_MAX : STW_TLS_HELLO_MAX);
    /* A resumed session does not present a certificate again. */
    if (s->c.client_auth)
        stw_client_auth_require(s->c.client_auth, tls);
    else if (conn->bundle)
        stw_bundle_enable_tickets(conn->bundle, tls);
    gnutls_handshake_set_hook_function(tls, GNUTLS_HANDSHAKE_ANY, GNUTLS_HOOK_BOTH,
                                       look_at_message);
    stw_gate_enter(s->gate, &conn->entry, fd);
    return conn;
}

/* Called after the library has freed the TLS session, before it closes the descriptor. */
static void close_connection(struct stw_http_conn *conn)
{
    struct stw_worker *w = conn->worker;
    stw_gate_leave(w->server->gate, &conn->entry);
    stw_request_done(conn);
    stw_buf_done(&conn->rq.body);
    stw_bundle_unref(conn->bundle);
    atomic_fetch_sub(&w->open, 1);
    free(conn);
}

static void notify_connection(void *cls, struct MHD_Connection *mhd, void **context,
                              enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED && is_question(mhd))
        stw_pulse_answer(&((struct stw_worker *)cls)->pulse);
    else if (what == MHD_CONNECTION_NOTIFY_STARTED)
        *context = open_connection(cls, mhd);
    else if (*context)
        close_connection(stw_take(*context));
}

/* To the thread with the fewest connections: they live long, so random choice would not balance. */
static int hand_over(void *ctx, int fd, const struct sockaddr *addr, socklen_t len)
{
    struct stw_server *s = ctx;
    struct stw_worker *least = &s->workers[0];
    for (unsigned i = 1; i < s->c.threads; i++) {
        if (atomic_load(&s->workers[i].open) < atomic_load(&least->open))
            least = &s->workers[i];
    }
    atomic_fetch_add(&least->open, 1);
    if (MHD_add_connection(least->daemon, fd, addr, len) == MHD_YES)
        return 0;
    atomic_fetch_sub(&least->open, 1);
    return -1;
}

static void library_log(void *cls, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
static void library_log(void *cls, const char *fmt, va_list ap)
{
    char text[256];
    (void)cls;
    if (!stw_log_on(STW_LOG_DEBUG))
        return;
    stw_vformat(text, sizeof(text), fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    stw_log(STW_LOG_DEBUG, "libmicrohttpd", STW_STR("detail", text));
}

/* poll, not epoll: with epoll, 0.9.75 spins on a connection whose handshake waits for the client.
 * poll costs the same up to the few dozen connections that API servers keep (in 1.0.1 too: a
 * trivial handler is 4 % faster with epoll). */
static int start_worker(struct stw_server *s, struct stw_worker *w)
{
    const unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_TLS | MHD_USE_NO_LISTEN_SOCKET |
                           MHD_USE_ITC | MHD_USE_ERROR_LOG;
    w->server = s;
    w->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, stw_request_handle, w, MHD_OPTION_EXTERNAL_LOGGER, library_log, NULL,
        MHD_OPTION_HTTPS_PRIORITIES, STW_TLS_PRIORITIES, MHD_OPTION_HTTPS_CERT_CALLBACK2,
        retrieve_certificate, MHD_OPTION_NOTIFY_CONNECTION, notify_connection, w,
        MHD_OPTION_NOTIFY_COMPLETED, stw_request_completed, w, MHD_OPTION_URI_LOG_CALLBACK,
        stw_request_begin, w, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        /* The gate enforces limit and timeouts; the library's own limit must not be reached. */
        MHD_OPTION_CONNECTION_LIMIT, 2 * s->c.connection_limit + 1024U, MHD_OPTION_END);
    return w->daemon ? 0 : -1;
}

static int start_workers(struct stw_server *s, struct stw_error *err)
{
    sigset_t before;
    int status = 0;
    stw_thread_block_signals(&before); /* keep signals off the library's threads */
    for (unsigned i = 0; i < s->c.threads && status == 0; i++)
        status = start_worker(s, &s->workers[i]);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0 ? 0
                       : stw_fail(err, STW_ERR_INTERNAL, "cannot start the HTTPS server: %s",
                                  strerrordesc_np(errno));
}

static int add_conversion_route(struct stw_server *s, struct stw_error *err)
{
    if (!s->env.op || !stw_conversion_needed(s->c.kinds))
        return 0;
    for (size_t i = 0; s->c.kinds[i]; i++)
        if (stw_kind_versions_check(s->c.kinds[i], err) != 0)
            return -1;
    char *path = strdup(STW_CONVERSION_PATH);
    if (!path)
        return stw_fail_memory(err);
    stw_admission_metrics_add_conversions(&s->admission_metrics, s->c.metrics);
    stw_route_init(&s->routes[s->route_count++], &s->admission_metrics, NULL, false, path);
    return 0;
}

static int make_routes(struct stw_server *s, struct stw_error *err)
{
    size_t kinds = 0;
    while (s->c.kinds[kinds])
        kinds++;
    s->routes = calloc(2 * kinds + 2, sizeof(*s->routes)); /* with that of conversion */
    if (!s->routes)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the webhook's paths");
    stw_admission_metrics_init(&s->admission_metrics, s->c.metrics);
    for (size_t i = 0; i < 2 * kinds; i++) {
        struct stw_buf path = STW_BUF_INIT(1024);
        stw_webhook_path(s->c.kinds[i / 2], i % 2 == 0, &path);
        char *text = stw_buf_take(&path);
        if (!text)
            return stw_fail(err, STW_ERR_INTERNAL, "no memory for the webhook's paths");
        stw_route_init(&s->routes[s->route_count++], &s->admission_metrics, s->c.kinds[i / 2],
                       i % 2 == 0, text);
    }
    return add_conversion_route(s, err);
}

static uint32_t default_threads(void)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 2;
    return (uint32_t)STW_MIN(STW_MAX(cores, 2), (int)STW_WORKERS_MAX);
}

/* Keeps a quarter of the descriptors free for the rest of the process during a flood of
 * connections. */
static uint32_t bounded_limit(uint32_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return wanted;
    return (uint32_t)STW_MAX(STW_MIN((uint64_t)wanted, (uint64_t)limit.rlim_cur * 3 / 4), 1U);
}

static void set_defaults(struct stw_server_config *c)
{
    c->body_max_bytes = c->body_max_bytes ? c->body_max_bytes : BODY_MAX_DEFAULT;
    c->request_timeout_ms =
        c->request_timeout_ms ? c->request_timeout_ms : REQUEST_TIMEOUT_DEFAULT_MS;
    c->idle_timeout_ms = c->idle_timeout_ms ? c->idle_timeout_ms : IDLE_TIMEOUT_DEFAULT_MS;
    struct stw_client_shares shares = stw_client_shares(c->memory_bytes);
    c->connection_limit =
        bounded_limit(c->connection_limit ? c->connection_limit : CONNECTION_LIMIT_DEFAULT);
    c->connection_limit = STW_MIN(c->connection_limit, stw_connections_tls(shares.admission));
    c->threads = c->threads ? STW_MIN(c->threads, STW_WORKERS_MAX) : default_threads();
}

static int open_gate(struct stw_server *s, struct stw_error *err)
{
    struct stw_gate_config gate = {.address = s->c.bind_address,
                                   .clock = s->c.clock,
                                   .limit = s->c.connection_limit,
                                   .connection_bytes = STW_CONNECTION_TLS_BYTES,
                                   .request_timeout_ms = s->c.request_timeout_ms,
                                   .idle_timeout_ms = s->c.idle_timeout_ms,
                                   .hand = hand_over,
                                   .ctx = s};
    return stw_gate_create(&gate, &s->gate, err);
}

int stw_server_create(const struct stw_server_config *config, struct stw_server **ret,
                      struct stw_error *err)
{
    struct stw_server *s = calloc(1, sizeof(*s));
    assert(config->clock && ret);
    if (!s)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the admission server");
    s->c = *config;
    set_defaults(&s->c);
    s->request_share = stw_client_shares(s->c.memory_bytes).requests;
    stw_bundle_slot_init(&s->bundle);
    stw_discreet_init(&s->discreet, config->env ? config->env->lookup : NULL,
                      config->client_auth != NULL, config->clock);
    if (config->env)
        s->env = *config->env;
    s->env.lookup = s->discreet.inner ? &s->discreet.lookup : NULL;
    /* The gate last: from then on connections are accepted. */
    if (make_routes(s, err) != 0 || start_workers(s, err) != 0 || open_gate(s, err) != 0) {
        stw_server_destroy(s);
        return -1;
    }
    *ret = s;
    return 0;
}

int stw_server_set_certificate(struct stw_server *s, const char *cert_pem, const char *key_pem,
                               struct stw_error *err)
{
    return stw_bundle_slot_load(&s->bundle, cert_pem, key_pem, stw_wall_us(s->c.clock), err);
}

uint16_t stw_server_port(const struct stw_server *s)
{
    return stw_gate_port(s->gate);
}

bool stw_server_listening(struct stw_server *s)
{
    return stw_gate_listening(s->gate);
}

/* The library has no call for this: a connection whose other end is closed is taken on the thread,
 * and closed there. */
static void ask_worker(struct stw_worker *w)
{
    const struct sockaddr address = {.sa_family = AF_UNIX};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
        stw_pulse_answer(&w->pulse); /* out of descriptors: not the thread's fault */
        return;
    }
    (void)close(ends[1]);
    if (MHD_add_connection(w->daemon, ends[0], &address, sizeof(address)) != MHD_YES)
        stw_pulse_answer(&w->pulse);
}

bool stw_server_alive(struct stw_server *s, char *why, size_t why_size)
{
    uint64_t now = stw_now_ms(s->c.clock), limit = 3 * (uint64_t)s->c.request_timeout_ms;
    uint64_t silent = stw_gate_silent_ms(s->gate);
    bool alive = silent <= limit, wake;
    if (!alive)
        stw_format(why, why_size, "the thread \"gate\" is stuck for %llu s",
                   (unsigned long long)silent / 1000);
    for (unsigned i = 0; i < s->c.threads; i++) {
        silent = stw_pulse_silent_ms(&s->workers[i].pulse, now, &wake);
        if (wake)
            ask_worker(&s->workers[i]);
        if (alive && silent > limit)
            stw_format(why, why_size, "admission thread %u of %u is stuck for %llu s", i + 1,
                       s->c.threads, (unsigned long long)silent / 1000);
        alive = alive && silent <= limit;
    }
    return alive;
}

void stw_server_retire(struct stw_server *s)
{
    atomic_store(&s->retiring, true);
}

/* A kept connection that is closed from here may have been chosen for a request just now. That
 * request fails, because the client must not send it twice. So each gets time for one more request,
 * whose reply closes it. Those left after that were rarely used. */
void stw_server_drain(struct stw_server *s, uint32_t timeout_ms, uint32_t linger_ms)
{
    const struct timespec pause = {.tv_nsec = DRAIN_POLL_MS * 1000000L};
    uint64_t now = stw_now_ms(&stw_clock_system), end = now + timeout_ms, kept = now + linger_ms;
    stw_server_retire(s);
    stw_gate_close(s->gate);
    for (; now < end; now = stw_now_ms(&stw_clock_system)) {
        if (stw_gate_unfinished(s->gate) == 0 && (now >= kept || stw_gate_count(s->gate) == 0))
            break;
        (void)nanosleep(&pause, NULL);
    }
    end = now + HANG_UP_MS;
    while (stw_gate_hang_up(s->gate) > 0 && stw_now_ms(&stw_clock_system) < end)
        (void)nanosleep(&pause, NULL);
}

void stw_server_destroy(struct stw_server *s)
{
    if (!s)
        return;
    if (s->gate)
        stw_gate_close(s->gate);
    for (unsigned i = 0; i < s->c.threads; i++) {
        if (s->workers[i].daemon)
            MHD_stop_daemon(s->workers[i].daemon);
        stw_json_done(&s->workers[i].scratch.doc);
    }
    stw_gate_destroy(s->gate);
    stw_bundle_slot_done(&s->bundle);
    stw_discreet_done(&s->discreet);
    for (size_t i = 0; i < s->route_count; i++)
        stw_route_done(&s->routes[i]);
    free(s->routes);
    free(s);
}
