/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch line splitter.  A line that arrives whole is passed on in place; only a split one is
 * copied.  Of a line over the limit only the start is kept. */
#include "kube/client/lines_priv.h"

#include "base/util.h"

#include <string.h>

/* Memory for split lines that is kept for the next one. */
#define KEEP_BYTES (16u << 10)

void stw_lines_init(struct stw_lines *l, size_t max_bytes)
{
    *l = (struct stw_lines){.partial = STW_BUF_INIT(max_bytes)};
}

void stw_lines_done(struct stw_lines *l)
{
    stw_buf_done(&l->partial);
}

void stw_lines_reset(struct stw_lines *l)
{
    if (l->partial.cap > KEEP_BYTES)
        stw_buf_done(&l->partial);
    else
        stw_buf_clear(&l->partial);
    l->cut = false;
}

static int hand_on(const char *line, size_t len, bool cut, stw_line_fn *fn, void *ctx)
{
    if (len > 0 && !cut && line[len - 1] == '\r')
        len--;
    return len > 0 ? fn(ctx, line, len, cut) : 0;
}

/* Keeps what has room.  False: out of memory. */
static bool keep_partial_line(struct stw_lines *l, const char *data, size_t len)
{
    size_t room = l->partial.max - l->partial.len;
    l->cut |= len > room;
    stw_buf_add(&l->partial, data, STW_MIN(len, room));
    return !l->partial.failed;
}

/* One line, its end at data + len. */
static int handle_line(struct stw_lines *l, const char *data, size_t len, stw_line_fn *fn,
                       void *ctx)
{
    if (l->partial.len == 0 && len <= l->partial.max)
        return hand_on(data, len, false, fn, ctx);
    if (!keep_partial_line(l, data, len))
        return -1;
    int r = hand_on(l->partial.data, l->partial.len, l->cut, fn, ctx);
    stw_lines_reset(l);
    return r;
}

int stw_lines_feed(struct stw_lines *l, const char *data, size_t len, stw_line_fn *fn, void *ctx)
{
    const char *end = data + len, *nl;
    while (data < end && (nl = memchr(data, '\n', (size_t)(end - data)))) {
        int r = handle_line(l, data, (size_t)(nl - data), fn, ctx);
        if (r != 0)
            return r;
        data = nl + 1;
    }
    return data == end || keep_partial_line(l, data, (size_t)(end - data)) ? 0 : -1;
}
