/* SPDX-License-Identifier: Apache-2.0
 *
 * Two small HTTP servers on one thread. The library runs without threads of its own, so everything
 * below, including the connection list, is used only on that thread. Only `stopping` and `finish`
 * are set by other threads. Each reply closes its connection, and each connection lives a few
 * seconds at most: the kubelet must get an answer even if other clients flood the port. */
#include "webhook/probes.h"

#include "base/clock.h"
#include "base/thread.h"
#include "base/util.h"
#include "webhook/checks_priv.h"
#include "webhook/listen_priv.h"
#include "webhook/plain_priv.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define CONNECTIONS_MAX 128U /* of one address */
#define LIFETIME_MS 5000U
#define CONNECTION_MEMORY ((size_t)8 << 10)
#define TEXT_MAX ((size_t)64 << 20)
#define EXCLUDES_MAX 16U

/* One connection. The list is ordered by age. */
struct guest {
    struct guest *prev, *next;
    int fd;
    uint64_t deadline_ms;
    bool cut;
};

struct probe_port {
    struct stw_probes *probes;
    struct MHD_Daemon *daemon; /* NULL: off */
    uint16_t port;
    int listen_fd, epoll_fd;
    unsigned count;
    struct guest *first, *last;
};

struct stw_probes {
    struct stw_probes_config c;
    struct probe_port health, metrics;
    pthread_t thread;
    bool started;
    int wake_fd;
    _Atomic bool stopping, finish;
};

static enum MHD_Result send_answer(struct MHD_Connection *mhd, int code, const char *type,
                                   struct stw_buf *text)
{
    static const char *const last[] = {MHD_HTTP_HEADER_CONNECTION, "close", NULL};
    return stw_plain_answer(mhd, code, type, last, text);
}

static enum MHD_Result answer_text(struct MHD_Connection *mhd, int code, const char *words)
{
    struct stw_buf text = STW_BUF_INIT(1024);
    stw_buf_adds(&text, words);
    return send_answer(mhd, code, STW_PLAIN_TEXT, &text);
}

struct excludes {
    const char *names[EXCLUDES_MAX + 1];
    unsigned count;
};

static enum MHD_Result add_exclude(void *cls, enum MHD_ValueKind kind, const char *key,
                                   const char *value)
{
    struct excludes *x = cls;
    (void)kind;
    if (value && stw_streq(key, "exclude") && x->count < EXCLUDES_MAX)
        x->names[x->count++] = value;
    return MHD_YES;
}

static bool has_argument(struct MHD_Connection *mhd, const char *name)
{
    return MHD_lookup_connection_value_n(mhd, MHD_GET_ARGUMENT_KIND, name, strlen(name), NULL,
                                         NULL) == MHD_YES;
}

static enum MHD_Result answer_health(struct stw_probes *p, struct MHD_Connection *mhd,
                                     const char *url)
{
    static const char *const endpoints[] = {"healthz", "livez", "readyz"};
    struct excludes x = {0};
    struct stw_buf text = STW_BUF_INIT(65536);
    size_t name = strcspn(url + 1, "/");
    const char *rest = url + 1 + name;
    (void)MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, add_exclude, &x);
    for (size_t i = 0; i < STW_COUNT(endpoints); i++) {
        struct stw_check_query q = {.endpoint = endpoints[i],
                                    .only = rest[0] && rest[1] ? rest + 1 : NULL,
                                    .verbose = has_argument(mhd, "verbose"),
                                    .exclude = x.names};
        if (strlen(endpoints[i]) != name || memcmp(url + 1, endpoints[i], name) != 0)
            continue;
        bool ready = stw_streq(endpoints[i], "readyz");
        int code =
            stw_checks_run(&q, ready ? p->c.ready : p->c.live, atomic_load(&p->stopping), &text);
        return send_answer(mhd, code, STW_PLAIN_TEXT, &text);
    }
    return answer_text(
        mhd, 404, "not found; try /healthz, /livez or /readyz, with ?verbose for all checks\n");
}

static enum MHD_Result answer_metrics(struct stw_probes *p, struct MHD_Connection *mhd,
                                      const char *url)
{
    if (!stw_streq(url, "/metrics"))
        return answer_text(mhd, 404, "not found; try /metrics\n");
    struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_metrics_render(p->c.metrics, &text);
    return send_answer(mhd, 200, STW_PLAIN_METRICS, &text);
}

static enum MHD_Result handle_probe_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                            const char *method, const char *version,
                                            const char *data, size_t *data_size, void **state)
{
    struct probe_port *d = cls;
    (void)version, (void)data, (void)data_size, (void)state;
    if (url[0] != '/')
        return answer_text(mhd, 400, "bad request\n");
    if (!stw_streq(method, MHD_HTTP_METHOD_GET) && !stw_streq(method, MHD_HTTP_METHOD_HEAD))
        return answer_text(mhd, 405, "only GET and HEAD are answered here\n");
    if (d == &d->probes->health)
        return answer_health(d->probes, mhd, url);
    return answer_metrics(d->probes, mhd, url);
}

static void add_guest(struct probe_port *d, struct MHD_Connection *mhd, void **context)
{
    struct guest *g = calloc(1, sizeof(*g));
    int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    d->count++;
    *context = g;
    if (!g) {
        (void)shutdown(fd, SHUT_RDWR);
        return;
    }
    g->fd = fd;
    g->deadline_ms = stw_now_ms(&stw_clock_system) + LIFETIME_MS;
    g->prev = d->last;
    *(d->last ? &d->last->next : &d->first) = g;
    d->last = g;
}

static void remove_guest(struct probe_port *d, struct guest *g)
{
    d->count--;
    if (!g)
        return;
    *(g->prev ? &g->prev->next : &d->first) = g->next;
    *(g->next ? &g->next->prev : &d->last) = g->prev;
    free(g);
}

static void notify_guest(void *cls, struct MHD_Connection *mhd, void **context,
                         enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        add_guest(cls, mhd, context);
    else
        remove_guest(cls, *context);
}

/* Cuts expired connections, and the oldest when there are too many. The library closes them. */
static int cut_expired_guests(struct probe_port *d)
{
    uint64_t now = stw_now_ms(&stw_clock_system);
    unsigned spare = d->count;
    for (struct guest *g = d->first; g; g = g->next) {
        if (g->deadline_ms > now && spare < CONNECTIONS_MAX)
            return (int)(g->deadline_ms - now);
        if (!g->cut)
            (void)shutdown(g->fd, SHUT_RDWR);
        g->cut = true;
        spare--;
    }
    return d->first ? 10 : -1;
}

static void accept_guests(struct probe_port *d)
{
    for (unsigned i = 0; i < CONNECTIONS_MAX && d->count < 2 * CONNECTIONS_MAX; i++) {
        struct sockaddr_storage addr;
        socklen_t len = sizeof(addr);
        int fd =
            accept4(d->listen_fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        (void)MHD_add_connection(d->daemon, fd, (struct sockaddr *)&addr, len);
    }
}

static int choose_sooner_wait(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : STW_MIN(a, b);
}

static int wait_ms(struct probe_port *d)
{
    MHD_UNSIGNED_LONG_LONG library;
    if (!d->daemon)
        return -1;
    int own = cut_expired_guests(d);
    return MHD_get_timeout(d->daemon, &library) == MHD_YES
               ? choose_sooner_wait(own, (int)STW_MIN(library, 1000U))
               : own;
}

static void serve_probe_port(struct probe_port *d, const struct pollfd *listener)
{
    if (!d->daemon)
        return;
    if (listener->revents)
        accept_guests(d);
    (void)MHD_run(d->daemon);
}

static void *run_probes(void *arg)
{
    struct stw_probes *p = arg;
    while (!atomic_load(&p->finish)) {
        struct pollfd fds[] = {{.fd = p->wake_fd, .events = POLLIN},
                               {.fd = p->health.listen_fd, .events = POLLIN},
                               {.fd = p->health.epoll_fd, .events = POLLIN},
                               {.fd = p->metrics.listen_fd, .events = POLLIN},
                               {.fd = p->metrics.epoll_fd, .events = POLLIN}};
        (void)poll(fds, STW_COUNT(fds),
                   choose_sooner_wait(wait_ms(&p->health), wait_ms(&p->metrics)));
        serve_probe_port(&p->health, &fds[1]);
        serve_probe_port(&p->metrics, &fds[3]);
    }
    return NULL;
}

static int open_probe_port(struct probe_port *d, const char *address, struct stw_error *err)
{
    if (!address || stw_streq(address, "0"))
        return 0;
    if (stw_listen(address, &d->listen_fd, &d->port, err) != 0)
        return -1;
    d->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, handle_probe_request, d,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT,
        4 * CONNECTIONS_MAX, MHD_OPTION_NOTIFY_CONNECTION, notify_guest, d, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        d->daemon ? MHD_get_daemon_info(d->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot start the HTTP server on %s: %s", address,
                        strerrordesc_np(errno));
    d->epoll_fd = info->epoll_fd;
    return 0;
}

static int start_thread(struct stw_probes *p, struct stw_error *err)
{
    if (stw_thread_start(&p->thread, "probes", 0, run_probes, p, err) != 0)
        return -1;
    p->started = true;
    return 0;
}

int stw_probes_create(const struct stw_probes_config *config, struct stw_probes **ret,
                      struct stw_error *err)
{
    struct stw_probes *p = calloc(1, sizeof(*p));
    if (!p)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the probes");
    p->c = *config;
    p->health = p->metrics = (struct probe_port){.probes = p, .listen_fd = -1, .epoll_fd = -1};
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int status =
        p->wake_fd < 0 ? stw_fail(err, STW_ERR_INTERNAL, "no descriptor for the probes") : 0;
    if (status == 0)
        status = open_probe_port(&p->health, config->health_address, err);
    if (status == 0)
        status = open_probe_port(&p->metrics, config->metrics_address, err);
    if (status == 0)
        status = start_thread(p, err);
    if (status != 0)
        stw_probes_destroy(p);
    else
        *ret = p;
    return status;
}

uint16_t stw_probes_health_port(const struct stw_probes *p)
{
    return p->health.port;
}

uint16_t stw_probes_metrics_port(const struct stw_probes *p)
{
    return p->metrics.port;
}

void stw_probes_stopping(struct stw_probes *p)
{
    atomic_store(&p->stopping, true);
}

static void close_probe_port(struct probe_port *d)
{
    if (d->daemon)
        MHD_stop_daemon(d->daemon);
    stw_closep(&d->listen_fd);
}

void stw_probes_destroy(struct stw_probes *p)
{
    uint64_t one = 1;
    if (!p)
        return;
    atomic_store(&p->finish, true);
    if (p->started) {
        (void)!write(p->wake_fd, &one, sizeof(one));
        (void)pthread_join(p->thread, NULL);
    }
    close_probe_port(&p->health);
    close_probe_port(&p->metrics);
    stw_closep(&p->wake_fd);
    free(p);
}
