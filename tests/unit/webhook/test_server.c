/* SPDX-License-Identifier: Apache-2.0
 *
 * The server in this process, with a TLS client: tests that need more than the command line offers
 * (limits, changing certificates).  The rest is in tests/integration/test_webhook_*.py. */
#include "webhook/server.h"

#include "base/util.h"
#include "kinds/kinds.h"
#include "pki.h"
#include "support/convertible.h"

#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

#define REVIEW                                                                                     \
    "{\"apiVersion\":\"admission.k8s.io/"                                                          \
    "v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\","                                \
    "\"kind\":{\"group\":\"operator.k8s-summit.org\",\"version\":\"v1\",\"kind\":\"MyWeb\"},"      \
    "\"resource\":{\"group\":\"operator.k8s-summit.org\",\"version\":\"v1\",\"resource\":"         \
    "\"mywebs\"},"                                                                                 \
    "\"operation\":\"CREATE\",\"object\":{\"metadata\":{\"name\":\"web\"},\"spec\":{\"image\":"    \
    "\"nginx:1\"}}}}"
#define PATH "/validate-operator-k8s-summit-org-v1-myweb"

static const struct stw_env env;
static gnutls_certificate_credentials_t trust_all;

static struct stw_server *start(struct stw_server_config c)
{
    struct stw_server *s = NULL;
    struct stw_error err = {0};
    c.bind_address = "127.0.0.1:0";
    c.kinds = c.kinds ? c.kinds : stw_kinds;
    c.env = c.env ? c.env : &env;
    c.clock = &stw_clock_system;
    if (stw_server_create(&c, &s, &err) != 0)
        fail_msg("%s", err.text);
    return s;
}

static void use(struct stw_server *s, const struct stw_pem_pair *pair)
{
    struct stw_error err = {0};
    if (stw_server_set_certificate(s, pair->cert, pair->key, &err) != 0)
        fail_msg("%s", err.text);
}

struct client {
    int fd;
    gnutls_session_t tls;
    char serial[64]; /* of the certificate it was shown */
};

static int dial(const struct stw_server *s)
{
    const struct timeval patience = {.tv_sec = 10};
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(stw_server_port(s)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

/* 0, or GnuTLS' error. */
static int handshake(struct client *c, const struct stw_server *s, const char *priorities)
{
    *c = (struct client){.fd = dial(s)};
    assert_int_equal(gnutls_init(&c->tls, GNUTLS_CLIENT), 0);
    assert_int_equal(gnutls_priority_set_direct(c->tls, priorities, NULL), 0);
    assert_int_equal(gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, trust_all), 0);
    gnutls_transport_set_int(c->tls, c->fd);
    return gnutls_handshake(c->tls);
}

static void hang_up(struct client *c)
{
    gnutls_deinit(c->tls);
    (void)close(c->fd);
}

static void send_all(struct client *c, const char *text)
{
    assert_int_equal(gnutls_record_send(c->tls, text, strlen(text)), strlen(text));
}

/* Reads head and body of one small reply.  Returns the status, or 0 if the connection ended. */
static int receive(struct client *c, char *reply, size_t size)
{
    size_t got = 0;
    int status = 0;
    reply[0] = '\0';
    while (got + 1 < size) {
        ssize_t n = gnutls_record_recv(c->tls, reply + got, size - 1 - got);
        if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
            continue; /* a session ticket came */
        if (n <= 0)
            break;
        got += (size_t)n;
        reply[got] = '\0';
        const char *body = strstr(reply, "\r\n\r\n");
        const char *length = strstr(reply, "Content-Length: ");
        if (body && length && strlen(body + 4) >= strtoul(length + 16, NULL, 10))
            break;
    }
    return sscanf(reply, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

static int post(struct client *c, const char *body, char *reply, size_t size)
{
    char head[256];
    (void)snprintf(head, sizeof(head),
                   "POST " PATH " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n",
                   strlen(body));
    send_all(c, head);
    send_all(c, body);
    return receive(c, reply, size);
}

static void test_server_certificate_is_replaced(void **state)
{
    char reply[4096];
    int64_t now = stw_wall_us(&stw_clock_system);
    struct stw_pem_pair one = make_pair(now, 30), two = make_pair(now, 30);
    struct stw_server *s = start((struct stw_server_config){.threads = 2});
    struct client before, kept, after;
    struct stw_error err = {0};
    (void)state;
    assert_int_not_equal(handshake(&before, s, "NORMAL"), 0); /* no certificate yet */
    hang_up(&before);
    use(s, &one);
    assert_int_equal(handshake(&kept, s, "NORMAL"), 0);
    assert_int_equal(post(&kept, REVIEW, reply, sizeof(reply)), 200);
    /* a pair that does not fit changes nothing */
    assert_int_equal(stw_server_set_certificate(s, one.cert, two.key, &err), -1);
    assert_non_null(strstr(err.text, "does not belong"));
    use(s, &two);
    assert_int_equal(post(&kept, REVIEW, reply, sizeof(reply)), 200); /* still with the old one */
    assert_int_equal(handshake(&after, s, "NORMAL"), 0);
    unsigned n = 0;
    const gnutls_datum_t *old = gnutls_certificate_get_peers(kept.tls, &n);
    const gnutls_datum_t *new = gnutls_certificate_get_peers(after.tls, &n);
    assert_true(old->size != new->size || memcmp(old->data, new->data, old->size) != 0);
    assert_int_equal(post(&after, REVIEW, reply, sizeof(reply)), 200);
    hang_up(&kept);
    hang_up(&after);
    stw_server_destroy(s);
    stw_pem_pair_done(&one);
    stw_pem_pair_done(&two);
}

static void test_old_tls_versions_are_refused(void **state)
{
    struct stw_pem_pair pair = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_server *s = start((struct stw_server_config){.threads = 1});
    struct client c;
    (void)state;
    use(s, &pair);
    assert_int_equal(handshake(&c, s, "NORMAL:-VERS-ALL:+VERS-TLS1.2"), 0);
    hang_up(&c);
    assert_int_equal(handshake(&c, s, "NORMAL:-VERS-ALL:+VERS-TLS1.3"), 0);
    hang_up(&c);
    assert_int_not_equal(handshake(&c, s, "NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0"), 0);
    hang_up(&c);
    stw_server_destroy(s);
    stw_pem_pair_done(&pair);
}

/* A session can be resumed, but not across certificates. */
static void test_tls_sessions_resume_with_same_certificate(void **state)
{
    char reply[4096];
    struct stw_pem_pair one = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_pem_pair two = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_server *s = start((struct stw_server_config){.threads = 1});
    gnutls_datum_t ticket = {0};
    (void)state;
    use(s, &one);
    for (int round = 0; round < 3; round++) {
        struct client c = {.fd = dial(s)};
        if (round == 2)
            use(s, &two);
        if (round == 2) { /* the connection must be younger than the certificate */
            (void)close(c.fd);
            c.fd = dial(s);
        }
        assert_int_equal(gnutls_init(&c.tls, GNUTLS_CLIENT), 0);
        assert_int_equal(gnutls_set_default_priority(c.tls), 0);
        assert_int_equal(gnutls_credentials_set(c.tls, GNUTLS_CRD_CERTIFICATE, trust_all), 0);
        gnutls_transport_set_int(c.tls, c.fd);
        if (round > 0)
            assert_int_equal(gnutls_session_set_data(c.tls, ticket.data, ticket.size), 0);
        assert_int_equal(gnutls_handshake(c.tls), 0);
        assert_int_equal(post(&c, REVIEW, reply, sizeof(reply)), 200);
        assert_int_equal(gnutls_session_is_resumed(c.tls) != 0, round == 1);
        gnutls_free(ticket.data);
        assert_int_equal(gnutls_session_get_data2(c.tls, &ticket), 0);
        hang_up(&c);
    }
    gnutls_free(ticket.data);
    stw_server_destroy(s);
    stw_pem_pair_done(&one);
    stw_pem_pair_done(&two);
}

/* Bytes that trickle in do not extend the time limit of the whole request. */
static void test_trickling_request_is_closed(void **state)
{
    char byte;
    struct stw_pem_pair pair = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_server *s =
        start((struct stw_server_config){.threads = 1, .request_timeout_ms = 400});
    struct client c;
    (void)state;
    use(s, &pair);
    assert_int_equal(handshake(&c, s, "NORMAL"), 0);
    send_all(&c, "POST " PATH " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 "Content-Length: 1000000\r\n\r\n");
    uint64_t end = stw_now_ms(&stw_clock_system) + 10000;
    bool cut = false;
    const struct timeval tick = {.tv_usec = 20000};
    (void)setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick));
    while (!cut && stw_now_ms(&stw_clock_system) < end) {
        cut = gnutls_record_send(c.tls, " ", 1) < 0;
        ssize_t n = gnutls_record_recv(c.tls, &byte, 1);
        cut |= n == 0 || (n < 0 && n != GNUTLS_E_AGAIN && n != GNUTLS_E_INTERRUPTED);
    }
    assert_true(cut);
    hang_up(&c);
    stw_server_destroy(s);
    stw_pem_pair_done(&pair);
}

/* With the limit reached by silent connections, both an established client and a newcomer are
 * served. */
static void test_silent_connections_make_way(void **state)
{
    enum { LIMIT = 16, CROWD = 80 };
    char reply[4096];
    int crowd[CROWD];
    struct stw_pem_pair pair = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_server *s =
        start((struct stw_server_config){.threads = 2, .connection_limit = LIMIT});
    struct client kept, fresh;
    (void)state;
    use(s, &pair);
    assert_int_equal(handshake(&kept, s, "NORMAL"), 0);
    assert_int_equal(post(&kept, REVIEW, reply, sizeof(reply)), 200);
    for (int i = 0; i < CROWD; i++)
        crowd[i] = dial(s);
    assert_int_equal(post(&kept, REVIEW, reply, sizeof(reply)), 200);
    assert_int_equal(handshake(&fresh, s, "NORMAL"), 0);
    assert_int_equal(post(&fresh, REVIEW, reply, sizeof(reply)), 200);
    for (int i = 0; i < CROWD; i++)
        (void)close(crowd[i]);
    hang_up(&kept);
    hang_up(&fresh);
    stw_server_destroy(s);
    stw_pem_pair_done(&pair);
}

static void test_server_drains_before_it_stops(void **state)
{
    char reply[4096];
    struct stw_pem_pair pair = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_server *s = start((struct stw_server_config){.threads = 2});
    struct client c, d;
    (void)state;
    use(s, &pair);
    assert_int_equal(handshake(&c, s, "NORMAL"), 0);
    assert_int_equal(post(&c, REVIEW, reply, sizeof(reply)), 200);
    assert_null(strstr(reply, "Connection: close"));
    stw_server_retire(s);
    assert_int_equal(post(&c, REVIEW, reply, sizeof(reply)), 200);
    assert_non_null(strstr(reply, "Connection: close"));
    assert_int_equal(handshake(&d, s, "NORMAL"), 0); /* new clients are still served */
    assert_int_equal(post(&d, REVIEW, reply, sizeof(reply)), 200);
    uint64_t before = stw_now_ms(&stw_clock_system);
    stw_server_drain(s, 5000, 0);
    assert_true(stw_now_ms(&stw_clock_system) - before < 4000); /* no request is in flight */
    hang_up(&c);
    hang_up(&d);
    stw_server_destroy(s);
    stw_pem_pair_done(&pair);
}

/* The body limit, with and without a length.  A body over the limit does not affect the next
 * request. */
static void test_request_bodies_have_a_limit(void **state)
{
    char reply[4096], body[2001];
    struct stw_pem_pair pair = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_server *s = start((struct stw_server_config){.threads = 1, .body_max_bytes = 1000});
    struct client c;
    (void)state;
    use(s, &pair);
    memset(body, ' ', sizeof(body) - 1);
    body[sizeof(body) - 1] = '\0';
    assert_int_equal(handshake(&c, s, "NORMAL"), 0);
    assert_int_equal(post(&c, REVIEW, reply, sizeof(reply)), 200);
    assert_int_equal(post(&c, body, reply, sizeof(reply)), 413);
    assert_non_null(strstr(reply, "\"RequestEntityTooLarge\""));
    hang_up(&c);
    assert_int_equal(handshake(&c, s, "NORMAL"), 0);
    send_all(&c, "POST " PATH " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n7d0\r\n");
    send_all(&c, body);
    send_all(&c, "\r\n0\r\n\r\n");
    assert_int_equal(receive(&c, reply, sizeof(reply)), 413);
    /* that body was read to its end, so that the connection can be reused */
    assert_int_equal(post(&c, REVIEW, reply, sizeof(reply)), 200);
    hang_up(&c);
    stw_server_destroy(s);
    stw_pem_pair_done(&pair);
}

static void send_long(struct client *c, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = gnutls_record_send(c->tls, text, len);
        assert_true(n > 0);
        text += n;
        len -= (size_t)n;
    }
}

/* A ConversionReview as the API server sends it for a list: objects with some data and with
 * managedFields, up to `size` bytes. */
static void write_conversion(struct stw_buf *out, size_t size)
{
    stw_buf_adds(out, "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\","
                      "\"request\":{\"uid\":\"u\",\"desiredAPIVersion\":\"example.org/v1alpha1\","
                      "\"objects\":[");
    for (unsigned i = 0; out->len < size; i++) {
        stw_buf_addf(
            out,
            "%s{\"apiVersion\":\"example.org/v1\",\"kind\":\"Site\",\"metadata\":{\"name\":"
            "\"site-%u\",\"namespace\":\"shop\",\"uid\":\"%u\",\"managedFields\":[{\"manager\":"
            "\"kubectl\",\"fieldsV1\":{",
            i ? "," : "", i, i);
        for (unsigned f = 0; f < 40; f++)
            stw_buf_addf(out, "%s\"f:%u\":{}", f ? "," : "", f);
        stw_buf_adds(out, "}}]},\"spec\":{\"host\":\"");
        for (unsigned f = 0; f < 20; f++)
            stw_buf_adds(out, "shop.example.org, \\n");
        stw_buf_adds(out, "\"}}");
    }
    stw_buf_adds(out, "]}}");
}

/* The status; all of the reply. */
static int convert(struct client *c, const struct stw_buf *body, struct stw_buf *reply)
{
    char head[256], piece[16384];
    int status = 0;
    size_t whole = 0;
    (void)snprintf(head, sizeof(head),
                   "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n",
                   body->len);
    send_all(c, head);
    send_long(c, stw_buf_str(body), body->len);
    stw_buf_clear(reply);
    do {
        ssize_t n = gnutls_record_recv(c->tls, piece, sizeof(piece));
        if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
            continue;
        if (n <= 0)
            break;
        stw_buf_add(reply, piece, (size_t)n);
        const char *end = strstr(stw_buf_str(reply), "\r\n\r\n"),
                   *length = strstr(stw_buf_str(reply), "Content-Length: ");
        if (end && length && whole == 0)
            whole = (size_t)(end + 4 - stw_buf_str(reply)) + strtoul(length + 16, NULL, 10);
    } while (whole == 0 || reply->len < whole);
    return sscanf(stw_buf_str(reply), "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

/* With the memory for clients that a limit of 128 MiB gives. */
static void test_large_conversions_are_answered(void **state)
{
    const struct stw_env own = {.op = &site_operator};
    struct stw_pem_pair pair = make_pair(stw_wall_us(&stw_clock_system), 30);
    struct stw_server *s = start((struct stw_server_config){
        .threads = 1, .memory_bytes = (size_t)48 << 20, .kinds = site_operator.kinds, .env = &own});
    stw_autobuf struct stw_buf body = STW_BUF_INIT((size_t)8 << 20),
                               reply = STW_BUF_INIT((size_t)16 << 20);
    struct client c;
    (void)state;
    use(s, &pair);
    assert_int_equal(handshake(&c, s, "NORMAL"), 0);
    write_conversion(&body, (size_t)3 << 20);
    for (int round = 0; round < 3; round++) { /* what one was charged is given back */
        assert_int_equal(convert(&c, &body, &reply), 200);
        assert_non_null(strstr(stw_buf_str(&reply), "\"status\":\"Success\""));
        assert_true(reply.len > body.len / 2);
    }
    /* one object with millions of values */
    stw_buf_clear(&body);
    stw_buf_adds(&body, "{\"request\":{\"objects\":[{\"a\":[1");
    while (body.len < (size_t)3 << 20)
        stw_buf_adds(&body, ",1");
    stw_buf_adds(&body, "]}]}}");
    assert_int_equal(convert(&c, &body, &reply), 413);
    assert_non_null(
        strstr(stw_buf_str(&reply), "one request may take 18432 KiB; raise the memory"));
    assert_null(strstr(stw_buf_str(&reply), "Retry-After"));
    hang_up(&c);
    stw_server_destroy(s);
    stw_pem_pair_done(&pair);
}

static void test_invalid_bind_addresses_are_refused(void **state)
{
    struct stw_server *s = NULL;
    struct stw_error err = {0};
    struct stw_server_config c = {
        .bind_address = "nowhere", .kinds = stw_kinds, .env = &env, .clock = &stw_clock_system};
    (void)state;
    assert_int_equal(stw_server_create(&c, &s, &err), -1);
    assert_non_null(strstr(err.text, "nowhere"));
    assert_null(s);
}

static void test_webhook_paths_are_built(void **state)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(256);
    (void)state;
    stw_webhook_path(stw_kinds[0], true, &path);
    assert_string_equal(stw_buf_str(&path), "/mutate-operator-k8s-summit-org-v1-myweb");
    stw_buf_clear(&path);
    stw_webhook_path(stw_kinds[0], false, &path);
    assert_string_equal(stw_buf_str(&path), PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_server_certificate_is_replaced),
        cmocka_unit_test(test_old_tls_versions_are_refused),
        cmocka_unit_test(test_tls_sessions_resume_with_same_certificate),
        cmocka_unit_test(test_trickling_request_is_closed),
        cmocka_unit_test(test_silent_connections_make_way),
        cmocka_unit_test(test_server_drains_before_it_stops),
        cmocka_unit_test(test_request_bodies_have_a_limit),
        cmocka_unit_test(test_large_conversions_are_answered),
        cmocka_unit_test(test_invalid_bind_addresses_are_refused),
        cmocka_unit_test(test_webhook_paths_are_built),
    };
    int failed;
    (void)gnutls_certificate_allocate_credentials(&trust_all);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    gnutls_certificate_free_credentials(trust_all);
    return failed;
}
