/* SPDX-License-Identifier: Apache-2.0
 *
 * The field tables of EtcdBackup.  Its rules are in spec_rules.c. */
#include "kinds/etcdbackup/spec.h"

#include "kinds/common/schedule.h"
#include "kinds/etcdbackup/spec_rules.h"
#include "kinds/etcdcluster/spec_rules.h"
#include "schema/cron.h"
#include "schema/names.h"
#include "schema/rows.h"

#define SECONDS_MAX 315360000 /* ten years */

static const struct stw_field endpoint = {
    .name = "", .type = STW_T_STRING, STW_RANGE(1, 512), .pattern = "^https?://"};

static const struct stw_field cluster_fields[] = {
    {.name = "name",
     STW_FIELD(STW_T_STRING, struct stw_etcdbackup, cluster),
     .help = "EtcdCluster in the same namespace.",
     .required = true,
     .immutable = true,
     STW_CHECK_SUBDOMAIN},
    {0},
};

static const struct stw_field policy_fields[] = {
    {.name = "timeoutInSecond",
     STW_FIELD(STW_T_INT, struct stw_etcdbackup, policy.timeout_s),
     .help = "Seconds that a backup may take; 0: by the size of the database.",
     .def = "60",
     STW_RANGE(0, SECONDS_MAX),
     .range_text = "must be 0 or more",
     .format = "int64"},
    {.name = "backupIntervalInSecond",
     STW_FIELD(STW_T_INT, struct stw_etcdbackup, policy.interval_s),
     .help = "Seconds from one backup to the next, at least 60; 0: once.",
     .def = "0",
     .has_range = true,
     .rule_range = true,
     .max = SECONDS_MAX,
     .format = "int64"},
    {.name = "schedule",
     STW_FIELD(STW_T_STRING, struct stw_etcdbackup, policy.schedule),
     .help = "Schedule as in crontab: minute, hour, day of month, month, day of week; or @yearly, "
             "@monthly, @weekly, @daily, @hourly.",
     STW_RANGE(1, STW_CRON_MAX),
     .cel = stw_cel_schedule},
    {.name = "timeZone",
     STW_FIELD(STW_T_STRING, struct stw_etcdbackup, policy.time_zone),
     .help = "Time zone of the schedule by its IANA name, such as Europe/Berlin.",
     .def = "\"Etc/UTC\"",
     STW_RANGE(1, STW_TIME_ZONE_MAX),
     .cel = stw_cel_time_zone},
    {.name = "startingDeadlineSeconds",
     STW_FIELD(STW_T_INT, struct stw_etcdbackup, policy.starting_deadline_s),
     .help = "How late, in seconds, a backup of the schedule may still be made; one that is later "
             "is missed.",
     .def = "3600",
     STW_RANGE(10, 86400),
     .format = "int32"},
    {.name = "suspend",
     STW_FIELD(STW_T_BOOL, struct stw_etcdbackup, policy.suspend),
     .help = "Whether no more backups are made for now.",
     .def = "false"},
    {.name = "maxBackups",
     STW_FIELD(STW_T_INT, struct stw_etcdbackup, policy.max_backups),
     .help = "How many backups are kept; 0: all.  The newest verified one always is.",
     .def = "0",
     STW_RANGE(0, 1000000),
     .range_text = "must be 0 or more",
     .format = "int32"},
    {.name = "maxAgeSeconds",
     STW_FIELD(STW_T_INT, struct stw_etcdbackup, policy.max_age_s),
     .help = "Seconds that backups are kept; 0: for ever.  The newest verified one always is.",
     .def = "0",
     STW_RANGE(0, SECONDS_MAX),
     .range_text = "must be 0 or more",
     .format = "int64"},
    {0},
};

static const char *const verifications[] = {"None", "Hash", NULL};

static const struct stw_field spec_fields[] = {
    {.name = "etcdEndpoints",
     STW_FIELD(STW_T_LIST, struct stw_etcdbackup, endpoints),
     .help = "URLs of members of one etcd cluster, of which a healthy one is asked; at most 20.",
     .immutable = true,
     STW_RANGE(1, 20),
     .item = &endpoint},
    {.name = "clusterRef",
     .type = STW_T_OBJECT,
     .help = "The EtcdCluster whose members are asked, instead of etcdEndpoints.",
     .fields = cluster_fields},
    {.name = "storageType",
     STW_FIELD(STW_T_STRING, struct stw_etcdbackup, storage_type),
     .help = "Where backups are stored: S3, a compatible server, or a volume.",
     .required = true,
     .immutable = true,
     .values = stw_etcd_storage_types,
     .check = stw_etcd_check_storage_type},
    {.name = "s3",
     STW_FIELD(STW_T_OBJECT, struct stw_etcdbackup, s3),
     .help = "The object store; with storageType S3.",
     .fields = stw_etcd_s3_fields},
    {.name = "pvc",
     STW_FIELD(STW_T_OBJECT, struct stw_etcdbackup, pvc),
     .help = "The volume; with storageType PVC.",
     .fields = stw_etcd_pvc_fields},
    {.name = "clientTLSSecret",
     STW_FIELD(STW_T_STRING, struct stw_etcdbackup, client_tls_secret),
     .help = "Secret with etcd-client.crt, etcd-client.key and etcd-client-ca.crt; of an "
             "EtcdCluster, when absent, what the cluster itself uses.",
     STW_CHECK_SUBDOMAIN},
    {.name = "authSecret",
     STW_FIELD(STW_T_STRING, struct stw_etcdbackup, auth_secret),
     .help = "Secret with username and password, for an etcd that asks for them.",
     STW_CHECK_SUBDOMAIN},
    {.name = "backupPolicy",
     .type = STW_T_OBJECT,
     .help = "When backups are made and how long they are kept; when absent, one is made at once.",
     .fields = policy_fields},
    {.name = "verify",
     STW_FIELD(STW_T_STRING, struct stw_etcdbackup, verify),
     .help = "Hash: a backup counts only once its hash has been checked in the store.",
     .def = "\"Hash\"",
     .values = verifications},
    {.name = "pod",
     STW_FIELD(STW_T_OBJECT, struct stw_etcdbackup, pod),
     .help = "The pods that make backups; with storageType PVC.",
     .fields = stw_ec_agent_pod_fields},
    {0},
};

/* --- status */

static const struct stw_field artifact_fields[] = {
    {.name = "uri", .type = STW_T_STRING, .help = "Where it is."},
    {.name = "revision", .type = STW_T_INT, .format = "int64", .help = "Revision that is in it."},
    {.name = "sizeBytes", .type = STW_T_INT, .format = "int64", .help = "Its size."},
    {.name = "sha256", .type = STW_T_STRING, .help = "SHA-256 of all of it."},
    {.name = "verified", .type = STW_T_BOOL, .help = "Whether that was checked in the store."},
    {.name = "time", .type = STW_T_STRING, .format = "date-time", .help = "When it was made."},
    {.name = "etcdVersion", .type = STW_T_STRING, .help = "Version of etcd that it is of."},
    {0},
};
static const struct stw_field artifact = {
    .name = "", .type = STW_T_OBJECT, .fields = artifact_fields};

static const struct stw_field request_fields[] = {
    {.name = "hash", .type = STW_T_STRING, .help = "Hash of the annotation's value."},
    {.name = "time", .type = STW_T_STRING, .format = "date-time", .help = "When it was taken up."},
    {0},
};

static const struct stw_field status_fields[] = {
    {.name = "succeeded", .type = STW_T_BOOL, .help = "Whether the latest attempt succeeded."},
    {.name = "Reason", .type = STW_T_STRING, .help = "Why it failed."},
    {.name = "etcdVersion", .type = STW_T_STRING, .help = "Version of the etcd."},
    {.name = "etcdRevision",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Revision of the newest backup."},
    {.name = "lastSuccessDate",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the newest backup was made."},
    {.name = "phase",
     .type = STW_T_STRING,
     .help = "Pending, Running, Verifying, Succeeded or Failed."},
    {.name = "lastScheduleTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Latest instant that has been handled."},
    {.name = "nextScheduleTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Next instant; absent for one that is made once, or suspended."},
    {.name = "sourceEndpoint", .type = STW_T_STRING, .help = "Member that was asked last."},
    {.name = "artifacts",
     .type = STW_T_LIST,
     .help = "Newest backups, newest first.",
     STW_RANGE(0, 20),
     .item = &artifact},
    {.name = "consecutiveFailures",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Failed attempts since the last success."},
    {.name = "lastError", .type = STW_T_STRING, .help = "Error of the latest of these."},
    {.name = "prunedCount",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Backups removed so far."},
    {.name = "request",
     .type = STW_T_OBJECT,
     .help = "The latest backup that the annotation backup-at asked for.",
     .fields = request_fields},
    {0},
};

static const struct stw_column columns[] = {
    {.name = "Cluster", .type = "string", .json_path = ".spec.clusterRef.name"},
    {.name = "Storage", .type = "string", .json_path = ".spec.storageType"},
    {.name = "Revision", .type = "integer", .json_path = ".status.etcdRevision"},
    {.name = "Last-Success", .type = "date", .json_path = ".status.lastSuccessDate"},
    {.name = "Verified",
     .type = "string",
     .json_path = ".status.conditions[?(@.type==\"Verified\")].status"},
    STW_COLUMN_READY,
    STW_COLUMN_AGE,
    {0},
};

static const char *const short_names[] = {"etcdb", NULL};

const struct stw_kind stw_kind_etcdbackup = {
    .group = "etcd.database.coreos.com",
    .version = "v1beta2",
    .kind = "EtcdBackup",
    .plural = "etcdbackups",
    .namespaced = true,
    .singular = "etcdbackup",
    .short_names = short_names,
    .help = "EtcdBackup stores snapshots of an etcd cluster, once or on a schedule.",
    .spec = spec_fields,
    .spec_size = sizeof(struct stw_etcdbackup),
    .status = status_fields,
    .cel = stw_etcdbackup_cel,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .validate = stw_etcdbackup_validate,
};
