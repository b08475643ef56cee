/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the tables of a kind: what the compiler cannot see in them, and what would otherwise be
 * found at the first object, or by the API server alone. */
#include "base/util.h"
#include "schema/conversion.h"
#include "schema/kind.h"
#include "schema/names.h"
#include "schema/rule/kind_priv.h"

#include <ctype.h>
#include <stdlib.h>

#define PATH_BYTES 1024
#define DEFAULT_MAX 65536
#define NESTED_MAX 64 /* brackets in a rule, one in the other */

struct tables {
    const struct stw_kind *kind;
    const char *version; /* of the fields that are checked; NULL: the kind's own */
    bool *taken;         /* bytes of the spec's struct that a row fills; NULL: rows have no place */
    size_t size;
    struct stw_error *err;
};

static int fail_at(const struct tables *t, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int fail_at(const struct tables *t, const char *path, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return stw_fail(t->err, STW_ERR_INVALID, "%s%s%s: %s: %s", t->kind->kind,
                    t->version ? ", version " : "", t->version ? t->version : "", path, text);
}

static int fail_row(const struct tables *t, const struct stw_path *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int fail_row(const struct tables *t, const struct stw_path *at, const char *fmt, ...)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_BYTES);
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    stw_path_text(at, &path);
    return fail_at(t, stw_buf_str(&path), "%s", text);
}

/* --- paths */

static const struct stw_field *find_row(const struct stw_field *rows, const char *name, size_t len)
{
    for (; rows && rows->name; rows++)
        if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0)
            return rows;
    return NULL;
}

/* The members of a value; `*ret_open`: it may have others. */
static const struct stw_field *members_of(const struct stw_field *row, bool *ret_open)
{
    bool raw = row->type == STW_T_RAW, has_fields = row->type == STW_T_OBJECT || raw;
    *ret_open = row->type == STW_T_MAP || (has_fields && (row->open || (raw && !row->fields)));
    return has_fields ? row->fields : NULL;
}

/* Follows the names of `path`, each after a '.', from `rows` on, and ends where something else begins, or
 * a function of CEL.  NULL: each name is a field; else the first that is none. */
static const char *follow_path(const struct stw_field *rows, const char *path, size_t *ret_len)
{
    bool open = false;
    for (const char *c = path; *c == '.';) {
        c += c[1] == '?' ? 2 : 1;
        size_t len = 0;
        while (isalnum((unsigned char)c[len]) || c[len] == '_' || c[len] == '-')
            len++;
        if (c[len] == '(' || open || strncmp(c, "__", 2) == 0)
            return NULL;
        const struct stw_field *row = find_row(rows, c, len);
        *ret_len = len;
        if (!row)
            return c;
        rows = members_of(row, &open);
        c += len;
    }
    return NULL;
}

/* --- rules in CEL */

/* The end of the text that begins at `c`, behind its quote; NULL: it has none. */
static const char *skip_text(const char *c, bool raw)
{
    char quote = *c++;
    for (; *c && *c != quote; c++)
        if (*c == '\\' && !raw && c[1])
            c++;
    return *c ? c + 1 : NULL;
}

/* The name at `c` and what follows it, of an object with these members. */
static int check_name(const struct tables *t, const char *path, const char *c, size_t len,
                      const struct stw_field *members, bool open)
{
    bool whole =
        (len == 4 && strncmp(c, "self", 4) == 0) || (len == 7 && strncmp(c, "oldSelf", 7) == 0);
    size_t missing_len = 0;
    if (!whole || open)
        return 0;
    const char *missing = follow_path(members, c + len, &missing_len);
    return missing ? fail_at(t, path, "a rule in CEL uses %.*s, and there is no field %.*s",
                             (int)(missing + missing_len - c), c, (int)missing_len, missing)
                   : 0;
}

static int check_cel(const struct tables *t, const char *path, const char *rule,
                     const struct stw_field *members, bool open)
{
    char closing[NESTED_MAX];
    size_t depth = 0;
    for (const char *c = rule; c && *c;) {
        const char *bracket = strchr("([{", *c);
        size_t len = 0;
        while (isalnum((unsigned char)c[len]) || c[len] == '_')
            len++;
        if (len > 0) {
            bool raw = len == 1 && *c == 'r' && (c[1] == '\'' || c[1] == '"');
            bool member = c > rule && c[-1] == '.';
            if (!member && check_name(t, path, c, len, members, open) != 0)
                return -1;
            c = raw ? skip_text(c + 1, true) : c + len;
        } else if (*c == '\'' || *c == '"') {
            c = skip_text(c, false);
        } else if (bracket && depth < NESTED_MAX) {
            closing[depth++] = ")]}"[bracket - "([{"];
            c++;
        } else if (strchr(")]}", *c) && (depth == 0 || closing[--depth] != *c)) {
            return fail_at(t, path, "a rule in CEL has a %c too many", *c);
        } else {
            c++;
        }
        if (!c)
            return fail_at(t, path, "a text in a rule in CEL has no end");
    }
    return depth ? fail_at(t, path, "a rule in CEL lacks a %c", closing[depth - 1]) : 0;
}

static int check_cel_rules(const struct tables *t, const struct stw_cel_rule *rules,
                           const struct stw_field *rows, const char *up)
{
    for (const struct stw_cel_rule *r = rules; r && r->at; r++) {
        char path[PATH_BYTES], dotted[PATH_BYTES];
        size_t len = 0;
        bool open = false;
        stw_format(path, sizeof(path), "%s.%s", up, r->at);
        stw_format(dotted, sizeof(dotted), ".%s", r->at);
        if (follow_path(rows, dotted, &len))
            return fail_at(t, path, "a rule in CEL is at this field, which does not exist");
        if (r->within) {
            const struct stw_field *within = rows;
            for (const char *c = r->at; within && *c; c += *c == '.') {
                const struct stw_field *row = find_row(within, c, strcspn(c, "."));
                within = row ? members_of(row, &open) : NULL;
                c += strcspn(c, ".");
            }
            if (within && check_cel_rules(t, r->within, within, path) != 0)
                return -1;
            continue;
        }
        if (!r->rule || !r->message)
            return fail_at(t, path, "a rule in CEL needs .rule and .message");
        if (check_cel(t, path, r->rule, rows, false) != 0 ||
            check_cel(t, path, r->expression, rows, false) != 0)
            return -1;
    }
    return 0;
}

/* --- defaults */

static bool is_value(const char *const *values, const char *text)
{
    for (; values && *values; values++)
        if (stw_streq(*values, text))
            return true;
    return false;
}

static int check_default_string(const struct tables *t, const struct stw_path *at,
                                const struct stw_field *row, struct stw_json value)
{
    char text[PATH_BYTES];
    const char *why = NULL;
    if (strchr(row->def, '\\') || stw_json_strcpy(value, text, sizeof(text)) != 0)
        return fail_row(t, at, "the default %.60s must be short and have no \\", row->def);
    if (!*text)
        return fail_row(t, at, "an empty string cannot be a default: absence means the same");
    if (row->values && !is_value(row->values, text))
        why = "is not one of .values";
    else if (row->check && !row->values)
        why = row->check(text);
    return why ? fail_row(t, at, "the default %.60s: %s", row->def, why) : 0;
}

static int check_default(const struct tables *t, const struct stw_path *at,
                         const struct stw_field *row)
{
    stw_autobuf struct stw_buf list =
        STW_BUF_INIT(DEFAULT_MAX); /* the scanner takes no bare value */
    stw_autojson struct stw_json_doc doc = {0};
    int64_t n = 0;
    if (!row->def)
        return 0;
    stw_buf_addf(&list, "[%s]", row->def);
    if (stw_json_scan(&doc, stw_buf_str(&list), list.len, NULL) != 0 ||
        stw_json_size(stw_json_root(&doc)) != 1)
        return fail_row(t, at, "the default %.60s is not JSON%s", row->def,
                        row->type == STW_T_STRING ? "; a string needs its quotes: \"\\\"a\\\"\""
                                                  : "");
    struct stw_json value = stw_json_at(stw_json_root(&doc), 0);
    if (!stw_field_fits(row, value))
        return fail_row(t, at, "the default %.60s must be %s", row->def,
                        stw_field_type_text(row->type));
    if (row->type == STW_T_INT && row->has_range && stw_json_int(value, &n) == 0 &&
        (n < row->min || n > row->max))
        return fail_row(t, at, "the default %.60s is out of the range of %lld to %lld", row->def,
                        (long long)row->min, (long long)row->max);
    return row->type == STW_T_STRING ? check_default_string(t, at, row, value) : 0;
}

/* --- rows */

static size_t size_of(const struct stw_field *row)
{
    switch (row->type) {
    case STW_T_STRING:
        return sizeof(const char *);
    case STW_T_INT:
        return sizeof(int64_t);
    case STW_T_BOOL:
        return sizeof(bool);
    default:
        return sizeof(struct stw_json);
    }
}

/* Its place in the struct is in the struct, and is no other row's. */
static int take_place(const struct tables *t, const struct stw_path *at,
                      const struct stw_field *row, size_t place)
{
    size_t size = size_of(row);
    if (place > t->size || size > t->size - place)
        return fail_row(t, at, "its place is outside of the struct of .spec_size %zu bytes",
                        t->size);
    for (size_t i = place; i < place + size; i++) {
        if (t->taken[i])
            return fail_row(t, at,
                            "another field has its place in the struct, too: is STW_FIELD "
                            "missing?");
        t->taken[i] = true;
    }
    return 0;
}

static int check_row(const struct tables *t, const struct stw_path *at, const struct stw_field *row,
                     size_t place);
static int check_rows(const struct tables *t, const struct stw_path *up,
                      const struct stw_field *rows, size_t base);

/* What a row leads to; in lists and maps there are no places of this struct. */
static int check_below(const struct tables *t, const struct stw_path *at,
                       const struct stw_field *row, size_t place)
{
    struct tables elsewhere = *t;
    elsewhere.taken = NULL;
    if (row->type == STW_T_OBJECT)
        return row->fields ? check_rows(t, at, row->fields, place)
                           : fail_row(t, at, "an object needs .fields");
    if (row->type == STW_T_RAW && row->fields)
        return check_rows(&elsewhere, at, row->fields, 0);
    if (row->type != STW_T_LIST && row->type != STW_T_MAP)
        return 0;
    if (!row->item)
        return fail_row(t, at, "a list or map needs .item");
    const struct stw_path item = {.up = at};
    return check_row(&elsewhere, &item, row->item, 0);
}

static int check_row(const struct tables *t, const struct stw_path *at, const struct stw_field *row,
                     size_t place)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(PATH_BYTES);
    bool open, raw = row->type == STW_T_RAW;
    if ((unsigned)row->type >= STW_TYPES)
        return fail_row(t, at, "it has no .type");
    const struct stw_field *members = members_of(row, &open);
    if (row->has_range && row->min > row->max)
        return fail_row(t, at, "its range ends before it begins");
    if (check_default(t, at, row) != 0)
        return -1;
    if (t->taken && row->type != STW_T_OBJECT && take_place(t, at, row, place) != 0)
        return -1;
    stw_path_text(at, &path);
    for (const struct stw_cel *c = row->cel; c && c->rule; c++)
        if (check_cel(t, stw_buf_str(&path), c->rule, members, open || (raw && !members)) != 0)
            return -1;
    return check_below(t, at, row, place);
}

static int check_rows(const struct tables *t, const struct stw_path *up,
                      const struct stw_field *rows, size_t base)
{
    for (const struct stw_field *row = rows; row->name; row++) {
        const struct stw_path at = {.up = up, .name = row->name};
        if (find_row(rows, row->name, strlen(row->name)) != row)
            return fail_row(t, &at, "the field is there twice");
        if (check_row(t, &at, row, base + row->offset) != 0)
            return -1;
    }
    return 0;
}

/* --- columns */

static int check_json_path(const struct tables *t, const char *what, const char *path,
                           const struct stw_field *spec, const struct stw_field *status)
{
    bool of_spec = path && strncmp(path, ".spec.", 6) == 0;
    bool of_status = path && strncmp(path, ".status.", 8) == 0;
    size_t len = 0;
    if (!path || *path != '.')
        return fail_at(t, what, "the path must be like .spec.replicas");
    if (!of_spec && !of_status)
        return 0;
    const char *rest = strchr(path + 1, '.');
    if (!follow_path(of_spec ? spec : status, rest, &len) ||
        (of_status && !follow_path(stw_status_common, rest, &len)))
        return 0;
    return fail_at(t, what, "the path %s leads to no field", path);
}

static int check_columns(const struct tables *t, const struct stw_column *columns,
                         const struct stw_scale *scale, const struct stw_field *spec,
                         const struct stw_field *status)
{
    static const char *const types[] = {"string", "integer", "boolean", "date", "number", NULL};
    for (const struct stw_column *c = columns; c && c->name; c++) {
        char what[200];
        stw_format(what, sizeof(what), "column %s", c->name);
        if (!c->type || !is_value(types, c->type))
            return fail_at(t, what,
                           "its type must be \"string\", \"integer\", \"number\", \"boolean\" or "
                           "\"date\"");
        if (check_json_path(t, what, c->json_path, spec, status) != 0)
            return -1;
    }
    if (!scale)
        return 0;
    return check_json_path(t, "scale", scale->spec_replicas, spec, status) != 0 ||
                   check_json_path(t, "scale", scale->status_replicas, spec, status) != 0
               ? -1
               : 0;
}

/* --- the kind */

static int check_names(const struct stw_kind *k, struct stw_error *err)
{
    if (!k->kind || !*k->kind)
        return stw_fail(err, STW_ERR_INVALID, "a kind has no .kind");
    const struct tables t = {.kind = k, .err = err};
    if (!k->group || !stw_is_dns1123_subdomain(k->group))
        return fail_at(&t, ".group", "must be a domain, such as example.org");
    if (!k->version || !stw_is_dns1035_label(k->version))
        return fail_at(&t, ".version", "must be like v1 or v1alpha1");
    if (!k->plural || !stw_is_dns1035_label(k->plural))
        return fail_at(&t, ".plural", "must hold only a-z, 0-9 and '-'");
    if (!k->singular || !stw_is_dns1035_label(k->singular))
        return fail_at(&t, ".singular", "must hold only a-z, 0-9 and '-'");
    if (!k->help)
        return fail_at(&t, ".help", "is missing: it is the description in the CRD");
    if (!k->operations)
        return fail_at(&t, ".operations", "is missing: STW_CREATE | STW_UPDATE");
    /* As the API server: a name without a domain is of Kubernetes alone. */
    if (k->finalizer && (!stw_is_qualified_name(k->finalizer) || !strchr(k->finalizer, '/')))
        return fail_at(&t, ".finalizer", "\"%.100s\" must be like %s/cleanup", k->finalizer,
                       k->group);
    return 0;
}

static int check_own(const struct stw_kind *k, bool *taken, struct stw_error *err)
{
    const struct tables of_spec = {.kind = k, .taken = taken, .size = k->spec_size, .err = err};
    const struct tables of_status = {.kind = k, .err = err};
    const struct stw_path spec = {.name = "spec"}, status = {.name = "status"};
    if (check_rows(&of_spec, &spec, k->spec, 0) != 0 ||
        (k->status && check_rows(&of_status, &status, k->status, 0) != 0) ||
        check_cel_rules(&of_status, k->cel, k->spec, "spec") != 0)
        return -1;
    return check_columns(&of_status, k->columns, k->scale, k->spec, k->status);
}

static int check_versions(const struct stw_kind *k, struct stw_error *err)
{
    const struct stw_path spec = {.name = "spec"}, status = {.name = "status"};
    if (stw_kind_versions_check(k, err) != 0)
        return -1;
    for (const struct stw_kind_version *v = k->versions; v && v->name; v++) {
        const struct tables t = {.kind = k, .version = v->name, .err = err};
        if (check_rows(&t, &spec, v->spec, 0) != 0 ||
            (v->status && check_rows(&t, &status, v->status, 0) != 0) ||
            check_columns(&t, v->columns, v->scale, v->spec, v->status ? v->status : k->status) !=
                0)
            return -1;
    }
    return 0;
}

int stw_kind_check(const struct stw_kind *k, struct stw_error *err)
{
    if (check_names(k, err) != 0)
        return -1;
    if (!k->spec || !k->spec_size)
        return stw_fail(err, STW_ERR_INVALID, "%s: %s is missing", k->kind,
                        k->spec ? ".spec_size" : ".spec");
    stw_autofree bool *taken = calloc(k->spec_size, sizeof(*taken));
    if (!taken)
        return stw_fail_memory(err);
    return check_own(k, taken, err) != 0 || check_versions(k, err) != 0 ? -1 : 0;
}
