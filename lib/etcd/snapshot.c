/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes a snapshot: reads the status first, for the revision, then streams into the sink. */
#include "base/clock.h"
#include "base/util.h"
#include "etcd/etcd_priv.h"

static int on_piece(struct stw_etcd_exchange *x, const char *data, size_t len)
{
    struct stw_etcd_stream *s = x->ctx;
    if (stw_etcd_stream_add(s, data, len, &x->err) == 0)
        return 0;
    if (x->err.code == STW_OK)
        (void)stw_fail(&x->err, STW_ERR_INTERNAL, "the receiver did not accept the snapshot");
    x->trouble = s->sink_failed       ? STW_ETCD_FINE
                 : s->refusal.text[0] ? s->refusal.trouble
                                      : STW_ETCD_FAILED;
    return -1;
}

static int read_status(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                       struct stw_etcd_exchange *x, struct stw_etcd_snapshot *ret)
{
    struct stw_etcd_health h;
    if (stw_etcd_ask(e, x, at, "/v3/maintenance/status", "{}") != 0)
        return -1;
    if (stw_etcd_read_status(stw_buf_str(&x->answer), x->answer.len, &h, &x->err) != 0) {
        x->trouble = STW_ETCD_FAILED;
        return -1;
    }
    ret->revision = h.revision;
    ret->version = h.version;
    return 0;
}

static int receive_snapshot_stream(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                                   uint32_t timeout_ms, struct stw_etcd_exchange *x,
                                   struct stw_etcd_stream *s, struct stw_etcd_snapshot *ret)
{
    stw_etcd_exchange_done(x);
    *x = (struct stw_etcd_exchange){.at = at,
                                    .path = "/v3/maintenance/snapshot",
                                    .body = "{}",
                                    .data = on_piece,
                                    .ctx = s,
                                    .deadline_ms = stw_now_ms(&stw_clock_system) + timeout_ms};
    stw_etcd_run(e, x, 1);
    if (x->err.code != STW_OK)
        return -1;
    if (stw_etcd_stream_end(s, &ret->size_bytes, ret->sha256, &x->err) == 0)
        return 0;
    x->trouble = s->sink_failed ? STW_ETCD_FINE : STW_ETCD_FAILED;
    return -1;
}

int stw_etcd_snapshot(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                      const struct stw_etcd_sink *sink, struct stw_etcd_snapshot *ret,
                      enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    struct stw_etcd_exchange x = {0};
    struct stw_etcd_snapshot got = {0};
    struct stw_etcd_stream s;
    int r = -1;
    if (stw_etcd_stream_init(&s, sink->fn, sink->ctx) != 0)
        (void)stw_etcd_refuse(&x, STW_ETCD_FAILED, STW_ERR_INTERNAL, "out of memory");
    else if (read_status(e, at, &x, &got) == 0)
        r = receive_snapshot_stream(e, at, sink->timeout_ms, &x, &s, &got);
    if (r == 0)
        *ret = got;
    else if (err)
        *err = x.err;
    *trouble = x.trouble;
    stw_etcd_stream_done(&s);
    stw_etcd_exchange_done(&x);
    return r;
}
