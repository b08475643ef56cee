/* SPDX-License-Identifier: Apache-2.0
 *
 * Roles on PostgreSQL: which are privileged, and what those that an account shall be a member of would
 * give it. */
#include "sql/core/roles.h"
#include "sql/postgresql/postgresql_priv.h"

/* --- privileged roles */

static const char privileged[] =
    "(SELECT w.oid FROM pg_roles w WHERE w.rolsuper OR w.rolcreaterole OR w.rolcreatedb OR "
    "w.rolreplication OR w.rolbypassrls OR w.rolname = current_user OR (w.rolname ~ '^pg_' AND "
    "w.rolname <> 'pg_database_owner'))";

void stw_pg_put_privileged(struct stw_buf *out, const char *oid)
{
    stw_buf_addf(out, "EXISTS (SELECT FROM %s v WHERE pg_has_role(%s, v.oid, 'MEMBER'))",
                 privileged, oid);
}

/* --- roles of an account */

/* Each role, and each that it is a member of, directly or through others. */
int stw_pg_look_roles(struct stw_session *s, const struct stw_account *a, stw_row_fn *row,
                      void *ctx, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_adds(&st->text, "WITH RECURSIVE up (root, oid) AS (SELECT oid, oid FROM pg_roles WHERE "
                            "rolname IN ");
    stw_roles_list(a, NULL, &st->text);
    stw_buf_adds(
        &st->text,
        " UNION SELECT up.root, m.roleid FROM up JOIN pg_auth_members m ON m.member = up.oid) "
        "SELECT "
        "w.rolname::text, concat_ws(', ', CASE WHEN r.rolsuper THEN 'gives SUPERUSER' END, CASE "
        "WHEN r.rolcreaterole THEN 'gives CREATEROLE' END, CASE WHEN r.rolcreatedb THEN 'gives "
        "CREATEDB' END, CASE WHEN r.rolreplication THEN 'gives REPLICATION' END, CASE WHEN "
        "r.rolbypassrls THEN 'gives BYPASSRLS' END, CASE WHEN r.oid = w.oid AND r.rolcanlogin THEN "
        "'can log in' END, CASE WHEN r.rolname = current_user THEN 'gives the rights of the admin' "
        "END), r.rolname::text, CASE WHEN r.oid = w.oid THEN left(shobj_description(w.oid, "
        "'pg_authid'), 1048577) "
        "END FROM up JOIN pg_roles w ON w.oid = up.root JOIN pg_roles r ON r.oid = up.oid");
    return stw_session_ask(s, st, row, ctx, f);
}
