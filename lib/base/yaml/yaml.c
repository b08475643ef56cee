/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml/yaml.h"

#include "base/json.h"
#include "base/util.h"
#include "base/yaml/yaml_priv.h"

struct yaml_reader {
    const char *name;
    const char *text; /* that is not read yet */
    const char *end;
    struct yaml_place place; /* of `text` */
    stw_yaml_fn *fn;
    void *ctx;
    struct stw_yaml_marks *marks;
    unsigned index; /* of the next document */
};

/* Puts "file:line:column: " in front of the message. */
static int add_error_position(const struct yaml_reader *r, const struct yaml_place *at,
                              struct stw_error *err)
{
    if (at->line == 0)
        return stw_error_wrap(err, "%s", r->name);
    return stw_error_wrap(err, "%s:%zu:%zu", r->name, at->line, at->column);
}

/* --- YAML */

/* A document without content: only comments, or "---" alone. */
static bool is_empty(struct yaml_tree *t)
{
    struct yaml_value v;
    if (t->count == 0)
        return true;
    return t->nodes[0].kind == YAML_KIND_SCALAR && yaml_resolve(t, &t->nodes[0], &v, NULL) == 0 &&
           v.type == YAML_VALUE_NULL;
}

#define DIRECTIVE                                                                                  \
    "kubectl reads no directive such as %%YAML or %%TAG, because it cuts the text at each line "   \
    "---; leave it out"

static int fail_directive(const struct yaml_part *part, struct yaml_place *place,
                          struct stw_error *err)
{
    *place = (struct yaml_place){part->lines + 1, 1};
    return stw_fail(err, STW_ERR_INVALID, DIRECTIVE);
}

/* libyaml compares each %TAG with all before it, and then finds no document. */
static int check_directives(const struct yaml_part *part, struct yaml_place *place,
                            struct stw_error *err)
{
    static const char tag[] = "\n%TAG";
    const char *end = part->text + part->len, *at = part->text;
    for (unsigned i = 0; i < YAML_TAGS_MAX && at; i++) {
        at = memmem(at, (size_t)(end - at), tag, sizeof(tag) - 1);
        at = at ? at + 1 : NULL;
    }
    if (!at)
        return 0;
    *place = (struct yaml_place){part->lines + 1, 1};
    yaml_move_place(place, part->text, at);
    return stw_fail(err, STW_ERR_INVALID, DIRECTIVE);
}

/* Reads the events up to the beginning of the document.  Returns 1, 0 if there is none, or -1. */
static int begin_document(yaml_parser_t *parser, const struct yaml_part *part,
                          struct yaml_place *place, struct stw_error *err)
{
    for (;;) {
        yaml_event_t e;
        if (yaml_next(parser, &e, place, err) != 0)
            return part->text[0] == '%' ? fail_directive(part, place, err) : -1;
        yaml_event_type_t type = e.type;
        yaml_event_delete(&e);
        if (type != YAML_STREAM_START_EVENT)
            return type == YAML_DOCUMENT_START_EVENT;
    }
}

/* kubectl ignores what follows the first document of a part. */
static int end_document(yaml_parser_t *parser, struct yaml_place *place, struct stw_error *err)
{
    yaml_event_t e;
    if (yaml_next(parser, &e, place, err) != 0)
        return stw_error_wrap(err, "kubectl ignores this text after the end of a document");
    *place = (struct yaml_place){e.start_mark.line + 1, e.start_mark.column + 1};
    bool more = e.type != YAML_STREAM_END_EVENT;
    yaml_event_delete(&e);
    return more ? stw_fail(err, STW_ERR_INVALID,
                           "kubectl ignores what follows the end of a document (...); put a line "
                           "--- in between")
                : 0;
}

static int read_document(struct yaml_reader *r, yaml_parser_t *parser, struct yaml_tree *tree,
                         const struct yaml_part *part, struct stw_error *err)
{
    struct yaml_place place = {0};
    int rc = begin_document(parser, part, &place, err);
    if (rc > 0 &&
        (yaml_compose(tree, parser, &place, err) != 0 || end_document(parser, &place, err) != 0))
        rc = -1;
    if (rc < 0) {
        if (place.line == 0 && parser->error == YAML_READER_ERROR) {
            place = (struct yaml_place){part->lines + 1, 1};
            yaml_move_place(&place, part->text,
                            part->text + STW_MIN(parser->problem_offset, part->len));
        }
        return add_error_position(r, &place, err);
    }
    if (rc == 0 || is_empty(tree))
        return 0;
    stw_autobuf struct stw_buf json = STW_BUF_INIT(YAML_JSON_MAX);
    json.secret = true;
    if (yaml_write(tree, &json, r->marks, &place, err) != 0)
        return add_error_position(r, &place, err);
    return r->fn(r->ctx, r->index++, tree->nodes[0].line, &json);
}

static int read_part(struct yaml_reader *r, const struct yaml_text *t, const struct yaml_part *part,
                     struct stw_error *err)
{
    yaml_parser_t parser;
    struct yaml_tree tree = {.stand_in = t->stand_in};
    struct yaml_place place = {0};
    if (check_directives(part, &place, err) != 0)
        return add_error_position(r, &place, err);
    if (!yaml_parser_initialize(&parser))
        return stw_fail(err, STW_ERR_INTERNAL, "%s: out of memory", r->name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)part->text, part->len);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    parser.mark.line = part->lines; /* all marks count from the beginning of the file */
    int rc = read_document(r, &parser, &tree, part, err);
    yaml_tree_clear(&tree);
    yaml_parser_delete(&parser);
    return rc;
}

static int read_yaml(struct yaml_reader *r, struct stw_error *err)
{
    struct yaml_text t;
    struct yaml_part part;
    struct yaml_place place = {0};
    int rc = 0, more;
    if (yaml_text_init(&t, r->text, (size_t)(r->end - r->text), r->place.line - 1) != 0) {
        yaml_text_done(&t);
        return stw_fail(err, STW_ERR_INTERNAL, "%s: out of memory", r->name);
    }
    while (rc == 0 && (more = yaml_next_part(&t, &part, &place, err)) != 0)
        rc = more < 0 ? add_error_position(r, &place, err) : read_part(r, &t, &part, err);
    yaml_text_done(&t);
    return rc;
}

/* --- JSON */

static void skip_blanks(struct yaml_reader *r)
{
    const char *from = r->text;
    while (r->text < r->end && strchr(" \t\r\n", *r->text) && *r->text)
        r->text++;
    yaml_move_place(&r->place, from, r->text);
}

static int pass_json(struct yaml_reader *r, const struct stw_json_doc *doc, struct stw_error *err)
{
    stw_autobuf struct stw_buf json = STW_BUF_INIT(YAML_JSON_MAX);
    size_t line = r->place.line;
    json.secret = true;
    if (doc->len > YAML_JSON_MAX) {
        (void)stw_fail(err, STW_ERR_TOO_LARGE, YAML_TOO_LARGE);
        return add_error_position(r, &r->place, err);
    }
    stw_buf_add(&json, doc->text, doc->len);
    if (json.failed || (r->marks && yaml_marks_of_json(r->marks, doc, r->place) != 0))
        return stw_fail(err, STW_ERR_INTERNAL, "%s: out of memory", r->name);
    yaml_move_place(&r->place, r->text, r->text + doc->len);
    r->text += doc->len;
    return r->fn(r->ctx, r->index++, line, &json);
}

/* The bytes of a white space as Go's unicode.IsSpace knows it; 0: it is none. */
static size_t space_length(const char *text, const char *end)
{
    static const char *const wide[] = {
        "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
        "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
        "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
        "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80",
    };
    if (*text && strchr(" \t\r\n\v\f", *text))
        return 1;
    for (size_t i = 0; i < STW_COUNT(wide); i++) {
        size_t len = strlen(wide[i]);
        if ((size_t)(end - text) >= len && memcmp(text, wide[i], len) == 0)
            return len;
    }
    return 0;
}

/* As kubectl does when it goes on in YAML: drops the rest of a line that is blank.  It looks at
 * four bytes each time, and fails when there are less. */
static int begin_yaml(struct yaml_reader *r)
{
    while (r->end - r->text >= 4) {
        const char *from = r->text;
        size_t len = space_length(from, r->end);
        if (len == 0)
            return 0;
        r->text += len;
        yaml_move_place(&r->place, from, r->text);
        if (*from == '\n')
            return 0;
    }
    return -1;
}

/* Whether Go's JSON decoder reads a value here that is neither an object nor a list. */
static bool is_json_scalar(const struct yaml_reader *r)
{
    size_t len = (size_t)(r->end - r->text);
    const char *digit = r->text + (*r->text == '-' && len > 1);
    return *r->text == '"' || (*digit >= '0' && *digit <= '9') ||
           (len >= 4 && memcmp(r->text, "true", 4) == 0) ||
           (len >= 5 && memcmp(r->text, "false", 5) == 0);
}

static bool skip_json_null(struct yaml_reader *r)
{
    if (r->end - r->text < 4 || memcmp(r->text, "null", 4) != 0)
        return false;
    r->text += 4;
    r->place.column += 4;
    return true;
}

static int fail_json(const struct yaml_reader *r, const struct stw_error *why,
                     struct stw_error *err)
{
    if (why->code == STW_ERR_INTERNAL)
        return stw_fail(err, why->code, "%s: %s", r->name, why->text);
    (void)stw_fail(err, why->code, "the text that begins here: %s", why->text);
    return add_error_position(r, &r->place, err);
}

/* kubectl reads a text that begins with a brace as JSON, one value after the other.  So must we:
 * JSON is not valid YAML if its strings contain surrogate pairs, DEL or U+0085.  From what is not
 * JSON it goes on in YAML, unless it has read two values by then.  Sets `ret_yaml` in that case. */
static int read_json(struct yaml_reader *r, bool *ret_yaml, struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    *ret_yaml = false;
    for (unsigned count = 0;; count++) {
        struct yaml_reader before = *r;
        struct stw_error why = {.code = STW_OK};
        size_t len;
        skip_blanks(r);
        if (r->text == r->end)
            return 0;
        if (skip_json_null(r))
            continue;
        if (stw_json_scan_first(&doc, r->text, (size_t)(r->end - r->text), &len, &why) == 0) {
            int rc = pass_json(r, &doc, err);
            if (rc != 0)
                return rc;
            continue;
        }
        if (why.code == STW_ERR_INTERNAL || count > 1 || is_json_scalar(r))
            return fail_json(r, &why, err);
        struct yaml_reader yaml = before;
        if (begin_yaml(&yaml) != 0)
            return fail_json(r, &why, err);
        *r = yaml;
        *ret_yaml = true;
        return 0;
    }
}

#define LOOK_AHEAD 4096 /* bytes in which kubectl looks for the brace */

static bool begins_as_json(const struct yaml_reader *r)
{
    const char *text = r->text, *end = text + STW_MIN(r->end - text, LOOK_AHEAD);
    size_t len;
    while (text < end && (len = space_length(text, end)) > 0)
        text += len;
    return text < end && *text == '{';
}

int stw_yaml_each_marked(const char *name, const char *text, size_t len, stw_yaml_fn *fn, void *ctx,
                         struct stw_yaml_marks *marks, struct stw_error *err)
{
    struct yaml_reader r = {.name = stw_streq(name, "-") ? "<stdin>" : name,
                            .text = text,
                            .end = text + len,
                            .place = {1, 1},
                            .fn = fn,
                            .ctx = ctx,
                            .marks = marks};
    bool yaml = true;
    int rc = begins_as_json(&r) ? read_json(&r, &yaml, err) : 0;
    return rc == 0 && yaml ? read_yaml(&r, err) : rc;
}

int stw_yaml_each(const char *name, const char *text, size_t len, stw_yaml_fn *fn, void *ctx,
                  struct stw_error *err)
{
    return stw_yaml_each_marked(name, text, len, fn, ctx, NULL, err);
}
