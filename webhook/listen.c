/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "webhook/listen_priv.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

/* The kernel limits it to net.core.somaxconn. Large, so that a burst of connections is queued, not
 * refused. */
#define BACKLOG 4096

int stw_address_split(const char *address, char host[256], char port[6], struct stw_error *err)
{
    const char *colon = strrchr(address, ':'), *from = address, *end = colon;
    int64_t number;
    if (!colon || stw_parse_int(colon + 1, 0, 65535, &number) != 0)
        return stw_fail(
            err, STW_ERR_INVALID,
            "bind address \"%s\": must be :port, host:port or [address]:port with a port "
            "from 0 to 65535",
            address);
    if (*from == '[' && end > from && end[-1] == ']') {
        from++;
        end--;
    } else if (memchr(from, ':', (size_t)(end - from))) {
        return stw_fail(
            err, STW_ERR_INVALID,
            "bind address \"%s\": an IPv6 address must be in brackets, as in [::1]:9443", address);
    }
    if (end - from > 255)
        return stw_fail(err, STW_ERR_INVALID, "bind address: the host is longer than 255 bytes");
    memcpy(host, from, (size_t)(end - from));
    host[end - from] = '\0';
    stw_format(port, 6, "%u", (unsigned)number);
    return 0;
}

static int open_socket(const struct sockaddr *addr, socklen_t len)
{
    int on = 1, off = 0;
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (addr->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, addr, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int failed = errno;
    (void)close(fd);
    errno = failed;
    return -1;
}

/* One socket for both families if the machine has IPv6. */
static int open_any(uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = open_socket((struct sockaddr *)&six, sizeof(six));
    if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
        fd = open_socket((struct sockaddr *)&four, sizeof(four));
    return fd;
}

static int open_named(const char *address, const char *host, const char *port, int *ret_fd,
                      struct stw_error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int why = getaddrinfo(host, port, &hints, &list);
    if (why != 0)
        return stw_fail(err, STW_ERR_INVALID, "bind address \"%s\": the host is not known: %s",
                        address, gai_strerror(why));
    int fd = -1, failed = EADDRNOTAVAIL;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = open_socket(a->ai_addr, a->ai_addrlen);
        failed = errno;
    }
    freeaddrinfo(list);
    errno = failed;
    *ret_fd = fd;
    return 0;
}

static uint16_t port_of(int fd)
{
    /* sin_port and sin6_port are at the same offset (RFC 3493). */
    struct sockaddr_in6 addr = {0};
    socklen_t len = sizeof(addr);
    if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0)
        return 0;
    return ntohs(addr.sin6_port);
}

int stw_listen(const char *address, int *ret_fd, uint16_t *ret_port, struct stw_error *err)
{
    char host[256] = "", port[6];
    int fd = -1;
    int64_t number = 0;
    if (stw_address_split(address, host, port, err) != 0)
        return -1;
    (void)stw_parse_int(port, 0, 65535, &number);
    if (host[0] == '\0')
        fd = open_any((uint16_t)number);
    else if (open_named(address, host, port, &fd, err) != 0)
        return -1;
    if (fd < 0)
        return stw_fail(
            err, STW_ERR_INTERNAL, "cannot listen on %s: %s%s", address, strerrordesc_np(errno),
            errno == EADDRINUSE ? "; stop the program that has it or bind another" : "");
    *ret_fd = fd;
    *ret_port = port_of(fd);
    return 0;
}
