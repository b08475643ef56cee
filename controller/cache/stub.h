/* SPDX-License-Identifier: Apache-2.0
 *
 * Stubs: the cached texts of large custom objects, without their large values.  A stub has the members
 * that stw_object_project writes, except those that are long, and what is needed without them:
 *
 *     stub.bytes    of the whole text
 *     stub.spec     digest of spec and annotations, stub.status: of the status
 *     stub.large    the path of the longest member of the spec, or of the annotations; stub.largeBytes:
 *                   its length as JSON
 *     stub.index    the index keys of the whole object
 *
 * A reader that needs the whole object reads it from the API server (stw_object_load). */
#ifndef STW_CONTROLLER_STUB_H
#define STW_CONTROLLER_STUB_H

#include "base/buf.h"
#include "base/json.h"
#include "kube/informer.h"

#include <stdbool.h>

/* Longer texts become stubs. */
#define STW_STUB_TEXT_MAX ((size_t)16 << 10)

struct stw_stub_of {
    const char *ns;
    const char *finalizer; /* of the kind, or NULL */
    stw_index_fn *index;   /* or NULL; called without a context */
};
/* Replaces `text`, made by the projection of a kind's own watch, by its stub if it is long, or if the
 * caches have no room for its long members.  When out of memory, text->failed is set. */
void stw_stub_shrink(struct stw_buf *text, const struct stw_stub_of *of);
bool stw_stub_is(struct stw_json root);
/* The index keys of a stub, as its index function appended them. */
void stw_stub_index(struct stw_json root, struct stw_buf *out);

#endif
