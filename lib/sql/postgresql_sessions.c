/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts and ends the sessions of a login of PostgreSQL.  The server shows everyone whose they are. */
#include "sql/postgresql_priv.h"
#include "sql/quote.h"

#include "base/util.h"

int stw_pg_read_count(void *ctx, const struct stw_cell *c, unsigned count)
{
    unsigned *sessions = ctx;
    if (count < 1 || !c[0].data)
        return -1;
    *sessions = (unsigned)strtoul(c[0].data, NULL, 10);
    return 0;
}

void stw_pg_write_end_of_sessions(const struct stw_account *a, struct stw_script *s)
{
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_DROP, NULL);
    st->may_fail = true;
    stw_buf_adds(&st->text, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                            "pid <> pg_backend_pid() AND usename = ");
    stw_pg_strz(&st->text, a->user);
}

int stw_pg_end_sessions(struct stw_session *s, const struct stw_account *a, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    stw_pg_write_end_of_sessions(a, &script);
    return stw_session_run(s, &script, f);
}

/* A GRANT to a role locks it until the transaction ends, also one on a temporary table: anybody can hold
 * that for ever.  The sessions of superusers are not ended. */
int stw_pg_unblock(struct stw_session *s, const struct stw_seen *seen, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_DROP, NULL);
    st->may_fail = true;
    stw_buf_addf(
        &st->text,
        "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid "
        "= l.pid JOIN pg_roles r ON r.oid = a.usesysid WHERE l.locktype = 'object' AND "
        "l.classid = 'pg_authid'::regclass AND l.objid = %s AND l.granted AND l.pid <> "
        "pg_backend_pid() AND NOT r.rolsuper AND r.rolname <> current_user",
        seen->role_oid);
    return stw_session_run(s, &script, f);
}

int stw_pg_count_sessions(struct stw_session *s, const struct stw_account *a, unsigned *ret,
                          bool *ret_hidden, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    *ret_hidden = false;
    stw_buf_adds(&st->text, "SELECT count(*)::text FROM pg_stat_activity WHERE usename = ");
    stw_pg_strz(&st->text, a->user);
    return stw_session_ask(s, st, stw_pg_read_count, ret, f);
}
