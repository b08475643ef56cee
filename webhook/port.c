/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/port_priv.h"

#include "base/process/memory_budget.h"
#include "webhook/bundle_priv.h"
#include "webhook/framing_priv.h"
#include "webhook/gate_priv.h"
#include "webhook/plain_priv.h"
#include "webhook/shares.h"
#include "webhook/tls_alert_priv.h"
#include "webhook/tls_input_priv.h"

#include <errno.h>
#include <signal.h>

/* The cost of a connection includes an answer of this size. */
#define SMALL_TEXT ((size_t)4 << 10)

struct stw_port {
    struct stw_port_config c;
    struct stw_gate *gate;
    struct MHD_Daemon *daemon;
    struct stw_bundle_slot bundle;
    size_t texts; /* bytes of the answers that are being sent; used on the port's thread */
};

struct stw_port_guest {
    struct stw_gate_entry entry;
    struct stw_port *port;
    struct stw_tls_input input;
    struct stw_bundle *bundle;
    bool begun;
    size_t charged;
};

/* --- connections; as in server.c */

static struct stw_port_guest *guest_of(struct MHD_Connection *mhd)
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
    const struct stw_port_guest *g = guest_of(gnutls_session_get_ptr(session));
    (void)info;
    if (!g || !g->bundle)
        return stw_bundle_missing(session);
    return stw_bundle_retrieve(g->bundle, pcert, pcert_length, ocsp, ocsp_length, key, flags);
}

/* gnutls_handshake_hook_func: called before and after each handshake message. */
static int look_at_message(gnutls_session_t session, unsigned int type, unsigned int when,
                           unsigned int incoming, const gnutls_datum_t *message)
{
    struct stw_port_guest *g = guest_of(gnutls_session_get_ptr(session));
    if (!g || !incoming)
        return 0;
    if (when == GNUTLS_HOOK_PRE)
        return stw_tls_check_message(session, type, message, false);
    if (type == GNUTLS_HANDSHAKE_FINISHED) /* the client's last message */
        stw_tls_input_advance(&g->input, g->port->c.pool_bytes);
    return 0;
}

static void begin_tls(struct stw_port_guest *g, struct MHD_Connection *mhd, int fd)
{
    gnutls_session_t tls =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session;
    g->bundle = stw_bundle_slot_ref(&g->port->bundle);
    stw_tls_input_limit(&g->input, tls, fd, STW_TLS_HELLO_MAX);
    gnutls_handshake_set_hook_function(tls, GNUTLS_HANDSHAKE_ANY, GNUTLS_HOOK_BOTH,
                                       look_at_message);
}

static struct stw_port_guest *open_connection(struct stw_port *p, struct MHD_Connection *mhd)
{
    int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct stw_port_guest *g = calloc(1, sizeof(*g));
    if (!g) {
        (void)shutdown(fd, SHUT_RDWR);
        return NULL;
    }
    g->port = p;
    if (p->c.tls)
        begin_tls(g, mhd, fd);
    stw_gate_enter(p->gate, &g->entry, fd);
    return g;
}

static void end_request(struct stw_port_guest *g)
{
    g->port->texts -= g->charged;
    g->charged = 0;
    g->begun = false;
    stw_gate_hold(&g->entry, 0);
}

static void close_connection(struct stw_port_guest *g)
{
    end_request(g);
    stw_gate_leave(g->port->gate, &g->entry);
    stw_bundle_unref(g->bundle);
    free(g);
}

static void notify_connection(void *cls, struct MHD_Connection *mhd, void **context,
                              enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        *context = open_connection(cls, mhd);
    else if (*context)
        close_connection(stw_take(*context));
}

static int hand_over(void *ctx, int fd, const struct sockaddr *addr, socklen_t len)
{
    struct stw_port *p = ctx;
    return MHD_add_connection(p->daemon, fd, addr, len) == MHD_YES ? 0 : -1;
}

/* --- requests */

/* A reply before the end of the body would close the connection, so the body is read and ignored. */
static enum MHD_Result handle_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                      const char *method, const char *version, const char *data,
                                      size_t *data_size, void **state)
{
    struct stw_port *p = cls;
    struct stw_port_guest *g = guest_of(mhd);
    (void)data;
    if (!g)
        return MHD_NO;
    struct stw_port_request rq = {p, g, mhd, url, method, g->entry.address};
    *state = g;
    stw_tls_input_advance(&g->input, p->c.pool_bytes);
    if (!g->begun) {
        g->begun = true;
        stw_gate_begin(p->gate, &g->entry, stw_now_ms(p->c.clock));
        return stw_framing_is_clear(mhd, version) ? MHD_YES : stw_framing_refuse_plain(mhd);
    }
    if (*data_size > 0) {
        *data_size = 0;
        return MHD_YES;
    }
    return p->c.answer(p->c.ctx, &rq);
}

static void complete_request(void *cls, struct MHD_Connection *mhd, void **state,
                             enum MHD_RequestTerminationCode why)
{
    struct stw_port *p = cls;
    struct stw_port_guest *g = *state;
    (void)mhd;
    if (!g)
        return;
    end_request(g);
    stw_gate_end(p->gate, &g->entry, stw_now_ms(p->c.clock),
                 why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

struct stw_buf stw_port_text(const struct stw_port *p)
{
    return STW_BUF_INIT(p->c.text_bytes);
}

/* 0, or -1: the answers that are being sent leave no room for this one. */
static int charge_text(struct stw_port_guest *g, size_t size)
{
    struct stw_port *p = g->port;
    if (size <= SMALL_TEXT)
        return 0;
    if (p->texts + size > p->c.text_bytes && !stw_gate_displace(p->gate, &g->entry, size)) {
        stw_share_note_refusal(STW_SHARE_ADMISSION);
        return -1;
    }
    p->texts += size;
    g->charged = size;
    stw_gate_hold(&g->entry, size);
    return 0;
}

enum MHD_Result stw_port_send(const struct stw_port_request *rq, int code, const char *type,
                              const char *const *headers, struct stw_buf *text)
{
    static const char *const later[] = {MHD_HTTP_HEADER_RETRY_AFTER, "2", NULL};
    bool too_large = text->failed;
    if (!too_large && charge_text(rq->guest, text->cap) == 0)
        return stw_plain_answer(rq->mhd, code, type, headers, text);
    stw_buf_done(text);
    struct stw_buf why = STW_BUF_INIT(SMALL_TEXT);
    if (too_large)
        stw_buf_addf(&why,
                     "the answer is larger than the %zu KiB for answers of this port; raise the "
                     "memory limit of the container, or --webhook-memory\n",
                     rq->port->c.text_bytes >> 10);
    else
        stw_buf_adds(&why, "too many answers are being read at once; try again in a second\n");
    return stw_plain_answer(rq->mhd, 503, STW_PLAIN_TEXT, later, &why);
}

/* --- create and destroy */

static int start_daemon(struct stw_port *p, struct stw_error *err)
{
    const unsigned plain = MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC;
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before); /* keep signals off the library's thread */
    p->daemon = MHD_start_daemon(
        p->c.tls ? plain | MHD_USE_TLS : plain, 0, NULL, NULL, handle_request, p,
        MHD_OPTION_NOTIFY_CONNECTION, notify_connection, p, MHD_OPTION_NOTIFY_COMPLETED,
        complete_request, p, MHD_OPTION_CONNECTION_MEMORY_LIMIT, p->c.pool_bytes,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        /* The gate enforces the limit. */
        MHD_OPTION_CONNECTION_LIMIT, 2 * p->c.connections + 1024U,
        /* Without TLS the list ends here. */
        p->c.tls ? MHD_OPTION_HTTPS_PRIORITIES : MHD_OPTION_END, STW_TLS_PRIORITIES,
        MHD_OPTION_HTTPS_CERT_CALLBACK2, retrieve_certificate, MHD_OPTION_END);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return p->daemon ? 0
                     : stw_fail(err, STW_ERR_INTERNAL, "cannot start the HTTP server: %s",
                                strerrordesc_np(errno));
}

static int open_gate(struct stw_port *p, struct stw_error *err)
{
    struct stw_gate_config gate = {.what = p->c.what,
                                   .address = p->c.address,
                                   .clock = p->c.clock,
                                   .limit = p->c.connections,
                                   .connection_bytes = p->c.tls ? STW_CONNECTION_TLS_BYTES
                                                                : STW_CONNECTION_PLAIN_BYTES,
                                   .request_timeout_ms = p->c.request_timeout_ms,
                                   .idle_timeout_ms = p->c.idle_timeout_ms,
                                   .hand = hand_over,
                                   .ctx = p};
    return stw_gate_create(&gate, &p->gate, err);
}

int stw_port_create(const struct stw_port_config *config, struct stw_port **ret,
                    struct stw_error *err)
{
    struct stw_port *p = calloc(1, sizeof(*p));
    if (!p)
        return stw_fail_memory(err);
    p->c = *config;
    stw_bundle_slot_init(&p->bundle);
    /* The gate last: from then on connections are accepted. */
    if (start_daemon(p, err) != 0 || open_gate(p, err) != 0) {
        stw_port_destroy(p);
        return -1;
    }
    *ret = p;
    return 0;
}

int stw_port_set_certificate(struct stw_port *p, const char *cert_pem, const char *key_pem,
                             struct stw_error *err)
{
    return stw_bundle_slot_load(&p->bundle, cert_pem, key_pem, stw_wall_us(p->c.clock), err);
}

uint16_t stw_port_number(const struct stw_port *p)
{
    return stw_gate_port(p->gate);
}

void stw_port_destroy(struct stw_port *p)
{
    if (!p)
        return;
    if (p->gate)
        stw_gate_close(p->gate);
    if (p->daemon)
        MHD_stop_daemon(p->daemon);
    stw_gate_destroy(p->gate);
    stw_bundle_slot_done(&p->bundle);
    free(p);
}
