/* SPDX-License-Identifier: Apache-2.0
 *
 * /metrics over HTTPS in this process, with concurrent readers.  The API server is a function here;
 * tests/e2e/test_metrics_access.py and test_top.py use a real one. */
#include "webhook/metrics_server.h"

#include "base/util.h"
#include "pki.h"

#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

#define READERS 8
#define ROUNDS 20

static gnutls_certificate_credentials_t trust_all;

static const struct stw_operator op = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward"};

static int ask(void *ctx, const char *path, const struct stw_buf *review, struct stw_buf *ret,
               struct stw_error *err)
{
    (void)ctx, (void)err;
    if (strstr(path, "tokenreviews"))
        stw_buf_addf(ret, "{\"status\":{\"authenticated\":%s,\"user\":{\"username\":\"u\"}}}",
                     strstr(stw_buf_str(review), "\"good") ? "true" : "false");
    else
        stw_buf_adds(ret, "{\"status\":{\"allowed\":true}}");
    return 0;
}

static void write_page(void *ctx, struct stw_buf *out)
{
    stw_buf_addf(out, "{\"page\":%d}", *(int *)ctx);
}

static int page_number = 5;

static struct stw_metrics_server *start(struct stw_metrics *m)
{
    struct stw_access_config access = {.ask = ask, .clock = &stw_clock_system, .op = &op};
    struct stw_metrics_server_config c = {
        .address = "127.0.0.1:0",
        .clock = &stw_clock_system,
        .metrics = m,
        .page = {.path = "/debug/page", .write = write_page, .ctx = &page_number}};
    struct stw_metrics_server *s = NULL;
    struct stw_error err = {0};
    if (stw_access_create(&access, &c.access, &err) != 0 ||
        stw_metrics_server_create(&c, &s, &err) != 0)
        fail_msg("%s", err.text);
    return s;
}

static void use(struct stw_metrics_server *s, const struct stw_pem_pair *pair)
{
    struct stw_error err = {0};
    if (stw_metrics_server_set_certificate(s, pair->cert, pair->key, &err) != 0)
        fail_msg("%s", err.text);
}

struct client {
    int fd;
    gnutls_session_t tls;
};

/* 0, or GnuTLS' error; no assertions, because threads call it. The client's address is
 * 127.0.0.`host`. */
static int dial_from(struct client *c, uint32_t host, uint16_t port)
{
    const struct timeval patience = {.tv_sec = 20};
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       own = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffU) | host)};
    *c = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (bind(c->fd, (struct sockaddr *)&own, sizeof(own)) != 0 ||
        connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
        gnutls_init(&c->tls, GNUTLS_CLIENT) != 0)
        return -1;
    (void)gnutls_set_default_priority(c->tls);
    (void)gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, trust_all);
    gnutls_transport_set_int(c->tls, c->fd);
    return gnutls_handshake(c->tls);
}

static int dial(struct client *c, uint16_t port)
{
    return dial_from(c, 1, port);
}

static void hang_up(struct client *c)
{
    if (c->tls)
        gnutls_deinit(c->tls);
    (void)close(c->fd);
}

/* The status of one request on a connection that stays open; 0 if the connection ended.  A token with
 * a colon is headers. */
static int get(struct client *c, const char *path, const char *token, char *reply, size_t size)
{
    char head[512];
    size_t got = 0;
    int status = 0,
        len = snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: x\r\n%s%s%s\r\n", path,
                       !token               ? ""
                       : strchr(token, ':') ? ""
                                            : "Authorization: Bearer ",
                       token ? token : "", token ? "\r\n" : "");
    reply[0] = '\0';
    if (gnutls_record_send(c->tls, head, (size_t)len) != len)
        return 0;
    while (got + 1 < size) {
        ssize_t n = gnutls_record_recv(c->tls, reply + got, size - 1 - got);
        if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
            continue;
        if (n <= 0)
            break;
        reply[got += (size_t)n] = '\0';
        const char *body = strstr(reply, "\r\n\r\n"), *length = strstr(reply, "Content-Length: ");
        if (body && length && strlen(body + 4) >= strtoul(length + 16, NULL, 10))
            break;
    }
    return sscanf(reply, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

static void expect(struct client *c, const char *path, const char *token, int status,
                   const char *words)
{
    char reply[8192];
    int got = get(c, path, token, reply, sizeof(reply));
    if (got != status || !strstr(reply, words))
        fail_msg("%s with %s: %d %s", path, token ? token : "nothing", got, reply);
}

static void test_metrics_server_answers(void **state)
{
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_pem_pair pair = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_metrics_server *s = start(m);
    struct client c;
    (void)state;
    stw_series_set(STW_SERIES0(stw_metrics_family(m, STW_GAUGE, "test_gauge", "Help.", NULL, NULL)),
                   7);
    assert_int_not_equal(dial(&c, stw_metrics_server_port(s)), 0); /* no certificate yet */
    hang_up(&c);
    use(s, &pair);
    assert_int_equal(dial(&c, stw_metrics_server_port(s)), 0);
    expect(&c, "/metrics", NULL, 401, "WWW-Authenticate: Bearer");
    expect(&c, "/metrics", "bad", 401, "does not know this token");
    expect(&c, "/metrics", "good", 200, "\ntest_gauge 7\n");
    expect(&c, "/", "good", 404, "try /metrics");
    expect(&c, "/debug/page", NULL, 401, "WWW-Authenticate: Bearer");
    expect(&c, "/debug/page", "bad", 401, "does not know this token");
    expect(&c, "/debug/page", "good", 200, "\r\n\r\n{\"page\":5}");
    expect(&c, "/debug/page", "good", 200, "Content-Type: application/json");
    expect(&c, "/debug", "good", 404, "try /metrics");
    /* Through the API server's proxy, which removes Authorization. */
    expect(&c, "/debug/page", "X-Proxied-Authorization: Bearer good", 200, "{\"page\":5}");
    expect(&c, "/metrics", "X-Proxied-Authorization: Bearer good", 200, "\ntest_gauge 7\n");
    expect(&c, "/debug/page", "X-Proxied-Authorization: Bearer bad", 401, "does not know");
    expect(&c, "/debug/page", "X-Proxied-Authorization: good", 401, "Bearer TOKEN");
    expect(&c, "/debug/page", "Authorization: Bearer bad\r\nX-Proxied-Authorization: Bearer good",
           401, "does not know");
    hang_up(&c);
    stw_metrics_server_destroy(s);
    stw_metrics_destroy(m);
    stw_pem_pair_done(&pair);
}

static void *read_often(void *arg)
{
    const uint16_t *port = arg;
    char reply[8192];
    uintptr_t bad = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct client c;
        bool good = i % 2 == 0;
        int status = dial(&c, *port) == 0
                         ? get(&c, "/metrics", good ? "good" : "bad", reply, sizeof(reply))
                         : 0;
        bad += status != (good ? 200 : 401);
        hang_up(&c);
    }
    return (void *)bad;
}

static void test_certificate_change_under_many_readers(void **state)
{
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_pem_pair one = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_pem_pair two = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_metrics_server *s = start(m);
    pthread_t threads[READERS];
    uint16_t port = stw_metrics_server_port(s);
    (void)state;
    use(s, &one);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, &port), 0);
    for (int i = 0; i < ROUNDS; i++)
        use(s, i % 2 ? &one : &two);
    for (int i = 0; i < READERS; i++) {
        void *bad = NULL;
        assert_int_equal(pthread_join(threads[i], &bad), 0);
        assert_null(bad);
    }
    stw_metrics_server_destroy(s);
    stw_metrics_destroy(m);
    stw_pem_pair_done(&one);
    stw_pem_pair_done(&two);
}

/* Four strangers, each of an address of its own, try tokens until they are refused; each new token of
 * another client is still looked at. */
static void test_invalid_tokens_do_not_block_a_new_valid_one(void **state)
{
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_pem_pair pair = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_metrics_server *s = start(m);
    struct client strangers[4], prometheus;
    char token[32], reply[8192];
    (void)state;
    use(s, &pair);
    for (uint32_t i = 0; i < STW_COUNT(strangers); i++) {
        int status = 0;
        assert_int_equal(dial_from(&strangers[i], 40 + i, stw_metrics_server_port(s)), 0);
        for (int n = 0; n < 60 && status != 429; n++) {
            (void)snprintf(token, sizeof(token), "bad-%u-%d", i, n);
            status = get(&strangers[i], "/metrics", token, reply, sizeof(reply));
        }
        assert_int_equal(status, 429);
    }
    assert_int_equal(dial(&prometheus, stw_metrics_server_port(s)), 0);
    for (int n = 0; n < 3; n++) {
        (void)snprintf(token, sizeof(token), "good-%d", n);
        expect(&prometheus, "/metrics", token, 200, "");
    }
    for (size_t i = 0; i < STW_COUNT(strangers); i++)
        hang_up(&strangers[i]);
    hang_up(&prometheus);
    stw_metrics_server_destroy(s);
    stw_metrics_destroy(m);
    stw_pem_pair_done(&pair);
}

/* While another client is connected that sends nothing. */
static void test_metrics_server_ends_at_once(void **state)
{
    struct stw_pem_pair pair = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_metrics_server *s = start(m);
    struct client c, silent;
    (void)state;
    use(s, &pair);
    assert_int_equal(dial(&c, stw_metrics_server_port(s)), 0);
    expect(&c, "/metrics", "good", 200, "");
    silent = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(stw_metrics_server_port(s)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(silent.fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    uint64_t begin = stw_now_ms(&stw_clock_system);
    stw_metrics_server_destroy(s);
    assert_true(stw_now_ms(&stw_clock_system) - begin < 5000);
    hang_up(&c);
    hang_up(&silent);
    stw_metrics_destroy(m);
    stw_pem_pair_done(&pair);
}

static int set_up(void **state)
{
    (void)state;
    return gnutls_certificate_allocate_credentials(&trust_all);
}

static int tear_down(void **state)
{
    (void)state;
    gnutls_certificate_free_credentials(trust_all);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics_server_answers),
        cmocka_unit_test(test_certificate_change_under_many_readers),
        cmocka_unit_test(test_invalid_tokens_do_not_block_a_new_valid_one),
        cmocka_unit_test(test_metrics_server_ends_at_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
