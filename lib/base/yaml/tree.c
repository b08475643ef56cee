/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a tree of nodes from libyaml's events.  Aliases stay aliases here.  An alias to a
 * collection that is still open is refused, so following aliases always ends. */
#include "base/json.h"
#include "base/util.h"
#include "base/yaml/yaml_priv.h"

#define CHUNK_BYTES ((size_t)32 * 1024)

struct yaml_chunk {
    struct yaml_chunk *next;
    size_t used, size;
    _Alignas(16) char data[];
};

struct anchor {
    uint32_t node;
    char name[];
};

struct compose {
    struct yaml_tree *tree;
    struct yaml_place *place;
    struct stw_error *err;
    uint32_t depth;
    struct {
        uint32_t node, last; /* the open collection and its last child so far */
        bool flow;           /* in brackets or braces */
    } open[STW_JSON_MAX_DEPTH];
    const unsigned char *text; /* UTF-8, from which the parser reads */
    size_t size, at, character;
};

void *yaml_alloc(struct yaml_tree *t, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    struct yaml_chunk *c = t->chunks;
    if (!c || c->size - c->used < size) {
        size_t room = STW_MAX(size, CHUNK_BYTES);
        c = malloc(sizeof(*c) + room);
        if (!c)
            return NULL;
        *c = (struct yaml_chunk){.next = t->chunks, .size = room};
        t->chunks = c;
    }
    c->used += size;
    return c->data + c->used - size;
}

void yaml_tree_clear(struct yaml_tree *t)
{
    for (struct yaml_chunk *c = t->chunks, *next; c; c = next) {
        next = c->next;
        stw_wipe(c->data, c->used);
        free(c);
    }
    free(t->nodes);
    stw_table_done(&t->anchors);
    *t = (struct yaml_tree){0};
}

static const char *anchor_name(const void *entry)
{
    const struct anchor *a = entry;
    return a->name;
}

static int fail_at(struct compose *c, const yaml_event_t *e, enum stw_err code, const char *what)
{
    c->place->line = e->start_mark.line + 1;
    c->place->column = e->start_mark.column + 1;
    return stw_fail(c->err, code, "%s", what);
}

/* libyaml gives no mark for an encoding error, only an offset; the caller converts it to a mark. */
int yaml_next(yaml_parser_t *parser, yaml_event_t *event, struct yaml_place *place,
              struct stw_error *err)
{
    if (yaml_parser_parse(parser, event))
        return 0;
    *place = (struct yaml_place){0};
    if (parser->error == YAML_MEMORY_ERROR)
        return stw_fail_memory(err);
    const char *problem = parser->problem ? parser->problem : "is not YAML";
    if (parser->error == YAML_READER_ERROR)
        return stw_fail(err, STW_ERR_INVALID, "%s", problem);
    place->line = parser->problem_mark.line + 1;
    place->column = parser->problem_mark.column + 1;
    if (!parser->context || parser->context_mark.line == parser->problem_mark.line)
        return stw_fail(err, STW_ERR_INVALID, "%s", problem);
    return stw_fail(err, STW_ERR_INVALID, "%s (%s that begins in line %zu)", problem,
                    parser->context, parser->context_mark.line + 1);
}

static enum yaml_tag tag_of(const yaml_char_t *tag)
{
    static const struct {
        const char *name;
        enum yaml_tag tag;
    } tags[] = {
        {YAML_STR_TAG, YAML_TAG_STR},
        {YAML_NULL_TAG, YAML_TAG_NULL},
        {YAML_BOOL_TAG, YAML_TAG_BOOL},
        {YAML_INT_TAG, YAML_TAG_INT},
        {YAML_FLOAT_TAG, YAML_TAG_FLOAT},
        {YAML_TIMESTAMP_TAG, YAML_TAG_TIMESTAMP},
        {"tag:yaml.org,2002:binary", YAML_TAG_BINARY},
        {"tag:yaml.org,2002:merge", YAML_TAG_MERGE},
    };
    if (!tag)
        return YAML_TAG_NONE;
    for (size_t i = 0; i < STW_COUNT(tags); i++)
        if (stw_streq((const char *)tag, tags[i].name))
            return tags[i].tag;
    return YAML_TAG_OTHER;
}

static struct yaml_node *new_node(struct compose *c, const yaml_event_t *e, enum yaml_kind kind)
{
    struct yaml_tree *t = c->tree;
    if (t->count == YAML_NODES_MAX) {
        (void)fail_at(c, e, STW_ERR_TOO_LARGE, "the document has too many values");
        return NULL;
    }
    if (t->count == t->cap) {
        uint32_t cap = t->cap ? t->cap * 2 : 64;
        struct yaml_node *nodes = reallocarray(t->nodes, cap, sizeof(*nodes));
        if (!nodes) {
            (void)fail_at(c, e, STW_ERR_INTERNAL, "out of memory");
            return NULL;
        }
        t->nodes = nodes;
        t->cap = cap;
    }
    struct yaml_node *n = &t->nodes[t->count];
    *n = (struct yaml_node){.kind = (uint8_t)kind,
                            .line = (uint32_t)e->start_mark.line + 1,
                            .column = (uint32_t)e->start_mark.column + 1};
    /* Add it to the innermost open collection. */
    if (c->depth > 0) {
        uint32_t parent = c->open[c->depth - 1].node, last = c->open[c->depth - 1].last;
        if (last)
            t->nodes[last].next = t->count;
        else
            t->nodes[parent].first = t->count;
        c->open[c->depth - 1].last = t->count;
    }
    t->count++;
    return n;
}

static int set_anchor(struct compose *c, const yaml_event_t *e, const yaml_char_t *name)
{
    if (!name)
        return 0;
    size_t len = strlen((const char *)name);
    struct anchor *a = yaml_alloc(c->tree, sizeof(*a) + len + 1);
    if (!a)
        return fail_at(c, e, STW_ERR_INTERNAL, "out of memory");
    a->node = c->tree->count - 1;
    memcpy(a->name, name, len + 1);
    if (stw_table_put(&c->tree->anchors, a, NULL) != 0)
        return fail_at(c, e, STW_ERR_INTERNAL, "out of memory");
    return 0;
}

/* Converts a mark of the parser, which counts characters, to a byte offset.  Marks come in the
 * order of the text, so that all of it is counted once. */
static size_t offset_of(struct compose *c, size_t character)
{
    while (c->at < c->size && c->character < character) {
        c->at++;
        while (c->at < c->size && (c->text[c->at] & 0xC0) == 0x80)
            c->at++;
        c->character++;
    }
    return c->at;
}

/* "\/" is an escape of YAML 1.2 but not of 1.1, which kubectl reads. */
static bool has_escaped_slash(struct compose *c, const yaml_event_t *e)
{
    if (e->data.scalar.style != YAML_DOUBLE_QUOTED_SCALAR_STYLE ||
        !memchr(e->data.scalar.value, '/', e->data.scalar.length))
        return false;
    size_t from = offset_of(c, e->start_mark.index), to = offset_of(c, e->end_mark.index);
    for (size_t i = from; i + 1 < to; i++) {
        if (c->text[i] != '\\')
            continue;
        if (c->text[++i] == '/')
            return true;
    }
    return false;
}

/* What libyaml accepts in brackets and braces, and kubectl reads differently or not at all. */
static int check_in_flow(struct compose *c, const yaml_event_t *e, const struct yaml_node *n)
{
    if (n->plain && memchr(n->text, '?', n->len))
        return fail_at(c, e, STW_ERR_INVALID,
                       "in brackets and braces kubectl reads a question mark as the sign of a key; "
                       "put quotes around the text");
    if (n->plain && n->len == 0 && n->tag != YAML_TAG_NONE)
        return fail_at(c, e, STW_ERR_INVALID,
                       "in brackets and braces kubectl reads a comma as a part of the tag in front "
                       "of it; put a value behind the tag");
    return 0;
}

static int add_scalar(struct compose *c, const yaml_event_t *e)
{
    size_t len = e->data.scalar.length;
    struct yaml_node *n = new_node(c, e, YAML_KIND_SCALAR);
    char *text = n ? yaml_alloc(c->tree, len + 1) : NULL;

    if (!n)
        return -1;
    if (!text)
        return fail_at(c, e, STW_ERR_INTERNAL, "out of memory");
    if (memchr(e->data.scalar.value, '\0', len))
        return fail_at(c, e, STW_ERR_INVALID, "a text must not hold the character NUL");
    memcpy(text, e->data.scalar.value, len);
    text[len] = '\0';
    n->text = text;
    n->len = len;
    yaml_restore_escapes(c->tree->stand_in, e->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE,
                         text, &n->len);
    n->tag = (uint8_t)tag_of(e->data.scalar.tag);
    if (has_escaped_slash(c, e))
        return fail_at(c, e, STW_ERR_INVALID,
                       "the escape \\/ is not one of YAML 1.1, which kubectl reads; write / alone");
    n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (c->depth > 0 && c->open[c->depth - 1].flow && check_in_flow(c, e, n) != 0)
        return -1;
    return set_anchor(c, e, e->data.scalar.anchor);
}

static int add_collection(struct compose *c, const yaml_event_t *e, enum yaml_kind kind,
                          const yaml_char_t *anchor, bool flow)
{
    if (c->depth == STW_JSON_MAX_DEPTH)
        return fail_at(c, e, STW_ERR_TOO_LARGE, "nested too deeply");
    struct yaml_node *n = new_node(c, e, kind);
    if (!n)
        return -1;
    n->open = true;
    c->open[c->depth].node = c->tree->count - 1;
    c->open[c->depth].last = 0;
    c->open[c->depth].flow = flow;
    c->depth++;
    return set_anchor(c, e, anchor);
}

static int add_alias(struct compose *c, const yaml_event_t *e)
{
    const char *name = (const char *)e->data.alias.anchor;
    const struct anchor *a = stw_table_get(&c->tree->anchors, name);
    struct yaml_node *n = new_node(c, e, YAML_KIND_ALIAS);

    if (!n)
        return -1;
    if (!a)
        return fail_at(c, e, STW_ERR_INVALID, "the alias names an anchor that does not exist");
    if (c->tree->nodes[a->node].open)
        return fail_at(c, e, STW_ERR_INVALID, "the alias is inside its own anchor");
    n->first = a->node;
    return 0;
}

static int add_event(struct compose *c, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return add_scalar(c, e);
    case YAML_ALIAS_EVENT:
        return add_alias(c, e);
    case YAML_SEQUENCE_START_EVENT:
        return add_collection(c, e, YAML_KIND_SEQ, e->data.sequence_start.anchor,
                              e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
    case YAML_MAPPING_START_EVENT:
        return add_collection(c, e, YAML_KIND_MAP, e->data.mapping_start.anchor,
                              e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        c->tree->nodes[c->open[--c->depth].node].open = false;
        return 0;
    default:
        return 0;
    }
}

int yaml_compose(struct yaml_tree *t, yaml_parser_t *parser, struct yaml_place *place,
                 struct stw_error *err)
{
    struct compose c = {.tree = t,
                        .place = place,
                        .err = err,
                        .text = parser->input.string.start,
                        .size = (size_t)(parser->input.string.end - parser->input.string.start)};
    t->anchors = STW_TABLE_INIT(anchor_name);
    for (;;) {
        yaml_event_t e;
        if (yaml_next(parser, &e, place, err) != 0)
            return -1;
        bool end = e.type == YAML_DOCUMENT_END_EVENT || e.type == YAML_STREAM_END_EVENT;
        int rc = end ? 0 : add_event(&c, &e);
        if (e.type == YAML_SCALAR_EVENT)
            stw_wipe(e.data.scalar.value, e.data.scalar.length);
        yaml_event_delete(&e);
        if (rc != 0 || end)
            return rc;
    }
}
