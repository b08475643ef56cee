/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate alone.  The test enters the connections that it is handed at once, as the library would,
 * and leaves at the end. */
#include "webhook/gate_priv.h"

#include "base/process/memory_budget.h"
#include "base/util.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define CONNECTION 1000 /* bytes */
#define GUESTS_MAX 64
#define PATIENCE_MS 20000U

struct fixture {
    struct stw_gate *gate;
    uint16_t port;
    pthread_mutex_t lock;
    struct stw_gate_entry guests[GUESTS_MAX];
    unsigned count;
    _Atomic bool slow; /* enters none: connections handed over wait in `waiting` */
    _Atomic unsigned waiting_count;
    int waiting[GUESTS_MAX];
    /* a clock that the test sets */
    _Atomic uint64_t now_ms;
    struct stw_clock clock;
};

static uint64_t fixture_now(void *ctx)
{
    struct fixture *h = ctx;
    return atomic_load(&h->now_ms);
}

static int fixture_enter(void *ctx, int fd, const struct sockaddr *addr, socklen_t len)
{
    struct fixture *h = ctx;
    (void)addr, (void)len;
    if (atomic_load(&h->slow)) {
        h->waiting[atomic_load(&h->waiting_count)] = fd;
        atomic_fetch_add(&h->waiting_count, 1);
        return 0;
    }
    (void)pthread_mutex_lock(&h->lock);
    struct stw_gate_entry *e = &h->guests[h->count++];
    (void)pthread_mutex_unlock(&h->lock);
    stw_gate_enter(h->gate, e, fd);
    return 0;
}

static void fixture_open(struct fixture *h, uint32_t limit)
{
    struct stw_error err = {0};
    struct stw_gate_config c = {.address = "127.0.0.1:0",
                                .limit = limit,
                                .request_timeout_ms = 1000,
                                .idle_timeout_ms = 60000,
                                .connection_bytes = CONNECTION,
                                .clock = &h->clock,
                                .hand = fixture_enter,
                                .ctx = h};
    memset(h, 0, sizeof(*h));
    (void)pthread_mutex_init(&h->lock, NULL);
    h->clock = (struct stw_clock){.ctx = h, .monotonic_ms = fixture_now};
    atomic_store(&h->now_ms, 1000000);
    assert_int_equal(stw_gate_create(&c, &h->gate, &err), 0);
    h->port = stw_gate_port(h->gate);
}

static unsigned fixture_count(struct fixture *h)
{
    (void)pthread_mutex_lock(&h->lock);
    unsigned n = h->count;
    (void)pthread_mutex_unlock(&h->lock);
    return n;
}

static void fixture_close(struct fixture *h)
{
    assert_true(stw_gate_listening(h->gate));
    stw_gate_close(h->gate);
    assert_false(stw_gate_listening(h->gate));
    for (unsigned i = 0; i < h->count; i++) {
        int fd = h->guests[i].fd;
        stw_gate_leave(h->gate, &h->guests[i]);
        (void)close(fd);
    }
    stw_gate_destroy(h->gate);
    (void)pthread_mutex_destroy(&h->lock);
}

static int dial(const struct fixture *h)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(h->port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

/* Connects a client; returns when it was handed over. */
static int come(struct fixture *h)
{
    unsigned before = fixture_count(h);
    int fd = dial(h);
    uint64_t end = stw_now_ms(&stw_clock_system) + PATIENCE_MS;
    while (fixture_count(h) == before && stw_now_ms(&stw_clock_system) < end)
        (void)poll(NULL, 0, 1);
    return fd;
}

/* Whether the gate closes the connection within `patience_ms`. */
static bool is_cut(int fd, unsigned patience_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char c;
    return poll(&p, 1, (int)patience_ms) == 1 && recv(fd, &c, 1, MSG_DONTWAIT) <= 0;
}

static void test_oldest_unserved_connection_is_closed_first(void **state)
{
    struct fixture h;
    int fd[4];
    (void)state;
    fixture_open(&h, 3);
    for (int i = 0; i < 3; i++)
        fd[i] = come(&h);
    /* the first is served, so that the second is the oldest of the others */
    stw_gate_begin(h.gate, &h.guests[0], 1000000);
    stw_gate_end(h.gate, &h.guests[0], 1000000, true);
    fd[3] = come(&h);
    assert_true(is_cut(fd[1], PATIENCE_MS));
    assert_false(is_cut(fd[0], 0));
    assert_false(is_cut(fd[2], 0));
    assert_false(is_cut(fd[3], 0));
    for (int i = 0; i < 4; i++)
        (void)close(fd[i]);
    fixture_close(&h);
}

/* Whether the share has `want` bytes in use, as soon as the gate has entered all connections. */
static bool counts(size_t want)
{
    uint64_t end = stw_now_ms(&stw_clock_system) + PATIENCE_MS;
    while (stw_share_facts(STW_SHARE_ADMISSION).used != want && stw_now_ms(&stw_clock_system) < end)
        (void)poll(NULL, 0, 1);
    return stw_share_facts(STW_SHARE_ADMISSION).used == want;
}

/* Also one that is cut, until the library has closed it. */
static void test_connections_and_requests_count_in_the_share(void **state)
{
    struct fixture h;
    (void)state;
    fixture_open(&h, 2);
    int first = come(&h), second = come(&h);
    assert_true(counts(2 * CONNECTION));
    stw_gate_hold(&h.guests[0], 5000);
    stw_gate_hold(&h.guests[1], 900);
    assert_true(counts(2 * CONNECTION + 5900));
    stw_gate_hold(&h.guests[1], 400);
    assert_true(counts(2 * CONNECTION + 5400));
    int third = come(&h);
    assert_true(counts(3 * CONNECTION + 5400));
    assert_true(stw_share_facts(STW_SHARE_ADMISSION).peak >= 3 * CONNECTION + 5400);
    (void)close(first);
    (void)close(second);
    (void)close(third);
    fixture_close(&h);
    assert_true(counts(0));
}

static void serve_all(struct fixture *h, uint64_t now)
{
    for (unsigned i = 0; i < h->count; i++) {
        stw_gate_begin(h->gate, &h->guests[i], now);
        stw_gate_end(h->gate, &h->guests[i], now, true);
    }
}

static void test_longest_idle_connection_is_closed_next(void **state)
{
    struct fixture h;
    int fd[4];
    (void)state;
    fixture_open(&h, 2);
    fd[0] = come(&h);
    fd[1] = come(&h);
    serve_all(&h, 1000000);
    /* all were just served: the new connection is closed */
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(h.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    fd[2] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd[2], (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_true(is_cut(fd[2], PATIENCE_MS));
    /* later the first has a request, and the second has been idle for two seconds */
    atomic_store(&h.now_ms, 1002000);
    stw_gate_begin(h.gate, &h.guests[0], 1002000);
    fd[3] = come(&h);
    assert_true(is_cut(fd[1], PATIENCE_MS));
    assert_false(is_cut(fd[0], 0));
    for (int i = 0; i < 4; i++)
        (void)close(fd[i]);
    fixture_close(&h);
}

/* The library is slow, and has not entered the new connections yet.  A served client stays, and new
 * ones wait until it is known which connection must be closed. */
static void test_served_clients_stay_while_many_connect(void **state)
{
    struct fixture h;
    (void)state;
    fixture_open(&h, 2);
    int served = come(&h);
    serve_all(&h, 1000000);
    atomic_store(&h.now_ms, 1005000);
    atomic_store(&h.slow, true);
    int first = dial(&h), second = dial(&h);
    for (int i = 0; i < 2000 && atomic_load(&h.waiting_count) == 0; i++)
        (void)poll(NULL, 0, 1);
    assert_false(is_cut(second, 100));
    assert_int_equal(atomic_load(&h.waiting_count), 1);
    assert_false(is_cut(served, 0));
    atomic_store(&h.slow, false);
    stw_gate_enter(h.gate, &h.guests[h.count++], h.waiting[0]);
    assert_true(is_cut(first, PATIENCE_MS));
    assert_false(is_cut(served, 0));
    assert_false(is_cut(second, 0));
    (void)close(served);
    (void)close(first);
    (void)close(second);
    fixture_close(&h);
}

/* Go's client may open a connection that it does not use until much later. */
static void test_unused_connection_is_kept_after_handshake(void **state)
{
    struct fixture h;
    (void)state;
    fixture_open(&h, 10);
    int spare = come(&h);
    stw_gate_settle(h.gate, &h.guests[0], 1000500);
    atomic_store(&h.now_ms, 1050000);
    assert_false(is_cut(spare, 300));
    stw_gate_begin(h.gate, &h.guests[0], 1050000);
    atomic_store(&h.now_ms, 1050999);
    assert_false(is_cut(spare, 300));
    /* after a request without a decision, the next gets at most a quarter of the time */
    stw_gate_end(h.gate, &h.guests[0], 1050999, false);
    stw_gate_begin(h.gate, &h.guests[0], 1050999);
    atomic_store(&h.now_ms, 1051249);
    assert_true(is_cut(spare, PATIENCE_MS));
    (void)close(spare);
    fixture_close(&h);
}

static void test_unused_connection_ends_at_the_idle_timeout(void **state)
{
    struct fixture h;
    (void)state;
    fixture_open(&h, 10);
    int spare = come(&h);
    stw_gate_settle(h.gate, &h.guests[0], 1000500);
    assert_int_equal(stw_gate_unfinished(h.gate), 1); /* its request may be on its way */
    atomic_store(&h.now_ms, 1001500);
    assert_int_equal(stw_gate_unfinished(h.gate), 0);
    atomic_store(&h.now_ms, 1060499);
    assert_false(is_cut(spare, 300));
    atomic_store(&h.now_ms, 1060500);
    assert_true(is_cut(spare, PATIENCE_MS));
    (void)close(spare);
    fixture_close(&h);
}

static void test_late_first_request_gets_its_full_time(void **state)
{
    struct fixture h;
    (void)state;
    fixture_open(&h, 10);
    int late = come(&h);
    atomic_store(&h.now_ms, 1000999);
    stw_gate_begin(h.gate, &h.guests[0], 1000999);
    atomic_store(&h.now_ms, 1001200);
    assert_false(is_cut(late, 300));
    atomic_store(&h.now_ms, 1001300);
    assert_true(is_cut(late, PATIENCE_MS));
    (void)close(late);
    fixture_close(&h);
}

static void test_request_timeout_closes_the_connection(void **state)
{
    struct fixture h;
    (void)state;
    fixture_open(&h, 10);
    int slow = come(&h), kept = come(&h);
    stw_gate_begin(h.gate, &h.guests[1], 1000000);
    stw_gate_end(h.gate, &h.guests[1], 1000000, true);
    atomic_store(&h.now_ms, 1000999);
    assert_false(is_cut(slow, 300));
    atomic_store(&h.now_ms, 1001000);
    assert_true(is_cut(slow, PATIENCE_MS));
    assert_false(is_cut(kept, 300));
    /* a request on a kept connection gets the whole time again */
    atomic_store(&h.now_ms, 1010000);
    stw_gate_begin(h.gate, &h.guests[1], 1010000);
    atomic_store(&h.now_ms, 1011000);
    assert_true(is_cut(kept, PATIENCE_MS));
    (void)close(slow);
    (void)close(kept);
    fixture_close(&h);
}

static void test_idle_timeout_closes_the_connection(void **state)
{
    struct fixture h;
    (void)state;
    fixture_open(&h, 10);
    int kept = come(&h);
    serve_all(&h, 1000000);
    atomic_store(&h.now_ms, 1059999);
    assert_false(is_cut(kept, 300));
    atomic_store(&h.now_ms, 1060000);
    assert_true(is_cut(kept, PATIENCE_MS));
    (void)close(kept);
    fixture_close(&h);
}

static void test_unfinished_connections_are_counted(void **state)
{
    struct fixture h;
    (void)state;
    fixture_open(&h, 10);
    assert_int_equal(stw_gate_unfinished(h.gate), 0);
    int fd = come(&h); /* in its handshake */
    assert_int_equal(stw_gate_unfinished(h.gate), 1);
    stw_gate_begin(h.gate, &h.guests[0], 1000000);
    assert_int_equal(stw_gate_unfinished(h.gate), 1);
    stw_gate_end(h.gate, &h.guests[0], 1000000, true);
    assert_int_equal(stw_gate_unfinished(h.gate), 0);
    (void)close(fd);
    fixture_close(&h);
}

static void test_port_in_use_is_an_error(void **state)
{
    struct fixture h;
    struct stw_error err = {0};
    struct stw_gate *second = NULL;
    char address[32];
    (void)state;
    fixture_open(&h, 10);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", h.port);
    struct stw_gate_config c = {.address = address, .clock = &h.clock, .limit = 1};
    assert_int_equal(stw_gate_create(&c, &second, &err), -1);
    assert_null(second);
    assert_non_null(strstr(err.text, "Address already in use"));
    fixture_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oldest_unserved_connection_is_closed_first),
        cmocka_unit_test(test_connections_and_requests_count_in_the_share),
        cmocka_unit_test(test_longest_idle_connection_is_closed_next),
        cmocka_unit_test(test_served_clients_stay_while_many_connect),
        cmocka_unit_test(test_unused_connection_is_kept_after_handshake),
        cmocka_unit_test(test_unused_connection_ends_at_the_idle_timeout),
        cmocka_unit_test(test_late_first_request_gets_its_full_time),
        cmocka_unit_test(test_request_timeout_closes_the_connection),
        cmocka_unit_test(test_idle_timeout_closes_the_connection),
        cmocka_unit_test(test_unfinished_connections_are_counted),
        cmocka_unit_test(test_port_in_use_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
