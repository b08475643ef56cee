/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots of an etcd in a store: taken, read back, fetched, listed, and removed when there are
 * too many.  Used by the EtcdBackup controller and by `steward snapshot`.  Does not depend on
 * Kubernetes.  Calls block; stw_etcd_cancel and stw_store_cancel cancel them.
 *
 * A key is "<path>_v<revision>_<time>_<cluster>_<owner>".  It begins as in coreos' etcd-operator,
 * with twelve digits for the revision.  The ID of the etcd cluster in 16 hexadecimal digits and the
 * UID of the EtcdBackup follow: "db_v000000004711_2026-01-02-03:04:05_00f3ab0112345678_5b0e...".
 * Keys from the command line (`steward snapshot save`) and from older versions end with the time.
 */
#ifndef STW_KINDS_ETCDBACKUP_SNAPSHOT_H
#define STW_KINDS_ETCDBACKUP_SNAPSHOT_H

#include "base/clock.h"
#include "base/json.h"
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "etcd/etcd.h"
#include "store/store.h"

#define EB_SNAPSHOT_STALE_S 86400        /* an older unfinished upload of ours is dead */
#define EB_SNAPSHOT_LIST_BYTES (8 << 20) /* about 35,000 with short paths */
#define EB_SNAPSHOT_OWNER_MAX 64

/* --- names */

struct eb_snapshot_name {
    uint64_t revision;
    int64_t time;     /* seconds since the epoch */
    bool own;         /* in the exact form that we write; only this form is ever removed */
    uint64_t cluster; /* ID of the etcd cluster; 0 without an owner */
    char owner[EB_SNAPSHOT_OWNER_MAX]; /* UID of the EtcdBackup; "": no owner in the key */
};
/* Returns 0, or -1 when the key would be too long. */
int eb_snapshot_key(const char *path, const struct eb_snapshot_name *name,
                    char out[STW_STORE_KEY_MAX + 1]) STW_MUST_CHECK;
/* -1: `key` is not a snapshot of `path`. */
int eb_snapshot_key_parse(const char *path, const char *key, struct eb_snapshot_name *ret);

/* --- one snapshot, and the result of taking it */

enum eb_snapshot_stage { EB_SNAPSHOT_SAVING, EB_SNAPSHOT_VERIFYING, EB_SNAPSHOT_PRUNING };

enum eb_snapshot_fault {
    EB_SNAPSHOT_FINE,
    EB_SNAPSHOT_SOURCE,  /* etcd: no usable member, or the snapshot call failed */
    EB_SNAPSHOT_STORE,   /* the store */
    EB_SNAPSHOT_CONTENT, /* the data that was received, or read back, is wrong */
    EB_SNAPSHOT_OTHER,   /* cancelled; out of memory; files */
    EB_SNAPSHOT_FAULTS
};

struct eb_snapshot {
    char key[STW_STORE_KEY_MAX + 1];
    uint64_t revision; /* the snapshot includes at least this one; 0: not known */
    uint64_t cluster;  /* ID of the etcd cluster; 0: not known */
    uint64_t size_bytes;
    char sha256[65];
    char version[STW_SEMVER_LEN]; /* of the etcd; "" if not known */
    char endpoint[STW_ETCD_URL_MAX];
    int64_t time; /* seconds since the epoch */
    bool verified;
    unsigned pruned;
    char prune_error[256]; /* the snapshot was saved, but older ones could not be removed */

    enum eb_snapshot_fault fault;
    char reason[48]; /* CamelCase; of a fault */
    struct stw_error err;
};

/* {"ok", "key", ..., or "fault", "reason", "error"}: the form in which an agent reports. */
void eb_snapshot_write(const struct eb_snapshot *s, struct stw_buf *out);
int eb_snapshot_read(const char *text, size_t len, struct eb_snapshot *ret); /* -1: no report */

/* --- operations; 0, or -1 with the fault in `ret` */

struct eb_snapshot_retention {
    int64_t max_backups, max_age_s; /* 0: no limit */
    const char *keep;               /* a key that is never removed; or NULL */
    /* Only snapshots of this owner are counted and removed; NULL or "": those without an owner. */
    const char *owner;
};

struct eb_snapshot_request {
    struct stw_etcd *etcd;
    const struct stw_etcd_endpoint *endpoints;
    size_t endpoint_count;
    struct stw_store *store;
    const char *path;
    bool named;        /* the key is `path` itself; else with revision and time, and retention */
    bool verify;       /* read back all of it; else only check its size */
    bool again;        /* an earlier attempt may have died: remove its unfinished uploads first */
    int64_t timeout_s; /* of the stream; 0: depends on the size of the database */
    struct eb_snapshot_retention retention;
    const struct stw_clock *clock;
    void (*stage)(void *ctx, enum eb_snapshot_stage stage); /* or NULL */
    void (*moved)(void *ctx, size_t bytes); /* received from etcd, or read back; or NULL */
    void *ctx;                              /* of both */
};
/* Seconds that the stream of a database may take; `timeout_s` as above. */
int64_t eb_snapshot_limit(int64_t timeout_s, int64_t db_size);
int eb_snapshot_save(const struct eb_snapshot_request *w, struct eb_snapshot *ret);

/* Chooses an endpoint: a voter that serves linearizable reads, preferably not the leader.  Dead
 * ones are skipped.  -1: none, and `ret` has the reason. */
int eb_snapshot_choose(struct stw_etcd *e, const struct stw_etcd_endpoint *endpoints, size_t count,
                       size_t *ret_index, int64_t *ret_db_size, struct eb_snapshot *ret);

/* Reads a snapshot and checks its hash, and compares it with `ret->size_bytes` and `ret->sha256` if
 * these are set.  Passes the data to `sink`, if not NULL. */
int eb_snapshot_check(struct stw_store *store, const char *key, stw_store_sink_fn *sink, void *ctx,
                      struct eb_snapshot *ret);

/* A snapshot in our form with this owner ("" or NULL: without one). */
bool eb_snapshot_is_of(const struct eb_snapshot_name *name, const char *owner);

struct eb_snapshot_entry {
    char *key;
    uint64_t size_bytes;
    struct eb_snapshot_name name;
};
struct eb_snapshot_list {
    struct eb_snapshot_entry *all; /* newest first: by time, then by revision */
    size_t count, room;
    struct stw_kept held;
};
/* All of them, or only those of the owner of `of`, if not NULL. */
int eb_snapshot_list(struct stw_store *store, const char *path,
                     const struct eb_snapshot_retention *of, struct eb_snapshot_list *ret,
                     enum stw_store_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;
void eb_snapshot_list_done(struct eb_snapshot_list *l);

/* Which snapshots of a list to remove, as a pure function: `ret` gets a flag for each.  `now` is in
 * seconds.  The newest `max_backups` of each etcd cluster stay: snapshots of a recreated cluster do
 * not displace those of its predecessor, which only expire by age.  One whose name has a time after
 * `now` is neither counted nor removed. */
void eb_snapshot_choose_old(const struct eb_snapshot_list *l, const struct eb_snapshot_retention *r,
                            int64_t now, bool *ret);
struct eb_snapshot_pruning {
    const struct eb_snapshot_retention *keep;
    const char *made;
    int64_t now;
};
/* Removes them, except the key `made` (or NULL). */
int eb_snapshot_prune(struct stw_store *store, const char *path,
                      const struct eb_snapshot_pruning *p, unsigned *ret_count,
                      enum stw_store_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;

#endif
