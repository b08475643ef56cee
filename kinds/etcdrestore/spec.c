/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields and rules of EtcdRestore: a cluster created from a backup. */
#include "kinds/etcdrestore/spec.h"

#include "base/arena.h"
#include "base/util.h"
#include "kinds/etcdbackup/spec_rules.h"
#include "kinds/etcdcluster/spec_rules.h"
#include "schema/names.h"
#include "schema/rows.h"

#include <stdio.h>

static const char *check_cluster_name(const char *name)
{
    if (strlen(name) > STW_ETCD_CLUSTER_NAME_MAX)
        return "must be at most 52 characters";
    return stw_is_dns1035_label(name) ? NULL
                                      : "must start with a letter and hold only a-z, 0-9 and '-', "
                                        "because a Service gets this name";
}

static const char *check_uri(const char *uri)
{
    return strncmp(uri, "s3://", 5) == 0 || strncmp(uri, "pvc://", 6) == 0
               ? NULL
               : "must be the uri of an artifact in the EtcdBackup's status";
}

/* The same in CEL. */
static const struct stw_cel cel_cluster_name[] = {
    {"size(self) <= 52", "must be at most 52 characters"},
    {"self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
     "must start with a letter and hold only a-z, 0-9 and '-', because a Service gets this name"},
    {0},
};
static const struct stw_cel cel_uri[] = {
    {"self.startsWith('s3://') || self.startsWith('pvc://')",
     "must be the uri of an artifact in the EtcdBackup's status"},
    {0},
};

static const struct stw_field backup_fields[] = {
    {.name = "name",
     STW_FIELD(STW_T_STRING, struct stw_etcdrestore, backup.name),
     .help = "EtcdBackup in the same namespace.",
     .required = true,
     .immutable = true,
     STW_CHECK_SUBDOMAIN},
    {.name = "uri",
     STW_FIELD(STW_T_STRING, struct stw_etcdrestore, backup.uri),
     .help = "Which of its artifacts; when absent, the newest verified one.",
     .immutable = true,
     STW_RANGE(1, 2048),
     .check = check_uri,
     .cel = cel_uri},
    {0},
};

static const struct stw_field cluster_fields[] = {
    {.name = "name",
     STW_FIELD(STW_T_STRING, struct stw_etcdrestore, cluster),
     .help = "Name of the EtcdCluster that is made.",
     .required = true,
     .immutable = true,
     .check = check_cluster_name,
     .cel = cel_cluster_name,
     .cel_max = 253},
    {0},
};

static const char *const modes[] = {"New", NULL};

static const struct stw_field spec_fields[] = {
    {.name = "etcdCluster",
     .type = STW_T_OBJECT,
     .help = "The cluster.",
     .required = true,
     .fields = cluster_fields},
    {.name = "backupStorageType",
     STW_FIELD(STW_T_STRING, struct stw_etcdrestore, storage_type),
     .help = "Where the backup is: S3 or PVC; it may be left out.",
     .immutable = true,
     .values = stw_etcd_storage_types,
     .check = stw_etcd_check_storage_type},
    {.name = "s3",
     STW_FIELD(STW_T_OBJECT, struct stw_etcdrestore, s3),
     .help = "The backup, as an object of a store; path names it in full.",
     .fields = stw_etcd_s3_fields},
    {.name = "pvc",
     STW_FIELD(STW_T_OBJECT, struct stw_etcdrestore, pvc),
     .help = "The backup, as a file on a volume; path names it in full.",
     .fields = stw_etcd_pvc_fields},
    {.name = "backupRef",
     .type = STW_T_OBJECT,
     .help = "The backup, as one of an EtcdBackup.",
     .fields = backup_fields},
    {.name = "template",
     STW_FIELD(STW_T_RAW, struct stw_etcdrestore, template),
     .help = "spec of the EtcdCluster that is made; when absent, that of the cluster of this name.",
     .immutable = true,
     .fields = stw_ec_spec_fields},
    {.name = "mode",
     STW_FIELD(STW_T_STRING, struct stw_etcdrestore, mode),
     .help = "New: a cluster is created; an existing one is not changed.",
     .def = "\"New\"",
     .immutable = true,
     .values = modes},
    {.name = "bumpRevision",
     STW_FIELD(STW_T_INT, struct stw_etcdrestore, bump_revision),
     .help = "How far revisions are raised, so that no client mistakes old ones for new; needs "
             "etcd 3.5.10 or newer.",
     .def = "1000000000",
     .immutable = true,
     STW_RANGE(0, 1000000000000000),
     .range_text = "must be 0 or more",
     .format = "int64"},
    {.name = "markCompacted",
     STW_FIELD(STW_T_BOOL, struct stw_etcdrestore, mark_compacted),
     .help = "Whether everything before is marked compacted, so that watches restart; needs etcd "
             "3.5.10 or newer.",
     .def = "true",
     .immutable = true},
    {.name = "keepOldVolumesSeconds",
     STW_FIELD(STW_T_INT, struct stw_etcdrestore, keep_old_volumes_s),
     .help = "Ignored: mode New changes no existing volumes, and keeps nothing of an attempt that "
             "failed.",
     STW_RANGE(0, INT32_MAX),
     .range_text = "must be 0 or more",
     .format = "int64"},
    {0},
};

/* --- status */

static const struct stw_field snapshot_fields[] = {
    {.name = "revision",
     .type = STW_T_INT,
     .format = "int64",
     .help =
         "Revision that it holds at least; absent where neither an EtcdBackup nor its name says "
         "it."},
    {.name = "sha256", .type = STW_T_STRING, .help = "SHA-256 of all of it."},
    {.name = "sizeBytes", .type = STW_T_INT, .format = "int64", .help = "Its size."},
    {.name = "storageVersion", .type = STW_T_STRING, .help = "Version of etcd that it is of."},
    {0},
};

static const struct stw_field status_fields[] = {
    {.name = "succeeded", .type = STW_T_BOOL, .help = "Whether the cluster is made."},
    {.name = "reason", .type = STW_T_STRING, .help = "Why it is not."},
    {.name = "phase",
     .type = STW_T_STRING,
     .help = "Pending, Fetching, Verifying, Seeding, Joining, Succeeded or Failed."},
    {.name = "uri", .type = STW_T_STRING, .help = "The backup that was chosen."},
    {.name = "seedMember", .type = STW_T_STRING, .help = "Name of the first member."},
    {.name = "snapshot",
     .type = STW_T_OBJECT,
     .help = "What was found in the backup.",
     .fields = snapshot_fields},
    {.name = "newClusterID", .type = STW_T_STRING, .help = "ID of the new cluster in etcd."},
    {0},
};

static const struct stw_column columns[] = {
    {.name = "Cluster", .type = "string", .json_path = ".spec.etcdCluster.name"},
    {.name = "Phase", .type = "string", .json_path = ".status.phase"},
    {.name = "Revision", .type = "integer", .json_path = ".status.snapshot.revision"},
    STW_COLUMN_AGE,
    {0},
};

/* --- rules */

static void check_source(const struct stw_etcdrestore *r, struct stw_findings *f)
{
    static const char text[] = "set exactly one of s3, pvc, backupRef";
    const struct {
        const char *path;
        bool there;
    } sources[] = {
        {"spec.s3", r->s3.path}, {"spec.pvc", r->pvc.claim}, {"spec.backupRef", r->backup.name}};
    size_t count = 0;
    for (size_t i = 0; i < STW_COUNT(sources); i++)
        if (sources[i].there && count++ > 0)
            stw_findings_add(f, sources[i].path, STW_FORBIDDEN, NULL, "%s", text);
    if (count == 0 && !r->storage_type)
        stw_findings_add(f, "spec.backupRef", STW_REQUIRED, NULL, "%s", text);
    else if (count <= 1 && r->storage_type && !r->backup.name)
        stw_etcd_check_store("backupStorageType", r->storage_type, r->s3.path, r->pvc.claim, f);
}

/* Members of a restored cluster take their identity from the data on their volume. */
static void check_template(const struct stw_admission *a, const struct stw_etcdrestore *r,
                           struct stw_findings *f)
{
    struct stw_etcdcluster c = {0};
    struct stw_ec_scene s = {.a = a, .at = "spec.template", .json = r->template, .now = &c, .f = f};
    struct stw_semver v;
    struct stw_arena arena;
    stw_arena_init(&arena);
    (void)stw_fields_decode(stw_ec_spec_fields, r->template, &arena, &c);
    stw_ec_check(&s);
    if (c.storage.medium && stw_streq(c.storage.medium, "EmptyDir"))
        stw_ec_forbid(&s, "storage.medium", "restore needs persistent storage");
    if ((r->bump_revision > 0 || r->mark_compacted) && c.version &&
        stw_semver_parse(c.version, &v) == 0 && !stw_etcd_has(v, STW_ETCD_BUMPS))
        stw_findings_warn(f, "etcd before 3.5.10 can neither raise revisions nor mark them "
                             "compacted: clients that watch must be restarted");
    stw_arena_done(&arena);
}

static void advise_on_volumes(const struct stw_etcdrestore *r, struct stw_findings *f)
{
    if (r->keep_old_volumes_s > 0)
        stw_findings_warn(f, "spec.keepOldVolumesSeconds is ignored: in mode New no volume becomes "
                             "an old one");
}

static int has_cluster(const struct stw_admission *a, const char *name)
{
    char key[600];
    const struct stw_lookup *l = a->env ? a->env->lookup : NULL;
    if (!l || !l->has || !a->ns || !name)
        return -1;
    stw_format(key, sizeof(key), "%s/%s", a->ns, name);
    return l->has(l->ctx, "etcdclusters", key);
}

static void check_cluster(const struct stw_admission *a, const struct stw_etcdrestore *r,
                          struct stw_findings *f)
{
    if (!r->cluster || a->operation != STW_CREATE)
        return;
    int there = has_cluster(a, r->cluster);
    if (there == 0 && !stw_json_there(r->template))
        stw_findings_add(f, "spec.template", STW_REQUIRED, NULL,
                         "no EtcdCluster \"%s\" to copy; give template", r->cluster);
    else if (there == 1 && !a->quiet)
        stw_findings_warn(f,
                          "EtcdCluster \"%s\" exists and is not touched: nothing is restored "
                          "until it is deleted",
                          r->cluster);
    struct stw_json name = stw_json_path(a->object, "metadata.name");
    if (stw_json_there(name) && !stw_json_is(name, r->cluster))
        stw_findings_warn(
            f,
            "metadata.name differs from spec.etcdCluster.name; the cluster gets the latter name");
}

static void advise_on_backup(const struct stw_admission *a, const struct stw_etcdrestore *r,
                             struct stw_findings *f)
{
    char key[600];
    const struct stw_lookup *l = a->env ? a->env->lookup : NULL;
    if (a->quiet || f->error_count || !r->backup.name || !l || !l->has || !a->ns)
        return;
    stw_format(key, sizeof(key), "%s/%s", a->ns, r->backup.name);
    if (l->has(l->ctx, "etcdbackups", key) == 0)
        stw_findings_warn(f, "EtcdBackup \"%s\" not found; the restore begins when it is there",
                          r->backup.name);
}

static void validate_etcdrestore(const struct stw_admission *a, const void *spec,
                                 const void *old_spec, struct stw_findings *f)
{
    const struct stw_etcdrestore *r = spec, *old = old_spec;
    check_source(r, f);
    if (stw_json_there(r->template))
        check_template(a, r, f);
    check_cluster(a, r, f);
    advise_on_volumes(r, f);
    stw_etcd_check_s3(a, &r->s3, old ? &old->s3 : NULL, "the restore begins", f);
    if (old)
        stw_etcd_check_same_store(a, f);
    else
        advise_on_backup(a, r, f);
}

/* Of these rules, what CEL can express. */
#define SOURCES "set exactly one of s3, pvc, backupRef"
#define MANY "(has(self.backupRef) || (has(self.s3) && has(self.pvc)))"
static const struct stw_cel_rule rules[] = {
    {.at = "pvc",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.s3) || !has(self.pvc)",
     .message = SOURCES},
    {.at = "backupRef",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.backupRef) || !(has(self.s3) || has(self.pvc))",
     .message = SOURCES},
    {.at = "backupRef",
     .code = STW_REQUIRED,
     .rule = "has(self.backupRef) || has(self.s3) || has(self.pvc) || has(self.backupStorageType)",
     .message = SOURCES},
    STW_CEL_STORES("backupStorageType", MANY),
    STW_CEL_S3_ENDPOINT,
    {.at = "template", .within = stw_ec_cel},
    {.at = "template.storage.medium",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.template) || !has(self.template.storage) || "
             "self.template.storage.medium != 'EmptyDir'",
     .message = "restore needs persistent storage"},
    STW_CEL_SAME_STORE("false"),
    {0},
};

static const char *const short_names[] = {"etcdr", NULL};

const struct stw_kind stw_kind_etcdrestore = {
    .group = "etcd.database.coreos.com",
    .version = "v1beta2",
    .kind = "EtcdRestore",
    .plural = "etcdrestores",
    .namespaced = true,
    .singular = "etcdrestore",
    .short_names = short_names,
    .help = "EtcdRestore makes an EtcdCluster from a backup.",
    .spec = spec_fields,
    .spec_size = sizeof(struct stw_etcdrestore),
    .status = status_fields,
    .cel = rules,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .validate = validate_etcdrestore,
};
