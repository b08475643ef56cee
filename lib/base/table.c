/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include "base/util.h"

/* Linear probing with tombstones; at most 3/4 of the slots are in use or dead. */
struct stw_table_slot {
    uint64_t hash;
    void *entry; /* NULL: never used; &dead_mark: removed */
};

static char dead_mark;
#define DEAD ((void *)&dead_mark)
#define CAP_MIN 8U

static bool is_live_slot(const struct stw_table_slot *s)
{
    return s->entry && s->entry != DEAD;
}

static uint64_t hash_of(const char *key)
{
    return stw_hash_bytes(key, strlen(key)).lo;
}

void stw_table_done(struct stw_table *t)
{
    free(t->slots);
    t->slots = NULL;
    t->cap = t->used = t->dead = 0;
}

void stw_table_release(struct stw_table *t, void (*release)(void *entry))
{
    uint32_t pos = 0;
    for (void *entry; (entry = stw_table_next(t, &pos));)
        release(entry);
    stw_table_done(t);
}

uint32_t stw_table_size(const struct stw_table *t)
{
    return t->used;
}

static struct stw_table_slot *find_slot(const struct stw_table *t, const char *key, uint64_t hash)
{
    if (t->cap == 0)
        return NULL;
    for (uint32_t i = (uint32_t)hash & (t->cap - 1);; i = (i + 1) & (t->cap - 1)) {
        struct stw_table_slot *s = &t->slots[i];
        if (!s->entry)
            return NULL;
        if (s->entry != DEAD && s->hash == hash && stw_streq(t->key_of(s->entry), key))
            return s;
    }
}

void *stw_table_get(const struct stw_table *t, const char *key)
{
    struct stw_table_slot *s = find_slot(t, key, hash_of(key));
    return s ? s->entry : NULL;
}

static struct stw_table_slot *free_slot(struct stw_table_slot *slots, uint32_t cap, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (cap - 1);
    while (is_live_slot(&slots[i]))
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

/* Moves all entries to `cap` fresh slots, which also drops the tombstones. */
static int rehash_table(struct stw_table *t, uint32_t cap)
{
    struct stw_table_slot *slots = calloc(cap, sizeof(*slots));
    if (!slots)
        return -1;
    for (uint32_t i = 0; i < t->cap; i++)
        if (is_live_slot(&t->slots[i]))
            *free_slot(slots, cap, t->slots[i].hash) = t->slots[i];
    free(t->slots);
    t->slots = slots;
    t->cap = cap;
    t->dead = 0;
    t->moves++;
    return 0;
}

static int make_room(struct stw_table *t)
{
    if (t->cap > 0 && t->used + t->dead + 1 <= t->cap - t->cap / 4)
        return 0;
    uint32_t cap = STW_MAX(t->cap, CAP_MIN);
    while (t->used + 1 > cap / 2) {
        if (cap > UINT32_MAX / 2)
            return -1;
        cap *= 2;
    }
    return rehash_table(t, cap);
}

int stw_table_put(struct stw_table *t, void *entry, void **ret_old)
{
    const char *key = t->key_of(entry);
    uint64_t hash = hash_of(key);
    struct stw_table_slot *s = find_slot(t, key, hash);

    if (ret_old)
        *ret_old = s ? s->entry : NULL;
    if (s) {
        s->entry = entry;
        return 0;
    }
    if (make_room(t) != 0)
        return -1;
    s = free_slot(t->slots, t->cap, hash);
    t->dead -= s->entry == DEAD;
    *s = (struct stw_table_slot){.hash = hash, .entry = entry};
    t->used++;
    return 0;
}

void *stw_table_remove(struct stw_table *t, const char *key)
{
    struct stw_table_slot *s = find_slot(t, key, hash_of(key));
    if (!s)
        return NULL;
    void *entry = s->entry;
    uint32_t behind = ((uint32_t)(s - t->slots) + 1) & (t->cap - 1);
    /* A tombstone is needed only while a probe may have to walk past it.  No entry moves, so that
     * an iteration may remove the entry it has just returned. */
    s->entry = t->slots[behind].entry ? DEAD : NULL;
    t->dead += s->entry == DEAD;
    t->used--;
    return entry;
}

void *stw_table_next(const struct stw_table *t, uint32_t *pos)
{
    while (*pos < t->cap) {
        struct stw_table_slot *s = &t->slots[(*pos)++];
        if (is_live_slot(s))
            return s->entry;
    }
    return NULL;
}
