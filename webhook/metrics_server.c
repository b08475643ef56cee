/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/metrics_server.h"

#include "base/util.h"
#include "webhook/plain_priv.h"
#include "webhook/port_priv.h"
#include "webhook/shares.h"

#define CONNECTIONS_MAX 64U
#define REQUEST_TIMEOUT_MS 10000U
#define IDLE_TIMEOUT_MS 90000U
#define CONNECTION_MEMORY ((size_t)40 << 10) /* half is the read buffer: a TLS record, a token */

struct stw_metrics_server {
    struct stw_metrics_server_config c;
    struct stw_port *port;
};

static enum MHD_Result answer_text(const struct stw_port_request *rq, int code, const char *words)
{
    static const char *const who[] = {MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer", NULL};
    static const char *const later[] = {MHD_HTTP_HEADER_RETRY_AFTER, "2", NULL};
    struct stw_buf text = STW_BUF_INIT(1024);
    stw_buf_addf(&text, "%s\n", words);
    return stw_port_send(rq, code, STW_PLAIN_TEXT,
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

static enum MHD_Result answer_metrics_request(void *ctx, const struct stw_port_request *rq)
{
    struct stw_metrics_server *s = ctx;
    struct stw_access_answer a;
    if (!stw_streq(rq->method, MHD_HTTP_METHOD_GET) && !stw_streq(rq->method, MHD_HTTP_METHOD_HEAD))
        return answer_text(rq, 405, "only GET and HEAD are answered here");
    bool page = s->c.page.path && stw_streq(rq->url, s->c.page.path);
    if (!page && !stw_streq(rq->url, "/metrics"))
        return answer_text(rq, 404, "not found; try /metrics");
    stw_access_check(s->c.access, rq->peer, find_authorization(rq->mhd), rq->url, &a);
    if (a.code != 200)
        return answer_text(rq, a.code, a.text);
    struct stw_buf text = stw_port_text(rq->port);
    if (page)
        s->c.page.write(s->c.page.ctx, &text);
    else
        stw_metrics_render(s->c.metrics, &text);
    return stw_port_send(rq, 200, page ? STW_PLAIN_JSON : STW_PLAIN_METRICS, NULL, &text);
}

int stw_metrics_server_create(const struct stw_metrics_server_config *config,
                              struct stw_metrics_server **ret, struct stw_error *err)
{
    struct stw_client_shares shares = stw_client_shares(config->memory_bytes);
    struct stw_metrics_server *s = calloc(1, sizeof(*s));
    if (!s) {
        stw_access_destroy(config->access);
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the metrics server");
    }
    s->c = *config;
    struct stw_port_config port = {
        .what = "connections for metrics were cut",
        .address = config->address,
        .clock = config->clock,
        .tls = true,
        .connections = STW_MIN(CONNECTIONS_MAX, stw_connections_tls(shares.metrics)),
        .request_timeout_ms = REQUEST_TIMEOUT_MS,
        .idle_timeout_ms = IDLE_TIMEOUT_MS,
        .pool_bytes = CONNECTION_MEMORY,
        .text_bytes = shares.metrics_texts,
        .answer = answer_metrics_request,
        .ctx = s};
    if (stw_port_create(&port, &s->port, err) != 0) {
        stw_metrics_server_destroy(s);
        return stw_error_wrap(err, "metrics on %s", config->address);
    }
    *ret = s;
    return 0;
}

int stw_metrics_server_set_certificate(struct stw_metrics_server *s, const char *cert_pem,
                                       const char *key_pem, struct stw_error *err)
{
    return stw_port_set_certificate(s->port, cert_pem, key_pem, err);
}

uint16_t stw_metrics_server_port(const struct stw_metrics_server *s)
{
    return stw_port_number(s->port);
}

void stw_metrics_server_destroy(struct stw_metrics_server *s)
{
    if (!s)
        return;
    stw_port_destroy(s->port);
    stw_access_destroy(s->c.access);
    free(s);
}
