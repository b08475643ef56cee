/* SPDX-License-Identifier: Apache-2.0
 *
 * What EtcdBackup and EtcdRestore share: where snapshots lie. */
#ifndef STW_KINDS_ETCDBACKUP_PRIV_H
#define STW_KINDS_ETCDBACKUP_PRIV_H

#include "kinds/etcdbackup.h"

extern const struct stw_field stw_etcd_s3_fields[];  /* of struct stw_etcd_s3 */
extern const struct stw_field stw_etcd_pvc_fields[]; /* of struct stw_etcd_pvc */
extern const char *const stw_etcd_storage_types[];   /* "S3", "PVC" */

/* As rows of field tables want it. */
const char *stw_etcd_check_storage_type(const char *type);

/* The block that a storage type asks for is there and the other is not; `field` is the type's. */
void stw_etcd_check_store(const char *field, const char *type, bool s3, bool pvc,
                          struct stw_findings *f);
/* The endpoint, and what is doubtful about a store that was just chosen: plain HTTP, a Secret that
 * is not there; `then` says what happens when it appears. */
void stw_etcd_check_s3(const struct stw_admission *a, const struct stw_etcd_s3 *now,
                       const struct stw_etcd_s3 *old, const char *then, struct stw_findings *f);
/* On an UPDATE: the store is where it was; the credentials for it may be others. */
void stw_etcd_check_same_store(const struct stw_admission *a, struct stw_findings *f);
/* A scheme, a host and a port, and never credentials. */
void stw_etcd_check_url(const char *path, const char *url, const char *example,
                        struct stw_findings *f);

void stw_etcdbackup_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                             struct stw_findings *f);

#endif
