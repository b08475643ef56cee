/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists and watches one resource into a cache of text.  Each object is kept as one projected JSON
 * string: the projection keeps what reconcilers read and may drop the object altogether.
 *
 * The reflector pages its list, watches with bookmarks, resumes at the last resourceVersion, lists
 * again after 410 Gone (and reports objects that have vanished), backs off with jitter, and ends a
 * watch that was silent (no event, no bookmark) for 230 s, which is below the common 240 s idle
 * timeout of load balancers.  An object that cannot be read is skipped and marked; lists and watches
 * go on.
 *
 * Our own writes are visible at once: stw_informer_saw() puts a response of the API server into the
 * cache, and older watch events of that object are skipped until the watch has caught up. */
#ifndef STW_KUBE_INFORMER_H
#define STW_KUBE_INFORMER_H

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"
#include "kube/client.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_informer;

/* Writes the compact JSON of what must be kept; if it writes nothing, the object is not cached.
 * When out of memory, it leaves out->failed set: the cache then keeps the previous version, and the
 * object is read again.  resourceVersion is stored separately and need not be in the text.  Runs on
 * the client's thread, and in stw_informer_saw on the writer's: it must not block, call back into
 * the informer, or keep state. */
typedef void stw_project_fn(void *ctx, struct stw_json object, struct stw_buf *out);

/* Called after the cache has changed, outside its lock, on the client's thread.  It must be quick,
 * such as an enqueue.  `old_text` is NULL for a new object, `new_text` for a deleted one; both are
 * NULL for a deleted object that was not kept (`reports_gone`).  Both are the text that was kept when
 * the object has got a version that cannot be read; otherwise not called when the projected text is
 * unchanged. */
typedef void stw_change_fn(void *ctx, const char *key, const char *old_text, const char *new_text);

/* A secondary index: appends the index keys of an object, each ended by '\n', to `out`.  One index
 * serves several fields when its keys begin with the field's name, as written by stw_index_add. */
typedef void stw_index_fn(void *ctx, struct stw_json projected, struct stw_buf *out);

/* "field:value\n" */
void stw_index_add(struct stw_buf *out, const char *field, const char *value);

struct stw_informer_config {
    const struct stw_resource *resource;
    /* The same resource in several versions of its group, the best first, ended by NULL.  The first
     * one that the server has is used.  It is determined again before every list and when a watch
     * has reached its timeout.  NULL: `resource` is used. */
    const struct stw_resource *const *alternatives;
    /* The server may lack the resource, such as that of a CRD which is not installed, or refuse to
     * list it: the cache is then empty and counts as synced.  It is listed again now and then. */
    bool optional;
    const char *const *namespaces; /* ended by NULL; NULL: all */
    const char *label_selector;    /* or NULL */
    const char *field_selector;    /* or NULL */
    bool metadata_only;            /* PartialObjectMetadata */
    bool reports_gone;             /* call changed() also for a deleted object that was not kept */
    const char *metrics_name;      /* label of its gauges; NULL: the resource's plural */
    stw_project_fn *project;
    stw_change_fn *changed;       /* or NULL */
    stw_index_fn *index;          /* or NULL */
    void (*available)(void *ctx); /* stw_informer_availability() has changed; as changed; or NULL */
    void *ctx;                    /* for these functions */
    uint32_t page_size;           /* 0: 500 */
    uint32_t silence_ms;          /* of a watch; 0: 230000; tests pass less */
    uint32_t list_silence_ms;     /* of a list that has begun; 0: 5000; tests pass less */
    uint32_t backoff_ms;          /* after a first failure; 0: 800; tests pass less */
    uint32_t absent_ms;           /* until an optional resource is listed again; 0: 15000 */
};

/* Strings of `config` are borrowed for the informer's life. */
int stw_informer_create(struct stw_client *client, const struct stw_informer_config *config,
                        const struct stw_clock *clock, struct stw_metrics *metrics,
                        struct stw_informer **ret, struct stw_error *err) STW_MUST_CHECK;
/* Returns at once. */
int stw_informer_start(struct stw_informer *inf, struct stw_error *err) STW_MUST_CHECK;
void stw_informer_destroy(struct stw_informer *inf); /* ends its watches; NULL is allowed */

bool stw_informer_synced(const struct stw_informer *inf); /* the first list is complete */
/* What is listed and watched: one of the alternatives, if there are any. */
const struct stw_resource *stw_informer_resource(const struct stw_informer *inf);
/* Of an optional resource: whether it can be listed, by the latest attempt. */
enum stw_availability { STW_AVAILABLE, STW_NOT_SERVED, STW_NOT_ALLOWED };
enum stw_availability stw_informer_availability(const struct stw_informer *inf);
/* Why it is not synced, or what the last failure was; "": no problem. */
void stw_informer_problem(const struct stw_informer *inf, char *out, size_t out_size);

#define STW_RV_LEN 64
/* Copies the text of one object, as `project` made it, to `out`; `ret_rv` (may be NULL, STW_RV_LEN
 * bytes) gets its resourceVersion.  Returns 0, or -1 when it is not in the cache (`out` is cleared).
 * No I/O; on any thread. */
int stw_informer_get(struct stw_informer *inf, const char *key, struct stw_buf *out, char *ret_rv);
/* Appends the keys under an index key, or all for NULL, to `out`, each ended by '\n'.  The result is
 * a copy: an object of it may be gone by the time it is read.  No I/O; on any thread. */
void stw_informer_keys(struct stw_informer *inf, const char *index_key, struct stw_buf *out);
/* Iterates over them, each terminated by a NUL instead: `*at` begins at 0; NULL after the last. */
const char *stw_keys_next(struct stw_buf *keys, size_t *at);
uint32_t stw_informer_count(const struct stw_informer *inf);

/* The state of an informer, for people. */
struct stw_informer_facts {
    uint32_t objects;
    size_t bytes;
    bool synced;
    bool forbidden;                    /* the last failure was a missing right */
    char problem[256];                 /* as stw_informer_problem */
    char resource_version[STW_RV_LEN]; /* that the watch has reached, of the first namespace */
    int64_t last_event_us;             /* wall clock: the oldest of the namespaces; 0: never */
    uint64_t lists, failures;          /* complete lists; failed requests; of all namespaces */
    uint32_t unreadable;               /* objects that were skipped */
};
void stw_informer_facts(struct stw_informer *inf, struct stw_informer_facts *ret);

/* Objects that the API server has and that cannot be read.  They are skipped; of one that was read
 * before, the cache keeps the last version that could be read.  It is never reported as deleted for
 * this reason.  At most 1024 are known by name. */
/* Why the object of this key cannot be read, in `why` (may be NULL); false: it can, or is not
 * there. */
bool stw_informer_unreadable(struct stw_informer *inf, const char *key, char *why, size_t why_size);
/* `key` is NULL for one whose name could not be found; `place` then says where it was seen.  It must
 * not call back into the informer. */
typedef void stw_unreadable_fn(void *ctx, const char *key, const char *place, const char *why);
/* Calls `fn` for each of them, and returns how many more there are. */
uint32_t stw_informer_each_unreadable(struct stw_informer *inf, stw_unreadable_fn *fn, void *ctx);

/* Puts the whole object, from the response to our own write, into the cache.  No change callback.
 * `ret` (may be NULL) gets its text as it would be cached. */
void stw_informer_saw(struct stw_informer *inf, const struct stw_buf *object, struct stw_buf *ret);
/* Our own delete of this object was accepted: it is removed from the cache at once.  `rv` is the
 * resourceVersion that the caller has read of it.  A newer entry stays: another client may have made
 * an object of the same name meanwhile, and the watch may have delivered that before the response to
 * the delete. */
void stw_informer_saw_delete(struct stw_informer *inf, const char *key, const char *rv);

#endif
