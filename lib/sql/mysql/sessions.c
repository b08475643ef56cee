/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts and ends the sessions of an account.  Sessions of other accounts are only shown to an admin
 * with PROCESS.  Inside a routine a session is shown, and found by KILL USER, by the name of the routine's
 * definer; performance_schema.threads has the name of its login, where it is on. */
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"

#include "base/util.h"

#include <stdio.h>

#define SESSIONS_MAX 10000

struct mysql_sessions {
    const char *user;
    struct stw_script kill;
};

static int read_session(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct mysql_sessions *k = ctx;
    if (count < 2 || !c[0].data || !c[1].data)
        return -1;
    if (!stw_streq(c[1].data, k->user) || k->kill.count == SESSIONS_MAX)
        return 0;
    struct stw_statement *st = stw_script_add(&k->kill, STW_SQL_STEP_DROP, NULL);
    st->may_fail = true; /* it may have ended meanwhile */
    stw_buf_addf(&st->text, "KILL CONNECTION %llu", strtoull(c[0].data, NULL, 10));
    return 0;
}

static void put_threads(struct stw_buf *out, const struct stw_session *s,
                        const struct stw_account *a)
{
    stw_buf_adds(out, " FROM performance_schema.threads WHERE PROCESSLIST_ID IS NOT NULL AND "
                      "PROCESSLIST_USER=");
    stw_mysql_strz(out, a->user, s->facts.no_backslash);
}

/* An admin who may not read it ends the sessions that are shown. */
static int kill_hidden(struct stw_session *s, const struct stw_account *a, struct stw_fault *f)
{
    struct mysql_sessions k = {.user = a->user};
    stw_autoscript struct stw_script script = {0};
    if (!s->facts.threads)
        return 0;
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_DROP, NULL);
    stw_buf_adds(&st->text, "SELECT PROCESSLIST_ID,PROCESSLIST_USER");
    put_threads(&st->text, s, a);
    int r = stw_session_ask(s, st, read_session, &k, f);
    if (r == 0)
        r = stw_session_run(s, &k.kill, f);
    stw_script_done(&k.kill);
    if (r != 0 && f->trouble == STW_SQL_DENIED) {
        *f = (struct stw_fault){0};
        r = 0;
    }
    return r;
}

/* MySQL has no statement for all of them. */
static int kill_each(struct stw_session *s, const struct stw_account *a, struct stw_fault *f)
{
    struct mysql_sessions k = {.user = a->user};
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_DROP, NULL);
    stw_buf_adds(&st->text, "SHOW PROCESSLIST");
    int r = stw_session_ask(s, st, read_session, &k, f);
    if (r == 0)
        r = stw_session_run(s, &k.kill, f);
    stw_script_done(&k.kill);
    return r;
}

/* Without a host: MariaDB compares one with the addresses of sessions as text, and not as the pattern
 * that an account has. */
static int kill_all(struct stw_session *s, const struct stw_account *a, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_DROP, NULL);
    st->may_fail = true;
    stw_buf_adds(&st->text, "KILL CONNECTION USER ");
    stw_mysql_name(&st->text, a->user);
    return stw_session_run(s, &script, f);
}

int stw_mysql_end_sessions(struct stw_session *s, const struct stw_account *a, struct stw_fault *f)
{
    int r = s->facts.mariadb ? kill_all(s, a, f) : kill_each(s, a, f);
    return r == 0 ? kill_hidden(s, a, f) : r;
}

/* --- counting */

struct session_count {
    const char *user;
    unsigned sessions, processes;
};

static int read_count(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct session_count *k = ctx;
    if (count < 2 || !c[0].data || !c[1].data)
        return -1;
    if (c[0].data[0] == 'p')
        k->processes++;
    else
        k->sessions += stw_streq(c[1].data, k->user); /* the server may compare without case */
    return 0;
}

/* A privilege that the admin has only through a role is not seen. */
int stw_mysql_count_sessions(struct stw_session *s, const struct stw_account *a, unsigned *ret,
                             bool *ret_hidden, struct stw_fault *f)
{
    struct session_count k;
    int r;
    bool threads = s->facts.threads;
    for (;; threads = false) {
        stw_autoscript struct stw_script script = {0};
        struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
        k = (struct session_count){.user = a->user};
        stw_buf_adds(&st->text,
                     "SELECT 's',USER,ID FROM information_schema.PROCESSLIST WHERE USER=");
        stw_mysql_strz(&st->text, a->user, s->facts.no_backslash);
        if (threads) {
            stw_buf_adds(&st->text, " UNION SELECT 's',PROCESSLIST_USER,PROCESSLIST_ID");
            put_threads(&st->text, s, a);
        }
        stw_buf_adds(&st->text,
                     " UNION SELECT 'p',PRIVILEGE_TYPE,0 FROM "
                     "information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE='PROCESS' "
                     "AND GRANTEE=CONCAT('''',REPLACE(CURRENT_USER(),'@','''@'''),'''')");
        r = stw_session_ask(s, st, read_count, &k, f);
        if (r == 0 || !threads || f->trouble != STW_SQL_DENIED)
            break;
        *f = (struct stw_fault){0}; /* the admin may not read it */
    }
    *ret = k.sessions;
    *ret_hidden = k.processes == 0;
    return r;
}
