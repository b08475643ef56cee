/* SPDX-License-Identifier: Apache-2.0
 *
 * Two small HTTP servers. Each reply closes its connection, and each connection lives a few seconds
 * at most. The gate of each port lets a flood compete with itself, so that the kubelet gets an
 * answer. */
#include "webhook/probes.h"

#include "base/clock.h"
#include "base/util.h"
#include "webhook/checks_priv.h"
#include "webhook/plain_priv.h"
#include "webhook/port_priv.h"
#include "webhook/shares.h"

#include <stdatomic.h>

#define CONNECTIONS_MAX 128U
#define LIFETIME_MS 5000U
#define CONNECTION_MEMORY ((size_t)8 << 10)
#define EXCLUDES_MAX 16U

struct stw_probes {
    struct stw_probes_config c;
    struct stw_port *health, *metrics; /* NULL: off */
    _Atomic bool stopping;
};

static enum MHD_Result send_answer(const struct stw_port_request *rq, int code, const char *type,
                                   struct stw_buf *text)
{
    static const char *const last[] = {MHD_HTTP_HEADER_CONNECTION, "close", NULL};
    return stw_port_send(rq, code, type, last, text);
}

static enum MHD_Result answer_text(const struct stw_port_request *rq, int code, const char *words)
{
    struct stw_buf text = STW_BUF_INIT(1024);
    stw_buf_adds(&text, words);
    return send_answer(rq, code, STW_PLAIN_TEXT, &text);
}

struct excludes {
    const char *names[EXCLUDES_MAX + 1];
    unsigned count;
};

static enum MHD_Result add_exclude(void *cls, enum MHD_ValueKind kind, const char *key,
                                   const char *value)
{
    struct excludes *x = cls;
    (void)kind;
    if (value && stw_streq(key, "exclude") && x->count < EXCLUDES_MAX)
        x->names[x->count++] = value;
    return MHD_YES;
}

static bool has_argument(struct MHD_Connection *mhd, const char *name)
{
    return MHD_lookup_connection_value_n(mhd, MHD_GET_ARGUMENT_KIND, name, strlen(name), NULL,
                                         NULL) == MHD_YES;
}

static enum MHD_Result answer_health(struct stw_probes *p, const struct stw_port_request *rq)
{
    static const char *const endpoints[] = {"healthz", "livez", "readyz"};
    const char *url = rq->url;
    struct excludes x = {0};
    struct stw_buf text = STW_BUF_INIT(65536);
    size_t name = strcspn(url + 1, "/");
    const char *rest = url + 1 + name;
    (void)MHD_get_connection_values(rq->mhd, MHD_GET_ARGUMENT_KIND, add_exclude, &x);
    for (size_t i = 0; i < STW_COUNT(endpoints); i++) {
        struct stw_check_query q = {.endpoint = endpoints[i],
                                    .only = rest[0] && rest[1] ? rest + 1 : NULL,
                                    .verbose = has_argument(rq->mhd, "verbose"),
                                    .exclude = x.names};
        if (strlen(endpoints[i]) != name || memcmp(url + 1, endpoints[i], name) != 0)
            continue;
        bool ready = stw_streq(endpoints[i], "readyz");
        int code =
            stw_checks_run(&q, ready ? p->c.ready : p->c.live, atomic_load(&p->stopping), &text);
        return send_answer(rq, code, STW_PLAIN_TEXT, &text);
    }
    return answer_text(
        rq, 404, "not found; try /healthz, /livez or /readyz, with ?verbose for all checks\n");
}

static enum MHD_Result answer_metrics(struct stw_probes *p, const struct stw_port_request *rq)
{
    if (!stw_streq(rq->url, "/metrics"))
        return answer_text(rq, 404, "not found; try /metrics\n");
    struct stw_buf text = stw_port_text(rq->port);
    stw_metrics_render(p->c.metrics, &text);
    return send_answer(rq, 200, STW_PLAIN_METRICS, &text);
}

static bool is_readable(const struct stw_port_request *rq)
{
    return stw_streq(rq->method, MHD_HTTP_METHOD_GET) ||
           stw_streq(rq->method, MHD_HTTP_METHOD_HEAD);
}

static enum MHD_Result handle_health_request(void *ctx, const struct stw_port_request *rq)
{
    if (rq->url[0] != '/')
        return answer_text(rq, 400, "bad request\n");
    return is_readable(rq) ? answer_health(ctx, rq)
                           : answer_text(rq, 405, "only GET and HEAD are answered here\n");
}

static enum MHD_Result handle_metrics_request(void *ctx, const struct stw_port_request *rq)
{
    return is_readable(rq) ? answer_metrics(ctx, rq)
                           : answer_text(rq, 405, "only GET and HEAD are answered here\n");
}

static int open_probe_port(struct stw_probes *p, const char *address, size_t share,
                           stw_port_answer_fn *answer, struct stw_port **ret, struct stw_error *err)
{
    struct stw_port_config port = {.what = "connections for probes were cut",
                                   .address = address,
                                   .clock = &stw_clock_system,
                                   .connections =
                                       STW_MIN(CONNECTIONS_MAX, stw_connections_plain(share)),
                                   .request_timeout_ms = LIFETIME_MS,
                                   .idle_timeout_ms = LIFETIME_MS,
                                   .pool_bytes = CONNECTION_MEMORY,
                                   .text_bytes = stw_client_shares(p->c.memory_bytes).metrics_texts,
                                   .answer = answer,
                                   .ctx = p};
    if (!address || stw_streq(address, "0"))
        return 0;
    return stw_port_create(&port, ret, err);
}

int stw_probes_create(const struct stw_probes_config *config, struct stw_probes **ret,
                      struct stw_error *err)
{
    struct stw_client_shares shares = stw_client_shares(config->memory_bytes);
    struct stw_probes *p = calloc(1, sizeof(*p));
    if (!p)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the probes");
    p->c = *config;
    int status = open_probe_port(p, config->health_address, shares.probes, handle_health_request,
                                 &p->health, err);
    if (status == 0)
        status = open_probe_port(p, config->metrics_address, shares.metrics, handle_metrics_request,
                                 &p->metrics, err);
    if (status != 0)
        stw_probes_destroy(p);
    else
        *ret = p;
    return status;
}

uint16_t stw_probes_health_port(const struct stw_probes *p)
{
    return p->health ? stw_port_number(p->health) : 0;
}

uint16_t stw_probes_metrics_port(const struct stw_probes *p)
{
    return p->metrics ? stw_port_number(p->metrics) : 0;
}

void stw_probes_stopping(struct stw_probes *p)
{
    atomic_store(&p->stopping, true);
}

void stw_probes_destroy(struct stw_probes *p)
{
    if (!p)
        return;
    stw_port_destroy(p->health);
    stw_port_destroy(p->metrics);
    free(p);
}
