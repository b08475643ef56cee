/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists that arrive in pieces: the same objects and the same result as at once, and no list is
 * accepted that the JSON reader would refuse.  The first byte sets the size of the pieces. */
#include "kube/items_priv.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int collect(void *ctx, struct stw_json item, struct stw_error *err)
{
    size_t len;
    const char *raw = stw_json_raw(item, &len);
    (void)err;
    stw_buf_add(ctx, raw, len);
    stw_buf_addc(ctx, '\n');
    return 0;
}

static int feed(const char *data, size_t size, size_t piece, struct stw_buf *out)
{
    struct stw_items l = {0};
    stw_autojson struct stw_json_doc rest = {0};
    struct stw_error err = {0};
    int r = 0;
    stw_items_reset(&l);
    for (size_t at = 0; r == 0 && at < size; at += piece)
        r = stw_items_feed(&l, data + at, size - at < piece ? size - at : piece, collect, out,
                           &err);
    if (r == 0)
        r = stw_items_end(&l, &rest, collect, out, &err);
    stw_items_done(&l);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stw_buf whole = STW_BUF_INIT(1u << 20), pieces = STW_BUF_INIT(1u << 20);
    struct stw_json_doc doc = {.trusted = true};
    if (size < 1 || size > 65536)
        return 0;
    const char *text = (const char *)data + 1;
    int a = feed(text, size - 1, size, &whole);
    int b = feed(text, size - 1, (size_t)data[0] + 1, &pieces);
    if (a != b || (a == 0 && (whole.len != pieces.len ||
                              memcmp(stw_buf_str(&whole), stw_buf_str(&pieces), whole.len) != 0)))
        abort();
    if (a == 0 && stw_json_scan(&doc, text, size - 1, NULL) != 0)
        abort();
    stw_json_done(&doc);
    stw_buf_done(&whole);
    stw_buf_done(&pieces);
    return 0;
}
