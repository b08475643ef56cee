/* SPDX-License-Identifier: Apache-2.0
 *
 * One blocking request, on the caller's thread. */
#include "base/thread.h"
#include "base/util.h"
#include "kube/client/client_priv.h"

/* Waits until `at_ms` of the client's clock, or until the client is cancelled. */
static void wait_until(struct stw_client *c, uint64_t at_ms)
{
    uint64_t now = stw_now_ms(c->clock), begin = stw_now_ms(&stw_clock_system);
    uint64_t end = begin + (at_ms > now ? at_ms - now : 0);
    pthread_mutex_lock(&c->lock);
    while (!c->cancelled && stw_now_ms(&stw_clock_system) < end)
        stw_cond_wait_until(&c->changed, &c->lock, end);
    pthread_mutex_unlock(&c->lock);
}

/* One attempt.  Returns true when it must be repeated at call->start_at_ms. */
static bool attempt_request(struct stw_client *c, struct stw_http_call *call)
{
    bool again = false;
    if (!stw_fence_allows(call->fence)) { /* also before a retry */
        (void)stw_fail(&call->err, STW_ERR_CANCELLED, "this process no longer leads");
        return false;
    }
    call->handle = stw_handle_take(c, &call->err);
    if (!call->handle)
        return false;
    if (stw_transfer_prepare(c, call) == 0)
        again = stw_transfer_result(c, call, curl_easy_perform(call->handle->easy));
    stw_transfer_clear(call);
    stw_handle_give_back(c, call->handle);
    call->handle = NULL;
    return again;
}

static bool is_cancelled(struct stw_client *c)
{
    STW_LOCKED(&c->lock);
    return c->cancelled;
}

static void perform_call(struct stw_client *c, struct stw_http_call *call)
{
    const struct stw_request *r = &call->req;
    struct stw_span span;
    if (!stw_streq(r->method, "GET"))
        call->fence = stw_fence_current();
    call->deadline_ms =
        stw_now_ms(c->clock) + (r->timeout_ms ? r->timeout_ms : STW_CLIENT_TIMEOUT_MS);
    atomic_fetch_add(&c->urgent, 1);
    stw_client_trace_begin(c, call, &span);
    while (attempt_request(c, call)) {
        wait_until(c, call->start_at_ms);
        stw_buf_clear(&call->body);
        call->err = (struct stw_error){0};
    }
    if (call->err.code != STW_OK && is_cancelled(c))
        (void)stw_fail(&call->err, STW_ERR_CANCELLED, "the request was cancelled: stopping");
    stw_client_trace_end(call, &span);
    atomic_store(&c->urgent_ms, stw_now_ms(c->clock));
    /* This thread's last use of the client, which may be destroyed afterwards. */
    pthread_mutex_lock(&c->lock);
    atomic_fetch_sub(&c->urgent, 1);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

int stw_client_ask(struct stw_client *c, const struct stw_request *req, struct stw_buf *ret,
                   struct stw_error *err)
{
    struct stw_http_call call = {.req = *req, .given = ret != NULL};
    if (req->answer_max > 0)
        call.body = STW_BUF_INIT(STW_MIN(req->answer_max, c->response_max));
    perform_call(c, &call);
    bool ok = call.err.code == STW_OK;
    if (!ok && err)
        *err = call.err;
    if (ok && ret) {
        stw_buf_done(ret);
        *ret = call.body;
    } else {
        stw_buf_done(&call.body);
    }
    return ok ? 0 : -1;
}

struct reader {
    stw_read_fn *fn;
    void *ctx;
};

static int hand_on(struct stw_http_call *call, const char *data, size_t len)
{
    const struct reader *r = call->ctx;
    return r->fn(r->ctx, data, len, &call->err);
}

int stw_client_read(struct stw_client *c, const struct stw_request *req, stw_read_fn *fn, void *ctx,
                    struct stw_error *err)
{
    struct reader reader = {fn, ctx};
    struct stw_http_call call = {.req = *req, .on_body = hand_on, .ctx = &reader};
    perform_call(c, &call);
    stw_buf_done(&call.body);
    if (call.err.code != STW_OK && err)
        *err = call.err;
    return call.err.code == STW_OK ? 0 : -1;
}
