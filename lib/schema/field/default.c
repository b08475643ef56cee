/* SPDX-License-Identifier: Apache-2.0
 *
 * Static defaults from the field tables.  Only absent or null members are set, parents first, so
 * that a second pass over the result changes nothing. */
#include "base/util.h"
#include "schema/rule/kind_priv.h"

static void default_fields(const struct stw_path *at, const struct stw_field *rows,
                           struct stw_json object, struct stw_defaults *d);

static void add_default(const struct stw_path *p, const char *json, struct stw_defaults *d)
{
    stw_autobuf struct stw_buf pointer = STW_BUF_INIT(65536);
    stw_path_pointer(p, &pointer);
    if (!pointer.failed)
        stw_default_add(d, stw_buf_str(&pointer), json);
}

static void default_items(const struct stw_path *p, const struct stw_field *item,
                          struct stw_json container, struct stw_defaults *d)
{
    struct stw_path at = {.up = p};
    struct stw_json value;
    if (item->type != STW_T_OBJECT)
        return;
    stw_json_foreach (container, at.key, value) {
        if (stw_json_type(value) == STW_JSON_OBJECT && !stw_json_has_nul(at.key))
            default_fields(&at, item->fields, value, d);
        at.index++;
    }
}

static void default_within(const struct stw_path *p, const struct stw_field *row, struct stw_json v,
                           struct stw_defaults *d)
{
    if (!stw_field_fits(row, v))
        return;
    if (row->type == STW_T_OBJECT || (row->type == STW_T_RAW && row->fields))
        default_fields(p, row->fields, v, d);
    else if (row->type == STW_T_LIST || row->type == STW_T_MAP)
        default_items(p, row->item, v, d);
}

static void default_fields(const struct stw_path *at, const struct stw_field *rows,
                           struct stw_json object, struct stw_defaults *d)
{
    for (const struct stw_field *row = rows; row->name; row++) {
        struct stw_path p = {.up = at, .name = row->name};
        struct stw_json v = stw_json_get(object, row->name);
        if (stw_json_there(v)) {
            default_within(&p, row, v, d);
        } else if (row->def && !row->computed) {
            add_default(&p, row->def, d);
            if (row->type == STW_T_OBJECT)
                default_fields(&p, row->fields, STW_JSON_NONE, d);
        }
    }
}

/* The finalizer of a new object: what is made for it is then never forgotten.  A list that is none is
 * left to the API server. */
static void default_finalizer(const struct stw_admission *a, struct stw_defaults *d)
{
    stw_autobuf struct stw_buf value = STW_BUF_INIT(1024);
    struct stw_json metadata = stw_json_get(a->object, "metadata"), key, one;
    struct stw_json list = stw_json_get(metadata, "finalizers");
    bool there = stw_json_there(list);
    if (!a->kind->finalizer || a->kind->finalizer_later || a->operation != STW_CREATE ||
        stw_json_type(metadata) != STW_JSON_OBJECT ||
        (there && stw_json_type(list) != STW_JSON_ARRAY))
        return;
    stw_json_foreach (list, key, one)
        if (stw_json_is(one, a->kind->finalizer))
            return;
    stw_buf_adds(&value, there ? "" : "[");
    stw_buf_json_strz(&value, a->kind->finalizer);
    stw_buf_adds(&value, there ? "" : "]");
    if (!value.failed)
        stw_default_add(d, there ? "/metadata/finalizers/-" : "/metadata/finalizers",
                        stw_buf_str(&value));
}

void stw_kind_default(const struct stw_admission *a, struct stw_defaults *d)
{
    const struct stw_path at = {.name = "spec"};
    struct stw_json spec = stw_json_get(a->object, "spec");
    if (a->operation == STW_DELETE || stw_is_leaving(a) || stw_json_type(spec) != STW_JSON_OBJECT)
        return;
    default_fields(&at, a->kind->spec, spec, d);
    if (a->kind->default_more)
        a->kind->default_more(a, spec, d);
    default_finalizer(a, d);
}
