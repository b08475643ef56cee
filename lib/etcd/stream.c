/* SPDX-License-Identifier: Apache-2.0
 *
 * The gateway's stream of a snapshot: lines of JSON, each with a piece of the database in base64.
 * One line is in memory at a time.  An error in mid-stream is a line, too, after a status of 200.
 */
#include "base/base64.h"
#include "base/util.h"
#include "etcd/etcd_priv.h"

int stw_etcd_stream_init(struct stw_etcd_stream *s, stw_etcd_sink_fn *sink, void *ctx)
{
    *s = (struct stw_etcd_stream){.sink = sink, .ctx = ctx};
    s->line = STW_BUF_INIT(STW_ETCD_LINE_MAX_BYTES);
    s->piece = STW_BUF_INIT(STW_ETCD_LINE_MAX_BYTES);
    s->line.secret = s->piece.secret = true;
    s->check = stw_etcd_check_create();
    return s->check ? 0 : -1;
}

void stw_etcd_stream_done(struct stw_etcd_stream *s)
{
    stw_buf_done(&s->line);
    stw_buf_done(&s->piece);
    stw_etcd_check_destroy(s->check);
    s->check = NULL;
}

static int pass_on(struct stw_etcd_stream *s, struct stw_error *err)
{
    if (s->piece.len == 0)
        return 0;
    if (stw_etcd_check_add(s->check, s->piece.data, s->piece.len) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "the SHA-256 cannot be computed");
    if (s->sink(s->ctx, s->piece.data, s->piece.len, err) == 0)
        return 0;
    s->sink_failed = true;
    return -1;
}

/* base64 has no escapes, so the text of the string is its value. */
static int take_blob(struct stw_etcd_stream *s, struct stw_json blob, struct stw_error *err)
{
    size_t len = 0;
    const char *raw = stw_json_raw(blob, &len);
    stw_buf_clear(&s->piece);
    if (!stw_json_there(blob))
        return 0;
    if (stw_json_type(blob) != STW_JSON_STRING || len < 2 ||
        stw_base64_decode(raw + 1, len - 2, &s->piece) != 0)
        return stw_fail(err, STW_ERR_INVALID, "a piece of the snapshot is not base64");
    return pass_on(s, err);
}

static int take_line(struct stw_etcd_stream *s, struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {.max = STW_ETCD_LINE_VALUES_MAX};
    if (s->line.len == 0)
        return 0;
    if (stw_json_scan(&doc, s->line.data, s->line.len, NULL) != 0)
        return stw_fail(err, STW_ERR_INVALID, "a line of the snapshot's stream is not JSON");
    struct stw_json root = stw_json_root(&doc), result = stw_json_get(root, "result");
    if (stw_json_there(stw_json_get(root, "error"))) {
        stw_etcd_refusal_read(200, s->line.data, s->line.len, &s->refusal);
        return stw_fail(err, STW_ERR_UNAVAILABLE, "the member ended the snapshot: %s",
                        s->refusal.text);
    }
    if (stw_json_type(result) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID, "a line of the snapshot's stream has no result");
    return take_blob(s, stw_json_get(result, "blob"), err);
}

static int append_to_line(struct stw_etcd_stream *s, const char *data, size_t len,
                          struct stw_error *err)
{
    stw_buf_add(&s->line, data, len);
    if (!s->line.failed)
        return 0;
    return stw_fail(err, STW_ERR_TOO_LARGE, "a line of the snapshot's stream is over %u bytes",
                    STW_ETCD_LINE_MAX_BYTES);
}

int stw_etcd_stream_add(struct stw_etcd_stream *s, const char *data, size_t len,
                        struct stw_error *err)
{
    while (len > 0) {
        const char *end = memchr(data, '\n', len);
        size_t n = end ? (size_t)(end - data) : len;
        if (append_to_line(s, data, n, err) != 0)
            return -1;
        if (!end)
            return 0;
        if (take_line(s, err) != 0)
            return -1;
        stw_buf_clear(&s->line);
        data += n + 1;
        len -= n + 1;
    }
    return 0;
}

int stw_etcd_stream_end(struct stw_etcd_stream *s, uint64_t *ret_size, char ret_sha256[65],
                        struct stw_error *err)
{
    if (take_line(s, err) != 0)
        return -1;
    stw_buf_clear(&s->line);
    return stw_etcd_check_end(s->check, ret_size, ret_sha256, err);
}
