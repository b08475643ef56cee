/* SPDX-License-Identifier: Apache-2.0
 *
 * One object of the cache. */
#ifndef STW_KUBE_CACHE_ENTRY_PRIV_H
#define STW_KUBE_CACHE_ENTRY_PRIV_H

#include <stddef.h>
#include <stdint.h>

/* How often an entry is in the index, and the memory for it in units of STW_INDEX_UNIT bytes. */
#define STW_INDEX_UNIT 16U
struct stw_entry_index {
    uint16_t count, units;
};

/* One version of an object.  `text` NULL: it is gone, or the projection drops it. */
struct stw_version {
    const char *key, *rv;
    const char *text;
    size_t text_len;
};

/* Overhead in addition to the text: 16 bytes here, key and resourceVersion, and malloc's own. */
struct stw_entry {
    uint32_t text_len;
    struct stw_entry_index index;
    uint32_t gate_s; /* written by us: older events are skipped until then; 0: no gate */
    uint16_t key_len;
    uint8_t rv_room;    /* bytes for the resourceVersion, without its NUL */
    uint8_t listed : 1; /* was in the list that is being read */
    uint8_t fresh : 1;  /* was written by us since that list began */
    char data[];        /* key NUL rv NUL text NUL */
};

/* NULL: no memory. */
struct stw_entry *stw_entry_create(const struct stw_version *v);
/* As stw_entry_key, for a table. */
const char *stw_entry_table_key(const void *entry);
const char *stw_entry_rv(const struct stw_entry *e);
const char *stw_entry_key(const struct stw_entry *e);
const char *stw_entry_text(const struct stw_entry *e);
void stw_entry_free(struct stw_entry *e);
/* How often the entry is in the index. */
struct stw_entry_index *stw_entry_index(struct stw_entry *e);
size_t stw_entry_size(const struct stw_entry *e);
/* With what malloc and the table need, and with its index keys. */
size_t stw_entry_real_size(const struct stw_entry *e);

#endif
