/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/server.h"

#include "base/util.h"
#include "hostile/admission.h"
#include "kube/client/client_priv.h"

#include <curl/curl.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define BODY_MAX ((size_t)64 << 20)

bool __wrap_stw_transfer_result(struct stw_client *c, struct stw_http_call *call, CURLcode code);
CURLcode __wrap_curl_easy_perform(CURL *easy);
bool __wrap_stw_client_submit(struct stw_client *c, const struct stw_request *req);

static struct hostile_server server;

struct hostile_server hostile_serve(hostile_answer_fn *fn, void *ctx)
{
    struct hostile_server before = server;
    server = (struct hostile_server){fn, ctx};
    return before;
}

/* What steward sends is always JSON. */
static void check_request(const struct stw_request *req)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err = {0};
    if (req->body_len > 0 && stw_json_scan(&doc, req->body, req->body_len, &err) != 0)
        hostile_fail("%s %s sends text that is not JSON: %s\n%.*s", req->method, req->path,
                     err.text, (int)req->body_len, req->body);
}

bool __wrap_stw_transfer_result(struct stw_client *c, struct stw_http_call *call, CURLcode code)
{
    stw_autobuf struct stw_buf body = STW_BUF_INIT(BODY_MAX);
    (void)c, (void)code;
    check_request(&call->req);
    int status = server.fn ? server.fn(server.ctx, &call->req, &body) : 0;
    HOSTILE_EXPECT(!body.failed);
    call->status = status;
    call->err = (struct stw_error){0};
    if (status == 0)
        (void)stw_fail(&call->err, STW_ERR_UNAVAILABLE, "no answer");
    else if (status >= 300)
        stw_status_error(status, &body, &call->err);
    else if (!call->on_body)
        stw_buf_add(&call->body, stw_buf_str(&body), body.len);
    else if (call->on_body(call, stw_buf_str(&body), body.len) != 0 && call->err.code == STW_OK)
        (void)stw_fail(&call->err, STW_ERR_CANCELLED, "the request was ended");
    return false;
}

CURLcode __wrap_curl_easy_perform(CURL *easy)
{
    (void)easy;
    return CURLE_COULDNT_CONNECT;
}

bool __wrap_stw_client_submit(struct stw_client *c, const struct stw_request *req)
{
    (void)c;
    check_request(req);
    return true;
}

/* These replace the functions of libc also for libraries, such as those of databases. */
__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *address,
                                                   socklen_t len)
{
    (void)fd, (void)address, (void)len;
    errno = ECONNREFUSED;
    return -1;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **ret)
{
    (void)node, (void)service, (void)hints, (void)ret;
    return EAI_NONAME;
}
