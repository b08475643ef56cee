/* SPDX-License-Identifier: Apache-2.0
 *
 * One walk over all objects of a resource, a page at a time, so that memory does not grow with
 * their number.  For commands that look once; whoever stays uses an informer. */
#ifndef STW_KUBE_PAGES_H
#define STW_KUBE_PAGES_H

#include "base/json.h"
#include "kube/client.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_pages {
    const struct stw_resource *resource;
    const char *ns;             /* NULL: all namespaces */
    const char *label_selector; /* or NULL */
    bool metadata_only;         /* PartialObjectMetadata */
    uint32_t page_size;         /* 0: 250 */
    uint32_t timeout_ms;        /* of one page; 0: STW_CLIENT_TIMEOUT_MS */
};

/* `object` is borrowed for the time of the call, on the caller's thread.  Anything but 0 ends the
 * walk. */
typedef int stw_page_fn(void *ctx, struct stw_json object);

/* Returns 0, -1 with `err`, or what `fn` ended it with.  A page that is too large is asked for
 * again in halves.  Objects that come or go meanwhile may be in it or not. */
int stw_pages_each(struct stw_client *c, const struct stw_pages *q, stw_page_fn *fn, void *ctx,
                   struct stw_error *err);

#endif
