/* SPDX-License-Identifier: Apache-2.0
 *
 * Which certificate a member presents.  A server presents it before it requests the client's, so no
 * client certificate is needed.  Nothing is trusted and no data is sent. */
#include "kinds/etcdcluster/observe/probe.h"

#include "base/hex.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define TIMEOUT_MS 2000

static int open_socket(const char *address, int port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } to = {0};
    socklen_t len = sizeof(to.v4);
    to.v4.sin_family = AF_INET;
    to.v4.sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, address, &to.v4.sin_addr) != 1) {
        to.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        len = sizeof(to.v6);
        if (inet_pton(AF_INET6, address, &to.v6.sin6_addr) != 1)
            return -1;
    }
    int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, &to.any, len) != 0 && errno != EINPROGRESS)
        stw_closep(&fd);
    return fd;
}

static bool wait_for_socket(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, TIMEOUT_MS) == 1;
}

static bool shake_hands(SSL *ssl, int fd)
{
    for (int i = 0; i < 16; i++) {
        int rc = SSL_connect(ssl);
        if (rc == 1)
            return true;
        int why = SSL_get_error(ssl, rc);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
            return false;
        if (!wait_for_socket(fd, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT))
            return false;
    }
    return false;
}

static int take_fingerprint(const SSL *ssl, char out[65])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    X509 *cert = SSL_get1_peer_certificate(ssl);
    int rc = cert && X509_digest(cert, EVP_sha256(), digest, &len) == 1 && len == 32 ? 0 : -1;
    if (rc == 0)
        stw_hex_encode(digest, len, STW_HEX_UPPER, out);
    X509_free(cert);
    return rc;
}

int ec_probe(const char *address, int port, const char *host, char ret_fingerprint[65])
{
    stw_autoclose int fd = open_socket(address, port);
    char *name = (char *)(uintptr_t)host; /* OpenSSL's macro takes a non-const pointer */
    int rc = -1;
    if (fd < 0 || !wait_for_socket(fd, POLLOUT))
        return -1;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    /* Even if the server refuses us for lack of a certificate, we have its own by then. */
    if (ssl && SSL_set_fd(ssl, fd) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1) {
        (void)shake_hands(ssl, fd);
        rc = take_fingerprint(ssl, ret_fingerprint);
    }
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return rc;
}
