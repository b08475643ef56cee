/* SPDX-License-Identifier: Apache-2.0
 *
 * Giving and taking rights of PostgreSQL as the role that can: the owner of each object, or the role
 * that gave the right (borrow.c).  An object whose owner the admin cannot become is left
 * out, so that it keeps no other one from its right; what is missing or remains is read afterwards. */
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

#define BODY_MAX_BYTES ((size_t)256 << 10)
/* Errors of one object: it has gone, or the role cannot be lent, or lacks the right after all. */
#define SKIP                                                                                       \
    "EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation OR undefined_table OR "      \
    "undefined_column OR "                                                                         \
    "undefined_object OR undefined_function OR invalid_schema_name THEN NULL; "
/* Rights that the role that gives them has in part are given in part, with a warning. */
#define NO_WARNINGS "PERFORM set_config('client_min_messages', 'error', true); "
#define WARNINGS "PERFORM set_config('client_min_messages', 'notice', true); "

const char *stw_pg_acl_kind(const struct stw_right *scope)
{
    return scope->level == STW_LEVEL_DATABASE       ? "DATABASE"
           : scope->level == STW_LEVEL_SCHEMA       ? "SCHEMA"
           : stw_pg_what(scope) == STW_PG_SEQUENCES ? "SEQUENCE"
                                                    : "TABLE";
}

/* For the rows {role, n}: "before n after" as the role.  What is refused for one object is left to the others;
 * `what`, an expression, names the object of `item`. */
static void put_turns(struct stw_buf *body, const struct stw_script *s, const struct stw_buf *rows,
                      const char *before, const struct stw_buf *after, const char *what,
                      bool in_time)
{
    const struct stw_pg_around *around = stw_pg_around(s);
    body->failed |= rows->failed || after->failed;
    stw_buf_addf(body,
                 "%s" NO_WARNINGS
                 "FOR turn IN SELECT f.role, array_agg(f.n%s) AS items FROM (%s) f "
                 "GROUP BY f.role LOOP BEGIN ",
                 around->begin, around->order, stw_buf_str(rows));
    stw_pg_put_become(body, "turn.role");
    stw_buf_addf(body, "FOREACH item IN ARRAY turn.items LOOP %sBEGIN EXECUTE ",
                 in_time || s->around_locks ? STW_PG_IN_TIME : "");
    stw_pg_strz(body, before);
    stw_buf_adds(body, " || item || ");
    stw_pg_string(body, stw_buf_str(after), after->len);
    stw_buf_adds(body, "; " SKIP);
    stw_pg_put_around(body, s, what);
    stw_buf_adds(body, "END; END LOOP; ");
    stw_pg_put_return(body, "turn.role");
    stw_buf_adds(body, SKIP);
    stw_pg_put_around(body, s, "format('ROLE %I', turn.role)");
    stw_buf_addf(body, "END; END LOOP; " WARNINGS "%sEND", around->end);
}

/* Rows {n: the object's name, owner, acl}. */
static void put_objects(struct stw_buf *out, const struct stw_right *r)
{
    bool column = r->level == STW_LEVEL_COLUMN;
    if (r->level == STW_LEVEL_DATABASE) {
        stw_buf_adds(out, "SELECT format('%I', d.datname) AS n, d.datdba AS owner, d.datacl AS "
                          "acl, true AS within FROM pg_database d WHERE d.datname = ");
        stw_pg_strz(out, r->database);
        return;
    }
    if (r->level == STW_LEVEL_SCHEMA) {
        stw_buf_adds(out, "SELECT format('%I', s.nspname) AS n, s.nspowner AS owner, s.nspacl AS "
                          "acl, s.within FROM ");
        stw_pg_put_schemas(out, r);
        stw_buf_adds(out, " s");
        return;
    }
    stw_buf_addf(out,
                 "SELECT format('%%I.%%I', s.nspname, c.relname) AS n, c.relowner AS owner, "
                 "%s.%s AS acl, s.within FROM pg_class c%s JOIN ",
                 column ? "t" : "c", column ? "attacl" : "relacl",
                 column ? " JOIN pg_attribute t ON t.attrelid = c.oid" : "");
    stw_pg_put_schemas(out, r);
    stw_buf_addf(out, " s ON s.oid = c.relnamespace WHERE c.relkind IN (%s)",
                 stw_pg_what(r) == STW_PG_SEQUENCES ? "'S'"
                 : stw_pg_is_all_tables(r)          ? "'r', 'v', 'm', 'p', 'f'"
                                                    : "'r', 'v', 'm', 'p', 'f', 'S'");
    if (stw_pg_is_all_tables(r))
        return;
    stw_buf_adds(out, " AND c.relname = ");
    stw_pg_strz(out, r->name);
    if (!column)
        return;
    stw_buf_adds(out, " AND t.attname = ");
    stw_pg_strz(out, r->column);
}

/* The grants on an object to the role, of these privileges. */
static void put_its_grants(struct stw_buf *out, const struct stw_pg_acl *p)
{
    stw_buf_adds(out,
                 "aclexplode(q.acl) x JOIN pg_roles u ON u.oid = x.grantee WHERE u.rolname = ");
    stw_pg_strz(out, p->user);
    stw_buf_addf(out, " AND x.privilege_type = ANY (ARRAY[%s])%s", stw_buf_str(&p->names),
                 p->scope->option ? " AND x.is_grantable" : "");
}

/* {role, n}: who has to give a right that is missing, and where. */
static void put_missing(struct stw_buf *out, const struct stw_pg_acl *p)
{
    stw_buf_adds(out, "SELECT ");
    stw_pg_put_owner_role(out, "q.owner");
    stw_buf_adds(out, " AS role, q.n FROM (");
    put_objects(out, p->scope);
    stw_buf_adds(out, ") q WHERE q.within AND (SELECT count(DISTINCT x.privilege_type) FROM ");
    put_its_grants(out, p);
    stw_buf_addf(out, ") < %zu", p->count);
}

/* {role, n}: who has to take a right that is there.  Those of other grantors stay, unless all go. */
static void put_present(struct stw_buf *out, const struct stw_pg_acl *p)
{
    stw_buf_adds(out, "SELECT DISTINCT CASE WHEN x.grantor = q.owner THEN ");
    stw_pg_put_owner_role(out, "q.owner");
    stw_buf_adds(out, " ELSE ");
    stw_pg_put_grantor_role(out, "x.grantor");
    stw_buf_adds(out, " END AS role, q.n FROM (");
    put_objects(out, p->scope);
    stw_buf_adds(out, ") q CROSS JOIN LATERAL ");
    put_its_grants(out, p);
    if (!p->all_grantors)
        stw_buf_adds(out, " AND (x.grantor = q.owner OR pg_get_userbyid(x.grantor) = me)");
}

/* The server's own error for a name that it does not have. */
static void put_check(struct stw_buf *out, const struct stw_pg_acl *p)
{
    struct stw_right schema = {.level = STW_LEVEL_SCHEMA, .schema = p->scope->schema};
    stw_buf_adds(out, "IF NOT EXISTS (");
    put_objects(out, stw_pg_is_all_tables(p->scope) ? &schema : p->scope);
    stw_buf_adds(out, ") THEN EXECUTE ");
    stw_pg_string(out, stw_buf_str(&p->plain), p->plain.len);
    stw_buf_adds(out, "; END IF; ");
}

void stw_pg_write_acl(struct stw_script *s, bool give, const char *database,
                      const struct stw_pg_acl *p)
{
    struct stw_buf body = STW_BUF_INIT(BODY_MAX_BYTES), rows = STW_BUF_INIT(BODY_MAX_BYTES);
    struct stw_statement *st =
        stw_script_add(s, give ? STW_SQL_STEP_GRANT : STW_SQL_STEP_REVOKE, database);
    bool all = stw_pg_is_all_schemas(p->scope);
    char what[32];
    stw_format(what, sizeof(what), "'%s ' || item", stw_pg_acl_kind(p->scope));
    st->own = all;
    st->around = s->around_locks;
    if (give)
        put_missing(&rows, p);
    else
        put_present(&rows, p);
    stw_buf_addf(&body, "DECLARE me name := current_user; turn record; item text; lent boolean; %s",
                 stw_pg_around(s)->declare);
    if (all && !s->around_locks)
        stw_buf_addf(&body, "till timestamptz := clock_timestamp() + interval '%u ms'; ",
                     p->time_ms);
    stw_buf_adds(&body, "BEGIN ");
    if (give && !all)
        put_check(&body, p);
    put_turns(&body, s, &rows, stw_buf_str(&p->before), &p->after, what, all);
    body.failed |= p->before.failed || p->plain.failed || p->names.failed;
    stw_pg_put_do(&st->text, &body);
    stw_buf_done(&rows);
    stw_buf_done(&body);
}

void stw_pg_acl_done(struct stw_pg_acl *p)
{
    stw_buf_done(&p->names);
    stw_buf_done(&p->plain);
    stw_buf_done(&p->before);
    stw_buf_done(&p->after);
}

/* --- many rights, which others may have given
 *
 * Anybody can give an account any number of rights: they are values of few statements. */

#define SWEEP_PIECE 500

/* {kind, database, schema, name, column, privilege, option} */
static void put_value(struct stw_buf *out, const struct stw_right *r)
{
    const char *const cells[] = {r->database, r->schema, r->name, r->column, r->privilege};
    stw_buf_addf(out, "('%s'",
                 r->level == STW_LEVEL_DATABASE ? "d"
                 : r->level == STW_LEVEL_SCHEMA ? "s"
                                                : "r");
    for (size_t i = 0; i < STW_COUNT(cells); i++) {
        stw_buf_addc(out, ',');
        stw_pg_strz(out, cells[i]);
    }
    stw_buf_adds(out, r->option ? ",true)" : ",false)");
}

/* Rows {role, n}: who takes what. */
static void put_swept(struct stw_buf *out, const struct stw_buf *values, const char *user)
{
    stw_buf_adds(out, "WITH v (kind, base, sch, name, col, privilege, option) AS (VALUES ");
    stw_buf_add(out, values->data, values->len);
    stw_buf_adds(
        out, "), q AS (SELECT v.*, format('DATABASE %I', d.datname) AS n, d.datdba AS owner, "
             "d.datacl AS acl FROM v JOIN pg_database d ON d.datname = v.base WHERE v.kind = 'd' "
             "UNION ALL SELECT v.*, format('SCHEMA %I', s.nspname), s.nspowner, s.nspacl FROM v "
             "JOIN pg_namespace s ON s.nspname = v.sch WHERE v.kind = 's' UNION ALL SELECT v.*, "
             "format('%s %I.%I', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, "
             "s.nspname, c.relname), c.relowner, CASE v.col WHEN '' THEN c.relacl ELSE (SELECT "
             "t.attacl FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname = v.col) END "
             "FROM v JOIN pg_namespace s ON s.nspname = v.sch JOIN pg_class c ON c.relnamespace = "
             "s.oid AND c.relname = v.name WHERE v.kind = 'r') SELECT CASE WHEN x.grantor = "
             "q.owner THEN ");
    stw_pg_put_owner_role(out, "q.owner");
    stw_buf_adds(out, " ELSE ");
    stw_pg_put_grantor_role(out, "x.grantor");
    stw_buf_adds(
        out, " END AS role, format('%s%s%s ON %s', CASE WHEN q.option THEN 'GRANT OPTION FOR "
             "' END, q.privilege, CASE WHEN q.col <> '' THEN format(' (%I)', q.col) END, q.n) AS n "
             "FROM q CROSS JOIN LATERAL aclexplode(q.acl) x JOIN pg_roles u ON u.oid = x.grantee "
             "WHERE x.privilege_type = q.privilege AND (x.is_grantable OR NOT q.option) AND "
             "u.rolname = ");
    stw_pg_strz(out, user);
}

static void write_piece(struct stw_script *s, const char *database, const char *user,
                        const struct stw_buf *values)
{
    struct stw_buf body = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES), tail = STW_BUF_INIT(1024);
    struct stw_buf rows = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES);
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_REVOKE, database);
    st->own = true;
    st->around = s->around_locks;
    stw_buf_adds(&tail, " FROM ");
    stw_pg_name(&tail, user);
    stw_buf_adds(&tail, " CASCADE");
    stw_buf_addf(&body,
                 "DECLARE me name := current_user; turn record; item text; lent boolean; %sBEGIN ",
                 stw_pg_around(s)->declare);
    put_swept(&rows, values, user);
    put_turns(&body, s, &rows, "REVOKE ", &tail, "regexp_replace(item, '^.*? ON ', '')", false);
    body.failed |= values->failed;
    stw_pg_put_do(&st->text, &body);
    stw_buf_done(&tail);
    stw_buf_done(&rows);
    stw_buf_done(&body);
}

void stw_pg_write_sweep(struct stw_script *s, const char *database, const char *user,
                        const struct stw_rights *rights)
{
    struct stw_buf values = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES);
    size_t count = 0;
    for (size_t i = 0; i < rights->count; i++) {
        const struct stw_right *r = &rights->items[i];
        bool inside = r->level != STW_LEVEL_DATABASE;
        if (database ? !inside || !stw_streq(r->database, database) : inside)
            continue;
        stw_buf_adds(&values, count++ ? "," : "");
        put_value(&values, r);
        if (count < SWEEP_PIECE)
            continue;
        write_piece(s, database, user, &values);
        stw_buf_clear(&values);
        count = 0;
    }
    if (count > 0)
        write_piece(s, database, user, &values);
    stw_buf_done(&values);
}

/* --- before a drop
 *
 * DROP OWNED takes only what the owners gave, and for a table with rights on many columns once for
 * each of them all of its columns.  So each object's rights are taken before, by whom they are of, in
 * as many statements as the time for one of them needs. */

static const struct {
    const char *kind, *class, *name, *owner, *acl;
    bool shared;
} classes[] = {
    {"SCHEMA", "pg_namespace", "format('%I', c.nspname)", "c.nspowner", "c.nspacl", false},
    {"ROUTINE", "pg_proc", "c.oid::regprocedure::text", "c.proowner", "c.proacl", false},
    {"TYPE", "pg_type", "c.oid::regtype::text", "c.typowner", "c.typacl", false},
    {"LANGUAGE", "pg_language", "format('%I', c.lanname)", "c.lanowner", "c.lanacl", false},
    {"FOREIGN DATA WRAPPER", "pg_foreign_data_wrapper", "format('%I', c.fdwname)", "c.fdwowner",
     "c.fdwacl", false},
    {"FOREIGN SERVER", "pg_foreign_server", "format('%I', c.srvname)", "c.srvowner", "c.srvacl",
     false},
    {"LARGE OBJECT", "pg_largeobject_metadata", "c.oid::text", "c.lomowner", "c.lomacl", false},
    {"DATABASE", "pg_database", "format('%I', c.datname)", "c.datdba", "c.datacl", true},
    {"TABLESPACE", "pg_tablespace", "format('%I', c.spcname)", "c.spcowner", "c.spcacl", true},
};

/* The objects of a class on which the role has a right, found through the index of dependencies. */
static void put_dependent(struct stw_buf *out, const char *class, bool shared, const char *oid)
{
    stw_buf_addf(out,
                 "(SELECT DISTINCT s.objid FROM pg_shdepend s WHERE s.refclassid = "
                 "'pg_authid'::regclass AND s.refobjid = %s AND s.deptype = 'a' AND s.classid = "
                 "'%s'::regclass AND s.dbid = %s) e",
                 oid, class,
                 shared ? "0" : "(SELECT oid FROM pg_database WHERE datname = current_database())");
}

#define OF_COLUMNS                                                                                 \
    "pg_attribute t CROSS JOIN LATERAL aclexplode(t.attacl) x WHERE t.attrelid = c.oid AND "       \
    "x.grantee = "

/* Rows {what, n, owner, grantor}.  What the owner gave on the columns of a table goes with the table.
 * Others than the owner may take only what they may give, so that it is named. */
static void put_all_grants(struct stw_buf *out, const char *oid)
{
    stw_buf_adds(
        out, "SELECT g.what || CASE c.relkind WHEN 'S' THEN ' ON SEQUENCE' ELSE ' ON TABLE' END "
             "AS what, format('%I.%I', m.nspname, c.relname) AS n, c.relowner AS owner, "
             "g.grantor FROM ");
    put_dependent(out, "pg_class", false, oid);
    stw_buf_addf(
        out,
        " JOIN pg_class c ON c.oid = e.objid JOIN pg_namespace m ON m.oid = c.relnamespace "
        "CROSS JOIN LATERAL (SELECT 'ALL' AS what, c.relowner AS grantor WHERE EXISTS "
        "(SELECT FROM aclexplode(c.relacl) x WHERE x.grantee = %s AND x.grantor = "
        "c.relowner) OR EXISTS (SELECT FROM " OF_COLUMNS "%s AND x.grantor = c.relowner) "
        "UNION ALL SELECT string_agg(x.privilege_type, ', '), x.grantor FROM "
        "aclexplode(c.relacl) x WHERE x.grantee = %s AND x.grantor <> c.relowner GROUP BY "
        "x.grantor UNION ALL SELECT string_agg(format('%%s (%%I)', x.privilege_type, "
        "t.attname), ', '), x.grantor FROM " OF_COLUMNS
        "%s AND x.grantor <> c.relowner GROUP BY t.attnum, x.grantor) g",
        oid, oid, oid, oid);
    for (size_t i = 0; i < STW_COUNT(classes); i++) {
        stw_buf_addf(out, " UNION ALL SELECT 'ALL ON %s', ", classes[i].kind);
        stw_buf_adds(out, classes[i].name);
        stw_buf_addf(out, ", %s, g.grantor FROM ", classes[i].owner);
        put_dependent(out, classes[i].class, classes[i].shared, oid);
        stw_buf_addf(out,
                     " JOIN %s c ON c.oid = e.objid CROSS JOIN LATERAL (SELECT DISTINCT x.grantor "
                     "FROM aclexplode(%s) x WHERE x.grantee = %s) g",
                     classes[i].class, classes[i].acl, oid);
    }
}

#define SHED_PIECE 20000u

static void write_shed(struct stw_script *s, const char *database, const char *user,
                       const char *oid, unsigned timeout_seconds)
{
    struct stw_buf body = STW_BUF_INIT(BODY_MAX_BYTES), rows = STW_BUF_INIT(BODY_MAX_BYTES);
    struct stw_buf tail = STW_BUF_INIT(1024);
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_DROP, database);
    stw_buf_adds(&rows, "SELECT g.what || ' ' || g.n AS n, CASE WHEN g.grantor = g.owner THEN ");
    stw_pg_put_owner_role(&rows, "g.owner");
    stw_buf_adds(&rows, " ELSE ");
    stw_pg_put_grantor_role(&rows, "g.grantor");
    stw_buf_adds(&rows, " END AS role FROM (");
    put_all_grants(&rows, oid);
    stw_buf_addf(&rows, ") g LIMIT %u", SHED_PIECE);
    stw_buf_adds(&tail, " FROM ");
    stw_pg_name(&tail, user);
    stw_buf_adds(&tail, " CASCADE");
    stw_buf_addf(&body,
                 "DECLARE me name := current_user; till timestamptz := clock_timestamp() + "
                 "interval '%u ms'; turn record; item text; lent boolean; BEGIN ",
                 timeout_seconds * 1000 / 3);
    put_turns(&body, s, &rows, "REVOKE ", &tail, "item", true);
    stw_pg_put_do(&st->text, &body);
    stw_buf_done(&tail);
    stw_buf_done(&rows);
    stw_buf_done(&body);
}

struct pg_left {
    unsigned count;
    char what[200], grantor[STW_PG_NAME_SIZE];
};

static int read_left(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct pg_left *left = ctx;
    if (count < 3 || !c[0].data)
        return -1;
    left->count = (unsigned)strtoul(c[0].data, NULL, 10);
    stw_format(left->what, sizeof(left->what), "%s", c[1].data ? c[1].data : "");
    stw_format(left->grantor, sizeof(left->grantor), "%s", c[2].data ? c[2].data : "");
    return 0;
}

/* How many grants to the role there are, and one of them. */
static int ask_left(struct stw_session *s, const char *database, const char *oid,
                    struct pg_left *ret, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, database);
    *ret = (struct pg_left){0};
    stw_buf_adds(&st->text, "SELECT count(*)::text, (array_agg(g.what || ' ' || g.n))[1], "
                            "(array_agg(pg_get_userbyid(g.grantor)::text))[1] FROM (");
    put_all_grants(&st->text, oid);
    stw_buf_adds(&st->text, ") g");
    return stw_session_ask(s, st, read_left, ret, f);
}

static int shed_in(struct stw_session *s, const char *database, const struct stw_account *a,
                   const char *oid, struct stw_fault *f)
{
    const struct stw_target *t = stw_session_target(s);
    struct pg_left left, before;
    if (ask_left(s, database, oid, &left, f) != 0)
        return -1;
    do {
        stw_autoscript struct stw_script script = {0};
        before = left;
        if (left.count == 0)
            return 0;
        write_shed(&script, database, a->user, oid, (unsigned)t->statement_timeout_seconds);
        if (stw_session_run(s, &script, f) != 0 || ask_left(s, database, oid, &left, f) != 0)
            return -1;
    } while (left.count < before.count);
    (void)stw_fault_set(f, STW_SQL_DENIED, STW_SQL_STEP_DROP,
                        "it has %s%s%s, given by the role \"%s\", which the admin account may "
                        "not act as: as that role or a superuser, run REVOKE %s FROM \"%s\" "
                        "CASCADE",
                        left.what, database ? " in the database " : "", database ? database : "",
                        left.grantor, left.what, a->user);
    /* As DROP ROLE would say: it may have been given again at this moment. */
    stw_format(f->state, sizeof(f->state), "2BP01");
    return -1;
}

int stw_pg_shed(struct stw_session *s, const struct stw_account *a, const struct stw_seen *seen,
                struct stw_fault *f)
{
    for (size_t i = 0; i < seen->database_count; i++)
        if (shed_in(s, seen->databases[i], a, seen->role_oid, f) != 0)
            return -1;
    return shed_in(s, NULL, a, seen->role_oid, f);
}
