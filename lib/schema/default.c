/* SPDX-License-Identifier: Apache-2.0
 *
 * Static defaults from the field tables.  Only absent or null members are set, parents first, so
 * that a second pass over the result changes nothing. */
#include "base/util.h"
#include "schema/kind_priv.h"

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

void stw_kind_default(const struct stw_admission *a, struct stw_defaults *d)
{
    const struct stw_path at = {.name = "spec"};
    struct stw_json spec = stw_json_get(a->object, "spec");
    if (a->operation == STW_DELETE || stw_is_leaving(a) || stw_json_type(spec) != STW_JSON_OBJECT)
        return;
    default_fields(&at, a->kind->spec, spec, d);
    if (a->kind->default_more)
        a->kind->default_more(a, spec, d);
}
