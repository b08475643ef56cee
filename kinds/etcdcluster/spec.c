/* SPDX-License-Identifier: Apache-2.0
 *
 * The field tables of EtcdCluster.  Its rules are in spec_rules.c and the files named like
 * it. */
#include "kinds/etcdcluster/spec.h"

#include "kinds/etcdcluster/spec_rules.h"
#include "schema/core.h"
#include "schema/names.h"

#define SECONDS_MAX 86400
#define OPTION_MAX 100000000

/* --- storage */

static const char *const media[] = {"Auto", "Persistent", "EmptyDir", NULL};

static const struct stw_field storage_fields[] = {
    {.name = "medium",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, storage.medium),
     .help = "Persistent: a volume claim a member.  EmptyDir: the node's disk, as long as the pod "
             "exists.  Auto: Persistent if there is a default StorageClass when the cluster is "
             "made.  Chosen once, see status.storage.",
     .def = "\"Auto\"",
     .values = media},
    {.name = "size",
     STW_FIELD(STW_T_QUANTITY, struct stw_etcdcluster, storage.size),
     .help = "Size of a member's volume, at least 1Gi; it cannot shrink.",
     .def = "\"8Gi\""},
    {.name = "storageClassName",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, storage.storage_class),
     .help = "StorageClass of the volumes; when absent, the default one.",
     .immutable = true,
     STW_CHECK_SUBDOMAIN},
    {0},
};

/* --- TLS */

static const struct stw_field member_fields[] = {
    {.name = "peerSecret",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, tls.static_.member.peer_secret),
     .help = "Secret with peer.crt, peer.key and peer-ca.crt, for traffic between members.",
     STW_CHECK_SUBDOMAIN},
    {.name = "serverSecret",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, tls.static_.member.server_secret),
     .help = "Secret with server.crt, server.key and server-ca.crt, for traffic with clients.",
     STW_CHECK_SUBDOMAIN},
    {0},
};

static const struct stw_field static_fields[] = {
    {.name = "member",
     .type = STW_T_OBJECT,
     .help = "Secrets of the members.",
     .fields = member_fields},
    {.name = "operatorSecret",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, tls.static_.operator_secret),
     .help = "Secret with etcd-client.crt, etcd-client.key and etcd-client-ca.crt, for steward's "
             "requests to the members; together with member.serverSecret.",
     STW_CHECK_SUBDOMAIN},
    {0},
};

static const char *const providers[] = {"Steward", NULL};

static const struct stw_field auto_fields[] = {
    {.name = "provider",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, tls.auto_.provider),
     .help = "Who makes the certificates: Steward, with a CA for this cluster alone.",
     .required = true,
     .values = providers},
    {.name = "validityDays",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, tls.auto_.validity_days),
     .help = "Days that a certificate is valid.",
     .def = "90",
     STW_RANGE(2, 3650),
     .format = "int32"},
    {.name = "renewBeforeDays",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, tls.auto_.renew_before_days),
     .help = "Days before its end that a certificate is renewed; less than validityDays.",
     .def = "30",
     STW_RANGE(1, 3649),
     .format = "int32"},
    {0},
};

static const struct stw_field tls_fields[] = {
    {.name = "static",
     .type = STW_T_OBJECT,
     .help = "Certificates of your own, in Secrets.",
     .fields = static_fields},
    {.name = "auto",
     .type = STW_T_OBJECT,
     .help = "Certificates that are made and renewed.",
     .fields = auto_fields},
    {0},
};

/* --- etcd's options */

static const char *const compaction_modes[] = {"periodic", "revision", NULL};

static const struct stw_field option_fields[] = {
    {.name = "quotaBackendBytes",
     STW_FIELD(STW_T_QUANTITY, struct stw_etcdcluster, options.quota_backend_bytes),
     .help = "Size that the database may have, at least 64Mi; a full one takes no more writes.",
     .def = "\"2Gi\""},
    {.name = "autoCompactionMode",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, options.auto_compaction_mode),
     .help = "Whether old revisions are removed by age or by number.",
     .def = "\"periodic\"",
     .values = compaction_modes},
    {.name = "autoCompactionRetention",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, options.auto_compaction_retention),
     .help = "How much history is kept: a duration such as 1h, or a number of revisions.",
     .def = "\"1h\"",
     STW_RANGE(1, 32)},
    {.name = "snapshotCount",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, options.snapshot_count),
     .help = "Changes after which etcd writes a snapshot of its state; when absent, etcd's own.",
     STW_RANGE(1, OPTION_MAX),
     .format = "int64"},
    {.name = "heartbeatIntervalMs",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, options.heartbeat_interval_ms),
     .help = "Milliseconds between heartbeats of the leader; when absent, etcd's own (100).",
     STW_RANGE(1, 10000),
     .format = "int64"},
    {.name = "electionTimeoutMs",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, options.election_timeout_ms),
     .help = "Milliseconds without a heartbeat after which members elect; at least five times "
             "heartbeatIntervalMs; when absent, etcd's own (1000).",
     STW_RANGE(1, 50000),
     .format = "int64"},
    {.name = "extraArgs",
     STW_FIELD(STW_T_MAP, struct stw_etcdcluster, options.extra_args),
     .help = "More options of etcd by their names, such as max-request-bytes; not those that "
             "steward sets, such as name.",
     STW_RANGE(0, 100),
     .item = &stw_core_text_item},
    {0},
};

/* --- operation */

static const struct stw_field failover_fields[] = {
    {.name = "enabled",
     STW_FIELD(STW_T_BOOL, struct stw_etcdcluster, failover.enabled),
     .help = "Whether a member that stays unavailable is replaced by a new one.",
     .def = "true"},
    {.name = "unhealthySeconds",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, failover.unhealthy_s),
     .help = "Seconds that it must have been unavailable.",
     .def = "300",
     STW_RANGE(60, SECONDS_MAX),
     .format = "int32"},
    {.name = "maxPerHour",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, failover.max_per_hour),
     .help = "Most replacements in an hour.",
     .def = "2",
     STW_RANGE(1, 10),
     .format = "int32"},
    {0},
};

static const struct stw_field upgrade_fields[] = {
    {.name = "pauseBetweenSeconds",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, upgrade.pause_between_s),
     .help = "Seconds between one member being healthy again and the next member's turn.",
     .def = "30",
     STW_RANGE(0, SECONDS_MAX),
     .format = "int32"},
    {0},
};

static const struct stw_field pdb_fields[] = {
    {.name = "enabled",
     STW_FIELD(STW_T_BOOL, struct stw_etcdcluster, pdb.enabled),
     .help = "Whether drains of nodes leave a quorum of members.",
     .def = "true"},
    {0},
};

static const char *const retentions[] = {"Retain", "Delete", NULL};

static const struct stw_field retention_fields[] = {
    {.name = "whenDeleted",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, volume_retention.when_deleted),
     .help = "What happens to the volumes when the cluster is deleted.",
     .def = "\"Retain\"",
     .values = retentions},
    {.name = "whenScaled",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, volume_retention.when_scaled),
     .help = "What happens to the volume of a member that was removed.",
     .def = "\"Delete\"",
     .values = retentions},
    {0},
};

static const char *const quorum_policies[] = {"Manual", NULL};

const struct stw_field stw_ec_spec_fields[] = {
    {.name = "size",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, size),
     .help = "How many members there are: 1 to 7, preferably an odd number.",
     .def = "3",
     .has_range = true,
     .rule_range = true,
     .min = 1,
     .max = STW_ETCD_SIZE_MAX,
     .format = "int32"},
    {.name = "version",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, version),
     .help = "Version of etcd, such as " STW_ETCD_VERSION
             "; written into the spec when the cluster is made, so "
             "that only you move it.",
     .def = "\"" STW_ETCD_VERSION "\"",
     .computed = true,
     STW_RANGE(1, STW_SEMVER_LEN - 1),
     .range_text = "must be a version like " STW_ETCD_VERSION,
     .pattern = "^v?[0-9]+\\.[0-9]+\\.[0-9]+$",
     .skip = "v",
     .check = stw_ec_check_version_text,
     .cel = stw_ec_cel_version},
    {.name = "repository",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, repository),
     .help = "Where the images are, without a tag: the tag is v and the version.",
     .def = "\"" STW_ETCD_REPOSITORY "\"",
     STW_RANGE(1, 1024),
     .cel = stw_ec_cel_repository},
    {.name = "paused",
     STW_FIELD(STW_T_BOOL, struct stw_etcdcluster, paused),
     .help = "Whether steward leaves the cluster alone; only its status is kept.",
     .def = "false"},
    {.name = "pod",
     STW_FIELD(STW_T_OBJECT, struct stw_etcdcluster, pod),
     .help = "The pods of members; most changes are rolled out one member at a time.",
     .fields = stw_ec_pod_fields},
    {.name = "storage",
     .type = STW_T_OBJECT,
     .help = "Where members keep their data.",
     .fields = storage_fields},
    {.name = "TLS",
     .type = STW_T_OBJECT,
     .help = "Whether and how members and clients speak TLS; cannot be switched on or off later.",
     .fields = tls_fields},
    {.name = "options",
     .type = STW_T_OBJECT,
     .help = "Options of etcd; a change is rolled out one member at a time.",
     .fields = option_fields},
    {.name = "failover",
     .type = STW_T_OBJECT,
     .help = "What happens to members that stay unavailable.",
     .fields = failover_fields},
    {.name = "quorumLossPolicy",
     STW_FIELD(STW_T_STRING, struct stw_etcdcluster, quorum_loss_policy),
     .help = "Manual: without a quorum nothing is touched until a person decides.",
     .def = "\"Manual\"",
     .values = quorum_policies},
    {.name = "upgrade",
     .type = STW_T_OBJECT,
     .help = "How members are upgraded.",
     .fields = upgrade_fields},
    {.name = "pdb", .type = STW_T_OBJECT, .help = "The PodDisruptionBudget.", .fields = pdb_fields},
    {.name = "volumeRetention",
     .type = STW_T_OBJECT,
     .help = "What happens to volumes that are no longer needed.",
     .fields = retention_fields},
    {.name = "progressDeadlineSeconds",
     STW_FIELD(STW_T_INT, struct stw_etcdcluster, progress_deadline_s),
     .help = "Seconds after which a change of one member that is not done counts as stuck.",
     .def = "600",
     STW_RANGE(60, SECONDS_MAX),
     .format = "int32"},
    {0},
};

static const struct stw_scale scale = {.spec_replicas = ".spec.size",
                                       .status_replicas = ".status.size",
                                       .selector = ".status.selector"};

/* Writes the version into the spec of a cluster that names none: a steward with another built-in
 * default must not change it later. */
static void default_more(const struct stw_admission *a, struct stw_json spec,
                         struct stw_defaults *d)
{
    stw_autobuf struct stw_buf json = STW_BUF_INIT(1024);
    size_t len;
    struct stw_json was = stw_json_path(a->old_object, "spec.version");
    if (stw_json_there(stw_json_get(spec, "version")))
        return;
    if (a->operation != STW_UPDATE) {
        stw_default_add(d, "/spec/version", "\"" STW_ETCD_VERSION "\"");
        return;
    }
    if (!stw_json_there(was))
        was = stw_ec_version_of_status(stw_json_get(a->old_object, "status"));
    if (stw_json_type(was) != STW_JSON_STRING)
        return;
    const char *raw = stw_json_raw(was, &len);
    stw_buf_add(&json, raw, len);
    if (!json.failed)
        stw_default_add(d, "/spec/version", stw_buf_str(&json));
}

static const char *const short_names[] = {"etcd", "ec", NULL};

const struct stw_kind stw_kind_etcdcluster = {
    .group = "etcd.database.coreos.com",
    .version = "v1beta2",
    .kind = "EtcdCluster",
    .plural = "etcdclusters",
    .namespaced = true,
    .singular = "etcdcluster",
    .short_names = short_names,
    .help = "EtcdCluster is an etcd cluster of up to 7 members, which are changed one at a time.",
    .spec = stw_ec_spec_fields,
    .spec_size = sizeof(struct stw_etcdcluster),
    .status = stw_ec_status_fields,
    .cel = stw_ec_cel,
    .columns = stw_ec_columns,
    .scale = &scale,
    .operations = STW_CREATE | STW_UPDATE | STW_DELETE,
    .dns1035_name = true,
    .name_max = STW_ETCD_CLUSTER_NAME_MAX,
    .default_more = default_more,
    .validate = stw_ec_validate,
    .advise_delete = stw_ec_advise_delete,
};
