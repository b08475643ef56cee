/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may make a backup now: a few places, for which the namespaces take turns.  A key waits for a place,
 * is called to it, uses it, and ends.  No I/O, no lock: the runtime has one.
 *
 * Users choose the etcd and the store, which may be slow.  So a place is lost while others wait and none
 * is free: by a transfer that is too slow, and by the oldest one after EB_TURN_MS if a namespace that has
 * no place waits. */
#ifndef STW_KINDS_ETCDBACKUP_PLACES_H
#define STW_KINDS_ETCDBACKUP_PLACES_H

#include "base/turns.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EB_TRANSFERS_MAX 4
#define EB_CALLED_MS 30000 /* until a place is another's, as its object's run does not come */
#define EB_WINDOW_MS 45000 /* in which bytes are counted */
#define EB_SLOWEST_BYTES_PER_S (128u << 10)
#define EB_TURN_MS (30 * 60 * 1000)
/* What a transfer keeps beside one part: a part's ETag each, lines of etcd, TLS. */
#define EB_TRANSFER_BYTES (3u << 20)

struct eb_place {
    struct stw_turn turn; /* first */
    bool called, used, ends;
    uint64_t since_ms; /* called, or used */
    uint64_t window_ms, window_bytes;
    _Atomic uint64_t moved;
    char key[];
};

struct eb_places {
    struct stw_turns turns;
    struct stw_table keys; /* those that wait or are called */
    unsigned max, of_namespace, taken;
    struct eb_place *at[EB_TRANSFERS_MAX]; /* called or used */
};

/* As many places as the share of the memory has room for, at least one, and the part of an upload. */
void eb_places_init(struct eb_places *p, size_t share_bytes);
size_t eb_places_part_bytes(size_t share_bytes);
void eb_places_done(struct eb_places *p); /* no place is used any more */

/* The place of a key, which waits or is called.  NULL: no memory. */
struct eb_place *eb_places_come(struct eb_places *p, const char *key, uint64_t now_ms);
/* Calls the next one; NULL: none is free, or none waits for one. */
struct eb_place *eb_places_call(struct eb_places *p, uint64_t now_ms);
void eb_places_forget(struct eb_places *p, const char *key); /* waits no more, and is not called */
struct eb_place *eb_places_find(const struct eb_places *p, const char *key);
/* A called place becomes the transfer's, and no longer the key's; NULL: it was not called. */
struct eb_place *eb_places_use(struct eb_places *p, const char *key, uint64_t now_ms);
void eb_places_end(struct eb_places *p, struct eb_place *place); /* frees it; NULL is allowed */

enum eb_verdict { EB_GOES_ON, EB_TOO_SLOW, EB_TURN_ENDED };
/* Whether this transfer has to give up its place to one that waits; told once. */
enum eb_verdict eb_places_judge(struct eb_places *p, struct eb_place *place, uint64_t now_ms);

#endif
