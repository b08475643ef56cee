/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on metadata for every kind: the name, and the operator's own annotations. */
#include "base/util.h"
#include "schema/names.h"
#include "schema/rule/kind_priv.h"

#include <ctype.h>
#include <stdio.h>

#define NAME_MAX_BYTES 253
#define GENERATE_NAME_MAX 58U
#define GENERATED_LEN 5U

static const char *const switches[] = {
    STW_PAUSED,
    STW_ADOPT,
    STW_FORCE_DELETE,
};

static const char dns1035_text[] = "must start with a letter and hold only a-z, 0-9 and '-', "
                                   "because a Service gets this name";

/* A label, except for its length and its end, which are not known yet for a generateName. */
static bool starts_as_label(const char *s)
{
    return *s >= 'a' && *s <= 'z' && s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

static const char *name_fault(const struct stw_kind *k, const char *name)
{
    if (!k->dns1035_name)
        return stw_check_dns1123_subdomain(name);
    if (!starts_as_label(name))
        return dns1035_text;
    return name[strlen(name) - 1] == '-' ? "must end with a letter or a digit" : NULL;
}

static void check_object_name(const struct stw_kind *k, struct stw_json name,
                              struct stw_findings *f)
{
    char text[NAME_MAX_BYTES + 1];
    uint32_t longest = k->name_max ? k->name_max : NAME_MAX_BYTES;
    if (stw_json_size(name) > longest || stw_json_strcpy(name, text, sizeof(text)) != 0) {
        stw_findings_at(f, "metadata.name", STW_INVALID, name, "must be at most %u characters",
                        longest);
        return;
    }
    const char *fault = name_fault(k, text);
    if (fault)
        stw_findings_at(f, "metadata.name", STW_INVALID, name, "%s", fault);
}

/* The API server appends five characters to at most 58. */
static bool is_too_long_prefix(const struct stw_kind *k, struct stw_json prefix)
{
    return k->name_max &&
           STW_MIN(stw_json_size(prefix), GENERATE_NAME_MAX) + GENERATED_LEN > k->name_max;
}

static void check_generate_name(const struct stw_kind *k, struct stw_json prefix,
                                struct stw_findings *f)
{
    char text[NAME_MAX_BYTES + 1];
    if (is_too_long_prefix(k, prefix)) {
        stw_findings_at(f, "metadata.generateName", STW_INVALID, prefix,
                        "must be at most %u characters", k->name_max - GENERATED_LEN);
        return;
    }
    if (!k->dns1035_name || stw_json_strcpy(prefix, text, sizeof(text)) != 0)
        return; /* the API server's own rules are enough */
    if (!starts_as_label(text))
        stw_findings_at(f, "metadata.generateName", STW_INVALID, prefix, "%s", dns1035_text);
}

static bool is_text(struct stw_json v)
{
    return stw_json_type(v) == STW_JSON_STRING && stw_json_size(v) > 0;
}

static void check_names(const struct stw_admission *a, struct stw_json metadata,
                        struct stw_findings *f)
{
    struct stw_json name = stw_json_get(metadata, "name");
    struct stw_json prefix = stw_json_get(metadata, "generateName");
    if (stw_json_there(name) && stw_json_type(name) != STW_JSON_STRING && f->strict)
        return; /* stw_check_envelope reports the types */
    if (stw_json_there(name) && stw_json_type(name) != STW_JSON_STRING)
        stw_findings_at(f, "metadata.name", STW_INVALID, name, "must be a string");
    else if (is_text(name))
        check_object_name(a->kind, name, f);
    else if (is_text(prefix))
        check_generate_name(a->kind, prefix, f);
    else
        stw_findings_add(f, "metadata.name", STW_REQUIRED, NULL,
                         "name or generateName is required");
}

static void check_switch(const struct stw_operator *op, struct stw_json annotations,
                         const char *annotation, struct stw_findings *f)
{
    char value[64], key[STW_OWN_NAME_LEN];
    stw_operator_text(op, annotation, key);
    struct stw_json v = stw_json_get(annotations, key);
    if (stw_json_type(v) != STW_JSON_STRING || stw_json_is(v, "true") || stw_json_is(v, "false"))
        return;
    bool fits = stw_json_strcpy(v, value, sizeof(value)) == 0;
    for (char *c = value; fits && *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = ' '; /* a warning must be one line of a header */
    stw_findings_warn(f, "annotation %s: \"%s\" is not \"true\" or \"false\"; ignored", key,
                      fits ? value : "...");
}

/* The value must be as the condition TemplateOutdated says it. */
static void check_consent(const struct stw_operator *op, struct stw_json annotations,
                          struct stw_findings *f)
{
    char value[STW_TEMPLATE_ID_LEN + 1], key[STW_OWN_NAME_LEN];
    stw_operator_text(op, STW_UPDATE_TEMPLATE, key);
    struct stw_json v = stw_json_get(annotations, key);
    if (stw_json_type(v) != STW_JSON_STRING || stw_json_is(v, STW_UPDATE_ALWAYS))
        return;
    if (stw_json_strcpy(v, value, sizeof(value)) != 0 ||
        strspn(value, "0123456789abcdef") != STW_TEMPLATE_ID_LEN)
        stw_findings_warn(f,
                          "annotation %s: neither \"" STW_UPDATE_ALWAYS
                          "\" nor the %d digits of the condition TemplateOutdated; ignored",
                          key, STW_TEMPLATE_ID_LEN);
}

void stw_warn_of_namesake(const struct stw_admission *a, const char *plural, const char *kind,
                          struct stw_findings *f)
{
    char key[600];
    const struct stw_lookup *lookup = a->env ? a->env->lookup : NULL;
    if (a->operation != STW_CREATE || !lookup || !lookup->has || !a->ns || !a->name || !*a->name)
        return;
    stw_format(key, sizeof(key), "%s/%s", a->ns, a->name);
    if (lookup->has(lookup->ctx, plural, key) == 1)
        stw_findings_warn(f,
                          "%s \"%s\" in this namespace has a Deployment and a Service of the same "
                          "names; the younger of the two gets none (NameConflict)",
                          kind, a->name);
}

void stw_check_metadata(const struct stw_admission *a, struct stw_findings *f)
{
    struct stw_json metadata = stw_json_get(a->object, "metadata");
    if (stw_json_there(metadata) && stw_json_type(metadata) != STW_JSON_OBJECT) {
        stw_findings_at(f, "metadata", STW_INVALID, metadata, "must be an object");
        return;
    }
    struct stw_json annotations = stw_json_get(metadata, "annotations");
    check_names(a, metadata, f);
    for (size_t i = 0; a->env && a->env->op && i < STW_COUNT(switches); i++)
        check_switch(a->env->op, annotations, switches[i], f);
    if (a->env && a->env->op)
        check_consent(a->env->op, annotations, f);
}
