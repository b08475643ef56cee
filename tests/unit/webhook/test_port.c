/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of a port that are not read: they are charged until they are. */
#include "webhook/port_priv.h"

#include "base/util.h"
#include "webhook/plain_priv.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cmocka.h>

#define TEXTS ((size_t)32 << 20)
/* More than the kernel keeps for a reader that does not read. */
#define LONG ((size_t)12 << 20)
#define REST (LONG - 2048) /* behind what receive() has read */

static enum MHD_Result answer(void *ctx, const struct stw_port_request *rq)
{
    struct stw_buf text = stw_port_text(rq->port);
    size_t size = strtoul(rq->url + 1, NULL, 10);
    char *to = stw_buf_reserve(&text, size);
    (void)ctx;
    if (to) {
        memset(to, 'x', size);
        text.len += size;
    }
    return stw_port_send(rq, 200, STW_PLAIN_TEXT, NULL, &text);
}

static struct stw_port *open_port(void)
{
    const struct stw_port_config c = {.what = "connections were cut",
                                      .address = "127.0.0.1:0",
                                      .clock = &stw_clock_system,
                                      .connections = 16,
                                      .request_timeout_ms = 60000,
                                      .idle_timeout_ms = 60000,
                                      .pool_bytes = 8192,
                                      .text_bytes = TEXTS,
                                      .answer = answer};
    struct stw_port *p = NULL;
    struct stw_error err = {0};
    if (stw_port_create(&c, &p, &err) != 0)
        fail_msg("%s", err.text);
    return p;
}

/* Asks for a text of `size` bytes, from 127.0.0.`host`. */
static int ask(const struct stw_port *p, uint32_t host, size_t size)
{
    const struct timeval patience = {.tv_sec = 20};
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(stw_port_number(p)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       own = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffU) | host)};
    char head[128];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    int len = snprintf(head, sizeof(head), "GET /%zu HTTP/1.1\r\nHost: x\r\n\r\n", size);
    assert_int_equal(send(fd, head, (size_t)len, MSG_NOSIGNAL), len);
    return fd;
}

/* The status of the reply, whose beginning is left in `reply`. */
static int receive(int fd, char *reply, size_t size)
{
    size_t got = 0;
    int status = 0;
    reply[0] = '\0';
    while (got + 1 < size && !strstr(reply, "\r\n\r\n")) {
        ssize_t n = recv(fd, reply + got, size - 1 - got, 0);
        if (n <= 0)
            break;
        reply[got += (size_t)n] = '\0';
    }
    return sscanf(reply, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

/* Reads to the end of the connection or of `size` bytes. */
static size_t drain(int fd, size_t size)
{
    char piece[65536];
    size_t got = 0;
    int large = 1 << 20;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof(large));
    for (ssize_t n = 1; n > 0 && got<size; got += n> 0 ? (size_t)n : 0)
        n = recv(fd, piece, sizeof(piece), 0);
    return got;
}

static void test_unread_responses_count_as_memory(void **state)
{
    struct stw_port *p = open_port();
    char reply[2048];
    int held[2], fd;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(held); i++) {
        held[i] = ask(p, 2, LONG);
        assert_int_equal(receive(held[i], reply, sizeof(reply)), 200);
    }
    /* the same address has no room for a third long one; a short one is sent */
    fd = ask(p, 2, LONG);
    assert_int_equal(receive(fd, reply, sizeof(reply)), 503);
    assert_non_null(strstr(reply, "too many answers are being read at once"));
    assert_non_null(strstr(reply, "Retry-After: 2"));
    (void)close(fd);
    fd = ask(p, 2, 100);
    assert_int_equal(receive(fd, reply, sizeof(reply)), 200);
    (void)close(fd);
    /* for another one, the address that holds most loses an answer */
    fd = ask(p, 1, LONG);
    assert_int_equal(receive(fd, reply, sizeof(reply)), 200);
    assert_true(drain(fd, REST) >= REST);
    (void)close(fd);
    size_t left[] = {drain(held[0], REST), drain(held[1], REST)};
    assert_true(left[0] < REST || left[1] < REST);
    for (size_t i = 0; i < STW_COUNT(held); i++)
        (void)close(held[i]);
    stw_port_destroy(p);
}

/* What was read, or cut, is given back. */
static void test_read_responses_are_released(void **state)
{
    struct stw_port *p = open_port();
    char reply[2048];
    (void)state;
    for (int i = 0; i < 8; i++) {
        int fd = ask(p, 2, LONG);
        assert_int_equal(receive(fd, reply, sizeof(reply)), 200);
        assert_true(drain(fd, REST) >= REST);
        (void)close(fd);
    }
    stw_port_destroy(p);
}

static void test_response_beyond_all_memory_is_a_503(void **state)
{
    struct stw_port *p = open_port();
    char reply[2048];
    int fd = ask(p, 1, TEXTS + 1);
    (void)state;
    assert_int_equal(receive(fd, reply, sizeof(reply)), 503);
    assert_non_null(strstr(reply, "larger than the 32768 KiB"));
    (void)close(fd);
    stw_port_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unread_responses_count_as_memory),
        cmocka_unit_test(test_read_responses_are_released),
        cmocka_unit_test(test_response_beyond_all_memory_is_a_503),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
