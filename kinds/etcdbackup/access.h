/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets, members and store of a backup.  -1: `why` has the fault, reason and error. */
#ifndef STW_KINDS_ETCDBACKUP_ACCESS_H
#define STW_KINDS_ETCDBACKUP_ACCESS_H

#include "controller/controller.h"
#include "etcd/etcd.h"
#include "kinds/etcdbackup/snapshot.h"
#include "kinds/etcdbackup/spec.h"
#include "store/store.h"

struct eb;

#define EB_ENDPOINTS_MAX 20

/* One backup with all its inputs; wiped when freed. */
struct eb_job {
    struct stw_etcd *etcd;
    struct stw_store *store; /* NULL with a volume */
    char *urls[EB_ENDPOINTS_MAX], *addresses[EB_ENDPOINTS_MAX];
    struct stw_etcd_endpoint endpoints[EB_ENDPOINTS_MAX];
    size_t count;
    char *path, *keep; /* in the store; keep may be NULL */
    bool named, verify, again;
    int64_t timeout_s, max_backups, max_age_s;
};
void eb_job_free(struct eb_job *j); /* NULL is allowed */

int eb_job_create(struct eb *e, struct eb_job **ret, struct eb_snapshot *why);
/* Shared with EtcdRestores: opens the S3 store of a spec.s3 block. */
int eb_store_open(const struct stw_run *run, const struct eb_spec_s3 *s3, struct stw_store **ret,
                  char **ret_path, struct eb_snapshot *why);
/* Whether there is what a later backup needs: Secrets with their keys, and the EtcdCluster.
 * `ret_common`: its client certificate is in the keys of type kubernetes.io/tls.  -1: `why`. */
int eb_inputs_check(const struct eb *e, bool *ret_common, struct eb_snapshot *why);
int eb_secret_has(const struct stw_run *run, const char *name, const char *key, bool *ret,
                  struct eb_snapshot *why);
/* The URLs of the members, and the Secret with the client certificate ("": no TLS); for agents too.
 */
struct eb_source {
    char *urls[EB_ENDPOINTS_MAX], *addresses[EB_ENDPOINTS_MAX]; /* an address may be NULL */
    size_t count;
    char tls_secret[300];
};
int eb_source_find(const struct stw_run *run, const struct eb_spec *spec, struct eb_source *ret,
                   struct eb_snapshot *why);
void eb_source_done(struct eb_source *s);
int eb_fault(struct eb_snapshot *s, enum eb_snapshot_fault fault, const char *reason,
             const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int eb_fault_memory(struct eb_snapshot *s);
/* "s3://bucket/key", "pvc://claim/path" */
void eb_uri(const struct eb_spec *spec, const char *key, char *out, size_t size);

#endif
