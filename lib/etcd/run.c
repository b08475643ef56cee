/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs exchanges in parallel, on the connections of one lane, in the caller's thread.  With a user,
 * a log-in precedes a request without a token, or whose token the server does not know any more. */
#include "base/clock.h"
#include "base/fence.h"
#include "base/thread.h"
#include "base/util.h"
#include "etcd/etcd_priv.h"

#include <assert.h>

#define LOGIN_PATH "/v3/auth/authenticate"
#define POLL_MS 250

void stw_etcd_exchange_done(struct stw_etcd_exchange *x)
{
    stw_buf_done(&x->answer);
    stw_buf_done(&x->login);
}

/* --- the token, which all threads share */

static bool needs_login(struct stw_etcd *e, char token[STW_ETCD_TOKEN_MAX])
{
    (void)pthread_mutex_lock(&e->lock);
    memcpy(token, e->token, STW_ETCD_TOKEN_MAX);
    bool off = e->auth_off;
    (void)pthread_mutex_unlock(&e->lock);
    return e->user && !token[0] && !off;
}

static void keep_token(struct stw_etcd *e, const char token[STW_ETCD_TOKEN_MAX], bool off)
{
    STW_LOCKED(&e->lock);
    memcpy(e->token, token, sizeof(e->token));
    e->auth_off = off;
}

static int write_login(const struct stw_etcd *e, struct stw_buf *out)
{
    stw_buf_done(out);
    *out = STW_BUF_INIT(8192);
    out->secret = true;
    stw_buf_adds(out, "{\"name\":");
    stw_buf_json_strz(out, e->user);
    stw_buf_adds(out, ",\"password\":");
    stw_buf_json_strz(out, e->password);
    stw_buf_addc(out, '}');
    return out->failed ? -1 : 0;
}

/* --- steps */

static void start_exchange(struct stw_etcd *e, CURLM *multi, struct stw_etcd_exchange *x)
{
    char token[STW_ETCD_TOKEN_MAX] = "";
    bool login = needs_login(e, token);
    const char *path = login ? LOGIN_PATH : x->path;
    x->trouble = STW_ETCD_FINE;
    x->err = (struct stw_error){0};
    x->unknown = false;
    x->phase = login ? STW_ETCD_LOGGING_IN : STW_ETCD_ASKING;
    x->logged_in = x->logged_in || login;
    if (stw_fence_check(&x->err) != 0)
        x->trouble = STW_ETCD_UNREACHABLE;
    else if (login && write_login(e, &x->login) != 0)
        (void)stw_etcd_refuse(x, STW_ETCD_AUTH, STW_ERR_INVALID, "user and password are too long");
    else
        (void)stw_etcd_transfer_begin(e, multi, x, path, login ? stw_buf_str(&x->login) : x->body,
                                      token);
    stw_wipe(token, sizeof(token));
    if (x->trouble != STW_ETCD_FINE)
        x->phase = STW_ETCD_DONE;
}

/* A server with authentication disabled refuses the log-in; that is not an error. */
static bool login_done(struct stw_etcd *e, struct stw_etcd_exchange *x)
{
    char token[STW_ETCD_TOKEN_MAX] = "";
    bool off = x->trouble != STW_ETCD_FINE && strstr(x->err.text, "authentication is not enabled");
    if (x->trouble == STW_ETCD_FINE &&
        stw_etcd_read_token(stw_buf_str(&x->answer), x->answer.len, token, &x->err) != 0)
        x->trouble = STW_ETCD_AUTH;
    if (x->trouble == STW_ETCD_FINE || off)
        keep_token(e, token, off);
    stw_wipe(token, sizeof(token));
    return x->trouble == STW_ETCD_FINE || off;
}

static bool may_log_in_again(struct stw_etcd *e, struct stw_etcd_exchange *x)
{
    if (!x->unknown || !e->user || x->logged_in)
        return false;
    keep_token(e, (const char[STW_ETCD_TOKEN_MAX]){0}, false);
    return true;
}

static void finish_exchange(struct stw_etcd *e, CURLM *multi, struct stw_etcd_exchange *x,
                            CURLcode code)
{
    bool more;
    stw_etcd_transfer_result(x, code);
    stw_etcd_transfer_end(multi, x);
    if (x->phase == STW_ETCD_LOGGING_IN) {
        more = login_done(e, x);
    } else {
        more = may_log_in_again(e, x);
        if (!more && x->then) {
            x->then(x);
            more = x->again;
            x->again = false;
        }
    }
    if (more)
        start_exchange(e, multi, x);
    else
        x->phase = STW_ETCD_DONE;
}

/* --- the loop */

static void end_all(CURLM *multi, struct stw_etcd_exchange *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (x[i].phase == STW_ETCD_DONE)
            continue;
        stw_etcd_transfer_end(multi, &x[i]);
        x[i].phase = STW_ETCD_DONE;
        (void)stw_etcd_refuse(&x[i], STW_ETCD_UNREACHABLE, STW_ERR_CANCELLED, "%s: cancelled",
                              x[i].at->url);
    }
}

static void collect_finished_exchanges(struct stw_etcd *e, CURLM *multi)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(multi, &left)) != NULL;) {
        struct stw_etcd_exchange *x = NULL;
        CURLcode code = m->data.result;
        if (m->msg == CURLMSG_DONE &&
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&x) == CURLE_OK)
            finish_exchange(e, multi, x, code);
    }
}

/* Aborts streams that receive no data for stall_ms, long before their timeout. */
static void look_for_stalls(struct stw_etcd *e, CURLM *multi, struct stw_etcd_exchange *x,
                            size_t count)
{
    uint64_t now = stw_now_ms(&stw_clock_system);
    for (size_t i = 0; i < count; i++) {
        if (!x[i].data || x[i].phase == STW_ETCD_DONE || now - x[i].heard_ms < e->stall_ms)
            continue;
        stw_etcd_transfer_end(multi, &x[i]);
        x[i].phase = STW_ETCD_DONE;
        (void)stw_etcd_refuse(&x[i], STW_ETCD_UNREACHABLE, STW_ERR_TIMEOUT, "%s: no data for %u s",
                              x[i].at->url, e->stall_ms / 1000);
    }
}

static bool all_done(const struct stw_etcd_exchange *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (x[i].phase != STW_ETCD_DONE)
            return false;
    return true;
}

static void run_exchange_loop(struct stw_etcd *e, CURLM *multi, struct stw_etcd_exchange *x,
                              size_t count)
{
    int running = 0;
    while (!all_done(x, count)) {
        if (atomic_load(&e->cancelled) || !stw_fence_may_write()) {
            end_all(multi, x, count);
            return;
        }
        (void)curl_multi_perform(multi, &running);
        collect_finished_exchanges(e, multi);
        look_for_stalls(e, multi, x, count);
        if (!all_done(x, count))
            (void)curl_multi_poll(multi, NULL, 0, POLL_MS, NULL);
    }
}

void stw_etcd_run(struct stw_etcd *e, struct stw_etcd_exchange *x, size_t count)
{
    struct stw_etcd_lane *lane = stw_etcd_lane_take(e);
    if (!lane) {
        for (size_t i = 0; i < count; i++)
            (void)stw_etcd_refuse(&x[i], STW_ETCD_FAILED, STW_ERR_INTERNAL, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++)
        start_exchange(e, lane->multi, &x[i]);
    run_exchange_loop(e, lane->multi, x, count);
    stw_etcd_lane_give(e, lane, count);
}

int stw_etcd_ask(struct stw_etcd *e, struct stw_etcd_exchange *x,
                 const struct stw_etcd_endpoint *at, const char *path, const char *body)
{
    assert(at && at->url && path);
    x->at = at;
    x->path = path;
    x->body = body;
    x->deadline_ms = stw_now_ms(&stw_clock_system) + e->timeout_ms;
    stw_etcd_run(e, x, 1);
    return x->trouble == STW_ETCD_FINE ? 0 : -1;
}
