/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps one scope (a namespace, or all) of a cache in sync with the API server: list, watch, list
 * again.  It is a state machine on the client's thread that always has exactly one call running or
 * waiting, so only what other threads read needs a lock. */
#ifndef STW_KUBE_REFLECTOR_PRIV_H
#define STW_KUBE_REFLECTOR_PRIV_H

#include "base/util.h"
#include "kube/cache/cache_priv.h"
#include "kube/cache/items_priv.h"
#include "kube/cache/unreadable_priv.h"
#include "kube/client/client_priv.h"
#include "kube/client/lines_priv.h"

#include <stdatomic.h>

enum stw_reflector_phase {
    STW_CHOOSING, /* among the alternatives */
    STW_LISTING,
    STW_WATCHING
};

struct stw_reflector {
    struct stw_informer *inf;
    struct stw_cache_scope scope;
    struct stw_unreadable_scope list;  /* the list that is read, or was read last */
    bool nameless;                     /* it has an unreadable object whose name is unknown */
    struct stw_page_progress progress; /* of this list */
    struct stw_http_call call;
    struct stw_buf path;
    enum stw_reflector_phase phase;
    bool must_list; /* always list after the choice; else only when the choice has changed */
    const struct stw_resource *listed;
    bool paging;         /* a list is partly read: `next` is where it continues */
    struct stw_buf next; /* the continue token */
    char rv[STW_RV_LEN]; /* where the watch resumes */
    uint32_t page_size;  /* of the next page: fewer objects when they are large */
    struct stw_page_size pages;
    uint32_t page_objects; /* that came in this page, */
    size_t page_bytes;     /* and bytes */
    size_t held;           /* bytes of unfinished objects, counted against the share of answers */
    bool waits_for_room;   /* for what arrives, in STW_SHARE_ANSWERS */
    unsigned failures;     /* in a row */
    unsigned told;         /* of these, in the log as a warning */
    unsigned waits;        /* in a row, after failures of one sort; determines the backoff */
    bool away;             /* the last failure: no server was reached */
    uint64_t failing_since_ms; /* of the first of them */
    unsigned watch_failures;   /* in a row, of watches at one resourceVersion */
    unsigned short_watches;    /* in a row */
    uint64_t began_ms;         /* of this watch */
    bool alive;                /* this watch has delivered an event */
    struct stw_lines lines;    /* of a watch */
    struct stw_items items;    /* of a list */
    struct stw_json_doc doc;   /* scratch of events */
    struct stw_buf text;       /* scratch of the projection */
    atomic_bool synced;
    atomic_int availability; /* enum stw_availability */
    /* Under the informer's lock, for stw_informer_facts: */
    char problem[256]; /* "": no problem */
    bool forbidden;    /* it is a missing right */
    char seen_rv[STW_RV_LEN];
    /* Wall clock: the last list, event, bookmark, or answer that it is not there. */
    int64_t seen_us;
    uint64_t lists, failed;
};

struct stw_informer {
    struct stw_client *client;
    struct stw_informer_config config;
    const struct stw_clock *clock;
    struct stw_cache cache;
    struct stw_unreadable unreadable;
    struct stw_series *last_event, *objects, *bytes, *skipped;

    struct stw_reflector *reflectors;
    unsigned reflector_count;
    atomic_bool stopping;
    _Atomic(const struct stw_resource *) resource; /* in use */

    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned running; /* lock: reflectors that still use their call */
};

int stw_reflector_init(struct stw_reflector *r, struct stw_informer *inf, const char *ns,
                       struct stw_error *err) STW_MUST_CHECK;
void stw_reflector_done(struct stw_reflector *r);
void stw_reflector_start(struct stw_reflector *r);
/* How long to wait after this failure. */
uint64_t stw_reflector_wait_ms(struct stw_reflector *r, const struct stw_error *err);

/* How long to wait after a watch that has just ended, whatever its end was. */
uint64_t stw_reflector_pause_ms(struct stw_reflector *r);

/* --- informer_feed.c: what a reflector reports */

/* The reflector no longer uses its call; this is its last action. */
void stw_informer_ended(struct stw_informer *inf);
void stw_informer_set_problem(struct stw_reflector *r, const char *text, bool forbidden);
/* When the namespace that has been silent the longest was heard; 0: one has never answered. */
int64_t stw_informer_last_seen_us(const struct stw_informer *inf);
/* A list (`list`), an event or a bookmark has come in, or the answer that the resource is not there. */
void stw_informer_note(struct stw_reflector *r, bool list);
void stw_informer_changed(struct stw_informer *inf, const char *key, const char *old_text,
                          const char *new_text);
void stw_informer_gauges(struct stw_informer *inf);

/* Key and resourceVersion of an object, and its projection in `text`.  -1: not an object that a
 * cache could keep.  ret->text is NULL when the projection drops it, and when it failed
 * (text->failed), which the caller must check: the object is then not gone. */
struct stw_object_id {
    char key[STW_KEY_LEN];
    char rv[STW_RV_LEN];
};
int stw_informer_identify(struct stw_json object, struct stw_object_id *id); /* without the text */
int stw_informer_read(struct stw_informer *inf, struct stw_json object, struct stw_object_id *id,
                      struct stw_buf *text, struct stw_version *ret);

#endif
