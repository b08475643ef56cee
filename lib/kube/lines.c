/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch line splitter.  A line that arrives whole is passed on in place; only a split one is
 * copied. */
#include "kube/lines_priv.h"

#include <string.h>

/* Memory for split lines that is kept for the next one. */
#define KEEP_BYTES (16u << 10)

void stw_lines_init(struct stw_lines *l, size_t max_bytes)
{
    l->partial = STW_BUF_INIT(max_bytes);
}

void stw_lines_done(struct stw_lines *l)
{
    stw_buf_done(&l->partial);
}

static void clear_partial_line(struct stw_buf *partial)
{
    if (partial->cap > KEEP_BYTES)
        stw_buf_done(partial);
    else
        stw_buf_clear(partial);
}

void stw_lines_reset(struct stw_lines *l)
{
    clear_partial_line(&l->partial);
}

static int hand_on(const char *line, size_t len, stw_line_fn *fn, void *ctx)
{
    if (len > 0 && line[len - 1] == '\r')
        len--;
    return len > 0 ? fn(ctx, line, len) : 0;
}

/* One line, its end at data + len. */
static int handle_line(struct stw_lines *l, const char *data, size_t len, stw_line_fn *fn,
                       void *ctx)
{
    if (l->partial.len == 0)
        return len > l->partial.max ? -1 : hand_on(data, len, fn, ctx);
    stw_buf_add(&l->partial, data, len);
    if (l->partial.failed)
        return -1;
    int r = hand_on(l->partial.data, l->partial.len, fn, ctx);
    clear_partial_line(&l->partial);
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
    if (data < end)
        stw_buf_add(&l->partial, data, (size_t)(end - data));
    return l->partial.failed ? -1 : 0;
}
