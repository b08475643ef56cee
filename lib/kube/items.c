/* SPDX-License-Identifier: Apache-2.0
 *
 * The head is searched byte by byte for the bracket that opens "items"; the JSON scanner then finds
 * where each object ends.  An object is first scanned when nearly as many bytes have arrived as the
 * previous one had.  The scan of an incomplete object fails.  It is repeated when at least twice as
 * many bytes have arrived, so that the work is linear.  Text that never becomes an object is
 * therefore refused at the end of the list, or at STW_ITEM_MAX_BYTES. */
#include "kube/items_priv.h"

#include "base/util.h"

#include <string.h>

#define REST_MAX_BYTES (256u << 10) /* metadata with a continue token */
#define KEEP_BYTES (32u << 10)      /* scratch memory kept from list to list */

void stw_items_done(struct stw_items *l)
{
    stw_buf_done(&l->pending);
    stw_buf_done(&l->rest);
    stw_json_done(&l->doc);
    *l = (struct stw_items){0};
}

void stw_items_reset(struct stw_items *l)
{
    struct stw_items kept = *l;
    if (kept.pending.cap > KEEP_BYTES)
        stw_buf_done(&kept.pending);
    if (kept.doc.cap * sizeof(struct stw_json_token) > KEEP_BYTES)
        stw_json_done(&kept.doc);
    stw_buf_clear(&kept.pending);
    stw_buf_clear(&kept.rest);
    kept.pending.max = STW_ITEM_MAX_BYTES;
    kept.rest.max = REST_MAX_BYTES;
    *l = (struct stw_items){.pending = kept.pending, .rest = kept.rest, .doc = kept.doc};
}

static bool is_items(const struct stw_items *l)
{
    static const char items[] = "items";
    return l->depth == 1 && l->string_len == strlen(items) &&
           memcmp(l->rest.data + l->string_at, items, strlen(items)) == 0;
}

/* One byte of the head.  True: it opened the items. */
static bool take_head(struct stw_items *l, char c)
{
    stw_buf_addc(&l->rest, c);
    if (l->in_string) {
        bool ends = c == '"' && !l->escaped;
        l->escaped = c == '\\' && !l->escaped;
        l->in_string = !ends;
        if (ends)
            l->string_len = l->rest.len - 1 - l->string_at;
        return false;
    }
    switch (c) {
    case '"':
        l->in_string = true;
        l->string_at = l->rest.len;
        return false;
    case '[':
        if (is_items(l))
            return true;
        l->depth++;
        return false;
    case '{':
        l->depth++;
        l->string_len = 0;
        return false;
    case ']':
    case '}':
        l->depth -= l->depth > 0;
        l->string_len = 0;
        return false;
    case ',':
        l->string_len = 0;
        return false;
    default:
        return false;
    }
}

static int refuse_list(const struct stw_items *l, struct stw_error *err)
{
    if (l->rest.failed)
        return stw_fail(err, STW_ERR_INVALID, "the list has more than %u bytes beside its items",
                        REST_MAX_BYTES);
    return stw_fail(err, STW_ERR_INVALID, "the answer is not a list");
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A byte between objects.  Returns the bytes consumed: 0 when an object begins here; -1:
 * invalid. */
static int take_between(struct stw_items *l, char c)
{
    if (is_blank(c))
        return 1;
    if (c == ']' && l->state != STW_ITEMS_NEXT) {
        stw_buf_addc(&l->rest, c);
        l->state = STW_ITEMS_TAIL;
        return 1;
    }
    if (l->state == STW_ITEMS_BETWEEN) {
        l->state = STW_ITEMS_NEXT;
        return c == ',' ? 1 : -1;
    }
    return 0;
}

static bool is_too_short(const struct stw_items *l, size_t len)
{
    return !l->ending && len < l->typical_len - l->typical_len / 8;
}

/* Reads the object that begins at `data`.  1: complete, with its length; 0: incomplete. */
static int take_item(struct stw_items *l, const char *data, size_t len, size_t *ret_len,
                     stw_item_fn *fn, void *ctx, struct stw_error *err)
{
    if (is_too_short(l, len))
        return 0;
    l->doc.trusted = true;
    if (stw_json_scan_first(&l->doc, data, len, ret_len, NULL) != 0)
        return 0;
    l->typical_len = *ret_len;
    int rc = fn(ctx, stw_json_root(&l->doc), err);
    l->state = STW_ITEMS_BETWEEN;
    return rc != 0 ? rc : 1;
}

/* Reads all complete objects.  Returns 0 with the bytes consumed, or a non-zero result to stop. */
static int take_items(struct stw_items *l, const char *data, size_t len, size_t *ret_taken,
                      stw_item_fn *fn, void *ctx, struct stw_error *err)
{
    size_t at = 0, n = 0;
    while (at < len && l->state != STW_ITEMS_TAIL) {
        int taken = take_between(l, data[at]);
        if (taken < 0)
            return refuse_list(l, err);
        if (taken > 0) {
            at++;
            continue;
        }
        int rc = take_item(l, data + at, len - at, &n, fn, ctx, err);
        if (rc == 0)
            break;
        if (rc != 1)
            return rc;
        at += n;
    }
    *ret_taken = at;
    return 0;
}

/* Keeps the start of an object, which the next piece continues; `data` is in `pending` or
 * elsewhere. */
static void store_partial_item(struct stw_items *l, const char *data, size_t len)
{
    struct stw_buf *p = &l->pending;
    if (p->len > 0) {
        memmove(p->data, data, len);
        p->data[len] = '\0';
        p->len = len;
    } else {
        stw_buf_add(p, data, len);
    }
    l->try_at = is_too_short(l, len) ? 0 : len * 2;
}

/* Reads what is complete in `data`, which ends with the newest piece, and keeps the rest. */
static int try_items(struct stw_items *l, const char *data, size_t len, stw_item_fn *fn, void *ctx,
                     struct stw_error *err)
{
    size_t taken = 0;
    int rc = take_items(l, data, len, &taken, fn, ctx, err);
    if (rc != 0)
        return rc;
    if (l->state == STW_ITEMS_TAIL) {
        stw_buf_add(&l->rest, data + taken, len - taken);
        stw_buf_clear(&l->pending);
    } else {
        store_partial_item(l, data + taken, len - taken);
    }
    return 0;
}

static int feed_items(struct stw_items *l, const char *data, size_t len, stw_item_fn *fn, void *ctx,
                      struct stw_error *err)
{
    if (l->pending.len == 0)
        return try_items(l, data, len, fn, ctx, err);
    stw_buf_add(&l->pending, data, len);
    if (l->pending.failed)
        return stw_fail(err, STW_ERR_INVALID,
                        "an object of the list is over %u bytes, or is not JSON",
                        STW_ITEM_MAX_BYTES);
    if (l->pending.len < l->try_at)
        return 0;
    return try_items(l, l->pending.data, l->pending.len, fn, ctx, err);
}

int stw_items_feed(struct stw_items *l, const char *data, size_t len, stw_item_fn *fn, void *ctx,
                   struct stw_error *err)
{
    const char *end = data + len;
    int rc = 0;
    while (data < end && rc == 0) {
        if (l->state == STW_ITEMS_HEAD) {
            l->state = take_head(l, *data++) ? STW_ITEMS_FIRST : STW_ITEMS_HEAD;
        } else if (l->state == STW_ITEMS_TAIL) {
            stw_buf_add(&l->rest, data, (size_t)(end - data));
            data = end;
        } else {
            rc = feed_items(l, data, (size_t)(end - data), fn, ctx, err);
            data = end;
        }
        if (l->rest.failed)
            return refuse_list(l, err);
    }
    return rc;
}

/* The last scan may have been before the last piece. */
static int end_items(struct stw_items *l, stw_item_fn *fn, void *ctx, struct stw_error *err)
{
    l->ending = true;
    int rc = try_items(l, stw_buf_str(&l->pending), l->pending.len, fn, ctx, err);
    if (rc != 0 || l->state == STW_ITEMS_TAIL)
        return rc;
    if (l->pending.len > 0 && /* reports the position of the error */
        stw_json_scan(&l->doc, l->pending.data, l->pending.len, err) != 0)
        return stw_error_wrap(err, "an object of the list");
    return stw_fail(err, STW_ERR_INVALID, "the list was cut");
}

int stw_items_end(struct stw_items *l, struct stw_json_doc *ret, stw_item_fn *fn, void *ctx,
                  struct stw_error *err)
{
    bool open = l->state != STW_ITEMS_HEAD && l->state != STW_ITEMS_TAIL;
    int rc = open ? end_items(l, fn, ctx, err) : 0;
    if (rc != 0)
        return rc;
    if (stw_json_scan(ret, stw_buf_str(&l->rest), l->rest.len, err) != 0)
        return stw_error_wrap(err, "the list");
    enum stw_json_type type = stw_json_type(stw_json_get(stw_json_root(ret), "items"));
    bool none = l->state == STW_ITEMS_HEAD && (type == STW_JSON_ABSENT || type == STW_JSON_NULL);
    if (stw_json_type(stw_json_root(ret)) != STW_JSON_OBJECT || (!none && type != STW_JSON_ARRAY))
        return refuse_list(l, err);
    if (stw_json_size(stw_json_get(stw_json_root(ret), "items")) > 0) /* its key had escapes */
        return refuse_list(l, err);
    return 0;
}
