/* SPDX-License-Identifier: Apache-2.0
 *
 * The upper bound for the admission benchmark: libmicrohttpd and GnuTLS as steward sets them up,
 * and a handler that discards the body and returns a constant.  Prints its port, serves until
 * SIGTERM. */
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char reply[] =
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":"
    "\"2bcb1e43-4a5c-4a7e-9f3b-0d3a7c1f6a55\",\"allowed\":true}}";

static enum MHD_Result answer(void *cls, struct MHD_Connection *conn, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *data_size, void **state)
{
    static int seen;
    (void)url, (void)method, (void)version, (void)data;
    if (!*state) {
        *state = &seen;
        return MHD_YES;
    }
    if (*data_size > 0) {
        *data_size = 0;
        return MHD_YES;
    }
    return MHD_queue_response(conn, MHD_HTTP_OK, cls);
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 65536);
    if (!f || !text || fread(text, 1, 65535, f) == 0) {
        perror(path);
        exit(2);
    }
    (void)fclose(f);
    return text;
}

static struct MHD_Response *constant(void)
{
    char *copy = strdup(reply); /* the library requires writable memory */
    struct MHD_Response *r =
        copy ? MHD_create_response_from_buffer(strlen(copy), copy, MHD_RESPMEM_MUST_FREE) : NULL;
    if (r)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    return r;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        (void)fprintf(stderr, "usage: bare CERT KEY THREADS epoll|poll PRIORITIES\n");
        return 2;
    }
    sigset_t stop;
    int got;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &stop, NULL);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned mode =
        strcmp(argv[4], "poll") == 0 ? MHD_USE_POLL_INTERNAL_THREAD : MHD_USE_EPOLL_INTERNAL_THREAD;
    struct MHD_Response *r = constant();
    char *cert = slurp(argv[1]), *key = slurp(argv[2]);
    struct MHD_Daemon *d = MHD_start_daemon(
        mode | MHD_USE_TLS, 0, NULL, NULL, &answer, r, MHD_OPTION_SOCK_ADDR, &addr,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)strtoul(argv[3], NULL, 10),
        MHD_OPTION_HTTPS_MEM_CERT, cert, MHD_OPTION_HTTPS_MEM_KEY, key, MHD_OPTION_HTTPS_PRIORITIES,
        argv[5], MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)40 << 10, MHD_OPTION_END);
    if (!d || !r) {
        (void)fprintf(stderr, "bare: the server did not start\n");
        return 1;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT);
    (void)printf("%u\n", (unsigned)info->port);
    (void)fflush(stdout);
    (void)sigwait(&stop, &got);
    MHD_stop_daemon(d);
    MHD_destroy_response(r);
    free(cert);
    free(key);
    return 0;
}
