/* SPDX-License-Identifier: Apache-2.0
 *
 * Rights on PostgreSQL: those that a grant requests, and those that a role has on the schemas and
 * tables of a database.  Rights that all roles have through PUBLIC do not count, and neither do
 * those on types and languages.  Rights on functions count only where a grant or the mark has them.
 *
 * A grant on the table "*" is on all existing tables, or, for USAGE, on all sequences, or, for
 * EXECUTE, on all functions, and on later ones by default privileges (future.c).  The schema "*" is
 * all schemas; later ones get the right when the account is next looked up.  A mark has both as "*". */
#include "sql/core/quote.h"
#include "sql/core/roles.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

#define ON_DATABASE 1u
#define ON_SCHEMA 2u
#define ON_TABLE 4u
#define ON_SEQUENCE 8u
#define ON_ROUTINE 16u
#define ON_COLUMN 32u

static const struct privilege {
    const char *name;
    unsigned on;
    unsigned since; /* server_version_num */
} privileges[] = {
    {"CONNECT", ON_DATABASE, 0},
    {"CREATE", ON_DATABASE | ON_SCHEMA, 0},
    {"TEMPORARY", ON_DATABASE, 0},
    {"USAGE", ON_SCHEMA | ON_SEQUENCE, 0},
    {"SELECT", ON_TABLE | ON_COLUMN, 0},
    {"INSERT", ON_TABLE | ON_COLUMN, 0},
    {"UPDATE", ON_TABLE | ON_COLUMN, 0},
    {"DELETE", ON_TABLE, 0},
    {"TRUNCATE", ON_TABLE, 0},
    {"REFERENCES", ON_TABLE | ON_COLUMN, 0},
    {"TRIGGER", ON_TABLE, 0},
    {"MAINTAIN", ON_TABLE, 170000},
    {"EXECUTE", ON_ROUTINE, 0},
};

static const char *const places[] = {[STW_LEVEL_DATABASE] = "a database",
                                     [STW_LEVEL_SCHEMA] = "a schema",
                                     [STW_LEVEL_TABLE] = "a table or sequence",
                                     [STW_LEVEL_COLUMN] = "a column"};

/* ALL on tables does not include the right on sequences. */
static unsigned on_of(const struct stw_grant *g, uint8_t level, bool all)
{
    if (g->routine)
        return ON_ROUTINE;
    if (level == STW_LEVEL_COLUMN)
        return ON_COLUMN;
    return level == STW_LEVEL_DATABASE ? ON_DATABASE
           : level == STW_LEVEL_SCHEMA ? ON_SCHEMA
           : all                       ? ON_TABLE
                                       : ON_TABLE | ON_SEQUENCE;
}

static void add_right_and_option(struct stw_right r, bool option, struct stw_rights *ret)
{
    stw_rights_add(ret, &r);
    r.option = true;
    if (option)
        stw_rights_add(ret, &r);
}

static int add_privilege(const struct stw_grant *g, struct stw_right r, const char *name,
                         const struct stw_facts *k, struct stw_rights *ret, struct stw_error *err)
{
    bool all = stw_streq(name, "ALL") || stw_streq(name, "ALL PRIVILEGES"), found = false;
    unsigned since = 0;
    unsigned on = on_of(g, r.level, all);
    if (stw_streq(name, "TEMP"))
        name = "TEMPORARY";
    for (size_t i = 0; i < STW_COUNT(privileges); i++) {
        const struct privilege *p = &privileges[i];
        if (!(p->on & on) || (!all && !stw_streq(p->name, name)))
            continue;
        if (k->number < p->since) {
            since = p->since;
            continue;
        }
        r.privilege = p->name;
        add_right_and_option(r, g->grant_option, ret);
        found = true;
    }
    if (found)
        return 0;
    if (since > 0)
        return stw_fail(err, STW_ERR_INVALID, "%s needs PostgreSQL %u or newer", name,
                        since / 10000);
    return stw_fail(err, STW_ERR_INVALID, "%s is not a right on %s of PostgreSQL", name,
                    g->routine ? "a function" : places[r.level]);
}

static int expand_in(const struct stw_grant *g, const char *database, const struct stw_facts *k,
                     struct stw_rights *ret, struct stw_error *err)
{
    const char *name = g->routine ? g->routine : g->table;
    struct stw_right r = {.level = name        ? STW_LEVEL_TABLE
                                   : g->schema ? STW_LEVEL_SCHEMA
                                               : STW_LEVEL_DATABASE,
                          .database = database,
                          .schema = name && !g->schema ? "public" : g->schema,
                          .name = name};
    if (stw_pg_is_all_schemas(&r) && name && !stw_streq(name, "*"))
        return stw_fail(err, STW_ERR_INVALID,
                        "with the schema \"*\", \"%s\" cannot be named: \"*\" is all in them",
                        name);
    const char *const *c = g->columns && g->columns[0] ? g->columns : NULL;
    if (c && (!g->table || stw_streq(g->table, "*")))
        return stw_fail(err, STW_ERR_INVALID, "columns need the name of their table");
    do {
        r.level = c ? STW_LEVEL_COLUMN : r.level;
        r.column = c ? *c : NULL;
        for (const char *const *p = g->privileges; *p; p++)
            if (add_privilege(g, r, *p, k, ret, err) != 0)
                return -1;
    } while (c && *++c);
    return 0;
}

int stw_pg_expand(const struct stw_facts *k, const struct stw_account *a,
                  const struct stw_seen *seen, struct stw_rights *ret, struct stw_error *err)
{
    for (size_t i = 0; i < a->grant_count; i++) {
        const struct stw_grant *g = &a->grants[i];
        bool all = stw_streq(g->database, "*");
        for (size_t n = 0; n < (all ? seen->all_count : 1); n++)
            if (expand_in(g, all ? seen->all_databases[n] : g->database, k, ret, err) != 0)
                return -1;
    }
    stw_roles_expand(a, "", ret);
    if (a->acts_as)
        stw_rights_add(ret, &(struct stw_right){.level = STW_LEVEL_ROLE,
                                                .name = a->acts_as,
                                                .privilege = "MEMBER"});
    stw_rights_sort(ret);
    if (ret->too_large)
        return stw_fail(err, STW_ERR_TOO_LARGE,
                        "spec.grants give more than %zu rights, or need more than %zu MiB",
                        STW_RIGHTS_MAX, STW_RIGHTS_MAX_BYTES >> 20);
    return ret->failed ? stw_fail(err, STW_ERR_UNAVAILABLE, STW_RIGHTS_NO_MEMORY) : 0;
}

/* Rights of our role on objects of this database, found through the index of dependencies. */
#define FROM_DEPENDENCIES(class, table) " FROM pg_shdepend s JOIN " table " o ON o.oid = s.objid"
#define WHERE_DEPENDENCIES(class)                                                                  \
    " WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = %s AND s.deptype = 'a' AND "     \
    "s.classid = '" class "'::regclass AND s.dbid = (SELECT oid FROM pg_database WHERE datname = " \
                          "current_database()) AND x.grantee = %s"

#define OTHER_GRANTOR(owner)                                                                       \
    "CASE WHEN x.grantor <> " owner " THEN pg_get_userbyid(x.grantor)::text END"

/* Kind, schema, name, column, privilege, option, another grantor than the owner.  The kind is a capital in a
 * schema of an extension. */
static void write_have(struct stw_buf *out, const char *oid)
{
    stw_buf_adds(out, "SELECT CASE WHEN ");
    stw_pg_put_of_extension(out, "(SELECT z.oid FROM pg_namespace z WHERE z.nspname = h.schema)");
    stw_buf_adds(out, " THEN upper(h.kind) ELSE h.kind END, h.schema, h.name, h.col, "
                      "h.privilege, h.option, h.grantor FROM (");
    stw_buf_addf(out,
                 "SELECT 's' AS kind, o.nspname::text AS schema, NULL::text AS name, NULL::text "
                 "AS col, x.privilege_type AS privilege, x.is_grantable::text AS "
                 "option, " OTHER_GRANTOR("o.nspowner") " AS grantor" FROM_DEPENDENCIES(
                     "pg_namespace", "pg_namespace") " CROSS JOIN LATERAL aclexplode(o.nspacl) "
                                                     "x" WHERE_DEPENDENCIES("pg_namespace"),
                 oid, oid);
    stw_buf_addf(
        out,
        " UNION ALL SELECT CASE o.relkind WHEN 'S' THEN 'q' ELSE 't' END, "
        "n.nspname::text, o.relname::text, NULL, x.privilege_type, "
        "x.is_grantable::text, " OTHER_GRANTOR("o.relowner") FROM_DEPENDENCIES(
            "pg_class",
            "pg_class") " JOIN pg_namespace n ON n.oid = o.relnamespace CROSS JOIN LATERAL "
                        "aclexplode(o.relacl) x" WHERE_DEPENDENCIES(
                            "pg_class") " AND s.objsubid = 0",
        oid, oid);
    stw_buf_addf(
        out,
        " UNION ALL SELECT 'c', n.nspname::text, o.relname::text, t.attname::text, "
        "x.privilege_type, x.is_grantable::text, " OTHER_GRANTOR("o.relowner") FROM_DEPENDENCIES(
            "pg_class",
            "pg_class") " JOIN pg_namespace n ON n.oid = o.relnamespace JOIN pg_attribute t ON "
                        "t.attrelid = o.oid AND t.attnum = s.objsubid CROSS JOIN LATERAL "
                        "aclexplode(t.attacl) x" WHERE_DEPENDENCIES(
                            "pg_class") " AND s.objsubid <> 0) h", /* of the server's own columns it is negative */
        oid, oid);
}

/* Default privileges, which an account that is adopted could have from others. */
static void write_future(struct stw_buf *out, const char *oid)
{
    stw_buf_addf(out,
                 " UNION ALL SELECT 'f', n.nspname::text, d.defaclobjtype::text, NULL, "
                 "x.privilege_type, x.is_grantable::text, NULL FROM pg_default_acl d LEFT JOIN "
                 "pg_namespace n ON n.oid = d.defaclnamespace CROSS JOIN LATERAL "
                 "aclexplode(d.defaclacl) x WHERE x.grantee = %s AND d.defaclrole <> %s",
                 oid, oid);
}

/* Of all objects, rows {within, has} and what `object`, the arguments of format(), needs: whether all have the
 * right, whether one has it, and one that has not. */
#define OF_ALL(object)                                                                             \
    "(SELECT coalesce(bool_and(h.has OR NOT h.within), true) AS whole, coalesce(bool_or(h.has), "  \
    "false) AS part, min(format(" object ", pg_get_userbyid(h.owner))) FILTER (WHERE h.within "    \
    "AND NOT h.has) AS missing FROM (SELECT n.nspname AS schema, n.within, "

/* The last columns of a row: an owner has all rights. */
static void put_has(struct stw_buf *out, const struct stw_right *r, const char *owner,
                    const char *acl, const char *oid)
{
    stw_buf_addf(out,
                 "%s AS owner, %s = %s OR EXISTS (SELECT FROM aclexplode(%s) x WHERE x.grantee = "
                 "%s AND x.privilege_type = '%s'%s) AS has",
                 owner, owner, oid, acl, oid, r->privilege, r->option ? " AND x.is_grantable" : "");
}

static void write_all_tables(struct stw_buf *out, const struct stw_right *r, const char *user,
                             const char *oid)
{
    bool sequences = stw_streq(r->privilege, "USAGE");
    stw_buf_adds(out, " UNION ALL SELECT '*', ");
    stw_pg_strz(out, r->schema);
    stw_buf_adds(out, ", (q.whole AND ");
    stw_pg_put_future(out, r, user, oid, true);
    stw_buf_adds(out, ")::text, (q.part OR ");
    stw_pg_put_future(out, r, user, oid, false);
    stw_buf_addf(out, ")::text, '%s', '%s', q.missing FROM ", r->privilege,
                 r->option ? "true" : "false");
    stw_buf_adds(out, OF_ALL("'%I.%I of the role %I', h.schema, h.name") "c.relname AS name, ");
    put_has(out, r, "c.relowner", "c.relacl", oid);
    stw_buf_adds(out, " FROM pg_class c JOIN ");
    stw_pg_put_schemas(out, r);
    stw_buf_addf(out,
                 " n ON n.oid = c.relnamespace WHERE c.relkind %s) h) q WHERE EXISTS (SELECT FROM ",
                 sequences ? "= 'S'" : "IN ('r', 'v', 'm', 'p', 'f')");
    stw_pg_put_schemas(out, r);
    stw_buf_adds(out, " n)");
}

static void write_all_schemas(struct stw_buf *out, const struct stw_right *r, const char *oid)
{
    stw_buf_addf(out,
                 " UNION ALL SELECT 'n', '*', q.whole::text, q.part::text, '%s', '%s', q.missing "
                 "FROM ",
                 r->privilege, r->option ? "true" : "false");
    stw_buf_adds(out, OF_ALL("'the schema %I of the role %I', h.schema"));
    put_has(out, r, "n.nspowner", "n.nspacl", oid);
    stw_buf_adds(out, " FROM ");
    stw_pg_put_schemas(out, r);
    stw_buf_adds(out, " n) h) q");
}

/* 'l', number of schemas: only when there are more than rights are given on. */
static void write_count(struct stw_buf *out, const struct stw_right *r)
{
    stw_buf_adds(out, " UNION ALL SELECT 'l', count(*)::text, NULL, NULL, NULL, NULL, NULL FROM ");
    stw_pg_put_schemas(out, r);
    stw_buf_adds(out, " n HAVING NOT bool_and(n.within)");
}

struct pg_rights_look {
    const char *database, *user;
    const struct stw_rights *want, *recorded;
    struct stw_rights *have;
    char *missing; /* see struct stw_login */
    char *beyond;  /* the same */
    bool adopting; /* all rights must be known */
    bool unknown;  /* there are some that `have` cannot represent */
    bool exact;    /* also those that anybody gave */
    size_t left;   /* rows that may still be read of rights that anybody gave */
    bool sampled;  /* there are more */
    bool waited;   /* a database let no login in in time */
    struct stw_login *login;
};

static const char *get_cell_text(const struct stw_cell *c)
{
    return c->data ? c->data : "";
}

/* Whether the right is wanted and not in the mark, while one that includes it is: it is given again, so that it
 * gets into the mark. */
static bool is_given_again(const struct pg_rights_look *k, const struct stw_right *r,
                           const struct stw_right *all)
{
    return stw_rights_has(k->want, r) && stw_rights_has(k->recorded, all) &&
           !stw_rights_has(k->recorded, r);
}

/* A right on all tables of a schema, of a row with the schema, the privilege and the option. */
static struct stw_right read_right_on_all(const struct pg_rights_look *k, const struct stw_cell *c)
{
    return (struct stw_right){.level = STW_LEVEL_TABLE,
                              .database = k->database,
                              .schema = get_cell_text(&c[1]),
                              .name = "*",
                              .column = "",
                              .privilege = get_cell_text(&c[4]),
                              .option = stw_streq(get_cell_text(&c[5]), "true")};
}

/* '*' or for schemas 'n', schema, all have it, some have it, privilege, option, one without.  A wanted right is present when all
 * tables have it; one that is only in the mark, as long as one table has it.  A right that is not
 * in the mark yet is granted in any case: grants on each of the tables do not cover later ones. */
static void read_all_tables(struct pg_rights_look *k, const struct stw_cell *c)
{
    struct stw_right r = read_right_on_all(k, c), everywhere = r;
    everywhere.schema = "*";
    if (stw_streq(c[0].data, "n")) {
        r.level = STW_LEVEL_SCHEMA;
        r.name = "";
    }
    const struct stw_cell *has = stw_rights_has(k->want, &r) ? &c[2] : &c[3];
    if (!stw_streq(get_cell_text(has), "true")) {
        if (c[6].data && k->missing[0] == '\0')
            stw_format(k->missing, STW_MISSING_SIZE, "%s on %s", r.privilege, c[6].data);
    } else if (stw_pg_is_all_schemas(&r) || !is_given_again(k, &r, &everywhere)) {
        stw_rights_add(k->have, &r);
    }
}

/* 'x', schema, all have it, one has it, name, option, one without; as above. */
static void read_routines(struct pg_rights_look *k, const struct stw_cell *c)
{
    struct stw_right r = read_right_on_all(k, c);
    r.name = get_cell_text(&c[4]);
    r.privilege = "EXECUTE";
    const struct stw_cell *has = stw_rights_has(k->want, &r) ? &c[2] : &c[3];
    if (stw_streq(get_cell_text(has), "true"))
        stw_rights_add(k->have, &r);
    else if (c[6].data && k->missing[0] == '\0')
        stw_format(k->missing, STW_MISSING_SIZE, "EXECUTE on %s", c[6].data);
}

static bool is_part_of(const struct pg_rights_look *k, const struct stw_right *r,
                       const struct stw_right *all)
{
    if (stw_pg_what(r) == STW_PG_ROUTINES) /* a row of all functions with this name */
        return stw_rights_has(k->recorded, r) || stw_rights_has(k->recorded, all);
    if (stw_rights_has(k->want, r))
        return is_given_again(k, r, all);
    return stw_rights_has(k->want, all) || stw_rights_has(k->recorded, all);
}

/* Whether a right on one table or schema is only a part of our right on all of them.  Then it does not
 * count by itself.  A right on all schemas does not include those of extensions. */
static bool is_covered(const struct pg_rights_look *k, const struct stw_right *r,
                       enum stw_pg_what what, bool of_extension)
{
    struct stw_right all = *r;
    if (r->level == STW_LEVEL_TABLE && what == stw_pg_what(r)) {
        all.name = "*";
        if (is_part_of(k, r, &all))
            return true;
    } else if (r->level != STW_LEVEL_SCHEMA) {
        return false;
    }
    all.schema = "*";
    return !of_extension && strncmp(r->schema, "pg_", 3) != 0 &&
           !stw_streq(r->schema, "information_schema") && is_part_of(k, r, &all);
}

/* 'f', schema or NULL, kind of object, nothing, privilege, option.  Those of one schema count as a
 * right on all of its tables. */
static void read_future(struct pg_rights_look *k, const struct stw_cell *c)
{
    struct stw_right r = read_right_on_all(k, c);
    bool routines = stw_pg_what(&r) == STW_PG_ROUTINES;
    if (!c[1].data || !stw_streq(get_cell_text(&c[2]), stw_pg_future_type(&r)) ||
        (routines && !is_covered(k, &r, STW_PG_ROUTINES, false)))
        k->unknown = true;
    else if (routines)
        return; /* a row of all functions */
    else if (!stw_rights_has(k->want, &r))
        stw_rights_add(k->have, &r);
}

static int read_right_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct pg_rights_look *k = ctx;
    if (count < 7 || !c[0].data)
        return -1;
    bool of_extension = c[0].data[0] >= 'A' && c[0].data[0] <= 'Z';
    char kind = (char)(of_extension ? c[0].data[0] - 'A' + 'a' : c[0].data[0]);
    if (kind == '*' || kind == 'n') {
        read_all_tables(k, c);
        return 0;
    }
    if (kind == 'l') {
        stw_format(k->beyond, STW_MISSING_SIZE, "the database \"%s\" has %s schemas", k->database,
                   get_cell_text(&c[1]));
        return 0;
    }
    if (kind == 'f') {
        read_future(k, c);
        return 0;
    }
    if (kind == 'x') {
        read_routines(k, c);
        return 0;
    }
    struct stw_right r = {.level = kind == 's'   ? STW_LEVEL_SCHEMA
                                   : kind == 'c' ? STW_LEVEL_COLUMN
                                                 : STW_LEVEL_TABLE,
                          .database = k->database,
                          .schema = get_cell_text(&c[1]),
                          .name = get_cell_text(&c[2]),
                          .column = get_cell_text(&c[3]),
                          .privilege = get_cell_text(&c[4]),
                          .grantor = get_cell_text(&c[6])};
    if (k->left == 0) {
        k->sampled = true;
        return 0;
    }
    k->left--;
    bool option = stw_streq(get_cell_text(&c[5]), "true");
    enum stw_pg_what what = kind == 'q'   ? STW_PG_SEQUENCES
                            : kind == 'p' ? STW_PG_ROUTINES
                                          : STW_PG_TABLES;
    if (kind == 'p') { /* of others: it may be on a function that steward does not give */
        k->unknown |= !is_covered(k, &r, what, of_extension);
        return 0;
    }
    /* On something whose name is "*": it is not the right on all. */
    if ((stw_pg_is_all_tables(&r) || stw_pg_is_all_schemas(&r)) &&
        (stw_rights_has(k->want, &r) || stw_rights_has(k->recorded, &r))) {
        k->unknown = true;
        return 0;
    }
    if (!is_covered(k, &r, what, of_extension))
        stw_rights_add(k->have, &r);
    r.option = true;
    if (option && !is_covered(k, &r, what, of_extension))
        stw_rights_add(k->have, &r);
    return 0;
}

static void write_all(struct stw_buf *out, const struct stw_rights *rights, const char *database,
                      const char *user, const char *oid)
{
    for (size_t i = 0; i < rights->count; i++) {
        const struct stw_right *r = &rights->items[i];
        if (!stw_streq(r->database, database))
            continue;
        if (stw_pg_what(r) == STW_PG_ROUTINES)
            stw_pg_write_routines_look(out, r, user, oid);
        else if (stw_pg_is_all_tables(r))
            write_all_tables(out, r, user, oid);
        else if (stw_pg_is_all_schemas(r))
            write_all_schemas(out, r, oid);
    }
}

static void write_limit(struct stw_buf *out, const struct stw_rights *want, const char *database)
{
    for (size_t i = 0; i < want->count; i++)
        if (stw_streq(want->items[i].database, database) &&
            stw_pg_is_all_schemas(&want->items[i])) {
            write_count(out, &want->items[i]);
            return;
        }
}

/* An owner has all rights, whether they are granted or not. */
static void write_owned(struct stw_buf *out, const struct stw_rights *want, const char *database,
                        const char *oid)
{
    for (size_t i = 0; i < want->count; i++) {
        const struct stw_right *r = &want->items[i];
        bool column = r->level == STW_LEVEL_COLUMN;
        bool table = r->level == STW_LEVEL_TABLE || column;
        if (!stw_streq(r->database, database) || stw_pg_is_all_tables(r) ||
            stw_pg_is_all_schemas(r) || stw_pg_what(r) == STW_PG_ROUTINES ||
            (!table && r->level != STW_LEVEL_SCHEMA))
            continue;
        stw_buf_addf(out,
                     " UNION ALL SELECT '%s', n.nspname::text, %s, %s, '%s', '%s', NULL FROM "
                     "pg_namespace n%s%s WHERE n.nspname = ",
                     !table                               ? "s"
                     : column                             ? "c"
                     : stw_pg_what(r) == STW_PG_SEQUENCES ? "q"
                                                          : "t",
                     table ? "c.relname::text" : "NULL", column ? "t.attname::text" : "NULL",
                     r->privilege, r->option ? "true" : "false",
                     table ? " JOIN pg_class c ON c.relnamespace = n.oid" : "",
                     column ? " JOIN pg_attribute t ON t.attrelid = c.oid" : "");
        stw_pg_strz(out, r->schema);
        if (table) {
            stw_buf_adds(out, " AND c.relname = ");
            stw_pg_strz(out, r->name);
        }
        if (column) {
            stw_buf_adds(out, " AND t.attname = ");
            stw_pg_strz(out, r->column);
        }
        stw_buf_addf(out, " AND %s = %s", table ? "c.relowner" : "n.nspowner", oid);
    }
}

/* The names of what the rights of one level are on, as rows of a list: "('public','orders'),".  Returns how
 * many. */
static size_t put_scopes(struct stw_buf *out, const struct pg_rights_look *k, uint8_t level)
{
    const struct stw_rights *const sets[] = {k->want, k->recorded};
    size_t count = 0;
    for (size_t n = 0; n < STW_COUNT(sets); n++)
        for (size_t i = 0; i < sets[n]->count; i += stw_rights_scope(sets[n], i)) {
            const struct stw_right *r = &sets[n]->items[i];
            if (r->level != level || !stw_streq(r->database, k->database))
                continue;
            stw_buf_adds(out, count++ > 0 ? ",(" : "(");
            stw_pg_strz(out, r->schema);
            stw_buf_adds(out, "::name");
            for (int part = 0; part < 2 && level != STW_LEVEL_SCHEMA; part++) {
                if (part == 1 && level != STW_LEVEL_COLUMN)
                    break;
                stw_buf_addc(out, ',');
                stw_pg_strz(out, part ? r->column : r->name);
                stw_buf_adds(out, "::name");
            }
            stw_buf_addc(out, ')');
        }
    return count;
}

/* A condition on the rows of write_have: it is only a part of a right on all tables or schemas (is_covered).
 * What has the name of a wanted or marked one is none. */
static void put_covered(struct stw_buf *out, const struct pg_rights_look *k)
{
    const struct stw_rights *const sets[] = {k->want, k->recorded};
    stw_autobuf struct stw_buf tables = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES);
    stw_autobuf struct stw_buf schemas = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES);
    bool some_tables = put_scopes(&tables, k, STW_LEVEL_TABLE) > 0;
    bool some_schemas = put_scopes(&schemas, k, STW_LEVEL_SCHEMA) > 0;
    stw_buf_adds(out, "(FALSE");
    for (size_t n = 0; n < STW_COUNT(sets); n++)
        for (size_t i = 0; i < sets[n]->count; i++) {
            const struct stw_right *r = &sets[n]->items[i];
            if (!stw_streq(r->database, k->database) || stw_pg_what(r) == STW_PG_ROUTINES ||
                !(stw_pg_is_all_tables(r) || stw_pg_is_all_schemas(r)))
                continue;
            /* Kinds of what an extension has made are in upper case. */
            stw_buf_addf(out, " OR (h.kind = '%s' AND h.privilege = '%s'%s AND h.schema ",
                         r->level == STW_LEVEL_SCHEMA         ? "s"
                         : stw_pg_what(r) == STW_PG_SEQUENCES ? "q"
                                                              : "t",
                         r->privilege, r->option ? "" : " AND h.option = 'false'");
            if (stw_pg_is_all_schemas(r)) {
                stw_buf_adds(out, "!~ '^pg_' AND h.schema <> 'information_schema')");
                continue;
            }
            stw_buf_adds(out, "= ");
            stw_pg_strz(out, r->schema);
            stw_buf_addc(out, ')');
        }
    stw_buf_adds(out, ")");
    if (some_tables)
        stw_buf_addf(out,
                     " AND (h.kind = 's' OR (h.schema::name, h.name::name) NOT IN (VALUES %s))",
                     stw_buf_str(&tables));
    if (some_schemas)
        stw_buf_addf(out, " AND (h.kind <> 's' OR h.schema::name NOT IN (VALUES %s))",
                     stw_buf_str(&schemas));
    out->failed |= tables.failed || schemas.failed;
}

/* A limited number of rights on single objects, most of which anybody may have given. */
static void write_sample(struct stw_buf *out, const struct pg_rights_look *k, const char *oid)
{
    stw_buf_adds(out, "(SELECT * FROM (");
    write_have(out, oid);
    if (k->adopting) {
        write_future(out, oid);
        stw_pg_write_routines_have(out, oid);
    }
    stw_buf_adds(out, ") h(kind, schema, name, col, privilege, option, grantor) WHERE (");
    put_covered(out, k);
    stw_buf_addf(out, ") IS NOT TRUE LIMIT %zu)", k->left + 1);
}

/* The rights on what is wanted or in the mark. */
static void write_named(struct stw_buf *out, const struct pg_rights_look *k, const char *oid)
{
    static const struct {
        uint8_t level;
        const char *query;
    } queries[] = {
        {STW_LEVEL_SCHEMA,
         "'s', o.nspname::text, NULL, NULL, x.privilege_type, x.is_grantable::text, " OTHER_GRANTOR(
             "o.nspowner") " FROM pg_namespace o CROSS JOIN LATERAL aclexplode(o.nspacl) x WHERE "
                           "(o.nspname)"},
        {STW_LEVEL_TABLE,
         "CASE o.relkind WHEN 'S' THEN 'q' ELSE 't' END, n.nspname::text, o.relname::text, NULL, "
         "x.privilege_type, x.is_grantable::text, " OTHER_GRANTOR(
             "o.relowner") " FROM pg_class o JOIN pg_namespace n ON n.oid = o.relnamespace CROSS "
                           "JOIN LATERAL aclexplode(o.relacl) x WHERE (n.nspname, o.relname)"},
        {STW_LEVEL_COLUMN,
         "'c', n.nspname::text, o.relname::text, t.attname::text, x.privilege_type, "
         "x.is_grantable::text, " OTHER_GRANTOR(
             "o.relowner") " FROM pg_class o JOIN pg_namespace n ON n.oid = o.relnamespace JOIN "
                           "pg_attribute t ON t.attrelid = o.oid CROSS JOIN LATERAL "
                           "aclexplode(t.attacl) x WHERE (n.nspname, o.relname, t.attname)"},
    };
    stw_buf_adds(out, "SELECT NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, "
                      "NULL::text, NULL::text WHERE FALSE");
    for (size_t i = 0; i < STW_COUNT(queries); i++) {
        stw_autobuf struct stw_buf names = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES);
        if (put_scopes(&names, k, queries[i].level) > 0)
            stw_buf_addf(out, " UNION ALL SELECT %s IN (VALUES %s) AND x.grantee = %s",
                         queries[i].query, stw_buf_str(&names), oid);
        out->failed |= names.failed;
    }
}

static bool has_rights_inside_database(const struct stw_rights *rights, const char *database)
{
    for (size_t i = 0; i < rights->count; i++)
        if (rights->items[i].level > STW_LEVEL_DATABASE &&
            stw_streq(rights->items[i].database, database))
            return true;
    return false;
}

/* It is of the database alone, whose owner may close it to all; nothing is wanted there. */
static bool may_pass(const struct stw_fault *f, bool wanted)
{
    return !wanted && (f->trouble == STW_SQL_NO_OBJECT || f->trouble == STW_SQL_DENIED ||
                       f->trouble == STW_SQL_LOCKED || f->trouble == STW_SQL_FAILED ||
                       f->trouble == STW_SQL_UNSUPPORTED);
}

/* The rights in a dropped database are gone.  Those in one that is there are still to be taken. */
static void pass(struct pg_rights_look *k, bool needed, struct stw_fault *f)
{
    bool gone = f->step == STW_SQL_STEP_CONNECT && stw_streq(f->state, "3D000");
    k->waited |= f->trouble == STW_SQL_LOCKED;
    if (needed && !gone && k->login->closed_by == STW_SQL_FINE) {
        k->login->closed_by = f->trouble == STW_SQL_LOCKED ? STW_SQL_LOCKED : STW_SQL_DENIED;
        (void)stw_error_wrap(&f->err, "\"%s\"", k->database);
        k->login->closed = f->err;
    }
    *f = (struct stw_fault){0};
}

/* The sample may lack them. */
static int look_at_named(struct stw_session *s, struct pg_rights_look *k, const char *oid,
                         struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, k->database);
    size_t left = k->left;
    write_named(&st->text, k, oid);
    write_owned(&st->text, k->want, k->database, oid);
    k->left = SIZE_MAX;
    int r = stw_session_ask(s, st, read_right_row, k, f);
    k->left = left;
    return r;
}

static int look_in(struct stw_session *s, struct pg_rights_look *k, const char *oid,
                   struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, k->database);
    write_sample(&st->text, k, oid);
    write_all(&st->text, k->recorded, k->database, k->user, oid);
    write_owned(&st->text, k->want, k->database, oid);
    write_limit(&st->text, k->want, k->database);
    bool wanted = k->adopting || has_rights_inside_database(k->want, k->database);
    bool needed = wanted || k->exact || has_rights_inside_database(k->recorded, k->database);
    /* Anybody can give it a right in a database of his own, and hold up each login there. */
    if (k->waited && !needed)
        return 0;
    if (stw_session_ask(s, st, read_right_row, k, f) == 0)
        return k->sampled ? look_at_named(s, k, oid, f) : 0;
    if (may_pass(f, wanted)) {
        pass(k, needed, f);
        return 0;
    }
    if (f->step == STW_SQL_STEP_CONNECT && f->trouble == STW_SQL_NO_OBJECT)
        return stw_fault_set(f, STW_SQL_NO_OBJECT, STW_SQL_STEP_GRANT, "the database \"%s\" %s",
                             k->database,
                             stw_streq(f->state, "55000")
                                 ? "takes no connections (ALTER DATABASE ... ALLOW_CONNECTIONS)"
                                 : "does not exist");
    return -1;
}

static int add_databases(const struct stw_rights *rights, char ***names, size_t *count)
{
    for (size_t i = 0; i < rights->count; i++)
        if (rights->items[i].level > STW_LEVEL_DATABASE &&
            rights->items[i].level < STW_LEVEL_ROLE &&
            stw_names_add(names, count, rights->items[i].database) != 0)
            return -1;
    return 0;
}

static void add_owned_databases(const struct stw_seen *seen, const struct stw_rights *want,
                                struct stw_rights *have)
{
    for (size_t i = 0; i < want->count; i++)
        for (size_t n = 0; n < seen->own_count; n++)
            if (want->items[i].level == STW_LEVEL_DATABASE &&
                stw_streq(want->items[i].database, seen->own_databases[n]))
                stw_rights_add(have, &want->items[i]);
}

int stw_pg_look_rights(struct stw_session *s, const struct stw_account *a,
                       const struct stw_rights *want, struct stw_seen *seen, struct stw_fault *f)
{
    struct stw_login *l = &seen->logins[0];
    struct pg_rights_look k = {.want = want,
                               .recorded = &l->mark.rights,
                               .have = &l->have,
                               .missing = l->missing,
                               .beyond = l->beyond,
                               .left = STW_RIGHTS_SAMPLE + want->count * 2 + l->mark.rights.count,
                               .adopting = l->adopting,
                               .exact = a->grants_policy == STW_GRANTS_EXACT,
                               .login = l};
    char **names = NULL;
    size_t count = 0;
    int r = 0;
    if (!l->exists)
        return 0;
    k.user = a->user;
    if (add_databases(want, &names, &count) != 0 || add_databases(k.recorded, &names, &count) != 0)
        r = -1;
    for (size_t i = 0; i < seen->database_count && r == 0; i++)
        r = stw_names_add(&names, &count, seen->databases[i]);
    if (r != 0)
        (void)stw_fault_set(f, STW_SQL_LOOKUP, STW_SQL_STEP_LOOKUP, "no memory");
    /* k.have grows while k.want and k.recorded are read: they are different sets. */
    for (size_t i = 0; i < count && r == 0; i++) {
        k.database = names[i];
        r = look_in(s, &k, seen->role_oid, f);
    }
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    l->more_rights |= k.unknown || k.sampled;
    l->sampled = k.sampled;
    add_owned_databases(seen, want, &l->have);
    stw_rights_sort(&l->have);
    return r;
}
