/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/pages.h"

#include "base/util.h"

#include <stdio.h>

#define PAGE_SIZE 250
#define PATH_MAX_BYTES (80u << 10)
#define CONTINUE_MAX_BYTES (64u << 10)

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

static int ask(struct stw_client *c, const struct stw_pages *q, uint32_t size,
               const struct stw_buf *next, struct stw_buf *answer, struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    make_path(q, size, next, &path);
    if (path.failed)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    struct stw_request req = {.method = "GET",
                              .path = stw_buf_str(&path),
                              .accept = q->metadata_only ? metadata_list : NULL,
                              .timeout_ms = q->timeout_ms};
    return stw_client_do(c, &req, answer, err);
}

/* One page: its objects to `fn`, and where the next one begins into `next`. */
static int take(const struct stw_buf *answer, stw_page_fn *fn, void *ctx, struct stw_buf *next,
                struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json key, item;
    int rc;
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, err) != 0)
        return -1;
    stw_json_foreach (stw_json_get(stw_json_root(&doc), "items"), key, item)
        if ((rc = fn(ctx, item)) != 0)
            return rc;
    stw_buf_clear(next);
    stw_json_str(stw_json_path(stw_json_root(&doc), "metadata.continue"), next);
    return next->failed ? stw_fail(err, STW_ERR_TOO_LARGE, "the list cannot be continued") : 0;
}

int stw_pages_each(struct stw_client *c, const struct stw_pages *q, stw_page_fn *fn, void *ctx,
                   struct stw_error *err)
{
    stw_autobuf struct stw_buf next = STW_BUF_INIT(CONTINUE_MAX_BYTES);
    uint32_t size = q->page_size ? q->page_size : PAGE_SIZE;
    for (bool more = true; more; more = next.len > 0) {
        stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
        struct stw_error e = {0};
        int rc = ask(c, q, size, &next, &answer, &e);
        while (rc != 0 && e.code == STW_ERR_TOO_LARGE && size > 1) {
            size /= 2;
            rc = ask(c, q, size, &next, &answer, &e);
        }
        if (rc == 0)
            rc = take(&answer, fn, ctx, &next, &e);
        if (rc != 0 && err)
            *err = e;
        if (rc != 0)
            return rc;
    }
    return 0;
}
