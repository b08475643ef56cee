/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots of an etcd in a store: taken, read back, fetched, listed, removed when there are too
 * many.  What the controllers of EtcdBackup do and what `steward snapshot` does is this.  Knows no
 * Kubernetes; blocks; cancelled by stw_etcd_cancel and stw_store_cancel.
 *
 * A key is "<path>_v<revision>_<time>_<cluster>_<owner>": as coreos' etcd-operator named them, the
 * revision with twelve digits, then the ID of the etcd cluster in 16 hexadecimal digits and the UID
 * of the EtcdBackup:
 * "db_v000000004711_2026-01-02-03:04:05_00f3ab0112345678_5b0e...".
 * A person's own (`steward snapshot save`) end with the time, as those of older versions.
 */
#ifndef STW_CONTROLLER_SNAPSHOT_H
#define STW_CONTROLLER_SNAPSHOT_H

#include "base/clock.h"
#include "base/json.h"
#include "controller/etcd/etcd.h"
#include "controller/store/store.h"

#define STW_SNAPSHOT_STALE_S 86400 /* an upload of ours that began before that is dead */
#define STW_SNAPSHOT_LIST_MAX 100000
#define STW_SNAPSHOT_OWNER_MAX 64

/* --- names */

struct stw_snapshot_name {
    uint64_t revision;
    int64_t time;     /* seconds since the epoch */
    bool own;         /* in the exact form that we write: what is removed is of this form alone */
    uint64_t cluster; /* ID of the etcd cluster; 0 without an owner */
    char owner[STW_SNAPSHOT_OWNER_MAX]; /* UID of the EtcdBackup; "": none is named */
};
void stw_snapshot_key(const char *path, const struct stw_snapshot_name *name,
                      char out[STW_STORE_KEY_MAX + 1]);
/* -1: `key` is no snapshot of `path`. */
int stw_snapshot_key_parse(const char *path, const char *key, struct stw_snapshot_name *ret);

/* --- one snapshot, and what became of it */

enum stw_snapshot_stage { STW_SNAPSHOT_SAVING, STW_SNAPSHOT_VERIFYING, STW_SNAPSHOT_PRUNING };

enum stw_snapshot_fault {
    STW_SNAPSHOT_FINE,
    STW_SNAPSHOT_SOURCE,  /* no member could be asked */
    STW_SNAPSHOT_STORE,   /* the store */
    STW_SNAPSHOT_CONTENT, /* what came, or was read back, is not what it should be */
    STW_SNAPSHOT_OTHER,   /* cancelled; out of memory; files */
};

struct stw_snapshot {
    char key[STW_STORE_KEY_MAX + 1];
    uint64_t revision; /* the snapshot holds at least that; 0: not known */
    uint64_t cluster;  /* ID of the etcd cluster; 0: not known */
    uint64_t size_bytes;
    char sha256[65];
    char version[STW_SEMVER_LEN]; /* of the etcd; "" where it is not known */
    char endpoint[STW_ETCD_URL_MAX];
    int64_t time; /* seconds since the epoch */
    bool verified;
    unsigned pruned;
    char prune_error[256]; /* the snapshot is there, but older ones could not be removed */

    enum stw_snapshot_fault fault;
    char reason[48]; /* CamelCase; of a fault */
    struct stw_error err;
};

/* {"ok", "key", ..., or "fault", "reason", "error"}: the form in which an agent reports. */
void stw_snapshot_write(const struct stw_snapshot *s, struct stw_buf *out);
int stw_snapshot_read(const char *text, size_t len, struct stw_snapshot *ret); /* -1: it is none */

/* --- what is done; 0, or -1 with the fault in `ret` */

struct stw_snapshot_retention {
    int64_t max_backups, max_age_s; /* 0: no limit */
    const char *keep;               /* a key that stays whatever else is said; or NULL */
    /* Only snapshots of this owner are counted and removed; NULL or "": those that name none. */
    const char *owner;
};

struct stw_snapshot_wish {
    struct stw_etcd *etcd;
    const struct stw_etcd_endpoint *endpoints;
    size_t endpoint_count;
    struct stw_store *store;
    const char *path;
    bool named;        /* the key is `path` itself; else with revision and time, and retention */
    bool verify;       /* read back all of it; else only look up its size */
    bool again;        /* an attempt before this may have died: what it left goes first */
    int64_t timeout_s; /* of the stream; 0: by the size of the database */
    struct stw_snapshot_retention retention;
    const struct stw_clock *clock;
    void (*stage)(void *ctx, enum stw_snapshot_stage stage); /* or NULL */
    void *stage_ctx;
};
int stw_snapshot_save(const struct stw_snapshot_wish *w, struct stw_snapshot *ret);

/* Which endpoint is asked: a voter that serves linearizable reads, rather not the leader; dead ones
 * are passed over.  -1: none, and `ret` says why. */
int stw_snapshot_choose(struct stw_etcd *e, const struct stw_etcd_endpoint *endpoints, size_t count,
                        size_t *ret_index, int64_t *ret_db_size, struct stw_snapshot *ret);

/* Reads a snapshot and checks its hash; `ret->size_bytes` and `ret->sha256`, when set, are what it
 * is held to.  With `sink` it goes there too. */
int stw_snapshot_check(struct stw_store *store, const char *key, stw_store_sink_fn *sink, void *ctx,
                       struct stw_snapshot *ret);

/* A snapshot in our form that names this owner ("" or NULL: that names none). */
bool stw_snapshot_is_of(const struct stw_snapshot_name *name, const char *owner);

struct stw_snapshot_entry {
    char *key;
    uint64_t size_bytes;
    struct stw_snapshot_name name;
};
struct stw_snapshot_list {
    struct stw_snapshot_entry *all; /* newest first: by time, then by revision */
    size_t count, room;
};
int stw_snapshot_list(struct stw_store *store, const char *path, struct stw_snapshot_list *ret,
                      enum stw_store_trouble *trouble, struct stw_error *err);
void stw_snapshot_list_done(struct stw_snapshot_list *l);

/* Which of a list go, as a pure function: `ret` gets a flag for each.  `now`: seconds.  The newest
 * `max_backups` stay of each etcd cluster: those of a former life of a cluster are not displaced by
 * those of the next, they only grow too old. */
void stw_snapshot_choose_old(const struct stw_snapshot_list *l,
                             const struct stw_snapshot_retention *r, int64_t now, bool *ret);
/* Removes them; `made` (or NULL) stays too. */
int stw_snapshot_prune(struct stw_store *store, const char *path,
                       const struct stw_snapshot_retention *r, const char *made, int64_t now,
                       unsigned *ret_count, enum stw_store_trouble *trouble, struct stw_error *err);

#endif
