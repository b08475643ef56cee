/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes JSON into the struct of a field table. */
#include "base/util.h"
#include "schema/rule/kind_priv.h"

struct decoder {
    struct stw_arena *arena;
    struct stw_findings *f; /* receives wrong types; NULL: they are only counted */
    unsigned wrong;
    bool no_memory;
};

static void decode_fields(struct decoder *d, const struct stw_path *at,
                          const struct stw_field *rows, struct stw_json object, void *ret);

/* Members are written by memcpy, so that no row's offset needs a cast to its type. */
static void write_member(void *ret, const struct stw_field *row, const void *value, size_t size)
{
    memcpy((char *)ret + row->offset, value, size);
}

static void put_string(struct decoder *d, void *ret, const struct stw_field *row, struct stw_json v)
{
    const char *text = stw_arena_str(d->arena, v);
    if (!text)
        d->no_memory = true;
    else if (row->skip && strncmp(text, row->skip, strlen(row->skip)) == 0)
        text += strlen(row->skip);
    write_member(ret, row, &text, sizeof(text));
}

/* Default strings in the tables have no escapes. */
static void put_default_string(struct decoder *d, void *ret, const struct stw_field *row)
{
    size_t len = strlen(row->def) - 2;
    char *text = stw_arena_alloc(d->arena, len + 1);
    if (!text) {
        d->no_memory = true;
        return;
    }
    memcpy(text, row->def + 1, len);
    text[len] = '\0';
    const char *value = text;
    write_member(ret, row, &value, sizeof(value));
}

static void put_default(struct decoder *d, const struct stw_path *p, void *ret,
                        const struct stw_field *row)
{
    int64_t n = 0;
    bool yes = row->def && stw_streq(row->def, "true");
    switch (row->type) {
    case STW_T_OBJECT:
        decode_fields(d, p, row->fields, STW_JSON_NONE, (char *)ret + row->offset);
        break;
    case STW_T_STRING:
        if (row->def)
            put_default_string(d, ret, row);
        break;
    case STW_T_INT:
        if (row->def && stw_parse_int(row->def, INT64_MIN, INT64_MAX, &n) == 0)
            write_member(ret, row, &n, sizeof(n));
        break;
    case STW_T_BOOL:
        write_member(ret, row, &yes, sizeof(yes));
        break;
    default: /* JSON nodes stay absent */
        break;
    }
}

static void put_value(struct decoder *d, const struct stw_path *p, void *ret,
                      const struct stw_field *row, struct stw_json v)
{
    int64_t n;
    bool yes;
    switch (row->type) {
    case STW_T_OBJECT:
        decode_fields(d, p, row->fields, v, (char *)ret + row->offset);
        break;
    case STW_T_STRING:
        put_string(d, ret, row, v);
        break;
    case STW_T_INT:
        if (stw_field_int(v, &n) == 0)
            write_member(ret, row, &n, sizeof(n));
        break;
    case STW_T_BOOL:
        yes = stw_json_bool(v, false);
        write_member(ret, row, &yes, sizeof(yes));
        break;
    default:
        write_member(ret, row, &v, sizeof(v));
        break;
    }
}

static void report_wrong_type(struct decoder *d, const struct stw_path *p,
                              const struct stw_field *row, struct stw_json v)
{
    d->wrong++;
    if (!d->f || d->f->error_count)
        return;
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    stw_path_text(p, &path);
    char text[256];
    stw_field_misfit(row, v, text, sizeof(text));
    stw_findings_at(d->f, stw_buf_str(&path), STW_INVALID, stw_field_shown(row, v), "%s", text);
}

static void decode_fields(struct decoder *d, const struct stw_path *at,
                          const struct stw_field *rows, struct stw_json object, void *ret)
{
    for (const struct stw_field *row = rows; row->name; row++) {
        struct stw_path p = {.up = at, .name = row->name};
        struct stw_json v = stw_json_get(object, row->name);
        if (!stw_json_there(v)) {
            put_default(d, &p, ret, row);
        } else if (!stw_field_fits(row, v)) {
            report_wrong_type(d, &p, row, v);
            put_default(d, &p, ret, row);
        } else {
            put_value(d, &p, ret, row, v);
        }
    }
}

int stw_fields_decode(const struct stw_field *fields, struct stw_json object,
                      struct stw_arena *arena, void *ret)
{
    struct decoder d = {.arena = arena};
    decode_fields(&d, NULL, fields, object, ret);
    return d.wrong || d.no_memory ? -1 : 0;
}

static int first_finding(const struct stw_findings *f, struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    if (f->error_count)
        stw_finding_text(&f->errors[0], &text);
    return stw_fail(err, STW_ERR_INVALID, "%s", stw_buf_str(&text));
}

int stw_kind_decode(const struct stw_kind *k, struct stw_json spec, struct stw_arena *arena,
                    void *ret_spec, struct stw_error *err)
{
    stw_autofindings struct stw_findings f = {0};
    struct decoder d = {.arena = arena, .f = &f};
    struct stw_path at = {.name = "spec"};
    memset(ret_spec, 0, k->spec_size);
    decode_fields(&d, &at, k->spec, spec, ret_spec);
    if (d.no_memory || f.failed)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory to decode a %s", k->kind);
    if (!stw_json_there(spec))
        return stw_fail(err, STW_ERR_INVALID, "spec: Required value");
    if (stw_json_type(spec) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID, "spec: Invalid value: must be an object");
    return d.wrong ? first_finding(&f, err) : 0;
}

/* --- on the heap */

struct stw_arena *stw_arena_create(void)
{
    struct stw_arena *a = malloc(sizeof(*a));
    if (a)
        stw_arena_init(a);
    return a;
}

void stw_arena_destroy(struct stw_arena *a)
{
    if (!a)
        return;
    stw_arena_done(a);
    free(a);
}
