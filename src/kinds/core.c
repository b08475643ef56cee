/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/core.h"

#include "base/util.h"
#include "kinds/names.h"

#include <stdio.h>

#define RESOURCE_NAME_MAX 317 /* a DNS subdomain, '/', 63 more */
#define NANO 1000000000
#define MILLI (NANO / 1000)

static const struct stw_field quantity = {.name = "", .type = STW_T_QUANTITY};

const struct stw_field stw_core_resources[] = {
    {.name = "limits",
     .type = STW_T_MAP,
     .help = "Most that a container may use of each resource.",
     .item = &quantity},
    {.name = "requests",
     .type = STW_T_MAP,
     .help = "What a node must have free of each resource; where it is absent, the limit.",
     .item = &quantity},
    {0},
};

static const struct stw_field pull_secret_fields[] = {
    {.name = "name",
     .type = STW_T_STRING,
     .help = "Name of a Secret in the same namespace.",
     .required = true,
     .check = stw_check_dns1123_subdomain},
    {0},
};

const struct stw_field stw_core_pull_secret = {
    .name = "", .type = STW_T_OBJECT, .fields = pull_secret_fields};
const char *const stw_core_pull_secret_keys[] = {"name", NULL};

const char *stw_core_check_key(const char *key)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.";
    return key[strspn(key, allowed)] ? "must consist of letters, digits, '-', '_' and '.'" : NULL;
}

/* One entry of requests or limits. */
struct entry {
    const char *list; /* "requests", "limits" */
    char name[RESOURCE_NAME_MAX + 1];
    struct stw_json value;
    stw_quantity quantity;
};

static void refuse(const struct entry *e, const char *path, struct stw_findings *f,
                   const char *message)
{
    char at[512];
    snprintf(at, sizeof(at), "%s.%s[%s]", path, e->list, e->name);
    stw_findings_at(f, at, STW_INVALID, e->value, "%s", message);
}

static bool is_known(const char *name)
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
    snprintf(text, sizeof(text), "must be less than or equal to %s limit", e->name);
    refuse(e, path, f, text);
}

static void check_entry(const struct entry *e, struct stw_json limits, const char *path,
                        struct stw_findings *f)
{
    bool is_limit = stw_streq(e->list, "limits");
    if (!is_known(e->name))
        refuse(e, path, f,
               "must be cpu, memory, ephemeral-storage, hugepages-<size> or a name with a domain "
               "such as example.com/gpu");
    else if (e->quantity <= 0)
        refuse(e, path, f, "must be greater than 0");
    else if (e->quantity % MILLI !=
             0) /* rounded by the API server: for us a difference without end */
        refuse(e, path, f, "must not be finer than 1m");
    else if (is_limit && stw_streq(e->name, "memory") &&
             e->quantity < (stw_quantity)(4 << 20) * NANO)
        refuse(e, path, f, "must be at least 4Mi, or no container starts");
    else if (!is_limit)
        check_within_limit(e, limits, path, f);
}

/* Entries that are no quantity were found by the table already. */
static void check_list(struct stw_json resources, const char *list, const char *path,
                       struct stw_findings *f)
{
    struct entry e = {.list = list};
    struct stw_json key, limits = stw_json_get(resources, "limits");
    stw_json_foreach (stw_json_get(resources, list), key, e.value)
        if (stw_quantity_of(e.value, &e.quantity) == 0) {
            if (stw_json_strcpy(key, e.name, sizeof(e.name)) != 0)
                memcpy(e.name, "?", 2); /* longer than any name: an unknown one */
            check_entry(&e, limits, path, f);
        }
}

void stw_core_check_resources(struct stw_json resources, const char *path, struct stw_findings *f)
{
    check_list(resources, "limits", path, f);
    check_list(resources, "requests", path, f);
}
