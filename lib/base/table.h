/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table from byte keys to pointers, small in memory: open addressing over (hash, entry)
 * pairs; the key lives in the entry, found by `key_of`.  Not thread-safe; the owner of the table
 * locks. */
#ifndef STW_BASE_TABLE_H
#define STW_BASE_TABLE_H

#include "base/util.h"

#include <stddef.h>
#include <stdint.h>

struct stw_table {
    const char *(*key_of)(const void *entry); /* NUL-terminated key of an entry */
    struct stw_table_slot *slots;
    uint32_t cap, used, dead;
    uint32_t moves; /* how often stw_table_put has moved the entries */
};

#define STW_TABLE_INIT(fn) ((struct stw_table){.key_of = (fn)})

void stw_table_done(struct stw_table *t); /* frees the table, not the entries */
/* Frees the entries with `release`, which does not use the table, and then the table. */
void stw_table_release(struct stw_table *t, void (*release)(void *entry));
uint32_t stw_table_size(const struct stw_table *t);
void *stw_table_get(const struct stw_table *t, const char *key);
/* Adds an entry, or replaces the one with the same key and returns that in `ret_old`.  -1: out of
 * memory. */
int stw_table_put(struct stw_table *t, void *entry, void **ret_old) STW_MUST_CHECK;
void *stw_table_remove(struct stw_table *t, const char *key); /* the entry, or NULL */
/* Iterates over all entries: start with *pos = 0; NULL at the end.  The entry just returned may be
 * removed.  After a stw_table_put that has changed `moves`, *pos says nothing: an iteration that must
 * not miss an entry starts again. */
void *stw_table_next(const struct stw_table *t, uint32_t *pos);

#endif
