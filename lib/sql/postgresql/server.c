/* SPDX-License-Identifier: Apache-2.0
 *
 * What PostgreSQL says about the admin's login, for core/server.h. */
#include "sql/core/server.h"
#include "sql/postgresql/postgresql_priv.h"

enum { USER, SUPER, CREATE_ROLE, CREATE_DB, SIGNAL, STANDBY, TLS, CELLS };

struct pg_server_look {
    struct stw_server_report *r;
    const struct stw_target *target;
    bool standby;
};

static bool is_true(const struct stw_cell *c)
{
    return c->data && stw_streq(c->data, "true");
}

static int read_login(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct pg_server_look *k = ctx;
    if (count < CELLS || !c[USER].data)
        return -1;
    k->standby = is_true(&c[STANDBY]);
    stw_format(k->r->tls, sizeof(k->r->tls), "%s", c[TLS].data ? c[TLS].data : "");
    if (is_true(&c[SUPER]))
        return 0;
    if (!is_true(&c[CREATE_ROLE]))
        stw_server_miss(k->r, "CREATEROLE, without which no account is created or changed",
                        "ALTER ROLE %s CREATEROLE", c[USER].data);
    if (!is_true(&c[SIGNAL]))
        stw_server_miss(
            k->r,
            "the right to end the sessions of an account that is dropped or locked, or that "
            "holds up all logins",
            "GRANT pg_signal_backend TO %s", c[USER].data);
    if (k->target->allow_create && k->target->allow_create[0] && !is_true(&c[CREATE_DB]))
        stw_server_miss(k->r, "CREATEDB, for the databases of allowCreateDatabases",
                        "ALTER ROLE %s CREATEDB", c[USER].data);
    return 0;
}

int stw_pg_look_server(struct stw_session *s, struct stw_server_report *r, struct stw_fault *f)
{
    struct pg_server_look k = {.r = r, .target = stw_session_target(s)};
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_adds(&st->text,
                 "SELECT quote_ident(current_user), r.rolsuper::text, r.rolcreaterole::text, "
                 "r.rolcreatedb::text, pg_has_role(current_user, 'pg_signal_backend', "
                 "'MEMBER')::text, pg_is_in_recovery()::text, (SELECT l.version FROM pg_stat_ssl l "
                 "WHERE l.pid = pg_backend_pid() AND l.ssl) FROM pg_roles r WHERE r.rolname = "
                 "current_user");
    if (stw_session_ask(s, st, read_login, &k, f) != 0)
        return -1;
    return k.standby ? stw_fault_set(f, STW_SQL_READ_ONLY, STW_SQL_STEP_LOOKUP,
                                     "the server is a standby, which is read-only")
                     : 0;
}
