/* SPDX-License-Identifier: Apache-2.0
 *
 * EtcdBackup: snapshots of an etcd in a store, once or on a schedule. */
#ifndef STW_KINDS_ETCDBACKUP_SPEC_H
#define STW_KINDS_ETCDBACKUP_SPEC_H

#include "kinds/etcdbackup/schema.h"
#include "kinds/etcdcluster/spec.h"
#include "schema/kind.h"

/* Where snapshots are stored. */
struct eb_spec_s3 {
    const char *path;       /* "bucket/key"; NULL: no such block */
    const char *aws_secret; /* Secret with "credentials" as in ~/.aws/credentials, and "ca.crt" when
                             * the endpoint has a CA of its own; NULL: none */
    const char *endpoint;   /* URL; NULL: AWS */
    bool force_path_style;
    const char *region;
    const char *sse; /* "AES256", "aws:kms", or NULL */
};
struct eb_spec_pvc {
    const char *claim; /* NULL: no such block */
    const char *path;  /* inside the volume */
};

struct eb_spec {
    struct stw_json endpoints; /* list of URLs */
    const char *cluster;       /* or NULL: clusterRef.name */
    const char *storage_type;  /* "S3", "PVC" */
    struct eb_spec_s3 s3;
    struct eb_spec_pvc pvc;
    const char *client_tls_secret, *auth_secret; /* or NULL */
    struct {
        int64_t timeout_s, interval_s; /* 0: by the size of the database; one-shot */
        const char *schedule;          /* or NULL */
        const char *time_zone;
        int64_t starting_deadline_s;
        bool suspend;
        int64_t max_backups, max_age_s; /* 0: keep all */
    } policy;
    const char *verify;     /* "None", "Hash" */
    struct ec_spec_pod pod; /* of the pods that work on a volume */
};

/* Each new value asks for one backup now, of an object with a schedule or an interval; for
 * stw_operator_text. */
#define EB_AT "{domain}/backup-at"

/* Where an EtcdBackup stores, as a text that is equal for two objects that would write to the same
 * place.  `backup` is the object, `ns` its namespace.  Returns false when the spec names no
 * place. */
#define EB_PLACE_MAX 4096
struct stw_buf;
bool eb_spec_place(struct stw_json backup, const char *ns, struct stw_buf *out);

#endif
