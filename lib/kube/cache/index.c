/* SPDX-License-Identifier: Apache-2.0
 *
 * The secondary index: from an index key to its entries.  The index keys of an entry are not
 * stored: they are computed again from its text when it is removed.  When out of memory they may not
 * be the same ones.  An entry therefore counts how often it is in the index: it is never freed while
 * a node points to it. */
#include "base/util.h"
#include "kube/cache/cache_priv.h"
#include "kube/cache/usage.h"

#define INDEX_KEYS_MAX_BYTES (64u << 10)

/* One index key.  Most have one entry, so it is one small block. */
struct index_node {
    uint32_t count, room;
    struct stw_entry *entries[]; /* `room` of them, then the key */
};

static const char *key_of(const void *node)
{
    const struct index_node *n = node;
    return (const char *)&n->entries[n->room];
}

void stw_index_init(struct stw_table *index)
{
    *index = STW_TABLE_INIT(key_of);
}

void stw_index_done(struct stw_table *index)
{
    stw_table_release(index, free);
}

/* A larger node with the entries of `old`, which may be NULL. */
static struct index_node *create_larger_node(const struct index_node *old, const char *key)
{
    uint32_t room = old ? old->room * 2 : 1;
    size_t key_size = strlen(key) + 1;
    struct index_node *n = malloc(sizeof(*n) + room * sizeof(void *) + key_size);
    if (!n)
        return NULL;
    n->room = room;
    n->count = old ? old->count : 0;
    if (old)
        memcpy(n->entries, old->entries, old->count * sizeof(void *));
    memcpy(&n->entries[room], key, key_size);
    return n;
}

/* Each entry is charged for the whole node: of those that share one, any may be the last. */
static uint16_t units_of(const char *key)
{
    size_t units = (stw_index_key_bytes(strlen(key)) + STW_INDEX_UNIT - 1) / STW_INDEX_UNIT;
    return (uint16_t)STW_MIN(units, (size_t)UINT16_MAX);
}

static void count_key(struct stw_entry *e, const char *key)
{
    struct stw_entry_index *x = stw_entry_index(e);
    x->count++;
    x->units = (uint16_t)STW_MIN(x->units + units_of(key), UINT16_MAX);
}

static void forget_key(struct stw_entry *e, const char *key)
{
    struct stw_entry_index *x = stw_entry_index(e);
    x->count--;
    x->units = x->count == 0 ? 0 : (uint16_t)(x->units - STW_MIN(x->units, units_of(key)));
}

/* When out of memory, the entry is not found by this key until the object changes; the object is
 * kept. */
static void add_one(struct stw_table *index, const char *key, struct stw_entry *e)
{
    struct index_node *n = stw_table_get(index, key);
    void *old = NULL;
    if (!n || n->count == n->room) {
        struct index_node *more = create_larger_node(n, key);
        if (!more)
            return;
        if (stw_table_put(index, more, &old) != 0) {
            free(more);
            return;
        }
        free(old);
        n = more;
    }
    n->entries[n->count++] = e;
    count_key(e, key);
}

/* True: the entry was in this node, and is now in it once less. */
static bool remove_from_node(struct index_node *n, struct stw_entry *e)
{
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->entries[i] != e)
            continue;
        n->entries[i] = n->entries[--n->count];
        forget_key(e, key_of(n));
        return true;
    }
    return false;
}

static void remove_one(struct stw_table *index, const char *key, struct stw_entry *e)
{
    struct index_node *n = stw_table_get(index, key);
    if (n && remove_from_node(n, e) && n->count == 0)
        free(stw_table_remove(index, key));
}

/* Without its keys.  Slow, but needs no memory. */
static void remove_everywhere(struct stw_table *index, struct stw_entry *e)
{
    uint32_t pos = 0;
    for (struct index_node *n;
         stw_entry_index(e)->count > 0 && (n = stw_table_next(index, &pos));) {
        while (remove_from_node(n, e))
            ;
        if (n->count == 0)
            free(stw_table_remove(index, key_of(n)));
    }
}

static void each_key(struct stw_cache *c, struct stw_entry *e,
                     void (*fn)(struct stw_table *, const char *, struct stw_entry *))
{
    const char *text = stw_entry_text(e);
    c->doc.trusted = true;
    if (!c->index_fn || stw_json_scan(&c->doc, text, strlen(text), NULL) != 0)
        return;
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(INDEX_KEYS_MAX_BYTES);
    c->index_fn(c->ctx, stw_json_root(&c->doc), &keys);
    for (char *key = keys.data, *nl; key && (nl = strchr(key, '\n')); key = nl + 1) {
        *nl = '\0';
        fn(&c->index, key, e);
    }
}

void stw_cache_index_add(struct stw_cache *c, struct stw_entry *e)
{
    each_key(c, e, add_one);
}

void stw_cache_index_remove(struct stw_cache *c, struct stw_entry *e)
{
    if (stw_entry_index(e)->count > 0)
        each_key(c, e, remove_one);
    if (stw_entry_index(e)->count > 0)
        remove_everywhere(&c->index, e);
}

void stw_index_keys(const struct stw_table *index, const char *index_key, struct stw_buf *out)
{
    const struct index_node *n = stw_table_get(index, index_key);
    for (uint32_t i = 0; n && i < n->count; i++) {
        stw_buf_adds(out, stw_entry_key(n->entries[i]));
        stw_buf_addc(out, '\n');
    }
}
