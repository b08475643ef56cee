/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/manifests.h"

#include <ctype.h>

#define DEPTH_MAX 8
#define AT_MAX 256

struct manifest_walk {
    stw_manifest_fn *fn;
    void *ctx;
    struct stw_error *err;
};

static bool ends_in_list(const char *kind)
{
    size_t len = strlen(kind);
    return len >= 4 && stw_streq(kind + len - 4, "List");
}

/* Elements of a typed list may leave out what the list says, as for kubectl. */
static void fill_type(struct stw_json object, const struct stw_manifest *list,
                      struct stw_manifest *m)
{
    size_t suffix = list && ends_in_list(list->kind) ? strlen("List") : 0;
    struct stw_json version = stw_json_get(object, "apiVersion"),
                    kind = stw_json_get(object, "kind");
    bool untyped = !stw_json_there(version) && !stw_json_there(kind);
    if (stw_json_strcpy(version, m->api_version, sizeof(m->api_version)) != 0)
        m->api_version[0] = '\0';
    if (stw_json_strcpy(kind, m->kind, sizeof(m->kind)) != 0)
        m->kind[0] = '\0';
    if (!untyped || !list || stw_streq(list->kind, "List") ||
        stw_json_type(object) != STW_JSON_OBJECT)
        return;
    stw_format(m->api_version, sizeof(m->api_version), "%s", list->api_version);
    stw_format(m->kind, sizeof(m->kind), "%.*s", (int)(strlen(list->kind) - suffix), list->kind);
}

/* kubectl takes an object of any kind apart that has items, and applies these alone. */
static int walk_manifest(const struct manifest_walk *w, struct stw_json object,
                         const struct stw_manifest *list, const char *at, unsigned depth)
{
    struct stw_manifest m = {.object = object, .at = at};
    struct stw_json items = stw_json_get(object, "items"), key, item;
    uint32_t i = 0;
    fill_type(object, list, &m);
    bool has_items = stw_json_type(items) == STW_JSON_ARRAY;
    if (!has_items || !ends_in_list(m.kind))
        w->fn(w->ctx, &m);
    if (!has_items)
        return 0;
    if (depth >= DEPTH_MAX)
        return stw_fail(w->err, STW_ERR_TOO_LARGE, "lists are nested too deeply");
    stw_json_foreach (items, key, item) {
        char inner[AT_MAX];
        if (stw_format_whole(inner, sizeof(inner), "%sitems[%u].", at, i++) != 0)
            return stw_fail(w->err, STW_ERR_TOO_LARGE, "lists are nested too deeply");
        if (walk_manifest(w, item, &m, inner, depth + 1) != 0)
            return -1;
    }
    return 0;
}

int stw_manifest_each(struct stw_json root, stw_manifest_fn *fn, void *ctx, struct stw_error *err)
{
    const struct manifest_walk w = {fn, ctx, err};
    return walk_manifest(&w, root, NULL, "", 0);
}

void stw_manifest_split(const char *api_version, char *group, char *version, size_t size)
{
    const char *slash = strchr(api_version, '/');
    int len = slash ? (int)(slash - api_version) : 0;
    stw_format(group, size, "%.*s", len, api_version);
    stw_format(version, size, "%s", slash ? slash + 1 : api_version);
}

/* --- Helm's comments */

static const char *find_line(struct stw_manifest_text *t, size_t line)
{
    const char *end = t->text + t->len;
    if (!t->at) {
        t->at = t->text;
        t->line = 1;
    }
    while (t->line < line) {
        const char *stop = memchr(t->at, '\n', (size_t)(end - t->at));
        if (!stop)
            break;
        t->at = stop + 1;
        t->line++;
    }
    return t->at;
}

static bool take_source(const char *line, const char *end, char *out, size_t size)
{
    static const char mark[] = "# Source: ";
    const size_t skip = sizeof(mark) - 1;
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    size_t n = (size_t)((stop ? stop : end) - line);
    if (n <= skip || memcmp(line, mark, skip) != 0)
        return false;
    stw_format(out, size, "%.*s", (int)STW_MIN(n - skip, size - 1), line + skip);
    out[strcspn(out, "\r\n")] = '\0';
    return true;
}

static bool is_blank_line(const char *line, const char *end)
{
    while (line < end && isspace((unsigned char)*line))
        line++;
    return line == end;
}

/* Comments of a document are above its first line, up to "---". */
static void look_above(const struct stw_manifest_text *t, const char *at, char *out, size_t size)
{
    const char *end = t->text + t->len;
    out[0] = '\0';
    while (at > t->text) {
        const char *up = at - 1;
        while (up > t->text && up[-1] != '\n')
            up--;
        if (take_source(up, end, out, size) || (*up != '#' && !is_blank_line(up, at)))
            return;
        at = up;
    }
}

void stw_manifest_source(struct stw_manifest_text *t, size_t line, char *out, size_t size)
{
    const char *at = find_line(t, line);
    if (at != t->asked)
        look_above(t, at, t->source, sizeof(t->source));
    t->asked = at;
    stw_format(out, size, "%s", t->source);
}
