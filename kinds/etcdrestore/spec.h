/* SPDX-License-Identifier: Apache-2.0
 *
 * EtcdRestore: an EtcdCluster created from a backup. */
#ifndef STW_KINDS_ETCDRESTORE_SPEC_H
#define STW_KINDS_ETCDRESTORE_SPEC_H

#include "kinds/etcdbackup/spec.h"
#include "kinds/etcdrestore/schema.h"

struct er_spec {
    const char *storage_type; /* or NULL */
    struct eb_spec_s3 s3;
    struct eb_spec_pvc pvc;
    struct {
        const char *name; /* or NULL */
        const char *uri;  /* NULL: its newest verified one */
    } backup;
    const char *cluster;
    struct stw_json template; /* an EtcdCluster's spec; absent: that of the existing cluster */
    const char *mode;         /* "New" */
    int64_t bump_revision;
    bool mark_compacted;
    int64_t keep_old_volumes_s;
};

#endif
