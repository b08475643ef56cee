/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/target/pool_priv.h"

#include "base/clock.h"
#include "base/fence.h"
#include "base/util.h"

#include <assert.h>
#include <time.h>

#define AGAIN_TRIES 10 /* when transactions conflict */
#define AGAIN_NS 7000000

/* Also before a connection, for which the admin's password is sent. */
static bool may_connect(struct stw_fault *f)
{
    if (stw_fence_check(&f->err) == 0)
        return true;
    f->trouble = STW_SQL_CONNECT;
    f->step = STW_SQL_STEP_CONNECT;
    return false;
}

/* A login to the admin's database that has had no answer may be held up by a lock that anybody can take. */
static struct stw_conn *take_connection(struct stw_pool *p, const char *database,
                                        struct stw_fault *f)
{
    struct stw_conn *conn = may_connect(f) ? stw_pool_take(p, database, f) : NULL;
    if (conn || database || !f->timeout || !stw_session_free_logins(p))
        return conn;
    *f = (struct stw_fault){0};
    return stw_pool_take(p, NULL, f);
}

int stw_session_begin(struct stw_session *s, struct stw_pool *p, struct stw_fault *f)
{
    *s = (struct stw_session){.pool = p, .ops = stw_pool_ops(p)};
    s->conn = take_connection(p, NULL, f);
    if (!s->conn)
        return -1;
    s->facts = *s->ops->facts(s->conn);
    return 0;
}

static void give_back(struct stw_session *s, bool lost)
{
    stw_pool_put(s->pool, stw_take(s->conn), lost);
    free(s->database);
    s->database = NULL;
}

void stw_session_leave_server(struct stw_session *s)
{
    give_back(s, true);
    stw_pool_close_idle(s->pool);
}

void stw_session_end(struct stw_session *s)
{
    give_back(s, false);
}

bool stw_session_free_logins(struct stw_pool *p)
{
    struct stw_session s = {.pool = p, .ops = stw_pool_ops(p)};
    bool held_up;
    s.conn = stw_pool_take_standing(p, &held_up);
    bool answers = s.conn && held_up && s.ops->free_logins(&s);
    if (answers)
        stw_pool_hold(p);
    stw_session_end(&s);
    return answers;
}

const struct stw_target *stw_session_target(const struct stw_session *s)
{
    return stw_pool_target(s->pool);
}

/* Switches the session to a connection to this database. */
static int move_to(struct stw_session *s, const char *database, struct stw_fault *f)
{
    const char *admins = stw_pool_target(s->pool)->admin_database;
    if (database && admins && stw_streq(database, admins))
        database = NULL;
    if (s->conn &&
        (database && s->database ? stw_streq(database, s->database) : database == s->database))
        return 0;
    give_back(s, false);
    if (database && !(s->database = strdup(database)))
        return stw_fault_set(f, STW_SQL_BUSY, STW_SQL_STEP_CONNECT, "no memory");
    s->conn = take_connection(s->pool, s->database, f);
    if (!s->conn)
        return -1;
    if (!s->wide || s->ops->facts(s->conn)->utf8)
        return 0;
    return stw_fault_set(f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_GRANT,
                         "the database \"%s\" is not UTF-8, and names beyond ASCII would be others "
                         "there",
                         s->database ? s->database : "of the admin");
}

#define SCOPE_MAX 200

/* Of "GRANT SELECT ON `shop`.* TO `u`@`%`", which contains no value: "SELECT ON `shop`.*". */
static void find_scope(const struct stw_statement *st, char out[SCOPE_MAX])
{
    const char *text = stw_buf_str(&st->text), *end;
    out[0] = '\0';
    if (strncmp(text, "GRANT ", 6) == 0 && (end = strstr(text, " TO ")))
        text += 6;
    else if (strncmp(text, "REVOKE ", 7) == 0 && (end = strstr(text, " FROM ")))
        text += 7;
    else
        return;
    stw_format(out, SCOPE_MAX, "%.*s", (int)STW_MIN(end - text, SCOPE_MAX - 4), text);
    for (char *p = out; *p != '\0'; p++)
        if ((unsigned char)*p < ' ')
            *p = '?';
}

/* What the admin may not do, or does not find, and where. */
static void name_statement(const struct stw_session *s, const struct stw_statement *st,
                           size_t count, struct stw_fault *f)
{
    char scope[SCOPE_MAX] = "";
    if (f->trouble != STW_SQL_DENIED && f->trouble != STW_SQL_NO_OBJECT)
        return;
    if (count == 1)
        find_scope(st, scope);
    if (f->trouble == STW_SQL_DENIED)
        (void)stw_error_wrap(&f->err, "%s%sas \"%s\"%s%s%s", scope, scope[0] ? ", " : "",
                             stw_session_target(s)->admin_user,
                             s->database ? " in the database \"" : "",
                             s->database ? s->database : "", s->database ? "\"" : "");
    else if (scope[0] != '\0')
        (void)stw_error_wrap(&f->err, "%s", scope);
}

/* What the server says of a connection to another database than the admin's can be set by the owner of the
 * database: read-only, or the end of idle sessions.  The next look at the account, which is in the admin's
 * database, finds out whether it is the whole server. */
static bool is_of_its_database(const struct stw_fault *f)
{
    bool said = f->state[0] != '\0' && strncmp(f->state, "08", 2) != 0;
    return said && (f->trouble == STW_SQL_READ_ONLY || f->trouble == STW_SQL_CONNECT);
}

static int send_some(struct stw_session *s, const struct stw_statement *st, size_t count,
                     stw_row_fn *row, void *ctx, struct stw_fault *f)
{
    assert(s->conn && count > 0);
    if (stw_fence_check(&f->err) != 0) {
        f->trouble = STW_SQL_CONNECT;
        f->step = st->step;
        return -1;
    }
    int r = s->ops->run(s->conn, st, count, row, ctx, f);
    s->statements += (unsigned)count;
    stw_pool_count(s->pool, (unsigned)count, r == 0);
    if (r == 0 && s->locked[0] == '\0')
        stw_format(s->locked, sizeof(s->locked), "%s", f->locked);
    if (r < 0 && !stw_pool_blame_database(f, s->database, st->step))
        name_statement(s, st, count, f);
    if (r < 0 && s->database && is_of_its_database(f))
        f->trouble = STW_SQL_FAILED;
    if (r < 0 && f->trouble == STW_SQL_READ_ONLY)
        stw_session_leave_server(s);
    else if (r < 0 && f->lost)
        give_back(s, true);
    return r;
}

/* In another encoding than UTF-8, a name on the server may not be readable. */
static bool is_in_place(const struct stw_session *s, const struct stw_statement *st)
{
    return s->stays && !st->database && s->conn && s->ops->facts(s->conn)->utf8;
}

int stw_session_ask(struct stw_session *s, const struct stw_statement *st, stw_row_fn *row,
                    void *ctx, struct stw_fault *f)
{
    bool fresh = !s->conn;
    if (st->text.failed)
        return stw_fault_set(f, STW_SQL_LOOKUP, st->step, "a statement could not be written");
    if (!is_in_place(s, st) && move_to(s, st->database, f) != 0)
        return -1;
    int r = send_some(s, st, 1, row, ctx, f);
    if (r == 0 || !f->lost || f->timeout || fresh)
        return r;
    /* The connection was idle and the server had closed it: nothing was changed, so it is safe to
     * ask again. */
    *f = (struct stw_fault){0};
    return move_to(s, st->database, f) != 0 ? -1 : send_some(s, st, 1, row, ctx, f);
}

/* With what the engine adds to each statement, at most STW_STATEMENT_MAX_BYTES. */
#define GROUP_MAX_BYTES ((size_t)3 << 20)

/* How many statements, from the first on, are sent together. */
static size_t count_group(const struct stw_session *s, const struct stw_statement *st, size_t left)
{
    size_t n = 1, bytes = st->text.len;
    if (!s->ops->transactional || st->may_fail || st->alone || st->own)
        return 1;
    while (n < left && !st[n].may_fail && !st[n].alone && !st[n].own &&
           bytes + st[n].text.len < GROUP_MAX_BYTES &&
           (st[n].database && st->database ? stw_streq(st[n].database, st->database)
                                           : st[n].database == st->database))
        bytes += st[n++].text.len;
    return n;
}

static int send_group(struct stw_session *s, const struct stw_statement *st, size_t count,
                      struct stw_fault *f)
{
    int r = send_some(s, st, count, NULL, NULL, f);
    for (long i = 1; r < 0 && f->again && i < AGAIN_TRIES; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = i * AGAIN_NS}, NULL);
        *f = (struct stw_fault){0};
        r = send_some(s, st, count, NULL, NULL, f);
    }
    return r;
}

static uint64_t now_ms(void)
{
    return stw_now_ms(&stw_clock_system);
}

int stw_session_run(struct stw_session *s, struct stw_script *script, struct stw_fault *f)
{
    if (!stw_script_complete(script))
        return stw_fault_set(f, STW_SQL_FAILED, STW_SQL_STEP_LOOKUP,
                             "a statement could not be written: no memory, or too long");
    uint64_t until = now_ms() + (uint64_t)stw_session_target(s)->statement_timeout_seconds * 1000;
    for (size_t i = 0, n; i < script->count; i += n) {
        const struct stw_statement *st = &script->items[i];
        struct stw_fault ignored = {0}, *to = st->may_fail ? &ignored : f;
        n = 1;
        if (st->around && now_ms() > until)
            continue; /* another session has locked very many objects */
        n = count_group(s, st, script->count - i);
        int r = move_to(s, st->database, to);
        if (r == 0) {
            r = send_group(s, st, n, to);
            s->changed = true;
            stw_pool_sent(s->pool);
        }
        /* A server that refused it has at least read it. */
        if (r < 0 && st->may_fail && !s->conn)
            *f = ignored;
        if (r < 0 && (!st->may_fail || !s->conn))
            return -1;
        for (size_t k = 0; k < n && r == 0; k++)
            script->items[i + k].done = true;
    }
    return 0;
}

int stw_session_trial(struct stw_session *s, const char *user, const struct stw_sql_secret *secret)
{
    const struct stw_target *t = stw_pool_target(s->pool);
    struct stw_fault f = {0};
    struct stw_buf password = STW_BUF_INIT(1u << 20);
    password.secret = true;
    stw_buf_add(&password, secret->data, secret->len);
    struct stw_conn *conn = s->ops->open(&(struct stw_login_as){.target = t,
                                                                .user = user,
                                                                .database = t->admin_database,
                                                                .password = stw_buf_str(&password),
                                                                .trial = true},
                                         &f);
    stw_buf_done(&password);
    s->ops->close(conn);
    if (conn)
        return 1;
    /* Other refusals, as by pg_hba.conf, say nothing of the password. */
    return stw_streq(f.state, "28P01") ? 0 : -1;
}
