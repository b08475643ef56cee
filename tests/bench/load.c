/* SPDX-License-Identifier: Apache-2.0
 *
 * A closed-loop HTTPS load generator: N kept connections, each with one POST in flight, all in one
 * thread, so that it fits one core and costs less than the server it measures.  Prints one line of
 * JSON: requests, errors (transport faults and statuses other than 200), seconds, p50 and p99. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { IN_MAX = 262144, SAMPLES_MAX = 8000000 };

struct client {
    SSL *ssl;
    size_t got;
    uint64_t sent_ns;
    char in[IN_MAX];
};

static char *request;
static size_t request_len;
static uint32_t *samples; /* nanoseconds */
static size_t sample_count;
static uint64_t errors;

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "load: %s\n", what);
    exit(1);
}

static void build_request(const char *path, const char *body_file)
{
    FILE *f = fopen(body_file, "r");
    char *body = malloc(8 << 20);
    size_t len = f && body ? fread(body, 1, 8 << 20, f) : 0;
    if (len == 0)
        die("cannot read the body");
    (void)fclose(f);
    request = malloc(len + 1024);
    if (!request)
        die("out of memory");
    int head = snprintf(request, 1024,
                        "POST %s?timeout=10s HTTP/1.1\r\nHost: steward-webhook-service\r\n"
                        "User-Agent: kube-apiserver-admission\r\nContent-Length: %zu\r\n"
                        "Accept: application/json, */*\r\nContent-Type: application/json\r\n"
                        "Accept-Encoding: gzip\r\n\r\n",
                        path, len);
    memcpy(request + head, body, len);
    request_len = (size_t)head + len;
    free(body);
}

static SSL *dial(SSL_CTX *ctx, uint16_t port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0)
        die("cannot connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    SSL *ssl = SSL_new(ctx);
    if (!ssl || !SSL_set_fd(ssl, fd) || SSL_connect(ssl) != 1)
        die("the TLS handshake failed");
    return ssl;
}

/* Writes to the socket block, which is safe: the server reads the whole request next. */
static void send_request(struct client *c)
{
    c->got = 0;
    c->sent_ns = now_ns();
    if (SSL_write(c->ssl, request, (int)request_len) != (int)request_len)
        die("the server closed a connection");
}

/* Whether a whole reply has arrived; counts it. */
static bool reply_done(struct client *c)
{
    c->in[c->got] = '\0';
    const char *end = strstr(c->in, "\r\n\r\n");
    const char *length = end ? strcasestr(c->in, "content-length:") : NULL;
    if (!length || length > end)
        return false;
    size_t want = (size_t)(end + 4 - c->in) + strtoul(length + 15, NULL, 10);
    if (want >= IN_MAX)
        die("the reply is too large");
    if (c->got < want)
        return false;
    if (strncmp(c->in, "HTTP/1.1 200", 12) != 0)
        errors++;
    if (sample_count < SAMPLES_MAX)
        samples[sample_count++] = (uint32_t)(now_ns() - c->sent_ns);
    return true;
}

static void readable(struct client *c)
{
    do {
        int n = SSL_read(c->ssl, c->in + c->got, (int)(IN_MAX - 1 - c->got));
        if (n <= 0)
            die("the server closed a connection");
        c->got += (size_t)n;
    } while (!reply_done(c));
    send_request(c);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void run(struct client *clients, uint32_t count, int ep, double seconds)
{
    struct epoll_event events[64];
    uint64_t start = now_ns(), end = start + (uint64_t)(seconds * 1e9);
    for (uint32_t i = 0; i < count; i++)
        clients[i].sent_ns = start; /* their replies have waited since the last round */
    sample_count = 0;
    errors = 0;
    while (now_ns() < end) {
        int n = epoll_wait(ep, events, 64, 1000);
        for (int i = 0; i < n; i++)
            readable(&clients[events[i].data.u32]);
    }
    double took = (double)(now_ns() - start) / 1e9;
    qsort(samples, sample_count, sizeof(*samples), by_value);
    size_t half = sample_count / 2, most = sample_count * 99 / 100;
    double p50 = sample_count ? samples[half] / 1e3 : 0;
    double p99 = sample_count ? samples[most] / 1e3 : 0;
    (void)printf("{\"requests\":%zu,\"errors\":%llu,\"seconds\":%.3f,\"rate\":%.1f,"
                 "\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
                 sample_count, (unsigned long long)errors, took, (double)sample_count / took, p50,
                 p99);
    (void)fflush(stdout);
}

/* usage: load PORT PATH BODY-FILE CONNECTIONS; then reads lines from stdin, each a number of
 * seconds, runs for that long and prints one line each time, so that the caller can inspect the
 * server in between. */
int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: load PORT PATH BODY-FILE CONNECTIONS");
    (void)signal(SIGPIPE, SIG_IGN);
    build_request(argv[2], argv[3]);
    uint32_t count = (uint32_t)strtoul(argv[4], NULL, 10);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    struct client *clients = calloc(count, sizeof(*clients));
    samples = malloc(SAMPLES_MAX * sizeof(*samples));
    int ep = epoll_create1(EPOLL_CLOEXEC);
    if (!ctx || !clients || !samples || ep < 0)
        die("out of memory");
    for (uint32_t i = 0; i < count; i++) {
        clients[i].ssl = dial(ctx, (uint16_t)strtoul(argv[1], NULL, 10));
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        (void)epoll_ctl(ep, EPOLL_CTL_ADD, SSL_get_fd(clients[i].ssl), &e);
        send_request(&clients[i]);
    }
    char line[64];
    while (fgets(line, sizeof(line), stdin))
        run(clients, count, ep, strtod(line, NULL));
    for (uint32_t i = 0; i < count; i++)
        SSL_free(clients[i].ssl);
    SSL_CTX_free(ctx);
    free(clients);
    free(samples);
    free(request);
    return 0;
}
