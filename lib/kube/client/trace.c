/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of requests, with the names of OpenTelemetry's conventions for HTTP clients.  Neither the
 * query, a header nor a body is recorded. */
#include "base/util.h"
#include "kube/client/client_priv.h"

#define PARTS_MAX 12
#define NAME_MAX_BYTES 200

struct segment {
    const char *text;
    size_t len;
};

static size_t split_path(const char *path, struct segment *parts)
{
    size_t count = 0;
    for (const char *end = path + strcspn(path, "?"); path < end && count < PARTS_MAX;) {
        path += *path == '/';
        size_t len = strcspn(path, "/?");
        parts[count++] = (struct segment){path, len};
        path += len;
    }
    return count;
}

static bool is_part(const struct segment *p, const char *text)
{
    return p->len == strlen(text) && memcmp(p->text, text, p->len) == 0;
}

/* "status" and "finalize" of a Namespace. */
static bool is_of_namespace(const struct segment *p)
{
    return is_part(p, "status") || is_part(p, "finalize");
}

/* Replaces the names after the first `at` parts: api/VERSION or apis/GROUP/VERSION. */
static void replace_names(struct segment *parts, size_t count, size_t at)
{
    static const struct segment ns = {"{namespace}", 11}, name = {"{name}", 6};
    if (at + 1 >= count)
        return;
    if (is_part(&parts[at], "watch"))
        at++;
    bool nested = at + 2 < count && is_part(&parts[at], "namespaces") &&
                  !(at + 3 == count && is_of_namespace(&parts[at + 2]));
    if (nested) {
        parts[at + 1] = ns;
        at += 2;
    }
    if (at + 1 < count)
        parts[at + 1] = name;
}

void stw_client_path_template(const char *path, char *out, size_t size)
{
    struct segment parts[PARTS_MAX];
    stw_autobuf struct stw_buf text = STW_BUF_INIT(size);
    size_t count = split_path(path, parts);
    if (count > 0 && is_part(&parts[0], "api"))
        replace_names(parts, count, 2);
    else if (count > 0 && is_part(&parts[0], "apis"))
        replace_names(parts, count, 3);
    for (size_t i = 0; i < count; i++) {
        stw_buf_addc(&text, '/');
        stw_buf_add(&text, parts[i].text, parts[i].len);
    }
    stw_format(out, size, "%s", stw_buf_str(&text));
}

/* "example:6443" or "[::1]:6443" as a host and a port. */
static void add_server(struct stw_span *span, const char *authority)
{
    char host[256];
    int64_t port;
    const char *colon = strrchr(authority, ':'), *bracket = strrchr(authority, ']');
    bool has_port = colon && (!bracket || colon > bracket);
    size_t len = has_port ? (size_t)(colon - authority) : strlen(authority);
    stw_format(host, sizeof(host), "%.*s", (int)len, authority);
    stw_span_str(span, "server.address", host);
    if (has_port && stw_parse_int(colon + 1, 1, 65535, &port) == 0)
        stw_span_int(span, "server.port", port);
}

void stw_client_trace_begin(struct stw_client *c, struct stw_http_call *call, struct stw_span *span)
{
    const struct stw_request *r = &call->req;
    char path[NAME_MAX_BYTES], name[NAME_MAX_BYTES + 16];
    stw_span_begin_child(span, STW_SPAN_CLIENT, r->method);
    call->trace = span->active ? &span->record.context : NULL;
    if (!span->recording)
        return;
    stw_client_path_template(r->path, path, sizeof(path));
    stw_format(name, sizeof(name), "%s %s", r->method, path);
    stw_span_name(span, name);
    stw_span_str(span, "http.request.method", r->method);
    stw_span_str(span, "url.template", path);
    add_server(span, c->host);
}

void stw_client_trace_end(struct stw_http_call *call, struct stw_span *span)
{
    if (call->status > 0)
        stw_span_int(span, "http.response.status_code", call->status);
    if (call->err.code != STW_OK) {
        stw_span_str(span, "error.type", stw_err_name(call->err.code));
        stw_span_fail(span, NULL);
    }
    stw_span_end(span);
    call->trace = NULL;
}
