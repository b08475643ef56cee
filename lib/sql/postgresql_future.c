/* SPDX-License-Identifier: Apache-2.0
 *
 * Rights on the tables and sequences that a schema will have: PostgreSQL's default privileges.
 * They belong to the role that creates a table, so that a right on all tables of a schema needs them
 * for each role that may create one there: the owner of the database, the owner of the schema, the
 * roles that were granted CREATE on it, and the owners of what is in it.  An admin who is not a
 * superuser can set them for the roles that it is a member of; the tables of the others get the
 * right when the account is next looked up.
 *
 * The server itself lists the roles when the statement runs. */
#include "sql/postgresql_priv.h"
#include "sql/quote.h"

#include "base/util.h"

static bool is_usage(const struct stw_right *r)
{
    return stw_streq(r->privilege, "USAGE");
}

/* The creators of tables in the schema `n`, but not the role `user`. */
static void put_creators(struct stw_buf *out, const char *user)
{
    stw_buf_adds(out,
                 "(SELECT r.oid, r.rolname FROM pg_roles r, pg_database b WHERE b.datname = "
                 "current_database() AND pg_has_role(current_user, r.oid, 'USAGE') AND r.rolname "
                 "!~ '^pg_' AND (r.oid IN (b.datdba, n.nspowner) OR EXISTS (SELECT FROM "
                 "aclexplode(n.nspacl) x WHERE x.grantee = r.oid AND x.privilege_type = 'CREATE') "
                 "OR EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relowner = "
                 "r.oid)) AND r.rolname <> ");
    stw_pg_strz(out, user);
    stw_buf_addc(out, ')');
}

/* Whether `acl`, a row of pg_default_acl, gives the right to the role `oid`. */
static void put_gives(struct stw_buf *out, const struct stw_right *r, const char *oid)
{
    stw_buf_addf(out,
                 "d.defaclnamespace = n.oid AND d.defaclobjtype = '%s' AND EXISTS (SELECT FROM "
                 "aclexplode(d.defaclacl) x WHERE x.grantee = %s AND x.privilege_type = '%s'%s)",
                 is_usage(r) ? "S" : "r", oid, r->privilege,
                 r->option ? " AND x.is_grantable" : "");
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
    put_creators(out, user);
    stw_buf_adds(out,
                 " o WHERE NOT EXISTS (SELECT FROM pg_default_acl d WHERE d.defaclrole = o.oid "
                 "AND ");
    put_gives(out, r, oid);
    stw_buf_adds(out, "))");
}

/* The roles whose default privileges are to be changed. */
static void put_loop(struct stw_buf *out, bool give, const char *user, const struct stw_right *r)
{
    stw_buf_adds(out,
                 "DECLARE o name; BEGIN FOR o IN SELECT q.rolname FROM pg_namespace n, LATERAL ");
    if (give) {
        put_creators(out, user);
        stw_buf_adds(out, " q");
    } else {
        stw_buf_addf(out,
                     "(SELECT c.rolname FROM pg_default_acl d JOIN pg_roles c ON c.oid = "
                     "d.defaclrole WHERE d.defaclnamespace = n.oid AND d.defaclobjtype = '%s' AND "
                     "pg_has_role(current_user, c.oid, 'USAGE')) q",
                     is_usage(r) ? "S" : "r");
    }
    stw_buf_adds(out, " WHERE n.nspname = ");
    stw_pg_strz(out, r->schema);
}

void stw_pg_write_future(struct stw_script *s, bool give, const char *user,
                         const struct stw_right *r, const char *privileges)
{
    struct stw_buf body = STW_BUF_INIT(64u << 10);
    struct stw_buf *out =
        &stw_script_add(s, give ? STW_SQL_STEP_GRANT : STW_SQL_STEP_REVOKE, r->database)->text;
    put_loop(&body, give, user, r);
    stw_buf_addf(
        &body,
        " LOOP EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %%I IN SCHEMA %%I %s %s ON "
        "%s %s %%I%s', o, ",
        give        ? "GRANT"
        : r->option ? "REVOKE GRANT OPTION FOR"
                    : "REVOKE",
        privileges, is_usage(r) ? "SEQUENCES" : "TABLES", give ? "TO" : "FROM",
        give && r->option ? " WITH GRANT OPTION" : "");
    stw_pg_strz(&body, r->schema);
    stw_buf_adds(&body, ", ");
    stw_pg_strz(&body, user);
    stw_buf_adds(&body, "); END LOOP; END");
    s->failed |= body.failed;
    stw_buf_adds(out, "DO ");
    stw_pg_strz(out, stw_buf_str(&body));
    stw_buf_done(&body);
}
