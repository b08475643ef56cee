/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/core.h"

#include "base/util.h"
#include "schema/names.h"
#include "schema/rule/kind_priv.h"

#include <stdio.h>

#define RESOURCES_MAX 64      /* few enough to look up each of them by linear search */
#define RESOURCE_NAME_MAX 317 /* a DNS subdomain, '/', 63 more */
#define ANNOTATIONS_MAX 262144
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define NANO 1000000000
#define MILLI (NANO / 1000)

static const struct stw_field quantity = {.name = "", .type = STW_T_QUANTITY};

const struct stw_field stw_core_resources[] = {
    {.name = "limits",
     .type = STW_T_MAP,
     .help = "Most that a container may use of each resource.",
     STW_RANGE(0, RESOURCES_MAX),
     .item = &quantity},
    {.name = "requests",
     .type = STW_T_MAP,
     .help = "What a node must have free of each resource; where it is absent, the limit.",
     STW_RANGE(0, RESOURCES_MAX),
     .item = &quantity},
    {0},
};

static const struct stw_field pull_secret_fields[] = {
    {.name = "name",
     .type = STW_T_STRING,
     .help = "Name of a Secret in the same namespace.",
     .required = true,
     STW_CHECK_SUBDOMAIN},
    {0},
};

const struct stw_field stw_core_pull_secret = {
    .name = "", .type = STW_T_OBJECT, .fields = pull_secret_fields};
const char *const stw_core_pull_secret_keys[] = {"name", NULL};

const struct stw_cel stw_cel_dns1123_subdomain[] = {
    {"self.matches(r'^" STW_RE_SUBDOMAIN "$')", STW_SUBDOMAIN_TEXT}, {0}};

#define RE_HOST "[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?"
#define RE_PART "[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*"
#define RE_DIGEST "sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}"

/* The limit on the name's length and the ID of an image are not in it. */
const struct stw_cel stw_cel_image[] = {
    {"self.matches(r'^((" RE_HOST "(\\." RE_HOST ")*|\\[[0-9a-fA-F:]+\\])(:[0-9]+)?/)?" RE_PART
     "(/" RE_PART ")*(:[a-zA-Z0-9_][-_.a-zA-Z0-9]{0,127})?(@(" RE_DIGEST "))?$')",
     STW_IMAGE_TEXT},
    {0},
};

static const char data_key_text[] = "must consist of letters, digits, '-', '_' and '.'";
static const char data_key_dots_text[] = "must not be '.' or begin with '..'";

const char *stw_core_check_key(const char *key)
{
    if (key[strspn(key, LETTERS DIGITS "-_.")])
        return data_key_text;
    return stw_streq(key, ".") || strncmp(key, "..", 2) == 0 ? data_key_dots_text : NULL;
}

const struct stw_cel stw_core_cel_key[] = {
    {"self.matches(r'^[-._a-zA-Z0-9]*$')", data_key_text},
    {"self != '.' && !self.startsWith('..')", data_key_dots_text},
    {0},
};

/* --- environment */

/* The messages are those of IsEnvVarName in k8s.io/apimachinery/pkg/util/validation. */
const char *stw_core_check_env_name(const char *name)
{
    if (strlen(name) > STW_CORE_ENV_NAME_MAX)
        return "must be no more than 253 characters";
    if (!*name || strchr(DIGITS, name[0]) || name[strspn(name, LETTERS DIGITS "_-.")])
        return STW_CORE_ENV_NAME_TEXT;
    if (stw_streq(name, "."))
        return "must not be '.'";
    if (stw_streq(name, ".."))
        return "must not be '..'";
    return strncmp(name, "..", 2) == 0 ? "must not start with '..'" : NULL;
}

const struct stw_cel stw_core_cel_env_name[] = {
    {"self.matches(r'^[-._a-zA-Z][-._a-zA-Z0-9]*$')", STW_CORE_ENV_NAME_TEXT},
    {"self != '.'", "must not be '.'"},
    {"self == '..' || !self.startsWith('..')", "must not start with '..'"},
    {"self != '..'", "must not be '..'"},
    {0},
};

bool stw_core_variable_is_long(struct stw_json name, struct stw_json value)
{
    return (size_t)stw_json_size(name) + stw_json_size(value) > STW_CORE_VARIABLE_MAX;
}

const char *const stw_core_env_keys[] = {"name", NULL};

void stw_core_check_env(struct stw_json env, const char *path, struct stw_findings *f)
{
    struct stw_json key, element;
    char at[128];
    uint32_t index = 0;
    stw_json_foreach (env, key, element) {
        if (stw_findings_spent(f))
            return;
        struct stw_json value = stw_json_get(element, "value");
        if (stw_core_variable_is_long(stw_json_get(element, "name"), value)) {
            stw_format(at, sizeof(at), "%s[%u].value", path, index);
            stw_findings_add(f, at, STW_INVALID, NULL, "%s", STW_CORE_VARIABLE_TEXT);
        }
        if (stw_json_size(value) > 0 && stw_json_there(stw_json_get(element, "valueFrom"))) {
            stw_format(at, sizeof(at), "%s[%u].valueFrom", path, index);
            stw_findings_add(f, at, STW_INVALID, NULL,
                             "may not be specified when `value` is not empty");
        }
        index++;
    }
}

/* --- labels and annotations */

static const char key_text[] = STW_CORE_KEY_TEXT;
static const char label_text[] = STW_CORE_LABEL_TEXT;

static void refuse_entry(const char *path, struct stw_json key, struct stw_json value,
                         const char *message, struct stw_findings *f)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    const struct stw_path map = {.name = path}, at = {.up = &map, .key = key};
    if (stw_findings_full(f))
        return;
    stw_path_text(&at, &text);
    stw_findings_at(f, stw_buf_str(&text), STW_INVALID, value, "%s", message);
    f->failed |= text.failed;
}

static void check_map_key(const char *path, struct stw_json key, struct stw_findings *f)
{
    char name[RESOURCE_NAME_MAX + 1];
    if (stw_json_strcpy(key, name, sizeof(name)) != 0 || !stw_is_qualified_name(name))
        refuse_entry(path, key, key, key_text, f);
}

void stw_core_check_annotations(struct stw_json annotations, const char *path,
                                struct stw_findings *f)
{
    struct stw_json key, value;
    size_t total = 0;
    stw_json_foreach (annotations, key, value) {
        if (stw_findings_spent(f))
            return;
        total += stw_json_size(key) + stw_json_size(value);
        check_map_key(path, key, f);
    }
    if (total > ANNOTATIONS_MAX)
        stw_findings_add(f, path, STW_INVALID, NULL, "must be at most %d bytes in total",
                         ANNOTATIONS_MAX);
}

static bool is_label_value(struct stw_json value)
{
    char text[64];
    return stw_json_strcpy(value, text, sizeof(text)) == 0 && stw_is_label_value(text);
}

void stw_core_check_labels(struct stw_json labels, const char *path, struct stw_findings *f)
{
    struct stw_json key, value;
    stw_json_foreach (labels, key, value) {
        if (stw_findings_spent(f))
            return;
        check_map_key(path, key, f);
        if (stw_json_type(value) == STW_JSON_STRING && !is_label_value(value))
            refuse_entry(path, key, value, label_text, f);
    }
}

/* --- resources */

/* One entry of requests or limits. */
struct entry {
    const char *list; /* "requests", "limits" */
    char name[RESOURCE_NAME_MAX + 1];
    struct stw_json value;
    stw_quantity quantity;
};

static void refuse_resource(const struct entry *e, const char *path, struct stw_findings *f,
                            const char *message)
{
    char at[512];
    stw_format(at, sizeof(at), "%s.%s[%s]", path, e->list, e->name);
    stw_findings_at(f, at, STW_INVALID, e->value, "%s", message);
}

static bool is_known_resource(const char *name)
{
    static const char *const names[] = {"cpu", "memory", "ephemeral-storage"};
    for (size_t i = 0; i < STW_COUNT(names); i++)
        if (stw_streq(name, names[i]))
            return true;
    return strncmp(name, "hugepages-", 10) == 0 || strchr(name, '/');
}

static void check_within_limit(const struct entry *e, struct stw_json limits, const char *path,
                               struct stw_findings *f)
{
    char text[RESOURCE_NAME_MAX + 64];
    stw_quantity limit;
    if (stw_quantity_of(stw_json_get(limits, e->name), &limit) != 0 || e->quantity <= limit)
        return;
    stw_format(text, sizeof(text), "must be less than or equal to %s limit", e->name);
    refuse_resource(e, path, f, text);
}

static void check_entry(const struct entry *e, struct stw_json limits, const char *path,
                        struct stw_findings *f)
{
    bool is_limit = stw_streq(e->list, "limits");
    if (!is_known_resource(e->name))
        refuse_resource(
            e, path, f,
            "must be cpu, memory, ephemeral-storage, hugepages-<size> or a name with a domain "
            "such as example.com/gpu");
    else if (e->quantity <= 0)
        refuse_resource(e, path, f, "must be greater than 0");
    else if (e->quantity % MILLI != 0) /* the API server rounds it: an endless difference */
        refuse_resource(e, path, f, "must not be finer than 1m");
    else if (is_limit && stw_streq(e->name, "memory") &&
             e->quantity < (stw_quantity)(4 << 20) * NANO)
        refuse_resource(e, path, f, "must be at least 4Mi, or no container starts");
    else if (!is_limit)
        check_within_limit(e, limits, path, f);
}

/* The field table has already reported entries that are not quantities. */
static void check_list(struct stw_json resources, const char *list, const char *path,
                       struct stw_findings *f)
{
    struct entry e = {.list = list};
    struct stw_json key, limits = stw_json_get(resources, "limits");
    stw_json_foreach (stw_json_get(resources, list), key, e.value) {
        if (stw_findings_spent(f))
            return;
        if (stw_quantity_of(e.value, &e.quantity) == 0) {
            if (stw_json_strcpy(key, e.name, sizeof(e.name)) != 0)
                memcpy(e.name, "?", 2); /* longer than any valid name: treated as unknown */
            check_entry(&e, limits, path, f);
        }
    }
}

void stw_core_check_resources(struct stw_json resources, const char *path, struct stw_findings *f)
{
    check_list(resources, "limits", path, f);
    check_list(resources, "requests", path, f);
}
