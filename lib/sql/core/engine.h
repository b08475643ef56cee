/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of an engine: one table of functions.  account.c looks up, compares and decides; an
 * engine knows its driver, its catalogue and its dialect.  Writers only add statements to a script;
 * the pool's sessions send them. */
#ifndef STW_SQL_ENGINE_H
#define STW_SQL_ENGINE_H

#include "sql/core/grants.h"
#include "sql/core/mark.h"
#include "sql/core/script.h"
#include "sql/core/sql.h"

#define STW_MISSING_SIZE 300

/* A failure in full.  `lost`: the connection can no longer be used. */
struct stw_fault {
    enum stw_sql_trouble trouble;
    enum stw_sql_step step;
    unsigned number; /* MySQL's */
    char state[6];   /* SQLSTATE */
    bool lost, timeout;
    bool again; /* nothing was done: another client did the same at this moment */
    /* Of statements that are done: what they have left out, because another session has locked it. */
    char locked[STW_MISSING_SIZE];
    struct stw_error err;
};
/* The trouble of a failure; one that named none is STW_SQL_FAILED. */
static inline enum stw_sql_trouble stw_fault_trouble(const struct stw_fault *f)
{
    return f->trouble == STW_SQL_FINE ? STW_SQL_FAILED : f->trouble;
}

/* A privilege on databases that steward's table does not have: newer servers add some. */
struct stw_mysql_more {
    char name[48];   /* "SHOW CREATE ROUTINE" */
    char column[48]; /* "Show_create_routine" */
};
#define STW_MYSQL_MORE_MAX 16

/* What a connection has found out about its server. */
struct stw_facts {
    char version[64];
    bool utf8;       /* both the connection and the server use it */
    unsigned number; /* 101119 for 10.11.19 and 80036 for 8.0.36; 150018 for PostgreSQL 15.18 */
    /* MySQL and MariaDB */
    bool mariadb;
    bool no_backslash;   /* a backslash in a string is literal */
    bool fold_names;     /* names of databases and tables are stored in lower case */
    bool literal_names;  /* partial_revokes: database names in grants are not patterns */
    bool plain_password; /* a password policy must see the password itself */
    bool native_default; /* accounts get mysql_native_password */
    bool no_secret;      /* steward.takeover has none yet (takeover.h) */
    bool threads;        /* performance_schema is on */
    struct stw_mysql_more more[STW_MYSQL_MORE_MAX];
    size_t more_count;
    /* PostgreSQL */
    bool superuser;
    bool inherits;        /* the admin has the rights of roles that it is a member of */
    bool reads_verifiers; /* pg_authid may be read */
};

struct stw_cell {
    const char *data; /* NULL: SQL's NULL; else NUL-terminated, `len` does not count the NUL */
    size_t len;
};
/* One row of a result.  A value other than 0 ends reading and fails the statement (no memory). */
typedef int stw_row_fn(void *ctx, const struct stw_cell *cells, unsigned count);
/* A lock that another client holds is waited for shortly: it is trouble of one object. */
#define STW_SQL_LOCK_TIMEOUT_MS 2000
#define STW_ANSWER_MAX_BYTES ((size_t)64 << 20)

enum stw_password_state { STW_PASSWORD_UNKNOWN, STW_PASSWORD_SAME, STW_PASSWORD_DIFFERS };

#define STW_LOOSENED_SIZE 300

/* REQUIRE of an account of MySQL or MariaDB, as it is stored.  With one of the texts, `mode` is not used. */
struct stw_requirement {
    enum stw_require_tls mode;
    char *subject, *issuer, *cipher; /* NULL: none */
};

/* One account on the server: user@host, or the role. */
struct stw_login {
    char host[256]; /* "" on PostgreSQL */
    bool wanted;    /* one of the hosts of the account; else only found on the server */
    bool exists;
    bool mark_written; /* by the script that is being built */
    bool adopting;     /* it is not ours yet, and will be adopted */
    bool more_rights;  /* it has some that `have` cannot represent, or that were not read */
    bool sampled; /* other clients gave it more than STW_RIGHTS_SAMPLE: `have` lacks some of them */
    bool special; /* never adopted: a superuser, a role, ... */
    bool can_login; /* it is not locked; PostgreSQL: LOGIN */
    bool options_differ;
    struct stw_requirement require,
        base; /* MySQL and MariaDB: of the connections; of the base account */
    /* The part of `require` that the wanted one does not have: "REQUIRE SSL". */
    char loosened[STW_LOOSENED_SIZE];
    struct stw_rights defaults; /* MySQL and MariaDB: roles that a login activates */
    enum stw_password_state password;
    bool
        stale; /* it is to be set again: it expires, or is stored in a form that the server no longer
                   takes */
    bool expired;        /* PostgreSQL: after a VALID UNTIL that is none of the object's */
    bool plugin_differs; /* from the wanted one: it does, or another way to log in is there */
    bool old_valid;      /* MySQL: it has a second password */
    enum stw_password_state old;         /* that one, compared with the wanted */
    bool old_published;                  /* that one is the one that clients read */
    bool keep_old;                       /* for `alter`: leave the current password valid */
    bool changed;                        /* password, plugin and options have been written */
    char verifier_id[STW_MARK_MADE_LEN]; /* SHA-256 of the verifier on the server */
    char plugin[65];                     /* MySQL: the plugin of its login */
    struct stw_hash stored;              /* hash over all ways to log in; zero: unknown */
    struct stw_mark mark;
    struct stw_rights have;
    /* PostgreSQL: what was set with ALTER ROLE for the role that it acts as, and for itself: `name` is the
     * setting, `privilege` its value, `database` the one that it is for. */
    struct stw_rights settings_wanted, settings;
    bool settings_unread;       /* PostgreSQL: the server did not say which it has */
    struct stw_rights settable; /* PostgreSQL: of the wanted, those that every account may set */
    char setting_refused[STW_MARK_MADE_LEN]; /* a wanted one that is not; "": none */
    /* PostgreSQL: of a wanted right on all tables or functions, one that it is not on: "SELECT on
     * public.orders of the role owner" */
    char missing[STW_MISSING_SIZE];
    /* PostgreSQL: of a wanted right on all schemas, why it is not on all: "the database x has 2000 schemas". */
    char beyond[STW_MISSING_SIZE];
    /* PostgreSQL: of the databases that could not be looked into, one in which the mark has rights, or with
     * Exact anybody may have given some: why.  FINE: there is none. */
    enum stw_sql_trouble closed_by;
    struct stw_error closed;
};

#define STW_PG_NAME_SIZE 64 /* NAMEDATALEN */

/* The tables for marks, on MySQL and MariaDB. */
enum stw_mark_place {
    STW_PLACE_READY,
    STW_PLACE_FORMER, /* of a former version: a column is missing */
    STW_PLACE_MISSING,
};

struct stw_seen {
    struct stw_login *logins;
    size_t count;
    bool read_only;
    enum stw_mark_place place;
    char role_oid[16];
    char **databases; /* PostgreSQL: in which the role owns something or has a right */
    size_t database_count;
    char **own_databases; /* PostgreSQL: that the role owns, which gives all rights on them */
    size_t own_count;
    char **
        all_databases; /* that accept connections; MySQL and MariaDB: those of the grants that exist */
    size_t all_count;
    /* MySQL and MariaDB: the routines of the grants, as values of "<grant>:<type>:<name in lower case>". */
    char **routines;
    size_t routine_count;
    /* MySQL and MariaDB: a wanted column or routine that does not exist, or, `withheld`, a routine that is not
     * given; "": none. */
    char gone[STW_MISSING_SIZE];
    bool withheld;
    bool owns;                   /* the role owns something; set only before a drop */
    char heir[STW_PG_NAME_SIZE]; /* the role that will own it */
    bool heir_exists;
};
void stw_seen_done(struct stw_seen *s);
struct stw_login *stw_seen_login(struct stw_seen *s, const char *host); /* finds or adds */
/* Notes one way to log in, as the server stores it. */
void stw_login_note(struct stw_login *l, const char *plugin, const char *verifier, size_t len);
int stw_names_add(char ***names, size_t *count, const char *name); /* if missing; -1: no memory */

/* The password in the form that the server stores; empty when it is unknown. */
struct stw_verifier {
    struct stw_buf text;        /* secret */
    bool plain;                 /* the text is the password itself */
    char id[STW_MARK_MADE_LEN]; /* SHA-256 of what the server will store; "": unknown */
};

/* One question for marks (marks.h): those behind the account or database that the last one ended with. */
#define STW_MARKS_COMMENT_BYTES 2048
struct stw_marks_page {
    const char *cluster;
    bool databases;
    char name[256], host[256]; /* "": from the first on */
};
enum {
    STW_MARKS_NAME,
    STW_MARKS_HOST,
    STW_MARKS_OWNER,
    STW_MARKS_UID,
    STW_MARKS_COMMENT, /* PostgreSQL, instead of the two before: its beginning */
    STW_MARKS_CELLS
};

struct stw_conn; /* defined by the engine */
struct stw_database_ops;
struct stw_server_report;
struct stw_session;

struct stw_login_as {
    const struct stw_target *target;
    const char *user, *database;
    const char *password; /* NUL-terminated */
    const char *cluster;  /* of the pool; in the names of its sessions (takeover.h) */
    bool trial;           /* only tests whether the login works */
    /* Only ends what holds up another login, until that has to be there (stw_clock_system); 0: any other login. */
    uint64_t frees_until_ms;
};

struct stw_engine_ops {
    /* Called first: loads the client library. */
    int (*load)(struct stw_error *err);
    /* Blocks for at most the target's connect timeout, including the first queries. */
    struct stw_conn *(*open)(const struct stw_login_as *as, struct stw_fault *f);
    void (*close)(struct stw_conn *c);
    bool (*alive)(struct stw_conn *c); /* of an idle connection; costs no round trip */
    void (*cut)(struct stw_conn *c);   /* from any thread: makes the current and all later calls
                                          fail; the thread inside the library does the work */
    const struct stw_facts *(*facts)(const struct stw_conn *c);
    /* Sends `count` statements, as one transaction where the engine can; `row` may be NULL. */
    int (*run)(struct stw_conn *c, const struct stw_statement *st, size_t count, stw_row_fn *row,
               void *ctx, struct stw_fault *f);
    /* Sends a statement as it is, whose answer nothing reads: only `waits` and `close` come after that.  NULL: only
     * PostgreSQL has these two. */
    int (*start)(struct stw_conn *c, const struct stw_statement *st, struct stw_fault *f);
    bool (*waits)(struct stw_conn *c, unsigned ms); /* it has no answer after this time */
    bool patterns;                                  /* database names in rights are patterns */
    bool transactional; /* consecutive statements on one database are one transaction; the mark is
                           dropped with the account */
    bool leaves_out;    /* it can leave out what another session has locked */

    /* Whether this server can have such names and such a password at all. */
    int (*check)(const struct stw_facts *k, const struct stw_account *a, struct stw_error *err);
    /* Looks up existence, mark, password, options; on MySQL also the rights. */
    int (*look)(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                struct stw_fault *f);
    /* The requested rights, as this server will show them. */
    int (*expand)(const struct stw_facts *k, const struct stw_account *a,
                  const struct stw_seen *seen, struct stw_rights *ret, struct stw_error *err);
    /* Looks up rights that `look` does not return. */
    int (*look_rights)(struct stw_session *s, const struct stw_account *a,
                       const struct stw_rights *want, struct stw_seen *seen, struct stw_fault *f);
    /* Passes a row {role, why} to `row` for each wanted role that exists, and on PostgreSQL for each
     * role that it is a member of, {role, why, that role}.  `why` it may not be granted: NULL or ""
     * when it may. */
    int (*look_roles)(struct stw_session *s, const struct stw_account *a, stw_row_fn *row,
                      void *ctx, struct stw_fault *f);
    /* Looks up what else an account to be adopted has, beyond `have` (see adopt.h). */
    int (*look_adoption)(struct stw_session *s, const struct stw_account *a,
                         const struct stw_seen *seen, struct stw_buf *excess, struct stw_fault *f);
    /* Whether something on the server would run with the rights of an account to be created, which `ret`
     * names; NULL: nothing can. */
    int (*look_create)(struct stw_session *s, const struct stw_account *a, struct stw_fault *ret,
                       struct stw_fault *f);
    int (*seal)(struct stw_session *s, const struct stw_account *a, struct stw_verifier *ret,
                struct stw_fault *f);

    /* Looks up what a drop needs and `look` does not return, and does what cannot be in one transaction
     * with it; NULL: nothing. */
    int (*look_drop)(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                     struct stw_fault *f);

    /* The place for marks, and the secret of takeover.h.  NULL: neither is needed. */
    void (*prepare)(enum stw_mark_place found, struct stw_script *s);
    void (*create)(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, const struct stw_verifier *v, struct stw_script *s);
    void (*alter)(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                  const struct stw_verifier *v, bool options, struct stw_script *s);
    /* The second password is no longer valid; NULL: the engine has none. */
    void (*discard)(const struct stw_account *a, const struct stw_login *l, struct stw_script *s);
    void (*rights)(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, const struct stw_rights *want,
                   const struct stw_grants_plan *p, struct stw_script *s);
    /* Writes the wanted settings, or those of the role that it acts as, in statements that may fail;
     * NULL: there are none. */
    void (*settings)(const struct stw_account *a, const struct stw_login *l, struct stw_script *s);
    void (*mark)(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 enum stw_mark_state state, const char *made, const struct stw_rights *rights,
                 struct stw_script *s);
    void (*unmark)(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, struct stw_script *s);
    /* Drops the account; for PostgreSQL see the file. */
    void (*drop)(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 const struct stw_seen *seen, const char *admin, struct stw_script *s);
    /* Makes logins impossible; the mark and all rights stay. */
    void (*lock)(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 struct stw_script *s);
    /* Ends the sessions at all hosts. */
    int (*end_sessions)(struct stw_session *s, const struct stw_account *a, struct stw_fault *f);
    bool lock_ends_sessions; /* `lock` has done that, in the same script */
    /* Ends what keeps everybody from a login to the admin's database.  Whether the server has answered; NULL:
     * nothing can. */
    bool (*free_logins)(struct stw_session *s);
    /* Ends the transactions that keep the account from being changed, or also from being dropped; NULL:
     * none can. */
    int (*unblock)(struct stw_session *s, const struct stw_seen *seen, bool drop,
                   struct stw_fault *f);
    /* Counts the sessions of the account; `ret_hidden`: others' sessions are not shown. */
    int (*count_sessions)(struct stw_session *s, const struct stw_account *a, unsigned *ret,
                          bool *ret_hidden, struct stw_fault *f);
    /* At most STW_MARKS_PAGE_ROWS rows, by name and host, of marks that are not kept. */
    void (*put_marks)(const struct stw_facts *k, const struct stw_marks_page *page,
                      struct stw_buf *out);
    bool (*lacks_marks)(
        const struct stw_fault *f); /* it failed because there are none; NULL: never */
    /* Fills `r`, without version and trouble (server.h). */
    int (*look_server)(struct stw_session *s, struct stw_server_report *r, struct stw_fault *f);
    /* Where the mark is, for messages: "steward.accounts". */
    const char *mark_place;
    const struct stw_database_ops *databases;
};

static inline struct stw_mark_id stw_account_mark_id(const struct stw_account *a)
{
    return (struct stw_mark_id){.cluster = a->cluster, .owner = a->owner, .uid = a->owner_uid};
}

#ifdef STW_WITH_MYSQL
extern const struct stw_engine_ops stw_engine_mysql;
#endif
#ifdef STW_WITH_POSTGRESQL
extern const struct stw_engine_ops stw_engine_postgresql;
#endif

/* Sets the fault; always -1. */
int stw_fault_set(struct stw_fault *f, enum stw_sql_trouble trouble, enum stw_sql_step step,
                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Resolves a target's host, within its connect timeout. */
struct stw_addresses;
int stw_target_resolve(const struct stw_target *t, struct stw_addresses *ret, struct stw_fault *f);
/* Why no connection could be made, from errno, and what to look at; NULL: another error. */
const char *stw_sql_connect_cause(int error);
/* Whether the name has characters beyond ASCII; `name` may be NULL. */
bool stw_sql_is_wide(const char *name);
/* Keeps the part of a server's message that cannot contain a part of a statement: everything before
 * the first quotation mark and before "near".  `out_size` is at least 8. */
void stw_clean_message(const char *message, char *out, size_t out_size);

/* Notes a right that the admin lacks; the format is the statement that gives it. */
void stw_server_miss(struct stw_server_report *r, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A session: one of the pool's connections at a time, for one operation. */
struct stw_session {
    struct stw_pool *pool;
    const struct stw_engine_ops *ops;
    struct stw_conn *conn;
    char *database; /* of conn; NULL: the admin's */
    struct stw_facts facts;
    bool wide;                     /* names beyond ASCII: every connection must be UTF-8 */
    char locked[STW_MISSING_SIZE]; /* the first that was left out, see struct stw_fault */
    /* What the admin lacks to end the session that holds a lock: "GRANT pg_signal_backend TO x"; "": nothing */
    char unblock_needs[STW_MISSING_SIZE];
    bool stays;   /* what can be read in any database is asked where the session is */
    bool changed; /* a statement was sent that may have changed the server */
    unsigned statements;
};
int stw_session_begin(struct stw_session *s, struct stw_pool *p, struct stw_fault *f);
void stw_session_end(struct stw_session *s);
/* The server is read-only, as after a failover: the next connection goes to the one that has its address
 * now. */
void stw_session_leave_server(struct stw_session *s);
/* If a login to the admin's database had no answer in time: ends what holds it up, by the connection that stands.
 * True: the server has answered there, and visits use what is connected (stw_pool_hold). */
bool stw_session_free_logins(struct stw_pool *p);
const struct stw_target *stw_session_target(const struct stw_session *s);
/* Sends one query; a connection that turns out to be dead is replaced once. */
int stw_session_ask(struct stw_session *s, const struct stw_statement *st, stw_row_fn *row,
                    void *ctx, struct stw_fault *f);
/* Stops at the first statement that fails; those before it are `done`. */
int stw_session_run(struct stw_session *s, struct stw_script *script, struct stw_fault *f);
/* Whether these credentials work: 1, 0: another password does, or -1: unknown. */
int stw_session_trial(struct stw_session *s, const char *user, const struct stw_sql_secret *secret);

#endif
