/* SPDX-License-Identifier: Apache-2.0
 *
 * What the schema of a CRD refuses in an UPDATE, for checks without an API server.  Since Kubernetes
 * 1.30, a value that the schema refuses is accepted if it is the same in the old object.  A missing
 * member is a fault of the object around it.  Elements of a list are compared only where the list has
 * keys, with the element of the same key. */
#include "base/table.h"
#include "base/util.h"
#include "schema/names.h"
#include "schema/rule/kind_priv.h"

struct schema_walk {
    struct stw_arena *arena;
    struct stw_findings *f; /* only the paths are used */
};

/* An entry of the old list or map. */
struct old_entry {
    const char *key;
    struct stw_json value;
};

static const char *key_of(const void *entry)
{
    return ((const struct old_entry *)entry)->key;
}

static void walk_value(const struct schema_walk *w, const struct stw_path *p,
                       const struct stw_field *row, struct stw_json now, struct stw_json old);

static void refuse(const struct schema_walk *w, const struct stw_path *p,
                   enum stw_finding_code code)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    stw_path_text(p, &path);
    stw_findings_add(w->f, stw_buf_str(&path), code, NULL, "%s", "");
    w->f->failed |= path.failed;
}

static void walk_fields(const struct schema_walk *w, const struct stw_path *at,
                        const struct stw_field *rows, struct stw_json now, struct stw_json old)
{
    for (const struct stw_field *row = rows; row->name && !stw_findings_spent(w->f); row++) {
        struct stw_path p = {.up = at, .name = row->name};
        struct stw_json value = stw_json_get(now, row->name);
        if (stw_json_there(value))
            walk_value(w, &p, row, value, stw_json_get(old, row->name));
        else if (row->required)
            refuse(w, &p, STW_REQUIRED);
    }
}

static struct stw_json find_key(const struct stw_field *row, struct stw_json key,
                                struct stw_json value)
{
    return row->type == STW_T_MAP ? key : stw_json_get(value, row->list_keys[0]);
}

/* The text of a key, which may have any type; NULL: there is none. */
static const char *copy_key(const struct schema_walk *w, struct stw_json key)
{
    size_t len = 0;
    if (stw_json_type(key) == STW_JSON_STRING)
        return stw_arena_str(w->arena, key);
    if (!stw_json_there(key))
        return NULL;
    const char *raw = stw_json_raw(key, &len);
    char *copy = stw_arena_alloc(w->arena, len + 1);
    w->f->failed |= !copy;
    if (copy) {
        memcpy(copy, raw, len);
        copy[len] = '\0';
    }
    return copy;
}

/* The entries of the old list or map by key; a list without keys has none. */
static void index_old(const struct schema_walk *w, const struct stw_field *row, struct stw_json old,
                      struct stw_table *ret)
{
    struct stw_json key, value;
    *ret = STW_TABLE_INIT(key_of);
    if ((row->type != STW_T_MAP && !row->list_keys) || stw_json_size(old) > STW_SPEC_VALUES_MAX ||
        !stw_field_fits(row, old))
        return;
    stw_json_foreach (old, key, value) {
        struct old_entry *e = stw_arena_alloc(w->arena, sizeof(*e));
        const char *text = copy_key(w, find_key(row, key, value));
        if (e && text)
            *e = (struct old_entry){text, value};
        if (!e || (text && stw_table_put(ret, e, NULL) != 0))
            w->f->failed = true;
    }
}

static void walk_entries(const struct schema_walk *w, const struct stw_path *at,
                         const struct stw_field *row, struct stw_json now, struct stw_json old)
{
    struct stw_table before;
    struct stw_path p = {.up = at};
    struct stw_json value;
    index_old(w, row, old, &before);
    stw_json_foreach (now, p.key, value) {
        const char *key =
            stw_table_size(&before) > 0 ? copy_key(w, find_key(row, p.key, value)) : NULL;
        const struct old_entry *e = key ? stw_table_get(&before, key) : NULL;
        if (stw_findings_spent(w->f))
            break;
        walk_value(w, &p, row->item, value, e ? e->value : STW_JSON_NONE);
        p.index++;
    }
    stw_table_done(&before);
}

/* A schema counts characters, and a row bytes. */
static int64_t count_characters(const char *text)
{
    int64_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static bool is_value_of(const char *const *values, const char *text)
{
    while (*values && !stw_streq(*values, text))
        values++;
    return *values;
}

static bool fits_text(const struct schema_walk *w, const struct stw_field *row, struct stw_json v)
{
    const char *text = stw_arena_str(w->arena, v);
    if (!text) {
        w->f->failed = true;
        return true;
    }
    int64_t n = count_characters(text);
    return (!row->has_range || (n >= (row->min + 3) / 4 && n <= row->max)) &&
           (!row->values || is_value_of(row->values, text));
}

static bool fits_schema(const struct schema_walk *w, const struct stw_field *row, struct stw_json v)
{
    int64_t n = 0;
    stw_quantity quantity;
    if (!stw_field_fits(row, v))
        return false;
    switch (row->type) {
    case STW_T_STRING:
    case STW_T_TEXT:
        return fits_text(w, row, v);
    case STW_T_INT:
        return !row->has_range || stw_field_int(v, &n) != 0 || (n >= row->min && n <= row->max);
    case STW_T_LIST:
    case STW_T_MAP:
        n = stw_json_size(v);
        return n <= stw_field_entries_max(row) && (!row->has_range || n >= row->min);
    case STW_T_QUANTITY:
        return stw_quantity_of(v, &quantity) == 0;
    default:
        return true;
    }
}

/* Whether a list with keys, here or below, has an element without its key.  Nothing around such an
 * element counts as unchanged. */
static bool lacks_key(const struct stw_field *row, struct stw_json v)
{
    struct stw_json key, value;
    if (!stw_field_fits(row, v))
        return false;
    for (const struct stw_field *f = row->fields; f && f->name; f++)
        if (lacks_key(f, stw_json_get(v, f->name)))
            return true;
    if (row->type != STW_T_LIST && row->type != STW_T_MAP)
        return false;
    stw_json_foreach (v, key, value)
        if ((row->list_keys && !stw_json_there(find_key(row, key, value))) ||
            lacks_key(row->item, value))
            return true;
    return false;
}

static void walk_value(const struct schema_walk *w, const struct stw_path *p,
                       const struct stw_field *row, struct stw_json now, struct stw_json old)
{
    if (stw_json_there(old) && stw_json_equal(now, old) && !lacks_key(row, now))
        return;
    if (!fits_schema(w, row, now))
        refuse(w, p, STW_INVALID);
    else if (row->type == STW_T_LIST || row->type == STW_T_MAP)
        walk_entries(w, p, row, now, old);
    else if (row->fields)
        walk_fields(w, p, row->fields, now, old);
}

void stw_ratchet_schema(const struct stw_admission *a, struct stw_findings *f)
{
    const struct stw_path at = {.name = "spec"};
    const struct stw_field spec = {.type = STW_T_OBJECT, .fields = a->kind->spec};
    struct stw_json now = stw_json_get(a->object, "spec");
    struct stw_arena arena;
    if (!stw_json_there(now) || stw_json_weight(now) > STW_SPEC_VALUES_MAX)
        return;
    stw_arena_init(&arena);
    walk_value(&(const struct schema_walk){&arena, f}, &at, &spec, now,
               stw_json_get(a->old_object, "spec"));
    stw_arena_done(&arena);
}
