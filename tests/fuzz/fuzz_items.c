/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists that arrive in pieces: the same objects and the same result as at once.  A list in which every
 * object could be read is one that the JSON reader accepts.  An object that could not be read is one
 * that it refuses, and looking for its name is safe.  The first byte sets the size of the pieces. */
#include "kube/cache/items_priv.h"
#include "kube/cache/unreadable_priv.h"

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

static unsigned skipped;

static int collect_unreadable(void *ctx, const struct stw_unreadable_item *u, struct stw_error *err)
{
    struct stw_json_doc doc = {.trusted = true};
    struct stw_unreadable_id id;
    char type[16];
    (void)err;
    if (stw_json_scan(&doc, u->text, u->len, NULL) == 0)
        abort();
    stw_json_done(&doc);
    stw_unreadable_identify(u->text, u->len, &id);
    stw_buf_addf(ctx, "%u %s %s %s\n", u->number, u->why, id.key, id.rv);
    stw_unreadable_identify_event(u->text, u->len, type, &id);
    stw_buf_addf(ctx, "%s %s %s\n", type, id.key, id.rv);
    skipped++;
    return 0;
}

static int feed(const char *data, size_t size, size_t piece, struct stw_buf *out)
{
    const struct stw_items_sink to = {
        .item = collect, .unreadable = collect_unreadable, .ctx = out};
    struct stw_items l = {0};
    stw_autojson struct stw_json_doc rest = {0};
    struct stw_error err = {0};
    int r = 0;
    stw_items_reset(&l);
    for (size_t at = 0; r == 0 && at < size; at += piece)
        r = stw_items_feed(&l, data + at, size - at < piece ? size - at : piece, &to, &err);
    if (r == 0)
        r = stw_items_end(&l, &rest, &err);
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
    skipped = 0;
    int a = feed(text, size - 1, size, &whole);
    int b = feed(text, size - 1, (size_t)data[0] + 1, &pieces);
    if (a != b || (a == 0 && (whole.len != pieces.len ||
                              memcmp(stw_buf_str(&whole), stw_buf_str(&pieces), whole.len) != 0)))
        abort();
    if (a == 0 && skipped == 0 && stw_json_scan(&doc, text, size - 1, NULL) != 0)
        abort();
    stw_json_done(&doc);
    stw_buf_done(&whole);
    stw_buf_done(&pieces);
    return 0;
}
