/* SPDX-License-Identifier: Apache-2.0
 *
 * What a right on PostgreSQL is on: tables, sequences or functions, all or one, in all schemas or in one. */
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

bool stw_pg_is_all_tables(const struct stw_right *r)
{
    return r->level == STW_LEVEL_TABLE && stw_streq(r->name, "*");
}

bool stw_pg_is_all_schemas(const struct stw_right *r)
{
    return (r->level == STW_LEVEL_TABLE || r->level == STW_LEVEL_SCHEMA) &&
           stw_streq(r->schema, "*");
}

void stw_pg_put_of_extension(struct stw_buf *out, const char *oid)
{
    stw_buf_addf(out,
                 "EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_namespace'::regclass AND "
                 "e.objid = %s AND e.deptype = 'e')",
                 oid);
}

void stw_pg_put_schemas(struct stw_buf *out, const struct stw_right *r)
{
    if (!stw_pg_is_all_schemas(r)) {
        stw_buf_adds(out, "(SELECT a.oid, a.nspname, a.nspowner, a.nspacl, true AS within FROM "
                          "pg_namespace a WHERE a.nspname = ");
        stw_pg_strz(out, r->schema);
        stw_buf_addc(out, ')');
        return;
    }
    stw_buf_addf(out,
                 "(SELECT b.oid, b.nspname, b.nspowner, b.nspacl, row_number() OVER (ORDER BY "
                 "b.place, b.oid) <= %u AS within FROM (SELECT a.oid, a.nspname, a.nspowner, "
                 "a.nspacl, row_number() OVER (PARTITION BY a.nspowner ORDER BY a.oid) AS "
                 "place FROM pg_namespace a WHERE a.nspname !~ '^pg_' AND a.nspname <> "
                 "'information_schema' AND NOT ",
                 STW_SQL_SCHEMAS_MAX);
    stw_pg_put_of_extension(out, "a.oid");
    stw_buf_adds(out, ") b)");
}

enum stw_pg_what stw_pg_what(const struct stw_right *r)
{
    if (r->level != STW_LEVEL_TABLE)
        return STW_PG_TABLES;
    return stw_streq(r->privilege, "USAGE")     ? STW_PG_SEQUENCES
           : stw_streq(r->privilege, "EXECUTE") ? STW_PG_ROUTINES
                                                : STW_PG_TABLES;
}
