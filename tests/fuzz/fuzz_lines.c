/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch line splitter: fed in pieces, it must give the same lines as fed at once.  The first
 * byte sets the size of the pieces, the second the maximum length of a line. */
#include "kube/client/lines_priv.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int collect(void *ctx, const char *line, size_t len, bool cut)
{
    stw_buf_adds(ctx, cut ? "cut " : "");
    stw_buf_add(ctx, line, len);
    stw_buf_addc(ctx, '\n');
    return 0;
}

static int feed(const char *data, size_t size, size_t piece, size_t max, struct stw_buf *out)
{
    struct stw_lines l;
    int r = 0;
    stw_lines_init(&l, max);
    for (size_t at = 0; r == 0 && at < size; at += piece) {
        size_t len = size - at < piece ? size - at : piece;
        r = stw_lines_feed(&l, data + at, len, collect, out);
    }
    stw_lines_done(&l);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stw_buf whole = STW_BUF_INIT(1u << 20), pieces = STW_BUF_INIT(1u << 20);
    if (size < 2 || size > 65536)
        return 0;
    const char *text = (const char *)data + 2;
    size_t max = (size_t)data[1] + 1;
    int a = feed(text, size - 2, size, max, &whole);
    int b = feed(text, size - 2, (size_t)data[0] + 1, max, &pieces);
    if (a != b || (a == 0 && (whole.len != pieces.len ||
                              memcmp(stw_buf_str(&whole), stw_buf_str(&pieces), whole.len) != 0)))
        abort();
    stw_buf_done(&whole);
    stw_buf_done(&pieces);
    return 0;
}
