/* SPDX-License-Identifier: Apache-2.0
 *
 * Accounts on database servers.  One pool a server, bounded in connections and time, behind a
 * circuit breaker; the engines stand behind one small table (engine.h), so that a third is one
 * file.
 *
 * No text that leaves this room holds a statement, a password or a part of one: errors say what was
 * tried, the server's error number, and its message with quoted values taken out. */
#ifndef STW_CONTROLLER_SQL_SQL_H
#define STW_CONTROLLER_SQL_SQL_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kinds/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why an operation failed; what it means for conditions is the reconciler's business. */
enum stw_sql_trouble {
    STW_SQL_FINE,
    STW_SQL_CONNECT,      /* nobody there, or not in time: transient */
    STW_SQL_CIRCUIT_OPEN, /* not tried: the last tries failed; transient */
    STW_SQL_BUSY,         /* no connection of the pool became free in time; transient */
    STW_SQL_AUTH,         /* the admin's login was refused */
    STW_SQL_TLS,          /* no TLS, or a certificate that is not trusted */
    STW_SQL_READ_ONLY,    /* a replica, or read_only set */
    STW_SQL_LOOKUP,       /* existence could not be told: nothing was changed */
    STW_SQL_EXISTS,       /* the account exists and is not ours */
    STW_SQL_NOT_OURS,     /* its mark names another owner */
    STW_SQL_POLICY,       /* the server's password policy refused */
    STW_SQL_DENIED,       /* the admin may not do this */
    STW_SQL_NO_OBJECT,    /* a database, schema, table or role of a grant does not exist */
    STW_SQL_OWNS_OBJECTS, /* cannot be dropped: `err` says what stands in the way */
    STW_SQL_UNSUPPORTED,  /* this server cannot do what is asked for */
    STW_SQL_FAILED,       /* any other error of a statement */
};
bool stw_sql_is_transient(enum stw_sql_trouble t);

/* Where it happened; `trouble` above says what. */
enum stw_sql_step {
    STW_SQL_STEP_CONNECT,
    STW_SQL_STEP_LOOKUP,
    STW_SQL_STEP_CREATE,
    STW_SQL_STEP_ALTER, /* password, TLS, limits */
    STW_SQL_STEP_GRANT,
    STW_SQL_STEP_REVOKE,
    STW_SQL_STEP_DROP,
};

/* Text that is wiped when freed. */
struct stw_sql_secret {
    const char *data; /* NULL: not known, leave the server's as it is.  Never of length 0 */
    size_t len;
};

struct stw_grant {
    const char *database; /* "*": all */
    const char *schema;   /* PostgreSQL; NULL: rights on the database itself */
    const char *table;    /* NULL: on the database or schema itself; "*": on all tables in it */
    const char *const *privileges; /* upper case, ended by NULL */
    bool grant_option;
};

enum stw_grants_policy { STW_GRANTS_MANAGED, STW_GRANTS_EXACT, STW_GRANTS_ADDITIVE };
enum stw_require_tls { STW_ACCOUNT_TLS_NONE, STW_ACCOUNT_TLS_SSL, STW_ACCOUNT_TLS_X509 };

/* An account as it shall be; all borrowed. */
struct stw_account {
    const char *user;
    const char *const *hosts; /* MySQL and MariaDB; ended by NULL */
    struct stw_sql_secret password;
    /* Set, and no password: it was compared when the server stored these (`stored` of a report). */
    struct stw_hash settled;
    const struct stw_grant *grants;
    size_t grant_count;
    enum stw_grants_policy grants_policy;
    enum stw_require_tls require_tls;
    int64_t max_user_connections, max_queries_per_hour, max_updates_per_hour,
        max_connections_per_hour;    /* 0: no limit */
    const char *reassign_owned_to;   /* PostgreSQL, for a drop; NULL: a role of steward's without
                                        rights */
    const struct stw_target *target; /* what it allows counts; its login is the pool's business */
    const char *ns;                  /* the namespace that the account is for */
    const char *owner;               /* who this is for: "namespace/name", part of the mark */
    const char *owner_uid;           /* tells owners apart */
    bool adopt;                      /* take over an account without a mark */
};

/* What was found and done. */
struct stw_account_report {
    enum stw_sql_trouble trouble;
    enum stw_sql_step step; /* the one that failed */
    struct stw_error err;
    bool found; /* the account existed before */
    bool created, adopted, password_changed, hosts_changed, options_changed;
    bool owned;           /* it carries our mark now */
    bool password_wanted; /* the server stores others than `settled`: nothing was done, come again
                             with the password */
    struct stw_hash
        stored;     /* over the passwords of all hosts as the server stores them, which are as
                       wanted; zero: one was written just now, or the server does not say */
    char mark[128]; /* for status.ownershipMark */
    char server_version[64];
    struct stw_buf granted; /* one right a line, "SELECT, INSERT ON app.*", that are ours now */
    struct stw_buf foreign; /* rights that were not given by us and stay */
    unsigned grants_given, grants_revoked;
    unsigned statements; /* sent */
};
void stw_account_report_done(struct stw_account_report *r);

struct stw_pool;

/* The admin's password, asked for at each login; fills a buffer that the pool wipes. */
typedef int stw_sql_password_fn(void *ctx, const struct stw_target *t, struct stw_buf *ret,
                                struct stw_error *err);

struct stw_pool_config {
    const struct stw_target *target; /* with the list, which the pool holds on to */
    struct stw_targets *targets;
    stw_sql_password_fn *password;
    void *ctx;
    const struct stw_clock *clock;
    struct stw_metrics *metrics; /* or NULL */
    /* For tests, or NULL: called after each statement (a transaction counts as one) that may have
     * changed the server, on the thread that sent it. */
    void (*sent)(void *ctx);
};

/* No connection is made yet.  Fails with STW_ERR_INVALID when steward was built without the engine,
 * or when the engine's client library, which the first pool loads, is not installed. */
int stw_pool_create(const struct stw_pool_config *config, struct stw_pool **ret,
                    struct stw_error *err);
struct stw_pool *stw_pool_ref(struct stw_pool *p);
void stw_pool_unref(struct stw_pool *p); /* the last one closes the connections */
/* Wakes and refuses whoever waits, and cuts what is under way; for the end of the process. */
void stw_pool_cancel(struct stw_pool *p);
/* Milliseconds until a server that did not answer is tried again; 0: the next call tries.  Calls
 * before that return at once with STW_SQL_CIRCUIT_OPEN. */
uint64_t stw_pool_retry_ms(struct stw_pool *p);
/* The next call tries at once: for when the admin's password or the target has changed. */
void stw_pool_poke(struct stw_pool *p);
/* Closes connections that nobody has used for a minute; each call below does so too.  For a timer,
 * so that a server which is not needed any more is not kept busy. */
void stw_pool_tidy(struct stw_pool *p);

/* Makes the account as it shall be, with the fewest statements: none but the lookup when it is so.
 * Returns 0 and trouble FINE, or -1.  Safe to be cut off at any point and run again. */
int stw_account_sync(struct stw_pool *p, const struct stw_account *want,
                     struct stw_account_report *r);
/* Drops it if it carries the mark of this owner; an account that is not there is fine. */
int stw_account_drop(struct stw_pool *p, const struct stw_account *want,
                     struct stw_account_report *r);
/* Takes the mark away and leaves the account. */
int stw_account_release(struct stw_pool *p, const struct stw_account *want,
                        struct stw_account_report *r);

#endif
