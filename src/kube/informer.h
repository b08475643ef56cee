/* SPDX-License-Identifier: Apache-2.0
 *
 * List and watch one resource into a cache of text.  Each object is kept as one projected JSON
 * string: the projection keeps what reconcilers read and may drop the object altogether.
 *
 * The reflector pages its list, watches with bookmarks, resumes at the last resourceVersion, lists
 * again after 410 Gone (and reports what vanished meanwhile), backs off with jitter, and declares a
 * watch dead that was silent (no event, no bookmark) for 230 s, under the common 240 s of idle
 * load balancers.
 *
 * Own writes are seen at once: stw_informer_saw() puts an answer of the API server into the cache,
 * and older watch events of that object are passed over until the watch has caught up. */
#ifndef STW_KUBE_INFORMER_H
#define STW_KUBE_INFORMER_H

#include "base/buf.h"
#include "base/json.h"
#include "kube/client.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_informer;

/* Writes the compact JSON of what is worth keeping; nothing written: the object is not cached.
 * resourceVersion is kept beside the text, it need not be in it.  Runs on the client's thread, and
 * on the writer's in stw_informer_saw: no blocking, no calls back into the informer, no state. */
typedef void stw_project_fn(void *ctx, struct stw_json object, struct stw_buf *out);

/* Called after the cache changed, outside its lock, on the client's thread or the writer's: quick,
 * for enqueueing.  `old_text` is NULL for a new object, `new_text` for one that is gone; both
 * are NULL for one that goes and was not kept (`tells_gone`).  Not called when the projected text
 * is the same as before. */
typedef void stw_change_fn(void *ctx, const char *key, const char *old_text, const char *new_text);

/* A secondary index: appends the index keys of an object, each ended by '\n', to `out`.  One index
 * serves several fields when its keys begin with the field's name, as stw_index_add writes them. */
typedef void stw_index_fn(void *ctx, struct stw_json projected, struct stw_buf *out);

/* "field:value\n" */
void stw_index_add(struct stw_buf *out, const char *field, const char *value);

struct stw_informer_config {
    const struct stw_resource *resource;
    /* The same in other versions of its group, the best first, ended by NULL: the first that the
     * server has is used, which is asked anew with every list and when a watch's time is over.
     * NULL: `resource` it is. */
    const struct stw_resource *const *alternatives;
    const char *const *namespaces; /* ended by NULL; NULL: all */
    const char *label_selector;    /* or NULL */
    const char *field_selector;    /* or NULL */
    bool metadata_only;            /* PartialObjectMetadata */
    bool tells_gone;               /* changed() also when an object goes that was not kept */
    const char *metrics_name;      /* label of its gauges; NULL: the resource's plural */
    stw_project_fn *project;
    stw_change_fn *changed;   /* or NULL */
    stw_index_fn *index;      /* or NULL */
    void *ctx;                /* for the three */
    uint32_t page_size;       /* 0: 500 */
    uint32_t silence_ms;      /* of a watch; 0: 230000; tests pass less */
    uint32_t list_silence_ms; /* of a list that has begun; 0: 5000; tests pass less */
    uint32_t backoff_ms;      /* after a first failure; 0: 800; tests pass less */
};

/* Strings of `config` are borrowed for the informer's life. */
int stw_informer_create(struct stw_client *client, const struct stw_informer_config *config,
                        const struct stw_clock *clock, struct stw_metrics *metrics,
                        struct stw_informer **ret, struct stw_error *err);
int stw_informer_start(struct stw_informer *inf, struct stw_error *err); /* returns at once */
void stw_informer_destroy(struct stw_informer *inf); /* ends its watches; NULL is fine */

bool stw_informer_synced(const struct stw_informer *inf); /* the first list is in */
/* What is listed and watched: one of the alternatives, where there are any. */
const struct stw_resource *stw_informer_resource(const struct stw_informer *inf);
/* Why it is not synced, or what the last failure was; "" when all is well. */
void stw_informer_problem(const struct stw_informer *inf, char *out, size_t out_size);

/* Copies the text of one object; `ret_rv` (may be NULL, STW_RV_LEN bytes) its resourceVersion.
 * Returns 0, or -1 when it is not there (out is cleared). */
#define STW_RV_LEN 64
int stw_informer_get(struct stw_informer *inf, const char *key, struct stw_buf *out, char *ret_rv);
/* Keys under an index key, or all for NULL, each ended by '\n'. */
void stw_informer_keys(struct stw_informer *inf, const char *index_key, struct stw_buf *out);
/* Steps through them, each ended by a NUL instead: `*at` begins at 0; NULL behind the last. */
const char *stw_keys_next(struct stw_buf *keys, size_t *at);
uint32_t stw_informer_count(const struct stw_informer *inf);

/* Takes in the whole object that a write of ours was answered with.  No change callback.  `ret`
 * (may be NULL) gets its text as it would be cached. */
void stw_informer_saw(struct stw_informer *inf, const struct stw_buf *object, struct stw_buf *ret);
/* Our own delete of this object was accepted: it goes from the cache at once. */
void stw_informer_saw_delete(struct stw_informer *inf, const char *key);

#endif
