/* SPDX-License-Identifier: Apache-2.0
 *
 * First all edits are collected (what leaves its place, what gets a new value), then the text of the
 * object is written once with them. */
#include "schema/conversion.h"

#include "base/util.h"
#include "schema/rule/kind_priv.h"

#include <assert.h>

#define EDITS_MAX 1024U
#define PATH_LEN 256
/* Values in the annotation: more than its largest text has. */
#define NOTE_VALUES_MAX 131072U

struct edit {
    const char *path; /* in the arena */
    bool set;         /* else dropped */
    const char *text; /* of the value */
    size_t len;
};

/* One version: the fields below the root. */
struct side {
    const char *version;
    struct stw_field rows[3]; /* spec, status */
};

struct stw_conversion {
    const struct stw_kind *kind;
    const struct stw_kind_version *other;
    bool to_own;
    struct stw_json object;
    struct side from, to;
    struct stw_arena arena;
    struct edit *edits;
    size_t count, cap;
    struct stw_buf kept;        /* `"path":value,...` that `to` cannot express */
    char key[STW_OWN_NAME_LEN]; /* of the annotation */
    struct stw_buf note_text;   /* the annotation that the object has */
    struct stw_json_doc note_doc;
    struct stw_json note;    /* its object; absent: none that can be read */
    struct stw_buf new_note; /* "" for none */
    bool failed;             /* no memory, or too many edits */
};

/* --- edits */

static struct edit *add_edit(struct stw_conversion *c, const char *path)
{
    size_t size = strlen(path) + 1;
    char *copy = size <= PATH_LEN ? stw_arena_alloc(&c->arena, size) : NULL;
    if (copy && c->count == c->cap && c->cap < EDITS_MAX) {
        size_t cap = c->cap ? 2 * c->cap : 32;
        struct edit *more = realloc(c->edits, cap * sizeof(*more));
        c->edits = more ? more : c->edits;
        c->cap = more ? cap : c->cap;
    }
    if (!copy || c->count == c->cap) {
        c->failed = true;
        return NULL;
    }
    memcpy(copy, path, size);
    c->edits[c->count] = (struct edit){.path = copy};
    return &c->edits[c->count++];
}

static const struct edit *find_edit(const struct stw_conversion *c, const char *path, bool set)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->edits[i].set == set && stw_streq(c->edits[i].path, path))
            return &c->edits[i];
    return NULL;
}

/* The first value stays.  `text` must stay valid until the end of the conversion. */
static void set_text(struct stw_conversion *c, const char *path, const char *text, size_t len)
{
    struct edit *e = find_edit(c, path, true) ? NULL : add_edit(c, path);
    if (e) {
        e->set = true;
        e->text = text;
        e->len = len;
    }
}

static void set_value(struct stw_conversion *c, const char *path, struct stw_json value)
{
    size_t len = 0;
    const char *text = stw_json_raw(value, &len);
    set_text(c, path, text, len);
}

void stw_conversion_set(struct stw_conversion *c, const char *path, const char *json, size_t len)
{
    char *copy = stw_arena_alloc(&c->arena, len + 1);
    if (!copy) {
        c->failed = true;
        return;
    }
    memcpy(copy, json, len);
    set_text(c, path, copy, len);
}

void stw_conversion_drop(struct stw_conversion *c, const char *path)
{
    (void)add_edit(c, path);
}

/* Whether `path` is "PREFIX.more". */
static bool is_below(const char *path, const char *prefix, size_t prefix_len)
{
    return strncmp(path, prefix, prefix_len) == 0 && path[prefix_len] == '.';
}

static bool has_edit_below(const struct stw_conversion *c, const char *path, bool only_set)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < c->count; i++)
        if ((c->edits[i].set || !only_set) && is_below(c->edits[i].path, path, len))
            return true;
    return false;
}

/* --- tables */

static const struct stw_field *find_row(const struct stw_field *rows, const char *name, size_t len)
{
    for (; rows && rows->name; rows++)
        if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0)
            return rows;
    return NULL;
}

static bool are_alike(const struct stw_field *a, const struct stw_field *b);

static bool have_all(const struct stw_field *a, const struct stw_field *b)
{
    for (; a && a->name; a++) {
        const struct stw_field *other = find_row(b, a->name, strlen(a->name));
        if (!other || !are_alike(a, other))
            return false;
    }
    return true;
}

static bool are_tables_alike(const struct stw_field *a, const struct stw_field *b)
{
    return a == b || (a && b && have_all(a, b) && have_all(b, a));
}

/* Whether a value of one row can be one of the other, with all that is in it. */
static bool are_alike(const struct stw_field *a, const struct stw_field *b)
{
    static const bool texts[STW_TYPES] = {[STW_T_STRING] = true, [STW_T_TEXT] = true};
    if (a->type != b->type && !(texts[a->type] && texts[b->type]))
        return false;
    if (!a->item != !b->item || (a->item && a->item != b->item && !are_alike(a->item, b->item)))
        return false;
    return are_tables_alike(a->fields, b->fields);
}

static const char *source_of(const struct stw_conversion *c, const struct stw_move *m)
{
    return c->to_own ? m->other : m->own;
}

static const char *target_of(const struct stw_conversion *c, const struct stw_move *m)
{
    return c->to_own ? m->own : m->other;
}

typedef const char *end_fn(const struct stw_conversion *c, const struct stw_move *m);

static const struct stw_move *find_move(const struct stw_conversion *c, end_fn *end,
                                        const char *path)
{
    for (const struct stw_move *m = c->other->moves; m && m->own; m++)
        if (stw_streq(end(c, m), path))
            return m;
    return NULL;
}

static bool has_move_below(const struct stw_conversion *c, end_fn *end, const char *path)
{
    size_t len = strlen(path);
    for (const struct stw_move *m = c->other->moves; m && m->own; m++)
        if (is_below(end(c, m), path, len))
            return true;
    return false;
}

/* --- from the fields of the source to edits */

static void keep_value(struct stw_conversion *c, const char *path, struct stw_json value)
{
    size_t len = 0;
    const char *text = stw_json_raw(value, &len);
    stw_conversion_drop(c, path);
    if (c->kept.len > 0)
        stw_buf_addc(&c->kept, ',');
    stw_buf_json_strz(&c->kept, path);
    stw_buf_addc(&c->kept, ':');
    stw_buf_add(&c->kept, text, len);
}

static void plan_members(struct stw_conversion *c, struct stw_json object, const char *prefix,
                         const struct stw_field *from, const struct stw_field *to);

static void plan_value(struct stw_conversion *c, struct stw_json value, const char *path,
                       const struct stw_field *from, const struct stw_field *to)
{
    const struct stw_move *move = find_move(c, source_of, path);
    bool objects = from->type == STW_T_OBJECT && to && to->type == STW_T_OBJECT;
    bool into = from->type == STW_T_OBJECT && stw_json_type(value) == STW_JSON_OBJECT &&
                (objects || has_move_below(c, source_of, path));
    if (find_edit(c, path, false))
        return; /* the kind's own function has done it */
    if (move) {
        stw_conversion_drop(c, path);
        set_value(c, target_of(c, move), value);
    } else if (into && (to || stw_json_size(value) > 0)) {
        plan_members(c, value, path, from->fields, objects ? to->fields : NULL);
    } else if (into || !to || (!objects && stw_json_there(value) && !are_alike(from, to))) {
        keep_value(c, path, value);
    }
}

/* Recursion ends with the tables. */
static void plan_members(struct stw_conversion *c, struct stw_json object, const char *prefix,
                         const struct stw_field *from, const struct stw_field *to)
{
    char path[PATH_LEN];
    for (; from && from->name && !c->failed; from++) {
        struct stw_json value = stw_json_get(object, from->name);
        if (stw_json_type(value) == STW_JSON_ABSENT)
            continue;
        if (stw_format_whole(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "",
                             from->name) != 0)
            c->failed = true;
        else
            plan_value(c, value, path, from, find_row(to, from->name, strlen(from->name)));
    }
}

/* --- the annotation */

static void read_note(struct stw_conversion *c, const struct stw_operator *op)
{
    stw_operator_text(op, STW_CONVERSION, c->key);
    stw_json_str(stw_json_get(stw_json_path(c->object, "metadata.annotations"), c->key),
                 &c->note_text);
    c->note_doc.max = NOTE_VALUES_MAX;
    if (c->note_text.len > 0 && !c->note_text.failed &&
        stw_json_scan(&c->note_doc, stw_buf_str(&c->note_text), c->note_text.len, NULL) == 0 &&
        stw_json_type(stw_json_root(&c->note_doc)) == STW_JSON_OBJECT)
        c->note = stw_json_root(&c->note_doc);
}

/* Whether `path` is a field of the target that the source cannot express, so that it was kept when
 * the object was converted from there.  Tenants can write the annotation: nothing else is restored
 * from it. */
static bool is_kept(const struct stw_conversion *c, const char *path, struct stw_json value)
{
    const struct stw_field *rows = c->to.rows, *others = c->from.rows;
    char prefix[PATH_LEN];
    for (const char *p = path;; p++) {
        size_t len = strcspn(p, ".");
        const struct stw_field *row = find_row(rows, p, len);
        const struct stw_field *other = row ? find_row(others, p, len) : NULL;
        stw_format(prefix, sizeof(prefix), "%.*s", (int)((size_t)(p - path) + len), path);
        if (!row || find_move(c, target_of, prefix))
            return false;
        p += len;
        if (*p && (row->type != STW_T_OBJECT || !row->fields))
            return false;
        if (*p) {
            rows = row->fields;
            others = other && other->type == STW_T_OBJECT ? other->fields : NULL;
            continue;
        }
        bool is_object = row->type == STW_T_OBJECT;
        if (stw_json_there(value) && !stw_field_fits(row, value))
            return false;
        if (is_object && has_move_below(c, target_of, prefix))
            return !other && stw_json_size(value) == 0;
        return !other || (!(is_object && other->type == row->type) && !are_alike(row, other));
    }
}

static void restore_kept(struct stw_conversion *c)
{
    struct stw_json key, value;
    char path[PATH_LEN];
    stw_json_foreach (stw_json_get(c->note, c->to.version), key, value) {
        if (c->failed)
            return;
        if (stw_json_strcpy(key, path, sizeof(path)) == 0 && is_kept(c, path, value))
            set_value(c, path, value);
    }
}

/* What was kept for the target is used up, and what was kept for the source is from now. */
static void make_note(struct stw_conversion *c)
{
    struct stw_json key, value;
    stw_json_foreach (c->note, key, value) {
        size_t key_len = 0, len = 0;
        const char *name = stw_json_raw(key, &key_len), *text = stw_json_raw(value, &len);
        if (stw_json_is(key, c->to.version) || stw_json_is(key, c->from.version))
            continue;
        stw_buf_addc(&c->new_note, c->new_note.len ? ',' : '{');
        stw_buf_add(&c->new_note, name, key_len);
        stw_buf_addc(&c->new_note, ':');
        stw_buf_add(&c->new_note, text, len);
    }
    if (c->kept.len > 0) {
        stw_buf_addc(&c->new_note, c->new_note.len ? ',' : '{');
        stw_buf_addf(&c->new_note, "\"%s\":{", c->from.version);
        stw_buf_add(&c->new_note, c->kept.data, c->kept.len);
        stw_buf_addc(&c->new_note, '}');
    }
    if (c->new_note.len > 0)
        stw_buf_addc(&c->new_note, '}');
}

/* --- writing */

static void add_key(struct stw_buf *out, size_t count, struct stw_json key)
{
    size_t len = 0;
    const char *text = stw_json_raw(key, &len);
    if (count > 0)
        stw_buf_addc(out, ',');
    stw_buf_add(out, text, len);
    stw_buf_addc(out, ':');
}

static void add_name(struct stw_buf *out, size_t count, const char *name, size_t len)
{
    if (count > 0)
        stw_buf_addc(out, ',');
    stw_buf_json_str(out, name, len);
    stw_buf_addc(out, ':');
}

static void add_value(struct stw_buf *out, struct stw_json value)
{
    size_t len = 0;
    const char *text = stw_json_raw(value, &len);
    stw_buf_add(out, text, len);
}

static void cut_back(struct stw_buf *out, size_t len)
{
    if (out->failed)
        return;
    out->len = len;
    out->data[len] = '\0';
}

static size_t write_members(const struct stw_conversion *c, struct stw_json object,
                            const char *prefix, struct stw_buf *out);

/* An object with edits below it; returns its members. */
static size_t write_object(const struct stw_conversion *c, struct stw_json object, const char *path,
                           struct stw_buf *out)
{
    stw_buf_addc(out, '{');
    size_t members = write_members(c, object, path, out);
    stw_buf_addc(out, '}');
    return members;
}

/* The members that the object has; those with a new value come later. */
static size_t write_old_members(const struct stw_conversion *c, struct stw_json object,
                                const char *prefix, struct stw_buf *out)
{
    struct stw_json key, value;
    char name[PATH_LEN], path[PATH_LEN];
    size_t count = 0;
    stw_json_foreach (object, key, value) {
        size_t mark = out->len;
        bool known = stw_json_strcpy(key, name, sizeof(name)) == 0 && !strchr(name, '.') &&
                     stw_format_whole(path, sizeof(path), "%s.%s", prefix, name) == 0;
        bool is_object = stw_json_type(value) == STW_JSON_OBJECT;
        if (known && (find_edit(c, path, false) || find_edit(c, path, true) ||
                      (!is_object && has_edit_below(c, path, true))))
            continue;
        add_key(out, count, key);
        if (!known || !is_object || !has_edit_below(c, path, false)) {
            add_value(out, value);
        } else if (write_object(c, value, path, out) == 0 && stw_json_size(value) > 0) {
            cut_back(out, mark);
            continue;
        }
        count++;
    }
    return count;
}

/* Whether an edit before `end` has made the member `path` already. */
static bool is_made_before(const struct stw_conversion *c, size_t end, const char *path)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < end; i++)
        if (c->edits[i].set && is_below(c->edits[i].path, path, len))
            return true;
    return find_edit(c, path, true) != NULL;
}

static bool is_written(const struct stw_conversion *c, struct stw_json object, const char *path,
                       const char *name)
{
    return stw_json_type(stw_json_get(object, name)) == STW_JSON_OBJECT &&
           !find_edit(c, path, false);
}

/* The members that get a value. */
static size_t write_new_members(const struct stw_conversion *c, struct stw_json object,
                                const char *prefix, size_t count, struct stw_buf *out)
{
    size_t prefix_len = strlen(prefix);
    char path[PATH_LEN];
    for (size_t i = 0; i < c->count; i++) {
        const struct edit *e = &c->edits[i];
        if (!e->set || !is_below(e->path, prefix, prefix_len))
            continue;
        const char *name = e->path + prefix_len + 1;
        size_t len = strcspn(name, ".");
        stw_format(path, sizeof(path), "%.*s", (int)((size_t)(name - e->path) + len), e->path);
        bool direct = name[len] == '\0', below = has_edit_below(c, path, true);
        if (!direct &&
            (is_made_before(c, i, path) || is_written(c, object, path, path + prefix_len + 1)))
            continue;
        add_name(out, count++, name, len);
        if (below)
            (void)write_object(c, STW_JSON_NONE, path, out);
        else
            stw_buf_add(out, e->text, e->len);
    }
    return count;
}

/* Recursion ends with the paths of the edits. */
static size_t write_members(const struct stw_conversion *c, struct stw_json object,
                            const char *prefix, struct stw_buf *out)
{
    size_t count = write_old_members(c, object, prefix, out);
    return write_new_members(c, object, prefix, count, out);
}

static int write_annotations(const struct stw_conversion *c, struct stw_json annotations,
                             size_t count, struct stw_buf *out, struct stw_error *err)
{
    struct stw_json key, value;
    size_t members = 0, bytes = c->new_note.len ? strlen(c->key) + c->new_note.len : 0;
    size_t mark = out->len;
    add_name(out, count, "annotations", strlen("annotations"));
    stw_buf_addc(out, '{');
    stw_json_foreach (annotations, key, value) {
        if (stw_json_type(key) == STW_JSON_ABSENT || stw_json_is(key, c->key))
            continue; /* a list has no annotations */
        add_key(out, members++, key);
        add_value(out, value);
        bytes += stw_json_size(key) + stw_json_size(value);
    }
    if (c->new_note.len > 0) {
        add_name(out, members++, c->key, strlen(c->key));
        stw_buf_json_str(out, c->new_note.data, c->new_note.len);
    }
    stw_buf_addc(out, '}');
    if (members == 0)
        cut_back(out, mark);
    if (c->new_note.len == 0 || bytes <= STW_ANNOTATIONS_MAX_BYTES)
        return 0;
    return stw_fail(err, STW_ERR_TOO_LARGE,
                    "metadata.annotations: %zu bytes in version %s, of at most %zu: %s keeps the "
                    "fields that this version does not have; make them smaller",
                    bytes, c->to.version, STW_ANNOTATIONS_MAX_BYTES, c->key);
}

static int write_metadata(const struct stw_conversion *c, struct stw_json metadata,
                          struct stw_buf *out, struct stw_error *err)
{
    struct stw_json key, value;
    bool changes = c->new_note.len > 0 || stw_json_there(c->note);
    size_t count = 0;
    stw_buf_addc(out, '{');
    stw_json_foreach (metadata, key, value) {
        if (changes && stw_json_is(key, "annotations"))
            continue;
        add_key(out, count++, key);
        add_value(out, value);
    }
    int rc =
        changes ? write_annotations(c, stw_json_get(metadata, "annotations"), count, out, err) : 0;
    stw_buf_addc(out, '}');
    return rc;
}

/* Fields below the root that a move creates, such as a status of an object without one. */
static void write_new_roots(const struct stw_conversion *c, size_t count, struct stw_buf *out)
{
    for (const struct stw_field *row = c->to.rows; row->name; row++) {
        if (stw_json_type(stw_json_get(c->object, row->name)) == STW_JSON_OBJECT ||
            !has_edit_below(c, row->name, true))
            continue;
        add_name(out, count++, row->name, strlen(row->name));
        (void)write_object(c, STW_JSON_NONE, row->name, out);
    }
}

static int write_converted(const struct stw_conversion *c, struct stw_buf *out,
                           struct stw_error *err)
{
    struct stw_json key, value;
    size_t count = 0;
    int rc = 0;
    stw_buf_addc(out, '{');
    stw_json_foreach (c->object, key, value) {
        bool is_object = stw_json_type(value) == STW_JSON_OBJECT;
        const char *name = stw_json_is(key, "spec")     ? "spec"
                           : stw_json_is(key, "status") ? "status"
                                                        : NULL;
        if (name && !is_object && has_edit_below(c, name, true))
            continue;
        add_key(out, count++, key);
        if (stw_json_is(key, "apiVersion"))
            stw_buf_addf(out, "\"%s/%s\"", c->kind->group, c->to.version);
        else if (stw_json_is(key, "metadata") && rc == 0)
            rc = write_metadata(c, value, out, err);
        else if (name && is_object && has_edit_below(c, name, false))
            (void)write_object(c, value, name, out);
        else
            add_value(out, value);
    }
    write_new_roots(c, count, out);
    stw_buf_addc(out, '}');
    return rc;
}

/* --- one step, between the kind's own version and another one */

static void init_side(struct side *s, const char *version, const struct stw_field *spec,
                      const struct stw_field *status)
{
    *s = (struct side){
        .version = version,
        .rows = {{.name = "spec", .type = STW_T_OBJECT, .fields = spec},
                 {.name = "status", .type = STW_T_OBJECT, .fields = status}},
    };
}

static void init_sides(struct stw_conversion *c)
{
    const struct stw_kind *k = c->kind;
    const struct stw_kind_version *v = c->other;
    init_side(c->to_own ? &c->to : &c->from, k->version, k->spec, k->status);
    init_side(c->to_own ? &c->from : &c->to, v->name, v->spec, v->status ? v->status : k->status);
}

static int run_step(struct stw_conversion *c, const struct stw_operator *op, struct stw_buf *out,
                    struct stw_error *err)
{
    init_sides(c);
    read_note(c, op);
    if (c->other->convert && c->other->convert(c->object, c->to_own, c, err) != 0)
        return -1;
    plan_members(c, c->object, "", c->from.rows, c->to.rows);
    restore_kept(c);
    make_note(c);
    if (c->failed || c->kept.failed || c->new_note.failed)
        return stw_fail(err, STW_ERR_INTERNAL, "spec: not enough memory to convert it; try again");
    if (write_converted(c, out, err) != 0)
        return -1;
    return out->failed ? stw_fail(err, STW_ERR_TOO_LARGE,
                                  "spec: the object in version %s does not fit into the response",
                                  c->to.version)
                       : 0;
}

static int convert_step(const struct stw_operator *op, const struct stw_kind *k,
                        const struct stw_kind_version *other, bool to_own, struct stw_json object,
                        struct stw_buf *out, struct stw_error *err)
{
    struct stw_conversion c = {.kind = k,
                               .other = other,
                               .to_own = to_own,
                               .object = object,
                               .kept = STW_BUF_INIT(out->max),
                               .note_text = STW_BUF_INIT(STW_ANNOTATIONS_MAX_BYTES),
                               .new_note = STW_BUF_INIT(out->max)};
    stw_arena_init(&c.arena);
    int rc = run_step(&c, op, out, err);
    stw_json_done(&c.note_doc);
    stw_buf_done(&c.note_text);
    stw_buf_done(&c.kept);
    stw_buf_done(&c.new_note);
    stw_arena_done(&c.arena);
    free(c.edits);
    return rc;
}

/* --- versions */

const struct stw_kind_version *stw_kind_other_version(const struct stw_kind *k, const char *name)
{
    for (const struct stw_kind_version *v = k->versions; v && v->name; v++)
        if (stw_streq(v->name, name))
            return v;
    return NULL;
}

bool stw_kind_serves(const struct stw_kind *k, struct stw_json api_version, const char **ret)
{
    char text[320];
    size_t group = strlen(k->group);
    if (stw_json_strcpy(api_version, text, sizeof(text)) != 0 ||
        strncmp(text, k->group, group) != 0 || text[group] != '/')
        return false;
    const struct stw_kind_version *v = stw_kind_other_version(k, text + group + 1);
    if (!v && !stw_streq(text + group + 1, k->version))
        return false;
    if (ret)
        *ret = v ? v->name : k->version;
    return true;
}

void stw_kind_versions_text(const struct stw_kind *k, struct stw_buf *out)
{
    stw_buf_addf(out, "%s/%s", k->group, k->version);
    for (const struct stw_kind_version *v = k->versions; v && v->name; v++)
        stw_buf_addf(out, ", %s/%s", k->group, v->name);
}

int stw_convert(const struct stw_operator *op, const struct stw_kind *k, struct stw_json object,
                const char *version, struct stw_buf *out, struct stw_error *err)
{
    const char *is = NULL;
    if (!stw_kind_serves(k, stw_json_get(object, "apiVersion"), &is))
        return stw_fail(err, STW_ERR_INVALID, "apiVersion: not a version of %s", k->kind);
    const struct stw_kind_version *from = stw_kind_other_version(k, is),
                                  *to = stw_kind_other_version(k, version);
    if (!to && !stw_streq(version, k->version))
        return stw_fail(err, STW_ERR_INVALID, "apiVersion: %s has no version %.64s", k->kind,
                        version);
    if (stw_json_type(stw_json_get(object, "metadata")) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID, "metadata: must be an object");
    if (from == to) {
        add_value(out, object);
        return 0;
    }
    if (!from || !to)
        return convert_step(op, k, from ? from : to, from != NULL, object, out, err);
    stw_autobuf struct stw_buf own = STW_BUF_INIT(out->max);
    stw_autojson struct stw_json_doc doc = {.trusted = true, .more_depth = STW_JSON_MORE_DEPTH};
    if (convert_step(op, k, from, true, object, &own, err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&own), own.len, err) != 0)
        return -1;
    return convert_step(op, k, to, false, stw_json_root(&doc), out, err);
}

/* --- admission */

int stw_convert_or_report(const struct stw_admission *a, const char *version, struct stw_buf *out,
                          struct stw_findings *f)
{
    struct stw_error err = {0};
    if (stw_convert(a->env->op, a->kind, a->object, version, out, &err) == 0)
        return 0;
    if (err.code == STW_ERR_INTERNAL) {
        f->failed = true;
        return -1;
    }
    size_t len = strcspn(err.text, ":");
    const char *message = err.text[len] ? err.text + len + 1 + (err.text[len + 1] == ' ') : "";
    err.text[len] = '\0';
    stw_findings_add(f, err.text, STW_INVALID, NULL, "%s", message);
    return -1;
}

/* An object that cannot be converted would make the lists of the other version unreadable.  One of a
 * cache has no apiVersion: it is not whole, and admission has checked it. */
void stw_check_conversion(const struct stw_admission *a, struct stw_findings *f)
{
    const struct stw_operator *op = a->env ? a->env->op : NULL;
    stw_autobuf struct stw_buf out = STW_BUF_INIT(STW_CONVERTED_MAX_BYTES);
    if (!stw_json_there(stw_json_get(a->object, "apiVersion")))
        return;
    for (const struct stw_kind_version *v = a->kind->versions; op && v && v->name; v++) {
        stw_buf_clear(&out);
        if (stw_convert_or_report(a, v->name, &out, f) != 0 && f->failed)
            return;
    }
}

/* --- checks of the tables */

static const struct stw_field *find_path(const struct side *s, const char *path)
{
    const struct stw_field *row = NULL, *rows = s->rows;
    for (const char *p = path; rows && *p; p += *p == '.') {
        size_t len = strcspn(p, ".");
        row = find_row(rows, p, len);
        rows = row && row->type == STW_T_OBJECT ? row->fields : NULL;
        p += len;
        if (*p && !rows)
            return NULL;
    }
    return row;
}

static const char *find_fault(const struct stw_conversion *c, const struct stw_move *m)
{
    const struct stw_field *own = find_path(&c->from, m->own), *other = find_path(&c->to, m->other);
    if (!own || !strchr(m->own, '.'))
        return "the kind's own version has no such field";
    if (!other || !strchr(m->other, '.'))
        return "the other version has no such field";
    if (!are_alike(own, other))
        return "the two fields have different types";
    if (has_move_below(c, source_of, m->own) || has_move_below(c, target_of, m->other))
        return "another move is of a field in it";
    return find_move(c, source_of, m->own) != m || find_move(c, target_of, m->other) != m
               ? "another move has the same field"
               : NULL;
}

static int check_version(const struct stw_kind *k, const struct stw_kind_version *v,
                         struct stw_error *err)
{
    struct stw_conversion c = {.kind = k, .other = v};
    init_sides(&c);
    for (const struct stw_move *m = v->moves; m && m->own; m++) {
        const char *fault = find_fault(&c, m);
        if (fault)
            return stw_fail(err, STW_ERR_INVALID, "%s, version %s, move %s to %s: %s", k->kind,
                            v->name, m->own, m->other, fault);
    }
    return 0;
}

int stw_kind_versions_check(const struct stw_kind *k, struct stw_error *err)
{
    unsigned stored = 0;
    for (const struct stw_kind_version *v = k->versions; v && v->name; v++) {
        stored += v->stored;
        if (stw_streq(v->name, k->version) || stw_kind_other_version(k, v->name) != v)
            return stw_fail(err, STW_ERR_INVALID, "%s: version %s is there twice", k->kind,
                            v->name);
        if (!v->spec)
            return stw_fail(err, STW_ERR_INVALID, "%s: version %s has no fields", k->kind, v->name);
        if (check_version(k, v, err) != 0)
            return -1;
    }
    return stored > 1
               ? stw_fail(err, STW_ERR_INVALID, "%s: more than one version is stored", k->kind)
               : 0;
}
