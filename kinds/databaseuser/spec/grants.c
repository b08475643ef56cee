/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules on the grants of a DatabaseUser. */
#include "kinds/databaseuser/spec/spec_priv.h"

#include "base/arena.h"
#include "base/util.h"

#include <stdio.h>
#include <strings.h>

#define PATH_MAX_BYTES 96
#define ALL_DATABASES "*"

/* A grant being checked. */
struct subject {
    const struct dbu_scene *s;
    uint32_t index;
    struct dbu_spec_grant grant; /* members of a wrong type are left out */
};

static void path_to(const struct subject *g, const char *field, char path[PATH_MAX_BYTES])
{
    stw_format(path, PATH_MAX_BYTES, "spec.grants[%u]%s", g->index, field);
}

static bool is_all(const char *text)
{
    return text && stw_streq(text, ALL_DATABASES);
}

/* --- the place of a grant */

static unsigned find_grant_place(const struct subject *g)
{
    if (g->grant.routine)
        return STW_ON_ROUTINE;
    if (stw_json_size(g->grant.columns) > 0)
        return STW_ON_COLUMN;
    if (g->grant.table && !(is_all(g->grant.table) && !g->s->engine->has_schemas))
        return STW_ON_TABLE;
    if (g->grant.schema && g->s->engine->has_schemas)
        return STW_ON_SCHEMA;
    return is_all(g->grant.database) && g->s->engine->has_all_databases ? STW_ON_ALL
                                                                        : STW_ON_DATABASE;
}

/* Privileges on the server itself, each of which the target lists: they read and write no data, so that
 * they need no right on all databases. */
static bool is_on_server(const struct subject *g)
{
    struct stw_json key, privilege;
    stw_json_foreach (g->grant.privileges, key, privilege) {
        char name[65];
        const struct stw_engine_privilege *p;
        if (stw_json_strcpy(privilege, name, sizeof(name)) != 0)
            return false;
        p = stw_engine_privilege(g->s->target->engine, name);
        if (!p || p->places != STW_ON_ALL || !stw_target_lists_privilege(g->s->target, name))
            return false;
    }
    return !g->grant.grant_option;
}

static void check_all_databases(const struct subject *g)
{
    char path[PATH_MAX_BYTES];
    path_to(g, ".database", path);
    if (!g->s->engine->has_all_databases)
        dbu_add_finding(g->s, path, STW_INVALID, ALL_DATABASES,
                        "not supported on %s; name each database", g->s->engine->name);
    else if (!g->s->target->allow_all_databases && !is_on_server(g))
        dbu_add_finding(g->s, path, STW_FORBIDDEN, NULL,
                        "target \"%s\" does not allow grants on all databases", g->s->target_name);
    const char *const parts[][2] = {{".table", g->grant.table}, {".routine", g->grant.routine}};
    for (size_t i = 0; i < STW_COUNT(parts); i++) {
        path_to(g, parts[i][0], path);
        if (parts[i][1])
            dbu_add_finding(g->s, path, STW_INVALID, parts[i][1],
                            "must be left out when database is \"*\"");
    }
}

/* Also where the engine is unknown, as in CEL. */
static void check_every_schema(const struct subject *g)
{
    char path[PATH_MAX_BYTES];
    bool one = (g->grant.table && !is_all(g->grant.table)) ||
               (g->grant.routine && !is_all(g->grant.routine));
    if (!is_all(g->grant.schema) || !one || (g->s->engine && !g->s->engine->has_schemas))
        return;
    path_to(g, ".schema", path);
    dbu_add_finding(g->s, path, STW_INVALID, g->grant.schema, DBU_NOT_IN_EVERY_SCHEMA);
}

static void check_schema(const struct subject *g)
{
    char path[PATH_MAX_BYTES];
    const struct stw_engine_info *engine = g->s->engine;
    path_to(g, ".schema", path);
    if (g->grant.schema && !engine->has_schemas)
        dbu_add_unsupported(g->s, path, g->grant.schema);
    else if (g->grant.table && !g->grant.schema && engine->has_schemas)
        dbu_add_finding(g->s, path, STW_REQUIRED, NULL, "a table of %s is in a schema",
                        engine->name);
    if (!is_all(g->grant.table) || engine->has_schemas || is_all(g->grant.database))
        return;
    path_to(g, ".table", path);
    dbu_add_finding(g->s, path, STW_INVALID, g->grant.table,
                    "leave table out for all tables of a database");
}

static void check_routine(const struct subject *g)
{
    char path[PATH_MAX_BYTES];
    const struct stw_engine_info *engine = g->s->engine;
    path_to(g, ".routine", path);
    if (!g->grant.routine)
        return;
    if (g->grant.table)
        dbu_add_finding(g->s, path, STW_FORBIDDEN, NULL, DBU_ONE_OF_TABLE_ROUTINE);
    if (!engine)
        return;
    (void)dbu_check_name(g->s, path, g->grant.routine, engine->name_max);
    if (!engine->has_schemas) {
        if (is_all(g->grant.routine) && !is_all(g->grant.database))
            dbu_add_finding(g->s, path, STW_INVALID, g->grant.routine,
                            "leave routine out for all routines of a database");
        return;
    }
    path_to(g, ".schema", path);
    if (!g->grant.schema)
        dbu_add_finding(g->s, path, STW_REQUIRED, NULL, "a function of %s is in a schema",
                        engine->name);
}

/* Column names of MySQL and MariaDB differ in more than case. */
static bool is_again(const struct subject *g, uint32_t index, const char *name)
{
    char other[65 * 4];
    for (uint32_t i = 0; i < index; i++)
        if (stw_json_strcpy(stw_json_at(g->grant.columns, i), other, sizeof(other)) == 0 &&
            strcasecmp(name, other) == 0 && !stw_streq(name, other))
            return true;
    return false;
}

static void check_columns(const struct subject *g)
{
    char path[PATH_MAX_BYTES], name[65 * 4];
    const struct stw_engine_info *engine = g->s->engine;
    uint32_t count = stw_json_size(g->grant.columns);
    path_to(g, ".columns", path);
    if (count > 0 && (!g->grant.table || is_all(g->grant.table)))
        dbu_add_finding(g->s, path, STW_FORBIDDEN, NULL, DBU_COLUMNS_NEED_TABLE);
    if (count == 0 || !engine)
        return;
    if (g->grant.grant_option && !engine->has_schemas)
        dbu_add_finding(g->s, path, STW_FORBIDDEN, NULL,
                        "%s has no grantOption of columns, only of their table", engine->name);
    for (uint32_t i = 0; i < STW_MIN(count, DBU_COLUMNS_MAX); i++) {
        stw_format(path, sizeof(path), "spec.grants[%u].columns[%u]", g->index, i);
        if (stw_json_strcpy(stw_json_at(g->grant.columns, i), name, sizeof(name)) != 0 || !*name)
            continue; /* the field table reports it */
        if (dbu_check_name(g->s, path, name, engine->name_max) && !engine->has_schemas &&
            is_again(g, i, name))
            dbu_add_finding(g->s, path, STW_DUPLICATE, name, "%s", "");
    }
}

/* In a grant of MySQL such a name is a pattern, which steward writes as a name. */
static void warn_of_pattern(const struct subject *g)
{
    if (g->s->engine->has_all_databases && g->grant.database && strchr(g->grant.database, '%'))
        stw_findings_warn(g->s->f,
                          "spec.grants[%u].database: \"%%\" is part of the name of one database, "
                          "not a pattern",
                          g->index);
}

static void check_names(const struct subject *g)
{
    const struct {
        const char *field, *name;
    } names[] = {
        {".database", g->grant.database}, {".schema", g->grant.schema}, {".table", g->grant.table}};
    for (size_t i = 0; i < STW_COUNT(names); i++) {
        char path[PATH_MAX_BYTES];
        path_to(g, names[i].field, path);
        if (names[i].name)
            (void)dbu_check_name(g->s, path, names[i].name, g->s->engine->name_max);
    }
}

static void check_reserved(const struct subject *g)
{
    char path[PATH_MAX_BYTES];
    const struct dbu_scene *s = g->s;
    path_to(g, ".database", path);
    if (g->grant.database && stw_engine_reserves_database(s->target->engine, g->grant.database))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL, "\"%s\" is reserved on %s", g->grant.database,
                        s->engine->name);
    path_to(g, ".schema", path);
    if (g->grant.schema && stw_engine_reserves_schema(s->target->engine, g->grant.schema))
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL, "\"%s\" is reserved on %s", g->grant.schema,
                        s->engine->name);
}

/* Skipped when the namespace is unknown, as for a file that is only validated. */
static void check_database(const struct subject *g)
{
    char path[PATH_MAX_BYTES];
    const struct dbu_scene *s = g->s;
    const char *ns = s->a->ns, *database = g->grant.database;
    if (!database || !ns || !*ns || stw_target_allows_database(s->target, ns, database) ||
        stw_engine_reserves_database(s->target->engine, database))
        return;
    path_to(g, ".database", path);
    if (s->target->allowed_databases)
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL,
                        "target \"%s\" does not allow \"%.64s\" for namespace \"%s\"; have it "
                        "added to allowedDatabases of the target",
                        s->target_name, database, ns);
    else
        dbu_add_finding(s, path, STW_FORBIDDEN, NULL,
                        "target \"%s\" does not allow \"%.64s\" for namespace \"%s\": without "
                        "allowedDatabases it gives \"%s\" and names that begin with \"%s-\" or "
                        "\"%s_\"",
                        s->target_name, database, ns, ns, ns, ns);
}

/* --- privileges */

static void privilege_path(const struct subject *g, uint32_t i, char path[PATH_MAX_BYTES])
{
    stw_format(path, PATH_MAX_BYTES, "spec.grants[%u].privileges[%u]", g->index, i);
}

static void add_privilege(const struct subject *g, uint32_t i, enum stw_finding_code code,
                          const char *name, const char *message)
{
    char path[PATH_MAX_BYTES];
    privilege_path(g, i, path);
    dbu_add_finding(g->s, path, code, name, "%s", message);
}

static void refuse_privilege(const struct subject *g, uint32_t i, const char *name)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1024);
    stw_buf_adds(&text, "supported values: ");
    stw_engine_list_privileges(g->s->target->engine, find_grant_place(g), &text);
    add_privilege(g, i, STW_NOT_SUPPORTED, name, stw_buf_str(&text));
    g->s->f->failed |= text.failed;
}

static bool some_engine_has(const char *name)
{
    for (enum stw_engine e = 0; e < STW_ENGINES; e++)
        if (stw_engine_privilege(e, name))
            return true;
    return false;
}

static void check_allowed(const struct subject *g, const char *path, const char *privilege)
{
    if (!stw_target_allows_privilege(g->s->target, privilege))
        dbu_add_finding(g->s, path, STW_FORBIDDEN, NULL, "target \"%s\" does not allow %s",
                        g->s->target_name, privilege);
}

static void check_privilege(const struct subject *g, uint32_t i, const char *name)
{
    char path[PATH_MAX_BYTES];
    const struct stw_engine_privilege *p;
    if (!g->s->engine || !g->s->target) {
        if (!some_engine_has(name))
            add_privilege(g, i, STW_NOT_SUPPORTED, name, "no engine has such a privilege");
        return;
    }
    p = stw_engine_privilege(g->s->target->engine, name);
    if (!p || !(p->places & find_grant_place(g))) {
        refuse_privilege(g, i, name);
        return;
    }
    privilege_path(g, i, path);
    check_allowed(g, path, name);
    if (p->listed && g->grant.grant_option)
        dbu_add_finding(g->s, path, STW_FORBIDDEN, NULL, "%s is not given with grantOption", name);
}

/* Whether `name` is in the list before `end`. */
static bool has_name_before(struct stw_json list, const char *name, uint32_t end)
{
    for (uint32_t i = 0; i < end; i++)
        if (stw_json_is(stw_json_at(list, i), name))
            return true;
    return false;
}

static void check_privileges(const struct subject *g)
{
    char name[65];
    struct stw_json list = g->grant.privileges;
    uint32_t count = stw_json_size(list);
    if (count > DBU_PRIVILEGES_MAX)
        return; /* the field table reports it */
    bool all = has_name_before(list, "ALL", count);
    for (uint32_t i = 0; i < count; i++) {
        if (stw_json_strcpy(stw_json_at(list, i), name, sizeof(name)) != 0 || !*name)
            continue; /* the field table reports it */
        if (has_name_before(list, name, i))
            add_privilege(g, i, STW_DUPLICATE, name, "");
        else if (all && !stw_streq(name, "ALL"))
            add_privilege(g, i, STW_INVALID, name, "must be left out, because ALL is in the list");
        else
            check_privilege(g, i, name);
    }
    if (all)
        stw_findings_warn(
            g->s->f, "spec.grants[%u].privileges: ALL is more than most accounts need", g->index);
}

static void check_option(const struct subject *g)
{
    char path[PATH_MAX_BYTES];
    if (!g->grant.grant_option)
        return;
    path_to(g, ".grantOption", path);
    if (g->s->target)
        check_allowed(g, path, "GRANT OPTION");
    stw_findings_warn(g->s->f, "%s: the account may give these rights to others", path);
}

/* --- all of it */

static void check_grant(const struct subject *g)
{
    check_routine(g);
    check_every_schema(g);
    check_columns(g);
    if (g->s->engine) {
        check_names(g);
        check_reserved(g);
        check_schema(g);
        warn_of_pattern(g);
        if (is_all(g->grant.database))
            check_all_databases(g);
        else
            check_database(g);
    }
    check_privileges(g);
    check_option(g);
}

static void check_duplicate(const struct subject *all, uint32_t index)
{
    char path[PATH_MAX_BYTES];
    const struct dbu_spec_grant *g = &all[index].grant, *other;
    if (stw_json_size(g->columns) > 0)
        return;
    for (uint32_t i = 0; i < index && g->database; i++) {
        other = &all[i].grant;
        if (!stw_same(g->database, other->database) || !stw_same(g->schema, other->schema) ||
            !stw_same(g->table, other->table) || !stw_same(g->routine, other->routine) ||
            stw_json_size(other->columns) > 0)
            continue;
        path_to(&all[index], "", path);
        dbu_add_finding(all[index].s, path, STW_DUPLICATE, NULL,
                        "spec.grants[%u] is for the same; put the privileges into one list", i);
        return;
    }
}

void dbu_check_grants(const struct dbu_scene *s)
{
    struct stw_arena arena;
    struct stw_json list = s->user->grants;
    uint32_t count = stw_json_size(list);
    if (count == 0 || count > DBU_GRANTS_MAX)
        return; /* the field table reports it */
    stw_arena_init(&arena);
    struct subject *all = stw_arena_alloc(&arena, count * sizeof(*all));
    s->f->failed |= !all;
    for (uint32_t i = 0; all && i < count; i++) {
        all[i] = (struct subject){.s = s, .index = i};
        /* wrong types have been reported already */
        (void)stw_fields_decode(dbu_grant_fields, stw_json_at(list, i), &arena, &all[i].grant);
        check_grant(&all[i]);
        check_duplicate(all, i);
    }
    stw_arena_done(&arena);
}
