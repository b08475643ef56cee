/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions of values: a tree parallel to the JSON, searched by the field paths of findings. */
#include "base/json.h"
#include "base/util.h"
#include "base/yaml_priv.h"

#include <stdio.h>

struct mark {
    uint32_t first, last, next; /* children and sibling, 0: none */
    uint32_t line, column;
    uint32_t index; /* among its siblings */
    uint32_t key;   /* offset in `keys` + 1; 0 for an element */
};

struct stw_yaml_marks {
    struct mark *list; /* [0] is the document */
    uint32_t count, cap;
    struct stw_buf keys;
};

struct stw_yaml_marks *stw_yaml_marks_create(void)
{
    struct stw_yaml_marks *m = calloc(1, sizeof(*m));
    if (m)
        m->keys = STW_BUF_INIT((size_t)64 << 20);
    return m;
}

void stw_yaml_marks_destroy(struct stw_yaml_marks *m)
{
    if (!m)
        return;
    stw_buf_done(&m->keys);
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
    stw_buf_clear(&m->keys);
    (void)push_mark(m, root);
}

uint32_t yaml_marks_add(struct stw_yaml_marks *m, uint32_t parent, const char *key,
                        struct yaml_place value)
{
    uint32_t at = m->count > 0 ? push_mark(m, value) : UINT32_MAX;
    if (at == UINT32_MAX)
        return at;
    struct mark *own = &m->list[at], *up = &m->list[parent];
    if (key) {
        own->key = (uint32_t)m->keys.len + 1;
        stw_buf_add(&m->keys, key, strlen(key) + 1);
        if (m->keys.failed)
            return UINT32_MAX;
    }
    own->index = up->last ? m->list[up->last].index + 1 : 0;
    if (up->last)
        m->list[up->last].next = at;
    else
        up->first = at;
    up->last = at;
    return at;
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
        stw_autofree char *name = stw_json_strdup(key);
        if (!name && stw_json_type(key) != STW_JSON_ABSENT)
            return -1;
        uint32_t own = yaml_marks_add(m, mark, name, place_of(c, v));
        if (own == UINT32_MAX || add_children(m, c, v, own) != 0)
            return -1;
    }
    return 0;
}

int yaml_marks_of_json(struct stw_yaml_marks *m, const struct stw_json_doc *doc)
{
    struct cursor c = {.text = doc->text, .place = {1, 1}};
    struct stw_json root = stw_json_root(doc);
    yaml_marks_reset(m, place_of(&c, root));
    return add_children(m, &c, root, 0);
}

/* The length of the part of `path` that names this child: "name" or "[name]" or "[3]"; 0 when it
 * does not name it.  Keys may contain dots, so they are compared whole. */
static size_t match_path_part(const struct stw_yaml_marks *m, const struct mark *child,
                              const char *path)
{
    char number[16];
    const char *key = number;

    if (child->key)
        key = m->keys.data + child->key - 1;
    else
        stw_format(number, sizeof(number), "%u", child->index);
    size_t len = strlen(key);
    if (*path == '[' && strncmp(path + 1, key, len) == 0 && path[len + 1] == ']')
        return len + 2;
    if (child->key && strncmp(path, key, len) == 0 && strchr(".[", path[len]))
        return len;
    return 0;
}

int stw_yaml_marks_find(const struct stw_yaml_marks *m, const char *path, size_t *ret_line,
                        size_t *ret_column)
{
    if (m->count == 0)
        return -1;
    const struct mark *at = &m->list[0];
    for (;;) {
        const struct mark *best = NULL;
        size_t taken = 0;
        for (uint32_t i = at->first; i; i = m->list[i].next) {
            size_t n = match_path_part(m, &m->list[i], path);
            if (n > taken) {
                taken = n;
                best = &m->list[i];
            }
        }
        if (!best)
            break;
        at = best;
        path += taken;
        path += *path == '.';
    }
    *ret_line = at->line;
    *ret_column = at->column;
    return 0;
}
