/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "schema/rule/kind_priv.h"

#include <assert.h>
#include <math.h>

#define BIT(type) (1U << (type))

static const struct {
    const char *text;
    unsigned json; /* types of JSON that fit */
} types[] = {
    [STW_T_STRING] = {"a string", BIT(STW_JSON_STRING)},
    [STW_T_TEXT] = {"a string", BIT(STW_JSON_STRING)},
    [STW_T_INT] = {"an integer", BIT(STW_JSON_INT) | BIT(STW_JSON_REAL)},
    [STW_T_BOOL] = {"a boolean", BIT(STW_JSON_TRUE) | BIT(STW_JSON_FALSE)},
    [STW_T_OBJECT] = {"an object", BIT(STW_JSON_OBJECT)},
    [STW_T_LIST] = {"a list", BIT(STW_JSON_ARRAY)},
    [STW_T_MAP] = {"an object", BIT(STW_JSON_OBJECT)},
    [STW_T_QUANTITY] = {"a quantity such as 100m, \"0.1\" or 64Mi",
                        BIT(STW_JSON_STRING) | BIT(STW_JSON_INT) | BIT(STW_JSON_REAL)},
    [STW_T_INT_OR_STRING] = {"an integer or a string",
                             BIT(STW_JSON_STRING) | BIT(STW_JSON_INT) | BIT(STW_JSON_REAL)},
    [STW_T_RAW] = {"an object", BIT(STW_JSON_OBJECT)},
};
static_assert(STW_COUNT(types) == STW_TYPES, "one row for each type");

void stw_field_misfit(const struct stw_field *row, struct stw_json value, char *out, size_t size)
{
    if ((types[row->type].json & BIT(stw_json_type(value))) && stw_json_has_nul(value))
        stw_format(out, size, "must not contain a NUL character");
    else if (row->type_text)
        stw_format(out, size, "%s", row->type_text);
    else
        stw_format(out, size, "must be %s", stw_field_type_text(row->type));
}

struct stw_json stw_field_shown(const struct stw_field *row, struct stw_json value)
{
    return row->type_text && stw_json_type(value) != STW_JSON_NULL ? STW_JSON_NONE : value;
}

const char *stw_field_type_text(enum stw_field_type type)
{
    assert(type < STW_TYPES);
    return types[type].text;
}

int stw_field_int(struct stw_json value, int64_t *ret)
{
    if (stw_json_type(value) != STW_JSON_REAL)
        return stw_json_int(value, ret);
    char text[64];
    size_t len;
    const char *raw = stw_json_raw(value, &len);
    if (len >= sizeof(text))
        return -1;
    memcpy(text, raw, len);
    text[len] = '\0';
    double d = strtod(text, NULL);
    if (!(fabs(d) < 9007199254740992.0) || d != trunc(d)) /* 2^53: exact in a double */
        return -1;
    *ret = (int64_t)d;
    return 0;
}

bool stw_field_fits(const struct stw_field *row, struct stw_json value)
{
    int64_t n;
    if (!(types[row->type].json & BIT(stw_json_type(value))) || stw_json_has_nul(value))
        return false;
    if (row->type != STW_T_INT && row->type != STW_T_QUANTITY && row->type != STW_T_INT_OR_STRING)
        return true;
    /* a quantity is x-kubernetes-int-or-string: 0.5 without quotes is neither */
    return stw_json_type(value) == STW_JSON_STRING || stw_field_int(value, &n) == 0;
}
