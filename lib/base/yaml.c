/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include "base/json.h"
#include "base/util.h"
#include "base/yaml_priv.h"

struct yaml_reader {
    const char *name;
    const char *text;
    size_t len;
    yaml_parser_t parser;
    stw_yaml_fn *fn;
    void *ctx;
    struct stw_yaml_marks *marks;
    unsigned index; /* of the next document */
};

/* Puts "file:line:column: " in front of the message. */
static int add_error_position(const struct yaml_reader *r, const struct yaml_place *at,
                              struct stw_error *err)
{
    struct yaml_place place = *at;
    if (place.line == 0 && r->parser.error == YAML_READER_ERROR) {
        size_t offset = STW_MIN(r->parser.problem_offset, r->len);
        place = (struct yaml_place){1, 1};
        for (size_t i = 0; i < offset; i++) {
            place.column += ((unsigned char)r->text[i] & 0xC0) != 0x80;
            if (r->text[i] == '\n')
                place = (struct yaml_place){place.line + 1, 1};
        }
    }
    if (place.line == 0)
        return stw_error_wrap(err, "%s", r->name);
    return stw_error_wrap(err, "%s:%zu:%zu", r->name, place.line, place.column);
}

/* A document without content: only comments, or "---" alone. */
static bool is_empty(struct yaml_tree *t)
{
    struct yaml_value v;
    if (t->count == 0)
        return true;
    return t->nodes[0].kind == YAML_KIND_SCALAR && yaml_resolve(t, &t->nodes[0], &v, NULL) == 0 &&
           v.type == YAML_VALUE_NULL;
}

static int read_document(struct yaml_reader *r, struct yaml_tree *tree, struct stw_buf *json,
                         struct yaml_place *place, struct stw_error *err)
{
    if (yaml_compose(tree, &r->parser, place, err) != 0)
        return add_error_position(r, place, err);
    if (is_empty(tree))
        return 0;
    if (yaml_write(tree, json, r->marks, place, err) != 0)
        return add_error_position(r, place, err);
    return r->fn(r->ctx, r->index++, tree->nodes[0].line, json);
}

static int read_stream(struct yaml_reader *r, struct stw_error *err)
{
    for (;;) {
        struct yaml_place place = {0};
        yaml_event_t e;
        if (yaml_next(&r->parser, &e, &place, err) != 0)
            return add_error_position(r, &place, err);
        yaml_event_type_t type = e.type;
        const yaml_version_directive_t *version =
            type == YAML_DOCUMENT_START_EVENT ? e.data.document_start.version_directive : NULL;
        bool versioned = version && (version->major != 1 || version->minor != 1);
        if (versioned)
            place = (struct yaml_place){e.start_mark.line + 1, e.start_mark.column + 1};
        yaml_event_delete(&e);
        if (type == YAML_STREAM_END_EVENT)
            return 0;
        if (type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (versioned) {
            (void)stw_fail(err, STW_ERR_INVALID,
                           "the directive %%YAML names a version that kubectl "
                           "does not read; leave it out, or write 1.1");
            return add_error_position(r, &place, err);
        }
        struct yaml_tree tree = {0};
        struct stw_buf json = STW_BUF_INIT(YAML_JSON_MAX);
        json.secret = true;
        int rc = read_document(r, &tree, &json, &place, err);
        stw_buf_done(&json);
        yaml_tree_clear(&tree);
        if (rc != 0)
            return rc;
    }
}

/* kubectl reads a file that begins with a brace as JSON.  So must we: JSON is not valid YAML if its
 * strings contain surrogate pairs, DEL or U+0085.  If it is not valid JSON, it is YAML in flow
 * style.  Returns 1 and the text in `doc`, 0 for YAML, or -1. */
static int is_json(const struct yaml_reader *r, struct stw_json_doc *doc, struct stw_error *err)
{
    struct stw_error why = {.code = STW_OK};
    size_t i = 0;
    while (i < r->len &&
           (r->text[i] == ' ' || r->text[i] == '\t' || r->text[i] == '\r' || r->text[i] == '\n'))
        i++;
    if (i == r->len || r->text[i] != '{' || r->len > YAML_JSON_MAX)
        return 0;
    if (stw_json_scan(doc, r->text, r->len, &why) == 0)
        return 1;
    return why.code == STW_ERR_INTERNAL ? stw_fail(err, why.code, "%s: %s", r->name, why.text) : 0;
}

static int pass_json(struct yaml_reader *r, const struct stw_json_doc *doc, struct stw_error *err)
{
    stw_autobuf struct stw_buf json = STW_BUF_INIT(YAML_JSON_MAX);
    size_t len, line = 1;
    const char *raw = stw_json_raw(stw_json_root(doc), &len);

    json.secret = true;
    stw_buf_add(&json, raw, len);
    if (json.failed || (r->marks && yaml_marks_of_json(r->marks, doc) != 0))
        return stw_fail(err, STW_ERR_INTERNAL, "%s: out of memory", r->name);
    for (const char *p = r->text; p < raw; p++)
        line += *p == '\n';
    return r->fn(r->ctx, 0, line, &json);
}

int stw_yaml_each_marked(const char *name, const char *text, size_t len, stw_yaml_fn *fn, void *ctx,
                         struct stw_yaml_marks *marks, struct stw_error *err)
{
    struct yaml_reader r = {.name = stw_streq(name, "-") ? "<stdin>" : name,
                            .text = text,
                            .len = len,
                            .fn = fn,
                            .ctx = ctx,
                            .marks = marks};
    stw_autojson struct stw_json_doc doc = {0};
    int json = is_json(&r, &doc, err);
    if (json != 0)
        return json < 0 ? -1 : pass_json(&r, &doc, err);
    if (!yaml_parser_initialize(&r.parser))
        return stw_fail(err, STW_ERR_INTERNAL, "%s: out of memory", r.name);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    int rc = read_stream(&r, err);
    yaml_parser_delete(&r.parser);
    return rc;
}

int stw_yaml_each(const char *name, const char *text, size_t len, stw_yaml_fn *fn, void *ctx,
                  struct stw_error *err)
{
    return stw_yaml_each_marked(name, text, len, fn, ctx, NULL, err);
}
