/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects, and the history of their changes.  No locks: the server has one for all. */
#ifndef STW_TESTING_STORE_PRIV_H
#define STW_TESTING_STORE_PRIV_H

#include "base/clock.h"
#include "base/resource.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct stw_test_type {
    const struct stw_resource *resource;
    json_t *objects; /* "namespace/name" or "name": the object */
    bool custom, has_status, has_generation;
};

struct stw_test_change {
    uint64_t version;
    const struct stw_test_type *type;
    json_t *before, *after; /* NULL: there was none, there is none */
    json_t *last;           /* of a deletion: the object as the event shows it */
    size_t bytes;
};

struct stw_test_store {
    const struct stw_clock *clock;
    struct stw_test_type *types;
    size_t type_count;
    uint64_t version;   /* the newest resourceVersion */
    uint64_t forgotten; /* changes up to this version are no longer known */
    struct stw_test_change *changes;
    size_t change_first, change_count; /* in a ring of STW_TEST_CHANGES_MAX */
    size_t change_bytes, object_bytes, bytes_max;
    uint64_t uids;
};

#define STW_TEST_CHANGES_MAX 4096u

/* `resources` is ended by NULL; the first of those with one group and plural is served.  0, or -1: out of
 * memory. */
int stw_test_store_init(struct stw_test_store *s, const struct stw_resource *const *resources,
                        const struct stw_clock *clock, size_t bytes_max);
void stw_test_store_done(struct stw_test_store *s);

/* NULL: not served. */
struct stw_test_type *stw_test_store_type(struct stw_test_store *s, const char *group,
                                          const char *version, const char *plural);
/* The i-th change that is known, the oldest first. */
const struct stw_test_change *stw_test_store_change(const struct stw_test_store *s, size_t i);
/* The position of the first change after a version. */
size_t stw_test_store_after(const struct stw_test_store *s, uint64_t version);
/* Forgets all changes: a watch or a list that continues from before is refused. */
void stw_test_store_forget(struct stw_test_store *s);

/* Borrowed; NULL: there is none. */
json_t *stw_test_store_get(const struct stw_test_type *t, const char *key);
/* Whether there is room for an object in place of what is there. */
bool stw_test_store_fits(const struct stw_test_store *s, const struct stw_test_type *t,
                         const char *key, const json_t *object);
/* Gives the object a new resourceVersion, and stores it.  Takes `object`; returns it, borrowed. */
json_t *stw_test_store_put(struct stw_test_store *s, struct stw_test_type *t, const char *key,
                           json_t *object);
/* Removes the object, and those that it alone owns. */
void stw_test_store_remove(struct stw_test_store *s, struct stw_test_type *t, const char *key);
/* Whether it names owners, none of which there is: then the garbage collector deletes it. */
bool stw_test_store_is_orphan(struct stw_test_store *s, const json_t *object);
/* The object as it is after its deletion has begun, owned by the caller; NULL: it has no finalizers. */
json_t *stw_test_store_marked(const struct stw_test_store *s, const struct stw_test_type *t,
                              const json_t *live);
/* Marks it for deletion, or removes it if it has no finalizers. */
void stw_test_store_delete(struct stw_test_store *s, struct stw_test_type *t, const char *key);
/* uid, creationTimestamp and generation of a new object. */
void stw_test_store_name_new(struct stw_test_store *s, const struct stw_test_type *t,
                             json_t *object);
/* A map of the objects as of a version, owned by the caller; NULL: it is forgotten. */
json_t *stw_test_store_as_of(struct stw_test_store *s, const struct stw_test_type *t,
                             uint64_t version);

#endif
