/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the YAML reader.  A text is cut into documents (split.c), a document
 * becomes a tree of nodes (tree.c), the tree becomes JSON (json.c) with scalars resolved
 * (scalar.c), and marks record the positions of values (marks.c).  Files may contain tokens and keys, so all of it is wiped
 * after use and no message quotes a value. */
#ifndef STW_BASE_YAML_PRIV_H
#define STW_BASE_YAML_PRIV_H

#include "base/buf.h"
#include "base/table.h"
#include "base/util.h"
#include "base/yaml/yaml.h"

#include <stdbool.h>
#include <stdint.h>
#include <yaml.h>

#define YAML_NODES_MAX 1000000U         /* values in one document, as written */
#define YAML_WORK_MAX 4000000U          /* steps to write it out, aliases and merges expanded */
#define YAML_JSON_MAX ((size_t)8 << 20) /* bytes of JSON of one document */
/* Bytes of keys and values that are read to write it out, each as often as an alias or a merge leads to
 * it: also those that a merge replaces. */
#define YAML_READ_MAX ((size_t)64 << 20)
#define YAML_TAGS_MAX 64U /* lines in one document that begin as a directive %TAG */
#define YAML_TOO_LARGE "the document is larger than the 8 MiB allowed for one"

enum yaml_kind { YAML_KIND_SCALAR, YAML_KIND_SEQ, YAML_KIND_MAP, YAML_KIND_ALIAS };

enum yaml_tag {
    YAML_TAG_NONE,
    YAML_TAG_STR,
    YAML_TAG_NULL,
    YAML_TAG_BOOL,
    YAML_TAG_INT,
    YAML_TAG_FLOAT,
    YAML_TAG_BINARY,
    YAML_TAG_TIMESTAMP,
    YAML_TAG_MERGE,
    YAML_TAG_OTHER, /* a scalar of an unknown tag is a string, a collection keeps its kind */
};

struct yaml_node {
    uint8_t kind;          /* enum yaml_kind */
    uint8_t tag;           /* enum yaml_tag */
    bool plain;            /* scalar without quotes */
    bool open;             /* collection that is not closed yet */
    uint32_t next;         /* sibling, 0: none (0 is the root, never a sibling) */
    uint32_t first;        /* child; map: keys and values alternate; alias: its target */
    uint32_t line, column; /* from 1 */
    const char *text;      /* of a scalar, NUL-terminated, in the arena */
    size_t len;
};

/* `\'` is an escape in go-yaml, with which kubectl reads, but not in libyaml.  For libyaml its
 * backslash is replaced by this character, which the text does not contain otherwise. */
#define YAML_STAND_IN_BYTES 4

struct yaml_chunk;
struct yaml_tree {
    const char *stand_in; /* "": none */
    struct yaml_node *nodes;
    uint32_t count, cap;
    struct yaml_chunk *chunks;
    struct stw_table anchors;
};

/* All tree calls set `err` without the file's name; `line` and `column` are the position (0:
 * none). */
struct yaml_place {
    size_t line, column;
};

/* Moves a position over a text that is behind it. */
void yaml_move_place(struct yaml_place *place, const char *from, const char *to);

/* A text that is cut into documents; its lines end as kubectl's reader of lines ends them. */
struct yaml_text {
    const char *next, *end;
    size_t lines;        /* above `next` */
    struct stw_buf copy; /* empty: the text is borrowed as it is */
    char stand_in[YAML_STAND_IN_BYTES];
};
struct yaml_part {
    const char *text;
    size_t len, lines; /* `lines`: above it */
};
/* -1: no memory.  The text is borrowed. */
int yaml_text_init(struct yaml_text *t, const char *text, size_t len, size_t lines) STW_MUST_CHECK;
void yaml_text_done(struct yaml_text *t);
/* Returns 1 and the next document, which may be empty; 0 at the end; -1. */
int yaml_next_part(struct yaml_text *t, struct yaml_part *ret, struct yaml_place *place,
                   struct stw_error *err) STW_MUST_CHECK;
/* Takes the stand-ins out of a scalar's value, which does not become longer. */
void yaml_restore_escapes(const char *stand_in, bool double_quoted, char *text, size_t *len);

void yaml_tree_clear(struct yaml_tree *t); /* wipes and frees */
void *yaml_alloc(struct yaml_tree *t, size_t size);
/* Reads events up to the end of the document that has just begun. */
int yaml_compose(struct yaml_tree *t, yaml_parser_t *parser, struct yaml_place *place,
                 struct stw_error *err) STW_MUST_CHECK;
/* Parses one event; -1 with the parser's own problem as error. */
int yaml_next(yaml_parser_t *parser, yaml_event_t *event, struct yaml_place *place,
              struct stw_error *err) STW_MUST_CHECK;

/* A scalar as go-yaml v2 reads it (YAML 1.1). */
enum yaml_value_type {
    YAML_VALUE_STR, /* the text of the node itself, or of `text` */
    YAML_VALUE_NULL,
    YAML_VALUE_BOOL,
    YAML_VALUE_INT,
    YAML_VALUE_UINT, /* above INT64_MAX */
    YAML_VALUE_FLOAT,
};
struct yaml_value {
    enum yaml_value_type type;
    int64_t i; /* BOOL, INT */
    uint64_t u;
    double f;
    const char *text;
    size_t len;
};
int yaml_resolve(struct yaml_tree *t, const struct yaml_node *n, struct yaml_value *ret,
                 struct stw_error *err) STW_MUST_CHECK;
int yaml_value_json(const struct yaml_value *v, struct stw_buf *out,
                    struct stw_error *err) STW_MUST_CHECK;
/* The text of a key, in the arena. */
int yaml_value_key(struct yaml_tree *t, const struct yaml_value *v, const char **ret,
                   struct stw_error *err) STW_MUST_CHECK;

int yaml_write(struct yaml_tree *t, struct stw_buf *out, struct stw_yaml_marks *marks,
               struct yaml_place *place, struct stw_error *err) STW_MUST_CHECK;

/* Marks form a tree parallel to the JSON; `key` is copied.  yaml_marks_add returns an index, or
 * UINT32_MAX when out of memory. */
void yaml_marks_reset(struct stw_yaml_marks *m, struct yaml_place root);
uint32_t yaml_marks_add(struct stw_yaml_marks *m, uint32_t parent, const char *key,
                        struct yaml_place value);
/* Marks for a text that is JSON and begins at `start`.  Returns 0, or -1 when out of memory. */
struct stw_json_doc;
int yaml_marks_of_json(struct stw_yaml_marks *m, const struct stw_json_doc *doc,
                       struct yaml_place start);

#endif
