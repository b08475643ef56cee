/* SPDX-License-Identifier: Apache-2.0
 *
 * Accounts on database servers.  Each server has one pool, which is bounded in connections and time
 * and has a circuit breaker.  The engines implement one small table (engine.h), so that a third one
 * is one file.
 *
 * No text that leaves this module contains a password, a verifier or a statement that has one: errors
 * name what was tried, the rights and the object of a GRANT, the server's error number, and its message,
 * without quoted values unless they are names of objects. */
#ifndef STW_SQL_SQL_H
#define STW_SQL_SQL_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "sql/target/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why an operation failed; the reconciler decides what it means for conditions. */
enum stw_sql_trouble {
    STW_SQL_FINE,
    STW_SQL_CONNECT,      /* no server, or no answer in time: transient */
    STW_SQL_CIRCUIT_OPEN, /* not tried: the last tries failed; transient */
    STW_SQL_LOCKED,       /* another client holds a lock, or a statement took too long: the server
                             itself answers; transient */
    STW_SQL_BUSY,         /* no connection of the pool became free in time; transient */
    STW_SQL_AUTH,         /* the admin's login was refused */
    STW_SQL_TLS,          /* no TLS, or a certificate that is not trusted */
    STW_SQL_READ_ONLY,    /* a replica, or read_only set */
    STW_SQL_LOOKUP,       /* existence could not be determined: nothing was changed */
    STW_SQL_EXISTS,       /* the account exists and is not ours */
    STW_SQL_NOT_OURS,     /* its mark names another owner */
    STW_SQL_POLICY,       /* the server's password policy refused */
    STW_SQL_DENIED,       /* the admin may not do this */
    STW_SQL_NO_OBJECT,    /* a database, schema, table or role of a grant does not exist */
    STW_SQL_OWNS_OBJECTS, /* cannot be dropped: `err` names the cause */
    STW_SQL_UNSUPPORTED,  /* this server cannot do what is requested */
    STW_SQL_NO_PLUGIN,    /* this server has not loaded the plugin of the account's login */
    STW_SQL_FAILED,       /* any other error of a statement */
    STW_SQL_TROUBLES
};
bool stw_sql_is_transient(enum stw_sql_trouble t);

/* The step that failed. */
enum stw_sql_step {
    STW_SQL_STEP_CONNECT,
    STW_SQL_STEP_LOOKUP,
    STW_SQL_STEP_CREATE,
    STW_SQL_STEP_ALTER, /* password, TLS, limits */
    STW_SQL_STEP_GRANT,
    STW_SQL_STEP_REVOKE,
    STW_SQL_STEP_DROP,
    STW_SQL_STEPS
};

/* Text that is wiped when freed. */
struct stw_sql_secret {
    const char *data; /* NULL: unknown, keep the server's.  Never of length 0 */
    size_t len;
};

/* Of one database, that rights on all schemas are given on. */
#define STW_SQL_SCHEMAS_MAX 1000U

struct stw_grant {
    const char *database; /* "*": all */
    const char *schema;   /* PostgreSQL; NULL: rights on the database itself; "*": on all schemas */
    const char *table;    /* NULL: on the database or schema itself; "*": on all tables in it */
    const char *const *privileges; /* upper case, ended by NULL */
    bool grant_option;
    const char *routine; /* instead of `table`: a function or procedure; PostgreSQL, "*": all in the
                            schema */
    const char *const *columns; /* of the table, ended by NULL; NULL: the whole table */
};

/* PostgreSQL: ALTER ROLE ... SET. */
struct stw_setting {
    const char *name; /* in lower case */
    const char *value;
    const char *database; /* the one that it is for; NULL: all */
};

enum stw_grants_policy {
    STW_GRANTS_MANAGED,
    STW_GRANTS_EXACT,
    STW_GRANTS_ADDITIVE,
    STW_GRANTS_POLICIES
};
enum stw_require_tls {
    STW_ACCOUNT_TLS_NONE,
    STW_ACCOUNT_TLS_SSL,
    STW_ACCOUNT_TLS_X509,
    STW_ACCOUNT_TLS_MODES
};

/* MySQL and MariaDB: what the client's certificate must have, as the server compares it. */
struct stw_required_certificate {
    bool given;                   /* false: that is left as it is on the server */
    const char *subject, *issuer; /* NULL: any */
};

/* Whether the account can log in.  Its password is set only for the first; the others use it only to
 * create the account (MySQL and MariaDB need one), which then cannot log in. */
enum stw_account_login {
    STW_LOGIN_YES,
    STW_LOGIN_KEEP, /* as it is */
    STW_LOGIN_NO,
    STW_LOGINS
};

/* The desired account; all pointers are borrowed. */
struct stw_account {
    const char *user;
    const char *const *hosts; /* MySQL and MariaDB; ended by NULL */
    struct stw_sql_secret password;
    /* It may not be that of the account: where this cannot be found out, it is set.  Without this it is
     * left as it is then. */
    bool password_is_new;
    const char *auth_plugin; /* MySQL and MariaDB: one of the engine's, which checks the password;
                                NULL: the server's default, and an account keeps a better one */
    /* It has no password, and logs in with tokens of IAM (target/dialect.h).  On PostgreSQL `roles` has
     * STW_IAM_ROLE. */
    bool iam;
    /* If set without a password: the password matched when the server stored these (`stored` of a
     * report). */
    struct stw_hash settled;
    const struct stw_grant *grants;
    size_t grant_count;
    const char *const *roles; /* that it is a member of, ended by NULL; NULL: none.  On MariaDB the
                                 first one is the default role, on MySQL all are */
    /* Of those that the target allows, it has these and no others.  NULL: they stay as they are. */
    const struct stw_setting *settings;
    size_t setting_count;
    enum stw_grants_policy grants_policy;
    enum stw_require_tls require_tls;
    struct stw_required_certificate certificate; /* a part of it needs STW_ACCOUNT_TLS_X509 */
    /* MySQL and MariaDB: an account whose REQUIRE SUBJECT, ISSUER and CIPHER are as well those of this one,
     * unless `certificate` says otherwise; NULL: none. */
    const char *base;
    int64_t max_user_connections, max_queries_per_hour, max_updates_per_hour,
        max_connections_per_hour; /* 0: no limit */
    /* Dual passwords, MySQL 8.0.14 and later.  The password is a new one, and leaves the current one
     * valid; while an older one still is, it is not set (`password_waits`). */
    bool keep_old;
    /* With `keep_old`: a new password is not set by this call (`password_waits`). */
    bool set_later;
    /* The plugin is not changed while an older password is valid, which that would end
     * (`plugin_waits`). */
    bool old_stays;
    /* The older password is discarded before a new one is set; after that, if it is the new one and
     * `keep_old` is not set. */
    bool discard_old;
    /* What clients read now, if it is not the wanted one; NULL: unknown.  While the older password is
     * this one, no client has the current one: a new one replaces that, and the older one stays. */
    struct stw_sql_secret published;
    const char *valid_until;         /* PostgreSQL: RFC 3339, or "infinity"; NULL: as it is */
    const char *reassign_owned_to;   /* PostgreSQL, for a drop; NULL: a role of steward's without
                                        rights */
    const struct stw_target *target; /* only for what it allows; the pool does the login */
    const char *ns;                  /* the namespace that the account is for */
    const char *owner;               /* the object, "namespace/name"; part of the mark */
    const char *owner_uid;           /* distinguishes owners */
    const char *cluster; /* the caller's, not empty; distinguishes those whose objects have
                                        marks on one server */
    bool adopt;          /* adopt an account without a mark */
    bool keep;           /* for a lock */
    enum stw_account_login login;
    bool wait_sessions; /* count the sessions; STW_LOGIN_NO: not while it has some */
    bool if_exists;     /* an account that does not exist or has another owner is left as it is */
    /* PostgreSQL: a role that exists.  The account is a member of it, and its sessions begin as this
     * role, so that the role owns what they create; NULL: none. */
    const char *acts_as;
};

/* What was found and done. */
struct stw_account_report {
    enum stw_sql_trouble trouble;
    enum stw_sql_step step; /* the one that failed */
    struct stw_error err;
    bool found;           /* the account existed before */
    unsigned sessions;    /* with wait_sessions */
    bool sessions_hidden; /* with wait_sessions: the admin may not see those of other accounts */
    bool can_login;       /* it could log in before, at one of its hosts or more */
    bool created, adopted, password_changed, hosts_changed, options_changed, plugin_changed;
    bool old_valid;      /* an older password is valid as well, on at least one host */
    bool old_discarded;  /* it is no longer, since this call */
    bool password_waits; /* the new one was not set, for the older one is still valid */
    bool password_next;  /* it waits for the next call only, by `set_later` */
    bool plugin_waits;   /* the same of the plugin */
    bool owned;          /* it has our mark now */
    bool login_done;     /* passwords, plugin and options are as wanted, or wait as told above; what
                             failed concerns rights */
    bool password_wanted; /* the server's passwords differ from `settled`: nothing was done, call
                             again with the password */
    struct stw_hash
        stored;     /* hash over the stored passwords of all hosts, which are as wanted; zero: one
                       was just written, or unknown */
    char mark[640]; /* for status.ownershipMark */
    char server_version[64];
    struct stw_buf granted; /* rights that are ours now, one a line, "SELECT, INSERT ON app.*" */
    struct stw_buf foreign; /* rights that we did not give and that stay */
    unsigned grants_given, grants_revoked;
    unsigned statements; /* sent */
};
void stw_account_report_done(struct stw_account_report *r);

struct stw_pool;

/* Returns the admin's password, at each login; fills a buffer that the pool wipes. */
typedef int stw_sql_password_fn(void *ctx, const struct stw_target *t, struct stw_buf *ret,
                                struct stw_error *err);

struct stw_pool_config {
    const struct stw_target *target; /* in `targets`, which the pool keeps a reference to */
    struct stw_targets *targets;
    const char
        *cluster; /* that of the accounts, copied; part of the names of sessions.  NULL: none */
    stw_sql_password_fn *password;
    void *ctx;
    const struct stw_clock *clock;
    struct stw_metrics *metrics; /* or NULL */
    /* For tests, or NULL: called after each statement (a transaction counts as one) that may have
     * changed the server, on the thread that sent it. */
    void (*sent)(void *ctx);
};

/* Opens no connection yet.  Fails with STW_ERR_INVALID when steward was built without the engine,
 * or when the engine's client library, which the first pool loads, is not installed. */
int stw_pool_create(const struct stw_pool_config *config, struct stw_pool **ret,
                    struct stw_error *err) STW_MUST_CHECK;
struct stw_pool *stw_pool_ref(struct stw_pool *p);
void stw_pool_unref(struct stw_pool *p); /* the last one closes the connections */
/* Wakes and refuses waiting callers, and aborts running calls; for the end of the process. */
void stw_pool_cancel(struct stw_pool *p);
/* Milliseconds until a server that did not answer is tried again; 0: the next call tries.  Calls
 * before that return at once with STW_SQL_CIRCUIT_OPEN. */
uint64_t stw_pool_retry_ms(struct stw_pool *p);
/* The time from the first to the last of the logins in a row that were refused for want of a connection on the
 * server, while those that are open may work; 0: the last one was not refused for that, or it is the first. */
uint64_t stw_pool_full_ms(struct stw_pool *p);
/* While it rests, as another process uses the target, there is no gauge of whether the server is left alone. */
void stw_pool_rest(struct stw_pool *p, bool resting);
/* The next call tries at once: for when the admin's password or the target has changed. */
void stw_pool_poke(struct stw_pool *p);
/* Closes connections that have been idle for a minute; each call below does so too.  For a timer,
 * so that connections to a server that is no longer needed are closed. */
void stw_pool_tidy(struct stw_pool *p);

/* Brings the account to the desired state with the fewest statements: only the lookup when it
 * already is.  Returns 0 and trouble FINE, or -1.  Can be interrupted at any point and run
 * again. */
int stw_account_sync(struct stw_pool *p, const struct stw_account *want,
                     struct stw_account_report *r);
/* Drops the account if it has the mark of this owner; a missing account is not an error. */
int stw_account_drop(struct stw_pool *p, const struct stw_account *want,
                     struct stw_account_report *r);
/* Locks the account if it has the mark of this owner, and ends its sessions.  It keeps its rights and
 * its mark, so that only an object of the same name can adopt it.  With `keep` the mark says that this is
 * how it is to stay. */
int stw_account_lock(struct stw_pool *p, const struct stw_account *want,
                     struct stw_account_report *r);
/* Ends the sessions of the account, at all hosts, if it has the mark of this owner (`found`).  For when the
 * password that they logged in with has ended. */
int stw_account_end_sessions(struct stw_pool *p, const struct stw_account *want,
                             struct stw_account_report *r);
/* Removes the mark and keeps the account. */
int stw_account_release(struct stw_pool *p, const struct stw_account *want,
                        struct stw_account_report *r);

#endif
