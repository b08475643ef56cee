/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a List of the API server while it arrives: each object of "items" is passed on as soon as
 * its last byte has arrived, so that memory holds one object and not a page of them.
 *
 * A zero-initialised struct is empty and valid. */
#ifndef STW_KUBE_ITEMS_PRIV_H
#define STW_KUBE_ITEMS_PRIV_H

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"

#include <stddef.h>

/* One object: at most 1.5 MiB by etcd's default, somewhat more with its escapes. */
#define STW_ITEM_MAX_BYTES (8u << 20)

enum stw_items_state {
    STW_ITEMS_HEAD,    /* before the items: apiVersion, kind, metadata, in any order */
    STW_ITEMS_FIRST,   /* after the opening bracket */
    STW_ITEMS_NEXT,    /* after a comma */
    STW_ITEMS_BETWEEN, /* after an object */
    STW_ITEMS_TAIL,    /* after the closing bracket */
};

struct stw_items {
    enum stw_items_state state;
    struct stw_buf pending; /* the start of an object whose end has not arrived yet */
    size_t try_at;          /* length of `pending` at which the scan is repeated */
    size_t typical_len;     /* of the previous object; 0: none */
    bool ending;            /* everything has arrived */
    struct stw_buf rest;    /* the list without its objects */
    /* In STW_ITEMS_HEAD: */
    unsigned depth;
    bool in_string, escaped;
    size_t string_at, string_len; /* the last string in `rest` */
    struct stw_json_doc doc;      /* of one object */
};

/* `item` is borrowed.  A non-zero result stops the feed. */
typedef int stw_item_fn(void *ctx, struct stw_json item, struct stw_error *err);

/* Prepares for the next list; keeps little memory. */
void stw_items_reset(struct stw_items *l);
void stw_items_done(struct stw_items *l);
/* Returns 0, what `fn` returned, or -1 with `err`. */
int stw_items_feed(struct stw_items *l, const char *data, size_t len, stw_item_fn *fn, void *ctx,
                   struct stw_error *err) STW_MUST_CHECK;
/* After the last byte: passes on any remaining objects, and returns the list without its objects in
 * `ret`, which borrows from `l`.  Returns as stw_items_feed; -1 also when the text is truncated or
 * not a list. */
int stw_items_end(struct stw_items *l, struct stw_json_doc *ret, stw_item_fn *fn, void *ctx,
                  struct stw_error *err) STW_MUST_CHECK;

#endif
