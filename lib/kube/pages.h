/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterates once over all objects of a resource, one page at a time, so that memory does not grow
 * with their number.  For commands that read once; a long-running process uses an informer. */
#ifndef STW_KUBE_PAGES_H
#define STW_KUBE_PAGES_H

#include "base/json.h"
#include "base/util.h"
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
    /* An object that cannot be read, as stw_unreadable_fn (informer.h), with the context and the
     * result of the function for objects; NULL: it is an error, which names it. */
    int (*unreadable)(void *ctx, const char *key, const char *place, const char *why);
};

/* `object` is borrowed during the call, on the caller's thread.  A non-zero result stops the
 * iteration. */
typedef int stw_page_fn(void *ctx, struct stw_json object);

/* Returns 0, -1 with `err`, or fn's non-zero result.  A page that is too large, or does not arrive in
 * time, is requested again with half the size, for the latter at most three times.  Objects that are created or deleted during the iteration may be included or
 * not. */
int stw_pages_each(struct stw_client *c, const struct stw_pages *q, stw_page_fn *fn, void *ctx,
                   struct stw_error *err) STW_MUST_CHECK;

/* The same, but `fn` is called only when the whole list has been read, so that it may send requests
 * and take its time.  Of each object it gets name, namespace, uid, resourceVersion, deletionTimestamp
 * and finalizers in metadata, and nothing else.  Memory: about 300 bytes an object. */
int stw_pages_each_after(struct stw_client *c, const struct stw_pages *q, stw_page_fn *fn,
                         void *ctx, struct stw_error *err) STW_MUST_CHECK;

#endif
