/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over a DatabaseUser, between the files that share it: the run itself (databaseuser.c),
 * the end of one (databaseuser_cleanup.c), the account as it shall be (databaseuser_account.c), the
 * password (databaseuser_secret.c), who else wants the account (databaseuser_claims.c), what people
 * are told (databaseuser_status.c, databaseuser_events.c), and what is kept between runs
 * (databaseuser_state.c). */
#ifndef STW_CONTROLLER_DATABASEUSER_PRIV_H
#define STW_CONTROLLER_DATABASEUSER_PRIV_H

#include "controller/fingerprint.h"
#include "controller/object.h"
#include "controller/pools.h"
#include "controller/sql/sql.h"
#include "controller/verdict.h"
#include "kinds/databaseuser.h"

#define DBU_NAME_MAX 256
#define DBU_WORKER_FACTOR 3 /* a run waits for two servers, and does little itself */

/* --- the password */

enum dbu_secret_state {
    DBU_SECRET_UNREAD,
    DBU_SECRET_FOUND,
    DBU_SECRET_MISSING,
    DBU_SECRET_NO_KEY,
    DBU_SECRET_EMPTY, /* also when nothing is left without its newline */
    DBU_SECRET_ERROR, /* `err` */
};

struct dbu_secret {
    enum dbu_secret_state state;
    bool newline;         /* the password ends in one, and that is how it is used */
    struct stw_buf value; /* of FOUND; wiped by dbu_secret_done */
    char resource_version[STW_RV_LEN];
    struct stw_error err;
};

/* What `secret`, the whole object, has under `key`. */
void dbu_secret_take(struct stw_json secret, const char *key, bool trim_newline,
                     struct dbu_secret *ret);
/* The version that the cache has; false: there is no such Secret. */
bool dbu_secret_version(struct stw_run *run, const char *name, char ret_version[STW_RV_LEN]);
/* Asks the API server, unless the cache says that there is none. */
void dbu_secret_read(struct stw_run *run, const struct stw_databaseuser_password *from,
                     struct dbu_secret *ret);
void dbu_secret_done(struct dbu_secret *s);
/* Fills `ret` with a value of any Secret, without one newline at its end.  For admins. */
int dbu_secret_text(struct stw_client *client, const char *ns, const char *name, const char *key,
                    struct stw_buf *ret, struct stw_error *err);

/* Which version of which Secret was compared with what a server stores, so that a look at a settled
 * account need not read it: digests, of no use to whoever finds them.  Any thread. */
struct dbu_compared;
struct dbu_compared *dbu_compared_create(void);    /* NULL: no memory */
void dbu_compared_destroy(struct dbu_compared *c); /* NULL is fine */
void dbu_compared_put(struct dbu_compared *c, const char *key, struct stw_hash secret,
                      struct stw_hash stored);
/* What the server stored then; zero when nothing is known of this object and Secret. */
struct stw_hash dbu_compared_get(struct dbu_compared *c, const char *key, struct stw_hash secret);
void dbu_compared_forget(struct dbu_compared *c, const char *key);

/* All Secrets of the cluster, but of each only its version. */
extern const struct stw_watch dbu_watch_secrets;

/* --- what is kept between runs */

struct dbu_state {
    struct stw_manager *manager;
    struct stw_client *client;
    const char *ns; /* steward's own */
    struct stw_pools *pools;
    struct stw_fingerprints *fingerprints;
    struct dbu_compared *compared;
    struct stw_target_store *store; /* the configuration's, or NULL */
    struct stw_targets *known;      /* its list when it last changed; the store's thread's */
};

int dbu_state_open(struct stw_manager *m, const struct stw_manager_config *config, void **ret,
                   struct stw_error *err);
void dbu_state_cancel(void *state);
void dbu_state_close(void *state);
void dbu_state_tidy(void *state);
/* The Secret "namespace/name" has changed: logins of admins that use it are worth a try. */
void dbu_state_secret_changed(struct dbu_state *s, const char *key);

/* --- the run */

enum dbu_claim {
    DBU_CLAIM_OURS,
    DBU_CLAIM_TAKEN, /* `holder` has the account */
    DBU_CLAIM_FULL,  /* the target takes no more accounts */
};

struct dbuser {
    struct stw_run *run;
    struct dbu_state *state;
    struct stw_object object;
    struct stw_arena *arena;
    struct stw_databaseuser spec;
    char label[DBU_NAME_MAX];        /* the target that is asked for */
    char made_on[DBU_NAME_MAX];      /* the target that the account was made on; "" for none */
    struct stw_targets *targets;     /* holds `target` */
    const struct stw_target *target; /* NULL: not in the configuration */
    struct stw_error target_err;     /* set: there is no way to use it */
    enum dbu_claim claim;
    char holder[STW_KEY_LEN];
    struct dbu_secret secret;
    struct stw_hash settled; /* what the server stores if the password is still that of the Secret,
                                which need not be read then; zero: not known */
    bool asked;              /* the server was, or it was tried: `report` */
    struct stw_account_report report;
    char fingerprint[STW_FINGERPRINT_LEN]; /* of the password that is on the server now; or "" */
};

/* --- the account as it shall be; borrows from `d` and owns what it lists */
struct dbu_wish {
    struct stw_account account;
    struct stw_grant *grants;
    void **blocks;
    size_t block_count;
};
int dbu_wish_make(const struct dbuser *d, struct dbu_wish *ret, struct stw_error *err);
void dbu_wish_done(struct dbu_wish *w);
/* "app@%", or "app" on PostgreSQL. */
void dbu_account_text(const struct dbuser *d, struct stw_buf *out);
/* The user of status.account, which is what is to be dropped whatever the spec says now; "" for
 * none. */
void dbu_made_user(const struct stw_object *o, char out[DBU_NAME_MAX]);

/* --- who else wants the account: sets claim and holder */
void dbu_claim(struct dbuser *d);

/* --- the end */
bool dbu_is_created(const struct stw_object *o); /* by the status: there is an account */
void dbu_cleanup(struct dbuser *d, struct stw_result *result);

/* --- status; pure */

/* As myweb_judge. */
void dbu_judge(struct dbuser *d, struct stw_verdict *verdict, json_t **ret_status);
/* A deletion that cannot go on; `report` says why. */
void dbu_judge_cleanup(struct dbuser *d, struct stw_verdict *verdict, json_t **ret_status);
/* When a settled one is looked at again, in ms: at most spec.resyncSeconds. */
uint64_t dbu_resync_ms(const char *key, int64_t resync_seconds, uint64_t now_ms);
/* The code that decides how long a retry waits. */
enum stw_err dbu_error_code(enum stw_sql_trouble t);

/* --- events */
void dbu_tell(const struct dbuser *d);

#endif
