/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks that a field table states: type, presence, range, enum, one-value rules, unknown
 * members. */
#include "base/util.h"
#include "kinds/kind_priv.h"
#include "kinds/names.h"

#include <stdio.h>

#define PATH_MAX_BYTES 4096

struct checker {
    struct stw_arena *arena;
    struct stw_findings *f;
};

static void check_value(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                        struct stw_json v);

static void add(struct checker *c, const struct stw_path *p, enum stw_finding_code code,
                struct stw_json v, const char *message)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    stw_path_text(p, &path);
    stw_findings_at(c->f, stw_buf_str(&path), code, v, "%s", message);
    c->f->failed |= path.failed; /* a path fits unless there is no memory */
}

void stw_check_unknown(const struct stw_path *at, struct stw_json key, struct stw_findings *f)
{
    char name[256];
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    if (stw_json_strcpy(key, name, sizeof(name)) != 0)
        memcpy(name, "(a very long name)", 19);
    if (at) {
        stw_path_text(at, &path);
        stw_buf_addc(&path, '.');
    }
    if (f->strict) {
        stw_buf_adds(&path, name);
        stw_findings_add(f, stw_buf_str(&path), STW_FORBIDDEN, NULL, "unknown field");
    } else {
        stw_findings_warn(f, "unknown field \"%s%s\"", stw_buf_str(&path), name);
    }
    f->failed |= path.failed;
}

/* Ranges that only the schema states are told by a rule of the kind, in its own words. */
static bool in_range(const struct stw_field *row, int64_t n)
{
    return !row->has_range || row->rule_range || (n >= row->min && n <= row->max);
}

/* `unit` is what is counted, NULL for the value itself. */
static void out_of_range(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                         struct stw_json v, const char *unit)
{
    char text[128];
    long long min = row->min, max = row->max;
    if (!unit)
        snprintf(text, sizeof(text), "must be between %lld and %lld", min, max);
    else if (stw_json_size(v) > max)
        snprintf(text, sizeof(text), "must be at most %lld %s", max, unit);
    else if (min == 1)
        snprintf(text, sizeof(text), "must not be empty");
    else
        snprintf(text, sizeof(text), "must be at least %lld %s", min, unit);
    add(c, p, STW_INVALID, v, row->range_text ? row->range_text : text);
}

static void check_int(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                      struct stw_json v)
{
    int64_t n = 0;
    if (stw_field_int(v, &n) == 0 && !in_range(row, n))
        out_of_range(c, p, row, v, NULL);
}

static void check_enum(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                       struct stw_json v)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1024);
    for (const char *const *value = row->values; *value; value++) {
        if (stw_json_is(v, *value))
            return;
        stw_buf_adds(&text, value == row->values ? "supported values: " : ", ");
        stw_buf_json_strz(&text, *value);
    }
    const char *known = row->check ? stw_arena_str(c->arena, v) : NULL;
    const char *more = known ? row->check(known) : NULL;
    add(c, p, STW_NOT_SUPPORTED, v, more ? more : stw_buf_str(&text));
    c->f->failed |= text.failed;
}

static void check_rules(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                        struct stw_json v)
{
    const char *text = stw_arena_str(c->arena, v);
    if (!text) {
        c->f->failed = true;
        return;
    }
    const char *wrong = row->check ? row->check(text) : NULL;
    if (wrong) {
        add(c, p, STW_INVALID, v, wrong);
        return;
    }
    const char *doubt = row->warn ? row->warn(text) : NULL;
    if (doubt)
        stw_findings_warn(c->f, "%s", doubt);
}

static void check_string(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                         struct stw_json v)
{
    if (row->required && stw_json_size(v) == 0)
        add(c, p, STW_REQUIRED, STW_JSON_NONE, "");
    else if (!in_range(row, stw_json_size(v)))
        out_of_range(c, p, row, v, "bytes");
    else if (row->values)
        check_enum(c, p, row, v);
    else if (row->check || row->warn)
        check_rules(c, p, row, v);
}

/* Numbers and short strings: no quantity is longer than the buffer. */
static void check_quantity(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                           struct stw_json v)
{
    stw_quantity q;
    if (stw_quantity_of(v, &q) != 0) {
        char text[96];
        snprintf(text, sizeof(text), "must be %s", stw_field_type_text(row->type));
        add(c, p, STW_INVALID, v, text);
    }
}

static void check_object(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                         struct stw_json v)
{
    if (row->fields)
        stw_check_fields(p, row->fields, v, c->arena, c->f);
}

static bool same_keys(const struct stw_field *row, struct stw_json a, struct stw_json b)
{
    for (const char *const *key = row->list_keys; *key; key++)
        if (!stw_json_equal(stw_json_get(a, *key), stw_json_get(b, *key)))
            return false;
    return stw_json_there(stw_json_get(a, row->list_keys[0]));
}

static void check_duplicate(struct checker *c, const struct stw_path *p,
                            const struct stw_field *row, struct stw_json list, uint32_t index,
                            struct stw_json element)
{
    struct stw_json key, other;
    uint32_t i = 0;
    stw_json_foreach (list, key, other) {
        if (i++ == index)
            return;
        if (same_keys(row, other, element)) {
            add(c, p, STW_DUPLICATE, element, "");
            return;
        }
    }
}

static void check_list(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                       struct stw_json list)
{
    struct stw_json key, element;
    struct stw_path at = {.up = p};
    if (!in_range(row, stw_json_size(list))) {
        out_of_range(c, p, row, list, "entries");
        return;
    }
    stw_json_foreach (list, key, element) {
        check_value(c, &at, row->item, element);
        if (row->list_keys && row->has_range)
            check_duplicate(c, &at, row, list, at.index, element);
        at.index++;
    }
}

static void check_map(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                      struct stw_json map)
{
    struct stw_json value;
    struct stw_path at = {.up = p};
    if (!in_range(row, stw_json_size(map))) {
        out_of_range(c, p, row, map, "entries");
        return;
    }
    stw_json_foreach (map, at.key, value)
        check_value(c, &at, row->item, value);
}

static void check_nothing(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                          struct stw_json v)
{
    (void)c, (void)p, (void)row, (void)v;
}

static void check_value(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                        struct stw_json v)
{
    static void (*const by_type[])(struct checker *, const struct stw_path *,
                                   const struct stw_field *, struct stw_json) = {
        [STW_T_STRING] = check_string, [STW_T_TEXT] = check_string,
        [STW_T_INT] = check_int,       [STW_T_BOOL] = check_nothing,
        [STW_T_OBJECT] = check_object, [STW_T_LIST] = check_list,
        [STW_T_MAP] = check_map,       [STW_T_QUANTITY] = check_quantity,
        [STW_T_RAW] = check_object,    [STW_T_INT_OR_STRING] = check_nothing,
    };
    if (stw_field_fits(row, v)) {
        by_type[row->type](c, p, row, v);
        return;
    }
    if (row->type_text) {
        add(c, p, STW_INVALID, STW_JSON_NONE, row->type_text);
        return;
    }
    char text[96];
    snprintf(text, sizeof(text), "must be %s", stw_field_type_text(row->type));
    add(c, p, STW_INVALID, v, text);
}

static bool in_table(const struct stw_field *rows, struct stw_json key)
{
    for (const struct stw_field *row = rows; row->name; row++)
        if (stw_json_is(key, row->name))
            return true;
    return false;
}

void stw_check_fields(const struct stw_path *at, const struct stw_field *rows,
                      struct stw_json object, struct stw_arena *arena, struct stw_findings *f)
{
    struct checker c = {.arena = arena, .f = f};
    struct stw_json key, value;
    uint32_t known = 0;
    for (const struct stw_field *row = rows; row->name; row++) {
        struct stw_path p = {.up = at, .name = row->name};
        value = stw_json_get(object, row->name);
        known += stw_json_type(value) != STW_JSON_ABSENT;
        if (stw_json_there(value))
            check_value(&c, &p, row, value);
        else if (row->required)
            add(&c, &p, STW_REQUIRED, STW_JSON_NONE, "");
    }
    if (known == stw_json_size(object))
        return;
    stw_json_foreach (object, key, value)
        if (!in_table(rows, key))
            stw_check_unknown(at, key, f);
}
