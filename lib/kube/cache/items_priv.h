/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a List of the API server while it arrives: each object of "items" is passed on as soon as
 * its last byte has arrived, so that memory holds one object and not a page of them.  An object that
 * cannot be read is passed on as text, and the list goes on.
 *
 * A zero-initialised struct is empty and valid. */
#ifndef STW_KUBE_ITEMS_PRIV_H
#define STW_KUBE_ITEMS_PRIV_H

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"

#include <stddef.h>

/* One object: at most 1.5 MiB by etcd's default.  Custom resources are stored as the JSON that is
 * sent; others are stored without its escapes, so that a few of them can be larger than this. */
#define STW_ITEM_MAX_BYTES (8u << 20)
/* Values and keys of one object, 20 bytes each: 2.5 MiB, which are a part of the base.  Admission takes
 * 32,768 in a spec, and metadata.managedFields repeats them at most twice for each client that sets all. */
#define STW_ITEM_VALUES_MAX (1u << 17)

/* Pages in a row that have no object, but say that there is another one: then the list has no end. */
#define STW_EMPTY_PAGES_MAX 100U
/* Whether the pages of a list come to an end.  Zero-initialised at its start. */
struct stw_page_progress {
    uint32_t empty;        /* pages in a row */
    uint64_t pages, renew; /* `kept` is replaced after this number of pages */
    uint64_t kept;         /* of the continue token of a former page */
};
/* After a page with `objects` and a continue token.  -1: there were too many pages without objects, or
 * the tokens go round in a circle of any length. */
int stw_page_progress(struct stw_page_progress *p, uint32_t objects, const char *token,
                      struct stw_error *err) STW_MUST_CHECK;

/* How many objects a page may have: halved for good when one was too large, and until a list is complete
 * when one did not arrive in time, because its objects may be large. */
struct stw_page_size {
    uint32_t most;
    unsigned slower, slower_max; /* how often it is halved for the time being, and may be */
};
static inline uint32_t stw_page_limit(const struct stw_page_size *s, uint32_t wanted)
{
    return STW_MAX(STW_MIN(s->most, wanted) >> s->slower, 1U);
}
/* A page that was to have `size` objects has failed with this code.  True: the next one is smaller. */
bool stw_page_shrink(struct stw_page_size *s, uint32_t size, enum stw_err code);

enum stw_items_state {
    STW_ITEMS_HEAD,    /* before the items: apiVersion, kind, metadata, in any order */
    STW_ITEMS_FIRST,   /* after the opening bracket */
    STW_ITEMS_NEXT,    /* after a comma */
    STW_ITEMS_INSIDE,  /* in an object */
    STW_ITEMS_BETWEEN, /* after an object */
    STW_ITEMS_TAIL,    /* after the closing bracket */
};

struct stw_items {
    enum stw_items_state state;
    struct stw_buf pending; /* the start of an object whose end has not arrived yet */
    size_t max_bytes;       /* of an object; set by stw_items_reset */
    uint32_t max_values;
    bool cut; /* there was more of it than max_bytes */
    struct stw_json_skim skim;
    uint32_t count;      /* objects that have ended */
    struct stw_buf rest; /* the list without its objects */
    /* In STW_ITEMS_HEAD: */
    unsigned depth;
    bool in_string, escaped;
    size_t string_at, string_len; /* the last string in `rest` */
    struct stw_json_doc doc;      /* of one object */
};

/* An object that cannot be read: too large, too many values, or not JSON. */
struct stw_unreadable_item {
    const char *text; /* of the object, up to STW_ITEM_MAX_BYTES */
    size_t len;
    uint32_t number; /* in the list, from 1 */
    const char *why;
};

/* Where the objects go.  They are borrowed.  A non-zero result stops the feed. */
struct stw_items_sink {
    int (*item)(void *ctx, struct stw_json item, struct stw_error *err);
    /* NULL: such an object is an error of the list. */
    int (*unreadable)(void *ctx, const struct stw_unreadable_item *u, struct stw_error *err);
    void *ctx;
};

/* Prepares for the next list; keeps little memory. */
void stw_items_reset(struct stw_items *l);
void stw_items_done(struct stw_items *l);
/* Returns 0, what a function of the sink returned, or -1 with `err`. */
int stw_items_feed(struct stw_items *l, const char *data, size_t len,
                   const struct stw_items_sink *to, struct stw_error *err) STW_MUST_CHECK;
/* After the last byte: returns the list without its objects in `ret`, which borrows from `l`.  -1 when
 * the text is truncated or not a list. */
int stw_items_end(struct stw_items *l, struct stw_json_doc *ret,
                  struct stw_error *err) STW_MUST_CHECK;

#endif
