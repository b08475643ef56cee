/* SPDX-License-Identifier: Apache-2.0
 *
 * EtcdCluster: an etcd of a given number of members, each a pod with its own volume. */
#ifndef STW_KINDS_ETCDCLUSTER_SPEC_H
#define STW_KINDS_ETCDCLUSTER_SPEC_H

#include "base/util.h"
#include "etcd/release.h"
#include "kinds/common/hours.h"
#include "kinds/etcdcluster/schema.h"
#include "schema/field/semver.h"
#include "schema/kind.h"

#define EC_CLIENT_PORT 2379
#define EC_PEER_PORT 2380
#define EC_METRICS_PORT 2381 /* plain HTTP: probes have no client certificate */

#define EC_FORCE_NEW_CLUSTER "etcd.database.coreos.com/force-new-cluster"
/* The first member of a new cluster, whose volume holds a restored snapshot. */
#define EC_SEED_MEMBER "etcd.database.coreos.com/seed-member"

/* Names the size for which a user agrees that members whose volumes cannot be expanded are replaced.
 */
#define EC_REPLACE_VOLUMES "etcd.database.coreos.com/replace-volumes"

/* A value that differs from the one honoured last asks that the members are defragmented. */
#define EC_DEFRAGMENT_REQUEST "etcd.database.coreos.com/defragment"

struct ec_spec_pod {
    struct stw_json labels, annotations, node_selector; /* maps of strings */
    struct stw_json affinity, tolerations, resources, security_context, spread; /* core/v1 */
    struct stw_json image_pull_secrets;
    const char *priority_class, *service_account; /* or NULL */
    bool anti_affinity;
    struct stw_json env;        /* list of core/v1 EnvVar */
    struct stw_json claim_spec; /* core/v1 PersistentVolumeClaimSpec; absent: spec.storage */
    const char *busybox_image;
    int64_t dns_timeout_s;
    const char *cluster_domain; /* NULL: names end in ".svc" and the resolver completes them */
};

struct ec_spec {
    int64_t size;
    const char *version; /* without a leading "v" */
    const char *repository;
    bool paused;
    struct ec_spec_pod pod;
    struct {
        const char *medium; /* "Auto", "Persistent", "EmptyDir" */
        struct stw_json size;
        const char *storage_class; /* or NULL */
    } storage;
    struct {
        struct {
            struct {
                const char *peer_secret, *server_secret; /* or NULL */
            } member;
            const char *operator_secret; /* or NULL */
        } static_;                       /* "static" */
        struct {
            const char *provider; /* "Steward"; NULL: no CA of its own */
            int64_t validity_days, renew_before_days;
        } auto_; /* "auto" */
    } tls;       /* spec.TLS */
    struct {
        struct stw_json quota_backend_bytes; /* quantity */
        const char *auto_compaction_mode, *auto_compaction_retention;
        int64_t snapshot_count, heartbeat_interval_ms, election_timeout_ms; /* 0: etcd's defaults */
        struct stw_json extra_args;                                         /* map of strings */
    } options;
    struct {
        bool enabled;
        int64_t unhealthy_s, max_per_hour;
    } failover;
    const char *quorum_loss_policy;
    struct {
        int64_t pause_between_s;
    } upgrade;
    struct {
        bool enabled;
    } pdb;
    struct {
        const char *when_deleted, *when_scaled; /* "Retain", "Delete" */
    } volume_retention;
    int64_t progress_deadline_s;
    struct {
        struct {
            const char *schedule;                    /* or NULL */
            const char *time_zone, *min_reclaimable; /* such as "20%" */
            struct stw_json min_reclaimable_bytes;   /* quantity */
            struct stw_hours hours;                  /* only its windows */
        } defragmentation;
        bool recover_space;
    } maintenance;
};

/* Whether an option of etcd ("data-dir", "experimental-...") is reserved for steward.  Every option
 * that steward passes to a member must be.  `ret_use`: the field of the spec for it, or NULL. */
bool ec_option_reserved(const char *name, const char **ret_use);

/* Whether members may go from a running version to another one; `err` gives the reason, worded as
 * at admission.  Called at admission and again before each upgrade or downgrade. */
struct stw_error;
int ec_step_check(struct stw_semver from, struct stw_semver to,
                  struct stw_error *err) STW_MUST_CHECK;

#endif
