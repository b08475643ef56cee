/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files of the DatabaseUser controller: the run itself (reconcile.c),
 * deletion (cleanup.c), the wanted account (account.c), the password (secret.c), its rotation
 * (rotation.c, rotation_clock.c, readers.c, twin.c), conflicts over an account
 * (claims.c), status and events (status.c, events.c), and state kept between runs (state.c). */
#ifndef STW_KINDS_DATABASEUSER_RUN_PRIV_H
#define STW_KINDS_DATABASEUSER_RUN_PRIV_H

#include "base/util.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "controller/verdict.h"
#include "kinds/databaseuser/cluster_id.h"
#include "kinds/databaseuser/fingerprint.h"
#include "kinds/databaseuser/pools.h"
#include "kinds/databaseuser/spec.h"
#include "kinds/databaseuser/twins_priv.h"
#include "sql/databases.h"
#include "sql/sql.h"

#define DBU_NAME_MAX 256
#define DBU_NO_TARGET "-"   /* in the index of targets: objects without the label */
#define DBU_WORKER_FACTOR 3 /* a run mostly waits for two servers */

/* --- the password */

enum dbu_secret_state {
    DBU_SECRET_UNREAD,
    DBU_SECRET_FOUND,
    DBU_SECRET_MISSING,
    DBU_SECRET_NO_KEY,
    DBU_SECRET_FOREIGN, /* of a generated password: another owner's */
    DBU_SECRET_EMPTY,   /* also if nothing is left without its newline */
    DBU_SECRET_ERROR,   /* `err` */
};

struct dbu_secret {
    enum dbu_secret_state state;
    bool newline;         /* the password ends in one, and is used like that */
    struct stw_buf value; /* for FOUND; wiped by dbu_secret_done */
    char resource_version[STW_RV_LEN];
    struct stw_error err;
};

/* Extracts the value of `key` from the whole object `secret`. */
void dbu_secret_take(struct stw_json secret, const char *key, bool trim_newline,
                     struct dbu_secret *ret);
/* The cached version of a Secret; false: there is no such Secret. */
bool dbu_secret_version(struct stw_run *run, const char *name, char ret_version[STW_RV_LEN]);
/* Reads the Secret from the API server, unless the cache shows that it does not exist. */
void dbu_secret_read(struct stw_run *run, const struct stw_databaseuser_password *from,
                     struct dbu_secret *ret);
void dbu_secret_done(struct dbu_secret *s);
/* Fills `ret` with a value of any Secret, without one newline at its end.  For admins'
 * passwords. */
int dbu_secret_text(struct stw_client *client, const char *ns, const char *name, const char *key,
                    struct stw_buf *ret, struct stw_error *err) STW_MUST_CHECK;

/* Remembers which version of which Secret was compared with what a server stores, so that a check
 * of a settled account need not read the Secret.  It holds only digests, which reveal nothing.  Any
 * thread. */
struct dbu_compared;
struct dbu_compared *dbu_compared_create(void) STW_MUST_CHECK; /* NULL: no memory */
void dbu_compared_destroy(struct dbu_compared *c);             /* `c` may be NULL */
void dbu_compared_put(struct dbu_compared *c, const char *key, struct stw_hash secret,
                      struct stw_hash stored);
/* What the server stored then; zero if unknown for this object and Secret. */
struct stw_hash dbu_compared_get(struct dbu_compared *c, const char *key, struct stw_hash secret);
void dbu_compared_forget(struct dbu_compared *c, const char *key);

/* When overlaps end by the monotonic clock, since this process has first seen them.  Any thread. */
struct dbu_ends;
struct dbu_ends *dbu_ends_create(void) STW_MUST_CHECK; /* NULL: no memory */
void dbu_ends_destroy(struct dbu_ends *e);             /* `e` may be NULL */
void dbu_ends_forget(struct dbu_ends *e, const char *key);
/* Milliseconds until an end at `end_us` by the wall clock; 0: it is over by both clocks. */
uint64_t dbu_ends_left_ms(struct dbu_ends *e, const char *key, int64_t end_us, int64_t wall_us,
                          uint64_t now_ms);

/* --- state kept between runs */

struct dbu_sweeps; /* sweep.h */

struct dbu_state {
    struct stw_manager *manager;
    struct stw_client *client;
    const char *ns; /* steward's own */
    struct stw_pools *pools;
    struct stw_fingerprints *fingerprints;
    struct stw_cluster_id *cluster;
    struct dbu_sweeps *sweeps;
    struct dbu_pings *pings;
    bool sweeps_targets; /* and pings them; not in shadow mode, which asks no server */
    struct dbu_compared *compared;
    struct dbu_ends *ends;
    struct stw_target_store *store; /* the store of the configuration, or NULL */
    struct stw_targets *known;      /* the list at its last change; for the store's thread */
};

int dbu_state_open(struct stw_manager *m, const struct stw_manager_config *config, void **ret,
                   struct stw_error *err) STW_MUST_CHECK;
void dbu_state_cancel(void *state);
void dbu_state_close(void *state);
void dbu_state_pause(void *state);
void dbu_state_tidy(void *state);
/* The Secret "namespace/name" has changed: retries failed logins of admins that use it. */
void dbu_state_secret_changed(void *state, const char *key);

/* --- Secrets that the object owns */

enum dbu_owned_state {
    DBU_OWNED_UNCHECKED,
    DBU_OWNED_SYNCED,
    DBU_OWNED_FOREIGN, /* one of this name has another owner, or none */
    DBU_OWNED_FAILED,  /* `err` */
};

#define DBU_INPUTS_LEN (2 * sizeof(struct stw_hash) + 1)

struct dbu_owned {
    enum dbu_owned_state state;
    bool written;
    char version[STW_RV_LEN], inputs[DBU_INPUTS_LEN]; /* for SYNCED */
    char since[STW_TIME_LEN]; /* when steward last changed it, by the API server's clock; or "" */
    struct stw_error err;
};

/* --- databases */

/* Parallel lists of `count` entries, in the memory of the run: those of the spec first, then those
 * that only the status still has. */
struct dbu_databases {
    struct stw_database *items;
    struct stw_database_report *reports;
    const char **policies;
    size_t count, in_spec;
    bool asked;
};

/* --- the run */

enum dbu_claim {
    DBU_CLAIM_OURS,
    DBU_CLAIM_TAKEN, /* `holder` has the account */
    DBU_CLAIM_FULL,  /* the target has its maximum of accounts */
};

/* What reads the connection Secret; see readers.c. */
#define DBU_NOT_RESTARTED "ReadersNotRestarted" /* the reason of the condition */

struct dbu_readers {
    bool looked;
    char credential[80]; /* for which */
    unsigned restarted;  /* workloads that have the annotation for this credential */
    unsigned waits;      /* workloads that are not done, and pods that are too old */
    char first[600];     /* one of them, and what to do */
    bool unseen;         /* steward may not list them: they are not waited for */
};

struct dbuser {
    STW_SUBJECT;
    struct dbu_state *state;
    struct stw_databaseuser spec;
    char label[DBU_NAME_MAX];        /* the requested target */
    char made_on[DBU_NAME_MAX];      /* the target that has the account; "" for none */
    struct stw_targets *targets;     /* holds `target` */
    const struct stw_target *target; /* NULL: not in the configuration */
    struct stw_error target_err;     /* set: the target cannot be used */
    const char *cluster;             /* for marks; NULL: it is not known, and no server is asked */
    enum dbu_claim claim;
    char holder[STW_KEY_LEN];
    struct dbu_secret secret;
    struct stw_buf published; /* the password that applications read; wiped at the end; empty:
                                 unknown, or not needed */
    struct dbu_owned connection;
    struct dbu_view view;
    struct dbu_twins twins;
    char named_fingerprint[STW_FINGERPRINT_LEN]; /* that the connection Secret had; or "" */
    struct dbu_readers readers;                  /* of the connection Secret */
    struct dbu_databases databases;
    struct stw_hash settled; /* what the server stores if it still has the password of the Secret,
                                which then need not be read; zero: unknown */
    bool asked;              /* the server was used, or this failed: see `report` */
    struct stw_account_report report; /* of the login that applications read */
    struct stw_account_report owner_report;
    struct stw_account_report others; /* the first trouble of the other logins, and nothing else */
    char fingerprint[STW_FINGERPRINT_LEN]; /* of the password that is now on the server; or "" */
};

/* The login that applications read has its password and options, although a right may have failed. */
bool dbu_login_is_done(const struct dbuser *d);

/* The connection Secret: wanted by the spec; known to be as it was written; makes it so, with the
 * password that was read. */
bool dbu_connection_wanted(const struct dbuser *d);
bool dbu_connection_is_settled(struct dbuser *d);
void dbu_connection_ensure(struct dbuser *d);
/* Reads what the connection Secret says about itself, and its password into d->published (empty: only
 * a part of texts); UNCHECKED: there is none. */
enum dbu_owned_state dbu_connection_look(struct dbuser *d, struct dbu_secret_login *ret);

/* The view; see observe.c.  At the start of a run, of one that deletes the object, and what the two Secrets
 * add to it. */
void dbu_observe(struct dbuser *d);
void dbu_observe_object(struct dbuser *d);
void dbu_observe_password(struct dbuser *d);
void dbu_observe_connection(struct dbuser *d, enum dbu_owned_state state,
                            const struct dbu_secret_login *found);
/* What came of a call for the login that applications read. */
void dbu_observe_login(struct dbu_view *v, enum dbu_login login,
                       const struct stw_account_report *r);
/* `logs_in`: although a right is missing. */
enum dbu_outcome dbu_find_outcome(const struct stw_account_report *r, bool logs_in);
/* The server, not the object, is in trouble. */
bool dbu_is_of_server(enum stw_sql_trouble t);
/* The server has the password of the Secret. */
void dbu_remember_password(const struct dbuser *d);

/* Carries out the plan, during a visit to the target; see act.c.  -1: `result` is set. */
int dbu_act(struct dbuser *d, struct stw_pool *pool, struct stw_result *result) STW_MUST_CHECK;

/* Databases: created before the account, schemas after it, and dropped only when that was asked for
 * twice; see databases.c. */
bool dbu_databases_wanted(const struct dbuser *d);
/* False: the server cannot be used, which d->report has. */
bool dbu_databases_create(struct dbuser *d, struct stw_pool *pool);
/* After the account.  True: grants that failed may be possible now. */
bool dbu_databases_add_schemas(struct dbuser *d, struct stw_pool *pool);
/* Some are dropped with their data when the object is deleted. */
bool dbu_databases_are_dropped(struct dbuser *d);
/* For the deletion of the object.  False: one could not be dropped, which d->report has. */
bool dbu_databases_drop(struct dbuser *d, struct stw_pool *pool);

/* Pure. */
void dbu_databases_judge(const struct dbuser *d, struct stw_aspect *a);
void dbu_databases_add_status(const struct dbuser *d, json_t *status);

/* The targets that the namespace may use; see targets_status.c. */
void dbu_targets_add_status(const struct dbuser *d, json_t *status);

/* Restarts and looks, once a run for a credential.  `credential` differs for each one, and is no
 * secret; `since`: when the Secret got it, RFC 3339. */
void dbu_readers_look(struct dbuser *d, const char *credential, const char *since);

/* Rotation; see rotation.c. */
bool dbu_rotation_wanted(const struct dbuser *d);
/* As the spec has it, resolved for the engine of the target. */
enum dbu_strategy dbu_rotation_strategy(const struct dbuser *d);
/* InPlace was asked for, as for a password that others know: sessions end with it. */
bool dbu_rotation_cuts(const struct dbuser *d);
/* Until when the status has an older credential valid; INT64_MIN: there is none. */
int64_t dbu_rotation_stored_end_us(const struct dbuser *d);
/* Whether the password of the Secret is another than the one that was last set. */
bool dbu_password_is_new(const struct dbuser *d);
/* Restarts what reads the connection Secret, while the old credential is valid. */
void dbu_rotation_follow(struct dbuser *d);
/* The connection Secret has another credential since this run. */
bool dbu_rotation_begins(const struct dbuser *d);
/* The time at which the older credential ends has passed. */
bool dbu_rotation_is_over(const struct dbuser *d);
/* When the connection Secret got the credential that it has now; "": unknown. */
void dbu_rotation_published(const struct dbuser *d, char ret[STW_TIME_LEN]);
/* The overlap is over, and something that reads the connection Secret has not been restarted. */
bool dbu_rotation_is_stuck(const struct dbuser *d);
/* Adds to the message of the condition what is waited for. */
void dbu_rotation_add_readers(const struct dbuser *d, struct stw_aspect *a);
/* `in_ms` until the next run, or sooner, to look at what reads the connection Secret. */
uint64_t dbu_rotation_look_again_ms(const struct dbuser *d, uint64_t in_ms);
/* After a run: until when the old password stays valid.  false: it is not valid. */
bool dbu_rotation_end(const struct dbuser *d, char ret[STW_TIME_LEN], uint64_t *ret_in_ms);

/* Rotation by the clock; see rotation_clock.c.  The time has come for a new password. */
bool dbu_rotation_is_due(const struct dbuser *d);
/* When the next one is; `last`: of the status that is being written, or NULL.  false: none. */
bool dbu_rotation_next(const struct dbuser *d, const char *last, char ret[STW_TIME_LEN],
                       uint64_t *ret_in_ms);
/* An overlap that ends at `end_us` is over by both clocks. */
bool dbu_overlap_is_over(const struct dbuser *d, int64_t end_us, uint64_t *ret_left_ms);

/* Whether steward makes the password. */
bool dbu_password_is_generated(const struct stw_object *o);
/* Reads the generated password into `secret`, and makes it if there is none. */
void dbu_password_ensure(struct dbuser *d);
/* Makes another one, if the one that was read is that of the account; reads it. */
void dbu_password_renew(struct dbuser *d);
/* A new password; `ret` is secret. */
int dbu_password_draw(const struct stw_databaseuser_generate *g, struct stw_buf *ret,
                      struct stw_error *err) STW_MUST_CHECK;

/* --- the wanted account; borrows from `d` and owns its lists */
struct dbu_desired {
    struct stw_account account;
    struct stw_grant *grants;
    void **blocks;
    size_t block_count;
};
int dbu_desired_make(const struct dbuser *d, struct dbu_desired *ret,
                     struct stw_error *err) STW_MUST_CHECK;
bool dbu_wants_adoption(const struct dbuser *d);
/* Sets d->cluster.  -1: nothing may be done on a server, which d->report says. */
int dbu_identify(struct dbuser *d) STW_MUST_CHECK;
/* With two passwords: what clients read now, if it is not the wanted one. */
void dbu_desired_add_published(const struct dbuser *d, struct stw_account *a);
/* A member of the role `owner`, without rights of its own. */
void dbu_desired_limit_to_membership(struct stw_account *a, const char *owner);
void dbu_desired_done(struct dbu_desired *w);
/* "app@%", or "app" on PostgreSQL. */
void dbu_account_text(const struct dbuser *d, struct stw_buf *out);
/* The user of status.account, which must be dropped regardless of the current spec; "" for none. */
void dbu_made_user(const struct stw_object *o, char out[DBU_NAME_MAX]);

/* --- conflicts over the account: sets claim and holder */
void dbu_claim(struct dbuser *d);

/* --- targets; see ping.c */

/* In a run of a target: the keys of its objects, as stw_informer_keys. */
void dbu_target_users(const struct stw_run *run, struct stw_buf *out);

/* --- deletion */
bool dbu_is_created(const struct stw_object *o); /* by the status, there is an account */
void dbu_cleanup(struct dbuser *d, struct stw_result *result);

/* --- status; pure */

/* Like myweb_judge. */
void dbu_judge(struct dbuser *d, struct stw_verdict *verdict, json_t **ret_status);
/* For a deletion that is blocked; `report` has the reason. */
void dbu_judge_cleanup(struct dbuser *d, struct stw_verdict *verdict, json_t **ret_status);
/* The time until a settled account is checked again, in ms: at most spec.resyncSeconds. */
uint64_t dbu_resync_ms(const char *key, int64_t resync_seconds, uint64_t now_ms);
/* The error code that determines the wait before a retry. */
enum stw_err dbu_error_code(enum stw_sql_trouble t);

/* --- events */
void dbu_tell(const struct dbuser *d);

#endif
