/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions of values: a tree parallel to the JSON, searched by the field paths of findings. */
#include "base/backoff.h"
#include "base/json.h"
#include "base/util.h"
#include "base/yaml/yaml_priv.h"

#include <stdio.h>

#define PRIME ((UINT64_C(1) << 61) - 1)

struct mark {
    uint32_t parent;
    uint32_t elements; /* children without a key, so far */
    uint32_t line, column;
    uint32_t index; /* of an element, among those of its parent */
    uint32_t key;   /* offset in `keys` + 1; 0 for an element */
    uint32_t key_len;
    uint32_t hash; /* of parent and key or index */
};

struct stw_yaml_marks {
    struct mark *list; /* [0] is the document */
    uint32_t count, cap;
    struct stw_buf keys;
    /* From parent and key or index to the mark + 1, made by the first search in a document.  A path
     * may have thousands of prefixes that could be a key, so their hashes are computed one from the
     * other, with a random base, so that no file can have keys that collide. */
    uint32_t *slots;
    uint32_t mask, slots_cap;
    bool indexed;
    uint64_t base;
};

struct stw_yaml_marks *stw_yaml_marks_create(void)
{
    struct stw_yaml_marks *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->keys = STW_BUF_INIT((size_t)64 << 20);
    m->base = stw_random() % (PRIME - 256) + 256;
    return m;
}

void stw_yaml_marks_destroy(struct stw_yaml_marks *m)
{
    if (!m)
        return;
    stw_buf_done(&m->keys);
    free(m->slots);
    free(m->list);
    free(m);
}

static uint32_t push_mark(struct stw_yaml_marks *m, struct yaml_place at)
{
    if (m->count == m->cap) {
        uint32_t cap = m->cap ? m->cap * 2 : 64;
        struct mark *list = reallocarray(m->list, cap, sizeof(*list));
        if (!list)
            return UINT32_MAX;
        m->list = list;
        m->cap = cap;
    }
    m->list[m->count] = (struct mark){.line = (uint32_t)at.line, .column = (uint32_t)at.column};
    return m->count++;
}

void yaml_marks_reset(struct stw_yaml_marks *m, struct yaml_place root)
{
    m->count = 0;
    m->indexed = false;
    stw_buf_clear(&m->keys);
    (void)push_mark(m, root);
}

uint32_t yaml_marks_add(struct stw_yaml_marks *m, uint32_t parent, const char *key,
                        struct yaml_place value)
{
    uint32_t at = m->count > 0 ? push_mark(m, value) : UINT32_MAX;
    if (at == UINT32_MAX)
        return at;
    struct mark *own = &m->list[at];
    own->parent = parent;
    if (!key) {
        own->index = m->list[parent].elements++;
        return at;
    }
    own->key = (uint32_t)m->keys.len + 1;
    own->key_len = (uint32_t)strlen(key);
    stw_buf_add(&m->keys, key, own->key_len + (size_t)1);
    return m->keys.failed ? UINT32_MAX : at;
}

/* Offsets only grow from value to value, so lines are counted once over the whole text. */
struct cursor {
    const char *text;
    uint32_t offset;
    struct yaml_place place;
};

static struct yaml_place place_of(struct cursor *c, struct stw_json v)
{
    size_t len;
    uint32_t start = (uint32_t)(stw_json_raw(v, &len) - c->text);
    for (; c->offset < start; c->offset++) {
        c->place.column += ((unsigned char)c->text[c->offset] & 0xC0) != 0x80;
        if (c->text[c->offset] == '\n')
            c->place = (struct yaml_place){c->place.line + 1, 1};
    }
    return c->place;
}

/* Recursion ends at STW_JSON_MAX_DEPTH, which the scan enforces. */
static int add_children(struct stw_yaml_marks *m, struct cursor *c, struct stw_json parent,
                        uint32_t mark)
{
    struct stw_json key, v;
    stw_json_foreach (parent, key, v) {
        /* No path has a key with NUL in it. */
        stw_autofree char *name = stw_json_has_nul(key) ? strdup("") : stw_json_strdup(key);
        if (!name && stw_json_type(key) != STW_JSON_ABSENT)
            return -1;
        uint32_t own = yaml_marks_add(m, mark, name, place_of(c, v));
        if (own == UINT32_MAX || add_children(m, c, v, own) != 0)
            return -1;
    }
    return 0;
}

int yaml_marks_of_json(struct stw_yaml_marks *m, const struct stw_json_doc *doc,
                       struct yaml_place start)
{
    struct cursor c = {.text = doc->text, .place = start};
    struct stw_json root = stw_json_root(doc);
    yaml_marks_reset(m, place_of(&c, root));
    return add_children(m, &c, root, 0);
}

/* --- the search */

/* A polynomial over the bytes, modulo a prime. */
static uint64_t add_byte(const struct stw_yaml_marks *m, uint64_t hash, unsigned char c)
{
    return (uint64_t)(((unsigned __int128)hash * m->base + c + 1) % PRIME);
}

static uint32_t mix_parent(uint64_t hash, uint32_t parent)
{
    uint64_t x = (hash ^ (uint64_t)parent << 29) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(x >> 32);
}

static uint32_t hash_element(const struct stw_yaml_marks *m, uint32_t parent, uint32_t index)
{
    return mix_parent(add_byte(m, (uint64_t)index << 8, 0), parent);
}

static uint32_t hash_mark(const struct stw_yaml_marks *m, const struct mark *one)
{
    uint64_t hash = 0;
    if (!one->key)
        return hash_element(m, one->parent, one->index);
    for (uint32_t i = 0; i < one->key_len; i++)
        hash = add_byte(m, hash, (unsigned char)m->keys.data[one->key - 1 + i]);
    return mix_parent(hash, one->parent);
}

/* 0, or -1 when out of memory. */
static int index_marks(struct stw_yaml_marks *m)
{
    uint32_t cap = 64;
    while (cap < m->count * 2)
        cap *= 2;
    if (cap > m->slots_cap) {
        uint32_t *slots = reallocarray(m->slots, cap, sizeof(*slots));
        if (!slots)
            return -1;
        m->slots = slots;
        m->slots_cap = cap;
    }
    memset(m->slots, 0, cap * sizeof(*m->slots));
    m->mask = cap - 1;
    for (uint32_t i = 1; i < m->count; i++) {
        m->list[i].hash = hash_mark(m, &m->list[i]);
        uint32_t slot = m->list[i].hash & m->mask;
        while (m->slots[slot])
            slot = (slot + 1) & m->mask;
        m->slots[slot] = i + 1;
    }
    m->indexed = true;
    return 0;
}

/* The child of `parent` with a key, or with `index` where `key` is NULL; 0: there is none. */
static uint32_t find_child(const struct stw_yaml_marks *m, uint32_t hash, uint32_t parent,
                           const char *key, size_t len, uint32_t index)
{
    for (uint32_t slot = hash & m->mask; m->slots[slot]; slot = (slot + 1) & m->mask) {
        uint32_t at = m->slots[slot] - 1;
        const struct mark *one = &m->list[at];
        if (one->hash != hash || one->parent != parent || !one->key != !key)
            continue;
        if (key ? one->key_len == len && memcmp(m->keys.data + one->key - 1, key, len) == 0
                : one->index == index)
            return at;
    }
    return 0;
}

/* The child whose key is followed by one of `ends` in `path`; the longest.  Keys may contain dots
 * and brackets.  Sets `ret_len` to the bytes of the key. */
static uint32_t find_longest_key(const struct stw_yaml_marks *m, uint32_t parent, const char *path,
                                 const char *ends, size_t *ret_len)
{
    uint32_t best = 0;
    uint64_t hash = 0;
    for (size_t len = 0;; len++) {
        if (strchr(ends, path[len])) { /* also the end of the path */
            uint32_t at = path[len] || strchr(ends, '.')
                              ? find_child(m, mix_parent(hash, parent), parent, path, len, 0)
                              : 0;
            if (at) {
                best = at;
                *ret_len = len;
            }
        }
        if (!path[len])
            return best;
        hash = add_byte(m, hash, (unsigned char)path[len]);
    }
}

/* "[3]" */
static uint32_t find_element(const struct stw_yaml_marks *m, uint32_t parent, const char *path,
                             size_t *ret_taken)
{
    char *end;
    if (path[0] != '[' || path[1] < '0' || path[1] > '9' || m->list[parent].elements == 0)
        return 0;
    unsigned long index = strtoul(path + 1, &end, 10);
    if (*end != ']' || index >= m->list[parent].elements)
        return 0;
    *ret_taken = (size_t)(end - path) + 1;
    return find_child(m, hash_element(m, parent, (uint32_t)index), parent, NULL, 0,
                      (uint32_t)index);
}

/* The child that the start of `path` names, as "name", "[name]" or "[3]"; 0: none.  `ret_taken`: the
 * bytes of that part. */
static uint32_t find_part(const struct stw_yaml_marks *m, uint32_t parent, const char *path,
                          size_t *ret_taken)
{
    size_t bare = 0, bracketed = 0;
    uint32_t element = find_element(m, parent, path, ret_taken);
    if (element)
        return element;
    uint32_t child = find_longest_key(m, parent, path, ".[", &bare), inner = 0;
    if (path[0] == '[')
        inner = find_longest_key(m, parent, path + 1, "]", &bracketed);
    bool prefer = inner && (!child || bracketed + 2 > bare);
    *ret_taken = prefer ? bracketed + 2 : bare;
    return prefer ? inner : child;
}

int stw_yaml_marks_find(struct stw_yaml_marks *m, const char *path, size_t *ret_line,
                        size_t *ret_column)
{
    uint32_t at = 0;
    if (m->count == 0)
        return -1;
    while (*path && (m->indexed || index_marks(m) == 0)) {
        size_t taken = 0;
        uint32_t child = find_part(m, at, path, &taken);
        if (!child)
            break;
        at = child;
        path += taken;
        path += *path == '.';
    }
    *ret_line = m->list[at].line;
    *ret_column = m->list[at].column;
    return 0;
}
