/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that the API server sends and that cannot be read: which they are, and why.  They are
 * skipped, so that one of them costs nothing but itself; these marks make them visible. */
#ifndef STW_KUBE_UNREADABLE_PRIV_H
#define STW_KUBE_UNREADABLE_PRIV_H

#include "base/table.h"
#include "kube/resource.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* --- what such an object is */

#define STW_UNREADABLE_RV_LEN 64
struct stw_unreadable_id {
    char key[STW_KEY_LEN];          /* "": not found */
    char rv[STW_UNREADABLE_RV_LEN]; /* resourceVersion; "": not found */
};

/* Looks for name, namespace and resourceVersion in the text of an object that is not valid JSON, or
 * the start of one. */
void stw_unreadable_identify(const char *text, size_t len, struct stw_unreadable_id *ret);
/* The same for a watch event; `ret_type` gets its type, "" when it has none. */
void stw_unreadable_identify_event(const char *text, size_t len, char ret_type[16],
                                   struct stw_unreadable_id *ret);

/* --- which there are */

#define STW_UNREADABLE_MAX 1024 /* that are known by name */

/* A reflector of the informer. */
struct stw_unreadable_scope {
    uint32_t list; /* counts its lists */
};

struct stw_unreadable {
    pthread_mutex_t lock;
    struct stw_table marks;
    uint32_t left_out; /* objects beyond STW_UNREADABLE_MAX, since a list began */
    unsigned log_tokens;
    uint64_t log_ms;    /* when a token was last added */
    uint32_t unlogged;  /* lines that were left out */
    atomic_uint marked; /* marks and left_out; read without the lock */
};

void stw_unreadable_init(struct stw_unreadable *u);
void stw_unreadable_done(struct stw_unreadable *u);
/* The object of this key cannot be read, or, with `placed`, one of unknown key at the place `key`. */
struct stw_unreadable_report {
    const char *key, *why;
    bool placed;
};
/* True when it must be logged: it is new, or the reason is, and there are few such lines;
 * `ret_unlogged` gets the number of lines left out before. */
bool stw_unreadable_mark(struct stw_unreadable *u, const struct stw_unreadable_scope *scope,
                         const struct stw_unreadable_report *r, uint64_t now_ms,
                         uint32_t *ret_unlogged);
/* It was read, or is gone. */
void stw_unreadable_clear(struct stw_unreadable *u, const char *key);
/* A list begins. */
void stw_unreadable_list_begin(struct stw_unreadable *u, struct stw_unreadable_scope *scope);
/* The list `scope->list` is complete: removes marks of objects that were not in it. */
void stw_unreadable_sweep(struct stw_unreadable *u, const struct stw_unreadable_scope *scope);
uint32_t stw_unreadable_count(const struct stw_unreadable *u);
/* Whether this key is marked; `why` may be NULL. */
bool stw_unreadable_get(struct stw_unreadable *u, const char *key, char *why, size_t why_size);
/* As stw_informer_each_unreadable. */
uint32_t stw_unreadable_each(struct stw_unreadable *u,
                             void (*fn)(void *ctx, const char *key, const char *place,
                                        const char *why),
                             void *ctx);

#endif
