/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules on the databases of a DatabaseUser. */
#include "kinds/databaseuser/spec/spec_priv.h"

#include "base/arena.h"
#include "base/util.h"
#include "sql/core/databases.h"

#include <stdio.h>

#define PATH_MAX_BYTES 96

struct checked_database {
    const struct dbu_scene *s;
    uint32_t index;
    struct dbu_spec_database db; /* members of a wrong type are left out */
};

static void path_to(const struct checked_database *d, const char *field, char path[PATH_MAX_BYTES])
{
    stw_format(path, PATH_MAX_BYTES, "spec.databases[%u]%s", d->index, field);
}

/* The admin logs in to its own database. */
static bool is_reserved(const struct stw_target *t, const char *name)
{
    return stw_engine_reserves_database(t->engine, name) ||
           (t->engine == STW_ENGINE_POSTGRESQL && stw_streq(name, "postgres")) ||
           (t->admin_database && stw_streq(name, t->admin_database));
}

static void check_name(const struct checked_database *d)
{
    char path[PATH_MAX_BYTES];
    const struct dbu_scene *s = d->s;
    const char *ns = s->a->ns, *name = d->db.name;
    path_to(d, ".name", path);
    if (!name || !*name || !dbu_check_name(s, path, name, s->engine->name_max))
        return;
    if (is_reserved(s->target, name))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL, "\"%s\" is reserved on %s", name,
                        s->engine->name);
    else if (ns && *ns && !stw_target_allows_create(s->target, ns, name))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL,
                        "target \"%s\" does not allow namespace \"%s\" to create the database "
                        "\"%.64s\"; have it added to allowCreateDatabases of the target",
                        s->target_name, ns, name);
}

static void check_extensions(const struct checked_database *d)
{
    uint32_t count = stw_json_size(d->db.extensions);
    for (uint32_t i = 0; i < STW_MIN(count, DBU_EXTENSIONS_MAX); i++) {
        char path[PATH_MAX_BYTES], name[64];
        stw_format(path, sizeof(path), "spec.databases[%u].extensions[%u]", d->index, i);
        if (stw_json_strcpy(stw_json_at(d->db.extensions, i), name, sizeof(name)) != 0 || !*name)
            continue; /* the field table reports it */
        if (!d->s->engine->has_schemas)
            dbu_add_unsupported(d->s, path, name);
        else if (d->s->a->ns && !stw_target_allows_extension(d->s->target, d->s->a->ns, name))
            dbu_add_finding(d->s, path, STW_FORBIDDEN, NULL,
                            "target \"%s\" does not allow the extension \"%s\"; have it added "
                            "to allowedExtensions of the target",
                            d->s->target_name, name);
    }
}

static void check_schemas(const struct checked_database *d)
{
    uint32_t count = stw_json_size(d->db.schemas);
    for (uint32_t i = 0; i < STW_MIN(count, DBU_SCHEMAS_MAX); i++) {
        char path[PATH_MAX_BYTES], name[256];
        stw_format(path, sizeof(path), "spec.databases[%u].schemas[%u]", d->index, i);
        if (stw_json_strcpy(stw_json_at(d->db.schemas, i), name, sizeof(name)) != 0 || !*name)
            continue; /* the field table reports it */
        if (!d->s->engine->has_schemas)
            dbu_add_unsupported(d->s, path, name);
        else if (stw_engine_reserves_schema(d->s->target->engine, name))
            dbu_add_finding(d->s, path, STW_FORBIDDEN, NULL, "\"%s\" is reserved on %s", name,
                            d->s->engine->name);
        else
            (void)dbu_check_name(d->s, path, name, d->s->engine->name_max);
    }
}

static void check_locale(const struct checked_database *d)
{
    char path[PATH_MAX_BYTES];
    const char *collation = d->db.collation;
    path_to(d, ".collation", path);
    if (collation && !d->s->engine->has_schemas && collation[strspn(collation, DBU_WORD)])
        dbu_add_finding(d->s, path, STW_INVALID, collation,
                        "must consist of letters, digits and '_' on %s", d->s->engine->name);
}

static void check_duplicates(const struct checked_database *d, struct stw_json list,
                             const char *field)
{
    for (uint32_t i = 1; i < STW_MIN(stw_json_size(list), DBU_SCHEMAS_MAX); i++) {
        char path[PATH_MAX_BYTES];
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++)
            again = stw_json_equal(stw_json_at(list, i), stw_json_at(list, k));
        stw_format(path, sizeof(path), "spec.databases[%u].%s[%u]", d->index, field, i);
        if (again)
            stw_findings_at(d->s->f, path, STW_DUPLICATE, stw_json_at(list, i), "%s", "");
    }
}

static void check_same_name(const struct checked_database *all, uint32_t index)
{
    char path[PATH_MAX_BYTES];
    const char *name = all[index].db.name;
    for (uint32_t i = 0; i < index && name; i++) {
        if (!stw_same(name, all[i].db.name))
            continue;
        path_to(&all[index], ".name", path);
        dbu_add_finding(all[index].s, path, STW_DUPLICATE, name, "%s", "");
        return;
    }
}

static void check_owned(const struct checked_database *d)
{
    char path[PATH_MAX_BYTES];
    path_to(d, ".owner", path);
    if (!d->db.owner)
        return;
    if (!d->s->engine->has_schemas)
        dbu_add_unsupported(d->s, path, "true");
    else
        stw_findings_warn(d->s->f,
                          "%s: the account may drop the database, change its settings, and give "
                          "others rights on it",
                          path);
}

static void warn_of_deletion(const struct checked_database *d)
{
    if (d->db.deletion_policy && stw_streq(d->db.deletion_policy, "Delete"))
        stw_findings_warn(d->s->f,
                          "spec.databases[%u]: deletionPolicy is Delete: the database is dropped "
                          "with all its data when this object is deleted and has the "
                          "annotation " DBU_CONFIRM_DROP_TEXT ": %.64s",
                          d->index, d->db.name ? d->db.name : "");
}

static void check_one(const struct checked_database *all, uint32_t i)
{
    const struct checked_database *d = &all[i];
    check_same_name(all, i);
    check_duplicates(d, d->db.extensions, "extensions");
    check_duplicates(d, d->db.schemas, "schemas");
    warn_of_deletion(d);
    if (!d->s->target || !d->s->engine)
        return;
    check_name(d);
    check_extensions(d);
    check_schemas(d);
    check_owned(d);
    check_locale(d);
}

void dbu_check_databases(const struct dbu_scene *s)
{
    struct stw_arena arena;
    struct stw_json list = s->user->databases;
    uint32_t count = stw_json_size(list);
    if (count == 0 || count > DBU_DATABASES_MAX)
        return; /* the field table reports it */
    stw_arena_init(&arena);
    struct checked_database *all = stw_arena_alloc(&arena, count * sizeof(*all));
    s->f->failed |= !all;
    for (uint32_t i = 0; all && i < count; i++) {
        all[i] = (struct checked_database){.s = s, .index = i};
        /* wrong types have been reported already */
        (void)stw_fields_decode(dbu_database_fields, stw_json_at(list, i), &arena, &all[i].db);
        check_one(all, i);
    }
    stw_arena_done(&arena);
}

/* --- before a deletion */

bool dbu_confirms(struct stw_json object, const char *annotation, const char *name)
{
    char text[DBU_DATABASES_MAX * 260];
    struct stw_json value = stw_json_get(stw_json_path(object, "metadata.annotations"), annotation);
    char *rest = text;
    if (stw_json_strcpy(value, text, sizeof(text)) != 0)
        return false;
    if (stw_streq(text, name))
        return true;
    for (char *one; (one = strsep(&rest, ","));) {
        one += strspn(one, " ");
        size_t len = strlen(one);
        while (len > 0 && one[len - 1] == ' ')
            one[--len] = '\0';
        if (stw_streq(one, name))
            return true;
    }
    return false;
}

void dbu_advise_databases(const struct stw_admission *a, struct stw_findings *f)
{
    char annotation[STW_OWN_NAME_LEN] = DBU_CONFIRM_DROP_TEXT;
    struct stw_json key, one, list = stw_json_path(a->old_object, "status.databases");
    if (a->env && a->env->op)
        stw_operator_text(a->env->op, DBU_CONFIRM_DROP, annotation);
    stw_json_foreach (list, key, one) {
        char name[260];
        bool drop = stw_json_is(stw_json_get(one, "deletionPolicy"), "Delete");
        if (stw_json_strcpy(stw_json_get(one, "name"), name, sizeof(name)) != 0)
            continue;
        if (drop && dbu_confirms(a->old_object, annotation, name))
            stw_findings_warn(f, "database %s is dropped with all its data", name);
        else
            stw_findings_warn(f, "database %s stays%s%s", name,
                              drop ? ": it would be dropped with the annotation " : "",
                              drop ? annotation : "");
    }
}
