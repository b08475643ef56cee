/* SPDX-License-Identifier: Apache-2.0
 *
 * Rights on the tables, sequences and functions that a schema will have: PostgreSQL's default privileges.
 * They belong to the role that creates a table, so that a right on all tables of a schema needs them
 * for each role that may create one there: the owner of the database, the owner of the schema, the
 * roles that were granted CREATE on it, and the owners of what is in it.  An admin who is not a
 * superuser can set them for the roles that it can become (borrow.c); the tables of the
 * others get the right when the account is next looked up.  So do the functions of a privileged role, because not
 * each of them may be given (routines.c).
 *
 * The server itself lists the roles when the statement runs. */
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

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

/* Rows {nsp, nspname, oid, rolname}: the creators of tables in the schemas of the right that the role `me` can
 * become, but not the role `user`. */
static void put_creators(struct stw_buf *out, const struct stw_right *r, const char *me,
                         const char *user)
{
    stw_buf_adds(out, "(WITH n AS (SELECT s.* FROM ");
    stw_pg_put_schemas(out, r);
    stw_buf_adds(
        out,
        " s WHERE s.within), k AS (SELECT n.oid AS nsp, n.nspname, b.datdba AS role FROM n, "
        "pg_database b WHERE b.datname = current_database() UNION SELECT n.oid, n.nspname, "
        "n.nspowner FROM n UNION SELECT n.oid, n.nspname, x.grantee FROM n, aclexplode(n.nspacl) x "
        "WHERE x.privilege_type = 'CREATE' UNION SELECT n.oid, n.nspname, c.relowner FROM "
        "pg_class c JOIN n ON n.oid = c.relnamespace) SELECT k.nsp, k.nspname, r.oid, r.rolname "
        "FROM k JOIN pg_roles r ON r.oid = k.role WHERE ");
    stw_pg_put_reachable(out, me, "r.oid");
    stw_buf_adds(out, " AND r.rolname !~ '^pg_' AND r.rolname <> ");
    stw_pg_strz(out, user);
    if (stw_pg_what(r) == STW_PG_ROUTINES) {
        stw_buf_adds(out, " AND NOT ");
        stw_pg_put_privileged(out, "r.oid");
    }
    stw_buf_addc(out, ')');
}

/* Whether `d`, a row of pg_default_acl, gives the right to the role `oid`. */
static void put_gives(struct stw_buf *out, const struct stw_right *r, const char *oid)
{
    stw_buf_addf(out,
                 "d.defaclobjtype = '%s' AND EXISTS (SELECT FROM aclexplode(d.defaclacl) x WHERE "
                 "x.grantee = %s AND x.privilege_type = '%s'%s)",
                 stw_pg_future_type(r), oid, r->privilege, r->option ? " AND x.is_grantable" : "");
}

/* Whether a role gives the right in one of the schemas; `of_privileged`: one that is privileged. */
static void put_any(struct stw_buf *out, const struct stw_right *r, const char *oid,
                    bool of_privileged)
{
    stw_buf_adds(out, "EXISTS (SELECT FROM pg_default_acl d JOIN ");
    stw_pg_put_schemas(out, r);
    stw_buf_adds(out, " n ON n.oid = d.defaclnamespace WHERE ");
    put_gives(out, r, oid);
    if (of_privileged) {
        stw_buf_adds(out, " AND ");
        stw_pg_put_privileged(out, "d.defaclrole");
    }
    stw_buf_addc(out, ')');
}

/* Whether the creator `o` gives the right in its schema. */
static void put_given(struct stw_buf *out, const struct stw_right *r, const char *oid)
{
    stw_buf_adds(out, "EXISTS (SELECT FROM pg_default_acl d WHERE d.defaclrole = o.oid AND "
                      "d.defaclnamespace = o.nsp AND ");
    put_gives(out, r, oid);
    stw_buf_addc(out, ')');
}

void stw_pg_put_future(struct stw_buf *out, const struct stw_right *r, const char *user,
                       const char *oid, bool all)
{
    if (!all) {
        put_any(out, r, oid, false);
        return;
    }
    stw_buf_adds(out, "NOT EXISTS (SELECT FROM ");
    put_creators(out, r, "current_user", user);
    stw_buf_adds(out, " o WHERE NOT ");
    put_given(out, r, oid);
    stw_buf_addc(out, ')');
    if (stw_pg_what(r) != STW_PG_ROUTINES)
        return;
    stw_buf_adds(out, " AND NOT ");
    put_any(out, r, oid, true);
}

enum loop { GIVE, TAKE, TAKE_OF_PRIVILEGED };

/* The roles whose default privileges are to be changed, each with a schema: {rolname, nspname}. */
static void put_turns(struct stw_buf *out, enum loop what, const char *user,
                      const struct stw_right *r)
{
    if (what == GIVE) {
        stw_buf_adds(out, "SELECT q.rolname, q.nspname FROM ");
        put_creators(out, r, "me", user);
        stw_buf_adds(out, " q");
        return;
    }
    stw_buf_adds(out,
                 "SELECT q.rolname, n.nspname FROM pg_default_acl d JOIN pg_roles q ON q.oid = "
                 "d.defaclrole JOIN ");
    stw_pg_put_schemas(out, r);
    stw_buf_addf(out,
                 " n ON n.oid = d.defaclnamespace WHERE d.defaclobjtype = '%s' AND EXISTS (SELECT "
                 "FROM aclexplode(d.defaclacl) x JOIN pg_roles u ON u.oid = x.grantee WHERE "
                 "u.rolname = ",
                 stw_pg_future_type(r));
    stw_pg_strz(out, user);
    stw_buf_adds(out, ") AND ");
    stw_pg_put_reachable(out, "me", "q.oid");
    if (what == TAKE)
        return;
    stw_buf_adds(out, " AND ");
    stw_pg_put_privileged(out, "q.oid");
}

static void write_loop(struct stw_script *s, enum loop what, const char *user,
                       const struct stw_right *r, const char *privileges)
{
    struct stw_buf body = STW_BUF_INIT(64u << 10);
    bool give = what == GIVE;
    const struct stw_pg_around *around = stw_pg_around(s);
    struct stw_statement *st =
        stw_script_add(s, give ? STW_SQL_STEP_GRANT : STW_SQL_STEP_REVOKE, r->database);
    st->own = stw_pg_is_all_schemas(r);
    st->around = s->around_locks;
    stw_buf_addf(&body,
                 "DECLARE me name := current_user; lent boolean; o record; %sBEGIN %sFOR o IN ",
                 around->declare, around->begin);
    put_turns(&body, what, user, r);
    stw_buf_addf(&body, " LOOP %sBEGIN ", s->around_locks ? STW_PG_IN_TIME : "");
    stw_pg_put_become(&body, "o.rolname");
    stw_buf_addf(&body,
                 "EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %%I IN SCHEMA %%I %s %s ON "
                 "%s %s %%I%s', o.rolname, o.nspname, ",
                 give                        ? "GRANT"
                 : r->option && what == TAKE ? "REVOKE GRANT OPTION FOR"
                                             : "REVOKE",
                 privileges, kinds[stw_pg_what(r)].name, give ? "TO" : "FROM",
                 give && r->option ? " WITH GRANT OPTION" : "");
    stw_pg_strz(&body, user);
    stw_buf_adds(&body, "); ");
    stw_pg_put_return(&body, "o.rolname");
    /* Another client has just dropped the schema or the role. */
    stw_buf_adds(&body, "EXCEPTION WHEN invalid_schema_name OR undefined_object THEN NULL; ");
    stw_pg_put_around(&body, s, "format('SCHEMA %I, of which the role %I', o.nspname, o.rolname)");
    stw_buf_addf(&body, "END; END LOOP; %sEND", around->end);
    stw_pg_put_do(&st->text, &body);
    stw_buf_done(&body);
}

/* A role may have become privileged since. */
void stw_pg_write_future(struct stw_script *s, bool give, const char *user,
                         const struct stw_right *r, const char *privileges)
{
    if (give && stw_pg_what(r) == STW_PG_ROUTINES)
        write_loop(s, TAKE_OF_PRIVILEGED, user, r, privileges);
    write_loop(s, give ? GIVE : TAKE, user, r, privileges);
}
