/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields that an UPDATE may not change. */
#include "base/util.h"
#include "schema/rule/kind_priv.h"

/* Absent and the default are the same: the API server fills in the default. */
static bool is_default(const struct stw_field *row, struct stw_json v)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    if (!row->def)
        return false;
    stw_buf_addf(&text, "[%s]", row->def);
    if (text.failed || stw_json_scan(&doc, text.data, text.len, NULL) != 0)
        return false;
    return stw_json_equal(stw_json_at(stw_json_root(&doc), 0), v);
}

static bool is_same_value(const struct stw_field *row, struct stw_json now, struct stw_json old)
{
    bool now_there = stw_json_there(now), old_there = stw_json_there(old);
    if (now_there && old_there)
        return stw_json_equal(now, old);
    if (!now_there && !old_there)
        return true;
    return is_default(row, now_there ? now : old);
}

static void refuse_change(const struct stw_path *p, struct stw_json old, struct stw_findings *f)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    stw_autofindings struct stw_findings was = {0};
    stw_path_text(p, &path);
    stw_findings_at(&was, "", STW_INVALID, old, "%s", ""); /* only to shorten the value */
    const char *value = was.error_count && was.errors[0].value ? was.errors[0].value : "not set";
    stw_findings_add(f, stw_buf_str(&path), STW_FORBIDDEN, NULL, "field is immutable (was %s)",
                     value);
    f->failed |= path.failed || was.failed;
}

void stw_check_immutable(const struct stw_path *at, const struct stw_field *rows,
                         struct stw_json now, struct stw_json old, struct stw_findings *f)
{
    for (const struct stw_field *row = rows; row->name; row++) {
        struct stw_path p = {.up = at, .name = row->name};
        struct stw_json v = stw_json_get(now, row->name), was = stw_json_get(old, row->name);
        if (row->immutable && !is_same_value(row, v, was))
            refuse_change(&p, was, f);
        else if (row->type == STW_T_OBJECT)
            stw_check_immutable(&p, row->fields, v, was, f);
    }
}
