/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections to PostgreSQL through libpq, which is only used in its non-blocking form: every wait
 * has a deadline. */
#include "sql/core/databases_priv.h"
#include "sql/core/intake.h"
#include "sql/core/takeover.h"
#include "sql/postgresql/postgresql_priv.h"
#include "sql/target/library.h"
#include "sql/target/resolve.h"

#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>

#define FUNCTIONS(F)                                                                               \
    F(PQclear)                                                                                     \
    F(PQconnectPoll)                                                                               \
    F(PQconnectStartParams)                                                                        \
    F(PQconsumeInput)                                                                              \
    F(PQencryptPasswordConn)                                                                       \
    F(PQerrorMessage)                                                                              \
    F(PQfinish)                                                                                    \
    F(PQflush)                                                                                     \
    F(PQfreemem)                                                                                   \
    F(PQgetResult)                                                                                 \
    F(PQgetisnull)                                                                                 \
    F(PQgetlength)                                                                                 \
    F(PQgetvalue)                                                                                  \
    F(PQisBusy)                                                                                    \
    F(PQlibVersion)                                                                                \
    F(PQnfields)                                                                                   \
    F(PQnotifies)                                                                                  \
    F(PQntuples)                                                                                   \
    F(PQresultErrorField)                                                                          \
    F(PQresultStatus)                                                                              \
    F(PQsendQuery)                                                                                 \
    F(PQsetErrorVerbosity)                                                                         \
    F(PQsetNoticeReceiver)                                                                         \
    F(PQsetSingleRowMode)                                                                          \
    F(PQsocket)                                                                                    \
    F(PQstatus)
#define FORMER_POLL_MS 20
/* A connection may stand unused for as long as steward runs. */
#define KEEPALIVE_SECONDS "15"

STW_LIBRARY(library, pq, "libpq.so.5", "libpq5", FUNCTIONS);

static const char *const system_ca[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem",
                                        "/etc/pki/tls/certs/ca-bundle.crt"};

struct stw_conn {
    PGconn *pg;
    struct stw_facts facts;
    bool read_only_database;       /* ALTER DATABASE ... SET default_transaction_read_only */
    bool role_of_database;         /* ALTER DATABASE ... SET role */
    bool own_encoding;             /* the server reads what we send as UTF-8 */
    uint64_t timeout_ms;           /* of a statement, on our side */
    int wake;                      /* an eventfd that ends all waiting, for other threads */
    char warned[6];                /* the SQLSTATE of a grant that only caused a warning */
    char locked[STW_MISSING_SIZE]; /* see struct stw_fault */
    struct stw_intake intake;
    char settings[384];  /* statements at the start of each transaction */
    const char *cluster; /* of the pool */
};

static uint64_t now_ms(void)
{
    return stw_now_ms(&stw_clock_system);
}

/* 1: ready, 0: the deadline has passed, or the connection was cut. */
static int wait_for_server(const struct stw_conn *c, short events, uint64_t deadline_ms)
{
    for (;;) {
        struct pollfd p[] = {{.fd = pq.PQsocket(c->pg), .events = events},
                             {.fd = c->wake, .events = POLLIN}};
        uint64_t now = now_ms();
        if (now >= deadline_ms)
            return 0;
        if (poll(p, STW_COUNT(p), (int)STW_MIN(deadline_ms - now, (uint64_t)60000)) > 0)
            return p[1].revents == 0;
    }
}

static int took_too_long(struct stw_fault *f, enum stw_sql_step step)
{
    bool connecting = step == STW_SQL_STEP_CONNECT;
    (void)stw_fault_set(f, STW_SQL_CONNECT, step, "%s%s", connecting ? "cannot connect: " : "",
                        connecting ? stw_sql_connect_cause(ETIMEDOUT)
                                   : "the server did not answer in time");
    f->lost = f->timeout = true;
    return -1;
}

static int sent_too_much(struct stw_fault *f, enum stw_sql_step step)
{
    (void)stw_fault_set(f, step == STW_SQL_STEP_CONNECT ? STW_SQL_CONNECT : STW_SQL_LOOKUP, step,
                        "the server's answer is too large");
    f->lost = true;
    return -1;
}

static bool has_sent_too_much(const struct stw_conn *c)
{
    return stw_intake_is_over(&c->intake);
}

/* It may wait for a lock on the admin's database, which anybody can hold. */
static bool may_be_held_up(const struct stw_conn *c, const struct stw_login_as *as)
{
    return !as->trial && as->frees_until_ms == 0 &&
           stw_streq(as->database, as->target->admin_database) &&
           pq.PQstatus(c->pg) == CONNECTION_AWAITING_RESPONSE;
}

static void free_from_elsewhere(const struct stw_login_as *as, uint64_t deadline_ms);

static int connect_in_time(struct stw_conn *c, const struct stw_login_as *as, uint64_t deadline_ms,
                           struct stw_fault *f)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    uint64_t now = now_ms(), free_ms = now + (deadline_ms - STW_MIN(now, deadline_ms)) / 2;
    while (state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        stw_intake_open(&c->intake, pq.PQsocket(c->pg)); /* each address has another one */
        if (!wait_for_server(c, events, free_ms)) {
            if (free_ms == deadline_ms)
                return took_too_long(f, STW_SQL_STEP_CONNECT);
            if (may_be_held_up(c, as))
                free_from_elsewhere(as, deadline_ms);
            free_ms = deadline_ms;
            continue;
        }
        if (has_sent_too_much(c))
            return sent_too_much(f, STW_SQL_STEP_CONNECT);
        state = pq.PQconnectPoll(c->pg);
    }
    if (state == PGRES_POLLING_OK)
        return 0;
    stw_pg_connect_fault(f, pq.PQerrorMessage(c->pg));
    return -1;
}

static int finish_connect(struct stw_conn *c, const struct stw_login_as *as, uint64_t deadline_ms,
                          struct stw_fault *f)
{
    stw_intake_begin(&c->intake);
    int r = connect_in_time(c, as, deadline_ms, f);
    stw_intake_end(&c->intake);
    return r;
}

static const char *ca_of(const struct stw_target *t)
{
    for (size_t i = 0; !t->tls_ca_file && i < STW_COUNT(system_ca); i++)
        if (access(system_ca[i], R_OK) == 0)
            return system_ca[i];
    return t->tls_ca_file ? t->tls_ca_file : system_ca[0];
}

/* The host once for each of its addresses, as libpq expects it: the certificate is checked against
 * the name, and libpq does no lookup. */
static void write_hosts(const char *host, const struct stw_addresses *a, struct stw_buf *names,
                        struct stw_buf *addresses)
{
    for (size_t i = 0; i < a->count; i++) {
        stw_buf_adds(names, i > 0 ? "," : "");
        stw_buf_adds(names, host);
        stw_buf_adds(addresses, i > 0 ? "," : "");
        stw_buf_adds(addresses, a->text[i]);
    }
}

/* A server that is not authenticated must not get the password itself.  libpq from 16 on has an
 * option for that.  libpq from 13 on can only be required to bind the proof of the password to the
 * server's certificate, which needs SCRAM on the server; an older one does not know the option, and
 * does not connect.  Without TLS, libpq before 16 cannot refuse (see tls.mode Disable). */
static void ask_for_proof(const struct stw_login_as *as, bool verified, bool certificate,
                          const char *ret[2])
{
    const struct stw_target *t = as->target;
    int version = pq.PQlibVersion();
    ret[0] = ret[1] = NULL;
    if (verified || as->password[0] == '\0')
        return;
    if (version >= 160000) {
        ret[0] = "require_auth";
        /* With a certificate the server may ask for no password. */
        ret[1] = certificate ? "scram-sha-256,md5,none" : "scram-sha-256,md5";
    } else if (t->tls_mode == STW_TLS_REQUIRE) {
        ret[0] = "channel_binding";
        ret[1] = "require";
    }
}

/* Sets everything that the environment or files of a home directory could otherwise decide. */
static PGconn *start_connect(const struct stw_login_as *as, const struct stw_addresses *addresses)
{
    static const char *const modes[] = {[STW_TLS_DISABLE] = "disable",
                                        [STW_TLS_REQUIRE] = "require",
                                        [STW_TLS_VERIFY_CA] = "verify-ca",
                                        [STW_TLS_VERIFY_FULL] = "verify-full"};
    static_assert(STW_COUNT(modes) == STW_TLS_MODES, "one name for each mode");
    const struct stw_target *t = as->target;
    const char *proof[2];
    stw_autobuf struct stw_buf hosts = STW_BUF_INIT(4096), numbers = STW_BUF_INIT(1024);
    char port[24];
    bool verify = t->tls_mode == STW_TLS_VERIFY_CA || t->tls_mode == STW_TLS_VERIFY_FULL;
    char name[STW_TAKEOVER_NAME_MAX];
    bool certificate = t->certificate_file && !as->trial;
    ask_for_proof(as, verify, certificate, proof);
    /* "require" with a CA would be "verify-ca", so this names a file that does not exist. */
    const char *const names[] = {"host",
                                 "port",
                                 "user",
                                 "password",
                                 "dbname",
                                 "sslmode",
                                 "sslrootcert",
                                 "application_name",
                                 "options",
                                 "passfile",
                                 "gssencmode",
                                 "client_encoding",
                                 "hostaddr",
                                 "sslcert",
                                 "sslkey",
                                 "target_session_attrs",
                                 "keepalives_idle",
                                 "keepalives_interval",
                                 "keepalives_count",
                                 proof[0],
                                 NULL};
    write_hosts(t->host, addresses, &hosts, &numbers);
    if (hosts.failed || numbers.failed)
        return NULL;
    const char *const values[] = {stw_buf_str(&hosts),
                                  port,
                                  as->user,
                                  as->password,
                                  as->database,
                                  modes[t->tls_mode],
                                  verify ? ca_of(t) : "/nonexistent/ca",
                                  !as->trial && stw_takeover_name(as->cluster, name) ? name
                                                                                     : "steward",
                                  "",
                                  "/dev/null",
                                  "disable",
                                  "UTF8",
                                  stw_buf_str(&numbers),
                                  certificate ? t->certificate_file : "/nonexistent/crt",
                                  certificate ? t->key_file : "/nonexistent/key",
                                  "any",
                                  KEEPALIVE_SECONDS,
                                  KEEPALIVE_SECONDS,
                                  "3",
                                  proof[1],
                                  NULL};
    stw_format(port, sizeof(port), "%lld", (long long)t->port);
    return pq.PQconnectStartParams(names, values, 0);
}

/* A GRANT without the right to grant only warns.  What a script has left out is its own notice
 * (borrow.c), with a name that anybody can have chosen. */
static void receive_notice(void *ctx, const PGresult *result)
{
    struct stw_conn *c = ctx;
    const char *state = pq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (state && (stw_streq(state, "01007") || stw_streq(state, "01006")))
        stw_format(c->warned, sizeof(c->warned), "%s", state);
    const char *name = pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (name && state && stw_streq(state, "55P03") && c->locked[0] == '\0')
        stw_pg_clean_names(name, c->locked);
}

static int send_all(struct stw_conn *c, const char *text, uint64_t deadline_ms,
                    enum stw_sql_step step, struct stw_fault *f)
{
    if (!pq.PQsendQuery(c->pg, text)) {
        stw_pg_fault(f, "08006", NULL, NULL, step);
        return -1;
    }
    while (pq.PQflush(c->pg) == 1) {
        if (!wait_for_server(c, POLLIN | POLLOUT, deadline_ms))
            return took_too_long(f, step);
        if (has_sent_too_much(c))
            return sent_too_much(f, step);
        if (!pq.PQconsumeInput(c->pg))
            break;
    }
    return 0; /* the result has the error */
}

/* The next result, or NULL at the end or with a fault. */
static PGresult *next_result(struct stw_conn *c, uint64_t deadline_ms, enum stw_sql_step step,
                             struct stw_fault *f)
{
    while (pq.PQisBusy(c->pg)) {
        if (!wait_for_server(c, POLLIN, deadline_ms)) {
            (void)took_too_long(f, step);
            return NULL;
        }
        if (has_sent_too_much(c)) {
            (void)sent_too_much(f, step);
            return NULL;
        }
        if (!pq.PQconsumeInput(c->pg))
            break;
    }
    return pq.PQgetResult(c->pg);
}

#define CELLS_MAX 16

/* steward asks for none: the library would keep them all. */
static void drop_notification(struct stw_conn *c, struct stw_fault *f, enum stw_sql_step step)
{
    PGnotify *n = pq.PQnotifies(c->pg);
    if (!n)
        return;
    pq.PQfreemem(n);
    (void)sent_too_much(f, step);
}

static int read_rows(const PGresult *result, stw_row_fn *row, void *ctx, size_t *bytes)
{
    struct stw_cell cells[CELLS_MAX] = {0};
    int count = STW_MIN(pq.PQnfields(result), CELLS_MAX);
    for (int i = 0; i < pq.PQntuples(result); i++) {
        for (int k = 0; k < count; k++) {
            cells[k] = (struct stw_cell){0};
            if (!pq.PQgetisnull(result, i, k))
                cells[k] = (struct stw_cell){pq.PQgetvalue(result, i, k),
                                             (size_t)pq.PQgetlength(result, i, k)};
            *bytes += cells[k].len;
        }
        if (*bytes > STW_ANSWER_MAX_BYTES || (row && row(ctx, cells, (unsigned)count) != 0))
            return -1;
    }
    return 0;
}

static bool is_fine(const PGresult *result)
{
    ExecStatusType status = pq.PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
           status == PGRES_SINGLE_TUPLE || status == PGRES_EMPTY_QUERY;
}

static void fault_of(struct stw_conn *c, const PGresult *result, enum stw_sql_step step,
                     struct stw_fault *f)
{
    const char *state = pq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (f->trouble == STW_SQL_FINE)
        stw_pg_fault(f, state ? state : "08006",
                     pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY),
                     pq.PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL), step);
    f->lost |= pq.PQstatus(c->pg) != CONNECTION_OK;
}

static int exchange(struct stw_conn *c, const char *text, enum stw_sql_step step, stw_row_fn *row,
                    void *ctx, struct stw_fault *f)
{
    uint64_t deadline = now_ms() + c->timeout_ms;
    size_t bytes = 0, before = 0;
    PGresult *result;
    bool bad = false;
    c->warned[0] = '\0';
    c->locked[0] = '\0';
    if (send_all(c, text, deadline, step, f) != 0)
        return -1;
    (void)pq.PQsetSingleRowMode(c->pg);
    while ((result = next_result(c, deadline, step, f))) {
        if (!is_fine(result))
            fault_of(c, result, step, f);
        else if (!bad && read_rows(result, row, ctx, &bytes) != 0)
            bad = true;
        pq.PQclear(result);
        stw_intake_add_row(&c->intake, bytes - before);
        before = bytes;
        drop_notification(c, f, step);
        if (f->lost)
            break;
    }
    if (f->trouble != STW_SQL_FINE)
        return -1;
    if (bad)
        return stw_fault_set(f, STW_SQL_LOOKUP, step, "the server's answer could not be read");
    stw_format(f->locked, sizeof(f->locked), "%s", c->locked);
    if (c->warned[0] == '\0')
        return 0;
    stw_pg_fault(f, c->warned, NULL, NULL, step);
    return -1;
}

/* Sends `text` as it is. */
static int send_query(struct stw_conn *c, const char *text, enum stw_sql_step step, stw_row_fn *row,
                      void *ctx, struct stw_fault *f)
{
    stw_intake_begin(&c->intake);
    int r = exchange(c, text, step, row, ctx, f);
    if (r != 0 && has_sent_too_much(c))
        (void)sent_too_much(f, step);
    stw_intake_end(&c->intake);
    return r;
}

/* Several statements in one query are one transaction, which begins with the settings. */
static int run_query(struct stw_conn *c, const char *text, enum stw_sql_step step, stw_row_fn *row,
                     void *ctx, struct stw_fault *f)
{
    struct stw_buf all = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES);
    all.secret = true;
    stw_buf_adds(&all, c->settings);
    stw_buf_adds(&all, text);
    int r = all.failed ? stw_fault_set(f, STW_SQL_FAILED, step, "the statements are too long")
                       : send_query(c, all.data, step, row, ctx, f);
    stw_buf_done(&all);
    return r;
}

static int read_facts(void *ctx, const struct stw_cell *cells, unsigned count)
{
    struct stw_conn *c = ctx;
    if (count < 9)
        return -1;
    for (unsigned i = 0; i < 9; i++)
        if (!cells[i].data)
            return -1;
    stw_format(c->facts.version, sizeof(c->facts.version), "%s", cells[0].data);
    c->facts.number = (unsigned)strtoul(cells[1].data, NULL, 10);
    c->facts.superuser = stw_streq(cells[2].data, "true");
    c->facts.reads_verifiers = stw_streq(cells[3].data, "true");
    c->facts.inherits = stw_streq(cells[6].data, "true");
    c->read_only_database = stw_streq(cells[7].data, "true");
    c->role_of_database = stw_streq(cells[8].data, "true");
    c->own_encoding = stw_streq(cells[4].data, "UTF8");
    c->facts.utf8 = c->own_encoding && stw_streq(cells[5].data, "UTF8");
    return 0;
}

/* Of a transaction, not of the session: a pooler in transaction mode gives each transaction another
 * session of the server.  Without the search path a tenant's function could run as the admin. */
static void write_settings(struct stw_conn *c, const struct stw_target *t)
{
    long long ms = (long long)t->statement_timeout_seconds * 1000;
    stw_format(
        c->settings, sizeof(c->settings),
        "%s%sSET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL statement_timeout = %lld; "
        "SET LOCAL lock_timeout = %lld; "
        "SET LOCAL idle_in_transaction_session_timeout = %lld;\n",
        c->read_only_database ? "SET LOCAL transaction_read_only = off; " : "",
        c->role_of_database ? "SET LOCAL ROLE NONE; " : "", ms,
        STW_MIN(ms, (long long)STW_SQL_LOCK_TIMEOUT_MS), ms);
}

static int set_up_pg_connection(struct stw_conn *c, const struct stw_target *t,
                                uint64_t deadline_ms, struct stw_fault *f)
{
    static const char facts[] =
        "SELECT current_setting('server_version'), current_setting('server_version_num'), (SELECT "
        "rolsuper::text FROM pg_roles WHERE rolname = current_user), "
        "has_table_privilege('pg_catalog.pg_authid', 'SELECT')::text, "
        "current_setting('client_encoding'), current_setting('server_encoding'), "
        "(SELECT rolinherit::text FROM pg_roles WHERE rolname = current_user), "
        "(SELECT (setting = 'on' AND source = 'database' AND NOT pg_is_in_recovery())::text FROM "
        "pg_settings WHERE name = 'default_transaction_read_only'), (SELECT (count(*) > 0 AND "
        "bool_and(s.setrole = 0))::text FROM pg_db_role_setting s, pg_database d, "
        "unnest(s.setconfig) x WHERE d.datname = current_database() AND x ~ '^role=' AND "
        "((s.setdatabase = d.oid AND s.setrole = 0) OR (s.setdatabase IN (0, d.oid) AND s.setrole "
        "= (SELECT oid FROM pg_roles WHERE rolname = session_user))))";
    uint64_t now = now_ms();
    write_settings(c, t);
    c->timeout_ms = deadline_ms - STW_MIN(now, deadline_ms);
    if (run_query(c, facts, STW_SQL_STEP_CONNECT, read_facts, c, f) != 0)
        return -1;
    write_settings(c, t); /* who owns a database decides nothing there for the admin */
    /* the server's own limit ends before this */
    c->timeout_ms = (uint64_t)t->statement_timeout_seconds * 1000 + 2000;
    if (!c->own_encoding)
        return stw_fault_set(f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_CONNECT,
                             "the server, or a proxy before it, does not use UTF-8 for this "
                             "connection: names could become other names");
    if (c->facts.number < 100000)
        return stw_fault_set(f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_CONNECT,
                             "the server is too old: PostgreSQL 10 is needed");
    return 0;
}

static int count_row(void *ctx, const struct stw_cell *cells, unsigned count)
{
    unsigned *n = ctx;
    (void)cells;
    (void)count;
    (*n)++;
    return 0;
}

/* A session ends a moment after it is terminated; what it had not committed is then rolled back. */
static int end_former(struct stw_conn *c, uint64_t deadline_ms, struct stw_fault *f)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_TAKEOVER_TEXT_MAX);
    uint64_t statement_ms = c->timeout_ms;
    int r = 0;
    stw_takeover_pg_former(c->cluster, &text);
    for (unsigned left = 1; r == 0 && text.len > 0 && left > 0;) {
        uint64_t now = now_ms();
        left = 0;
        c->timeout_ms = deadline_ms - STW_MIN(now, deadline_ms);
        r = run_query(c, stw_buf_str(&text), STW_SQL_STEP_CONNECT, count_row, &left, f);
        if (r == 0 && left > 0 && now_ms() >= deadline_ms)
            r = stw_fault_set(f, STW_SQL_CONNECT, STW_SQL_STEP_CONNECT,
                              "sessions of an earlier leader are still open");
        if (r == 0 && left > 0)
            (void)poll(NULL, 0, FORMER_POLL_MS);
    }
    c->timeout_ms = statement_ms;
    return r;
}

static void conn_close(struct stw_conn *c)
{
    if (!c)
        return;
    stw_intake_close(&c->intake);
    pq.PQfinish(c->pg);
    if (c->wake >= 0)
        (void)close(c->wake);
    free(c);
}

static int load_libpq(struct stw_error *err)
{
    return stw_library_load(&library, err);
}

static struct stw_conn *conn_open(const struct stw_login_as *as, struct stw_fault *f)
{
    uint64_t limit_ms = (uint64_t)as->target->connect_timeout_seconds * 1000;
    uint64_t deadline = as->frees_until_ms > 0
                            ? STW_MIN(now_ms() + limit_ms / 4, as->frees_until_ms)
                            : now_ms() + limit_ms;
    struct stw_addresses addresses = {0};
    if (stw_target_resolve(as->target, &addresses, f) != 0)
        return NULL;
    struct stw_conn *c = calloc(1, sizeof(*c));
    if (!c || !(c->pg = start_connect(as, &addresses))) {
        free(c);
        (void)stw_fault_set(f, STW_SQL_BUSY, STW_SQL_STEP_CONNECT, "no memory");
        return NULL;
    }
    c->cluster = as->cluster;
    /* The server's messages come in its language; its SQLSTATE does not. */
    (void)pq.PQsetErrorVerbosity(c->pg, PQERRORS_SQLSTATE);
    (void)pq.PQsetNoticeReceiver(c->pg, receive_notice, c);
    int r = 0;
    if ((c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        r = stw_fault_set(f, STW_SQL_BUSY, STW_SQL_STEP_CONNECT, "no eventfd");
    } else if (pq.PQstatus(c->pg) == CONNECTION_BAD) {
        stw_pg_connect_fault(f, pq.PQerrorMessage(c->pg));
        r = -1;
    }
    if (r == 0)
        r = finish_connect(c, as, deadline, f);
    if (r == 0 && !as->trial)
        r = set_up_pg_connection(c, as->target, deadline, f);
    if (r == 0 && !as->trial)
        r = end_former(c, deadline, f);
    if (r == 0)
        return c;
    conn_close(c);
    return NULL;
}

/* An idle connection may have unread notices; reading them shows whether it has been closed. */
static bool conn_alive(struct stw_conn *c)
{
    struct pollfd p = {.fd = pq.PQsocket(c->pg), .events = POLLIN};
    if (stw_intake_is_worn(&c->intake))
        return false;
    if (poll(&p, 1, 0) == 0)
        return true;
    return pq.PQconsumeInput(c->pg) && pq.PQstatus(c->pg) == CONNECTION_OK && poll(&p, 1, 0) == 0;
}

static void conn_cut(struct stw_conn *c)
{
    uint64_t one = 1;
    ssize_t n = write(c->wake, &one, sizeof(one)); /* a full one wakes as well */
    (void)n;
}

static const struct stw_facts *conn_facts(const struct stw_conn *c)
{
    return &c->facts;
}

/* A statement on a database cannot be in the transaction of the guard, which is asked just before. */
static int ask_guard(struct stw_conn *c, enum stw_sql_step step, struct stw_fault *f)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_TAKEOVER_TEXT_MAX);
    stw_takeover_pg_guard(c->cluster, &text);
    return text.len > 0 ? run_query(c, stw_buf_str(&text), step, NULL, NULL, f) : 0;
}

/* Outside of a transaction a setting is the session's.  Any role can hold a lock on any database, by a setting of
 * its own there. */
static int run_alone(struct stw_conn *c, const char *text, enum stw_sql_step step, stw_row_fn *row,
                     void *ctx, struct stw_fault *f)
{
    char limit[64];
    struct stw_fault ignored = {0};
    stw_format(limit, sizeof(limit), "%sSET lock_timeout = %d",
               c->role_of_database ? "SET ROLE NONE; " : "", STW_SQL_LOCK_TIMEOUT_MS);
    if (send_query(c, limit, step, NULL, NULL, f) != 0)
        return -1;
    int r = send_query(c, text, step, row, ctx, f);
    if (!f->lost)
        (void)send_query(c, "RESET lock_timeout", step, NULL, NULL, &ignored);
    return r;
}

static int conn_run(struct stw_conn *c, const struct stw_statement *st, size_t count,
                    stw_row_fn *row, void *ctx, struct stw_fault *f)
{
    struct stw_buf text = STW_BUF_INIT(STW_STATEMENT_MAX_BYTES);
    text.secret = true;
    if (st->alone && ask_guard(c, st->step, f) != 0)
        return -1;
    if (!row && !st->alone) /* in the same transaction as the changes */
        stw_takeover_pg_guard(c->cluster, &text);
    for (size_t i = 0; i < count; i++) {
        stw_buf_add(&text, st[i].text.data, st[i].text.len);
        stw_buf_adds(&text, count > 1 ? ";\n" : "");
    }
    int r;
    if (text.failed)
        r = stw_fault_set(f, STW_SQL_FAILED, st->step, "the statements are too long");
    else if (st->alone)
        r = run_alone(c, text.data, st->step, row, ctx, f);
    else
        r = run_query(c, text.data, st->step, row, ctx, f);
    stw_buf_done(&text);
    return r;
}

/* What holds up the login waits before it, and what begins now waits behind it. */
static void free_from_elsewhere(const struct stw_login_as *as, uint64_t deadline_ms)
{
    static const char *const databases[] = {"template1", "postgres"};
    struct stw_login_as elsewhere = *as;
    stw_autoscript struct stw_script script = {0};
    struct stw_statement *st = stw_script_add(&script, STW_SQL_STEP_DROP, NULL);
    stw_pg_put_free_logins(&st->text, as->database);
    elsewhere.frees_until_ms = deadline_ms;
    for (size_t i = 0; i < STW_COUNT(databases); i++) {
        struct stw_fault ignored = {0};
        elsewhere.database = databases[i];
        struct stw_conn *c = stw_streq(databases[i], as->database) || !stw_script_complete(&script)
                                 ? NULL
                                 : conn_open(&elsewhere, &ignored);
        if (!c)
            continue;
        uint64_t now = now_ms();
        c->timeout_ms = deadline_ms - STW_MIN(now, deadline_ms);
        (void)conn_run(c, st, 1, NULL, NULL, &ignored);
        conn_close(c);
        return;
    }
}

static int conn_start(struct stw_conn *c, const struct stw_statement *st, struct stw_fault *f)
{
    return send_all(c, stw_buf_str(&st->text), now_ms() + c->timeout_ms, st->step, f);
}

static bool conn_waits(struct stw_conn *c, unsigned ms)
{
    return !wait_for_server(c, POLLIN, now_ms() + ms);
}

/* Computes the verifier, so that the server and its log do not see the password. */
static int compute_pg_verifier(struct stw_session *s, const struct stw_account *a,
                               struct stw_verifier *ret, struct stw_fault *f)
{
    struct stw_buf password = STW_BUF_INIT(1u << 20);
    password.secret = true;
    stw_buf_add(&password, a->password.data, a->password.len);
    char *made = password.len > 0 && s->conn ? pq.PQencryptPasswordConn(s->conn->pg, password.data,
                                                                        a->user, "scram-sha-256")
                                             : NULL;
    stw_buf_done(&password);
    if (made) {
        stw_buf_adds(&ret->text, made);
        stw_wipe(made, strlen(made));
        pq.PQfreemem(made);
    }
    if (!made || ret->text.failed)
        return stw_fault_set(f, STW_SQL_FAILED, STW_SQL_STEP_LOOKUP,
                             "the password's verifier could not be computed");
    return 0;
}

const struct stw_engine_ops stw_engine_postgresql = {
    .load = load_libpq,
    .open = conn_open,
    .close = conn_close,
    .alive = conn_alive,
    .cut = conn_cut,
    .facts = conn_facts,
    .run = conn_run,
    .start = conn_start,
    .waits = conn_waits,
    .transactional = true,
    .leaves_out = true,
    .check = stw_pg_check,
    .look = stw_pg_look,
    .expand = stw_pg_expand,
    .look_rights = stw_pg_look_rights,
    .look_roles = stw_pg_look_roles,
    .look_adoption = stw_pg_look_adoption,
    .seal = compute_pg_verifier,
    .look_drop = stw_pg_look_drop,
    .create = stw_pg_create,
    .alter = stw_pg_alter,
    .rights = stw_pg_rights,
    .settings = stw_pg_settings,
    .mark = stw_pg_mark,
    .unmark = stw_pg_unmark,
    .drop = stw_pg_drop,
    .lock = stw_pg_lock,
    .end_sessions = stw_pg_end_sessions,
    .lock_ends_sessions = true,
    .unblock = stw_pg_unblock,
    .free_logins = stw_pg_free_logins,
    .count_sessions = stw_pg_count_sessions,
    .look_server = stw_pg_look_server,
    .put_marks = stw_pg_put_marks,
    .mark_place = "comment on the role",
    .databases = &stw_pg_databases,
};
