/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be read about a role from any database of a PostgreSQL server: the role, its mark, its
 * rights on databases, and in which databases it has more. */
#include "sql/core/quote.h"
#include "sql/password/password.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "base/util.h"

#include <stdio.h>
#include <time.h>

#define NAME_MAX_BYTES 63

/* The server truncates longer names without an error, so that two names would become one. */
static int check_pg_name(const char *what, const char *name, struct stw_error *err)
{
    size_t len = strlen(name);
    if (len == 0)
        return stw_fail(err, STW_ERR_INVALID, "the %s is empty", what);
    if (len > NAME_MAX_BYTES)
        return stw_fail(err, STW_ERR_INVALID, "the %s must be at most %d bytes", what,
                        NAME_MAX_BYTES);
    if (!stw_utf8_valid(name, len))
        return stw_fail(err, STW_ERR_INVALID, "the %s is not valid UTF-8", what);
    return 0;
}

/* In GRANT ... TO, "public" means everyone and "none" no role, even in quotation marks. */
static int check_role(const char *name, struct stw_error *err)
{
    if (stw_streq(name, "public") || stw_streq(name, "none") || strncmp(name, "pg_", 3) == 0)
        return stw_fail(err, STW_ERR_INVALID, "the name is reserved by the server");
    if (strncmp(name, STW_PG_HEIR_PREFIX, strlen(STW_PG_HEIR_PREFIX)) == 0)
        return stw_fail(err, STW_ERR_INVALID,
                        "names that begin with \"" STW_PG_HEIR_PREFIX "\" are steward's own");
    return check_pg_name("user", name, err);
}

static int check_columns(const char *const *columns, struct stw_error *err)
{
    for (; columns && *columns; columns++)
        if (check_pg_name("name of a column", *columns, err) < 0)
            return -1;
    return 0;
}

int stw_pg_check(const struct stw_facts *k, const struct stw_account *a, struct stw_error *err)
{
    (void)k;
    if (check_role(a->user, err) < 0 ||
        (a->reassign_owned_to && check_pg_name("new owner", a->reassign_owned_to, err) < 0) ||
        (a->acts_as && check_role(a->acts_as, err) < 0))
        return -1;
    if (a->keep_old)
        return stw_fail(err, STW_ERR_INVALID,
                        "a role of PostgreSQL has only one valid password; set the strategy "
                        "InPlace");
    if (a->require_tls != STW_ACCOUNT_TLS_NONE)
        return stw_fail(err, STW_ERR_INVALID,
                        "PostgreSQL asks for TLS in pg_hba.conf, not for an account");
    if (a->max_queries_per_hour || a->max_updates_per_hour || a->max_connections_per_hour)
        return stw_fail(err, STW_ERR_INVALID, "PostgreSQL limits only the number of connections");
    for (size_t i = 0; i < a->grant_count; i++) {
        const struct stw_grant *g = &a->grants[i];
        if (g->schema &&
            (strncmp(g->schema, "pg_", 3) == 0 || stw_streq(g->schema, "information_schema")))
            return stw_fail(err, STW_ERR_INVALID,
                            "the schema \"%s\" is the server's own: no rights on it are given",
                            g->schema);
        if (check_pg_name("name of a database", g->database, err) < 0 ||
            (g->schema && check_pg_name("name of a schema", g->schema, err) < 0) ||
            (g->table && check_pg_name("name of a table", g->table, err) < 0) ||
            check_columns(g->columns, err) < 0 ||
            (g->routine && check_pg_name("name of a function", g->routine, err) < 0))
            return -1;
    }
    return 0;
}

enum { KIND, A, B, C, D, E, F, CELLS };

static bool needs_all_databases(const struct stw_account *a)
{
    for (size_t i = 0; i < a->grant_count; i++)
        if (stw_streq(a->grants[i].database, "*"))
            return true;
    return false;
}

#define CAN_LOGIN "login"

static void write_lookup(struct stw_statement *st, const struct stw_facts *k,
                         const struct stw_account *a)
{
    struct stw_buf quoted = STW_BUF_INIT(4096), until = STW_BUF_INIT(4096), *out = &st->text;
    stw_pg_strz(&quoted, a->user);
    const char *user = stw_buf_str(&quoted), *table = k->reads_verifiers ? "pg_authid" : "pg_roles";
    if (a->valid_until) {
        stw_buf_adds(&until, " AND coalesce(r.rolvaliduntil, 'infinity') = ");
        stw_pg_strz(&until, a->valid_until);
        stw_buf_adds(&until, "::timestamptz");
    }
    out->failed |= quoted.failed || until.failed;
    stw_buf_addf(
        out,
        "SELECT 'r', r.oid::text, (r.rolsuper OR r.rolreplication OR r.rolbypassrls OR "
        "r.rolcreaterole OR r.rolcreatedb)::text, concat_ws(',', CASE WHEN r.rolcanlogin THEN "
        "'" CAN_LOGIN "' END, CASE WHEN true%s THEN 'same' END, CASE WHEN "
        "current_setting('password_encryption') = 'scram-sha-256' THEN 'scram' END, CASE WHEN "
        "r.rolvaliduntil < now() THEN 'expired' END), r.rolconnlimit::text, "
        "left(shobj_description(r.oid, 'pg_authid'), 1048577), %s FROM %s r WHERE r.rolname = %s",
        stw_buf_str(&until), k->reads_verifiers ? "r.rolpassword" : "NULL", table, user);
    stw_buf_addf(out,
                 " UNION ALL SELECT 'a', d.datname::text, x.privilege_type, x.is_grantable::text, "
                 "CASE WHEN x.grantor <> d.datdba THEN pg_get_userbyid(x.grantor)::text END, NULL, "
                 "NULL FROM pg_database d CROSS JOIN LATERAL aclexplode(d.datacl) x "
                 "JOIN pg_roles r ON r.oid = x.grantee WHERE r.rolname = %s AND d.datdba <> r.oid",
                 user);
    stw_buf_addf(out,
                 " UNION ALL SELECT DISTINCT 'd', d.datname::text, NULL, NULL, NULL, NULL, NULL "
                 "FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid JOIN pg_roles r ON "
                 "r.oid = s.refobjid WHERE s.refclassid = 'pg_authid'::regclass AND r.rolname = %s "
                 "AND d.datallowconn",
                 user);
    stw_buf_addf(
        out,
        " UNION ALL (SELECT 'o', d.datname::text, NULL, NULL, NULL, NULL, NULL FROM "
        "pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE r.rolname = %s LIMIT 1000)",
        user);
    stw_buf_addf(
        out,
        " UNION ALL SELECT 'm', g.rolname::text, m.admin_option::text, NULL, %s, NULL, "
        "NULL FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles r "
        "ON r.oid = m.member WHERE r.rolname = %s",
        /* a superuser gives as the first superuser; before 16 there is one grant of each */
        k->number < 160000 ? "NULL"
        : k->superuser     ? "CASE WHEN m.grantor <> 10 THEN pg_get_userbyid(m.grantor)::text END"
                           : "CASE WHEN pg_get_userbyid(m.grantor) <> current_user THEN "
                             "pg_get_userbyid(m.grantor)::text END",
        user);
    if (needs_all_databases(a))
        stw_buf_adds(out, " UNION ALL SELECT 'n', datname::text, NULL, NULL, NULL, NULL, NULL FROM "
                          "pg_database WHERE datallowconn AND NOT datistemplate");
    stw_buf_adds(out, " UNION ALL SELECT 'f', pg_is_in_recovery()::text, NULL, NULL, NULL, NULL, "
                      "NULL");
    stw_buf_done(&quoted);
    stw_buf_done(&until);
}

struct pg_look {
    const struct stw_account *account;
    const struct stw_facts *facts;
    struct stw_seen *seen;
    struct stw_login *login;
};

static const char *get_cell_text(const struct stw_cell *c)
{
    return c->data ? c->data : "";
}

static bool is_true(const struct stw_cell *c)
{
    return stw_streq(get_cell_text(c), "true");
}

static int read_role(struct pg_look *k, const struct stw_cell *c)
{
    struct stw_login *l = k->login;
    char limit[24];
    int64_t most = k->account->max_user_connections;
    l->exists = true;
    l->special = is_true(&c[B]);
    stw_format(k->seen->role_oid, sizeof(k->seen->role_oid), "%s", get_cell_text(&c[A]));
    stw_format(limit, sizeof(limit), "%lld", (long long)(most > 0 ? most : -1));
    l->can_login = strncmp(get_cell_text(&c[C]), CAN_LOGIN, strlen(CAN_LOGIN)) == 0;
    l->options_differ =
        !strstr(get_cell_text(&c[C]), "same") || !stw_streq(get_cell_text(&c[D]), limit);
    if (k->facts->reads_verifiers)
        l->password =
            stw_pg_password_state(k->account->user, c[F].data, c[F].len, &k->account->password);
    if (k->account->iam && k->facts->reads_verifiers)
        l->password = c[F].data ? STW_PASSWORD_DIFFERS : STW_PASSWORD_SAME;
    l->stale =
        c[F].data && strncmp(c[F].data, "md5", 3) == 0 && strstr(get_cell_text(&c[C]), "scram");
    l->expired = !k->account->valid_until && strstr(get_cell_text(&c[C]), "expired");
    if (c[F].data)
        stw_login_note(l, "", c[F].data, c[F].len);
    return stw_mark_parse(get_cell_text(&c[E]), c[E].len, &l->mark);
}

static void add_right(struct stw_login *l, struct stw_right r, bool option)
{
    stw_rights_add(&l->have, &r);
    r.option = true;
    if (option)
        stw_rights_add(&l->have, &r);
}

static int read_account_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct pg_look *k = ctx;
    struct stw_seen *seen = k->seen;
    if (count < CELLS || !c[KIND].data)
        return -1;
    switch (c[KIND].data[0]) {
    case 'r':
        return read_role(k, c);
    case 'a':
        add_right(k->login,
                  (struct stw_right){.level = STW_LEVEL_DATABASE,
                                     .database = get_cell_text(&c[A]),
                                     .privilege = get_cell_text(&c[B]),
                                     .grantor = get_cell_text(&c[D])},
                  is_true(&c[C]));
        return 0;
    case 'd':
        return stw_names_add(&seen->databases, &seen->database_count, get_cell_text(&c[A]));
    case 'o':
        return stw_names_add(&seen->own_databases, &seen->own_count, get_cell_text(&c[A]));
    case 'm':
        add_right(k->login,
                  (struct stw_right){.level = STW_LEVEL_ROLE,
                                     .name = get_cell_text(&c[A]),
                                     .privilege = "MEMBER",
                                     .grantor = get_cell_text(&c[D])},
                  is_true(&c[B]));
        return 0;
    case 'n':
        return stw_names_add(&seen->all_databases, &seen->all_count, get_cell_text(&c[A]));
    default:
        seen->read_only = is_true(&c[A]);
        return 0;
    }
}

static bool is_expired(const struct stw_account *a)
{
    int64_t until;
    return a->valid_until && stw_time_parse(a->valid_until, &until) == 0 &&
           until <= (int64_t)time(NULL) * 1000000;
}

/* Tries a login where the verifier cannot be read or compared.  After validUntil no login works, with
 * any password. */
static void try_password(struct stw_session *s, const struct stw_account *a, struct stw_login *l)
{
    if (!l->exists || !a->password.data || l->password != STW_PASSWORD_UNKNOWN ||
        a->login != STW_LOGIN_YES)
        return;
    if (is_expired(a)) {
        l->password = STW_PASSWORD_SAME;
        return;
    }
    int works = stw_session_trial(s, a->user, &a->password);
    if (works >= 0)
        l->password = works ? STW_PASSWORD_SAME : STW_PASSWORD_DIFFERS;
    else if (a->password_is_new) /* the server gave no answer; to set it twice changes nothing */
        l->password = STW_PASSWORD_DIFFERS;
}

int stw_pg_look(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                struct stw_fault *f)
{
    struct pg_look k = {.account = a, .facts = &s->facts, .seen = seen};
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    write_lookup(st, &s->facts, a);
    if (!(k.login = stw_seen_login(seen, "")))
        return stw_fault_set(f, STW_SQL_LOOKUP, STW_SQL_STEP_LOOKUP, "no memory");
    k.login->wanted = true;
    if (stw_session_ask(s, st, read_account_row, &k, f) < 0)
        return -1;
    stw_rights_sort(&k.login->have);
    if (stw_pg_look_settings(s, a, k.login, f) != 0)
        return -1;
    try_password(s, a, k.login);
    return 0;
}
