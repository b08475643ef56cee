/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates the CustomResourceDefinition of a kind from its tables.  The output uses only what
 * Kubernetes 1.20 accepts, and is the same on every run. */
#include "base/util.h"
#include "kinds/kind_priv.h"

#include <ctype.h>

static const char quantity_pattern[] =
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    "([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$";

static const char api_version_help[] =
    "Version of the schema that this object is written in, such as group/v1.";
static const char kind_help[] = "Kind of the object, in CamelCase; it cannot change.";

static void start(struct stw_buf *out, int indent, const char *key)
{
    for (int i = 0; i < indent; i++)
        stw_buf_addc(out, ' ');
    stw_buf_adds(out, key);
    stw_buf_addc(out, ':');
}

static void parent(struct stw_buf *out, int indent, const char *key)
{
    start(out, indent, key);
    stw_buf_addc(out, '\n');
}

/* A value that is not a string: a number, a boolean, JSON. */
static void plain(struct stw_buf *out, int indent, const char *key, const char *value)
{
    start(out, indent, key);
    stw_buf_addf(out, " %s\n", value);
}

static void number(struct stw_buf *out, int indent, const char *key, int64_t value)
{
    start(out, indent, key);
    stw_buf_addf(out, " %lld\n", (long long)value);
}

/* True when text needs no quotes: it starts with a letter or with '.' and a letter, cannot be read
 * as another type, and has no character that is special in YAML. */
static bool is_safe(const char *text)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",  "on",
                                        "off", "true", "false", "null"};
    for (size_t i = 0; i < STW_COUNT(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return false;
    if (!isalpha((unsigned char)text[text[0] == '.']))
        return false;
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789 .,;-_/()")] == '\0';
}

static void scalar(struct stw_buf *out, const char *text)
{
    if (is_safe(text)) {
        stw_buf_adds(out, text);
        return;
    }
    stw_buf_addc(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            stw_buf_addc(out, '\'');
        stw_buf_addc(out, *text);
    }
    stw_buf_addc(out, '\'');
}

static void string(struct stw_buf *out, int indent, const char *key, const char *value)
{
    if (!value)
        return;
    start(out, indent, key);
    stw_buf_addc(out, ' ');
    scalar(out, value);
    stw_buf_addc(out, '\n');
}

static void strings(struct stw_buf *out, int indent, const char *key, const char *const *list)
{
    if (!list)
        return;
    parent(out, indent, key);
    for (; *list; list++) {
        stw_buf_addf(out, "%*s- ", indent, "");
        scalar(out, *list);
        stw_buf_addc(out, '\n');
    }
}

static void schema(struct stw_buf *out, int indent, const struct stw_field *row);

static void properties(struct stw_buf *out, int indent, const struct stw_field *rows)
{
    for (; rows->name; rows++) {
        parent(out, indent, rows->name);
        schema(out, indent + 2, rows);
    }
}

static void required(struct stw_buf *out, int indent, const struct stw_field *rows)
{
    bool any = false;
    for (; rows->name; rows++) {
        if (!rows->required)
            continue;
        if (!any)
            parent(out, indent, "required");
        any = true;
        stw_buf_addf(out, "%*s- %s\n", indent, "", rows->name);
    }
}

/* A row counts bytes, a schema counts characters.  The bounds below refuse nothing that the webhook
 * accepts. */
static void range(struct stw_buf *out, int indent, const struct stw_field *row)
{
    static const struct {
        const char *min, *max;
    } words[] = {
        [STW_T_STRING] = {"minLength", "maxLength"},
        [STW_T_TEXT] = {"minLength", "maxLength"},
        [STW_T_INT] = {"minimum", "maximum"},
        [STW_T_LIST] = {"minItems", "maxItems"},
        [STW_T_MAP] = {"minProperties", "maxProperties"},
    };
    bool text = row->type == STW_T_STRING || row->type == STW_T_TEXT;
    if (!row->has_range || (size_t)row->type >= STW_COUNT(words) || !words[row->type].min)
        return;
    if (row->max != INT64_MAX)
        number(out, indent, words[row->type].max, row->max);
    if (row->type == STW_T_INT || row->min > 0)
        number(out, indent, words[row->type].min, text ? (row->min + 3) / 4 : row->min);
}

static void object(struct stw_buf *out, int indent, const struct stw_field *row)
{
    if (!row->fields) {
        plain(out, indent, "x-kubernetes-preserve-unknown-fields", "true");
        return;
    }
    parent(out, indent, "properties");
    properties(out, indent + 2, row->fields);
    required(out, indent, row->fields);
}

static void list(struct stw_buf *out, int indent, const struct stw_field *row)
{
    parent(out, indent, "items");
    schema(out, indent + 2, row->item);
    if (!row->list_keys)
        return;
    strings(out, indent, "x-kubernetes-list-map-keys", row->list_keys);
    plain(out, indent, "x-kubernetes-list-type", "map");
}

static void map(struct stw_buf *out, int indent, const struct stw_field *row)
{
    parent(out, indent, "additionalProperties");
    schema(out, indent + 2, row->item);
}

static void any_of_both(struct stw_buf *out, int indent, const char *pattern)
{
    parent(out, indent, "anyOf");
    stw_buf_addf(out, "%*s- type: integer\n%*s- type: string\n", indent, "", indent, "");
    string(out, indent, "pattern", pattern);
    plain(out, indent, "x-kubernetes-int-or-string", "true");
}

static void quantity(struct stw_buf *out, int indent, const struct stw_field *row)
{
    (void)row;
    any_of_both(out, indent, quantity_pattern);
}

static void int_or_string(struct stw_buf *out, int indent, const struct stw_field *row)
{
    (void)row;
    any_of_both(out, indent, NULL); /* schema() writes the row's own pattern */
}

static void nothing(struct stw_buf *out, int indent, const struct stw_field *row)
{
    (void)out, (void)indent, (void)row;
}

static const struct {
    const char *name;
    void (*write)(struct stw_buf *out, int indent, const struct stw_field *row);
} types[] = {
    [STW_T_STRING] = {"string", nothing}, [STW_T_TEXT] = {"string", nothing},
    [STW_T_INT] = {"integer", nothing},   [STW_T_BOOL] = {"boolean", nothing},
    [STW_T_OBJECT] = {"object", object},  [STW_T_LIST] = {"array", list},
    [STW_T_MAP] = {"object", map},        [STW_T_QUANTITY] = {NULL, quantity},
    [STW_T_RAW] = {"object", object},     [STW_T_INT_OR_STRING] = {NULL, int_or_string},
};

static bool has_default(const struct stw_field *row)
{
    return row->def && !row->computed;
}

static void schema(struct stw_buf *out, int indent, const struct stw_field *row)
{
    string(out, indent, "description", row->help);
    if (has_default(row))
        plain(out, indent, "default", row->def);
    strings(out, indent, "enum", row->values);
    string(out, indent, "format", row->format);
    range(out, indent, row);
    string(out, indent, "pattern", row->pattern);
    string(out, indent, "type", types[row->type].name);
    types[row->type].write(out, indent, row);
}

static void status(struct stw_buf *out, int indent, const struct stw_kind *k)
{
    parent(out, indent, "status");
    string(out, indent + 2, "description", "What steward found and did; written by it alone.");
    parent(out, indent + 2, "default");
    plain(out, indent + 4, "observedGeneration", "-1");
    plain(out, indent + 2, "type", "object");
    parent(out, indent + 2, "properties");
    properties(out, indent + 4, stw_status_common);
    if (k->status)
        properties(out, indent + 4, k->status);
}

static void top_schema(struct stw_buf *out, int indent, const struct stw_kind *k)
{
    const struct stw_field head[] = {
        {.name = "apiVersion", .type = STW_T_STRING, .help = api_version_help},
        {.name = "kind", .type = STW_T_STRING, .help = kind_help},
        {.name = NULL},
    };
    const struct stw_field spec[] = {
        {.name = "spec", .type = STW_T_OBJECT, .help = "What is wanted.", .fields = k->spec},
        {.name = NULL},
    };
    string(out, indent, "description", k->help);
    plain(out, indent, "type", "object");
    parent(out, indent, "properties");
    properties(out, indent + 2, head);
    parent(out, indent + 2, "metadata");
    plain(out, indent + 4, "type", "object");
    properties(out, indent + 2, spec);
    status(out, indent + 2, k);
    parent(out, indent, "required");
    stw_buf_addf(out, "%*s- spec\n", indent, "");
}

static void columns(struct stw_buf *out, int indent, const struct stw_column *c)
{
    parent(out, indent, "additionalPrinterColumns");
    for (; c->name; c++) {
        stw_buf_addf(out, "%*s- name: %s\n", indent, "", c->name);
        string(out, indent + 2, "description", c->help);
        string(out, indent + 2, "format", c->format);
        string(out, indent + 2, "jsonPath", c->json_path);
        if (c->priority)
            number(out, indent + 2, "priority", c->priority);
        string(out, indent + 2, "type", c->type);
    }
}

static void names(struct stw_buf *out, int indent, const struct stw_kind *k)
{
    strings(out, indent, "categories", k->categories);
    string(out, indent, "kind", k->kind);
    stw_buf_addf(out, "%*slistKind: %sList\n", indent, "", k->kind);
    string(out, indent, "plural", k->plural);
    strings(out, indent, "shortNames", k->short_names);
    string(out, indent, "singular", k->singular);
}

static void scale(struct stw_buf *out, int indent, const struct stw_scale *s)
{
    if (!s)
        return;
    parent(out, indent, "scale");
    string(out, indent + 2, "labelSelectorPath", s->selector);
    string(out, indent + 2, "specReplicasPath", s->spec_replicas);
    string(out, indent + 2, "statusReplicasPath", s->status_replicas);
}

static void version(struct stw_buf *out, int indent, const struct stw_kind *k)
{
    stw_buf_addf(out, "%*s- name: %s\n", indent, "", k->version);
    columns(out, indent + 2, k->columns);
    parent(out, indent + 2, "schema");
    parent(out, indent + 4, "openAPIV3Schema");
    top_schema(out, indent + 6, k);
    plain(out, indent + 2, "served", "true");
    plain(out, indent + 2, "storage", "true");
    parent(out, indent + 2, "subresources");
    scale(out, indent + 4, k->scale);
    plain(out, indent + 4, "status", "{}");
}

void stw_kind_crd(const struct stw_kind *k, struct stw_buf *out)
{
    stw_buf_adds(out, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n");
    parent(out, 0, "metadata");
    stw_buf_addf(out, "  name: %s.%s\n", k->plural, k->group);
    parent(out, 2, "labels");
    plain(out, 4, "app.kubernetes.io/part-of", "steward");
    parent(out, 0, "spec");
    plain(out, 2, "group", k->group);
    parent(out, 2, "names");
    names(out, 4, k);
    plain(out, 2, "scope", "Namespaced");
    parent(out, 2, "versions");
    version(out, 2, k);
}
