/* SPDX-License-Identifier: Apache-2.0
 *
 * The informer's memory: one block of memory an object, holding key, resourceVersion and projected
 * text.  Has a lock of its own; everything here may be called on any thread.
 *
 * Own writes race with the watch: both bring versions of one object, in any order.  Versions are
 * compared as numbers where both are decimal (which all of Kubernetes' are), so that neither an old
 * watch event nor a late answer takes an object back in time. */
#ifndef STW_KUBE_CACHE_PRIV_H
#define STW_KUBE_CACHE_PRIV_H

#include "base/table.h"
#include "kube/informer.h"

#include <pthread.h>

/* How long older watch events are passed over after a write of ours, at most. */
#define STW_CACHE_GATE_MS 30000

struct stw_entry;

/* What one reflector sees: a namespace, or all ("" or NULL). */
struct stw_cache_scope {
    const char *ns;
    uint64_t seen; /* resourceVersion that the watch has come to; 0: not known.  Under the cache's
                      lock */
};

struct stw_cache {
    pthread_mutex_t lock;
    struct stw_table entries; /* struct stw_entry */
    struct stw_table deleted; /* our own deletes whose events are still to come */
    struct stw_table index;
    stw_index_fn *index_fn;
    void *ctx;
    struct stw_json_doc doc; /* scratch of the index */
    size_t bytes;            /* of all entries */
};

void stw_cache_init(struct stw_cache *c, stw_index_fn *index_fn, void *ctx);
void stw_cache_done(struct stw_cache *c);

/* One version of an object.  `text` NULL: it is gone, or not worth keeping. */
struct stw_version {
    const char *key, *rv;
    const char *text;
    size_t text_len;
};

/* Each returns true when the projected text changed; *ret_old is then the former text (the
 * caller's, freed by stw_entry_free; NULL: there was none).  `now_ms` is the informer's clock. */
bool stw_cache_listed(struct stw_cache *c, const struct stw_cache_scope *scope,
                      const struct stw_version *v, uint64_t now_ms, struct stw_entry **ret_old);
bool stw_cache_watched(struct stw_cache *c, struct stw_cache_scope *scope,
                       const struct stw_version *v, uint64_t now_ms, struct stw_entry **ret_old);
/* The watch brings an object: true when this very version of it is in the cache, so that its text
 * need not be made. */
bool stw_cache_confirmed(struct stw_cache *c, struct stw_cache_scope *scope, const char *key,
                         const char *rv);
/* An answer to a write of ours. */
void stw_cache_saw(struct stw_cache *c, const struct stw_cache_scope *scope,
                   const struct stw_version *v, uint64_t now_ms);
void stw_cache_saw_delete(struct stw_cache *c, const char *key, uint64_t now_ms);
/* The watch has come to `rv`: a bookmark. */
void stw_cache_reached(struct stw_cache *c, struct stw_cache_scope *scope, const char *rv);

/* A list begins: nothing of the scope has been seen in it. */
void stw_cache_list_begin(struct stw_cache *c, const struct stw_cache_scope *scope);
/* A whole list, taken at `rv`, is in: takes out what was not in it, one entry a call (NULL: none is
 * left, and the scope has reached `rv`).  `pos` starts at 0. */
struct stw_entry *stw_cache_list_end(struct stw_cache *c, struct stw_cache_scope *scope,
                                     const char *rv, uint32_t *pos);

const char *stw_entry_key(const struct stw_entry *e);
const char *stw_entry_text(const struct stw_entry *e);
void stw_entry_free(struct stw_entry *e);

int stw_cache_get(struct stw_cache *c, const char *key, struct stw_buf *out, char *ret_rv);
void stw_cache_keys(struct stw_cache *c, const char *index_key, struct stw_buf *out);
uint32_t stw_cache_count(struct stw_cache *c, size_t *ret_bytes);

/* --- cache_index.c: index key -> entries.  Under the cache's lock. */

void stw_index_init(struct stw_table *index);
void stw_index_done(struct stw_table *index);
void stw_cache_index_add(struct stw_cache *c, struct stw_entry *e);
void stw_cache_index_remove(struct stw_cache *c, struct stw_entry *e);
void stw_index_keys(const struct stw_table *index, const char *index_key, struct stw_buf *out);

#endif
