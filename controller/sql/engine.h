/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine is: one table of functions.  account.c looks, compares and decides; an engine
 * knows its driver, its catalogue and its dialect.  Writers only write statements into a script;
 * the pool's sessions send them. */
#ifndef STW_CONTROLLER_SQL_ENGINE_H
#define STW_CONTROLLER_SQL_ENGINE_H

#include "controller/sql/grants.h"
#include "controller/sql/mark.h"
#include "controller/sql/script.h"
#include "controller/sql/sql.h"

/* What failed, in full.  `lost`: the connection is of no more use. */
struct stw_fault {
    enum stw_sql_trouble trouble;
    enum stw_sql_step step;
    unsigned number; /* MySQL's */
    char state[6];   /* SQLSTATE */
    bool lost, timeout;
    bool again; /* nothing was done, because somebody else did the same at this moment */
    struct stw_error err;
};

/* A privilege on databases that this program has no name for: newer servers add some. */
struct stw_mysql_more {
    char name[48];   /* "SHOW CREATE ROUTINE" */
    char column[48]; /* "Show_create_routine" */
};
#define STW_MYSQL_MORE_MAX 16

/* What a connection has learnt about its server. */
struct stw_facts {
    char version[64];
    bool utf8;       /* of both sides: the connection's and the server's */
    unsigned number; /* 101119 for 10.11.19 and 80036 for 8.0.36; 150018 for PostgreSQL 15.18 */
    /* MySQL and MariaDB */
    bool mariadb;
    bool no_backslash;   /* a backslash in a string is only a backslash */
    bool fold_names;     /* names of databases and tables are stored in lower case */
    bool literal_names;  /* partial_revokes: database names in grants are no patterns */
    bool plain_password; /* a password policy has to see passwords */
    bool native_default; /* accounts get mysql_native_password */
    struct stw_mysql_more more[STW_MYSQL_MORE_MAX];
    size_t more_count;
    /* PostgreSQL */
    bool superuser;
    bool inherits;        /* the rights of roles that the admin is a member of */
    bool reads_verifiers; /* pg_authid may be read */
};

struct stw_cell {
    const char *data; /* NULL: SQL's NULL; else ended by a NUL that does not count */
    size_t len;
};
/* One row of an answer; not 0 ends reading, and the statement counts as failed (no memory). */
typedef int stw_row_fn(void *ctx, const struct stw_cell *cells, unsigned count);
#define STW_ANSWER_MAX_BYTES ((size_t)64 << 20)

enum stw_password_state { STW_PASSWORD_UNKNOWN, STW_PASSWORD_SAME, STW_PASSWORD_DIFFERS };

/* One account on the server: user@host, or the role. */
struct stw_login {
    char host[256]; /* "" on PostgreSQL */
    bool wanted;    /* one of the hosts of the account; else only the mark speaks of it */
    bool exists;
    bool mark_written; /* by the script that is being written */
    bool adopting;     /* it is not ours yet, and would be taken over */
    bool more_rights;  /* it has some that `have` cannot name */
    bool special;      /* nobody's to change: a superuser, a role, ... `err` of the lookup says */
    bool options_differ;
    enum stw_password_state password;
    char verifier_id[STW_MARK_MADE_LEN]; /* SHA-256 of the verifier on the server */
    char plugin[65];                     /* MySQL: how it logs in */
    struct stw_hash stored; /* over all ways to log in; zero: the server does not say */
    struct stw_mark mark;
    struct stw_rights have;
};

#define STW_PG_NAME_SIZE 64 /* NAMEDATALEN */

struct stw_seen {
    struct stw_login *logins;
    size_t count;
    bool read_only;
    bool no_table; /* MySQL: nothing to keep marks in yet */
    char role_oid[16];
    char **databases; /* PostgreSQL: in which the role owns something or has a right */
    size_t database_count;
    char **all_databases; /* that take connections */
    size_t all_count;
    bool owns;                   /* the role owns something; known before a drop only */
    char heir[STW_PG_NAME_SIZE]; /* the role that gets it */
    bool heir_exists;
};
void stw_seen_done(struct stw_seen *s);
struct stw_login *stw_seen_login(struct stw_seen *s, const char *host); /* found or added */
/* One way to log in, as the server stores it. */
void stw_login_note(struct stw_login *l, const char *plugin, const char *verifier, size_t len);
int stw_names_add(char ***names, size_t *count, const char *name); /* if not there; -1 */

/* The password in the form that the server stores, or nothing when it is not known. */
struct stw_verifier {
    struct stw_buf text;        /* secret */
    bool plain;                 /* it has to go as it is */
    char id[STW_MARK_MADE_LEN]; /* SHA-256 of what the server will store; "": not known */
};

struct stw_conn; /* an engine's own */
struct stw_session;

struct stw_login_as {
    const struct stw_target *target;
    const char *user, *database;
    const char *password; /* ended by NUL */
    bool trial;           /* only to see whether the login works */
};

struct stw_engine_ops {
    /* Before all else: the client library. */
    int (*load)(struct stw_error *err);
    /* Blocks for at most the target's connect timeout, also with what is asked first. */
    struct stw_conn *(*open)(const struct stw_login_as *as, struct stw_fault *f);
    void (*close)(struct stw_conn *c);
    bool (*alive)(struct stw_conn *c); /* an idle connection; costs no round trip */
    void (*cut)(struct stw_conn *c);   /* from any thread: what is under way fails, and all that
                                          comes; the thread inside the library does it */
    const struct stw_facts *(*facts)(const struct stw_conn *c);
    /* Sends `count` statements, as one transaction where the engine can; `row` may be NULL. */
    int (*run)(struct stw_conn *c, const struct stw_statement *st, size_t count, stw_row_fn *row,
               void *ctx, struct stw_fault *f);
    bool patterns;      /* rights on databases hold patterns */
    bool transactional; /* statements of one database in a row are one transaction */

    /* Whether names and password can be such on this server at all. */
    int (*check)(const struct stw_facts *k, const struct stw_account *a, struct stw_error *err);
    /* Existence, mark, password, options; on MySQL also the rights. */
    int (*look)(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                struct stw_fault *f);
    /* The rights asked for, as this server will show them. */
    int (*expand)(const struct stw_facts *k, const struct stw_account *a,
                  const struct stw_seen *seen, struct stw_rights *ret, struct stw_error *err);
    /* Rights that `look` did not bring; NULL: none. */
    int (*look_rights)(struct stw_session *s, const struct stw_account *a,
                       const struct stw_rights *want, struct stw_seen *seen, struct stw_fault *f);
    /* What else an account holds that is to be taken over, beyond `have` (see adopt.h). */
    int (*look_adoption)(struct stw_session *s, const struct stw_account *a,
                         const struct stw_seen *seen, struct stw_buf *excess, struct stw_fault *f);
    /* Whether something on the server would run with the rights of an account that is to be made;
     * NULL: nothing can. */
    int (*look_create)(struct stw_session *s, const struct stw_account *a, bool *ret_taken,
                       struct stw_fault *f);
    int (*seal)(struct stw_session *s, const struct stw_account *a, struct stw_verifier *ret,
                struct stw_fault *f);

    /* What a drop has to know and `look` did not bring; NULL: nothing. */
    int (*look_drop)(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                     struct stw_fault *f);

    void (*prepare)(const struct stw_facts *k, struct stw_script *s); /* the marks' place */
    void (*create)(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, const struct stw_verifier *v, struct stw_script *s);
    void (*alter)(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                  const struct stw_verifier *v, bool options, struct stw_script *s);
    void (*rights)(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, const struct stw_rights *want,
                   const struct stw_grants_plan *p, struct stw_script *s);
    void (*mark)(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 enum stw_mark_state state, const char *made, const struct stw_rights *rights,
                 struct stw_script *s);
    void (*unmark)(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, struct stw_script *s);
    /* With its sessions, and the mark with it; for PostgreSQL see the file. */
    void (*drop)(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 const struct stw_seen *seen, const char *admin, struct stw_script *s);
    /* The mark for people: "steward.accounts". */
    const char *mark_place;
};

#ifdef STW_WITH_MYSQL
extern const struct stw_engine_ops stw_engine_mysql;
#endif
#ifdef STW_WITH_POSTGRESQL
extern const struct stw_engine_ops stw_engine_postgresql;
#endif

/* Sets the fault; always -1. */
int stw_fault_set(struct stw_fault *f, enum stw_sql_trouble trouble, enum stw_sql_step step,
                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The addresses of a target's host, within its connect timeout. */
struct stw_addresses;
int stw_target_resolve(const struct stw_target *t, struct stw_addresses *ret, struct stw_fault *f);
/* What of a server's message cannot hold a part of a statement: all before the first quotation mark
 * and before "near".  `out_size` at least 8. */
void stw_clean_message(const char *message, char *out, size_t out_size);

/* A session: one connection at a time, of the pool's, for one operation. */
struct stw_session {
    struct stw_pool *pool;
    const struct stw_engine_ops *ops;
    struct stw_conn *conn;
    char *database; /* of conn; NULL: the admin's */
    struct stw_facts facts;
    bool wide;    /* names beyond ASCII: every connection must be UTF-8 */
    bool changed; /* something was sent that may have changed the server */
    unsigned statements;
};
int stw_session_begin(struct stw_session *s, struct stw_pool *p, struct stw_fault *f);
void stw_session_end(struct stw_session *s);
const struct stw_target *stw_session_target(const struct stw_session *s);
/* Sends one statement for its answer; a connection that turns out to be dead is replaced once. */
int stw_session_ask(struct stw_session *s, const struct stw_statement *st, stw_row_fn *row,
                    void *ctx, struct stw_fault *f);
/* Stops at the first that fails; those before are `done`. */
int stw_session_run(struct stw_session *s, struct stw_script *script, struct stw_fault *f);
/* Whether these credentials work: 1, 0, or -1 when it could not be told. */
int stw_session_trial(struct stw_session *s, const char *user, const struct stw_sql_secret *secret);

#endif
