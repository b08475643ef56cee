/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts and ends the sessions of a login of PostgreSQL.  The server shows everyone whose they are. */
#include "sql/core/quote.h"
#include "sql/postgresql/postgresql_priv.h"
#include "sql/target/pool_priv.h"

#include "base/clock.h"
#include "base/util.h"

/* Of a row `r` of pg_roles.  The admin may act as another role than it logs in as. */
#define MAY_BE_ENDED                                                                               \
    "NOT r.rolsuper AND NOT r.rolreplication AND r.rolname NOT IN (current_user, session_user)"

static void put_terminate(struct stw_buf *out, const char *verb, const char *user)
{
    stw_buf_addf(out,
                 "%s pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
                 "pg_backend_pid() AND usename = %s",
                 verb, user);
}

/* An admin without pg_signal_backend ends them as the role itself. */
struct stw_statement *stw_pg_write_end_of_sessions(const struct stw_facts *k,
                                                   const struct stw_account *a,
                                                   struct stw_script *s)
{
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_DROP, NULL);
    stw_autobuf struct stw_buf user = STW_BUF_INIT(1024), body = STW_BUF_INIT(16384);
    stw_pg_strz(&user, a->user);
    stw_buf_adds(&user, "::name");
    if (k->superuser) {
        put_terminate(&st->text, "SELECT", stw_buf_str(&user));
    } else {
        stw_buf_adds(&body, "DECLARE me name := current_user; lent boolean; BEGIN BEGIN ");
        put_terminate(&body, "PERFORM", stw_buf_str(&user));
        stw_buf_adds(&body, "; EXCEPTION WHEN insufficient_privilege THEN ");
        stw_pg_put_become(&body, stw_buf_str(&user));
        put_terminate(&body, "PERFORM", stw_buf_str(&user));
        stw_buf_adds(&body, "; ");
        stw_pg_put_return(&body, stw_buf_str(&user));
        stw_buf_adds(&body, "END; END");
        stw_pg_put_do(&st->text, &body);
    }
    st->text.failed |= user.failed;
    return st;
}

int stw_pg_end_sessions(struct stw_session *s, const struct stw_account *a, struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    (void)stw_pg_write_end_of_sessions(&s->facts, a, &script);
    return stw_session_run(s, &script, f);
}

/* The locks that keep a role from being changed, of a row `l` of pg_locks with its role `r`.  A role may change its own password
 * and settings: that holds the catalogue's lock until the transaction ends, and of roles without
 * CREATEROLE nothing else does.  A GRANT to a role and a setting of it hold the role itself, also a grant on a
 * temporary table, which only keeps it from being dropped.  Whose row of the catalogue another role's transaction
 * has changed only a superuser sees. */
static void put_holds(struct stw_buf *out, const struct stw_facts *k, const struct stw_seen *seen,
                      bool drop)
{
    stw_buf_addf(out,
                 "l.granted AND ((l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND "
                 "l.relation IN ('pg_authid'::regclass, 'pg_db_role_setting'::regclass) AND NOT "
                 "r.rolcreaterole AND (r.oid = %s",
                 seen->role_oid);
    if (k->superuser)
        stw_buf_addf(out,
                     " OR EXISTS (SELECT FROM pg_locks x WHERE x.virtualtransaction = "
                     "l.virtualtransaction AND x.granted AND ((x.locktype = 'transactionid' AND "
                     "(x.transactionid IN (SELECT u.xmax FROM pg_authid u WHERE u.oid = %s) OR "
                     "x.transactionid IN (SELECT g.xmax FROM pg_db_role_setting g WHERE g.setrole "
                     "= %s))) OR (l.relation = 'pg_db_role_setting'::regclass AND x.locktype = "
                     "'object' AND x.classid = 'pg_authid'::regclass AND x.objid = %s)))",
                     seen->role_oid, seen->role_oid, seen->role_oid);
    stw_buf_adds(out, "))");
    if (drop)
        stw_buf_addf(out,
                     " OR (l.locktype = 'object' AND l.classid = 'pg_authid'::regclass AND "
                     "l.objid = %s)",
                     seen->role_oid);
    stw_buf_addc(out, ')');
}

static int read_prepared(void *ctx, const struct stw_cell *c, unsigned count)
{
    struct stw_script *ends = ctx;
    if (count < 2 || !c[0].data || !c[1].data)
        return -1;
    struct stw_statement *st = stw_script_add(ends, STW_SQL_STEP_DROP, c[0].data);
    st->alone = true;
    stw_buf_adds(&st->text, "ROLLBACK PREPARED ");
    stw_pg_strz(&st->text, c[1].data);
    return 0;
}

/* Each alone: the owner of its database may have closed that to all, and others go on. */
static void end_each(struct stw_session *s, const struct stw_script *all)
{
    uint64_t until_ms = stw_now_ms(&stw_clock_system) +
                        (uint64_t)stw_session_target(s)->statement_timeout_seconds * 1000;
    for (size_t i = 0; i < all->count && stw_now_ms(&stw_clock_system) < until_ms; i++) {
        const struct stw_statement *st = &all->items[i];
        struct stw_fault f = {0};
        for (int tries = 0; tries < 2; tries++) {
            stw_autoscript struct stw_script one = {0}, open = {0};
            struct stw_statement *end = stw_script_add(&one, st->step, st->database);
            end->alone = true;
            stw_buf_add(&end->text, st->text.data, st->text.len);
            if (stw_session_run(s, &one, &f) == 0 || s->conn)
                break;
            stw_pg_write_open(&open, &s->facts, st->database);
            f = (struct stw_fault){0};
            if (stw_session_run(s, &open, &f) != 0)
                break;
        }
    }
}

/* A prepared transaction has no session.  Only a superuser, or who prepared it, can end it.  One of another account
 * stays, and is reported as the lock that it is. */
static int end_prepared(struct stw_session *s, const struct stw_seen *seen, bool drop,
                        struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0}, ends = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_adds(
        &st->text,
        "SELECT DISTINCT p.database::text, p.gid FROM pg_prepared_xacts p JOIN pg_locks t "
        "ON t.transactionid = p.transaction AND t.granted AND t.pid IS NULL JOIN pg_locks l "
        "ON l.virtualtransaction = t.virtualtransaction AND l.pid IS NULL JOIN pg_roles r "
        "ON r.rolname = p.owner WHERE " MAY_BE_ENDED " AND ");
    stw_buf_addf(&st->text, "r.oid = %s AND ", seen->role_oid);
    put_holds(&st->text, &s->facts, seen, drop);
    stw_buf_adds(&st->text, " LIMIT 100");
    if (stw_session_ask(s, st, read_prepared, &ends, f) != 0)
        return -1;
    end_each(s, &ends);
    return 0;
}

static int end_as_superuser(struct stw_session *s, const struct stw_seen *seen, bool drop,
                            struct stw_fault *f)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_DROP, NULL);
    st->may_fail = true;
    stw_buf_adds(&st->text,
                 "SELECT pg_terminate_backend(h.pid) FROM (SELECT DISTINCT l.pid FROM pg_locks l "
                 "JOIN pg_stat_activity a ON a.pid = l.pid JOIN pg_roles r ON r.oid = a.usesysid "
                 "WHERE l.pid <> pg_backend_pid() AND " MAY_BE_ENDED " AND ");
    put_holds(&st->text, &s->facts, seen, drop);
    stw_buf_adds(&st->text, ") h");
    return stw_session_run(s, &script, f) != 0 ? -1 : end_prepared(s, seen, drop, f);
}

/* The sessions that have changed the role's row of the catalogue or are about to, of which `waiter` is one.  Who is about
 * to holds the lock of the row, or waits for that; the first of them waits for the transaction that has changed it.
 * What that one waits for can be a lock of anybody.  One look at the locks: they are of one moment. */
static void put_row_changers(struct stw_buf *out, const char *waiter)
{
    stw_buf_addf(out,
                 "WITH locks AS (SELECT * FROM pg_locks), queue AS (SELECT q.pid FROM locks w JOIN "
                 "locks q ON q.locktype = 'tuple' AND q.relation = w.relation AND q.page = w.page "
                 "AND q.tuple = w.tuple WHERE w.pid = %s AND w.locktype = 'tuple' AND w.relation = "
                 "'pg_authid'::regclass), changers AS (SELECT pid FROM queue UNION SELECT h.pid "
                 "FROM locks x JOIN locks h ON h.locktype = 'transactionid' AND h.granted AND "
                 "h.transactionid = x.transactionid WHERE x.locktype = 'transactionid' AND NOT "
                 "x.granted AND x.pid IN (SELECT pid FROM queue)) ",
                 waiter);
}

/* Also ends what keeps the session `waiter` from the role's row.  Without pg_signal_backend, sessions of the role
 * itself are ended as the role. */
static void write_end_of_holders(struct stw_script *s, const struct stw_facts *k,
                                 const struct stw_seen *seen, bool drop, const char *waiter)
{
    struct stw_statement *st = stw_script_add(s, STW_SQL_STEP_DROP, NULL);
    stw_autobuf struct stw_buf body = STW_BUF_INIT(16384);
    stw_buf_adds(&body, "DECLARE me name := current_user; lent boolean; denied boolean := false; "
                        "held record; BEGIN FOR held IN ");
    put_row_changers(&body, waiter);
    stw_buf_addf(&body,
                 "SELECT a.pid, r.rolname, r.oid = %s AS own FROM pg_stat_activity a JOIN pg_roles "
                 "r ON r.oid = a.usesysid WHERE a.pid <> pg_backend_pid() AND " MAY_BE_ENDED
                 " AND ((NOT r.rolcreaterole AND a.pid IN (SELECT pid FROM changers)) OR EXISTS "
                 "(SELECT FROM pg_locks l WHERE l.pid = a.pid AND ",
                 seen->role_oid);
    put_holds(&body, k, seen, drop);
    stw_buf_adds(&body, ")) LOOP BEGIN PERFORM pg_terminate_backend(held.pid); EXCEPTION WHEN "
                        "insufficient_privilege THEN BEGIN IF NOT held.own THEN RAISE; END IF; ");
    stw_pg_put_become(&body, "held.rolname");
    stw_buf_adds(&body, "PERFORM pg_terminate_backend(held.pid); ");
    stw_pg_put_return(&body, "held.rolname");
    stw_buf_adds(&body, "EXCEPTION WHEN insufficient_privilege THEN denied := true; END; END; END "
                        "LOOP; IF denied THEN RAISE insufficient_privilege; END IF; END");
    stw_pg_put_do(&st->text, &body);
}

#define PID_SIZE 16

static int read_pid(void *ctx, const struct stw_cell *c, unsigned count)
{
    if (count < 1 || !c[0].data)
        return -1;
    stw_format(ctx, PID_SIZE, "%s", c[0].data);
    return 0;
}

/* Changes the role, which is taken back: what keeps this session waiting holds the row of the role.  A pooler in
 * transaction mode gives another session to each transaction: the pid is of this one. */
static int start_wait(struct stw_session *s, struct stw_conn *waiter, const char *role_oid,
                      char ret_pid[PID_SIZE])
{
    struct stw_fault ignored = {0};
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_adds(&st->text, "BEGIN; SELECT pg_backend_pid()::text");
    st = stw_script_add(&script, STW_SQL_STEP_LOOKUP, NULL);
    stw_buf_addf(&st->text,
                 "DO $$ BEGIN EXECUTE format('ALTER ROLE %%I NOLOGIN', (SELECT rolname FROM "
                 "pg_roles WHERE oid = %s)); END $$; ROLLBACK",
                 role_oid);
    return !stw_script_complete(&script) ||
                   s->ops->run(waiter, &script.items[0], 1, read_pid, ret_pid, &ignored) != 0 ||
                   s->ops->start(waiter, &script.items[1], &ignored) != 0
               ? -1
               : 0;
}

#define WAITS_MS 500 /* until what was ended has let go */
#define LOOK_MS 20

/* What holds the row of the role only shows while something waits for it. */
static int end_as_limited(struct stw_session *s, const struct stw_seen *seen, bool drop,
                          struct stw_fault *f)
{
    struct stw_fault ignored = {0};
    char pid[PID_SIZE] = "0";
    int r;
    unsigned ms = LOOK_MS, waited_ms = 0;
    struct stw_conn *waiter = stw_pool_open_beside(s->pool, &ignored);
    bool waits = waiter && start_wait(s, waiter, seen->role_oid, pid) == 0;
    do {
        stw_autoscript struct stw_script script = {0};
        waits = waits && s->ops->waits(waiter, ms);
        waited_ms += ms;
        ms *= 2;
        write_end_of_holders(&script, &s->facts, seen, drop, pid);
        r = stw_session_run(s, &script, f);
    } while (r == 0 && waits && waited_ms < WAITS_MS);
    s->ops->close(waiter);
    if (r != 0 && !s->conn)
        return -1;
    if (f->trouble == STW_SQL_DENIED) {
        stw_autobuf struct stw_buf needs = STW_BUF_INIT(STW_MISSING_SIZE);
        stw_buf_adds(&needs, "GRANT pg_signal_backend TO ");
        stw_pg_name(&needs, stw_session_target(s)->admin_user);
        stw_format(s->unblock_needs, sizeof(s->unblock_needs), "%s", stw_buf_str(&needs));
    }
    *f = (struct stw_fault){0}; /* what waits for the lock says that it is still held */
    return 0;
}

/* Anybody can hold such a lock for ever.  The transactions of superusers are not ended. */
int stw_pg_unblock(struct stw_session *s, const struct stw_seen *seen, bool drop,
                   struct stw_fault *f)
{
    s->unblock_needs[0] = '\0';
    return s->facts.superuser ? end_as_superuser(s, seen, drop, f)
                              : end_as_limited(s, seen, drop, f);
}

/* Any account may ask for DROP DATABASE: each login to the database waits behind the lock that this waits for,
 * which another of its sessions keeps it from getting.  Each login that is under way holds a RowExclusiveLock, and
 * goes on. */
void stw_pg_put_free_logins(struct stw_buf *out, const char *database)
{
    stw_buf_adds(
        out, "SELECT pg_terminate_backend(h.pid) FROM (SELECT DISTINCT l.pid FROM pg_locks l "
             "JOIN pg_stat_activity a ON a.pid = l.pid JOIN pg_roles r ON r.oid = a.usesysid "
             "JOIN pg_database d ON d.oid = l.objid WHERE l.locktype = 'object' AND l.classid = "
             "'pg_database'::regclass AND d.datname = ");
    stw_pg_strz(out, database);
    stw_buf_adds(
        out, " AND (l.mode IN "
             "('ExclusiveLock', 'AccessExclusiveLock') OR (l.granted AND l.mode <> "
             "'RowExclusiveLock' AND EXISTS (SELECT FROM pg_locks w WHERE w.locktype = 'object' "
             "AND w.classid = l.classid AND w.objid = l.objid AND NOT w.granted AND w.mode IN "
             "('ExclusiveLock', 'AccessExclusiveLock')))) AND l.pid <> pg_backend_pid() AND "
             "a.backend_type = 'client backend' AND " MAY_BE_ENDED ") h");
}

/* While the admin is connected there, no DROP DATABASE can succeed. */
bool stw_pg_free_logins(struct stw_session *s)
{
    stw_autoscript struct stw_script script = {0};
    struct stw_fault ignored = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_DROP, NULL);
    stw_pg_put_free_logins(&st->text, stw_session_target(s)->admin_database);
    return stw_session_run(s, &script, &ignored) == 0 || (s->conn && ignored.state[0] != '\0');
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
