/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/metrics_server.h"

#include "base/util.h"
#include "webhook/bundle_priv.h"
#include "webhook/gate_priv.h"
#include "webhook/plain_priv.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>

#define CONNECTIONS_MAX 64U
#define REQUEST_TIMEOUT_MS 10000U
#define IDLE_TIMEOUT_MS 90000U
#define CONNECTION_MEMORY ((size_t)40 << 10) /* half is the read buffer: a TLS record, a token */
#define TEXT_MAX ((size_t)64 << 20)

struct stw_metrics_server {
    struct stw_metrics_server_config c;
    struct stw_gate *gate;
    struct MHD_Daemon *daemon;
    struct stw_bundle_slot bundle;
};

struct metrics_reader {
    struct stw_gate_entry entry; /* first member: the context of a connection */
    struct stw_metrics_server *metrics_server;
    struct stw_bundle *bundle;
};

/* --- connections; as in server.c */

static struct metrics_reader *reader_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        mhd ? MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT) : NULL;
    return info ? info->socket_context : NULL;
}

static int retrieve_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                                gnutls_pcert_st **pcert, unsigned *pcert_length,
                                gnutls_ocsp_data_st **ocsp, unsigned *ocsp_length,
                                gnutls_privkey_t *key, unsigned *flags)
{
    const struct metrics_reader *r = reader_of(gnutls_session_get_ptr(session));
    (void)info;
    if (!r || !r->bundle)
        return -1; /* ends the handshake */
    return stw_bundle_retrieve(r->bundle, pcert, pcert_length, ocsp, ocsp_length, key, flags);
}

static struct metrics_reader *open_reader(struct stw_metrics_server *s, struct MHD_Connection *mhd)
{
    int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct metrics_reader *r = calloc(1, sizeof(*r));
    if (!r) {
        (void)shutdown(fd, SHUT_RDWR);
        return NULL;
    }
    r->metrics_server = s;
    r->bundle = stw_bundle_slot_ref(&s->bundle);
    stw_gate_enter(s->gate, &r->entry, fd);
    return r;
}

static void notify_connection(void *cls, struct MHD_Connection *mhd, void **context,
                              enum MHD_ConnectionNotificationCode what)
{
    struct stw_metrics_server *s = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = open_reader(s, mhd);
    } else if (*context) {
        struct metrics_reader *r = stw_take(*context);
        stw_gate_leave(s->gate, &r->entry);
        stw_bundle_unref(r->bundle);
        free(r);
    }
}

static int hand_over(void *ctx, int fd, const struct sockaddr *addr, socklen_t len)
{
    struct stw_metrics_server *s = ctx;
    return MHD_add_connection(s->daemon, fd, addr, len) == MHD_YES ? 0 : -1;
}

/* --- requests */

static enum MHD_Result answer_text(struct MHD_Connection *mhd, int code, const char *words)
{
    static const char *const who[] = {MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer", NULL};
    static const char *const later[] = {MHD_HTTP_HEADER_RETRY_AFTER, "2", NULL};
    struct stw_buf text = STW_BUF_INIT(1024);
    stw_buf_addf(&text, "%s\n", words);
    return stw_plain_answer(mhd, code, STW_PLAIN_TEXT,
                            code == 401                  ? who
                            : code == 429 || code == 503 ? later
                                                         : NULL,
                            &text);
}

/* The API server's proxy removes Authorization, because that is for itself. */
static const char *find_authorization(struct MHD_Connection *mhd)
{
    const char *own =
        MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    return own ? own : MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, STW_PROXIED_AUTHORIZATION);
}

static enum MHD_Result answer_metrics_request(struct stw_metrics_server *s,
                                              struct MHD_Connection *mhd, const char *url,
                                              const char *method)
{
    struct stw_access_answer a;
    struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    if (!stw_streq(method, MHD_HTTP_METHOD_GET) && !stw_streq(method, MHD_HTTP_METHOD_HEAD))
        return answer_text(mhd, 405, "only GET and HEAD are answered here");
    bool page = s->c.page.path && stw_streq(url, s->c.page.path);
    if (!page && !stw_streq(url, "/metrics"))
        return answer_text(mhd, 404, "not found; try /metrics");
    stw_access_check(s->c.access, find_authorization(mhd), url, &a);
    if (a.code != 200)
        return answer_text(mhd, a.code, a.text);
    if (page)
        s->c.page.write(s->c.page.ctx, &text);
    else
        stw_metrics_render(s->c.metrics, &text);
    return stw_plain_answer(mhd, 200, page ? STW_PLAIN_JSON : STW_PLAIN_METRICS, NULL, &text);
}

static enum MHD_Result handle_metrics_request(void *cls, struct MHD_Connection *mhd,
                                              const char *url, const char *method,
                                              const char *version, const char *data,
                                              size_t *data_size, void **state)
{
    struct stw_metrics_server *s = cls;
    struct metrics_reader *r = reader_of(mhd);
    (void)version, (void)data;
    if (!r)
        return MHD_NO;
    if (!*state) { /* a reply before the body would close the connection */
        *state = r;
        stw_gate_begin(s->gate, &r->entry, stw_now_ms(s->c.clock));
        return MHD_YES;
    }
    if (*data_size > 0) { /* ignore the body */
        *data_size = 0;
        return MHD_YES;
    }
    return answer_metrics_request(s, mhd, url, method);
}

static void complete_metrics_request(void *cls, struct MHD_Connection *mhd, void **state,
                                     enum MHD_RequestTerminationCode why)
{
    struct stw_metrics_server *s = cls;
    struct metrics_reader *r = *state;
    (void)mhd;
    if (r)
        stw_gate_end(s->gate, &r->entry, stw_now_ms(s->c.clock),
                     why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

/* --- create and destroy */

static int start_daemon(struct stw_metrics_server *s, struct stw_error *err)
{
    const unsigned flags =
        MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_TLS | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC;
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle_metrics_request, s, MHD_OPTION_HTTPS_PRIORITIES,
        STW_TLS_PRIORITIES, MHD_OPTION_HTTPS_CERT_CALLBACK2, retrieve_certificate,
        MHD_OPTION_NOTIFY_CONNECTION, notify_connection, s, MHD_OPTION_NOTIFY_COMPLETED,
        complete_metrics_request, s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        /* The gate enforces the limit. */
        MHD_OPTION_CONNECTION_LIMIT, 2 * CONNECTIONS_MAX + 1024U, MHD_OPTION_END);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->daemon ? 0
                     : stw_fail(err, STW_ERR_INTERNAL, "cannot start the HTTPS server: %s",
                                strerrordesc_np(errno));
}

static int open_gate(struct stw_metrics_server *s, struct stw_error *err)
{
    struct stw_gate_config gate = {.what = "connections for metrics were cut",
                                   .address = s->c.address,
                                   .clock = s->c.clock,
                                   .limit = CONNECTIONS_MAX,
                                   .request_timeout_ms = REQUEST_TIMEOUT_MS,
                                   .idle_timeout_ms = IDLE_TIMEOUT_MS,
                                   .hand = hand_over,
                                   .ctx = s};
    return stw_gate_create(&gate, &s->gate, err);
}

int stw_metrics_server_create(const struct stw_metrics_server_config *config,
                              struct stw_metrics_server **ret, struct stw_error *err)
{
    struct stw_metrics_server *s = calloc(1, sizeof(*s));
    if (!s) {
        stw_access_destroy(config->access);
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the metrics server");
    }
    s->c = *config;
    stw_bundle_slot_init(&s->bundle);
    if (start_daemon(s, err) != 0 || open_gate(s, err) != 0) {
        stw_metrics_server_destroy(s);
        return stw_error_wrap(err, "metrics on %s", config->address);
    }
    *ret = s;
    return 0;
}

int stw_metrics_server_set_certificate(struct stw_metrics_server *s, const char *cert_pem,
                                       const char *key_pem, struct stw_error *err)
{
    return stw_bundle_slot_load(&s->bundle, cert_pem, key_pem, stw_wall_us(s->c.clock), err);
}

uint16_t stw_metrics_server_port(const struct stw_metrics_server *s)
{
    return stw_gate_port(s->gate);
}

void stw_metrics_server_destroy(struct stw_metrics_server *s)
{
    if (!s)
        return;
    if (s->gate)
        stw_gate_close(s->gate);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    stw_gate_destroy(s->gate);
    stw_bundle_slot_done(&s->bundle);
    stw_access_destroy(s->c.access);
    free(s);
}
