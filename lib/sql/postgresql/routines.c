/* SPDX-License-Identifier: Apache-2.0
 *
 * EXECUTE on functions and procedures of PostgreSQL: on all with one name, or on all in a schema.
 *
 * Some functions would make their callers admins of the server, which is why only chosen roles may
 * execute them: those of extensions (dblink_connect_u), those in languages that are not trusted (C),
 * and those that run with the rights of a privileged owner.  They are never given.  Others run with
 * the rights of their callers, or of an owner whose rights are only in databases. */
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

#define DO_MAX_BYTES (64u << 10)

/* Whether EXECUTE on the function `p` may be given. */
static void put_may(struct stw_buf *out)
{
    stw_buf_adds(out, "(NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass "
                      "AND e.objid = p.oid AND e.deptype = 'e') AND EXISTS (SELECT FROM "
                      "pg_language l WHERE l.oid = p.prolang AND l.lanpltrusted) AND NOT "
                      "(p.prosecdef AND ");
    stw_pg_put_privileged(out, "p.proowner");
    stw_buf_adds(out, "))");
}

/* pg_proc p and the schemas n of the right. */
static void put_from(struct stw_buf *out, const struct stw_right *r)
{
    stw_buf_adds(out, " FROM pg_proc p, ");
    stw_pg_put_schemas(out, r);
    stw_buf_adds(out, " n WHERE ");
}

/* The functions of the right among them. */
static void put_named(struct stw_buf *out, const struct stw_right *r)
{
    stw_buf_adds(out, "p.pronamespace = n.oid");
    if (stw_pg_is_all_tables(r))
        return;
    stw_buf_adds(out, " AND p.proname = ");
    stw_pg_strz(out, r->name);
}

void stw_pg_write_routines_look(struct stw_buf *out, const struct stw_right *r, const char *user,
                                const char *oid)
{
    bool all = stw_pg_is_all_tables(r);
    stw_buf_adds(out, " UNION ALL SELECT 'x', ");
    stw_pg_strz(out, r->schema);
    stw_buf_adds(out, ", (q.whole");
    if (all) {
        stw_buf_adds(out, " AND ");
        stw_pg_put_future(out, r, user, oid, true);
    }
    stw_buf_adds(out, ")::text, (q.part");
    if (all) {
        stw_buf_adds(out, " OR ");
        stw_pg_put_future(out, r, user, oid, false);
    }
    stw_buf_adds(out, ")::text, ");
    stw_pg_strz(out, r->name);
    stw_buf_addf(
        out,
        ", '%s', q.missing FROM (SELECT coalesce(bool_and(NOT h.within OR h.own OR CASE WHEN "
        "h.may THEN h.has ELSE NOT h.any END), true)%s "
        "AS whole, coalesce(bool_or(h.own OR h.has), false) AS part, min(format('%%s of the "
        "role %%I', h.name, pg_get_userbyid(h.owner))) FILTER (WHERE h.within AND h.may AND "
        "NOT h.own AND NOT h.has) AS missing FROM (SELECT n.within, p.oid::regprocedure::text AS "
        "name, p.proowner "
        "AS owner, p.proowner = %s AS own, EXISTS (SELECT FROM aclexplode(p.proacl) x WHERE "
        "x.grantee = %s%s) AS has, "
        "EXISTS (SELECT FROM aclexplode(p.proacl) x WHERE x.grantee = %s) AS any, ",
        r->option ? "true" : "false", all ? "" : " AND coalesce(bool_or(h.own OR h.may), false)",
        oid, oid, r->option ? " AND x.is_grantable" : "", oid);
    put_may(out);
    stw_buf_adds(out, " AS may");
    put_from(out, r);
    put_named(out, r);
    stw_buf_adds(out, ") h) q WHERE EXISTS (SELECT FROM ");
    stw_pg_put_schemas(out, r);
    stw_buf_adds(out, " n)");
}

void stw_pg_write_routines_have(struct stw_buf *out, const char *oid)
{
    stw_buf_addf(
        out,
        " UNION ALL SELECT 'p', n.nspname::text, p.proname::text, NULL, "
        "x.privilege_type, bool_or(x.is_grantable)::text, NULL FROM pg_proc p JOIN pg_namespace "
        "n ON n.oid = p.pronamespace CROSS JOIN LATERAL aclexplode(p.proacl) x WHERE "
        "x.grantee = %s AND p.proowner <> %s GROUP BY 2, 3, 5",
        oid, oid);
}

/* Whether the role was given the function `p`. */
static void put_given(struct stw_buf *out, const char *user)
{
    stw_buf_adds(out, "EXISTS (SELECT FROM aclexplode(p.proacl) x JOIN pg_roles u ON u.oid = "
                      "x.grantee WHERE u.rolname = ");
    stw_pg_strz(out, user);
    stw_buf_addc(out, ')');
}

static void put_execute(struct stw_buf *out, const struct stw_script *s, const char *verb,
                        const char *to, const char *user)
{
    stw_buf_adds(out, "BEGIN ");
    stw_pg_put_become(out, "o.role");
    stw_buf_addf(out, "EXECUTE format('%s EXECUTE ON ROUTINE %%s %s', o.f, ", verb, to);
    stw_pg_strz(out, user);
    stw_buf_adds(out, "); ");
    stw_pg_put_return(out, "o.role");
    stw_buf_adds(out, "EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation OR "
                      "undefined_function THEN NULL; ");
    stw_pg_put_around(out, s, "'FUNCTION ' || o.f");
    stw_buf_adds(out, "END; ");
}

static void put_select(struct stw_buf *out, const struct stw_script *s, const struct stw_right *r,
                       const char *user)
{
    stw_buf_addf(out,
                 "DECLARE me name := current_user; o record; lent boolean; given int := 0; %sBEGIN "
                 "%sFOR o IN SELECT p.oid::regprocedure::text AS f, ",
                 stw_pg_around(s)->declare, stw_pg_around(s)->begin);
    stw_pg_put_owner_role(out, "p.proowner");
    stw_buf_adds(out, " AS role, ");
    put_given(out, user);
    stw_buf_adds(out, " AS has, ");
    put_may(out);
    stw_buf_adds(out, " AS may, n.within");
    put_from(out, r);
    put_named(out, r);
    stw_buf_addf(out, " LOOP %s", s->around_locks ? STW_PG_IN_TIME : "");
}

static void put_give(struct stw_buf *out, const struct stw_script *s, const struct stw_right *r,
                     const char *user)
{
    stw_buf_adds(out, "IF o.may AND o.within THEN given := given + 1; ");
    put_execute(out, s, "GRANT", r->option ? "TO %I WITH GRANT OPTION" : "TO %I", user);
    stw_buf_adds(out, "END IF; END LOOP;");
}

static void put_take_withheld(struct stw_buf *out, const struct stw_script *s, const char *user)
{
    stw_buf_adds(out, "IF o.has AND NOT o.may THEN ");
    put_execute(out, s, "REVOKE", "FROM %I", user);
    stw_buf_adds(out, "END IF; END LOOP;");
}

static void put_take(struct stw_buf *out, const struct stw_script *s, const struct stw_right *r,
                     const char *user)
{
    stw_buf_adds(out, "IF o.has THEN ");
    put_execute(out, s, r->option ? "REVOKE GRANT OPTION FOR" : "REVOKE", "FROM %I", user);
    stw_buf_adds(out, "END IF; END LOOP;");
}

/* A grant on a name that no function has, or only functions that may not be given, is an error. */
static void put_missing(struct stw_buf *out, const struct stw_right *r)
{
    stw_buf_adds(out, " IF given = 0 THEN IF EXISTS (SELECT");
    put_from(out, r);
    put_named(out, r);
    stw_buf_adds(out, ") THEN RAISE EXCEPTION USING ERRCODE = '" STW_PG_STATE_WITHHELD
                      "', MESSAGE = 'withheld'; END IF; RAISE EXCEPTION USING ERRCODE = "
                      "'undefined_function', MESSAGE = 'missing'; END IF;");
}

enum what { GIVE, TAKE, TAKE_WITHHELD };

static void add_block(struct stw_script *s, enum what what, const char *user,
                      const struct stw_right *r)
{
    struct stw_buf body = STW_BUF_INIT(DO_MAX_BYTES);
    struct stw_statement *st =
        stw_script_add(s, what == GIVE ? STW_SQL_STEP_GRANT : STW_SQL_STEP_REVOKE, r->database);
    st->alone = what == TAKE_WITHHELD;
    st->own = stw_pg_is_all_schemas(r);
    st->around = s->around_locks;
    put_select(&body, s, r, user);
    if (what == GIVE)
        put_give(&body, s, r, user);
    else if (what == TAKE)
        put_take(&body, s, r, user);
    else
        put_take_withheld(&body, s, user);
    if (what == GIVE && !stw_pg_is_all_tables(r))
        put_missing(&body, r);
    stw_buf_addf(&body, " %sEND", stw_pg_around(s)->end);
    stw_pg_put_do(&st->text, &body);
    stw_buf_done(&body);
}

/* A function that may no longer be given is taken back, in a transaction of its own: the error for a
 * name that has no other function would undo it. */
void stw_pg_write_routines(struct stw_script *s, bool give, const char *user,
                           const struct stw_right *r)
{
    if (give)
        add_block(s, TAKE_WITHHELD, user, r);
    add_block(s, give ? GIVE : TAKE, user, r);
}
