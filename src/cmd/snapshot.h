/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `steward snapshot`, and the store and the etcd that they select. */
#ifndef STW_CMD_SNAPSHOT_H
#define STW_CMD_SNAPSHOT_H

#include "base/util.h"
#include "kinds/etcdbackup/snapshot.h"
#include "operator/flags.h"

#define STW_SNAPSHOT_ENDPOINTS_MAX 20

struct stw_snapshot_options {
    char *s3, *s3_endpoint, *s3_region, *s3_ca, *s3_sse, *credentials, *folder;
    bool s3_path_style;
    char *store_endpoints, *owner;
    char *endpoints, *cacert, *cert, *key, *user;
    char *to, *sha256, *keep, *output, *result;
    bool exact, newest, no_verify, dry_run;
    int64_t timeout_ms, max_backups, max_age_ms;
};
extern const struct stw_flag stw_snapshot_flags[];

/* The state of the command, also used by the signal thread to cancel it. */
struct stw_snapshot_work {
    struct stw_snapshot_options options; /* its strings are borrowed */
    struct stw_reach *reach;             /* NULL: no restriction */
    struct stw_store *store;
    struct stw_etcd *etcd;
    char *path; /* a key in the store, or a prefix */
    char **urls;
    struct stw_etcd_endpoint endpoints[STW_SNAPSHOT_ENDPOINTS_MAX];
    size_t endpoint_count;
};

/* -1: a message in `err`. */
int stw_snapshot_open_store(struct stw_snapshot_work *w, struct stw_error *err) STW_MUST_CHECK;
int stw_snapshot_open_file(struct stw_snapshot_work *w, const char *file,
                           struct stw_error *err) STW_MUST_CHECK;
int stw_snapshot_open_etcd(struct stw_snapshot_work *w, struct stw_error *err) STW_MUST_CHECK;
void stw_snapshot_close(struct stw_snapshot_work *w);

#endif
