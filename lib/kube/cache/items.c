/* SPDX-License-Identifier: Apache-2.0
 *
 * The head is searched byte by byte for the bracket that opens "items".  Then the end of each object
 * is found by its brackets, and the object is scanned once all of it has arrived.  So an object that
 * cannot be read does not hide those after it, and one over STW_ITEM_MAX_BYTES is skipped without
 * more memory than that. */
#include "kube/cache/items_priv.h"

#include "base/util.h"

#include <string.h>

#define REST_MAX_BYTES (256u << 10) /* metadata with a continue token */
#define KEEP_BYTES (32u << 10)      /* scratch memory kept from list to list */
#define KEEP_TOKENS 4096U           /* from object to object, by each list */

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
    *l = (struct stw_items){.pending = kept.pending,
                            .rest = kept.rest,
                            .doc = kept.doc,
                            .max_bytes = STW_ITEM_MAX_BYTES,
                            .max_values = STW_ITEM_VALUES_MAX};
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

/* A byte between objects.  False: nothing of the kind may be here. */
static bool take_between(struct stw_items *l, char c)
{
    if (is_blank(c))
        return true;
    if (c == ']' && l->state != STW_ITEMS_NEXT) {
        stw_buf_addc(&l->rest, c);
        l->state = STW_ITEMS_TAIL;
        return true;
    }
    if (c == ',' && l->state == STW_ITEMS_BETWEEN) {
        l->state = STW_ITEMS_NEXT;
        return true;
    }
    return false;
}

static int pass_unreadable(struct stw_items *l, const char *text, size_t len,
                           const struct stw_items_sink *to, const struct stw_error *why,
                           struct stw_error *err)
{
    if (why->code == STW_ERR_INTERNAL) { /* out of memory: not a fault of the object */
        *err = *why;
        return -1;
    }
    if (!to->unreadable)
        return stw_fail(err, why->code, "object %u of the list: %s", l->count, why->text);
    const struct stw_unreadable_item u = {
        .text = text, .len = len, .number = l->count, .why = why->text};
    return to->unreadable(to->ctx, &u, err);
}

/* The object in `text` has ended. */
static int end_item(struct stw_items *l, const char *text, size_t len,
                    const struct stw_items_sink *to, struct stw_error *err)
{
    struct stw_error why = {0};
    size_t scanned;
    int rc;
    l->count++;
    l->state = STW_ITEMS_BETWEEN;
    l->doc.trusted = true;
    l->doc.max = l->max_values;
    if (l->cut)
        (void)stw_fail(&why, STW_ERR_TOO_LARGE, "it has more than %zu MiB of JSON",
                       l->max_bytes >> 20);
    if (l->cut || stw_json_scan_first(&l->doc, text, len, &scanned, &why) != 0)
        rc = pass_unreadable(l, text, len, to, &why, err);
    else
        rc = to->item(to->ctx, stw_json_root(&l->doc), err);
    if (l->pending.cap > KEEP_BYTES)
        stw_buf_done(&l->pending);
    stw_buf_clear(&l->pending);
    if (l->doc.cap > KEEP_TOKENS)
        stw_json_done(&l->doc);
    return rc;
}

/* More of an object.  Returns the bytes that belong to it in `ret_taken`. */
static int take_item(struct stw_items *l, const char *data, size_t len, size_t *ret_taken,
                     const struct stw_items_sink *to, struct stw_error *err)
{
    bool ended;
    size_t n = stw_json_skim(&l->skim, data, len, &ended);
    *ret_taken = n;
    if (ended && l->pending.len == 0 && n <= l->max_bytes)
        return end_item(l, data, n, to, err);
    size_t room = l->max_bytes - l->pending.len;
    l->cut |= n > room;
    stw_buf_add(&l->pending, data, STW_MIN(n, room));
    if (l->pending.failed)
        return stw_fail_memory(err);
    return ended ? end_item(l, l->pending.data, l->pending.len, to, err) : 0;
}

/* Between objects, or in one.  `ret_taken` gets the bytes consumed. */
static int take_items(struct stw_items *l, const char *data, size_t len, size_t *ret_taken,
                      const struct stw_items_sink *to, struct stw_error *err)
{
    *ret_taken = 1;
    if (l->state == STW_ITEMS_INSIDE)
        return take_item(l, data, len, ret_taken, to, err);
    bool may_begin = l->state == STW_ITEMS_FIRST || l->state == STW_ITEMS_NEXT;
    if (*data == '{' && may_begin) {
        l->state = STW_ITEMS_INSIDE;
        l->skim = (struct stw_json_skim){0};
        l->cut = false;
        return take_item(l, data, len, ret_taken, to, err);
    }
    return take_between(l, *data) ? 0 : refuse_list(l, err);
}

int stw_items_feed(struct stw_items *l, const char *data, size_t len,
                   const struct stw_items_sink *to, struct stw_error *err)
{
    const char *end = data + len;
    size_t taken;
    int rc = 0;
    while (data < end && rc == 0) {
        if (l->state == STW_ITEMS_HEAD) {
            l->state = take_head(l, *data++) ? STW_ITEMS_FIRST : STW_ITEMS_HEAD;
        } else if (l->state == STW_ITEMS_TAIL) {
            stw_buf_add(&l->rest, data, (size_t)(end - data));
            data = end;
        } else {
            rc = take_items(l, data, (size_t)(end - data), &taken, to, err);
            data += taken;
        }
        if (l->rest.failed)
            return refuse_list(l, err);
    }
    return rc;
}

int stw_items_end(struct stw_items *l, struct stw_json_doc *ret, struct stw_error *err)
{
    if (l->state != STW_ITEMS_HEAD && l->state != STW_ITEMS_TAIL)
        return stw_fail(err, STW_ERR_INVALID, "the list was cut");
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

/* FNV-1a. */
static uint64_t hash_token(const char *token)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *token; token++)
        hash = (hash ^ (unsigned char)*token) * UINT64_C(0x100000001b3);
    return hash;
}

/* Brent's way to find a circle: each token is compared with one, which is replaced after 1, 2, 4, 8
 * pages and so on. */
bool stw_page_shrink(struct stw_page_size *s, uint32_t size, enum stw_err code)
{
    const uint32_t before = STW_MIN(stw_page_limit(s, s->most), size);
    if (code == STW_ERR_TOO_LARGE)
        s->most = STW_MAX(STW_MIN(s->most, size) / 2, 1U);
    else if (code == STW_ERR_TIMEOUT && s->slower < s->slower_max)
        s->slower++;
    return stw_page_limit(s, s->most) < before;
}

int stw_page_progress(struct stw_page_progress *p, uint32_t objects, const char *token,
                      struct stw_error *err)
{
    uint64_t now = hash_token(token);
    p->empty = objects > 0 ? 0 : p->empty + 1;
    if (p->empty > STW_EMPTY_PAGES_MAX)
        return stw_fail(err, STW_ERR_INVALID, "the list goes on without objects");
    if (objects == 0)
        return 0;
    if (p->pages > 0 && now == p->kept)
        return stw_fail(err, STW_ERR_INVALID, "the pages of the list go round in a circle");
    if (++p->pages >= p->renew) {
        p->renew = 2 * p->pages;
        p->kept = now;
    }
    return 0;
}
