/* SPDX-License-Identifier: Apache-2.0
 *
 * What an account of MySQL or MariaDB has besides its rights: accounts that it may act for. */
#include "sql/core/adopt.h"
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"

#include "base/util.h"

static int read_proxy_row(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct stw_buf *excess = ctx;
    if (count < 1 || !c[0].data)
        return -1;
    if (!stw_streq(c[0].data, "0"))
        stw_adopt_note(excess, "PROXY on other accounts");
    return 0;
}

int stw_mysql_look_adoption(struct stw_session *s, const struct stw_account *a,
                            const struct stw_seen *seen, struct stw_buf *excess,
                            struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    (void)seen;
    stw_buf_adds(&st->text, "SELECT COUNT(*) FROM mysql.proxies_priv WHERE User=");
    stw_mysql_strz(&st->text, a->user, s->facts.no_backslash);
    return stw_session_ask(s, st, read_proxy_row, excess, f);
}
