/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates the CustomResourceDefinition of a kind from its tables.  The output uses only what
 * Kubernetes 1.20 accepts, and is the same on every run.  With rules (cel.c), it is for Kubernetes
 * 1.29 and later: it only adds to the other one, so that `steward doctor` finds the other in it. */
#include "base/util.h"
#include "schema/rule/kind_priv.h"

#include <assert.h>
#include <ctype.h>

static const char quantity_pattern[] =
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    "([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$";

static const char api_version_help[] =
    "Version of the schema that this object is written in, such as group/v1.";
static const char kind_help[] = "Kind of the object, in CamelCase; it cannot change.";

static void print_parent_key(struct stw_buf *out, int indent, const char *key)
{
    stw_crd_key(out, indent, key);
    stw_buf_addc(out, '\n');
}

/* A value that is not a string: a number, a boolean, JSON. */
static void print_plain_value(struct stw_buf *out, int indent, const char *key, const char *value)
{
    stw_crd_key(out, indent, key);
    stw_buf_addf(out, " %s\n", value);
}

static void print_number(struct stw_buf *out, int indent, const char *key, int64_t value)
{
    stw_crd_key(out, indent, key);
    stw_buf_addf(out, " %lld\n", (long long)value);
}

static void print_items(struct stw_buf *out, int indent, const char *const *list)
{
    for (; list && *list; list++) {
        stw_buf_addf(out, "%*s- ", indent, "");
        stw_crd_scalar(out, *list);
        stw_buf_addc(out, '\n');
    }
}

static void print_string_list(struct stw_buf *out, int indent, const char *key,
                              const char *const *list)
{
    if (!list)
        return;
    print_parent_key(out, indent, key);
    print_items(out, indent, list);
}

static void print_field_schema(struct stw_buf *out, int indent, bool rules,
                               const struct stw_field *row);

static void print_properties(struct stw_buf *out, int indent, bool rules,
                             const struct stw_field *rows)
{
    for (; rows->name; rows++) {
        print_parent_key(out, indent, rows->name);
        print_field_schema(out, indent + 2, rules, rows);
    }
}

static void print_required(struct stw_buf *out, int indent, const struct stw_field *rows)
{
    bool any = false;
    for (; rows->name; rows++) {
        if (!rows->required)
            continue;
        if (!any)
            print_parent_key(out, indent, "required");
        any = true;
        stw_buf_addf(out, "%*s- %s\n", indent, "", rows->name);
    }
}

/* What the checks refuse although the row states no range.  CEL's cost estimate needs it. */
static int64_t unstated_max(const struct stw_field *row)
{
    return row->type == STW_T_LIST || row->type == STW_T_MAP ? STW_ENTRIES_MAX : row->cel_max;
}

/* A row counts bytes, a schema counts characters.  The bounds below refuse nothing that the webhook
 * accepts. */
static void print_range(struct stw_buf *out, int indent, bool rules, const struct stw_field *row)
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
    if ((size_t)row->type >= STW_COUNT(words) || !words[row->type].min)
        return;
    if (!row->has_range) {
        if (rules && unstated_max(row))
            print_number(out, indent, words[row->type].max, unstated_max(row));
        return;
    }
    if (row->max != INT64_MAX)
        print_number(out, indent, words[row->type].max, row->max);
    if (row->type == STW_T_INT || row->min > 0)
        print_number(out, indent, words[row->type].min, text ? (row->min + 3) / 4 : row->min);
}

static void print_object_schema(struct stw_buf *out, int indent, bool rules,
                                const struct stw_field *row)
{
    if (!row->fields) {
        if (rules && row->known) {
            print_parent_key(out, indent, "properties");
            print_properties(out, indent + 2, rules, row->known);
        }
        print_plain_value(out, indent, "x-kubernetes-preserve-unknown-fields", "true");
        return;
    }
    print_parent_key(out, indent, "properties");
    print_properties(out, indent + 2, rules, row->fields);
    print_required(out, indent, row->fields);
    if (row->open)
        print_plain_value(out, indent, "x-kubernetes-preserve-unknown-fields", "true");
}

static void print_list_schema(struct stw_buf *out, int indent, bool rules,
                              const struct stw_field *row)
{
    print_parent_key(out, indent, "items");
    print_field_schema(out, indent + 2, rules, row->item);
    if (rules && row->unique)
        print_plain_value(out, indent, "x-kubernetes-list-type", "set");
    if (!row->list_keys)
        return;
    print_string_list(out, indent, "x-kubernetes-list-map-keys", row->list_keys);
    print_plain_value(out, indent, "x-kubernetes-list-type", "map");
}

static void print_map_schema(struct stw_buf *out, int indent, bool rules,
                             const struct stw_field *row)
{
    print_parent_key(out, indent, "additionalProperties");
    print_field_schema(out, indent + 2, rules, row->item);
}

static void any_of_both(struct stw_buf *out, int indent, const char *pattern)
{
    print_parent_key(out, indent, "anyOf");
    stw_buf_addf(out, "%*s- type: integer\n%*s- type: string\n", indent, "", indent, "");
    stw_crd_string(out, indent, "pattern", pattern);
    print_plain_value(out, indent, "x-kubernetes-int-or-string", "true");
}

static void print_quantity_schema(struct stw_buf *out, int indent, bool rules,
                                  const struct stw_field *row)
{
    (void)row;
    if (rules)
        print_number(out, indent, "maxLength", STW_QUANTITY_MAX);
    any_of_both(out, indent, quantity_pattern);
}

static void int_or_string(struct stw_buf *out, int indent, bool rules, const struct stw_field *row)
{
    (void)row, (void)rules;
    any_of_both(out, indent, NULL); /* print_field_schema() writes the row's own pattern */
}

static void print_nothing(struct stw_buf *out, int indent, bool rules, const struct stw_field *row)
{
    (void)out, (void)indent, (void)rules, (void)row;
}

static const struct {
    const char *name;
    void (*write)(struct stw_buf *out, int indent, bool rules, const struct stw_field *row);
} types[] = {
    [STW_T_STRING] = {"string", print_nothing},
    [STW_T_TEXT] = {"string", print_nothing},
    [STW_T_INT] = {"integer", print_nothing},
    [STW_T_BOOL] = {"boolean", print_nothing},
    [STW_T_OBJECT] = {"object", print_object_schema},
    [STW_T_LIST] = {"array", print_list_schema},
    [STW_T_MAP] = {"object", print_map_schema},
    [STW_T_QUANTITY] = {NULL, print_quantity_schema},
    [STW_T_RAW] = {"object", print_object_schema},
    [STW_T_INT_OR_STRING] = {NULL, int_or_string},
};
static_assert(STW_COUNT(types) == STW_TYPES, "one row for each type");

static bool has_default(const struct stw_field *row)
{
    return row->def && !row->computed;
}

static void print_field_schema(struct stw_buf *out, int indent, bool rules,
                               const struct stw_field *row)
{
    stw_crd_string(out, indent, "description", row->help);
    if (has_default(row))
        print_plain_value(out, indent, "default", row->def);
    print_string_list(out, indent, "enum", row->values);
    stw_crd_string(out, indent, "format", row->format);
    print_range(out, indent, rules, row);
    stw_crd_string(out, indent, "pattern", row->pattern);
    stw_crd_string(out, indent, "type", types[row->type].name);
    types[row->type].write(out, indent, rules, row);
    if (rules)
        stw_cel_print_value(out, indent, row);
}

static void print_status(struct stw_buf *out, int indent, bool rules, const struct stw_kind *k)
{
    print_parent_key(out, indent, "status");
    stw_crd_string(out, indent + 2, "description", "Observed state; only {operator} writes it.");
    print_parent_key(out, indent + 2, "default");
    print_plain_value(out, indent + 4, "observedGeneration", "-1");
    print_plain_value(out, indent + 2, "type", "object");
    print_parent_key(out, indent + 2, "properties");
    print_properties(out, indent + 4, rules, stw_status_common);
    if (k->status)
        print_properties(out, indent + 4, rules, k->status);
}

static void top_schema(struct stw_buf *out, int indent, bool rules, const struct stw_kind *k)
{
    const struct stw_field head[] = {
        {.name = "apiVersion", .type = STW_T_STRING, .help = api_version_help},
        {.name = "kind", .type = STW_T_STRING, .help = kind_help},
        {.name = NULL},
    };
    const struct stw_field spec[] = {
        {.name = "spec", .type = STW_T_OBJECT, .help = "Desired state.", .fields = k->spec},
        {.name = NULL},
    };
    stw_crd_string(out, indent, "description", k->help);
    print_plain_value(out, indent, "type", "object");
    print_parent_key(out, indent, "properties");
    print_properties(out, indent + 2, rules, head);
    print_parent_key(out, indent + 2, "metadata");
    print_plain_value(out, indent + 4, "type", "object");
    print_properties(out, indent + 2, rules, spec);
    print_status(out, indent + 2, rules, k);
    print_parent_key(out, indent, "required");
    stw_buf_addf(out, "%*s- spec\n", indent, "");
    if (rules)
        stw_cel_print_kind(out, indent, k);
}

static void print_columns(struct stw_buf *out, int indent, const struct stw_column *c)
{
    print_parent_key(out, indent, "additionalPrinterColumns");
    for (; c->name; c++) {
        stw_buf_addf(out, "%*s- name: %s\n", indent, "", c->name);
        stw_crd_string(out, indent + 2, "description", c->help);
        stw_crd_string(out, indent + 2, "format", c->format);
        stw_crd_string(out, indent + 2, "jsonPath", c->json_path);
        if (c->priority)
            print_number(out, indent + 2, "priority", c->priority);
        stw_crd_string(out, indent + 2, "type", c->type);
    }
}

static void print_names(struct stw_buf *out, int indent, const struct stw_kind *k)
{
    static const char *const common[] = {"{operator}", NULL};
    print_parent_key(out, indent, "categories");
    print_items(out, indent, k->categories);
    print_items(out, indent, common);
    stw_crd_string(out, indent, "kind", k->kind);
    stw_buf_addf(out, "%*slistKind: %sList\n", indent, "", k->kind);
    stw_crd_string(out, indent, "plural", k->plural);
    print_string_list(out, indent, "shortNames", k->short_names);
    stw_crd_string(out, indent, "singular", k->singular);
}

static void print_scale(struct stw_buf *out, int indent, const struct stw_scale *s)
{
    if (!s)
        return;
    print_parent_key(out, indent, "scale");
    stw_crd_string(out, indent + 2, "labelSelectorPath", s->selector);
    stw_crd_string(out, indent + 2, "specReplicasPath", s->spec_replicas);
    stw_crd_string(out, indent + 2, "statusReplicasPath", s->status_replicas);
}

static void print_crd_version(struct stw_buf *out, int indent, bool rules, const struct stw_kind *k,
                              const char *deprecated, bool stored)
{
    stw_buf_addf(out, "%*s- name: %s\n", indent, "", k->version);
    if (k->columns)
        print_columns(out, indent + 2, k->columns);
    if (deprecated)
        print_plain_value(out, indent + 2, "deprecated", "true");
    stw_crd_string(out, indent + 2, "deprecationWarning", deprecated);
    print_parent_key(out, indent + 2, "schema");
    print_parent_key(out, indent + 4, "openAPIV3Schema");
    top_schema(out, indent + 6, rules, k);
    print_plain_value(out, indent + 2, "served", "true");
    print_plain_value(out, indent + 2, "storage", stored ? "true" : "false");
    print_parent_key(out, indent + 2, "subresources");
    print_scale(out, indent + 4, k->scale);
    print_plain_value(out, indent + 4, "status", "{}");
}

/* The kind as this version has it.  Rules over several fields are for the kind's own version; the
 * webhook applies them to all, as the API server converts what it sends there. */
static struct stw_kind kind_in_version(const struct stw_kind *k, const struct stw_kind_version *v)
{
    struct stw_kind as = *k;
    as.version = v->name;
    as.spec = v->spec;
    as.status = v->status ? v->status : k->status;
    as.columns = v->columns ? v->columns : k->columns;
    as.scale = v->scale ? v->scale : k->scale;
    as.cel = NULL;
    return as;
}

static bool has_versions(const struct stw_kind *k)
{
    return k->versions && k->versions->name;
}

static void print_versions(struct stw_buf *out, int indent, bool rules, const struct stw_kind *k)
{
    bool own_stored = true;
    for (const struct stw_kind_version *v = k->versions; v && v->name; v++)
        own_stored = own_stored && !v->stored;
    print_parent_key(out, indent, "versions");
    print_crd_version(out, indent, rules, k, NULL, own_stored);
    for (const struct stw_kind_version *v = k->versions; v && v->name; v++) {
        struct stw_kind as = kind_in_version(k, v);
        print_crd_version(out, indent, rules, &as, v->deprecated, v->stored);
    }
}

static void print_conversion(struct stw_buf *out, const struct stw_kind *k,
                             const struct stw_crd_options *o)
{
    if (!has_versions(k))
        return;
    print_parent_key(out, 2, "conversion");
    print_plain_value(out, 4, "strategy", "Webhook");
    print_parent_key(out, 4, "webhook");
    if (o->url || o->service)
        print_parent_key(out, 6, "clientConfig");
    if (o->url) {
        print_plain_value(out, 8, "url", o->url);
    } else if (o->service) {
        print_parent_key(out, 8, "service");
        print_plain_value(out, 10, "name", o->service);
        print_plain_value(out, 10, "namespace", o->ns);
        print_plain_value(out, 10, "path", o->path);
        print_number(out, 10, "port", 443);
    }
    print_parent_key(out, 6, "conversionReviewVersions");
    print_items(out, 6, (const char *const[]){"v1", NULL});
}

static void print_crd(const struct stw_kind *k, const struct stw_crd_options *o,
                      struct stw_buf *out)
{
    stw_buf_adds(out, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n");
    print_parent_key(out, 0, "metadata");
    stw_buf_addf(out, "  name: %s.%s\n", k->plural, k->group);
    print_parent_key(out, 2, "labels");
    print_plain_value(out, 4, "app.kubernetes.io/part-of", "{operator}");
    /* The objects of a CRD go with it.  Flux and Argo CD delete what has left their source. */
    print_parent_key(out, 2, "annotations");
    print_plain_value(out, 4, "argocd.argoproj.io/sync-options", "Delete=false,Prune=false");
    print_plain_value(out, 4, "kustomize.toolkit.fluxcd.io/prune", "disabled");
    print_parent_key(out, 0, "spec");
    print_conversion(out, k, o);
    print_plain_value(out, 2, "group", k->group);
    print_parent_key(out, 2, "names");
    print_names(out, 4, k);
    print_plain_value(out, 2, "scope", "Namespaced");
    print_versions(out, 2, o->rules, k);
}

void stw_kind_crd_print(const struct stw_operator *op, const struct stw_kind *k,
                        const struct stw_crd_options *o, struct stw_buf *out)
{
    stw_autobuf struct stw_buf marked = STW_BUF_INIT(out->max);
    print_crd(k, o, &marked);
    stw_operator_expand(op, stw_buf_str(&marked), out);
    out->failed |= marked.failed;
}

void stw_kind_crd(const struct stw_operator *op, const struct stw_kind *k, struct stw_buf *out)
{
    stw_kind_crd_print(op, k, &(struct stw_crd_options){.rules = false}, out);
}

void stw_kind_crd_rules(const struct stw_operator *op, const struct stw_kind *k,
                        struct stw_buf *out)
{
    stw_kind_crd_print(op, k, &(struct stw_crd_options){.rules = true}, out);
}
