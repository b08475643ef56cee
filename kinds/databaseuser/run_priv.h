/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over a DatabaseUser, and what is kept between runs.  Each file of the controller has a header
 * of its own. */
#ifndef STW_KINDS_DATABASEUSER_RUN_PRIV_H
#define STW_KINDS_DATABASEUSER_RUN_PRIV_H

#include "base/clock.h"
#include "base/hex.h"
#include "base/util.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "kinds/databaseuser/cluster_id.h"
#include "kinds/databaseuser/plan/plan.h"
#include "kinds/databaseuser/secret/fingerprint.h"
#include "kinds/databaseuser/secret/secret.h"
#include "kinds/databaseuser/spec.h"
#include "kinds/databaseuser/target/pools.h"
#include "sql/core/databases.h"
#include "sql/core/sql.h"

#define DBU_NAME_MAX 256
#define DBU_NO_TARGET "-"   /* in the index of targets: objects without the label */
#define DBU_WORKER_FACTOR 3 /* a run mostly waits for two servers */

/* --- state kept between runs */

struct dbu_compared; /* secret/secret.h */
struct dbu_ends;     /* plan/rotation_clock.h */
struct dbu_sweeps;   /* end/sweep.h */

struct dbu_state {
    struct stw_manager *manager;
    struct stw_client *client;
    const char *ns; /* steward's own */
    struct dbu_pools *pools;
    struct dbu_fingerprints *fingerprints;
    struct dbu_cluster_id *cluster;
    struct dbu_sweeps *sweeps;
    struct dbu_pings *pings;
    bool sweeps_targets; /* and pings them; not in shadow mode, which asks no server */
    struct dbu_compared *compared;
    struct dbu_ends *ends;
    struct dbu_target_store *store; /* the store of the configuration, or NULL */
    struct stw_targets *known;      /* the list at its last change; for the store's thread */
};

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

/* --- logins */

#define DBU_LOGIN_MAX 256
#define DBU_LOGIN_ANNOTATION "{domain}/login"
#define DBU_FINGERPRINT_ANNOTATION "{domain}/password-fingerprint"
#define DBU_ROTATION_ANNOTATION "{domain}/rotation"

/* What the connection Secret says about itself. */
struct dbu_secret_login {
    char login[DBU_LOGIN_MAX], fingerprint[DBU_FINGERPRINT_LEN];
    int64_t rotation;
    bool shows_wanted; /* its values are those of the wanted password */
};

/* The turn of this run, and what came of it. */
struct dbu_twins {
    struct dbu_turn turn;
    bool published;    /* `turn.next` counts: applications can read it */
    unsigned sessions; /* of `turn.previous` on the server; it is not locked while it has any */
    bool hidden;       /* the server does not show them to steward */
};

/* --- the run */

enum dbu_claim {
    DBU_CLAIM_OURS,
    DBU_CLAIM_TAKEN, /* `holder` has the account */
    DBU_CLAIM_FULL,  /* the target has its maximum of accounts */
};

/* What reads the connection Secret (secret/readers.h). */
#define DBU_NOT_RESTARTED "ReadersNotRestarted" /* the reason of the condition */

struct dbu_readers {
    bool looked;
    char credential[80]; /* for which */
    unsigned restarted;  /* workloads that have the annotation for this credential */
    unsigned waits;      /* workloads that are not done, and pods that are too old */
    char first[600];     /* one of them, and what to do */
    bool unseen;         /* steward may not list them: they are not waited for */
};

struct dbu {
    STW_SUBJECT;
    struct dbu_state *state;
    struct dbu_spec spec;
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
    char named_fingerprint[DBU_FINGERPRINT_LEN]; /* that the connection Secret had; or "" */
    struct dbu_readers readers;                  /* of the connection Secret */
    struct dbu_databases databases;
    struct stw_hash settled; /* what the server stores if it still has the password of the Secret,
                                which then need not be read; zero: unknown */
    bool asked;              /* the server was used, or this failed: see `report` */
    struct stw_account_report report; /* of the login that applications read */
    struct stw_account_report owner_report;
    struct stw_account_report others; /* the first trouble of the other logins, and nothing else */
    char fingerprint[DBU_FINGERPRINT_LEN]; /* of the password that is now on the server; or "" */
};

#endif
