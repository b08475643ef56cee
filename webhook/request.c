/* SPDX-License-Identifier: Apache-2.0
 *
 * One request from its first line to its reply. Transport checks (path, method, type, size, time)
 * are here, everything about the review is in review.c. Runs on the library's threads. */
#include "base/duration.h"
#include "base/log.h"
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "webhook/framing_priv.h"
#include "webhook/server_priv.h"
#include "webhook/skim_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#define REPLY_MAX ((size_t)16 << 20)
/* Initial size of the reply: enough for an allowed review with its patch. */
#define REPLY_FIRST ((size_t)960)
/* A chunked body that is too large is read up to this factor before the connection is cut: the
 * library can respond only after the end of the body. */
#define OVERRUN_FACTOR 4U

static const struct stw_refusal
    not_found =
        {404, "NotFound",
         "there is no webhook on this path; the paths are /mutate-<group>-<version>-<kind> and "
         "/validate-<group>-<version>-<kind>, dots as dashes"},
    not_post = {405, "MethodNotAllowed", "an admission review must be sent with POST"},
    not_json = {415, "UnsupportedMediaType",
                "an admission review must be sent with Content-Type: application/json"},
    too_large = {413, "RequestEntityTooLarge",
                 "the body is larger than this webhook takes; make the object smaller"},
    bad_framing = {400, "BadRequest", STW_FRAMING_MESSAGE},
    bad_timeout = {400, "BadRequest",
                   "the timeout in the query must be a duration above zero such as 10s or 1m30s"},
    too_busy =
        {503, "ServiceUnavailable",
         "too many admission reviews at once for the memory there is; try again in a second"},
    too_late = {
        504, "Timeout",
        "the caller's timeout has passed before the review could be answered; the body arrived too "
        "slowly, or timeoutSeconds in the webhook configuration is too short"};

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static struct stw_route *find_route(struct stw_server *s, const char *uri, size_t len)
{
    for (size_t i = 0; i < s->route_count; i++) {
        if (s->routes[i].path_len == len && memcmp(s->routes[i].path, uri, len) == 0)
            return &s->routes[i];
    }
    return NULL;
}

/* The API server starts its timeout before it dials, so for the first request of a connection count
 * from when it was opened. Go's client also keeps connections that it dialled but did not need. A
 * connection with a late first request was not dialled for that request: count from now. */
static uint64_t asked_ms(const struct stw_http_conn *conn, uint64_t now_ms, int64_t timeout_ms)
{
    bool dialled_for_it = !conn->kept && now_ms - conn->opened_ms <= (uint64_t)timeout_ms / 2;
    return dialled_for_it ? conn->opened_ms : now_ms;
}

/* Reads timeout= of a query into a deadline, less a margin for the response. */
static int read_timeout(const char *query, const struct stw_http_conn *conn, uint64_t now_ms,
                        uint64_t *ret_deadline_ms)
{
    static const char name[] = "timeout=";
    char value[32];
    int64_t ms;
    while (*query && strncmp(query, name, sizeof(name) - 1) != 0) {
        const char *next = strchr(query, '&');
        query = next ? next + 1 : "";
    }
    if (!*query)
        return 0;
    query += sizeof(name) - 1;
    size_t len = strcspn(query, "&");
    if (len >= sizeof(value))
        return -1;
    memcpy(value, query, len);
    value[len] = '\0';
    if (stw_duration_parse(value, &ms) != 0 || ms <= 0)
        return -1;
    uint64_t margin = STW_MIN((uint64_t)ms / 10, 200U);
    *ret_deadline_ms = asked_ms(conn, now_ms, ms) + (uint64_t)ms - margin;
    return 0;
}

void *stw_request_begin(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct stw_worker *w = cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct stw_http_conn *conn = info ? info->socket_context : NULL;
    if (!conn)
        return NULL; /* out of memory when it was opened: the handler closes it */
    struct stw_http_request *rq = &conn->rq;
    uint64_t now_ms = stw_now_ms(w->server->c.clock);
    size_t path_len = strcspn(uri, "?");
    stw_tls_input_advance(&conn->input, STW_TLS_STEP_MAX);
    rq->begun = true;
    rq->started_ns = monotonic_ns();
    rq->deadline_ms = UINT64_MAX;
    rq->route = find_route(w->server, uri, path_len);
    if (!rq->route)
        rq->refusal = not_found;
    else if (uri[path_len] && read_timeout(uri + path_len + 1, conn, now_ms, &rq->deadline_ms) != 0)
        rq->refusal = bad_timeout;
    if (rq->route)
        stw_series_add(rq->route->in_flight, 1);
    stw_gate_begin(w->server->gate, &conn->entry, now_ms);
    return conn;
}

static const char *find_header(struct MHD_Connection *mhd, const char *name)
{
    return MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, name);
}

/* "application/json", with or without parameters. */
static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    if (!type || strncasecmp(type, json, sizeof(json) - 1) != 0)
        return false;
    type += sizeof(json) - 1;
    type += strspn(type, " \t");
    return *type == '\0' || *type == ';';
}

/* Of a head with clear framing. */
static uint64_t read_length(struct MHD_Connection *mhd)
{
    const char *length = find_header(mhd, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t value = 0;
    if (find_header(mhd, MHD_HTTP_HEADER_TRANSFER_ENCODING))
        return UINT64_MAX;
    if (length)
        (void)stw_parse_int(length, 0, INT64_MAX, &value);
    return (uint64_t)value;
}

static void refuse_request(struct stw_http_request *rq, const struct stw_refusal *why)
{
    if (rq->refusal.code == 0)
        rq->refusal = *why;
}

static void add_charge(struct stw_http_conn *conn, size_t size)
{
    atomic_fetch_add(&conn->worker->server->held_bytes, size);
    conn->rq.charged += size;
    stw_gate_hold(&conn->entry, conn->rq.charged);
}

/* A request that no other must end for can only be sent again if it fits at all. */
static void refuse_for_memory(struct stw_http_request *rq, uint64_t size, size_t most)
{
    if (rq->refusal.code)
        return;
    if (size <= most) {
        stw_share_note_refusal(STW_SHARE_ADMISSION);
        rq->refusal = too_busy;
        return;
    }
    stw_format(rq->why, sizeof(rq->why),
               "this request takes %" PRIu64 " KiB of memory, and one request may take %zu KiB; "
               "raise the memory limit of the container, or --webhook-memory, or make the objects "
               "smaller",
               size >> 10, most >> 10);
    rq->refusal = (struct stw_refusal){413, "RequestEntityTooLarge", rq->why};
}

/* Raises the charge of a request to `size` before the memory is used. If there is not enough, cuts
 * a request of the client that holds the most, if that is more than this one holds. */
static void charge_memory(struct stw_http_conn *conn, uint64_t size)
{
    struct stw_server *s = conn->worker->server;
    struct stw_http_request *rq = &conn->rq;
    size_t all = s->request_share, most = size > STW_SMALL_BODY ? all / 4 * 3 : all;
    if (size <= rq->charged)
        return;
    size_t more = (size_t)size - rq->charged;
    if (size > most || (atomic_load(&s->held_bytes) + more > most &&
                        !stw_gate_displace(s->gate, &conn->entry, more)))
        refuse_for_memory(rq, size, most);
    else
        add_charge(conn, more);
}

/* The reply is left, until the client has read it. */
static void keep_charge(struct stw_http_conn *conn, size_t size)
{
    size_t before = conn->rq.charged;
    add_charge(conn, size);
    atomic_fetch_sub(&conn->worker->server->held_bytes, before);
    conn->rq.charged = size;
    stw_gate_hold(&conn->entry, size);
}

/* Memory of a review or a conversion besides its body. That of a small body is in the share of the
 * connection. */
static uint64_t cost_of_body(const struct stw_route *route, const char *body, size_t len)
{
    if (len <= STW_SMALL_BODY)
        return 0;
    return route->kind ? stw_skim_memory((struct stw_piece){body, len})
                       : stw_conversion_memory(body, len);
}

static void check_head(struct stw_http_conn *conn, struct MHD_Connection *mhd, const char *method,
                       const char *version)
{
    const struct stw_server *s = conn->worker->server;
    struct stw_http_request *rq = &conn->rq;
    rq->unclear = !stw_framing_is_clear(mhd, version);
    if (rq->unclear) {
        rq->refusal = bad_framing;
        return;
    }
    rq->length = read_length(mhd);
    if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
        refuse_request(rq, &not_post);
    if (rq->length != UINT64_MAX && rq->length > s->c.body_max_bytes)
        refuse_request(rq, &too_large);
    else if (rq->length != UINT64_MAX && rq->refusal.code == 0)
        charge_memory(conn, rq->length);
    if (!is_json(find_header(mhd, MHD_HTTP_HEADER_CONTENT_TYPE)))
        refuse_request(rq, &not_json);
    if (stw_trace_on())
        (void)stw_traceparent_parse(find_header(mhd, "traceparent"), &rq->caller);
}

/* At most one line a second: invalid requests must not fill the log. */
static bool may_complain(struct stw_server *s)
{
    uint64_t now = stw_now_ms(s->c.clock), last = atomic_load(&s->complained_ms);
    return now - last >= 1000 && atomic_compare_exchange_strong(&s->complained_ms, &last, now);
}

static void log_failed_request(struct stw_server *s, const struct stw_http_request *rq)
{
    const char *error = rq->refusal.code ? rq->refusal.message : *rq->why ? rq->why : NULL;
    if (may_complain(s))
        stw_log(rq->code >= 500 ? STW_LOG_ERROR : STW_LOG_WARN,
                "admission request was not answered "
                "with a decision",
                STW_STR("webhook", rq->route ? rq->route->path : NULL), STW_INT("code", rq->code),
                STW_STR("reason", rq->refusal.code ? rq->refusal.reason : NULL),
                STW_STR("requestUID", *rq->uid ? rq->uid : NULL),
                STW_STR("error", rq->code >= 500 ? error : NULL));
}

static void log_denial(const struct stw_route *r, const struct stw_review_result *v)
{
    stw_log(STW_LOG_INFO, "admission denied", STW_STR("kind", r->kind->kind),
            STW_STR("namespace", v->ns), STW_STR("name", v->name),
            STW_STR("operation", v->operation), STW_STR("user", v->user),
            STW_BOOL("dryRun", v->dry_run),
            STW_INT("findings", v->findings.error_count + v->findings.errors_left_out),
            STW_STR("requestUID", v->uid));
}

static void begin_span(const struct stw_http_request *rq, struct stw_span *span)
{
    char name[128];
    stw_span_begin(span, STW_SPAN_SERVER, "admission", &rq->caller,
                   stw_trace_on() ? monotonic_ns() - rq->started_ns : 0);
    if (!span->recording)
        return;
    stw_format(name, sizeof(name), "POST %s", rq->route->path);
    stw_span_name(span, name);
    stw_span_str(span, "http.request.method", "POST");
    stw_span_str(span, "http.route", rq->route->path);
    stw_span_str(span, "k8s.object.kind", rq->route->kind->kind);
}

/* No text of a finding: it may quote the object. */
static void end_span(const struct stw_http_request *rq, const struct stw_review_result *v,
                     struct stw_span *span)
{
    if (rq->code == 200) {
        stw_span_str(span, "k8s.namespace.name", *v->ns ? v->ns : NULL);
        stw_span_str(span, "k8s.object.name", v->name);
        stw_span_str(span, "k8s.admission.operation", v->operation);
        stw_span_bool(span, "k8s.admission.dry_run", v->dry_run);
        stw_span_bool(span, "k8s.admission.allowed", v->allowed);
        stw_span_int(span, "k8s.admission.findings",
                     (int64_t)(v->findings.error_count + v->findings.errors_left_out));
    }
    stw_span_int(span, "http.response.status_code", rq->code);
    if (rq->code >= 500)
        stw_span_fail(span, NULL);
    stw_span_end(span);
}

static void log_conversion(struct stw_server *s, const struct stw_conversion_result *v)
{
    if (!v->converted && may_complain(s))
        stw_log(STW_LOG_WARN, "conversion failed", STW_STR("kind", v->kind ? v->kind->kind : NULL),
                STW_STR("version", v->version), STW_INT("objects", v->objects),
                STW_STR("error", v->why));
}

static void convert_body(struct stw_http_conn *conn, const char *body, size_t len)
{
    struct stw_http_request *rq = &conn->rq;
    struct stw_worker *w = conn->worker;
    struct stw_conversion_result result;
    rq->code = stw_conversion_handle(
        &(struct stw_conversion_review){w->server->env.op, w->server->c.kinds, body, len},
        &w->scratch, &rq->reply, &result);
    stw_admission_metrics_conversion(rq->route, &result);
    log_conversion(w->server, &result);
}

static void decide_body(struct stw_http_conn *conn, const char *body, size_t len)
{
    struct stw_http_request *rq = &conn->rq;
    struct stw_worker *w = conn->worker;
    struct stw_review_result verdict;
    struct stw_span span;
    begin_span(rq, &span);
    stw_discreet_serve(conn->entry.address);
    rq->code = stw_review_handle(
        &(struct stw_review){rq->route->kind, rq->route->mutate, &w->server->env, body, len},
        &w->scratch, &rq->reply, &verdict);
    end_span(rq, &verdict, &span);
    if (rq->code >= 500) {
        stw_format(rq->why, sizeof(rq->why), "%s", verdict.why);
        stw_format(rq->uid, sizeof(rq->uid), "%s", verdict.uid);
    }
    if (rq->code == 200) {
        stw_admission_metrics_verdict(rq->route, &verdict);
        if (!verdict.allowed)
            log_denial(rq->route, &verdict);
    }
    stw_review_result_done(&verdict);
}

static void review_body(struct stw_http_conn *conn, const char *body, size_t len)
{
    struct stw_http_request *rq = &conn->rq;
    const struct stw_worker *w = conn->worker;
    if (stw_now_ms(w->server->c.clock) >= rq->deadline_ms) {
        refuse_request(rq, &too_late);
        return;
    }
    charge_memory(conn, len + cost_of_body(rq->route, body, len));
    if (rq->refusal.code)
        return;
    rq->reply = STW_BUF_INIT(REPLY_MAX);
    (void)stw_buf_reserve(&rq->reply, REPLY_FIRST);
    if (rq->route->kind)
        decide_body(conn, body, len);
    else
        convert_body(conn, body, len);
    rq->answered = true;
    stw_buf_done(&rq->body);
    keep_charge(conn, rq->reply.cap);
}

static void append_body(struct stw_http_conn *conn, const char *data, size_t size)
{
    const struct stw_server *s = conn->worker->server;
    struct stw_http_request *rq = &conn->rq;
    if (rq->length == UINT64_MAX) /* the buffer grows by doubling */
        charge_memory(conn, STW_MIN(STW_MAX(2 * rq->got, (uint64_t)STW_SMALL_BODY),
                                    (uint64_t)s->c.body_max_bytes));
    if (rq->refusal.code)
        return;
    rq->body.max = s->c.body_max_bytes;
    /* The announced length, but at most STW_SMALL_BODY before the body has arrived. */
    if (rq->body.len == 0 && rq->length != UINT64_MAX)
        (void)stw_buf_reserve(&rq->body, (size_t)STW_MIN(rq->length, STW_SMALL_BODY));
    stw_buf_add(&rq->body, data, size);
}

/* -1: cut the connection. */
static int take_body(struct stw_http_conn *conn, const char *data, size_t size)
{
    struct stw_http_request *rq = &conn->rq;
    struct stw_server *s = conn->worker->server;
    rq->got += size;
    if (rq->got > s->c.body_max_bytes)
        refuse_request(rq, &too_large);
    if (rq->got / OVERRUN_FACTOR > s->c.body_max_bytes)
        return -1;
    if (rq->refusal.code)
        return 0;
    if (rq->got == size && size == rq->length)
        review_body(conn, data, size); /* complete in one piece: no copy */
    else
        append_body(conn, data, size);
    return 0;
}

static void write_refusal(struct stw_http_request *rq)
{
    stw_buf_done(&rq->reply);
    rq->reply = STW_BUF_INIT(REPLY_MAX);
    rq->code = rq->refusal.code;
    stw_status_write(&rq->reply, rq->code, rq->refusal.reason, rq->refusal.message);
}

static enum MHD_Result queue_reply(struct stw_http_conn *conn, struct MHD_Connection *mhd)
{
    struct stw_http_request *rq = &conn->rq;
    size_t len = rq->reply.len;
    char *text = stw_buf_take(&rq->reply);
    struct MHD_Response *r =
        text ? MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!r) {
        free(text);
        return MHD_NO; /* no memory for a response: the connection is cut */
    }
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (rq->code == 405)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_POST);
    if (rq->code == 503)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (rq->unclear || atomic_load_explicit(&conn->worker->server->retiring, memory_order_relaxed))
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result status = MHD_queue_response(mhd, (unsigned)rq->code, r);
    MHD_destroy_response(r);
    return status;
}

static enum MHD_Result finish_request(struct stw_http_conn *conn, struct MHD_Connection *mhd)
{
    struct stw_http_request *rq = &conn->rq;
    if (rq->body.failed) {
        static const struct stw_refusal no_memory = {500, "InternalError",
                                                     "no memory to read the body; try again"};
        refuse_request(rq, &no_memory);
    }
    if (!rq->refusal.code && !rq->answered)
        review_body(conn, stw_buf_str(&rq->body), rq->body.len);
    if (rq->refusal.code)
        write_refusal(rq);
    if (rq->code != 200)
        log_failed_request(conn->worker->server, rq);
    if (rq->route)
        stw_admission_metrics_reply(rq->route, rq->code,
                                    (double)(monotonic_ns() - rq->started_ns) / 1e9);
    return queue_reply(conn, mhd);
}

/* Errors are sent after the end of the body, so that the connection can be kept. They are sent
 * early, which closes the connection, if the body is too large, its end is in doubt, or the client
 * waits for "100 Continue". */
static bool answer_early(const struct stw_http_request *rq, struct MHD_Connection *mhd)
{
    return rq->refusal.code == 413 || rq->unclear ||
           (rq->refusal.code && find_header(mhd, MHD_HTTP_HEADER_EXPECT));
}

enum MHD_Result stw_request_handle(void *cls, struct MHD_Connection *mhd, const char *url,
                                   const char *method, const char *version, const char *data,
                                   size_t *data_size, void **state)
{
    struct stw_http_conn *conn = *state;
    (void)cls, (void)url;
    if (!conn)
        return MHD_NO;
    stw_tls_input_advance(&conn->input, STW_TLS_STEP_MAX);
    if (!conn->rq.headed) {
        conn->rq.headed = true;
        check_head(conn, mhd, method, version);
        return answer_early(&conn->rq, mhd) ? finish_request(conn, mhd) : MHD_YES;
    }
    if (*data_size > 0) {
        size_t size = *data_size;
        *data_size = 0;
        return take_body(conn, data, size) == 0 ? MHD_YES : MHD_NO;
    }
    return finish_request(conn, mhd);
}

void stw_request_done(struct stw_http_conn *conn)
{
    struct stw_http_request *rq = &conn->rq;
    if (!rq->begun)
        return;
    if (rq->route)
        stw_series_add(rq->route->in_flight, -1);
    if (rq->charged > 0)
        atomic_fetch_sub(&conn->worker->server->held_bytes, rq->charged);
    stw_gate_hold(&conn->entry, 0);
    stw_buf_done(&rq->reply);
    stw_buf_done(&rq->body); /* a kept connection must not hold uncharged memory */
    *rq = (struct stw_http_request){0};
}

void stw_request_completed(void *cls, struct MHD_Connection *mhd, void **state,
                           enum MHD_RequestTerminationCode why)
{
    struct stw_worker *w = cls;
    struct stw_http_conn *conn = *state;
    (void)mhd;
    if (!conn || !conn->rq.begun)
        return;
    bool served = why == MHD_REQUEST_TERMINATED_COMPLETED_OK && conn->rq.code == 200;
    stw_request_done(conn);
    stw_tls_input_advance(&conn->input, STW_TLS_STEP_MAX);
    conn->kept = true;
    stw_gate_end(w->server->gate, &conn->entry, stw_now_ms(w->server->c.clock), served);
}
