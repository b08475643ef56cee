/* SPDX-License-Identifier: Apache-2.0
 *
 * Which fields an apply would change.  It removes the fields that its manager owns and that are no
 * longer desired: metadata.managedFields has them, with keys of list elements. */
#include "base/json.h"
#include "base/util.h"
#include "kube/owned.h"
#include "kube/owned/shadow_priv.h"

#include <string.h>

#define PATHS_MAX 1000u
#define PATH_LEN 1024u
#define DEPTH_MAX 64u

struct walk {
    struct stw_buf *out;
    char path[PATH_LEN];
    unsigned depth;
};

static void add_path(struct walk *w)
{
    stw_buf_addf(w->out, "%s%s", w->out->len ? ", " : "", w->path);
}

static bool has_all(const json_t *element, const json_t *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)keys, key, value)
        if (!json_equal(json_object_get(element, key), value))
            return false;
    return true;
}

/* The element of a list by its keys ('k:{"name":"a"}') or its value ('v:"a"'); NULL: none. */
static const json_t *find_element(const json_t *list, const char *field)
{
    json_auto_t *wanted = json_loads(field + 2, JSON_DECODE_ANY, NULL);
    const json_t *element;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)list, i, element)
        if (field[0] == 'k' ? has_all(element, wanted) : json_equal(element, wanted))
            return element;
    return NULL;
}

static void walk_owned(struct walk *w, const json_t *fields, const json_t *desired);

static void walk_field(struct walk *w, const char *field, const json_t *below,
                       const json_t *desired)
{
    size_t len = strlen(w->path);
    bool element = field[0] == 'k' || field[0] == 'v';
    const json_t *next =
        element ? find_element(desired, field) : json_object_get(desired, field + 2);
    if (len + strlen(field) + 4 > PATH_LEN)
        return;
    stw_format(w->path + len, PATH_LEN - len, element ? "[%s]" : len ? ".%s" : "%s", field + 2);
    if (!next)
        add_path(w);
    else
        walk_owned(w, below, next);
    w->path[len] = '\0';
}

static void walk_owned(struct walk *w, const json_t *fields, const json_t *desired)
{
    const char *field;
    json_t *below;
    if (++w->depth <= DEPTH_MAX)
        json_object_foreach ((json_t *)(uintptr_t)fields, field, below)
            if (field[0] && field[1] == ':' && strchr("fkv", field[0]))
                walk_field(w, field, below, desired);
    w->depth--;
}

static const json_t *applied_by(const json_t *live, const char *manager)
{
    const json_t *entry;
    size_t i;
    json_array_foreach (json_object_get(json_object_get(live, "metadata"), "managedFields"), i,
                        entry) {
        const char *who = json_string_value(json_object_get(entry, "manager"));
        const char *how = json_string_value(json_object_get(entry, "operation"));
        if (who && how && stw_streq(who, manager) && stw_streq(how, "Apply") &&
            !json_object_get(entry, "subresource"))
            return json_object_get(entry, "fieldsV1");
    }
    return NULL;
}

static void add_removed(const struct stw_buf *desired, const struct stw_buf *live,
                        const char *manager, struct stw_buf *out)
{
    json_auto_t *wanted = json_loadb(stw_buf_str(desired), desired->len, 0, NULL);
    json_auto_t *now = json_loadb(stw_buf_str(live), live->len, 0, NULL);
    struct walk w = {.out = out};
    walk_owned(&w, applied_by(now, manager), wanted);
}

void stw_shadow_fields(const struct stw_buf *desired, const struct stw_buf *live,
                       const char *manager, struct stw_buf *out)
{
    stw_autojson struct stw_json_doc a = {0}, b = {0};
    if (stw_json_scan(&a, stw_buf_str(desired), desired->len, NULL) != 0 ||
        stw_json_scan(&b, stw_buf_str(live), live->len, NULL) != 0)
        return;
    (void)stw_owned_diff(stw_json_root(&a), stw_json_root(&b), PATHS_MAX, out);
    if (manager)
        add_removed(desired, live, manager, out);
}

bool stw_shadow_restarts(const char *fields)
{
    static const char template[] = "spec.template";
    for (const char *p = fields; (p = strstr(p, template)); p += sizeof(template) - 1)
        if (p == fields || (p >= fields + 2 && p[-1] == ' ' && p[-2] == ','))
            return true;
    return false;
}
