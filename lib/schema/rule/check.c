/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of a field table: types, presence, ranges, enums, rules on single values, unknown
 * members. */
#include "base/guess.h"
#include "base/util.h"
#include "schema/names.h"
#include "schema/rule/kind_priv.h"

#include <assert.h>
#include <stdio.h>

#define PATH_MAX_BYTES 4096
#define NUL_KEY_TEXT "must not have a key with a NUL character"

struct checker {
    struct stw_arena *arena;
    struct stw_findings *f;
};

static void check_value(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                        struct stw_json v);
static void check_members(struct checker *c, const struct stw_path *at,
                          const struct stw_field *rows, struct stw_json object, bool raw);

static void add_finding(struct checker *c, const struct stw_path *p, enum stw_finding_code code,
                        struct stw_json v, const char *message)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    if (stw_findings_full(c->f))
        return;
    stw_path_text(p, &path);
    stw_findings_at(c->f, stw_buf_str(&path), code, v, "%s", message);
    c->f->failed |= path.failed; /* fails only when out of memory */
}

/* The field of `rows` that `name` is like; NULL: none is. */
static const char *guess_field(const struct stw_field *rows, const char *name)
{
    struct stw_guess g;
    stw_guess_init(&g, name);
    for (const struct stw_field *row = rows; row && row->name; row++)
        stw_guess_offer(&g, row->name);
    return g.best;
}

void stw_check_unknown(const struct stw_path *at, const struct stw_field *rows, struct stw_json key,
                       bool raw, struct stw_findings *f)
{
    char name[256];
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_MAX_BYTES);
    bool is_short = stw_json_strcpy(key, name, sizeof(name)) == 0;
    if (stw_findings_unheard(f)) /* bounds the number of guesses */
        return;
    if (!is_short)
        memcpy(name, "(a very long name)", 19);
    const char *meant = is_short ? guess_field(rows, name) : NULL;
    const char *ask = meant ? "; did you mean \"" : "", *end = meant ? "\"?" : "";
    if (at) {
        stw_path_text(at, &path);
        stw_buf_addc(&path, '.');
    }
    if (f->strict && !raw) {
        stw_buf_adds(&path, name);
        stw_findings_add(f, stw_buf_str(&path), STW_UNKNOWN_FIELD, NULL, "unknown field%s%s%s", ask,
                         meant ? meant : "", end);
    } else {
        stw_findings_warn(f, "unknown field \"%s%s\"%s%s%s%s", stw_buf_str(&path), name,
                          raw ? ", which is passed on unchanged" : "", ask, meant ? meant : "",
                          end);
    }
    f->failed |= path.failed;
}

/* With `rule_range`, only the schema states the range.  A rule of the kind checks it and has its
 * own message. */
static bool in_range(const struct stw_field *row, int64_t n)
{
    return !row->has_range || row->rule_range || (n >= row->min && n <= row->max);
}

/* `unit` is what is counted; NULL for the value itself. */
static void out_of_range(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                         struct stw_json v, const char *unit)
{
    char text[128];
    long long min = row->min, max = row->max;
    if (!unit)
        stw_format(text, sizeof(text), "must be between %lld and %lld", min, max);
    else if (stw_json_size(v) > max)
        stw_format(text, sizeof(text), "must be at most %lld %s", max, unit);
    else if (min == 1)
        stw_format(text, sizeof(text), "must not be empty");
    else
        stw_format(text, sizeof(text), "must be at least %lld %s", min, unit);
    add_finding(c, p, STW_INVALID, v, row->range_text ? row->range_text : text);
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
    add_finding(c, p, STW_NOT_SUPPORTED, v, more ? more : stw_buf_str(&text));
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
        add_finding(c, p, STW_INVALID, v, wrong);
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
        add_finding(c, p, STW_REQUIRED, STW_JSON_NONE, "");
    else if (!in_range(row, stw_json_size(v)))
        out_of_range(c, p, row, v, "bytes");
    else if (row->values)
        check_enum(c, p, row, v);
    else if (row->check || row->warn)
        check_rules(c, p, row, v);
}

/* Values longer than the buffer of stw_quantity_of() are refused. */
static void check_quantity(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                           struct stw_json v)
{
    stw_quantity q;
    if (stw_quantity_of(v, &q) != 0) {
        char text[96];
        stw_format(text, sizeof(text), "must be %s", stw_field_type_text(row->type));
        add_finding(c, p, STW_INVALID, v, text);
    }
}

static void check_known(struct checker *c, const struct stw_path *at, const struct stw_field *rows,
                        struct stw_json object)
{
    struct stw_json key, value;
    uint32_t known = 0;
    for (const struct stw_field *row = rows; row->name && !stw_findings_spent(c->f); row++) {
        struct stw_path p = {.up = at, .name = row->name};
        value = stw_json_get(object, row->name);
        known += stw_json_type(value) != STW_JSON_ABSENT;
        if (stw_json_there(value))
            check_value(c, &p, row, value);
    }
    if (known == stw_json_size(object))
        return;
    stw_json_foreach (object, key, value) {
        if (stw_findings_spent(c->f))
            return;
        if (!stw_fields_have(rows, key))
            stw_check_unknown(at, rows, key, true, c->f);
    }
}

/* More values than the checks may walk.  The kind's rules are then not run. */
static void too_large(struct checker *c, const struct stw_path *p, struct stw_json v, long long max,
                      const char *unit)
{
    char text[96];
    stw_format(text, sizeof(text), "must be at most %lld %s", max, unit);
    add_finding(c, p, STW_INVALID, v, text);
    c->f->oversize = true;
}

/* What has no rows.  False: it is refused. */
static bool check_raw(struct checker *c, const struct stw_path *p, struct stw_json v)
{
    if (stw_json_weight(v) > STW_RAW_VALUES_MAX)
        too_large(c, p, v, STW_RAW_VALUES_MAX, "values");
    else if (stw_json_has_deep(v))
        add_finding(c, p, STW_INVALID, STW_JSON_NONE,
                    "must have fewer levels of objects and lists in each other");
    else if (stw_json_has_nul_key(v))
        add_finding(c, p, STW_INVALID, STW_JSON_NONE, NUL_KEY_TEXT);
    else
        return true;
    return false;
}

static void check_object(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                         struct stw_json v)
{
    if (row->fields)
        check_members(c, p, row->fields, v, row->open);
    else if (check_raw(c, p, v) && row->known)
        check_known(c, p, row->known, v);
}

/* An element of a list and its key. */
struct element {
    struct stw_json element, key;
    uint32_t index;
};

static int by_key(const void *a, const void *b)
{
    struct element x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    int order = stw_json_compare(x.key, y.key);
    return order != 0 ? order : x.index < y.index ? -1 : x.index > y.index;
}

static int by_index(const void *a, const void *b)
{
    struct element x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x.index < y.index ? -1 : x.index > y.index;
}

/* Sorted by key, an element with the same key as the one before it is a duplicate.  Keys that are
 * not strings have been reported already. */
static void check_duplicates(struct checker *c, const struct stw_path *p,
                             const struct stw_field *row, struct stw_json list)
{
    struct stw_json key, value;
    struct stw_path at = {.up = p};
    size_t n = 0, again = 0;
    struct element *all = stw_arena_alloc(c->arena, (stw_json_size(list) + 1) * sizeof(*all));
    c->f->failed |= !all;
    if (!all)
        return;
    stw_json_foreach (list, key, value) {
        struct element e = {value, stw_json_get(value, row->list_keys[0]), at.index++};
        if (stw_json_type(e.key) == STW_JSON_STRING)
            all[n++] = e;
    }
    qsort(all, n, sizeof(*all), by_key);
    struct stw_json before = STW_JSON_NONE;
    for (size_t i = 0; i < n; i++) {
        struct element e = all[i];
        if (i > 0 && stw_json_compare(before, e.key) == 0)
            all[again++] = e;
        before = e.key;
    }
    qsort(all, again, sizeof(*all), by_index);
    for (size_t i = 0; i < again && !stw_findings_spent(c->f); i++) {
        at.index = all[i].index;
        add_finding(c, &at, STW_DUPLICATE, all[i].element, "");
    }
}

/* False, with a finding, when a list or map has too few or too many entries. */
static bool check_size(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                       struct stw_json container)
{
    int64_t size = stw_json_size(container), max = stw_field_entries_max(row);
    if (size > max) {
        if (row->range_text)
            out_of_range(c, p, row, container, "entries");
        else
            too_large(c, p, container, max, "entries");
        c->f->oversize = true;
        return false;
    }
    if (in_range(row, size))
        return true;
    out_of_range(c, p, row, container, "entries");
    return false;
}

static void check_list(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                       struct stw_json list)
{
    struct stw_json key, element;
    struct stw_path at = {.up = p};
    if (!check_size(c, p, row, list))
        return;
    stw_json_foreach (list, key, element) {
        if (stw_findings_spent(c->f))
            return;
        check_value(c, &at, row->item, element);
        at.index++;
    }
    if (row->list_keys)
        check_duplicates(c, p, row, list);
}

static void check_map(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                      struct stw_json map)
{
    struct stw_json value;
    struct stw_path at = {.up = p};
    if (!check_size(c, p, row, map))
        return;
    stw_json_foreach (map, at.key, value) {
        if (stw_findings_spent(c->f))
            return;
        if (stw_json_has_nul(at.key))
            add_finding(c, p, STW_INVALID, at.key, NUL_KEY_TEXT);
        else
            check_value(c, &at, row->item, value);
    }
}

static void check_nothing(struct checker *c, const struct stw_path *p, const struct stw_field *row,
                          struct stw_json v)
{
    (void)c, (void)p, (void)row, (void)v;
}

/* The API server's rules in CEL and its scale subresource take no 3.0 for an integer.  kubectl
 * writes 3 instead. */
static bool is_written_as_fraction(const struct checker *c, const struct stw_field *row,
                                   struct stw_json v)
{
    return c->f->strict && stw_json_type(v) == STW_JSON_REAL &&
           (row->type == STW_T_INT || row->type == STW_T_QUANTITY ||
            row->type == STW_T_INT_OR_STRING);
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
    static_assert(STW_COUNT(by_type) == STW_TYPES, "one check for each type");
    if (stw_field_fits(row, v) && is_written_as_fraction(c, row, v)) {
        add_finding(c, p, STW_INVALID, v, "must be an integer without a fraction and an exponent");
        return;
    }
    if (stw_field_fits(row, v)) {
        by_type[row->type](c, p, row, v);
        return;
    }
    char text[256];
    stw_field_misfit(row, v, text, sizeof(text));
    add_finding(c, p, STW_INVALID, stw_field_shown(row, v), text);
}

bool stw_fields_have(const struct stw_field *rows, struct stw_json key)
{
    for (const struct stw_field *row = rows; row->name; row++)
        if (stw_json_is(key, row->name))
            return true;
    return false;
}

/* `raw`: members that have no row are passed on, because a later Kubernetes may know them. */
static void check_members(struct checker *c, const struct stw_path *at,
                          const struct stw_field *rows, struct stw_json object, bool raw)
{
    struct stw_path member = {.up = at};
    struct stw_json value;
    uint32_t known = 0;
    if (stw_json_size(object) > STW_MEMBERS_MAX) {
        too_large(c, at, object, STW_MEMBERS_MAX, "members");
        return;
    }
    for (const struct stw_field *row = rows; row->name && !stw_findings_spent(c->f); row++) {
        struct stw_path p = {.up = at, .name = row->name};
        value = stw_json_get(object, row->name);
        known += stw_json_type(value) != STW_JSON_ABSENT;
        if (stw_json_there(value))
            check_value(c, &p, row, value);
        else if (row->required)
            add_finding(c, &p, STW_REQUIRED, STW_JSON_NONE, "");
    }
    if (known == stw_json_size(object))
        return;
    stw_json_foreach (object, member.key, value) {
        if (stw_findings_spent(c->f))
            return;
        if (stw_fields_have(rows, member.key))
            continue;
        if (raw && stw_json_has_nul(member.key))
            add_finding(c, at, STW_INVALID, STW_JSON_NONE, NUL_KEY_TEXT);
        else if (!raw || check_raw(c, &member, value))
            stw_check_unknown(at, rows, member.key, raw, c->f);
    }
}

void stw_check_fields(const struct stw_path *at, const struct stw_field *rows,
                      struct stw_json object, struct stw_arena *arena, struct stw_findings *f)
{
    check_members(&(struct checker){.arena = arena, .f = f}, at, rows, object, false);
}
