/* SPDX-License-Identifier: Apache-2.0
 *
 * A health round: requests the status of each member and, from a voter, a linearizable read of a
 * key that does not exist.  A voter can answer the read only with a quorum. */
#include "base/clock.h"
#include "base/util.h"
#include "etcd/etcd_priv.h"

#define STATUS_PATH "/v3/maintenance/status"

static void status_answered(struct stw_etcd_exchange *x)
{
    struct stw_etcd_health *h = x->ctx;
    h->trouble = x->trouble;
    h->err = x->err;
    if (x->trouble != STW_ETCD_FINE)
        return;
    if (stw_etcd_read_status(stw_buf_str(&x->answer), x->answer.len, h, &h->err) != 0) {
        h->trouble = STW_ETCD_FAILED;
        (void)stw_error_wrap(&h->err, "%s", x->at->url);
        return;
    }
    x->again = !h->learner;
    x->path = STW_ETCD_READ_PATH;
    x->body = STW_ETCD_READ_BODY;
}

/* etcd checks permissions after the quorum has answered (etcdserver/v3_server.go), so a refusal to
 * a user without permission for the key proves the same. */
bool stw_etcd_read_proved(const struct stw_etcd_exchange *x)
{
    return x->trouble == STW_ETCD_FINE ||
           (x->trouble == STW_ETCD_AUTH && (strstr(x->err.text, "permission denied") ||
                                            strstr(x->err.text, "user name is empty")));
}

static void read_answered(struct stw_etcd_exchange *x)
{
    struct stw_etcd_health *h = x->ctx;
    h->linearizable = stw_etcd_read_proved(x);
    h->err = x->err;
    if (h->linearizable)
        h->err = (struct stw_error){0};
}

static void handle_round_answer(struct stw_etcd_exchange *x)
{
    if (stw_streq(x->path, STATUS_PATH))
        status_answered(x);
    else
        read_answered(x);
}

/* Takes over the error of an exchange that ended before its answer (cancelled, out of memory, no
 * log-in). */
static void take_failure(const struct stw_etcd_exchange *x, struct stw_etcd_health *h)
{
    if (x->trouble == STW_ETCD_FINE || h->linearizable)
        return;
    if (!h->answers)
        h->trouble = x->trouble;
    h->err = x->err;
}

void stw_etcd_round(struct stw_etcd *e, const struct stw_etcd_endpoint *endpoints, size_t count,
                    struct stw_etcd_health *ret)
{
    uint64_t deadline_ms = stw_now_ms(&stw_clock_system) + e->timeout_ms;
    stw_autofree struct stw_etcd_exchange *x = calloc(count ? count : 1, sizeof(*x));
    for (size_t i = 0; i < count; i++)
        ret[i] = (struct stw_etcd_health){
            .trouble = STW_ETCD_FAILED, .err = {.code = STW_ERR_INTERNAL, .text = "out of memory"}};
    if (!x)
        return;
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct stw_etcd_health){0};
        x[i].at = &endpoints[i];
        x[i].path = STATUS_PATH;
        x[i].body = "{}";
        x[i].deadline_ms = deadline_ms;
        x[i].answer_max = STW_ETCD_ROUND_ANSWER_MAX_BYTES;
        x[i].then = handle_round_answer;
        x[i].ctx = &ret[i];
    }
    stw_etcd_run(e, x, count);
    for (size_t i = 0; i < count; i++) {
        take_failure(&x[i], &ret[i]);
        stw_etcd_exchange_done(&x[i]);
    }
}
