/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections to MySQL and MariaDB through libmariadb. */
#include "sql/core/databases_priv.h"
#include "sql/core/intake.h"
#include "sql/core/takeover.h"
#include "sql/mysql/mysql_priv.h"
#include "sql/mysql/privileges.h"
#include "sql/password/password.h"
#include "sql/target/library.h"
#include "sql/target/resolve.h"

#include "base/util.h"

#include <errmsg.h>
#include <errno.h>
#include <mysql.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define FUNCTIONS(F)                                                                               \
    F(mariadb_connection)                                                                          \
    F(mysql_affected_rows)                                                                         \
    F(mysql_close)                                                                                 \
    F(mysql_errno)                                                                                 \
    F(mysql_error)                                                                                 \
    F(mysql_fetch_lengths)                                                                         \
    F(mysql_fetch_row)                                                                             \
    F(mysql_free_result)                                                                           \
    F(mysql_get_server_info)                                                                       \
    F(mysql_get_server_version)                                                                    \
    F(mysql_get_socket)                                                                            \
    F(mysql_get_ssl_cipher)                                                                        \
    F(mysql_init)                                                                                  \
    F(mysql_num_fields)                                                                            \
    F(mysql_optionsv)                                                                              \
    F(mysql_query)                                                                                 \
    F(mysql_real_connect)                                                                          \
    F(mysql_real_query)                                                                            \
    F(mysql_server_init)                                                                           \
    F(mysql_sqlstate)                                                                              \
    F(mysql_use_result)
STW_LIBRARY(library, my, "libmariadb.so.3", "libmariadb3", FUNCTIONS);

/* Where Debian, Alpine and Red Hat keep the CAs that the system trusts. */
static const char *const system_ca[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem",
                                        "/etc/pki/tls/certs/ca-bundle.crt"};
/* With these two plugins the client proves that it knows the password. */
#define PROOF_PLUGINS "mysql_native_password,client_ed25519"
/* With these a server may request the password itself, which is sent in plain text inside TLS. */
#define NOT_IN_LIST                                                                                \
    5010 /* the client library's: the server asks for a plugin that is not listed                  \
          */
#define LOGIN_PLUGINS PROOF_PLUGINS ",caching_sha2_password,sha256_password"

struct stw_conn {
    MYSQL mysql;
    struct stw_facts facts;
    uint64_t started_ms;
    uint64_t limit_ms; /* a statement that takes this long was cut off by us */
    int wake;          /* an eventfd that ends all waiting */
    struct stw_intake intake;
    atomic_bool cut;
    bool opening;     /* one deadline covers all of it */
    int socket_error; /* errno of the last connection that failed */
};

/* The connection that this thread is using inside the library, whose callback has no argument for
 * it. */
static _Thread_local struct stw_conn *waiting;

#define PACKET_MAX_BYTES ((size_t)8 << 20)
#define CLOSE_MS 1000
#define WARNINGS_MAX 64
#define DEADLOCK 1213U
#define DEADLOCK_TRIES 6U

static void library_init(void)
{
    (void)my.mysql_server_init(0, NULL, NULL);
}

static int load_libmariadb(struct stw_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (stw_library_load(&library, err) != 0)
        return -1;
    (void)pthread_once(&once, library_init);
    return 0;
}

static uint64_t now_ms(void)
{
    return stw_now_ms(&stw_clock_system);
}

static uint64_t time_left_ms(const struct stw_conn *c)
{
    uint64_t spent = now_ms() - c->started_ms;
    return c->limit_ms - STW_MIN(spent, c->limit_ms);
}

/* The library forgets it. */
static int read_socket_error(struct stw_conn *c, my_socket handle)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(handle, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error != 0)
        errno = c->socket_error = error;
    return error;
}

/* The library's timeouts start again with each byte.  This is called for each wait, and uses one
 * deadline for all of them. */
static int wait_io(my_socket handle, my_bool is_read, int timeout)
{
    struct stw_conn *c = waiting;
    struct pollfd fds[] = {{.fd = handle, .events = is_read ? POLLIN : POLLOUT},
                           {.fd = c ? c->wake : -1, .events = POLLIN}};
    if (c && c->opening)
        stw_intake_open(&c->intake, handle);
    if (c && is_read && stw_intake_is_over(&c->intake)) {
        errno = EMSGSIZE;
        return -1;
    }
    for (;;) {
        uint64_t left = c ? time_left_ms(c) : (uint64_t)STW_MAX(timeout, 1);
        int n = left > 0 ? poll(fds, STW_COUNT(fds), (int)STW_MIN(left, (uint64_t)INT32_MAX)) : 0;
        if (n == 0 || (n > 0 && fds[1].revents)) {
            errno = ETIMEDOUT;
            return 0;
        }
        if (n > 0 && c && c->opening && !is_read && read_socket_error(c, handle) != 0)
            return -1;
        if (n > 0)
            return 1;
        if (errno != EINTR)
            return -1;
    }
}

/* The function pointer in the form that the library expects. */
static const void *wait_function(void)
{
    int (*function)(my_socket, my_bool, int) = wait_io;
    void *ret;
    memcpy(&ret, &function, sizeof(ret));
    return ret;
}

static void set_tls(MYSQL *m, const struct stw_login_as *as)
{
    my_bool on = 1;
    const struct stw_target *t = as->target;
    const char *ca = t->tls_ca_file;
    for (size_t i = 0; !ca && i < STW_COUNT(system_ca); i++)
        if (access(system_ca[i], R_OK) == 0)
            ca = system_ca[i];
    if (t->tls_mode == STW_TLS_DISABLE)
        return;
    (void)my.mysql_optionsv(m, MYSQL_OPT_SSL_ENFORCE, &on);
    if (t->certificate_file && !as->trial) {
        (void)my.mysql_optionsv(m, MYSQL_OPT_SSL_CERT, t->certificate_file);
        (void)my.mysql_optionsv(m, MYSQL_OPT_SSL_KEY, t->key_file);
    }
    if (t->tls_mode == STW_TLS_REQUIRE)
        return;
    /* libmariadb enforces TLS only together with the check of the host's name, so VerifyCA is
     * VerifyFull here: without the check, a man in the middle could turn TLS off. */
    (void)my.mysql_optionsv(m, MYSQL_OPT_SSL_CA, ca ? ca : system_ca[0]);
    (void)my.mysql_optionsv(m, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
}

static void set_options(MYSQL *m, const struct stw_login_as *as, uint64_t connect_ms)
{
    const struct stw_target *t = as->target;
    unsigned connect = (unsigned)STW_MAX(connect_ms / 1000, (uint64_t)1);
    /* The server's own limit on a statement ends before this. */
    unsigned statement = (unsigned)t->statement_timeout_seconds + 2, tcp = MYSQL_PROTOCOL_TCP;
    unsigned no = 0;
    size_t packet = PACKET_MAX_BYTES;
    (void)my.mysql_optionsv(m, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
    (void)my.mysql_optionsv(m, MYSQL_OPT_READ_TIMEOUT, &statement);
    (void)my.mysql_optionsv(m, MYSQL_OPT_WRITE_TIMEOUT, &statement);
    (void)my.mysql_optionsv(m, MYSQL_OPT_PROTOCOL, &tcp);
    (void)my.mysql_optionsv(m, MYSQL_OPT_LOCAL_INFILE, &no);
    (void)my.mysql_optionsv(m, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
    (void)my.mysql_optionsv(m, MARIADB_OPT_IO_WAIT, wait_function());
    (void)my.mysql_optionsv(m, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    /* Under Require the server is not authenticated. */
    (void)my.mysql_optionsv(m, MARIADB_OPT_RESTRICTED_AUTH,
                            t->tls_mode == STW_TLS_REQUIRE ? PROOF_PLUGINS : LOGIN_PLUGINS);
    set_tls(m, as);
}

static int fault_of(struct stw_conn *c, enum stw_sql_step step, struct stw_fault *f)
{
    unsigned number = my.mysql_errno(&c->mysql);
    stw_mysql_fault(f, number, my.mysql_sqlstate(&c->mysql), my.mysql_error(&c->mysql), step);
    if (stw_intake_is_over(&c->intake)) {
        (void)stw_fault_set(f, STW_SQL_CONNECT, step, "the server's answer is too large");
        f->lost = true;
    }
    f->timeout = f->lost && now_ms() - c->started_ms + 100 >= c->limit_ms;
    return -1;
}

/* Without NO_AUTO_CREATE_USER, GRANT would create an account that was dropped meanwhile; MySQL 8
 * has neither.  The server's setting for backslashes is kept. */
static void write_setup(struct stw_conn *c, const struct stw_target *t, struct stw_buf *out)
{
    const struct stw_facts *k = &c->facts;
    int timeout = (int)t->statement_timeout_seconds;
    int lock_timeout = STW_MIN(timeout, STW_SQL_LOCK_TIMEOUT_MS / 1000);
    const char *mode = k->mariadb || k->number < 80000 ? "STRICT_ALL_TABLES,NO_AUTO_CREATE_USER"
                                                       : "STRICT_ALL_TABLES";
    stw_buf_addf(out,
                 "SET SESSION autocommit=1, lock_wait_timeout=%d, innodb_lock_wait_timeout=%d, "
                 "sql_mode=IF(FIND_IN_SET('NO_BACKSLASH_ESCAPES',@@sql_mode),"
                 "'%s,NO_BACKSLASH_ESCAPES','%s'), %s=%d",
                 lock_timeout, lock_timeout, mode, mode,
                 k->mariadb ? "max_statement_time" : "max_execution_time",
                 k->mariadb ? timeout : timeout * 1000);
}

/* Marks rely on this level; the server or its configuration may have set another one. */
static const char set_isolation[] = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";

static bool cell_is(const struct stw_cell *c, const char *text)
{
    return c->data && stw_streq(c->data, text);
}

static int read_fact(void *ctx, const struct stw_cell *cells, unsigned count)
{
    struct stw_facts *k = ctx;
    const struct stw_cell *value = &cells[1];
    if (count < 2 || !cells[0].data || !value->data)
        return 0;
    if (cell_is(&cells[0], "lower_case_table_names"))
        k->fold_names = !cell_is(value, "0");
    else if (cell_is(&cells[0], "performance_schema"))
        k->threads = cell_is(value, "ON");
    else if (cell_is(&cells[0], "partial_revokes"))
        k->literal_names = cell_is(value, "ON");
    else if (cell_is(&cells[0], "default_authentication_plugin"))
        k->native_default = cell_is(value, "mysql_native_password");
    else if (cell_is(&cells[0], "strict_password_validation"))
        k->plain_password |= cell_is(value, "ON");
    else if (strncmp(cells[0].data, "validate_password", 17) == 0)
        k->plain_password = true;
    return 0;
}

static int read_policy(void *ctx, const struct stw_cell *cells, unsigned count)
{
    struct stw_facts *k = ctx;
    if (count > 0 && cell_is(&cells[0], "0"))
        k->plain_password = false; /* strict, but no plugin to check with */
    return 0;
}

static int read_privilege(void *ctx, const struct stw_cell *cells, unsigned count)
{
    if (count > 0)
        stw_mysql_privilege_learn(ctx, &cells[0]);
    return 0;
}

static int run_statement_text(struct stw_conn *c, const char *text, stw_row_fn *row,
                              struct stw_fault *f);
static int run_one(struct stw_conn *c, const struct stw_statement *st, stw_row_fn *row, void *ctx,
                   struct stw_fault *f);

static int read_charset(void *ctx, const struct stw_cell *cells, unsigned count)
{
    struct stw_facts *k = ctx;
    k->utf8 = count == 3;
    for (unsigned i = 0; i < count; i++)
        k->utf8 = k->utf8 && cell_is(&cells[i], "utf8mb4");
    return 0;
}

/* A server with skip-character-set-client-handshake ignores what the handshake requests.  In gbk,
 * big5 or sjis the last byte of a letter and the quotation mark after it are one character, so that
 * a name would end the string that it is in.  The first two statements have no such letter. */
static int settle_charset(struct stw_conn *c, struct stw_fault *f)
{
    if (run_statement_text(c, "SET NAMES utf8mb4", NULL, f) != 0 ||
        run_statement_text(
            c, "SELECT @@character_set_client, @@character_set_connection, @@character_set_results",
            read_charset, f) != 0)
        return -1;
    if (c->facts.utf8)
        return 0;
    return stw_fault_set(f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_CONNECT,
                         "the server, or a proxy before it, does not use UTF-8 (utf8mb4) for this "
                         "connection: names could become other names");
}

static int set_up_mysql_connection(struct stw_conn *c, const struct stw_target *t,
                                   struct stw_fault *f)
{
    struct stw_facts *k = &c->facts;
    stw_autobuf struct stw_buf setup = STW_BUF_INIT(1024);
    stw_format(k->version, sizeof(k->version), "%s", my.mysql_get_server_info(&c->mysql));
    k->number = (unsigned)my.mysql_get_server_version(&c->mysql);
    k->mariadb = my.mariadb_connection(&c->mysql);
    k->native_default = k->mariadb || k->number < 80000;
    if (k->number < (k->mariadb ? 100400u : 50700u))
        return stw_fault_set(f, STW_SQL_UNSUPPORTED, STW_SQL_STEP_CONNECT,
                             "the server is too old: MariaDB 10.4 or MySQL 5.7 is needed");
    if (settle_charset(c, f) != 0)
        return -1;
    write_setup(c, t, &setup);
    if (run_statement_text(c, stw_buf_str(&setup), NULL, f) != 0 ||
        run_statement_text(c, set_isolation, NULL, f) != 0)
        return -1;
    k->no_backslash = c->mysql.server_status & SERVER_STATUS_NO_BACKSLASH_ESCAPES;
    if (run_statement_text(c,
                           "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('lower_case_table_names',"
                           "'partial_revokes','performance_schema','default_authentication_plugin',"
                           "'strict_password_validation',"
                           "'validate_password.policy','validate_password_policy')",
                           read_fact, f) != 0)
        return -1;
    /* An admin who may not read the table gets no row; the lookup of an account then reports
     * why. */
    if (run_statement_text(
            c,
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='mysql' AND "
            "TABLE_NAME='db' AND COLUMN_NAME LIKE '%_priv'",
            read_privilege, f) != 0)
        return -1;
    if (!k->mariadb || !k->plain_password)
        return 0;
    return run_statement_text(c,
                              "SELECT COUNT(*) FROM information_schema.PLUGINS WHERE PLUGIN_TYPE="
                              "'PASSWORD VALIDATION' AND PLUGIN_STATUS='ACTIVE'",
                              read_policy, f);
}

#define FORMER_MAX 256
#define FORMER_POLL_MS 20

struct former {
    unsigned long long ids[FORMER_MAX];
    size_t count;
};

static int take_id(void *ctx, const struct stw_cell *cells, unsigned count)
{
    struct former *o = ctx;
    if (count > 0 && cells[0].data && o->count < FORMER_MAX)
        o->ids[o->count++] = strtoull(cells[0].data, NULL, 10);
    return 0;
}

static int ask_former(struct stw_conn *c, const struct stw_login_as *as, struct former *ret,
                      struct stw_fault *f)
{
    struct stw_statement st = {.step = STW_SQL_STEP_CONNECT,
                               .text = STW_BUF_INIT(STW_TAKEOVER_TEXT_MAX)};
    *ret = (struct former){0};
    stw_takeover_mysql_former(as->cluster, (size_t)as->target->max_connections, !c->facts.no_secret,
                              &st.text);
    int r = st.text.len > 0 ? run_one(c, &st, take_id, ret, f) : 0;
    stw_buf_done(&st.text);
    return r;
}

/* Takes the lock that this session is known by.  1: there is none of such a name. */
static int take_lock(struct stw_conn *c, const struct stw_login_as *as, bool secret,
                     struct stw_fault *f)
{
    struct stw_statement st = {.step = STW_SQL_STEP_CONNECT,
                               .text = STW_BUF_INIT(STW_TAKEOVER_TEXT_MAX)};
    struct former rows = {0};
    stw_takeover_mysql_lock(as->cluster, (size_t)as->target->max_connections, secret, &st.text);
    int r = st.text.len == 0 ? 1 : run_one(c, &st, take_id, &rows, f);
    stw_buf_done(&st.text);
    return r == 0 && rows.count == 0 ? 1 : r;
}

/* A session ends a moment after KILL and then releases its lock.  A session that has already ended
 * cannot be killed, which is not an error. */
static int end_former(struct stw_conn *c, const struct stw_login_as *as, struct stw_fault *f)
{
    struct former o;
    if (!stw_takeover_needed())
        return 0;
    c->facts.no_secret = take_lock(c, as, true, f) != 0;
    if (f->lost)
        return -1;
    *f = (struct stw_fault){0};
    if (c->facts.no_secret && take_lock(c, as, false, f) < 0) {
        if (f->lost)
            return -1;
        *f = (struct stw_fault){0}; /* a cluster that forbids GET_LOCK: only the lease protects */
        return 0;
    }
    while (ask_former(c, as, &o, f) == 0) {
        if (o.count == 0)
            return 0;
        if (time_left_ms(c) == 0)
            return stw_fault_set(f, STW_SQL_CONNECT, STW_SQL_STEP_CONNECT,
                                 "sessions of an earlier leader are still open");
        for (size_t i = 0; i < o.count; i++) {
            char text[48];
            struct stw_fault gone = {0};
            stw_format(text, sizeof(text), "KILL CONNECTION %llu", o.ids[i]);
            if (run_statement_text(c, text, NULL, &gone) != 0 && gone.lost)
                return stw_fault_set(f, STW_SQL_CONNECT, STW_SQL_STEP_CONNECT,
                                     "the connection was lost");
        }
        (void)poll(NULL, 0, FORMER_POLL_MS);
    }
    return -1;
}

static void conn_close(struct stw_conn *c)
{
    if (!c)
        return;
    c->started_ms = now_ms();
    c->limit_ms = CLOSE_MS;
    waiting = c;
    stw_intake_close(&c->intake);
    my.mysql_close(&c->mysql);
    waiting = NULL;
    if (c->wake >= 0)
        (void)close(c->wake);
    free(c);
}

static int connect_fault(struct stw_conn *c, const struct stw_target *t, struct stw_fault *f)
{
    (void)fault_of(c, STW_SQL_STEP_CONNECT, f);
    if (!stw_intake_is_over(&c->intake))
        stw_mysql_name_cause(f, c->socket_error);
    if ((f->number == CR_AUTH_PLUGIN_CANNOT_LOAD || f->number == NOT_IN_LIST) &&
        t->tls_mode == STW_TLS_REQUIRE)
        return stw_fault_set(f, STW_SQL_AUTH, STW_SQL_STEP_CONNECT,
                             "the server asks for a login that sends the password itself "
                             "(caching_sha2_password, sha256_password or another), and tls.mode "
                             "Require does not check who it is: set tls.mode to VerifyFull");
    /* Any other error of the server during a login is a refusal of the login. */
    if (f->trouble == STW_SQL_FAILED || f->trouble == STW_SQL_DENIED)
        f->trouble = STW_SQL_AUTH;
    return -1;
}

static int connect_to(struct stw_conn *c, const struct stw_login_as *as, const char *host,
                      struct stw_fault *f)
{
    const struct stw_target *t = as->target;
    set_options(&c->mysql, as, time_left_ms(c));
    /* Names no database: in a trial only the account's own rights count. */
    if (my.mysql_real_connect(&c->mysql, host, as->user, as->password, NULL, (unsigned)t->port,
                              NULL, CLIENT_FOUND_ROWS))
        return 0;
    return connect_fault(c, t, f);
}

static void forget_password(struct stw_conn *c)
{
    if (c->mysql.passwd) /* it is not needed: there is no reconnecting */
        stw_wipe(c->mysql.passwd, strlen(c->mysql.passwd));
}

/* The handle of a failed attempt cannot be used for the next one. */
static int connect_to_any(struct stw_conn *c, const struct stw_login_as *as,
                          const struct stw_addresses *addresses, struct stw_fault *f)
{
    for (size_t i = 0;; i++) {
        if (connect_to(c, as, addresses->text[i], f) == 0)
            return 0;
        if (f->trouble != STW_SQL_CONNECT || i + 1 >= addresses->count || time_left_ms(c) == 0)
            return -1;
        forget_password(c);
        my.mysql_close(&c->mysql);
        (void)my.mysql_init(&c->mysql);
        *f = (struct stw_fault){0};
    }
}

static bool checks_name(const struct stw_target *t)
{
    return t->tls_mode != STW_TLS_DISABLE && t->tls_mode != STW_TLS_REQUIRE;
}

/* libmariadb would look the host up with the system's timeouts, and it checks a certificate only
 * for the name that it was given.  So it gets the name when the name is checked, after a lookup has
 * just been answered; otherwise the addresses. */
static int connect_to_target(struct stw_conn *c, const struct stw_login_as *as, struct stw_fault *f)
{
    struct stw_addresses found = {0};
    if (stw_target_resolve(as->target, &found, f) != 0)
        return -1;
    return checks_name(as->target) ? connect_to(c, as, as->target->host, f)
                                   : connect_to_any(c, as, &found, f);
}

static struct stw_conn *conn_open(const struct stw_login_as *as, struct stw_fault *f)
{
    const struct stw_target *t = as->target;
    struct stw_conn *c = calloc(1, sizeof(*c));
    if (!c || !my.mysql_init(&c->mysql)) {
        free(c);
        (void)stw_fault_set(f, STW_SQL_BUSY, STW_SQL_STEP_CONNECT, "no memory");
        return NULL;
    }
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->opening = true;
    c->started_ms = now_ms();
    c->limit_ms = (uint64_t)t->connect_timeout_seconds * 1000;
    waiting = c;
    stw_intake_begin(&c->intake);
    int r = c->wake >= 0 ? connect_to_target(c, as, f)
                         : stw_fault_set(f, STW_SQL_BUSY, STW_SQL_STEP_CONNECT, "no eventfd");
    waiting = NULL;
    stw_intake_end(&c->intake);
    forget_password(c);
    if (r == 0 && t->tls_mode != STW_TLS_DISABLE && !my.mysql_get_ssl_cipher(&c->mysql))
        r = stw_fault_set(f, STW_SQL_TLS, STW_SQL_STEP_CONNECT, "the server does not offer TLS");
    if (r == 0 && !as->trial)
        r = set_up_mysql_connection(c, t, f);
    if (r == 0 && !as->trial)
        r = end_former(c, as, f);
    c->opening = false;
    c->limit_ms = ((uint64_t)t->statement_timeout_seconds + 2) * 1000;
    if (r == 0)
        return c;
    conn_close(c);
    return NULL;
}

/* An idle connection on which there is something to read has been closed by the server. */
static bool conn_alive(struct stw_conn *c)
{
    struct pollfd p = {.fd = (int)my.mysql_get_socket(&c->mysql), .events = POLLIN};
    return poll(&p, 1, 0) == 0 && !stw_intake_is_worn(&c->intake);
}

/* Does not use the descriptor: the library may just have closed it, and another file may have got
 * its number. */
static void conn_cut(struct stw_conn *c)
{
    uint64_t one = 1;
    atomic_store(&c->cut, true);
    ssize_t n = write(c->wake, &one, sizeof(one)); /* a full one wakes as well */
    (void)n;
}

static bool is_over(const struct stw_conn *c)
{
    return atomic_load(&c->cut) || time_left_ms(c) == 0;
}

static const struct stw_facts *conn_facts(const struct stw_conn *c)
{
    return &c->facts;
}

#define CELLS_MAX 16

static int read_rows(struct stw_conn *c, MYSQL_RES *result, stw_row_fn *row, void *ctx)
{
    struct stw_cell cells[CELLS_MAX];
    unsigned count = STW_MIN(my.mysql_num_fields(result), (unsigned)CELLS_MAX);
    size_t bytes = 0;
    MYSQL_ROW r;
    while ((r = my.mysql_fetch_row(result))) {
        const unsigned long *lengths = my.mysql_fetch_lengths(result);
        size_t before = bytes;
        for (unsigned i = 0; i < count; i++) {
            cells[i] = (struct stw_cell){r[i], r[i] ? lengths[i] : 0};
            bytes += cells[i].len;
        }
        stw_intake_add_row(&c->intake, bytes - before);
        if (bytes > STW_ANSWER_MAX_BYTES || is_over(c) || (row && row(ctx, cells, count) != 0))
            return -1;
    }
    return 0;
}

/* Shuts the socket down: mysql_free_result would read the rest of the result to its end. */
static void give_up(struct stw_conn *c, struct stw_fault *f)
{
    (void)shutdown((int)my.mysql_get_socket(&c->mysql), SHUT_RDWR);
    f->lost = true;
}

/* "Operation ALTER USER failed" hides its cause among the warnings. */
static int cause_of(struct stw_conn *c, enum stw_sql_step step, struct stw_fault *f)
{
    MYSQL_RES *result;
    MYSQL_ROW row = NULL;
    (void)fault_of(c, step, f);
    if (f->number != 1396 || my.mysql_query(&c->mysql, "SHOW WARNINGS") != 0 ||
        !(result = my.mysql_use_result(&c->mysql)))
        return -1;
    for (int i = 0; i < WARNINGS_MAX && (row = my.mysql_fetch_row(result)); i++)
        if (my.mysql_num_fields(result) > 2 && row[1] && row[2] && !stw_streq(row[1], "1396"))
            stw_mysql_fault(f, (unsigned)strtoul(row[1], NULL, 10), "HY000", row[2], step);
    if (row)
        give_up(c, f);
    my.mysql_free_result(result);
    return -1;
}

static int end_answer(struct stw_conn *c, const struct stw_statement *st, MYSQL_RES *result,
                      int bad, struct stw_fault *f)
{
    if (my.mysql_errno(&c->mysql) != 0)
        (void)fault_of(c, st->step, f);
    bool late = bad && is_over(c);
    if (bad)
        give_up(c, f);
    my.mysql_free_result(result);
    if (f->trouble != STW_SQL_FINE)
        return -1;
    if (late) {
        (void)stw_fault_set(f, STW_SQL_CONNECT, st->step, "the server did not answer in time");
        f->timeout = true;
    } else if (bad) {
        (void)stw_fault_set(f, STW_SQL_LOOKUP, st->step, "the server's answer could not be read");
    } else {
        return 0;
    }
    f->lost = true;
    return -1;
}

static int send_one(struct stw_conn *c, const struct stw_statement *st, stw_row_fn *row, void *ctx,
                    struct stw_fault *f)
{
    if (my.mysql_real_query(&c->mysql, stw_buf_str(&st->text), st->text.len) != 0)
        return cause_of(c, st->step, f);
    MYSQL_RES *result = my.mysql_use_result(&c->mysql);
    int bad = result ? read_rows(c, result, row, ctx) : 0;
    return end_answer(c, st, result, bad, f);
}

/* Each statement is a transaction: in a deadlock the server rolls one of them back, which may then
 * be sent again. */
static int send_until_no_deadlock(struct stw_conn *c, const struct stw_statement *st,
                                  stw_row_fn *row, void *ctx, struct stw_fault *f)
{
    int r = send_one(c, st, row, ctx, f);
    for (unsigned n = 1; r != 0 && f->number == DEADLOCK && n < DEADLOCK_TRIES && !is_over(c);
         n++) {
        (void)poll(NULL, 0, (int)(n * (1 + (unsigned)c->mysql.thread_id % DEADLOCK_TRIES)));
        *f = (struct stw_fault){0};
        r = send_one(c, st, row, ctx, f);
    }
    return r;
}

static int run_one(struct stw_conn *c, const struct stw_statement *st, stw_row_fn *row, void *ctx,
                   struct stw_fault *f)
{
    if (!c->opening)
        c->started_ms = now_ms();
    stw_intake_begin(&c->intake);
    waiting = c;
    int r = send_until_no_deadlock(c, st, row, ctx, f);
    waiting = NULL;
    stw_intake_end(&c->intake);
    if (r != 0)
        return -1;
    if (st->must_match && my.mysql_affected_rows(&c->mysql) == 0)
        return stw_fault_set(f, STW_SQL_NOT_OURS, st->step,
                             "another client changed the mark at this moment");
    return 0;
}

static int conn_run(struct stw_conn *c, const struct stw_statement *st, size_t count,
                    stw_row_fn *row, void *ctx, struct stw_fault *f)
{
    for (size_t i = 0; i < count; i++)
        if (run_one(c, &st[i], row, ctx, f) != 0)
            return -1;
    return 0;
}

static int run_statement_text(struct stw_conn *c, const char *text, stw_row_fn *row,
                              struct stw_fault *f)
{
    struct stw_statement st = {.step = STW_SQL_STEP_CONNECT, .text = STW_BUF_INIT(4096)};
    stw_buf_adds(&st.text, text);
    int r = run_one(c, &st, row, &c->facts, f);
    stw_buf_done(&st.text);
    return r;
}

static int compute_mysql_verifier(struct stw_session *s, const struct stw_account *a,
                                  struct stw_verifier *ret, struct stw_fault *f)
{
    const struct stw_facts *k = &s->facts;
    struct stw_buf stored = STW_BUF_INIT(256);
    const char *plugin = stw_mysql_plugin(k, a, NULL);
    int r = stw_mysql_verifier_make(plugin, &a->password, &stored);
    if (r == 0 && k->plain_password) {
        ret->plain = true;
        stw_buf_add(&ret->text, a->password.data, a->password.len);
    } else if (r == 0) {
        stw_buf_add(&ret->text, stored.data, stored.len);
    }
    /* A salt that the server chooses is unknown. */
    if (r == 0 && (!k->plain_password || !stw_mysql_verifier_is_salted(plugin)))
        stw_sha256_hex(stored.data, stored.len, ret->id);
    stw_buf_done(&stored);
    if (r < 0 || ret->text.failed)
        return stw_fault_set(f, STW_SQL_FAILED, STW_SQL_STEP_LOOKUP,
                             "the password's verifier could not be computed");
    return 0;
}

const struct stw_engine_ops stw_engine_mysql = {
    .load = load_libmariadb,
    .open = conn_open,
    .close = conn_close,
    .alive = conn_alive,
    .cut = conn_cut,
    .facts = conn_facts,
    .run = conn_run,
    .patterns = true,
    .check = stw_mysql_check,
    .look = stw_mysql_look,
    .expand = stw_mysql_expand,
    .look_rights = stw_mysql_look_rights,
    .look_roles = stw_mysql_look_roles,
    .look_adoption = stw_mysql_look_adoption,
    .look_create = stw_mysql_look_create,
    .seal = compute_mysql_verifier,
    .prepare = stw_mysql_prepare,
    .create = stw_mysql_create,
    .alter = stw_mysql_alter,
    .discard = stw_mysql_discard,
    .rights = stw_mysql_rights,
    .mark = stw_mysql_mark,
    .unmark = stw_mysql_unmark,
    .drop = stw_mysql_drop,
    .lock = stw_mysql_lock,
    .end_sessions = stw_mysql_end_sessions,
    .count_sessions = stw_mysql_count_sessions,
    .look_server = stw_mysql_look_server,
    .put_marks = stw_mysql_put_marks,
    .lacks_marks = stw_mysql_lacks_marks,
    .mark_place = "steward.accounts",
    .databases = &stw_mysql_databases,
};
