/* SPDX-License-Identifier: Apache-2.0
 *
 * The status of an EtcdCluster, for the schema, and the columns of `kubectl get`. */
#include "kinds/etcdcluster/spec_rules.h"
#include "schema/rows.h"

static const struct stw_field name_item = {.name = "", .type = STW_T_STRING};

static const struct stw_field members_fields[] = {
    {.name = "ready", .type = STW_T_LIST, .help = "Those that are healthy.", .item = &name_item},
    {.name = "unready", .type = STW_T_LIST, .help = "Those that are not.", .item = &name_item},
    {0},
};

static const struct stw_field storage_fields[] = {
    {.name = "medium", .type = STW_T_STRING, .help = "Persistent or EmptyDir."},
    {.name = "class", .type = STW_T_STRING, .help = "StorageClass of the volumes."},
    {.name = "size", .type = STW_T_STRING, .help = "Size that new volumes get; it never shrinks."},
    {.name = "initialSize", .type = STW_T_STRING, .help = "The first size, if it has grown since."},
    {0},
};

static const struct stw_field volume_fields[] = {
    {.name = "requested", .type = STW_T_STRING, .help = "Size that its claim asks for."},
    {.name = "capacity", .type = STW_T_STRING, .help = "Size that the volume has."},
    {0},
};

static const struct stw_field member_fields[] = {
    {.name = "name", .type = STW_T_STRING, .help = "Its name, and that of its pod."},
    {.name = "id", .type = STW_T_STRING, .help = "Its ID in etcd, in hexadecimal."},
    {.name = "role", .type = STW_T_STRING, .help = "Leader, Follower or Learner."},
    {.name = "promoted",
     .type = STW_T_BOOL,
     .help = "A learner that has voted before, which only a fault of etcd makes."},
    {.name = "healthy", .type = STW_T_BOOL, .help = "Whether it served a read just now."},
    {.name = "version", .type = STW_T_STRING, .cel_max = 64, .help = "Version that it runs."},
    {.name = "storageVersion",
     .type = STW_T_STRING,
     .help = "Version that its data is written for, such as 3.6.0; etcd reports it from 3.6 on."},
    {.name = "pod", .type = STW_T_STRING, .help = "Its pod; absent when there is none."},
    {.name = "pvc", .type = STW_T_STRING, .help = "Its volume claim."},
    {.name = "volume", .type = STW_T_OBJECT, .help = "Its volume.", .fields = volume_fields},
    {.name = "dbSize",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Bytes of its database on disk; as of the last write of the status."},
    {.name = "dbSizeInUse", .type = STW_T_INT, .format = "int64", .help = "Bytes of these in use."},
    {.name = "raftLag",
     .type = STW_T_INT,
     .format = "int64",
     .help = "Raft log entries that it is behind the leader."},
    {.name = "alarms", .type = STW_T_LIST, .help = "NOSPACE, CORRUPT.", .item = &name_item},
    {.name = "certNotAfter",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When its certificate ends."},
    {.name = "since",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Since when it is healthy, or is not."},
    {0},
};
static const struct stw_field member_item = {
    .name = "", .type = STW_T_OBJECT, .fields = member_fields};

static const struct stw_field quorum_fields[] = {
    {.name = "voters", .type = STW_T_INT, .format = "int32", .help = "Members that vote."},
    {.name = "healthy", .type = STW_T_INT, .format = "int32", .help = "Those that are healthy."},
    {.name = "needed", .type = STW_T_INT, .format = "int32", .help = "How many are a quorum."},
    {.name = "margin",
     .type = STW_T_INT,
     .format = "int32",
     .help = "How many more may fail; negative: how many are missing."},
    {0},
};

static const struct stw_field action_fields[] = {
    {.name = "kind", .type = STW_T_STRING, .help = "What is being done, such as AddMember."},
    {.name = "member", .type = STW_T_STRING, .help = "With which member."},
    {.name = "id", .type = STW_T_STRING, .help = "Its ID in etcd, in hexadecimal."},
    {.name = "startTime", .type = STW_T_STRING, .format = "date-time", .help = "Since when."},
    {.name = "deadline",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When it counts as stuck."},
    {0},
};

static const struct stw_field backup_fields[] = {
    {.name = "name", .type = STW_T_STRING, .help = "EtcdBackup that made it."},
    {.name = "time", .type = STW_T_STRING, .format = "date-time", .help = "When."},
    {.name = "revision", .type = STW_T_INT, .format = "int64", .help = "Revision that is in it."},
    {.name = "verified", .type = STW_T_BOOL, .help = "Whether its hash was checked in the store."},
    {0},
};

static const struct stw_field time_item = {.name = "", .type = STW_T_STRING, .format = "date-time"};

static const struct stw_field failover_fields[] = {
    {.name = "lastHour",
     .type = STW_T_INT,
     .format = "int32",
     .help = "Members replaced in the last hour."},
    {.name = "total", .type = STW_T_INT, .format = "int64", .help = "Members replaced so far."},
    {.name = "times",
     .type = STW_T_LIST,
     .help = "When the latest were replaced, oldest first.",
     STW_RANGE(0, 10),
     .item = &time_item},
    {0},
};

static const struct stw_field force_fields[] = {
    {.name = "member", .type = STW_T_STRING, .help = "The survivor."},
    {.name = "step", .type = STW_T_STRING, .help = "How far it is: Clear, Start, Restart."},
    {0},
};

const struct stw_field stw_ec_status_fields[] = {
    {.name = "phase",
     .type = STW_T_STRING,
     .help = "None, Creating, Running or Failed, for readers of the old API."},
    {.name = "reason", .type = STW_T_STRING, .help = "Why it failed."},
    {.name = "controlPaused", .type = STW_T_BOOL, .help = "Whether steward leaves it alone."},
    {.name = "size", .type = STW_T_INT, .format = "int32", .help = "Members that there are."},
    {.name = "serviceName", .type = STW_T_STRING, .help = "Service for clients."},
    {.name = "clientPort", .type = STW_T_INT, .format = "int32", .help = "Port of it."},
    {.name = "members",
     .type = STW_T_OBJECT,
     .help = "Names of the members.",
     .fields = members_fields},
    {.name = "currentVersion",
     .type = STW_T_STRING,
     .cel_max = 64,
     .help = "Version that every member runs, or ran before the upgrade under way."},
    {.name = "oldestVersion",
     .type = STW_T_STRING,
     .help = "Oldest version that any member has ever run; absent where that is not known."},
    {.name = "targetVersion",
     .type = STW_T_STRING,
     .cel_max = 64,
     .help = "Version that the upgrade under way is to; absent when there is none."},
    {.name = "clusterID",
     .type = STW_T_STRING,
     .help = "ID of the cluster in etcd, in hexadecimal; absent until it is made."},
    {.name = "neverRan",
     .type = STW_T_BOOL,
     .help = "No member has run yet: spec.version may become any version."},
    {.name = "clusterVersion", .type = STW_T_STRING, .help = "What the members agree to speak."},
    {.name = "storage",
     .type = STW_T_OBJECT,
     .help = "Where members keep their data: chosen when the cluster is made.",
     .fields = storage_fields},
    {.name = "selector", .type = STW_T_STRING, .help = "Label selector of the pods."},
    {.name = "memberList",
     .type = STW_T_LIST,
     .help = "The members as etcd lists them.",
     STW_RANGE(0, 32),
     .item = &member_item},
    {.name = "quorum", .type = STW_T_OBJECT, .help = "Voters in numbers.", .fields = quorum_fields},
    {.name = "quorumLostTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Since when fewer voters answer than a quorum needs; absent while enough do."},
    {.name = "currentAction",
     .type = STW_T_OBJECT,
     .help = "The one change under way; absent when there is none.",
     .fields = action_fields},
    {.name = "lastRollTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When a recreated member last became healthy again."},
    {.name = "forceNewCluster",
     .type = STW_T_OBJECT,
     .help = "A new cluster being made of a survivor, as an annotation requested.",
     .fields = force_fields},
    {.name = "lastBackup",
     .type = STW_T_OBJECT,
     .help = "The newest backup.",
     .fields = backup_fields},
    {.name = "failovers",
     .type = STW_T_OBJECT,
     .help = "Members that were replaced.",
     .fields = failover_fields},
    STW_ROW_REPAIRS,
    STW_ROW_LAST_REPAIR,
    {0},
};

const struct stw_column stw_ec_columns[] = {
    {.name = "Size", .type = "integer", .json_path = ".spec.size"},
    {.name = "Healthy", .type = "integer", .json_path = ".status.quorum.healthy"},
    {.name = "Version", .type = "string", .json_path = ".status.currentVersion"},
    {.name = "Phase", .type = "string", .json_path = ".status.phase"},
    {.name = "Available",
     .type = "string",
     .json_path = ".status.conditions[?(@.type==\"Available\")].status"},
    STW_COLUMN_READY,
    {.name = "Target", .type = "string", .json_path = ".status.targetVersion", .priority = 1},
    {.name = "Leader",
     .type = "string",
     .json_path = ".status.memberList[?(@.role==\"Leader\")].name",
     .priority = 1},
    {.name = "Cluster-ID", .type = "string", .json_path = ".status.clusterID", .priority = 1},
    {.name = "LastBackup", .type = "date", .json_path = ".status.lastBackup.time", .priority = 1},
    STW_COLUMN_AGE,
    {0},
};
