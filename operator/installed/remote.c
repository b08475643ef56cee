/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/remote.h"

#include "base/log.h"
#include "base/util.h"

#include <curl/curl.h>

#define PATH_MAX_BYTES 4096

static void prepare_process(void)
{
    stw_log_setup(STW_LOG_TEXT, STW_LOG_ERROR, STDERR_FILENO);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

int stw_remote_connect(struct stw_remote *r, struct stw_error *err)
{
    prepare_process();
    return stw_client_create(r->op, r->kubeconfig, &stw_clock_system, NULL, &r->client, err);
}

int stw_remote_open(struct stw_remote *r, const char *path, const char *context,
                    struct stw_error *err)
{
    prepare_process();
    if (stw_kubeconfig_load_for_person(path && *path ? path : NULL,
                                       context && *context ? context : NULL, &r->kubeconfig,
                                       err) != 0)
        return -1;
    return stw_client_create(r->op, r->kubeconfig, &stw_clock_system, NULL, &r->client, err);
}

void stw_remote_done(struct stw_remote *r)
{
    stw_client_destroy(r->client);
    stw_kubeconfig_destroy(r->kubeconfig);
    *r = (struct stw_remote){0};
}

void stw_answer_done(struct stw_answer *a)
{
    stw_json_done(&a->doc);
    stw_buf_done(&a->text);
}

int stw_remote_do(const struct stw_remote *r, const struct stw_request *req, struct stw_answer *ret,
                  struct stw_error *err)
{
    struct stw_request timed = *req;
    uint64_t now = stw_now_ms(&stw_clock_system);
    if (timed.timeout_ms == 0)
        timed.timeout_ms = r->timeout_ms ? r->timeout_ms : STW_CLIENT_TIMEOUT_MS;
    if (r->deadline_ms && now >= r->deadline_ms)
        return stw_fail(err, STW_ERR_TIMEOUT, "no time is left for %s %s", req->method, req->path);
    if (r->deadline_ms)
        timed.timeout_ms = (uint32_t)STW_MIN(timed.timeout_ms, r->deadline_ms - now);
    stw_answer_done(ret);
    *ret = (struct stw_answer){.text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES)};
    ret->text.secret = req->secret;
    if (stw_client_do(r->client, &timed, &ret->text, err) != 0)
        return -1;
    if (stw_json_scan(&ret->doc, stw_buf_str(&ret->text), ret->text.len, err) != 0)
        return stw_error_wrap(err, "the answer to %s %s", req->method, req->path);
    ret->root = stw_json_root(&ret->doc);
    return 0;
}

int stw_remote_get(const struct stw_remote *r, const struct stw_resource *resource, const char *ns,
                   const char *name, struct stw_answer *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    char own[STW_OWN_NAME_LEN];
    stw_operator_text(r->op, name, own);
    stw_resource_path(resource, ns, own, NULL, &path);
    struct stw_request req = {
        .method = "GET", .path = stw_buf_str(&path), .secret = resource == &stw_res_secret};
    return stw_remote_do(r, &req, ret, err);
}
