/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects duplicate keys once an object is complete.  Few members are compared pairwise by a
 * fingerprint of their keys; many go through a hash table.  Each key is decoded once, and again
 * only if its seeded hash equals another one, so the work is linear in the text for any content. */
#include "base/backoff.h"
#include "base/json/json_priv.h"
#include "base/util.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PAIRWISE_MAX 24U
#define SHORT_KEY 16U

/* Allocated on first use: most documents never need it. */
static struct stw_json_scratch *scratch_of(struct stw_json_doc *doc)
{
    if (doc->scratch)
        return doc->scratch;
    struct stw_json_scratch *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    doc->scratch = s;
    s->rooms[0] = STW_BUF_INIT(UINT32_MAX);
    s->rooms[1] = STW_BUF_INIT(UINT32_MAX);
    s->seed = stw_random();
    return s;
}

void stw_json_scratch_destroy(struct stw_json_scratch *s)
{
    if (!s)
        return;
    stw_buf_done(&s->rooms[0]);
    stw_buf_done(&s->rooms[1]);
    free(s->slots);
    free(s);
}

/* The decoded bytes of a key: in the text itself, or in `rooms[room]` when it contains escapes.
 * NULL when out of memory. */
static const char *key_bytes(struct stw_json_doc *doc, uint32_t at, unsigned room)
{
    const struct stw_json_token *key = &doc->tokens[at];
    const char *from = doc->text + key->start, *piece;
    if (!key->escaped)
        return from;
    struct stw_json_scratch *s = scratch_of(doc);
    if (!s)
        return NULL;
    struct stw_json_decoder d = {.p = from, .end = doc->text + key->end};
    struct stw_buf *b = &s->rooms[room];
    stw_buf_clear(b);
    for (size_t n = stw_json_decode(&d, &piece); n > 0; n = stw_json_decode(&d, &piece))
        stw_buf_add(b, piece, n);
    return b->failed ? NULL : stw_buf_str(b);
}

/* 1 same, 0 not, -1 no memory. */
static int same_key(struct stw_json_doc *doc, uint32_t a, uint32_t b)
{
    uint32_t size = doc->tokens[a].size;
    if (size != doc->tokens[b].size)
        return 0;
    const char *p = key_bytes(doc, a, 0), *q = key_bytes(doc, b, 1);
    if (!p || !q)
        return -1;
    return memcmp(p, q, size) == 0;
}

/* The fingerprint of a key.  For up to SHORT_KEY bytes it is computed from all bytes: comparing two
 * such keys is cheap even if an attacker has made their fingerprints equal.  Longer keys are hashed
 * with the seed: an attacker can make two fingerprints equal only by the same key, which ends the
 * search. */
static inline uint64_t print_of(const char *p, size_t len, uint64_t seed)
{
    uint64_t head = 0, tail = 0;
    if (len > SHORT_KEY)
        return XXH3_64bits_withSeed(p, len, seed);
    if (len >= 8) {
        memcpy(&head, p, 8);
        memcpy(&tail, p + len - 8, 8);
    } else if (len >= 4) {
        memcpy(&head, p, 4);
        memcpy(&tail, p + len - 4, 4);
    } else if (len > 0) {
        head = (uint64_t)(unsigned char)p[0] << 8 | (unsigned char)p[len / 2];
        tail = (unsigned char)p[len - 1];
    }
    return (head * UINT64_C(0x9E3779B97F4A7C15)) ^ (tail + ((uint64_t)len << 56));
}

/* The fingerprint of a key; -1 when out of memory. */
static int print_key(struct stw_json_doc *doc, uint32_t at, bool hashed, uint64_t *ret)
{
    uint32_t size = doc->tokens[at].size;
    struct stw_json_scratch *s = hashed || size > SHORT_KEY ? scratch_of(doc) : NULL;
    const char *bytes = key_bytes(doc, at, 0);
    if (!bytes || (!s && (hashed || size > SHORT_KEY)))
        return -1;
    *ret = hashed ? XXH3_64bits_withSeed(bytes, size, s->seed)
                  : print_of(bytes, size, s ? s->seed : 0);
    return 0;
}

static int find_duplicate_pairwise(struct stw_json_doc *doc, uint32_t object, uint32_t *ret_key)
{
    uint64_t prints[PAIRWISE_MAX];
    uint32_t keys[PAIRWISE_MAX], n = doc->tokens[object].size, at = object + 1;

    for (uint32_t i = 0; i < n; i++, at = doc->tokens[at + 1].next) {
        if (print_key(doc, at, false, &prints[i]) != 0)
            return -1;
        keys[i] = at;
        for (uint32_t k = 0; k < i; k++) {
            int same = prints[k] == prints[i] ? same_key(doc, keys[k], at) : 0;
            if (same != 0) {
                *ret_key = at;
                return same;
            }
        }
    }
    return 0;
}

static int reserve_slots(struct stw_json_scratch *s, size_t cap)
{
    if (cap > s->cap) {
        free(s->slots);
        s->cap = 0;
        s->slots = malloc(cap * sizeof(*s->slots));
        if (!s->slots)
            return -1;
        s->cap = cap;
    }
    memset(s->slots, 0, cap * sizeof(*s->slots));
    return 0;
}

/* The part of the hash in the slot avoids decoding the key there, which may be long. */
static int by_hash(struct stw_json_doc *doc, uint32_t object, uint32_t *ret_key)
{
    struct stw_json_scratch *s = scratch_of(doc);
    uint32_t n = doc->tokens[object].size, at = object + 1;
    size_t mask = 64;

    while (mask < (size_t)n * 2)
        mask *= 2;
    if (!s || reserve_slots(s, mask) != 0)
        return -1;
    mask--;
    for (uint32_t i = 0; i < n; i++, at = doc->tokens[at + 1].next) {
        uint64_t hash;
        if (print_key(doc, at, true, &hash) != 0)
            return -1;
        size_t slot = (size_t)hash & mask;
        uint32_t rest = (uint32_t)(hash >> 32);
        for (; s->slots[slot].key != 0; slot = (slot + 1) & mask) {
            int same = s->slots[slot].hash == rest ? same_key(doc, s->slots[slot].key, at) : 0;
            if (same != 0) {
                *ret_key = at;
                return same;
            }
        }
        s->slots[slot] = (struct stw_json_slot){.key = at, .hash = rest};
    }
    return 0;
}

int stw_json_find_duplicate(struct stw_json_doc *doc, uint32_t object, uint32_t *ret_key)
{
    uint32_t n = doc->tokens[object].size;
    if (n < 2)
        return 0;
    return n <= PAIRWISE_MAX ? find_duplicate_pairwise(doc, object, ret_key)
                             : by_hash(doc, object, ret_key);
}
