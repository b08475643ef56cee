/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/pages.h"

#include "base/hex.h"
#include "base/util.h"
#include "kube/api/answers_priv.h"
#include "kube/cache/items_priv.h"
#include "kube/cache/unreadable_priv.h"

#include <assert.h>
#include <stdio.h>

#define PAGE_SIZE 250
#define SLOWER_MAX 3 /* the caller waits for a silent server */
#define PATH_MAX_BYTES (80u << 10)
#define CONTINUE_MAX_BYTES (64u << 10)
#define KEPT_MAX_BYTES (512u << 20)
#define RUN_VALUES_MAX (1u << 16) /* of an object that a reconcile lists */

static const char *const metadata_list = "application/json;as=PartialObjectMetadataList;"
                                         "g=meta.k8s.io;v=v1,application/json";

static void make_path(const struct stw_pages *q, uint32_t size, const struct stw_buf *next,
                      struct stw_buf *out)
{
    stw_buf_clear(out);
    stw_resource_path(q->resource, q->ns, NULL, NULL, out);
    stw_buf_addf(out, "?limit=%u", size);
    if (q->label_selector) {
        stw_buf_adds(out, "&labelSelector=");
        stw_url_escape(q->label_selector, out);
    }
    if (next->len > 0) {
        stw_buf_adds(out, "&continue=");
        stw_url_escape(next->data, out);
    }
}

struct list_page {
    const struct stw_pages *q;
    struct stw_items items;
    stw_page_fn *fn;
    void *ctx;
    uint32_t given; /* objects of this page that went to fn */
    size_t held;    /* of an object that is read */
    int ended;      /* fn's non-zero result */
};

static int take_item(void *ctx, struct stw_json item, struct stw_error *err)
{
    struct list_page *p = ctx;
    (void)err;
    p->given++;
    p->ended = p->fn(p->ctx, item);
    return p->ended != 0 ? -1 : 0;
}

static int take_unreadable(void *ctx, const struct stw_unreadable_item *u, struct stw_error *err)
{
    struct list_page *p = ctx;
    struct stw_unreadable_id id;
    char place[64];
    stw_unreadable_identify(u->text, u->len, &id);
    stw_format(place, sizeof(place), "object %u of a page of the list", u->number);
    if (!p->q->unreadable)
        return stw_fail(err, STW_ERR_INVALID, "%s: %s cannot be read: %s", p->q->resource->plural,
                        *id.key ? id.key : place, u->why);
    p->given++;
    p->ended = p->q->unreadable(p->ctx, *id.key ? id.key : NULL, *id.key ? "" : place, u->why);
    return p->ended != 0 ? -1 : 0;
}

static int take_data(void *ctx, const char *data, size_t len, struct stw_error *err)
{
    struct list_page *p = ctx;
    const struct stw_items_sink to = {.item = take_item, .unreadable = take_unreadable, .ctx = p};
    if (stw_items_feed(&p->items, data, len, &to, err) != 0)
        return -1;
    size_t bytes = p->items.pending.cap;
    if (bytes <= STW_ANSWER_FREE_BYTES) {
        stw_answer_let_go(&p->held);
        return 0;
    }
    if (stw_answer_hold(&p->held, bytes + p->items.max_values * sizeof(struct stw_json_token)))
        return 0;
    return stw_fail(err, STW_ERR_UNAVAILABLE,
                    "there is no memory now for an object of %zu bytes or more", bytes);
}

/* Of runs several list at the same time: half of what they may have together is for one object. */
static void limit_items(struct stw_items *l)
{
    if (!stw_answers_are_kept())
        return;
    size_t values = RUN_VALUES_MAX * sizeof(struct stw_json_token), most = stw_answer_most();
    l->max_values = RUN_VALUES_MAX;
    l->max_bytes =
        STW_MIN(l->max_bytes, STW_MAX(most > values ? (most - values) / 2 : 0, (size_t)1 << 20));
    l->pending.max = l->max_bytes;
}

/* Reads one page: passes its objects to `fn`, and puts the start of the next page into `next`. */
static int read_page(struct stw_client *c, const struct stw_pages *q, uint32_t size,
                     struct list_page *page, struct stw_buf *next, struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    stw_autojson struct stw_json_doc rest = {0};
    make_path(q, size, next, &path);
    if (path.failed)
        return stw_fail_memory(err);
    const struct stw_request req = {.method = "GET",
                                    .path = stw_buf_str(&path),
                                    .accept = q->metadata_only ? metadata_list : NULL,
                                    .timeout_ms = q->timeout_ms};
    stw_items_reset(&page->items);
    limit_items(&page->items);
    page->given = 0;
    int rc = stw_client_read(c, &req, take_data, page, err);
    stw_answer_let_go(&page->held);
    if (rc != 0 || stw_items_end(&page->items, &rest, err) != 0)
        return -1;
    stw_buf_clear(next);
    stw_json_str(stw_json_path(stw_json_root(&rest), "metadata.continue"), next);
    return next->failed ? stw_fail(err, STW_ERR_TOO_LARGE, "the list cannot be continued") : 0;
}

int stw_pages_each(struct stw_client *c, const struct stw_pages *q, stw_page_fn *fn, void *ctx,
                   struct stw_error *err)
{
    assert(q->resource && fn);
    stw_autobuf struct stw_buf next = STW_BUF_INIT(CONTINUE_MAX_BYTES);
    struct list_page page = {.q = q, .fn = fn, .ctx = ctx};
    struct stw_page_size pages = {.most = q->page_size ? q->page_size : PAGE_SIZE,
                                  .slower_max = SLOWER_MAX};
    uint32_t size = pages.most;
    struct stw_page_progress progress = {0};
    int rc;
    do {
        struct stw_error e = {0};
        rc = read_page(c, q, size, &page, &next, &e);
        while (rc != 0 && page.given == 0 && stw_page_shrink(&pages, size, e.code)) {
            size = stw_page_limit(&pages, pages.most);
            e = (struct stw_error){0};
            rc = read_page(c, q, size, &page, &next, &e);
        }
        if (rc == 0 && next.len > 0 &&
            stw_page_progress(&progress, page.items.count, stw_buf_str(&next), &e) != 0)
            rc = stw_error_wrap(&e, "%s", q->resource->plural);
        if (rc != 0 && page.ended == 0 && err)
            *err = e;
    } while (rc == 0 && next.len > 0);
    stw_items_done(&page.items);
    return page.ended != 0 ? page.ended : rc;
}

/* --- after the list */

static int keep_metadata(void *ctx, struct stw_json object)
{
    static const char *const members[] = {
        "name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "finalizers"};
    struct stw_buf *kept = ctx;
    struct stw_json metadata = stw_json_get(object, "metadata");
    const char *before = "";
    stw_buf_adds(kept, "{\"metadata\":{");
    for (size_t i = 0; i < STW_COUNT(members); i++) {
        size_t len;
        struct stw_json v = stw_json_get(metadata, members[i]);
        if (!stw_json_there(v))
            continue;
        const char *raw = stw_json_raw(v, &len);
        stw_buf_addf(kept, "%s\"%s\":", before, members[i]);
        stw_buf_add(kept, raw, len);
        before = ",";
    }
    stw_buf_add(kept, "}}", sizeof("}}"));
    return kept->failed;
}

int stw_pages_each_after(struct stw_client *c, const struct stw_pages *q, stw_page_fn *fn,
                         void *ctx, struct stw_error *err)
{
    stw_autobuf struct stw_buf kept = STW_BUF_INIT(KEPT_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_pages names = *q;
    names.metadata_only = true;
    int rc = stw_pages_each(c, &names, keep_metadata, &kept, err);
    if (rc > 0)
        return stw_fail(err, STW_ERR_TOO_LARGE, "there are too many objects");
    for (size_t at = 0, len; rc == 0 && at < kept.len; at += len + 1) {
        const char *text = kept.data + at;
        len = strlen(text);
        rc = stw_json_scan(&doc, text, len, err);
        if (rc == 0)
            rc = fn(ctx, stw_json_root(&doc));
    }
    return rc;
}
