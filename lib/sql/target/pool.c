/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/target/certificate.h"
#include "sql/target/pool_priv.h"

#include "base/fence.h"
#include "base/process/fault.h"
#include "base/thread.h"
#include "base/util.h"

#include "sql/target/breaker.h"
#include <assert.h>
#include <stdio.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define WAIT_MS 5000  /* for another caller's connection to become free */
#define SAME_MS 500   /* for one to the same database, before another one is closed for it */
#define FIRST_MS 500  /* for the outcome of a first connection that another caller makes */
#define IDLE_MS 60000 /* an idle connection is closed */
#define HELD_MS                                                                                    \
    30000 /* no login to the admin's database but those of pings, after one was held up */

/* The longest waits between attempts.  A refused connection costs the server nothing.  One that does not answer
 * may count each attempt as an error of this host, and bar it after a hundred (max_connect_errors); one that
 * refuses the login may lock the account. */
#define REFUSED_MAX_MS 5000
#define SILENT_MAX_MS 30000
#define LOGIN_MAX_MS (5u * 60000)

struct slot {
    struct stw_conn *conn; /* NULL: none, or it is being made */
    char *database;
    uint64_t used_ms;
    uint64_t term; /* term of the lease in which it was made; its name has it */
    bool taken;
};

/* Databases in which another session holds a lock. */
#define LOCKED_MAX 8
#define LOCKED_MS 10000
#define LOOK_MS 3000 /* one caller looks whether it still does */
struct locked_database {
    char name[256]; /* "": none */
    uint64_t until_ms;
    bool looked; /* a caller does, and has not noted it again */
};

struct stw_pool {
    atomic_uint refs;
    struct stw_pool_config config;
    const struct stw_engine_ops *ops;
    char cluster[STW_MARK_CLUSTER_LEN];
    struct stw_family *circuits;
    struct stw_series *ok, *error, *open, *circuit;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct stw_breaker breaker;
    unsigned connecting;
    bool proven;            /* the last connection attempt succeeded */
    struct stw_hash files;  /* of the last attempt */
    uint64_t full_since_ms; /* since then the server had no connection for a login; 0: it has */
    uint64_t full_last_ms;  /* when it last had none */
    bool cancelled, resting;
    bool silent; /* the last login to the admin's database that failed had no answer in time */
    uint64_t
        held_until_ms; /* logins there are held up, while a connection that was made before works */
    char last[512];    /* why the last attempt failed */
    struct locked_database locked[LOCKED_MAX];
    size_t count;
    struct slot slots[];
};

static void show_circuit(struct stw_pool *p)
{
    if (!p->circuits || p->resting)
        return;
    if (!p->circuit)
        p->circuit = STW_SERIES(p->circuits, p->config.target->name);
    stw_series_set(p->circuit, p->breaker.open);
}

static void make_series(struct stw_pool *p)
{
    static const char *const by_result[] = {"target", "result", NULL};
    static const char *const by_target[] = {"target", NULL};
    const char *name = p->config.target->name;
    struct stw_metrics *m = p->config.metrics;
    struct stw_family *f;
    if (!m)
        return;
    f = stw_metrics_family(m, STW_COUNTER, "_sql_statements_total",
                           "Statements sent to database servers.", by_result, NULL);
    p->ok = STW_SERIES(f, name, "success");
    p->error = STW_SERIES(f, name, "error");
    f = stw_metrics_family(m, STW_GAUGE, "_sql_connections",
                           "Connections to database servers that are open.", by_target, NULL);
    p->open = STW_SERIES(f, name);
    p->circuits = stw_metrics_family(m, STW_GAUGE, "_sql_circuit_open",
                                     "1 while a database server that did not answer is left alone.",
                                     by_target, NULL);
    show_circuit(p);
}

int stw_pool_make(const struct stw_pool_config *config, const struct stw_engine_ops *ops,
                  struct stw_pool **ret, struct stw_error *err)
{
    size_t count = (size_t)STW_MAX(config->target->max_connections, (int64_t)1);
    struct stw_pool *p;
    assert(config->password && config->clock && ret);
    if (ops->load(err) != 0)
        return stw_error_wrap(err, "target \"%s\"", config->target->name);
    p = calloc(1, sizeof(*p) + count * sizeof(p->slots[0]));
    if (!p)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the connections of target \"%s\"",
                        config->target->name);
    atomic_init(&p->refs, 1);
    p->config = *config;
    stw_format(p->cluster, sizeof(p->cluster), "%s", config->cluster ? config->cluster : "");
    p->ops = ops;
    p->count = count;
    (void)stw_targets_ref(config->targets);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)stw_cond_init(&p->cond);
    make_series(p);
    *ret = p;
    return 0;
}

struct stw_pool *stw_pool_ref(struct stw_pool *p)
{
    atomic_fetch_add(&p->refs, 1);
    return p;
}

/* With the lock held, as in all functions that take a slot. */
static void close_slot(struct stw_pool *p, struct slot *s)
{
    assert(s->conn);
    p->ops->close(s->conn);
    free(s->database);
    *s = (struct slot){0};
    stw_series_add(p->open, -1);
}

void stw_pool_unref(struct stw_pool *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    for (size_t i = 0; i < p->count; i++)
        if (p->slots[i].conn)
            close_slot(p, &p->slots[i]);
    stw_series_remove(p->ok);
    stw_series_remove(p->error);
    stw_series_remove(p->open);
    stw_series_remove(p->circuit);
    stw_targets_unref(p->config.targets);
    (void)pthread_cond_destroy(&p->cond);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

void stw_pool_cancel(struct stw_pool *p)
{
    STW_LOCKED(&p->lock);
    p->cancelled = true;
    for (size_t i = 0; i < p->count; i++)
        if (p->slots[i].conn && p->slots[i].taken)
            p->ops->cut(p->slots[i].conn);
    (void)pthread_cond_broadcast(&p->cond);
}

static void close_idle_but(struct stw_pool *p, uint64_t older_than_ms, const struct slot *stays)
{
    uint64_t now = stw_now_ms(p->config.clock);
    for (size_t i = 0; i < p->count; i++) {
        struct slot *s = &p->slots[i];
        if (s->conn && !s->taken && s != stays && now - s->used_ms >= older_than_ms)
            close_slot(p, s);
    }
}

/* The idle connection by which logins can be freed, if they can. */
static struct slot *find_standing(struct stw_pool *p)
{
    uint64_t term = stw_fence_current().term;
    for (size_t i = 0; p->ops->free_logins && i < p->count; i++) {
        struct slot *s = &p->slots[i];
        if (s->conn && !s->taken && !s->database && s->term == term && p->ops->alive(s->conn))
            return s;
    }
    return NULL;
}

/* It gives its place to no other one, and does not end by its age: with logins held up there may be no next one.
 * Without pings, a server that is not used is to have none, and the only connection has to serve all. */
static struct slot *find_spared(struct stw_pool *p)
{
    bool pings = p->config.target->ping_seconds > 0 && !p->resting;
    return pings && p->count > 1 ? find_standing(p) : NULL;
}

/* Whether a connection to the admin's database is in use, or can be. */
static bool has_admins(const struct stw_pool *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->slots[i].conn && !p->slots[i].database)
            return true;
    return false;
}

static bool is_held(const struct stw_pool *p)
{
    return stw_now_ms(p->config.clock) < p->held_until_ms && has_admins(p);
}

void stw_pool_tidy(struct stw_pool *p)
{
    STW_LOCKED(&p->lock);
    close_idle_but(p, IDLE_MS, find_spared(p));
}

void stw_pool_close_idle(struct stw_pool *p)
{
    STW_LOCKED(&p->lock);
    close_idle_but(p, 0, NULL);
}

uint64_t stw_pool_retry_ms(struct stw_pool *p)
{
    STW_LOCKED(&p->lock);
    return stw_breaker_wait_ms(&p->breaker, stw_now_ms(p->config.clock));
}

uint64_t stw_pool_full_ms(struct stw_pool *p)
{
    STW_LOCKED(&p->lock);
    return p->full_since_ms ? p->full_last_ms - p->full_since_ms : 0;
}

void stw_pool_rest(struct stw_pool *p, bool resting)
{
    STW_LOCKED(&p->lock);
    p->resting = resting;
    if (resting)
        stw_series_remove(stw_take(p->circuit));
    else
        show_circuit(p);
}

void stw_pool_poke(struct stw_pool *p)
{
    STW_LOCKED(&p->lock);
    stw_breaker_poke(&p->breaker);
}

static bool same_database(const char *a, const char *b)
{
    return a && b ? stw_streq(a, b) : a == b;
}

/* An idle connection to the database that is still alive. */
static struct slot *idle_slot(struct stw_pool *p, const char *database)
{
    for (size_t i = 0; i < p->count; i++) {
        struct slot *s = &p->slots[i];
        if (!s->conn || s->taken || !same_database(s->database, database))
            continue;
        if (s->term == stw_fence_current().term && p->ops->alive(s->conn))
            return s;
        close_slot(p, s);
    }
    return NULL;
}

static bool is_in_use(const struct stw_pool *p, const char *database)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->slots[i].taken && p->slots[i].conn && same_database(p->slots[i].database, database))
            return true;
    return false;
}

static bool is_full(const struct stw_pool *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (!p->slots[i].taken && !p->slots[i].conn)
            return false;
    return true;
}

/* An empty slot; if there is none, closes the idle connection to another database that was used
 * longest ago, but not the one that stands. */
static struct slot *empty_slot(struct stw_pool *p)
{
    struct slot *oldest = NULL;
    const struct slot *stays = find_spared(p);
    for (size_t i = 0; i < p->count; i++) {
        struct slot *s = &p->slots[i];
        if (!s->taken && !s->conn)
            return s;
        if (!s->taken && s != stays && (!oldest || s->used_ms < oldest->used_ms))
            oldest = s;
    }
    if (oldest)
        close_slot(p, oldest);
    return oldest;
}

/* Sets a fault whose text names the target. */
static int set_target_fault(struct stw_pool *p, struct stw_fault *f, enum stw_sql_trouble trouble,
                            const char *what)
{
    const struct stw_target *t = p->config.target;
    return stw_fault_set(f, trouble, STW_SQL_STEP_CONNECT, "target \"%s\" (%s:%d): %s", t->name,
                         t->host, (int)t->port, what);
}

static int refuse_open(struct stw_pool *p, struct stw_fault *f)
{
    uint64_t wait = stw_breaker_wait_ms(&p->breaker, stw_now_ms(p->config.clock));
    return stw_fault_set(f, STW_SQL_CIRCUIT_OPEN, STW_SQL_STEP_CONNECT,
                         "%s (not tried again for %u s)", p->last, (unsigned)((wait + 999) / 1000));
}

/* Changes with the files that a login reads. */
static struct stw_hash look_at_files(const struct stw_target *t)
{
    const char *const paths[] = {t->password_file, t->certificate_file, t->key_file};
    int64_t seen[STW_COUNT(paths)][4] = {{0}};
    for (size_t i = 0; i < STW_COUNT(paths); i++) {
        struct stat st;
        if (!paths[i] || stat(paths[i], &st) != 0)
            continue;
        seen[i][0] = st.st_mtim.tv_sec;
        seen[i][1] = st.st_mtim.tv_nsec;
        seen[i][2] = (int64_t)st.st_ino;
        seen[i][3] = st.st_size;
    }
    return stw_hash_bytes(seen, sizeof(seen));
}

/* A login was refused, and what it reads has been renewed since. */
static void try_new_files(struct stw_pool *p)
{
    struct stw_hash now = look_at_files(p->config.target);
    if (stw_hash_equal(p->files, now))
        return;
    p->files = now;
    stw_breaker_poke(&p->breaker);
}

static struct stw_conn *open_admin_connection(struct stw_pool *p, const char *database,
                                              struct stw_fault *f)
{
    const struct stw_target *t = p->config.target;
    struct stw_conn *conn = NULL;
    bool has_password = stw_target_has_password(t);
    struct stw_buf password = STW_BUF_INIT(4096);
    password.secret = true;
    if (stw_login_files_check(t, &f->err) != 0 || stw_certificate_check(t, &f->err) != 0 ||
        (has_password && p->config.password(p->config.ctx, t, &password, &f->err) != 0)) {
        f->trouble = STW_SQL_AUTH;
        f->step = STW_SQL_STEP_CONNECT;
    } else if ((has_password && password.len == 0) || password.failed ||
               memchr(stw_buf_str(&password), '\0', password.len)) {
        (void)set_target_fault(p, f, STW_SQL_AUTH,
                               "the admin's password is empty, too long, or holds a NUL");
    } else {
        conn =
            p->ops->open(&(struct stw_login_as){.target = t,
                                                .user = t->admin_user,
                                                .database = database ? database : t->admin_database,
                                                .password = stw_buf_str(&password),
                                                .cluster = p->cluster},
                         f);
    }
    stw_buf_done(&password);
    return conn;
}

/* An error about one database does not concern the others; one about the password does, or one of a
 * server that stops. */
static bool is_of_database(const struct stw_fault *f, const char *database)
{
    static const char *const of_server[] = {"08", "28P01", "57P01", "57P02", "57P03"};
    bool server = f->state[0] == '\0';
    for (size_t i = 0; i < STW_COUNT(of_server); i++)
        server |= strncmp(f->state, of_server[i], strlen(of_server[i])) == 0;
    return database && !server;
}

/* A login waits for a lock on the database, which its owner can hold again and again (DROP DATABASE waits for
 * sessions).  Whether the server answers is known from the admin's database. */
static bool has_waited_for_database(const struct stw_fault *f, const char *database)
{
    return database && f->timeout;
}

bool stw_pool_blame_database(struct stw_fault *f, const char *database, enum stw_sql_step step)
{
    if (has_waited_for_database(f, database) && f->step == STW_SQL_STEP_CONNECT) {
        (void)stw_fault_set(f, STW_SQL_LOCKED, step,
                            "no login to the database \"%s\" in time: another session holds a lock "
                            "on it (DROP DATABASE or ALTER DATABASE), or the server is slow",
                            database);
        return true;
    }
    if (f->trouble != STW_SQL_CONNECT || !is_of_database(f, database))
        return false;
    (void)stw_fault_set(f, STW_SQL_DENIED, step,
                        "the database \"%s\" refuses or ends the admin's connections (SQLSTATE "
                        "%s): see ALLOW_CONNECTIONS, CONNECTION LIMIT and the timeouts that ALTER "
                        "DATABASE has set",
                        database, f->state);
    return true;
}

/* Whether the fault means that the server is down, or that no login can succeed. */
static bool counts_as_dead(const struct stw_fault *f, const char *database)
{
    if (is_of_database(f, database))
        return false;
    return f->trouble == STW_SQL_CONNECT || f->trouble == STW_SQL_AUTH || f->trouble == STW_SQL_TLS;
}

/* The server itself has refused the login, which it may count. */
static bool is_login_refused(const struct stw_fault *f)
{
    return f->trouble == STW_SQL_AUTH && (f->number != 0 || f->state[0] != '\0');
}

static uint64_t find_longest_wait(const struct stw_fault *f)
{
    if (is_login_refused(f))
        return LOGIN_MAX_MS;
    return f->trouble == STW_SQL_CONNECT && !f->timeout ? REFUSED_MAX_MS : SILENT_MAX_MS;
}

/* The owner of a database may limit the connections to it. */
static void record_place(struct stw_pool *p, bool connected, const char *database,
                         const struct stw_fault *f)
{
    bool full = !connected && f->trouble == STW_SQL_BUSY && (f->number != 0 || f->state[0] != '\0');
    if (!connected && database)
        return;
    p->full_last_ms = full ? STW_MAX(stw_now_ms(p->config.clock), (uint64_t)1) : 0;
    if (!full || p->full_since_ms == 0)
        p->full_since_ms = p->full_last_ms;
}

static void record_connect_result(struct stw_pool *p, bool connected, const char *database,
                                  const struct stw_fault *f)
{
    if (!connected && has_waited_for_database(f, database) && !p->breaker.open)
        return;
    if (!connected && !database && f->timeout && is_held(p))
        return;
    if (!database) {
        p->silent = !connected && f->timeout;
        p->held_until_ms = 0;
    }
    if (connected || !counts_as_dead(f, database)) {
        stw_breaker_success(&p->breaker);
        p->proven = true;
    } else {
        p->proven = false;
        stw_format(p->last, sizeof(p->last), "%s", f->err.text);
        stw_breaker_failure(&p->breaker, stw_now_ms(p->config.clock),
                            f->timeout || f->trouble != STW_SQL_CONNECT, find_longest_wait(f));
        if (p->breaker.open)
            close_idle_but(p, 0, f->timeout ? find_standing(p) : NULL);
    }
    show_circuit(p);
}

/* Says whose login it was, and where. */
static void name_login(struct stw_pool *p, const char *database, struct stw_fault *f)
{
    const struct stw_target *t = p->config.target;
    if (stw_pool_blame_database(f, database, STW_SQL_STEP_GRANT))
        return;
    bool refused = f->trouble == STW_SQL_AUTH || f->trouble == STW_SQL_DENIED;
    if (refused && is_of_database(f, database))
        (void)stw_fault_set(f, STW_SQL_DENIED, STW_SQL_STEP_GRANT,
                            "the admin account may not enter the database \"%s\": GRANT CONNECT ON "
                            "DATABASE \"%s\" TO \"%s\", and see pg_hba.conf",
                            database, database, t->admin_user);
    else if (strncmp(f->err.text, "target ", 7) != 0)
        (void)stw_error_wrap(&f->err, "target \"%s\" (%s:%d, account \"%s\"%s%s%s)", t->name,
                             t->host, (int)t->port, t->admin_user, database ? ", database \"" : "",
                             database ? database : "", database ? "\"" : "");
}

/* Opens the connection of an empty slot, without the lock. */
static struct stw_conn *connect_slot(struct stw_pool *p, struct slot *s, const char *database,
                                     struct stw_fault *f)
{
    STW_ASSERT_LOCKED(&p->lock);
    assert(!s->taken && !s->conn);
    s->taken = true;
    p->connecting++;
    p->files = look_at_files(p->config.target);
    (void)pthread_mutex_unlock(&p->lock);
    char *name = database ? strdup(database) : NULL;
    struct stw_conn *conn = NULL;
    if (database && !name)
        (void)set_target_fault(p, f, STW_SQL_BUSY, "no memory");
    else
        conn = open_admin_connection(p, database, f);
    (void)pthread_mutex_lock(&p->lock);
    p->connecting--;
    if (!conn)
        name_login(p, database, f);
    record_place(p, conn != NULL, database, f);
    record_connect_result(p, conn != NULL, database, f);
    if (!conn && f->trouble == STW_SQL_CONNECT && is_of_database(f, database))
        f->trouble = STW_SQL_FAILED;
    if (conn) {
        s->conn = conn;
        s->term = stw_fence_current().term;
        s->database = stw_take(name);
        stw_series_add(p->open, 1);
        if (p->cancelled)
            p->ops->cut(conn);
    } else {
        s->taken = false;
    }
    free(name);
    (void)pthread_cond_broadcast(&p->cond);
    return conn;
}

/* The target is not asked before some time has passed, unless its login files are new. */
static bool is_closed(struct stw_pool *p, uint64_t now_ms)
{
    if (p->breaker.open)
        try_new_files(p);
    return p->breaker.open && stw_breaker_wait_ms(&p->breaker, now_ms) > 1;
}

/* One attempt, with the lock held.  Returns a connection; or NULL with a fault; or NULL without
 * one: wait and try again until *until_ms. */
static struct stw_conn *try_take(struct stw_pool *p, const char *database, uint64_t started_ms,
                                 uint64_t *until_ms, struct stw_fault *f)
{
    uint64_t now = stw_now_ms(p->config.clock);
    struct slot *s;
    if (p->cancelled) {
        (void)set_target_fault(p, f, STW_SQL_CONNECT, "steward is stopping");
        f->err.code = STW_ERR_CANCELLED;
        return NULL;
    }
    /* The connection that a ping leaves open may be as dead as the server. */
    if (!p->breaker.open && (s = idle_slot(p, database))) {
        s->taken = true;
        return s->conn;
    }
    if (is_closed(p, now)) {
        (void)refuse_open(p, f);
        return NULL;
    }
    /* While the server is not known to answer, one caller tries and the others wait for the
     * outcome. */
    if (p->connecting > 0 && !p->proven) {
        *until_ms = started_ms + FIRST_MS;
        if (now >= *until_ms)
            (void)set_target_fault(p, f, STW_SQL_CIRCUIT_OPEN,
                                   "a first connection is still being made");
        return NULL;
    }
    if (!database && is_held(p)) {
        *until_ms = started_ms + WAIT_MS;
        if (now >= *until_ms)
            (void)set_target_fault(p, f, STW_SQL_BUSY,
                                   "logins to the admin's database are held up by a lock, and the "
                                   "connections that were made before are in use");
        return NULL;
    }
    if (is_full(p) && is_in_use(p, database) && now < started_ms + SAME_MS) {
        *until_ms = started_ms + SAME_MS;
        return NULL;
    }
    if (!(s = empty_slot(p))) {
        *until_ms = started_ms + WAIT_MS;
        if (now >= *until_ms)
            (void)set_target_fault(p, f, STW_SQL_BUSY, "all connections are in use");
        return NULL;
    }
    if (stw_breaker_allow(&p->breaker, now))
        return connect_slot(p, s, database, f);
    (void)refuse_open(p, f);
    return NULL;
}

struct stw_conn *stw_pool_take(struct stw_pool *p, const char *database, struct stw_fault *f)
{
    struct stw_conn *conn;
    uint64_t until = 0, started = stw_now_ms(p->config.clock);
    (void)pthread_mutex_lock(&p->lock);
    close_idle_but(p, IDLE_MS, find_spared(p));
    while (!(conn = try_take(p, database, started, &until, f)) && f->trouble == STW_SQL_FINE)
        stw_cond_wait_until(&p->cond, &p->lock, until);
    (void)pthread_mutex_unlock(&p->lock);
    return conn;
}

struct stw_conn *stw_pool_take_standing(struct stw_pool *p, bool *ret_held_up)
{
    STW_LOCKED(&p->lock);
    struct slot *s = p->cancelled || !p->ops->free_logins ? NULL : idle_slot(p, NULL);
    *ret_held_up = p->silent || is_held(p);
    if (!s)
        return NULL;
    s->taken = true;
    return s->conn;
}

void stw_pool_hold(struct stw_pool *p)
{
    STW_LOCKED(&p->lock);
    p->held_until_ms = stw_now_ms(p->config.clock) + HELD_MS;
    p->proven = true;
    stw_breaker_success(&p->breaker);
    show_circuit(p);
    (void)pthread_cond_broadcast(&p->cond);
}

bool stw_pool_is_held(struct stw_pool *p)
{
    STW_LOCKED(&p->lock);
    return is_held(p);
}

bool stw_pool_ping(struct stw_pool *p, struct stw_fault *f)
{
    struct stw_conn *conn = NULL;
    (void)pthread_mutex_lock(&p->lock);
    uint64_t now = stw_now_ms(p->config.clock);
    bool closed = is_closed(p, now);
    struct slot *s = closed ? NULL : empty_slot(p); /* which closes an idle one */
    bool busy = !s || p->cancelled || (p->connecting > 0 && !p->proven);
    if (!closed && busy)
        (void)set_target_fault(p, f, STW_SQL_BUSY, "all connections are in use");
    else if (!closed && stw_breaker_allow(&p->breaker, now))
        conn = connect_slot(p, s, NULL, f);
    else
        (void)refuse_open(p, f);
    bool stays = p->ops->free_logins && !find_standing(p);
    (void)pthread_mutex_unlock(&p->lock);
    stw_pool_put(p, conn, !stays);
    return conn;
}

void stw_pool_put(struct stw_pool *p, struct stw_conn *conn, bool lost)
{
    if (!conn)
        return;
    STW_LOCKED(&p->lock);
    for (size_t i = 0; i < p->count; i++) {
        struct slot *s = &p->slots[i];
        if (s->conn != conn)
            continue;
        assert(s->taken);
        s->taken = false;
        s->used_ms = stw_now_ms(p->config.clock);
        if (lost)
            close_slot(p, s);
    }
    (void)pthread_cond_broadcast(&p->cond);
}

struct stw_conn *stw_pool_open_beside(struct stw_pool *p, struct stw_fault *f)
{
    return open_admin_connection(p, NULL, f);
}

void stw_pool_note_locked(struct stw_pool *p, const char *database)
{
    STW_LOCKED(&p->lock);
    struct locked_database *to = &p->locked[0];
    for (size_t i = 0; i < LOCKED_MAX; i++) {
        if (stw_streq(p->locked[i].name, database)) {
            to = &p->locked[i];
            break;
        }
        if (p->locked[i].until_ms < to->until_ms)
            to = &p->locked[i];
    }
    *to = (struct locked_database){.until_ms = stw_now_ms(p->config.clock) + LOCKED_MS};
    stw_format(to->name, sizeof(to->name), "%s", database);
}

bool stw_pool_knows_locked(struct stw_pool *p, stw_pool_counts_fn *counts, const void *ctx)
{
    STW_LOCKED(&p->lock);
    uint64_t now = stw_now_ms(p->config.clock);
    struct locked_database *again = NULL;
    for (size_t i = 0; i < LOCKED_MAX; i++) {
        struct locked_database *l = &p->locked[i];
        if (l->looked && now >= l->until_ms)
            *l = (struct locked_database){0};
        if (l->name[0] == '\0' || !counts(ctx, l->name))
            continue;
        if (now < l->until_ms)
            return true;
        again = l;
    }
    if (again) {
        again->until_ms = now + LOOK_MS;
        again->looked = true;
    }
    return false;
}

void stw_pool_forget_locked(struct stw_pool *p, stw_pool_counts_fn *counts, const void *ctx)
{
    STW_LOCKED(&p->lock);
    for (size_t i = 0; i < LOCKED_MAX; i++)
        if (p->locked[i].looked && counts(ctx, p->locked[i].name))
            p->locked[i] = (struct locked_database){0};
}

const struct stw_engine_ops *stw_pool_ops(const struct stw_pool *p)
{
    return p->ops;
}

const struct stw_target *stw_pool_target(const struct stw_pool *p)
{
    return p->config.target;
}

void stw_pool_count(struct stw_pool *p, unsigned statements, bool ok)
{
    stw_series_add(ok ? p->ok : p->error, ok ? statements : 1);
}

void stw_pool_sent(struct stw_pool *p)
{
    stw_fault_point("sql");
    if (p->config.sent)
        p->config.sent(p->config.ctx);
}
