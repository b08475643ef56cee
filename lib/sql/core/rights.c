/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/rights.h"

#include "base/util.h"

#define MALLOC_OVERHEAD 16

void stw_rights_done(struct stw_rights *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->items[i].block);
    free(s->items);
    stw_kept_done(&s->held);
    *s = (struct stw_rights){0};
}

/* Copies `text` to *at and moves *at to the end of the copy. */
static const char *copy_to_block(char **at, const char *text)
{
    char *start = *at;
    size_t len = text ? strlen(text) : 0;
    if (len > 0)
        memcpy(start, text, len);
    start[len] = '\0';
    *at = start + len + 1;
    return start;
}

static size_t room_for(const char *text)
{
    return (text ? strlen(text) : 0) + 1;
}

static bool grow_rights(struct stw_rights *s)
{
    size_t cap = s->cap ? s->cap * 2 : 16;
    struct stw_right *items;
    if (s->count < s->cap)
        return true;
    if (!(items = realloc(s->items, cap * sizeof(*items))))
        return false;
    s->items = items;
    s->cap = cap;
    return true;
}

void stw_rights_add(struct stw_rights *s, const struct stw_right *r)
{
    size_t size = room_for(r->database) + room_for(r->schema) + room_for(r->name) +
                  room_for(r->column) + room_for(r->privilege) + room_for(r->grantor);
    size_t bytes = sizeof(*r) + size + MALLOC_OVERHEAD;
    if (s->count >= STW_RIGHTS_MAX || bytes > STW_RIGHTS_MAX_BYTES - s->bytes)
        s->too_large = s->failed = true;
    s->failed = s->failed || !stw_kept_set(&s->held, s->bytes + bytes) || !grow_rights(s);
    char *block = s->failed ? NULL : malloc(size), *at = block;
    if (!block) {
        s->failed = true;
        return;
    }
    s->bytes += bytes;
    struct stw_right *to = &s->items[s->count++];
    to->block = block;
    to->level = r->level;
    to->option = r->option;
    to->database = copy_to_block(&at, r->database);
    to->schema = copy_to_block(&at, r->schema);
    to->name = copy_to_block(&at, r->name);
    to->column = copy_to_block(&at, r->column);
    to->privilege = copy_to_block(&at, r->privilege);
    to->grantor = copy_to_block(&at, r->grantor);
}

void stw_rights_inherit(struct stw_rights *s, const struct stw_rights *from)
{
    s->failed |= from->failed;
    s->too_large |= from->too_large;
}

void stw_rights_add_all(struct stw_rights *s, const struct stw_rights *more)
{
    for (size_t i = 0; i < more->count; i++)
        stw_rights_add(s, &more->items[i]);
    stw_rights_inherit(s, more);
}

static int scope_cmp(const struct stw_right *a, const struct stw_right *b)
{
    int r = (int)a->level - (int)b->level;
    r = r ? r : strcmp(a->database, b->database);
    r = r ? r : strcmp(a->schema, b->schema);
    r = r ? r : strcmp(a->name, b->name);
    return r ? r : strcmp(a->column, b->column);
}

int stw_right_cmp(const struct stw_right *a, const struct stw_right *b)
{
    int r = scope_cmp(a, b);
    r = r ? r : strcmp(a->privilege, b->privilege);
    return r ? r : (int)a->option - (int)b->option;
}

bool stw_right_same_scope(const struct stw_right *a, const struct stw_right *b)
{
    return scope_cmp(a, b) == 0;
}

static int compare_rights(const void *a, const void *b)
{
    return stw_right_cmp(a, b);
}

/* Of two grants of one right, the one of another grantor is kept. */
static int compare_grants(const void *a, const void *b)
{
    const struct stw_right *x = a, *y = b;
    int r = stw_right_cmp(x, y);
    return r ? r : strcmp(y->grantor, x->grantor);
}

void stw_rights_sort(struct stw_rights *s)
{
    size_t kept = 0;
    if (s->count == 0)
        return;
    qsort(s->items, s->count, sizeof(s->items[0]), compare_grants);
    for (size_t i = 1; i < s->count; i++)
        if (stw_right_cmp(&s->items[kept], &s->items[i]) == 0)
            free(s->items[i].block);
        else
            s->items[++kept] = s->items[i];
    s->count = kept + 1;
}

bool stw_rights_has(const struct stw_rights *s, const struct stw_right *r)
{
    return s->count > 0 && bsearch(r, s->items, s->count, sizeof(*r), compare_rights);
}

bool stw_rights_equal(const struct stw_rights *a, const struct stw_rights *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (stw_right_cmp(&a->items[i], &b->items[i]) != 0)
            return false;
    return true;
}

size_t stw_rights_scope(const struct stw_rights *s, size_t at)
{
    size_t end = at;
    while (end < s->count && stw_right_same_scope(&s->items[at], &s->items[end]))
        end++;
    return end - at;
}

void stw_rights_minus(const struct stw_rights *a, const struct stw_rights *b,
                      struct stw_rights *ret)
{
    for (size_t i = 0; i < a->count; i++)
        if (!stw_rights_has(b, &a->items[i]))
            stw_rights_add(ret, &a->items[i]);
    stw_rights_inherit(ret, a);
    stw_rights_inherit(ret, b);
}

void stw_rights_both(const struct stw_rights *a, const struct stw_rights *b, struct stw_rights *ret)
{
    for (size_t i = 0; i < a->count; i++)
        if (stw_rights_has(b, &a->items[i]))
            stw_rights_add(ret, &a->items[i]);
    stw_rights_inherit(ret, a);
    stw_rights_inherit(ret, b);
}

void stw_rights_union(const struct stw_rights *a, const struct stw_rights *b,
                      struct stw_rights *ret)
{
    stw_rights_add_all(ret, a);
    stw_rights_add_all(ret, b);
    stw_rights_sort(ret);
}

static void json_name(struct stw_buf *out, const char *name)
{
    if (name[0] != '\0')
        stw_buf_json_strz(out, name);
    else
        stw_buf_adds(out, "null");
}

static void json_privileges(const struct stw_right *r, size_t count, bool option,
                            struct stw_buf *out)
{
    const char *comma = "";
    stw_buf_addc(out, '[');
    for (size_t i = 0; i < count; i++)
        if (r[i].option == option) {
            stw_buf_adds(out, comma);
            stw_buf_json_strz(out, r[i].privilege);
            comma = ",";
        }
    stw_buf_addc(out, ']');
}

/* Of the levels whose scopes have one more part. */
static const char *const kinds[STW_LEVELS] = {
    [STW_LEVEL_COLUMN] = "column", [STW_LEVEL_ROUTINE] = "routine", [STW_LEVEL_ROLE] = "role"};

void stw_rights_json(const struct stw_rights *s, struct stw_buf *out)
{
    stw_buf_addc(out, '[');
    for (size_t i = 0, n; i < s->count; i += n) {
        const struct stw_right *r = &s->items[i];
        n = stw_rights_scope(s, i);
        stw_buf_adds(out, i ? ",[" : "[");
        json_name(out, r->level == STW_LEVEL_GLOBAL ? "*" : r->database);
        stw_buf_addc(out, ',');
        json_name(out, r->schema);
        stw_buf_addc(out, ',');
        json_name(out, r->name);
        stw_buf_addc(out, ',');
        json_privileges(r, n, false, out);
        stw_buf_addc(out, ',');
        json_privileges(r, n, true, out);
        if (kinds[r->level]) {
            stw_buf_addf(out, ",\"%s\",", kinds[r->level]);
            json_name(out, r->column);
        }
        stw_buf_addc(out, ']');
    }
    stw_buf_addc(out, ']');
}

/* A string, or null for ""; NULL when it is neither, or there is no memory. */
static char *name_of(struct stw_json v)
{
    return stw_json_type(v) == STW_JSON_NULL ? strdup("") : stw_json_strdup(v);
}

static int parse_privileges(struct stw_json list, struct stw_right *r, struct stw_rights *ret)
{
    struct stw_json key, value;
    if (stw_json_type(list) != STW_JSON_ARRAY)
        return -1;
    stw_json_foreach (list, key, value) {
        stw_autofree char *privilege = name_of(value);
        if (!privilege || privilege[0] == '\0')
            return -1;
        r->privilege = privilege;
        stw_rights_add(ret, r);
    }
    return 0;
}

static uint8_t level_of(const struct stw_right *r)
{
    if (r->name[0] != '\0')
        return STW_LEVEL_TABLE;
    if (r->schema[0] != '\0')
        return STW_LEVEL_SCHEMA;
    return stw_streq(r->database, "*") ? STW_LEVEL_GLOBAL : STW_LEVEL_DATABASE;
}

/* The level that the sixth element names; -1: unknown. */
static int read_level(struct stw_json scope, struct stw_right *r)
{
    unsigned level = stw_json_size(scope) > 5 ? 0 : STW_LEVELS;
    while (level < STW_LEVELS &&
           !(kinds[level] && stw_json_is(stw_json_at(scope, 5), kinds[level])))
        level++;
    if (stw_json_size(scope) > 5 && level == STW_LEVELS)
        return -1;
    r->level = level < STW_LEVELS ? (uint8_t)level : level_of(r);
    if (level == STW_LEVEL_ROLE)
        return r->database[0] == '\0' && r->schema[0] == '\0' && r->name[0] != '\0' ? 0 : -1;
    if (level < STW_LEVELS && (r->name[0] == '\0' || r->column[0] == '\0'))
        return -1;
    return r->database[0] != '\0' ? 0 : -1;
}

static int parse_scope(struct stw_json scope, struct stw_rights *ret)
{
    bool has_column = stw_json_size(scope) > 6;
    stw_autofree char *database = name_of(stw_json_at(scope, 0));
    stw_autofree char *schema = name_of(stw_json_at(scope, 1));
    stw_autofree char *table = name_of(stw_json_at(scope, 2));
    stw_autofree char *column = has_column ? name_of(stw_json_at(scope, 6)) : strdup("");
    struct stw_right r = {.database = database, .schema = schema, .name = table, .column = column};
    if (stw_json_type(scope) != STW_JSON_ARRAY || !database || !schema || !table || !column ||
        read_level(scope, &r) != 0)
        return -1;
    if (r.level == STW_LEVEL_GLOBAL)
        r.database = "";
    if (parse_privileges(stw_json_at(scope, 3), &r, ret) != 0)
        return -1;
    r.option = true;
    return parse_privileges(stw_json_at(scope, 4), &r, ret);
}

int stw_rights_parse(struct stw_json list, struct stw_rights *ret)
{
    struct stw_json key, value;
    if (stw_json_type(list) != STW_JSON_ARRAY)
        return -1;
    stw_json_foreach (list, key, value)
        if (parse_scope(value, ret) != 0)
            return -1;
    stw_rights_sort(ret);
    return 0;
}

/* Whether a wildcard in it is not escaped. */
static bool is_wild(const char *pattern)
{
    for (; *pattern != '\0'; pattern++)
        if (*pattern == '\\' && pattern[1] != '\0')
            pattern++;
        else if (*pattern == '_' || *pattern == '%')
            return true;
    return false;
}

static void database_text(const struct stw_right *r, bool patterns, struct stw_buf *out)
{
    const char *p = r->database;
    bool plain = !patterns || r->level != STW_LEVEL_DATABASE || is_wild(p);
    for (; *p != '\0'; p++) {
        if (!plain && *p == '\\' && p[1] != '\0')
            p++;
        stw_buf_addc(out, *p);
    }
}

static void scope_text(const struct stw_right *r, bool patterns, struct stw_buf *out)
{
    const char *rest[] = {r->schema, r->name};
    if (r->level == STW_LEVEL_ROLE) {
        stw_buf_addf(out, "role %s", r->name);
        return;
    }
    if (r->level == STW_LEVEL_ROUTINE)
        stw_buf_addf(out, "%s ", r->column);
    if (r->level == STW_LEVEL_GLOBAL)
        stw_buf_addc(out, '*');
    database_text(r, patterns, out);
    for (size_t i = 0; i < STW_COUNT(rest); i++)
        if (rest[i][0] != '\0')
            stw_buf_addf(out, ".%s", rest[i]);
    if (r->level == STW_LEVEL_COLUMN)
        stw_buf_addf(out, "(%s)", r->column);
    if (r->level <= STW_LEVEL_SCHEMA)
        stw_buf_adds(out, ".*");
}

static bool passed_on(const struct stw_right *r, size_t count, const char *privilege)
{
    for (size_t i = 0; i < count; i++)
        if (r[i].option && stw_streq(r[i].privilege, privilege))
            return true;
    return false;
}

void stw_rights_text(const struct stw_rights *s, bool patterns, struct stw_buf *out)
{
    for (size_t i = 0, n; i < s->count; i += n) {
        const struct stw_right *r = &s->items[i];
        const char *comma = "";
        n = stw_rights_scope(s, i);
        for (size_t k = 0; k < n; k++) {
            if (r[k].option && k > 0 && stw_streq(r[k].privilege, r[k - 1].privilege))
                continue; /* written with the one before */
            stw_buf_addf(out, "%s%s%s", comma, r[k].privilege,
                         passed_on(r, n, r[k].privilege) ? " WITH GRANT OPTION" : "");
            comma = ", ";
        }
        stw_buf_adds(out, " ON ");
        scope_text(r, patterns, out);
        stw_buf_addc(out, '\n');
    }
}
