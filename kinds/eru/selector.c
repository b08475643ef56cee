/* SPDX-License-Identifier: Apache-2.0
 *
 * spec.selector: the rules on it, and the query that it is for the API server, which
 * alone decides what matches. */
#include "kinds/eru/selector.h"

#include "base/util.h"
#include "kinds/eru/schema.h"
#include "schema/core.h"
#include "schema/names.h"

#include <stdio.h>

const char *eru_check_label_key(const char *key)
{
    return stw_is_qualified_name(key) ? NULL : STW_CORE_KEY_TEXT;
}

const char *eru_check_label_value(const char *value)
{
    return stw_is_label_value(value) ? NULL : STW_CORE_LABEL_TEXT;
}

static bool takes_values(struct stw_json operator)
{
    return stw_json_is(operator, "In") || stw_json_is(operator, "NotIn");
}

static void check_requirement(struct stw_json r, unsigned index, struct stw_findings *f)
{
    char path[80];
    struct stw_json operator= stw_json_get(r, "operator"), values = stw_json_get(r, "values");
    stw_format(path, sizeof(path), "spec.selector.matchExpressions[%u].values", index);
    if (takes_values(operator) && stw_json_size(values) == 0)
        stw_findings_add(f, path, STW_REQUIRED, NULL, "%s", ERU_VALUES_NEEDED);
    else if ((stw_json_is(operator, "Exists") || stw_json_is(operator, "DoesNotExist")) &&
             stw_json_size(values) > 0)
        stw_findings_add(f, path, STW_FORBIDDEN, NULL, "%s", ERU_VALUES_REFUSED);
}

void eru_check_selector(const struct eru_spec_selector *s, struct stw_findings *f)
{
    struct stw_json key, requirement;
    unsigned index = 0;
    if (stw_json_size(s->labels) + stw_json_size(s->expressions) == 0)
        stw_findings_add(f, "spec.selector", STW_REQUIRED, NULL, "%s", ERU_SELECTOR_EMPTY);
    stw_core_check_labels(s->labels, "spec.selector.matchLabels", f);
    stw_json_foreach (s->expressions, key, requirement)
        check_requirement(requirement, index++, f);
}

/* --- the query */

static void add_part(struct stw_buf *out, const char *before, struct stw_json text)
{
    stw_buf_adds(out, before);
    stw_json_str(text, out);
}

/* The API server reads "in ()" as a list without values, not as one empty value. */
static void add_values(struct stw_buf *out, bool in, struct stw_json values)
{
    struct stw_json key, value;
    bool one = stw_json_size(values) == 1;
    const char *before = one ? (in ? "=" : "!=") : (in ? " in (" : " notin (");
    stw_json_foreach (values, key, value) {
        add_part(out, before, value);
        before = ",";
    }
    stw_buf_adds(out, one ? "" : ")");
}

static void add_requirement(struct stw_buf *out, struct stw_json r)
{
    struct stw_json operator= stw_json_get(r, "operator");
    if (stw_json_is(operator, "DoesNotExist"))
        stw_buf_addc(out, '!');
    stw_json_str(stw_json_get(r, "key"), out);
    if (takes_values(operator))
        add_values(out, stw_json_is(operator, "In"), stw_json_get(r, "values"));
}

void eru_selector_query(const struct eru_spec_selector *s, struct stw_buf *out)
{
    struct stw_json key, value;
    stw_json_foreach (s->labels, key, value) {
        add_part(out, out->len > 0 ? "," : "", key);
        add_part(out, "=", value);
    }
    stw_json_foreach (s->expressions, key, value) {
        if (out->len > 0)
            stw_buf_addc(out, ',');
        add_requirement(out, value);
    }
}
