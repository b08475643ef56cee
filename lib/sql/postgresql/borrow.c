/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements of PostgreSQL that run as another role.  Only the owner of an object, or a role that was
 * given the grant option, can give and take rights on it, and only the grantor's own grants are taken.
 * An admin that is not a superuser makes itself a member of that role for the statement: before
 * PostgreSQL 16 CREATEROLE is enough, and after that the ADMIN OPTION that it has on roles that it
 * made.  The membership ends in the same transaction: a member of a role such as rds_iam logs in by
 * other means, and later logins of the admin would fail. */
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

#define BEFORE_16 "current_setting('server_version_num')::int < 160000"
#define BECOMES "CASE WHEN " BEFORE_16 " THEN 'MEMBER' ELSE 'SET' END"

void stw_pg_put_reachable(struct stw_buf *out, const char *me, const char *oid)
{
    stw_buf_addf(out,
                 "(pg_has_role(%s, %s, " BECOMES
                 ") OR (SELECT NOT to_be.rolsuper AND to_be.rolname "
                 "!~ '^pg_' AND NOT pg_has_role(to_be.oid, %s, 'MEMBER') AND CASE WHEN " BEFORE_16
                 " THEN admin.rolcreaterole ELSE pg_has_role(%s, to_be.oid, 'MEMBER WITH ADMIN "
                 "OPTION') END FROM pg_roles to_be, pg_roles admin WHERE to_be.oid = %s AND "
                 "admin.rolname = %s))",
                 me, oid, me, me, oid, me);
}

/* The members of pg_database_owner cannot be changed: its only one is the owner of the database. */
void stw_pg_put_owner_role(struct stw_buf *out, const char *oid)
{
    stw_buf_addf(out, "(SELECT CASE WHEN pg_has_role(me, w.oid, 'USAGE') THEN me WHEN w.rolname = "
                      "'pg_database_owner' THEN (SELECT CASE WHEN ");
    stw_pg_put_reachable(out, "me", "b.datdba");
    stw_buf_adds(out, " THEN pg_get_userbyid(b.datdba) ELSE me END FROM pg_database b WHERE "
                      "b.datname = current_database()) WHEN ");
    stw_pg_put_reachable(out, "me", "w.oid");
    stw_buf_addf(out, " THEN w.rolname ELSE me END FROM pg_roles w WHERE w.oid = %s)", oid);
}

void stw_pg_put_grantor_role(struct stw_buf *out, const char *oid)
{
    stw_buf_adds(out, "(SELECT CASE WHEN ");
    stw_pg_put_reachable(out, "me", "w.oid");
    stw_buf_addf(out, " THEN w.rolname ELSE me END FROM pg_roles w WHERE w.oid = %s)", oid);
}

void stw_pg_put_become(struct stw_buf *out, const char *role)
{
    stw_buf_addf(out,
                 "lent := NOT pg_has_role(me, %s, " BECOMES "); IF lent THEN EXECUTE format('GRANT "
                 "%%I TO %%I', %s, me); END IF; EXECUTE format('SET LOCAL ROLE %%I', %s); ",
                 role, role, role);
}

void stw_pg_put_return(struct stw_buf *out, const char *role)
{
    stw_buf_addf(
        out,
        "EXECUTE format('SET LOCAL ROLE %%I', me); IF lent THEN EXECUTE format('REVOKE %%I "
        "FROM %%I', %s, me); END IF; ",
        role);
}

/* The first attempt has waited for the lock.  This one tries each object for a moment, and after a number of
 * locked ones for the least time that there is, until a third of the limit of a statement is over. */
const struct stw_pg_around *stw_pg_around(const struct stw_script *s)
{
    static const struct stw_pg_around
        nothing = {"", "", "", ""},
        around = {
            .declare =
                "locked text; locks int := 0; patience text := current_setting('lock_timeout'); "
                "till timestamptz := transaction_timestamp() + current_setting("
                "'statement_timeout')::interval / 3; ",
            .begin = "PERFORM set_config('lock_timeout', '10', true); ",
            .end = "PERFORM set_config('lock_timeout', patience, true); IF locked IS NOT NULL THEN "
                   "RAISE NOTICE USING ERRCODE = 'lock_not_available', MESSAGE = locked; END IF; ",
            .order = " ORDER BY random()",
        };
    return s->around_locks ? &around : &nothing;
}

void stw_pg_put_around(struct stw_buf *out, const struct stw_script *s, const char *what)
{
    if (s->around_locks)
        stw_buf_addf(out,
                     "WHEN lock_not_available THEN locked := coalesce(locked, %s); locks := locks "
                     "+ 1; IF locks = 20 THEN PERFORM set_config('lock_timeout', '1', true); END "
                     "IF; ",
                     what);
}

void stw_pg_put_do(struct stw_buf *out, const struct stw_buf *body)
{
    out->failed |= body->failed;
    stw_buf_adds(out, "DO ");
    stw_pg_string(out, stw_buf_str(body), body->len);
}

/* One of the roles that the statement needs: a member that inherits, and that may become it. */
static void put_lend(struct stw_buf *out, const struct stw_facts *k, size_t i, const char *role)
{
    stw_buf_addf(out, "lent%zu := NOT (pg_has_role(me, ", i);
    stw_pg_strz(out, role);
    stw_buf_adds(out, "::name, 'MEMBER')");
    if (k->number >= 160000) {
        stw_buf_adds(out, " AND pg_has_role(me, ");
        stw_pg_strz(out, role);
        stw_buf_adds(out, "::name, 'USAGE') AND pg_has_role(me, ");
        stw_pg_strz(out, role);
        stw_buf_adds(out, "::name, 'SET')");
    }
    stw_buf_addf(out, "); IF lent%zu THEN EXECUTE format('GRANT %%I TO %%I%s', ", i,
                 k->number >= 160000 ? " WITH INHERIT TRUE, SET TRUE" : "");
    stw_pg_strz(out, role);
    stw_buf_adds(out, ", me); END IF; ");
}

/* Schemas with something of the role whose new owner must have CREATE there; the server asks that for
 * these kinds of objects only, and not when a superuser reassigns. */
static const struct {
    const char *catalog, *schema, *owner;
} owned[] = {
    {"pg_class", "relnamespace", "relowner"}, /* only for one table after the other */
    {"pg_proc", "pronamespace", "proowner"},          {"pg_operator", "oprnamespace", "oprowner"},
    {"pg_opclass", "opcnamespace", "opcowner"},       {"pg_opfamily", "opfnamespace", "opfowner"},
    {"pg_collation", "collnamespace", "collowner"},   {"pg_conversion", "connamespace", "conowner"},
    {"pg_statistic_ext", "stxnamespace", "stxowner"}, {"pg_ts_dict", "dictnamespace", "dictowner"},
    {"pg_ts_config", "cfgnamespace", "cfgowner"},
};

/* Runs for each schema of the rows {nspname, role} as that role. */
static void put_each_schema(struct stw_buf *out, const char *verb, const char *to, const char *heir,
                            const char *then)
{
    stw_buf_adds(out, " LOOP BEGIN ");
    stw_pg_put_become(out, "turn.role");
    stw_buf_addf(out, "EXECUTE format('%s CREATE ON SCHEMA %%I %s %%I', turn.nspname, ", verb, to);
    stw_pg_strz(out, heir);
    stw_buf_adds(out, "); ");
    stw_pg_put_return(out, "turn.role");
    stw_buf_addf(out,
                 "%sEXCEPTION WHEN insufficient_privilege OR invalid_grant_operation THEN NULL; "
                 "END; END LOOP; ",
                 then);
}

static void put_open_schemas(struct stw_buf *out, const char *role, const char *heir, bool tables)
{
    size_t first = tables ? 0 : 1;
    stw_buf_adds(out, "FOR turn IN SELECT s.nspname, ");
    stw_pg_put_owner_role(out, "s.nspowner");
    stw_buf_adds(out, " AS role FROM pg_namespace s, pg_roles r WHERE r.rolname = ");
    stw_pg_strz(out, role);
    stw_buf_adds(out, " AND NOT has_schema_privilege(");
    stw_pg_strz(out, heir);
    stw_buf_adds(out, ", s.oid, 'CREATE') AND s.oid IN (");
    for (size_t i = first; i < STW_COUNT(owned); i++)
        stw_buf_addf(out, "%sSELECT c.%s FROM %s c WHERE c.%s = r.oid",
                     i > first ? " UNION ALL " : "", owned[i].schema, owned[i].catalog,
                     owned[i].owner);
    stw_buf_addc(out, ')');
    put_each_schema(out, "GRANT", "TO", heir, "opened := opened || turn.nspname::text; ");
}

static void put_close_schemas(struct stw_buf *out, const char *heir)
{
    stw_buf_adds(out, "FOR turn IN SELECT s.nspname, ");
    stw_pg_put_owner_role(out, "s.nspowner");
    stw_buf_adds(out, " AS role FROM pg_namespace s WHERE s.nspname = ANY (opened) AND "
                      "pg_get_userbyid(s.nspowner) <> ");
    stw_pg_strz(out, heir);
    put_each_schema(out, "REVOKE", "FROM", heir, "");
}

void stw_pg_write_as_member(struct stw_script *s, enum stw_sql_step step, const char *database,
                            const struct stw_facts *k, const char *const *roles,
                            enum stw_pg_reassigns reassigns, const struct stw_buf *statement)
{
    struct stw_statement *st = stw_script_add(s, step, database);
    struct stw_buf body = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES);
    if (k->superuser) {
        stw_buf_add(&st->text, statement->data, statement->len);
        st->text.failed |= statement->failed;
        return;
    }
    stw_buf_adds(&body,
                 "DECLARE me name := current_user; lent boolean; turn record; opened text[] := "
                 "'{}'; ");
    for (size_t i = 0; roles[i]; i++)
        stw_buf_addf(&body, "lent%zu boolean; ", i);
    stw_buf_adds(&body, "BEGIN ");
    for (size_t i = 0; roles[i]; i++)
        put_lend(&body, k, i, roles[i]);
    if (reassigns != STW_PG_REASSIGNS_NOTHING)
        put_open_schemas(&body, roles[0], roles[1], reassigns == STW_PG_REASSIGNS_TABLES);
    stw_buf_adds(&body, "EXECUTE ");
    body.failed |= statement->failed;
    stw_pg_string(&body, stw_buf_str(statement), statement->len);
    stw_buf_adds(&body, "; ");
    if (reassigns != STW_PG_REASSIGNS_NOTHING)
        put_close_schemas(&body, roles[1]);
    for (size_t i = 0; roles[i]; i++) {
        stw_buf_addf(&body, "IF lent%zu THEN EXECUTE format('REVOKE %%I FROM %%I', ", i);
        stw_pg_strz(&body, roles[i]);
        stw_buf_adds(&body, ", me); END IF; ");
    }
    stw_buf_adds(&body, "END");
    stw_pg_put_do(&st->text, &body);
    stw_buf_done(&body);
}
