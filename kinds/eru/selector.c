/* SPDX-License-Identifier: Apache-2.0
 *
 * spec.selector: its fields, the rules on them, and the query that it is for the API server, which
 * alone decides what matches. */
#include "kinds/eru/selector.h"

#include "base/util.h"
#include "schema/core.h"
#include "schema/names.h"

#include <stdio.h>

#define LABELS_MAX 20
#define EXPRESSIONS_MAX 10
#define VALUES_MAX 20
#define KEY_MAX 317

static const char *const operators[] = {"In", "NotIn", "Exists", "DoesNotExist", NULL};

static const char *check_key(const char *key)
{
    return stw_is_qualified_name(key) ? NULL : STW_CORE_KEY_TEXT;
}

static const struct stw_cel cel_key[] = {
    {"self.matches(r'^(" STW_RE_SUBDOMAIN "/)?[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$')",
     STW_CORE_KEY_TEXT},
    {0},
};

static const char *check_value(const char *value)
{
    return stw_is_label_value(value) ? NULL : STW_CORE_LABEL_TEXT;
}

static const struct stw_cel cel_value[] = {
    {"self.matches(r'^([a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?)?$')", STW_CORE_LABEL_TEXT},
    {0},
};

static const struct stw_field value_item = {
    .name = "", .type = STW_T_STRING, .check = check_value, .cel = cel_value, .cel_max = 63};

struct requirement {
    const char *key, *operator;
    struct stw_json values;
};

static const struct stw_field requirement_fields[] = {
    {.name = "key",
     STW_FIELD(STW_T_STRING, struct requirement, key),
     .help = "Key of the label.",
     .required = true,
     STW_RANGE(1, KEY_MAX),
     .check = check_key,
     .cel = cel_key},
    {.name = "operator",
     STW_FIELD(STW_T_STRING, struct requirement, operator),
     .help = "What is required of the label.",
     .required = true,
     .values = operators},
    {.name = "values",
     STW_FIELD(STW_T_LIST, struct requirement, values),
     .help = "Values, for In and NotIn; at most 20.",
     STW_RANGE(0, VALUES_MAX),
     .item = &value_item},
    {0},
};

static const struct stw_field requirement_item = {
    .name = "", .type = STW_T_OBJECT, .fields = requirement_fields};

const struct stw_field stw_eru_selector_fields[] = {
    {.name = "matchLabels",
     STW_FIELD(STW_T_MAP, struct stw_eru_selector, labels),
     .help = "Labels that a workload must have; at most 20.",
     STW_RANGE(0, LABELS_MAX),
     .item = &stw_core_label_item},
    {.name = "matchExpressions",
     STW_FIELD(STW_T_LIST, struct stw_eru_selector, expressions),
     .help = "Requirements on labels, all of which a workload must meet; at most 10.",
     STW_RANGE(0, EXPRESSIONS_MAX),
     .item = &requirement_item},
    {0},
};

/* --- rules */

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
        stw_findings_add(f, path, STW_REQUIRED, NULL, "%s", STW_ERU_VALUES_NEEDED);
    else if ((stw_json_is(operator, "Exists") || stw_json_is(operator, "DoesNotExist")) &&
             stw_json_size(values) > 0)
        stw_findings_add(f, path, STW_FORBIDDEN, NULL, "%s", STW_ERU_VALUES_REFUSED);
}

void stw_eru_check_selector(const struct stw_eru_selector *s, struct stw_findings *f)
{
    struct stw_json key, requirement;
    unsigned index = 0;
    if (stw_json_size(s->labels) + stw_json_size(s->expressions) == 0)
        stw_findings_add(f, "spec.selector", STW_REQUIRED, NULL, "%s", STW_ERU_SELECTOR_EMPTY);
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

void stw_eru_selector_query(const struct stw_eru_selector *s, struct stw_buf *out)
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
