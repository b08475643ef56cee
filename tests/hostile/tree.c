/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/tree.h"

#include "base/util.h"

#include <assert.h>

#define BLOCK_BYTES ((size_t)256 * 1024)

struct tree_block {
    struct tree_block *next;
    size_t used, size;
    max_align_t data[];
};

void *tree_alloc(struct tree_arena *a, size_t size)
{
    size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct tree_block *b = a->blocks;
    if (!b || b->size - b->used < size) {
        size_t room = STW_MAX(size, BLOCK_BYTES);
        b = malloc(sizeof(*b) + room);
        assert(b);
        *b = (struct tree_block){.next = a->blocks, .size = room};
        a->blocks = b;
    }
    void *ret = (char *)b->data + b->used;
    b->used += size;
    return memset(ret, 0, size);
}

static void free_blocks(struct tree_block *b)
{
    while (b) {
        struct tree_block *next = b->next;
        free(b);
        b = next;
    }
}

void tree_arena_done(struct tree_arena *a)
{
    free_blocks(a->blocks);
    a->blocks = NULL;
}

void tree_arena_reset(struct tree_arena *a)
{
    struct tree_block *b = a->blocks;
    if (!b)
        return;
    free_blocks(b->next);
    b->next = NULL;
    b->used = 0;
}

static const char *copy_text(struct tree_arena *a, const char *text, size_t len)
{
    char *copy = tree_alloc(a, len + 1);
    memcpy(copy, text, len);
    return copy;
}

void tree_add(struct tree_arena *a, struct tree *parent, struct tree *kid)
{
    if (parent->count == parent->room) {
        uint32_t room = parent->room ? parent->room * 2 : 8;
        struct tree **kids = tree_alloc(a, room * sizeof(struct tree *));
        if (parent->count > 0)
            memcpy(kids, parent->kids, parent->count * sizeof(struct tree *));
        parent->kids = kids;
        parent->room = room;
    }
    parent->kids[parent->count++] = kid;
}

struct tree *tree_raw(struct tree_arena *a, const char *raw, size_t len)
{
    struct tree *t = tree_alloc(a, sizeof(*t));
    *t = (struct tree){.raw = copy_text(a, raw, len), .len = len};
    return t;
}

struct tree *tree_of(struct tree_arena *a, struct stw_json v)
{
    struct stw_json key, value;
    enum stw_json_type type = stw_json_type(v);
    size_t len;
    const char *raw = stw_json_raw(v, &len);
    if (type != STW_JSON_OBJECT && type != STW_JSON_ARRAY)
        return tree_raw(a, raw, len);
    struct tree *t = tree_alloc(a, sizeof(*t));
    t->type = type == STW_JSON_OBJECT ? TREE_OBJECT : TREE_LIST;
    stw_json_foreach (v, key, value) {
        struct tree *kid = tree_of(a, value);
        if (stw_json_type(key) == STW_JSON_STRING) {
            raw = stw_json_raw(key, &len);
            kid->key = copy_text(a, raw, len);
            kid->key_len = len;
        }
        tree_add(a, t, kid);
    }
    return t;
}

struct tree *tree_of_text(struct tree_arena *a, const char *text, size_t len)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (stw_json_scan(&doc, text, len, NULL) != 0)
        return NULL;
    return tree_of(a, stw_json_root(&doc));
}

struct tree *tree_copy(struct tree_arena *a, const struct tree *t)
{
    struct tree *copy = tree_alloc(a, sizeof(*copy));
    *copy = *t;
    copy->kids = NULL;
    copy->count = copy->room = 0;
    for (uint32_t i = 0; i < t->count; i++)
        tree_add(a, copy, tree_copy(a, t->kids[i]));
    return copy;
}

static void keep_texts(struct tree_arena *a, struct tree *t)
{
    if (t->raw)
        t->raw = copy_text(a, t->raw, t->len);
    if (t->key)
        t->key = copy_text(a, t->key, t->key_len);
    for (uint32_t i = 0; i < t->count; i++)
        keep_texts(a, t->kids[i]);
}

struct tree *tree_keep(struct tree_arena *a, const struct tree *t)
{
    struct tree *copy = tree_copy(a, t);
    keep_texts(a, copy);
    return copy;
}

void tree_write(const struct tree *t, struct stw_buf *out)
{
    if (t->type == TREE_RAW) {
        stw_buf_add(out, t->raw, t->len);
        return;
    }
    stw_buf_addc(out, t->type == TREE_OBJECT ? '{' : '[');
    for (uint32_t i = 0; i < t->count; i++) {
        const struct tree *kid = t->kids[i];
        if (i > 0)
            stw_buf_addc(out, ',');
        if (t->type == TREE_OBJECT) {
            stw_buf_add(out, kid->key ? kid->key : "\"\"", kid->key ? kid->key_len : 2);
            stw_buf_addc(out, ':');
        }
        tree_write(kid, out);
    }
    stw_buf_addc(out, t->type == TREE_OBJECT ? '}' : ']');
}

static bool has_name(const struct tree *kid, const char *name)
{
    size_t len = strlen(name);
    return kid->key && kid->key_len == len + 2 && memcmp(kid->key + 1, name, len) == 0;
}

struct tree *tree_child(const struct tree *t, const char *step)
{
    if (t->type == TREE_LIST) {
        unsigned long i = strtoul(step, NULL, 10);
        return i < t->count ? t->kids[i] : NULL;
    }
    for (uint32_t i = 0; t->type == TREE_OBJECT && i < t->count; i++)
        if (has_name(t->kids[i], step))
            return t->kids[i];
    return NULL;
}

void tree_become(struct tree *t, const struct tree *other)
{
    const char *key = t->key;
    size_t key_len = t->key_len;
    *t = *other;
    t->key = key;
    t->key_len = key_len;
}

void tree_put(struct tree_arena *a, struct tree *root, const char *const *steps, size_t count,
              struct tree *value)
{
    struct tree *at = root;
    for (size_t i = 0; i < count; i++) {
        enum tree_type type = stw_streq(steps[i], "0") ? TREE_LIST : TREE_OBJECT;
        if (at->type != type)
            tree_become(at, &(struct tree){.type = type});
        struct tree *next = tree_child(at, steps[i]);
        if (!next) {
            next = tree_raw(a, "null", 4);
            if (type == TREE_OBJECT) {
                stw_autobuf struct stw_buf key = STW_BUF_INIT(1 << 16);
                stw_buf_json_strz(&key, steps[i]);
                next->key = copy_text(a, stw_buf_str(&key), key.len);
                next->key_len = key.len;
            }
            tree_add(a, at, next);
        }
        at = next;
    }
    tree_become(at, value);
}

static size_t add_places(struct tree *t, struct tree_place *ret, size_t n, size_t max)
{
    for (uint32_t i = 0; i < t->count && n < max; i++) {
        ret[n++] = (struct tree_place){t, i};
        n = add_places(t->kids[i], ret, n, max);
    }
    return n;
}

size_t tree_places(struct tree *root, struct tree_place *ret, size_t max)
{
    return add_places(root, ret, 0, max);
}
