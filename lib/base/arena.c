/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/util.h"

#include <assert.h>

#define BLOCK 16384

struct stw_arena_block {
    struct stw_arena_block *next;
    alignas(16) char data[];
};

void stw_arena_init(struct stw_arena *a)
{
    a->blocks = NULL;
    a->at = a->first;
    a->left = sizeof(a->first);
}

void stw_arena_done(struct stw_arena *a)
{
    while (a->blocks) {
        struct stw_arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
}

static bool add_block(struct stw_arena *a, size_t size)
{
    size_t room = STW_MAX(size, (size_t)BLOCK);
    struct stw_arena_block *block = malloc(sizeof(*block) + room);
    if (!block)
        return false;
    block->next = a->blocks;
    a->blocks = block;
    a->at = block->data;
    a->left = room;
    return true;
}

void *stw_arena_alloc(struct stw_arena *a, size_t size)
{
    size_t need = (size + 15) & ~(size_t)15;
    if (need < size || (need > a->left && !add_block(a, need)))
        return NULL;
    assert(a->left >= need);
    void *p = a->at;
    a->at += need;
    a->left -= need;
    return p;
}

const char *stw_arena_str(struct stw_arena *a, struct stw_json string)
{
    if (stw_json_type(string) != STW_JSON_STRING)
        return NULL;
    size_t size = (size_t)stw_json_size(string) + 1;
    char *text = stw_arena_alloc(a, size);
    if (!text || stw_json_strcpy(string, text, size) != 0)
        return NULL;
    return text;
}
