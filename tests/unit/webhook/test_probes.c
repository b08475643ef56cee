/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/probes.h"

#include "base/util.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cmocka.h>

static int dial(uint16_t port)
{
    const struct timeval patience = {.tv_sec = 10};
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

/* The whole reply: the server closes the connection after each. */
static void ask(uint16_t port, const char *line, struct stw_buf *reply)
{
    char request[256], piece[4096];
    int fd = dial(port),
        len = snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: x\r\n\r\n", line);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    stw_buf_clear(reply);
    for (ssize_t n = recv(fd, piece, sizeof(piece), 0); n > 0;
         n = recv(fd, piece, sizeof(piece), 0))
        stw_buf_add(reply, piece, (size_t)n);
    (void)close(fd);
}

static bool no_caches(void *ctx, char *why, size_t size)
{
    bool *synced = ctx;
    (void)snprintf(why, size, "mywebs are not listed yet");
    return *synced;
}

static void assert_reply(uint16_t port, const char *line, const char *status, const char *text)
{
    stw_autobuf struct stw_buf reply = STW_BUF_INIT(1 << 20);
    ask(port, line, &reply);
    if (strncmp(stw_buf_str(&reply), status, strlen(status)) != 0 ||
        !strstr(stw_buf_str(&reply), text))
        fail_msg("%s: %s", line, stw_buf_str(&reply));
}

static void test_probe_server_answers(void **state)
{
    bool synced = false;
    const struct stw_probe ready[] = {{"caches", no_caches, &synced}, {0}};
    struct stw_metrics *m = stw_metrics_create("steward");
    struct stw_probes_config c = {.health_address = "127.0.0.1:0",
                                  .metrics_address = "127.0.0.1:0",
                                  .ready = ready,
                                  .metrics = m};
    struct stw_probes *p = NULL;
    struct stw_error err = {0};
    (void)state;
    stw_series_set(STW_SERIES0(stw_metrics_family(m, STW_GAUGE, "test_gauge", "Help.", NULL, NULL)),
                   7);
    assert_int_equal(stw_probes_create(&c, &p, &err), 0);
    uint16_t health = stw_probes_health_port(p), metrics = stw_probes_metrics_port(p);
    assert_reply(health, "GET /healthz", "HTTP/1.1 200", "\r\n\r\nok");
    assert_reply(health, "GET /readyz", "HTTP/1.1 500",
                 "[-]caches failed: mywebs are not listed yet");
    assert_reply(health, "GET /readyz?exclude=caches&verbose", "HTTP/1.1 200",
                 "[+]caches excluded: ok");
    assert_reply(health, "GET /readyz/caches", "HTTP/1.1 500", "internal server error: mywebs");
    synced = true;
    assert_reply(health, "GET /readyz?verbose=1", "HTTP/1.1 200", "readyz check passed");
    assert_reply(health, "GET /livez", "HTTP/1.1 200", "ok");
    assert_reply(health, "HEAD /readyz", "HTTP/1.1 200", "\r\n\r\n");
    assert_reply(health, "GET /metrics", "HTTP/1.1 404", "not found");
    assert_reply(health, "POST /healthz", "HTTP/1.1 405", "Allow: GET, HEAD");
    assert_reply(metrics, "GET /metrics", "HTTP/1.1 200",
                 "text/plain; version=0.0.4; charset=utf-8");
    assert_reply(metrics, "GET /metrics", "HTTP/1.1 200", "\ntest_gauge 7\n");
    assert_reply(metrics, "GET /healthz", "HTTP/1.1 404", "/metrics");
    stw_probes_stopping(p);
    assert_reply(health, "GET /readyz", "HTTP/1.1 500", "[-]shutdown failed: shutting down");
    assert_reply(health, "GET /healthz", "HTTP/1.1 200", "ok");
    stw_probes_destroy(p);
    stw_metrics_destroy(m);
}

/* Far more silent connections than the limit: the kubelet still gets its reply. */
static void test_silent_connections_do_not_block_the_probe(void **state)
{
    enum { CROWD = 400 };
    struct stw_probes_config c = {.health_address = "127.0.0.1:0", .metrics_address = "0"};
    struct stw_probes *p = NULL;
    struct stw_error err = {0};
    int crowd[CROWD];
    (void)state;
    assert_int_equal(stw_probes_create(&c, &p, &err), 0);
    assert_int_equal(stw_probes_metrics_port(p), 0);
    for (int i = 0; i < CROWD; i++)
        crowd[i] = dial(stw_probes_health_port(p));
    assert_reply(stw_probes_health_port(p), "GET /healthz", "HTTP/1.1 200", "ok");
    for (int i = 0; i < CROWD; i++)
        (void)close(crowd[i]);
    stw_probes_destroy(p);
}

static void test_probe_address_in_use_is_an_error(void **state)
{
    char address[32];
    struct stw_probes_config c = {.health_address = "127.0.0.1:0", .metrics_address = "0"};
    struct stw_probes *p = NULL, *q = NULL;
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_probes_create(&c, &p, &err), 0);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)stw_probes_health_port(p));
    c.health_address = address;
    assert_int_equal(stw_probes_create(&c, &q, &err), -1);
    assert_null(q);
    assert_non_null(strstr(err.text, address));
    assert_non_null(strstr(err.text, "in use"));
    stw_probes_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe_server_answers),
        cmocka_unit_test(test_silent_connections_do_not_block_the_probe),
        cmocka_unit_test(test_probe_address_in_use_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
