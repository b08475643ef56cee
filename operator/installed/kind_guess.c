/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/kind_guess.h"

#include "base/guess.h"
#include "schema/kind.h"

#define NAMES_MAX 2048

static void refuse(const struct stw_manifest *m, const char *field, const char *text,
                   struct stw_findings *f)
{
    stw_findings_at(f, field, STW_NOT_SUPPORTED, stw_json_get(m->object, field), "%s", text);
}

static void refuse_version(const struct stw_manifest *m, const struct stw_kind *meant,
                           struct stw_findings *f)
{
    char text[512];
    stw_format(text, sizeof(text), "did you mean \"%s/%s\"?", meant->group, meant->version);
    refuse(m, "apiVersion", text, f);
}

/* The kind of this name, in `group` if it is there, else in another of our groups. */
static const struct stw_kind *find_namesake(const struct stw_kind *const *kinds, const char *group,
                                            const char *kind)
{
    const struct stw_kind *other = NULL;
    for (size_t i = 0; kinds[i]; i++) {
        if (!stw_streq(kinds[i]->kind, kind))
            continue;
        if (stw_streq(kinds[i]->group, group))
            return kinds[i];
        other = kinds[i];
    }
    return other;
}

static void refuse_kind(const struct stw_kind *const *kinds, const struct stw_manifest *m,
                        const char *group, struct stw_findings *f)
{
    struct stw_guess g;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(NAMES_MAX);
    stw_guess_init(&g, m->kind);
    for (size_t i = 0; kinds[i]; i++) {
        if (!stw_streq(kinds[i]->group, group))
            continue;
        stw_guess_offer(&g, kinds[i]->kind);
        stw_buf_addf(&text, "%s\"%s\"", text.len ? ", " : "supported values: ", kinds[i]->kind);
    }
    if (g.best) {
        stw_buf_clear(&text);
        stw_buf_addf(&text, "did you mean \"%s\"?", g.best);
    }
    refuse(m, "kind", stw_buf_str(&text), f);
    f->failed |= text.failed;
}

static bool is_our_group(const struct stw_kind *const *kinds, const char *group)
{
    for (size_t i = 0; kinds[i]; i++)
        if (stw_streq(kinds[i]->group, group))
            return true;
    return false;
}

static bool is_almost(const char *group, const char *ours)
{
    struct stw_guess g;
    stw_guess_init(&g, group);
    stw_guess_offer(&g, ours);
    return g.best != NULL;
}

bool stw_kind_guess(const struct stw_kind *const *kinds, const struct stw_manifest *m,
                    struct stw_findings *f)
{
    char group[sizeof(m->api_version)], version[sizeof(m->api_version)];
    stw_manifest_split(m->api_version, group, version, sizeof(group));
    const struct stw_kind *namesake = find_namesake(kinds, group, m->kind);
    if (!is_our_group(kinds, group) &&
        !(namesake && (!*group || is_almost(group, namesake->group))))
        return false;
    if (namesake)
        refuse_version(m, namesake, f);
    else
        refuse_kind(kinds, m, group, f);
    return true;
}

bool stw_kind_refuse_other(const struct stw_kind *const *others, const struct stw_manifest *m,
                           struct stw_findings *f)
{
    char group[sizeof(m->api_version)], version[sizeof(m->api_version)];
    stw_manifest_split(m->api_version, group, version, sizeof(group));
    for (; others && *others; others++) {
        if (!stw_streq((*others)->kind, m->kind) || !stw_streq((*others)->group, group))
            continue;
        refuse(m, "kind", "this kind is left out with --kinds: the cluster does not have it", f);
        return true;
    }
    return false;
}
