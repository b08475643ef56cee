/* SPDX-License-Identifier: Apache-2.0
 *
 * A session keeps the name of its account when the account is dropped, and so does one that is inside a routine
 * whose definer has that name.  It gets the rights of the next account of the name.  Lists of sessions show only the
 * name that is current: a session inside a routine of another definer is not found by its own.  So the end of an
 * account is noted in steward.dropped, with the highest id that a session had by then. */
#include "sql/core/quote.h"
#include "sql/mysql/mysql_priv.h"

#include "base/util.h"

struct stw_statement *stw_mysql_write_dropped(struct stw_script *s)
{
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_CREATE, NULL);
    stw_buf_adds(&st->text,
                 "CREATE TABLE IF NOT EXISTS steward.dropped (user VARCHAR(128) NOT NULL, "
                 "namespace VARCHAR(63) NOT NULL, cluster VARCHAR(127) NOT NULL, "
                 "session BIGINT UNSIGNED NOT NULL, PRIMARY KEY (user, namespace, cluster)) "
                 "ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin "
                 "COMMENT='names whose former sessions may still be open; kept by steward'");
    return st;
}

/* The counter that ids of sessions are taken from.  It begins at 1 when the server starts. */
static void put_counter(struct stw_buf *out, const struct stw_facts *k)
{
    stw_buf_addf(out,
                 "(SELECT CAST(VARIABLE_VALUE AS UNSIGNED) FROM %s.%s WHERE "
                 "VARIABLE_NAME='Connections')",
                 k->mariadb ? "information_schema" : "performance_schema",
                 k->mariadb ? "GLOBAL_STATUS" : "global_status");
}

void stw_mysql_note_dropped(const struct stw_facts *k, const struct stw_account *a,
                            struct stw_script *s)
{
    stw_mysql_write_dropped(s)->may_fail = true; /* it is there, and the admin may not make any */
    struct stw_buf *out = &stw_script_add(s, STW_SQL_STEP_DROP, NULL)->text;
    stw_buf_adds(out, "REPLACE INTO steward.dropped (user, namespace, cluster, session) SELECT ");
    stw_mysql_strz(out, a->user, k->no_backslash);
    stw_buf_addc(out, ',');
    stw_mysql_strz(out, a->ns, k->no_backslash);
    stw_buf_addc(out, ',');
    stw_mysql_strz(out, a->cluster, k->no_backslash);
    stw_buf_addc(out, ',');
    put_counter(out, k);
}

static void put_of_user(struct stw_buf *out, const struct stw_facts *k, const struct stw_account *a,
                        bool own)
{
    stw_buf_adds(out, "dropped.user=");
    stw_mysql_strz(out, a->user, k->no_backslash);
    stw_buf_adds(out, own ? " AND (dropped.namespace=" : " AND NOT (dropped.namespace=");
    stw_mysql_strz(out, a->ns, k->no_backslash);
    stw_buf_adds(out, " AND dropped.cluster=");
    stw_mysql_strz(out, a->cluster, k->no_backslash);
    stw_buf_addc(out, ')');
}

void stw_mysql_put_not_dropped(struct stw_buf *out, const struct stw_facts *k,
                               const struct stw_account *a)
{
    stw_buf_adds(out, "NOT EXISTS (SELECT 1 FROM steward.dropped WHERE ");
    put_of_user(out, k, a, false);
    stw_buf_addc(out, ')');
}

#define SESSIONS "information_schema.PROCESSLIST"

/* Of a row of `dropped`: the sessions `p` that may have its name.  One that sleeps, or sends the log of the server, is
 * in no routine and shows the name of its login; one that has begun a statement since finds no account of the name.  The
 * server's own threads have no such name, and the admin's sessions are steward's. */
static void put_former(struct stw_buf *out, const struct stw_session *s)
{
    stw_buf_adds(out,
                 "p.ID<=dropped.session AND p.COMMAND<>'Daemon' AND NOT (p.USER='system user' AND "
                 "COALESCE(p.HOST,'') IN ('','connecting host')) AND (p.COMMAND NOT IN ('Sleep',"
                 "'Binlog Dump','Binlog Dump GTID') OR CAST(p.USER AS BINARY)="
                 "CAST(dropped.user AS BINARY)) AND CAST(p.USER AS BINARY)<>CAST(");
    stw_mysql_strz(out, stw_session_target(s)->admin_user, s->facts.no_backslash);
    stw_buf_adds(out, " AS BINARY)");
}

/* Whether the admin sees sessions of others: it has PROCESS, perhaps by a role. */
static void put_sees_others(struct stw_buf *out, const struct stw_session *s)
{
    stw_buf_adds(out, "(EXISTS (SELECT 1 FROM " SESSIONS " WHERE CAST(USER AS BINARY)<>CAST(");
    stw_mysql_strz(out, stw_session_target(s)->admin_user, s->facts.no_backslash);
    stw_buf_adds(out,
                 " AS BINARY)) OR EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE "
                 "PRIVILEGE_TYPE='PROCESS' AND GRANTEE=CONCAT('''',REPLACE(CURRENT_USER(),'@',"
                 "'''@'''),'''')))");
}

/* Forgets what no session has any longer, of all accounts. */
static int forget_ended(struct stw_session *s, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    struct stw_buf *out = &st->text;
    stw_buf_adds(out, "DELETE FROM steward.dropped WHERE session>");
    put_counter(out, &s->facts);
    stw_buf_adds(out, " OR (");
    put_sees_others(out, s);
    stw_buf_adds(out, " AND NOT EXISTS (SELECT 1 FROM " SESSIONS " AS p WHERE ");
    put_former(out, s);
    stw_buf_adds(out, "))");
    return stw_session_ask(s, st, NULL, NULL, f);
}

#define NAMED_MAX 16

struct former_sessions {
    struct stw_buf ids;
    size_t count;
    bool hidden;
};

static int read_former(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct former_sessions *k = ctx;
    if (count < 2 || !c[0].data || !c[1].data)
        return -1;
    if (c[0].data[0] == 'h') {
        k->hidden = true;
        return 0;
    }
    if (k->count++ < NAMED_MAX)
        stw_buf_addf(&k->ids, "%s%llu", k->count > 1 ? ", " : "", strtoull(c[1].data, NULL, 10));
    return 0;
}

/* A drop that steward did not see is not noted: only sessions that show the name are found then.  A login that has
 * not ended yet shows it, too, and has no database. */
static void put_sessions(struct stw_buf *out, const struct stw_session *s,
                         const struct stw_account *a)
{
    const struct stw_facts *k = &s->facts;
    stw_buf_adds(out, "SELECT 's',p.ID FROM steward.dropped JOIN " SESSIONS " AS p ON ");
    put_former(out, s);
    stw_buf_adds(out, " WHERE ");
    put_of_user(out, k, a, false);
    stw_buf_adds(out, " UNION SELECT 's',p.ID FROM " SESSIONS " AS p WHERE CAST(p.USER AS BINARY)="
                      "CAST(");
    stw_mysql_strz(out, a->user, k->no_backslash);
    stw_buf_adds(out, " AS BINARY) AND NOT (p.COMMAND='Connect' AND p.DB IS NULL) AND NOT EXISTS "
                      "(SELECT 1 FROM steward.dropped WHERE ");
    put_of_user(out, k, a, true);
    stw_buf_adds(out, ") AND NOT EXISTS (SELECT 1 FROM steward.accounts WHERE user=");
    stw_mysql_strz(out, a->user, k->no_backslash);
    stw_buf_adds(out, ") UNION SELECT 'h','0' FROM steward.dropped WHERE ");
    put_of_user(out, k, a, false);
    stw_buf_adds(out, " AND NOT ");
    put_sees_others(out, s);
}

static void set_former(struct stw_fault *ret, const struct former_sessions *k)
{
    if (k->count > 0)
        (void)stw_fault_set(ret, STW_SQL_NOT_OURS, STW_SQL_STEP_LOOKUP,
                            "sessions that were open when another account of this name was dropped "
                            "may still have its name, and would get the rights of this one: have "
                            "them ended (KILL %s%s), or choose another spec.user",
                            stw_buf_str(&k->ids), k->count > NAMED_MAX ? ", and others" : "");
    else if (k->hidden)
        (void)stw_fault_set(ret, STW_SQL_NOT_OURS, STW_SQL_STEP_LOOKUP,
                            "another account of this name was dropped, and the admin account does "
                            "not see whether sessions still have its name: give it PROCESS on *.*, "
                            "or choose another spec.user");
}

/* A former version has not made the table.  If it cannot be made, no mark is written. */
int stw_mysql_look_former(struct stw_session *s, const struct stw_account *a, struct stw_fault *ret,
                          struct stw_fault *f)
{
    enum stw_mark_place place;
    stw_autoscript struct stw_script script = {0}, make = {0};
    struct former_sessions former = {.ids = STW_BUF_INIT(1024)};
    if (forget_ended(s, f) != 0) {
        if (!stw_mysql_needs_place(f, &place))
            return -1;
        *f = (struct stw_fault){0};
        stw_mysql_write_dropped(&make)->may_fail = true;
        if (stw_session_run(s, &make, f) != 0)
            return -1;
    }
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    put_sessions(&st->text, s, a);
    int r = stw_session_ask(s, st, read_former, &former, f);
    if (r != 0 && stw_mysql_needs_place(f, &place)) {
        *f = (struct stw_fault){0};
        r = 0;
    }
    if (r == 0)
        set_former(ret, &former);
    stw_buf_done(&former.ids);
    return r;
}
