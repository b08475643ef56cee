/* SPDX-License-Identifier: Apache-2.0
 *
 * The informer's cache: one block of memory per object, with key, resourceVersion and projected
 * text.  It has its own lock; every function may be called on any thread.
 *
 * Our own writes race with the watch: both deliver versions of one object, in any order.  Versions
 * are compared as numbers where both are decimal (which all of Kubernetes' are), so that neither an
 * old watch event nor a late response replaces a newer version. */
#ifndef STW_KUBE_CACHE_PRIV_H
#define STW_KUBE_CACHE_PRIV_H

#include "base/table.h"
#include "kube/cache/entry_priv.h"
#include "kube/informer.h"

#include <pthread.h>

/* The longest time for which older watch events are skipped after our own write. */
#define STW_CACHE_GATE_MS 30000

/* The scope of one reflector: a namespace, or all ("" or NULL). */
struct stw_cache_scope {
    const char *ns;
    uint64_t seen; /* resourceVersion that the watch has reached; 0: unknown; cache lock */
};

struct stw_cache {
    pthread_mutex_t lock;
    struct stw_table entries; /* struct stw_entry */
    struct stw_table deleted; /* our own deletes whose events have not arrived yet */
    struct stw_table index;
    stw_index_fn *index_fn;
    void *ctx;
    struct stw_json_doc doc; /* scratch of the index */
    size_t bytes;            /* of all entries */
};

void stw_cache_init(struct stw_cache *c, stw_index_fn *index_fn, void *ctx);
void stw_cache_done(struct stw_cache *c);

/* Each returns 1 when the projected text has changed; *ret_old is then the previous entry (owned by
 * the caller, freed by stw_entry_free; NULL: none).  0: it has not changed.  -1: out of memory; the
 * previous version stays, and the caller must list or watch again.  `now_ms` is the informer's
 * clock. */
int stw_cache_listed(struct stw_cache *c, const struct stw_cache_scope *scope,
                     const struct stw_version *v, uint64_t now_ms,
                     struct stw_entry **ret_old) STW_MUST_CHECK;
int stw_cache_watched(struct stw_cache *c, struct stw_cache_scope *scope,
                      const struct stw_version *v, uint64_t now_ms,
                      struct stw_entry **ret_old) STW_MUST_CHECK;
/* For an object from the watch: true when the cache has exactly this version, so that its text need
 * not be built. */
bool stw_cache_confirmed(struct stw_cache *c, struct stw_cache_scope *scope, const char *key,
                         const char *rv);
/* The response to our own write.  When out of memory, the watch delivers it later. */
void stw_cache_saw(struct stw_cache *c, const struct stw_cache_scope *scope,
                   const struct stw_version *v, uint64_t now_ms);
/* `rv` is the resourceVersion of the object that was deleted, as far as we had read it. */
void stw_cache_saw_delete(struct stw_cache *c, const char *key, const char *rv, uint64_t now_ms);
/* The watch has reached `rv`: a bookmark. */
void stw_cache_reached(struct stw_cache *c, struct stw_cache_scope *scope, const char *rv);

/* A list begins: no object of the scope has been seen in it yet. */
void stw_cache_list_begin(struct stw_cache *c, const struct stw_cache_scope *scope);
/* The object of this key is in the list, in a version that cannot be read. */
void stw_cache_list_keep(struct stw_cache *c, const char *key);
/* How far the removals after a list are; zero-initialised for each list. */
struct stw_cache_sweep {
    uint32_t pos;
    uint32_t moves; /* of the table, for which `pos` is valid */
};
/* A list taken at `rv` is complete: removes what was not in it, one entry per call (NULL: none
 * left, and the scope has reached `rv`).  Own writes may come between the calls. */
struct stw_entry *stw_cache_list_end(struct stw_cache *c, struct stw_cache_scope *scope,
                                     const char *rv, struct stw_cache_sweep *sweep);

int stw_cache_get(struct stw_cache *c, const char *key, struct stw_buf *out, char *ret_rv);
void stw_cache_keys(struct stw_cache *c, const char *index_key, struct stw_buf *out);
uint32_t stw_cache_count(struct stw_cache *c, size_t *ret_bytes);

/* --- index.c: index key -> entries.  Under the cache's lock. */

void stw_index_init(struct stw_table *index);
void stw_index_done(struct stw_table *index);
void stw_cache_index_add(struct stw_cache *c, struct stw_entry *e);
void stw_cache_index_remove(struct stw_cache *c, struct stw_entry *e);
void stw_index_keys(const struct stw_table *index, const char *index_key, struct stw_buf *out);

#endif
