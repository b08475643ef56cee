/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/gate_priv.h"

#include "base/log.h"
#include "base/process/memory_budget.h"
#include "base/pulse.h"
#include "base/thread.h"
#include "base/util.h"
#include "webhook/listen_priv.h"
#include "webhook/shares.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#define ACCEPT_BURST 64
#define CROWDED_WAIT_MS 5
#define ROOM_WAIT_MS 1000
#define REPORT_EVERY_MS 10000U
/* When all others are in use, a kept connection may be cut after this long without a request. */
#define IDLE_GRACE_MS 1000U

/* A peer address. For IPv6 the /64 network, because one host may own all of it. */
struct stw_gate_peer {
    struct stw_gate_peer *next;
    uint64_t address;
    unsigned refs;  /* connections */
    unsigned count; /* of these, not cut */
    size_t held;    /* scratch value of stw_gate_displace */
};

struct stw_gate {
    struct stw_gate_config c;
    pthread_t thread;
    int listen_fd, wake_fd;
    uint16_t port;
    _Atomic bool closing, stopping;
    _Atomic unsigned handed; /* passed to the library, not entered yet */
    struct stw_pulse pulse;

    pthread_mutex_t lock;
    pthread_cond_t closed;
    bool listening;
    struct stw_gate_entry *first, *last;
    unsigned count, cut_count;
    struct stw_gate_peer *peers;

    /* used by the gate thread */
    unsigned overdue, refused;
    _Atomic unsigned displaced;
    uint64_t report_ms;
};

static void wake_gate(struct stw_gate *g)
{
    uint64_t one = 1;
    (void)!write(g->wake_fd, &one, sizeof(one));
}

/* IPv4 as the first half of an IPv6 address that is not assigned: 0:ffff:a.b.c.d. */
static uint64_t mapped(uint32_t four)
{
    return UINT64_C(0xffff) << 32 | ntohl(four);
}

static uint64_t address_of(const struct sockaddr *addr)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    uint64_t network;
    if (addr->sa_family == AF_INET) {
        memcpy(&four, addr, sizeof(four));
        return mapped(four.sin_addr.s_addr);
    }
    if (addr->sa_family != AF_INET6)
        return 0;
    memcpy(&six, addr, sizeof(six));
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
        uint32_t last;
        memcpy(&last, six.sin6_addr.s6_addr + 12, sizeof(last));
        return mapped(last);
    }
    memcpy(&network, &six.sin6_addr, sizeof(network));
    return network ? be64toh(network) : 1; /* ::1 */
}

static struct stw_gate_peer *find_peer(const struct stw_gate *g, uint64_t address)
{
    struct stw_gate_peer *p = g->peers;
    while (p && p->address != address)
        p = p->next;
    return p;
}

static uint64_t peer_of(int fd)
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof(addr);
    if (getpeername(fd, (struct sockaddr *)&addr, &len) != 0)
        addr.ss_family = AF_UNSPEC;
    return address_of((struct sockaddr *)&addr);
}

static struct stw_gate_peer *enter_peer(struct stw_gate *g, uint64_t address)
{
    struct stw_gate_peer *p = find_peer(g, address);
    if (!p && (p = calloc(1, sizeof(*p)))) {
        p->address = address;
        p->next = g->peers;
        g->peers = p;
    }
    if (p) {
        p->refs++;
        p->count++;
    }
    return p;
}

static void leave_peer(struct stw_gate *g, struct stw_gate_peer *p)
{
    struct stw_gate_peer **at = &g->peers;
    assert(!p || p->refs > 0);
    if (!p || --p->refs > 0)
        return;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    free(p);
}

/* With the lock held. The library closes the descriptor: it sees the end of the stream. */
static void cut_connection(struct stw_gate *g, struct stw_gate_entry *e)
{
    STW_ASSERT_LOCKED(&g->lock);
    assert(!e->cut);
    e->cut = true;
    if (e->peer)
        e->peer->count--;
    g->cut_count++;
    (void)shutdown(e->fd, SHUT_RDWR);
}

/* Cuts overdue connections. Returns the milliseconds until the next check. */
static int cut_overdue_connections(struct stw_gate *g)
{
    uint64_t now = stw_now_ms(g->c.clock), next = UINT64_MAX;
    (void)pthread_mutex_lock(&g->lock);
    for (struct stw_gate_entry *e = g->first; e; e = e->next) {
        uint64_t deadline = atomic_load_explicit(&e->deadline_ms, memory_order_relaxed);
        if (e->cut)
            continue;
        if (deadline <= now) {
            cut_connection(g, e);
            g->overdue++;
        } else {
            next = STW_MIN(next, deadline);
        }
    }
    bool any = g->count > 0 || atomic_load(&g->handed) > 0;
    (void)pthread_mutex_unlock(&g->lock);
    /* Deadlines can change during the sleep, so keep it short while connections are open. */
    uint64_t longest = STW_MAX(STW_MIN(g->c.request_timeout_ms / 4U, 1000U), 10U);
    if (next == UINT64_MAX)
        return any ? (int)longest : -1;
    return (int)STW_MIN(STW_MAX(next - now, 5U), longest);
}

static bool idle_long(const struct stw_gate *g, const struct stw_gate_entry *e, uint64_t now)
{
    uint64_t deadline = atomic_load_explicit(&e->deadline_ms, memory_order_relaxed);
    return !atomic_load(&e->busy) && deadline + IDLE_GRACE_MS <= now + g->c.idle_timeout_ms;
}

/* The peer with the most connections, or that of `newcomer` if it would then have as many. NULL: no
 * peer has more than one. */
static const struct stw_gate_peer *largest_peer(const struct stw_gate *g, uint64_t newcomer)
{
    const struct stw_gate_peer *most = find_peer(g, newcomer);
    unsigned count = (most ? most->count : 0) + 1;
    for (const struct stw_gate_peer *p = g->peers; p; p = p->next) {
        if (p->count > count) {
            most = p;
            count = p->count;
        }
    }
    return most;
}

/* Whether a peer has enough connections to be a flood. If not, unserved connections of all peers go
 * first. */
static bool is_large(const struct stw_gate *g, const struct stw_gate_peer *p, uint64_t newcomer)
{
    return p && p->count + (p->address == newcomer) > STW_MAX(g->c.limit / 16U, 1U);
}

static bool is_unserved(const struct stw_gate_entry *e)
{
    return !e->cut && !atomic_load(&e->served) && !atomic_load(&e->known);
}

static struct stw_gate_entry *oldest_unserved(const struct stw_gate *g,
                                              const struct stw_gate_peer *of)
{
    for (struct stw_gate_entry *e = g->first; e; e = e->next)
        if (is_unserved(e) && (!of || e->peer == of))
            return e;
    return NULL;
}

/* Victim order: in the largest peer, the oldest connection that never got a decision; then the one
 * idle longest; then, for a newcomer of another peer, the oldest. If no peer is large, the oldest
 * of all that never got a decision goes first. Connections of known callers are cut only when
 * idle. */
static struct stw_gate_entry *pick_victim(const struct stw_gate *g, uint64_t newcomer, uint64_t now)
{
    const struct stw_gate_peer *most = largest_peer(g, newcomer);
    bool handed = atomic_load(&g->handed) > 0;
    if (!most && handed)
        return NULL; /* handed-over connections have no peer yet */
    struct stw_gate_entry *unserved = oldest_unserved(g, is_large(g, most, newcomer) ? most : NULL);
    /* Do not cut a served client while handed-over connections are still to be entered: one of
     * those can be cut then. */
    if (unserved || handed)
        return unserved;
    bool others = newcomer && (!most || most->address != newcomer);
    struct stw_gate_entry *idle = NULL, *oldest = NULL;
    for (struct stw_gate_entry *e = g->first; e; e = e->next) {
        if (e->cut || (most && e->peer != most))
            continue;
        if (!oldest && others && !atomic_load(&e->known))
            oldest = e;
        if (idle_long(g, e, now) &&
            (!idle || atomic_load(&e->deadline_ms) < atomic_load(&idle->deadline_ms)))
            idle = e;
    }
    return idle ? idle : oldest;
}

enum room { ROOM, ROOM_SOON, NO_ROOM };

/* Whether a new connection may be accepted. ROOM_SOON: handed-over connections must be entered
 * before a victim can be chosen. */
static enum room make_room(struct stw_gate *g, uint64_t newcomer)
{
    enum room room = ROOM;
    STW_LOCKED(&g->lock);
    unsigned handed = atomic_load(&g->handed);
    if (g->count - g->cut_count + handed >= g->c.limit) {
        struct stw_gate_entry *victim = pick_victim(g, newcomer, stw_now_ms(g->c.clock));
        room = victim ? ROOM : handed > 0 ? ROOM_SOON : NO_ROOM;
        if (victim) {
            cut_connection(g, victim);
            g->displaced++;
        }
    }
    return room;
}

static bool wait_for_room(struct stw_gate *g, uint64_t newcomer)
{
    enum room room = make_room(g, newcomer);
    for (int waited_ms = 0; room == ROOM_SOON && waited_ms < ROOM_WAIT_MS; waited_ms++) {
        (void)poll(NULL, 0, 1);
        room = make_room(g, newcomer);
    }
    return room == ROOM;
}

static void admit_connection(struct stw_gate *g, int fd, const struct sockaddr *addr, socklen_t len)
{
    if (!wait_for_room(g, address_of(addr))) {
        g->refused++;
        stw_share_note_refusal(STW_SHARE_ADMISSION);
        (void)close(fd);
        return;
    }
    atomic_fetch_add(&g->handed, 1);
    if (g->c.hand(g->c.ctx, fd, addr, len) != 0)
        atomic_fetch_sub(&g->handed, 1);
}

/* Out of descriptors or memory: cut one connection. The kernel keeps the new one queued until
 * then. */
static void cut_one_on_shortage(struct stw_gate *g)
{
    (void)pthread_mutex_lock(&g->lock);
    struct stw_gate_entry *victim = pick_victim(g, 0, stw_now_ms(g->c.clock));
    if (victim && g->cut_count == 0) {
        cut_connection(g, victim);
        g->displaced++;
    }
    (void)pthread_mutex_unlock(&g->lock);
    (void)poll(NULL, 0, CROWDED_WAIT_MS);
}

/* Accepts up to `most` connections. Returns whether the queue is empty. */
static bool accept_some(struct stw_gate *g, int most)
{
    for (int i = 0; i < most; i++) {
        struct sockaddr_storage addr = {0};
        socklen_t len = sizeof(addr);
        int fd =
            accept4(g->listen_fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            admit_connection(g, fd, (struct sockaddr *)&addr, len);
        else if (errno == EAGAIN)
            return true;
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            cut_one_on_shortage(g);
        /* Otherwise the peer closed before accept: go on with the next. */
    }
    return false;
}

/* Connections that were cut, but that the library has not closed yet, still have their memory. */
static bool is_crowded(struct stw_gate *g)
{
    STW_LOCKED(&g->lock);
    return g->count + atomic_load(&g->handed) >= g->c.limit + stw_connections_dying(g->c.limit);
}

/* Limits the connections passed to a slow library. The rest wait in the kernel, and no connection
 * is displaced or refused for one that is not entered yet. */
static unsigned handing_room(struct stw_gate *g)
{
    unsigned most = STW_MAX(g->c.limit / 4U, 1U), handed = atomic_load(&g->handed);
    return handed < most ? most - handed : 0;
}

static void stop_listening(struct stw_gate *g)
{
    for (int rounds = 0; rounds < 64 && !accept_some(g, ACCEPT_BURST); rounds++)
        ;
    STW_LOCKED(&g->lock);
    stw_closep(&g->listen_fd);
    g->listen_fd = -1;
    g->listening = false;
    (void)pthread_cond_broadcast(&g->closed);
}

/* Logs what was cut, at most one line in REPORT_EVERY_MS. */
static void log_cut_connections(struct stw_gate *g)
{
    uint64_t now = stw_now_ms(g->c.clock);
    if (g->overdue + g->displaced + g->refused == 0 || now < g->report_ms)
        return;
    stw_log(STW_LOG_WARN, g->c.what ? g->c.what : "admission connections were cut",
            STW_INT("tooSlow", g->overdue), STW_INT("displacedByNewer", g->displaced),
            STW_INT("refused", g->refused), STW_INT("limit", g->c.limit));
    g->overdue = g->refused = 0;
    atomic_store(&g->displaced, 0);
    g->report_ms = now + REPORT_EVERY_MS;
}

static void *run_gate(void *arg)
{
    struct stw_gate *g = arg;
    while (!atomic_load(&g->stopping)) {
        stw_pulse_answer(&g->pulse);
        int wait_ms = cut_overdue_connections(g);
        unsigned room = handing_room(g);
        bool full = room == 0 || is_crowded(g);
        struct pollfd p[] = {{.fd = g->wake_fd, .events = POLLIN},
                             {.fd = full ? -1 : g->listen_fd, .events = POLLIN}};
        (void)poll(p, STW_COUNT(p), full ? CROWDED_WAIT_MS : wait_ms);
        uint64_t ignored;
        if (p[0].revents)
            (void)!read(g->wake_fd, &ignored, sizeof(ignored));
        if (g->listening && atomic_load(&g->closing))
            stop_listening(g);
        else if (p[1].revents)
            (void)accept_some(g, (int)STW_MIN(room, (unsigned)ACCEPT_BURST));
        log_cut_connections(g);
    }
    return NULL;
}

static int open_sockets(struct stw_gate *g, struct stw_error *err)
{
    if (stw_listen(g->c.address, &g->listen_fd, &g->port, err) != 0)
        return -1;
    g->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return g->wake_fd >= 0 ? 0
                           : stw_fail(err, STW_ERR_INTERNAL, "cannot make the gate: %s",
                                      strerrordesc_np(errno));
}

static void free_gate(struct stw_gate *g)
{
    (void)pthread_cond_destroy(&g->closed);
    (void)pthread_mutex_destroy(&g->lock);
    stw_closep(&g->listen_fd);
    stw_closep(&g->wake_fd);
    free(g);
}

int stw_gate_create(const struct stw_gate_config *config, struct stw_gate **ret,
                    struct stw_error *err)
{
    struct stw_gate *g = calloc(1, sizeof(*g));
    if (!g)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the gate");
    g->c = *config;
    g->listen_fd = g->wake_fd = -1;
    g->listening = true;
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)pthread_cond_init(&g->closed, NULL);
    *ret = g; /* the first connection handed over needs it at once */
    if (open_sockets(g, err) == 0 && stw_thread_start(&g->thread, "gate", 0, run_gate, g, err) == 0)
        return 0;
    *ret = NULL;
    free_gate(g);
    return -1;
}

uint64_t stw_gate_silent_ms(struct stw_gate *g)
{
    bool wake;
    uint64_t silent = stw_pulse_silent_ms(&g->pulse, stw_now_ms(g->c.clock), &wake);
    if (wake)
        wake_gate(g);
    return silent;
}

uint16_t stw_gate_port(const struct stw_gate *g)
{
    return g->port;
}

void stw_gate_close(struct stw_gate *g)
{
    atomic_store(&g->closing, true);
    wake_gate(g);
    (void)pthread_mutex_lock(&g->lock);
    while (g->listening)
        (void)pthread_cond_wait(&g->closed, &g->lock);
    (void)pthread_mutex_unlock(&g->lock);
}

void stw_gate_destroy(struct stw_gate *g)
{
    if (!g)
        return;
    atomic_store(&g->stopping, true);
    wake_gate(g);
    (void)pthread_join(g->thread, NULL);
    free_gate(g);
}

void stw_gate_enter(struct stw_gate *g, struct stw_gate_entry *e, int fd)
{
    e->fd = fd;
    e->address = peer_of(fd);
    e->next = NULL;
    atomic_store_explicit(&e->deadline_ms, stw_now_ms(g->c.clock) + g->c.request_timeout_ms,
                          memory_order_relaxed);
    STW_LOCKED(&g->lock);
    e->peer = enter_peer(g, e->address);
    e->prev = g->last;
    *(g->last ? &g->last->next : &g->first) = e;
    g->last = e;
    g->count++;
    atomic_fetch_sub(&g->handed, 1);
    stw_share_add(STW_SHARE_ADMISSION, g->c.connection_bytes);
}

void stw_gate_leave(struct stw_gate *g, struct stw_gate_entry *e)
{
    stw_gate_hold(e, 0);
    stw_share_give_back(STW_SHARE_ADMISSION, g->c.connection_bytes);
    STW_LOCKED(&g->lock);
    assert(g->count > 0);
    *(e->prev ? &e->prev->next : &g->first) = e->next;
    *(e->next ? &e->next->prev : &g->last) = e->prev;
    g->count--;
    g->cut_count -= e->cut;
    if (e->peer && !e->cut)
        e->peer->count--;
    leave_peer(g, e->peer);
}

/* Under load, Go's HTTP client dials more connections than it needs and keeps the spare ones. If
 * the server cuts a spare connection, the client may just have chosen it for a request. If the
 * request takes more than one write, the client cannot know how much was received, so the request
 * fails and is not retried. */
void stw_gate_settle(struct stw_gate *g, struct stw_gate_entry *e, uint64_t now_ms)
{
    atomic_store_explicit(&e->deadline_ms, now_ms + g->c.idle_timeout_ms, memory_order_relaxed);
    atomic_store_explicit(&e->spare, true, memory_order_relaxed);
}

void stw_gate_begin(struct stw_gate *g, struct stw_gate_entry *e, uint64_t now_ms)
{
    atomic_store_explicit(&e->busy, true, memory_order_relaxed);
    bool spare = atomic_exchange_explicit(&e->spare, false, memory_order_relaxed);
    uint64_t before = atomic_load_explicit(&e->deadline_ms, memory_order_relaxed);
    /* Without a decision yet, each further request gets only a quarter of the timeout. */
    uint64_t deadline = spare || atomic_load_explicit(&e->served, memory_order_relaxed)
                            ? now_ms + g->c.request_timeout_ms
                            : STW_MAX(before, now_ms + g->c.request_timeout_ms / 4U);
    atomic_store_explicit(&e->deadline_ms, deadline, memory_order_relaxed);
}

void stw_gate_end(struct stw_gate *g, struct stw_gate_entry *e, uint64_t now_ms, bool served)
{
    atomic_store_explicit(&e->busy, false, memory_order_relaxed);
    if (served)
        atomic_store_explicit(&e->served, true, memory_order_relaxed);
    else if (!atomic_load_explicit(&e->served, memory_order_relaxed))
        return; /* no extension without a decision */
    atomic_store_explicit(&e->deadline_ms, now_ms + g->c.idle_timeout_ms, memory_order_relaxed);
}

void stw_gate_hold(struct stw_gate_entry *e, size_t bytes)
{
    size_t before = atomic_exchange_explicit(&e->held, bytes, memory_order_relaxed);
    if (bytes > before)
        stw_share_add(STW_SHARE_ADMISSION, bytes - before);
    else if (bytes < before)
        stw_share_give_back(STW_SHARE_ADMISSION, before - bytes);
}

bool stw_gate_displace(struct stw_gate *g, const struct stw_gate_entry *self, size_t more)
{
    struct stw_gate_entry *victim = NULL;
    const struct stw_gate_peer *most = NULL;
    size_t own = more;
    STW_LOCKED(&g->lock);
    for (struct stw_gate_peer *p = g->peers; p; p = p->next)
        p->held = 0;
    for (struct stw_gate_entry *e = g->first; e; e = e->next) {
        if (e->cut || !e->peer)
            continue;
        size_t held = atomic_load(&e->held);
        own += e->peer == self->peer ? held : 0;
        e->peer->held += held;
    }
    for (const struct stw_gate_peer *p = g->peers; p; p = p->next)
        if (p != self->peer && p->held > (most ? most->held : own))
            most = p;
    for (struct stw_gate_entry *e = g->first; most && e; e = e->next)
        if (!e->cut && e->peer == most && !atomic_load(&e->known) &&
            atomic_load(&e->held) >= more &&
            (!victim || atomic_load(&e->held) > atomic_load(&victim->held)))
            victim = e;
    if (victim) {
        cut_connection(g, victim);
        g->displaced++;
        wake_gate(g); /* so that the gate thread logs it */
    }
    return victim != NULL;
}

bool stw_gate_listening(struct stw_gate *g)
{
    int on = 0;
    socklen_t len = sizeof(on);
    STW_LOCKED(&g->lock);
    bool ok = g->listening && getsockopt(g->listen_fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == 0 &&
              on != 0;
    return ok;
}

unsigned stw_gate_hang_up(struct stw_gate *g)
{
    STW_LOCKED(&g->lock);
    for (struct stw_gate_entry *e = g->first; e; e = e->next) {
        if (!e->cut && !atomic_load(&e->busy))
            (void)shutdown(e->fd, SHUT_RD);
    }
    return g->count;
}

unsigned stw_gate_count(struct stw_gate *g)
{
    STW_LOCKED(&g->lock);
    return g->count + atomic_load(&g->handed);
}

/* A spare connection was dialled for a request that may be under way, but only for a short time. */
static bool is_unfinished(const struct stw_gate *g, const struct stw_gate_entry *e, uint64_t now)
{
    if (atomic_load(&e->busy))
        return true;
    return !atomic_load(&e->served) && !(atomic_load(&e->spare) && idle_long(g, e, now));
}

unsigned stw_gate_unfinished(struct stw_gate *g)
{
    unsigned n = atomic_load(&g->handed);
    uint64_t now = stw_now_ms(g->c.clock);
    STW_LOCKED(&g->lock);
    for (struct stw_gate_entry *e = g->first; e; e = e->next)
        n += !e->cut && is_unfinished(g, e, now);
    return n;
}
