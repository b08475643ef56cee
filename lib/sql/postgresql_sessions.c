/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the sessions of a login of PostgreSQL.  The server shows everyone whose they are. */
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
