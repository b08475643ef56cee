/* SPDX-License-Identifier: Apache-2.0
 *
 * Rights on the tables, sequences and functions that a schema will have: PostgreSQL's default privileges.
 * They belong to the role that creates a table, so that a right on all tables of a schema needs them
 * for each role that may create one there: the owner of the database, the owner of the schema, the
 * roles that were granted CREATE on it, and the owners of what is in it.  An admin who is not a
 * superuser can set them for the roles that it can become (postgresql_borrow.c); the tables of the
 * others get the right when the account is next looked up.  So do the functions of a privileged role, because not
 * each of them may be given (postgresql_routines.c).
 *
 * The server itself lists the roles when the statement runs. */
#include "sql/postgresql_priv.h"
#include "sql/quote.h"

#include "base/util.h"

#include <assert.h>

static const struct {
    const char *type, *name;
} kinds[] = {
    [STW_PG_TABLES] = {"r", "TABLES"},
    [STW_PG_SEQUENCES] = {"S", "SEQUENCES"},
    [STW_PG_ROUTINES] = {"f", "FUNCTIONS"}, /* and procedures */
};
static_assert(STW_COUNT(kinds) == STW_PG_WHATS, "one row for each");

const char *stw_pg_future_type(const struct stw_right *r)
{
    return kinds[stw_pg_what(r)].type;
}

/* The creators of tables in the schema `n` that the role `me` can become, but not the role `user`. */
static void put_creators(struct stw_buf *out, const struct stw_right *r, const char *me,
                         const char *user)
{
    stw_buf_adds(out, "(SELECT r.oid, r.rolname FROM pg_roles r, pg_database b WHERE b.datname = "
                      "current_database() AND ");
    stw_pg_put_reachable(out, me, "r.oid");
    stw_buf_adds(
        out, " AND r.rolname !~ '^pg_' AND (r.oid IN (b.datdba, n.nspowner) OR EXISTS (SELECT FROM "
             "aclexplode(n.nspacl) x WHERE x.grantee = r.oid AND x.privilege_type = 'CREATE') "
             "OR EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relowner = "
             "r.oid)) AND r.rolname <> ");
    stw_pg_strz(out, user);
    if (stw_pg_what(r) == STW_PG_ROUTINES) {
        stw_buf_adds(out, " AND NOT ");
        stw_pg_put_privileged(out, "r.oid");
    }
    stw_buf_addc(out, ')');
}

/* Whether `acl`, a row of pg_default_acl, gives the right to the role `oid`. */
static void put_gives(struct stw_buf *out, const struct stw_right *r, const char *oid)
{
    stw_buf_addf(out,
                 "d.defaclnamespace = n.oid AND d.defaclobjtype = '%s' AND EXISTS (SELECT FROM "
                 "aclexplode(d.defaclacl) x WHERE x.grantee = %s AND x.privilege_type = '%s'%s)",
                 stw_pg_future_type(r), oid, r->privilege, r->option ? " AND x.is_grantable" : "");
}

void stw_pg_put_future(struct stw_buf *out, const struct stw_right *r, const char *user,
                       const char *oid, bool all)
{
    if (!all) {
        stw_buf_adds(out, "EXISTS (SELECT FROM pg_default_acl d WHERE ");
        put_gives(out, r, oid);
        stw_buf_addc(out, ')');
        return;
    }
    stw_buf_adds(out, "NOT EXISTS (SELECT FROM ");
    put_creators(out, r, "current_user", user);
    stw_buf_adds(out,
                 " o WHERE NOT EXISTS (SELECT FROM pg_default_acl d WHERE d.defaclrole = o.oid "
                 "AND ");
    put_gives(out, r, oid);
    stw_buf_adds(out, "))");
    if (stw_pg_what(r) != STW_PG_ROUTINES)
        return;
    stw_buf_adds(out, " AND NOT EXISTS (SELECT FROM pg_default_acl d WHERE ");
    put_gives(out, r, oid);
    stw_buf_adds(out, " AND ");
    stw_pg_put_privileged(out, "d.defaclrole");
    stw_buf_addc(out, ')');
}

/* The roles whose default privileges are to be changed. */
static void put_loop(struct stw_buf *out, bool give, const char *user, const struct stw_right *r)
{
    stw_buf_adds(out,
                 "DECLARE me name := current_user; lent boolean; o name; BEGIN FOR o IN SELECT "
                 "q.rolname FROM pg_namespace n, LATERAL ");
    if (give) {
        put_creators(out, r, "me", user);
        stw_buf_adds(out, " q");
    } else {
        stw_buf_addf(out,
                     "(SELECT c.oid, c.rolname FROM pg_default_acl d JOIN pg_roles c ON c.oid = "
                     "d.defaclrole WHERE d.defaclnamespace = n.oid AND d.defaclobjtype = '%s' AND ",
                     stw_pg_future_type(r));
        stw_pg_put_reachable(out, "me", "c.oid");
        stw_buf_adds(out, ") q");
    }
    stw_buf_adds(out, " WHERE n.nspname = ");
    stw_pg_strz(out, r->schema);
}

static void write_loop(struct stw_script *s, bool give, bool of_privileged, const char *user,
                       const struct stw_right *r, const char *privileges)
{
    struct stw_buf body = STW_BUF_INIT(64u << 10);
    struct stw_buf *out =
        &stw_script_add(s, give ? STW_SQL_STEP_GRANT : STW_SQL_STEP_REVOKE, r->database)->text;
    put_loop(&body, give, user, r);
    if (of_privileged) {
        stw_buf_adds(&body, " AND ");
        stw_pg_put_privileged(&body, "q.oid");
    }
    stw_buf_adds(&body, " LOOP ");
    stw_pg_put_become(&body, "o");
    stw_buf_addf(&body,
                 "EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %%I IN SCHEMA %%I %s %s ON "
                 "%s %s %%I%s', o, ",
                 give                          ? "GRANT"
                 : r->option && !of_privileged ? "REVOKE GRANT OPTION FOR"
                                               : "REVOKE",
                 privileges, kinds[stw_pg_what(r)].name, give ? "TO" : "FROM",
                 give && r->option ? " WITH GRANT OPTION" : "");
    stw_pg_strz(&body, r->schema);
    stw_buf_adds(&body, ", ");
    stw_pg_strz(&body, user);
    stw_buf_adds(&body, "); ");
    stw_pg_put_return(&body, "o");
    stw_buf_adds(&body, "END LOOP; END");
    stw_pg_put_do(out, &body);
    stw_buf_done(&body);
}

/* A role may have become privileged since. */
void stw_pg_write_future(struct stw_script *s, bool give, const char *user,
                         const struct stw_right *r, const char *privileges)
{
    if (give && stw_pg_what(r) == STW_PG_ROUTINES)
        write_loop(s, false, true, user, r, privileges);
    write_loop(s, give, false, user, r, privileges);
}
