/* SPDX-License-Identifier: Apache-2.0
 *
 * One object of the cache: a block of memory with its key, its version and its text. */
#include "base/util.h"
#include "kube/cache/entry_priv.h"

#define ENTRY_OVERHEAD 40

const char *stw_entry_table_key(const void *entry)
{
    return ((const struct stw_entry *)entry)->data;
}

const char *stw_entry_key(const struct stw_entry *e)
{
    return e->data;
}

const char *stw_entry_rv(const struct stw_entry *e)
{
    return e->data + e->key_len + 1;
}

const char *stw_entry_text(const struct stw_entry *e)
{
    return e->data + e->key_len + 1 + e->rv_room + 1;
}

struct stw_entry_index *stw_entry_index(struct stw_entry *e)
{
    return &e->index;
}

void stw_entry_free(struct stw_entry *e)
{
    free(e);
}

size_t stw_entry_size(const struct stw_entry *e)
{
    return sizeof(*e) + e->key_len + 1U + e->rv_room + 1U + e->text_len + 1U;
}

size_t stw_entry_real_size(const struct stw_entry *e)
{
    return stw_entry_size(e) + ENTRY_OVERHEAD + (size_t)e->index.units * STW_INDEX_UNIT;
}

struct stw_entry *stw_entry_create(const struct stw_version *v)
{
    size_t key_len = strlen(v->key), rv_len = strlen(v->rv);
    struct stw_entry *e = malloc(sizeof(*e) + key_len + rv_len + v->text_len + 3);
    if (!e)
        return NULL;
    *e = (struct stw_entry){.text_len = (uint32_t)v->text_len,
                            .key_len = (uint16_t)key_len,
                            .rv_room = (uint8_t)rv_len};
    char *at = e->data;
    memcpy(at, v->key, key_len + 1);
    memcpy(at + key_len + 1, v->rv, rv_len + 1);
    memcpy(at + key_len + 1 + rv_len + 1, v->text, v->text_len);
    at[key_len + 1 + rv_len + 1 + v->text_len] = '\0';
    return e;
}
