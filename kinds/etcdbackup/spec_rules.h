/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by EtcdBackup and EtcdRestore: where snapshots are stored. */
#ifndef STW_KINDS_ETCDBACKUP_SPEC_RULES_H
#define STW_KINDS_ETCDBACKUP_SPEC_RULES_H

#include "kinds/etcdbackup/spec.h"

/* Requires the block of the storage type and forbids the other one; `field` is the type's field. */
void eb_check_store(const char *field, const char *type, bool s3, bool pvc, struct stw_findings *f);
/* Checks the endpoint.  Warns about plain HTTP, and about a newly named Secret that is missing;
 * `then` is what happens when it appears. */
void eb_check_s3(const struct stw_admission *a, const struct eb_spec_s3 *now,
                 const struct eb_spec_s3 *old, const char *then, struct stw_findings *f);
/* On an UPDATE: refuses a change of the store; only the credentials for it may change. */
void eb_check_same_store(const struct stw_admission *a, struct stw_findings *f);
/* A URL must have a scheme, a host and a port, and never credentials. */
void eb_check_url(const char *path, const char *url, const char *example, struct stw_findings *f);

#endif
