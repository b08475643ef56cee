/* SPDX-License-Identifier: Apache-2.0
 *
 * EtcdBackup and EtcdRestore. */
#include "kinds/etcdrestore/spec.h"

#include "kinds/common/product.h"
#include "kinds/kinds.h"
#include "schema/zones.h"
#include "support/judge.h"

#define OBJECT(members) "{\"metadata\":{\"name\":\"nightly\"},\"spec\":{" members "}}"
#define REF "\"clusterRef\":{\"name\":\"orders\"}"
#define PATH "\"path\":\"bucket/orders\""
#define S3 "\"storageType\":\"S3\",\"s3\":{" PATH "}"
#define EB(members) OBJECT(REF "," S3 members)
#define FROM(members) OBJECT(members "," S3)
#define INTO(members) OBJECT(REF "," members)
#define STORE(members) INTO("\"storageType\":\"S3\",\"s3\":{" members "}")
#define VOLUME(members)                                                                            \
    INTO("\"storageType\":\"PVC\",\"pvc\":{\"claimName\":\"backups\"," members "}")
#define POLICY(members) EB(",\"backupPolicy\":{" members "}")

#define SUBDOMAIN                                                                                  \
    "must consist of lower case alphanumeric characters, '-' or '.', and must start and end with " \
    "an alphanumeric character\n"
#define ONE_SOURCE "set exactly one of etcdEndpoints, clusterRef\n"
#define PLAIN                                                                                      \
    "W: spec.s3.endpoint is plain HTTP: others on the network can read and change what is "        \
    "stored\n"

struct row {
    const char *object, *want;
};
struct change {
    const char *object, *old, *want;
};

static void assert_rows(const struct stw_kind *kind, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_answer(kind, rows[i].object, NULL, NULL, rows[i].want);
}

static void assert_changes(const struct stw_kind *kind, const struct change *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_answer(kind, rows[i].object, rows[i].old, NULL, rows[i].want);
}

/* --- EtcdBackup */

static void sources(void **state)
{
#define URLS(list) FROM("\"etcdEndpoints\":[" list "]")
#define URL_TEXT "must be a URL such as https://host:2379\n"
    static const struct row rows[] = {
        {EB(""), ""},
        {URLS("\"http://orders-client:2379\""), ""},
        {URLS("\"http://a:2379\",\"http://b:2379/\""), ""},
        {OBJECT(S3), "spec.clusterRef: Required value: " ONE_SOURCE},
        {FROM(REF ",\"etcdEndpoints\":[\"http://a:2379\"]"),
         "spec.clusterRef: Forbidden: " ONE_SOURCE},
        {FROM("\"clusterRef\":{}"), "spec.clusterRef.name: Required value\n"
                                    "spec.clusterRef: Required value: " ONE_SOURCE},
        {FROM("\"clusterRef\":{\"name\":\"Orders\"}"),
         "spec.clusterRef.name: Invalid value: \"Orders\": " SUBDOMAIN},
        {URLS(""), "spec.etcdEndpoints: Invalid value: []: must not be empty\n"},
        {URLS("\"a:2379\""), "spec.etcdEndpoints[0]: Invalid value: \"a:2379\": " URL_TEXT},
        {URLS("\"http://\""), "spec.etcdEndpoints[0]: Invalid value: \"http://\": " URL_TEXT},
        {URLS("\"http://a/x\""), "spec.etcdEndpoints[0]: Invalid value: \"http://a/x\": " URL_TEXT},
        {URLS("\"http://a?x\""), "spec.etcdEndpoints[0]: Invalid value: \"http://a?x\": " URL_TEXT},
        {URLS("\"http://a b\""), "spec.etcdEndpoints[0]: Invalid value: \"http://a b\": " URL_TEXT},
        {URLS("\"unix:///a\""), "spec.etcdEndpoints[0]: Invalid value: \"unix:///a\": " URL_TEXT},
        {URLS("7"), "spec.etcdEndpoints[0]: Invalid value: 7: must be a string\n"},
        /* a password is never shown */
        {URLS("\"http://root:secret@a:2379\""),
         "spec.etcdEndpoints[0]: Invalid value: must not hold a user or a password\n"},
        {URLS("\"http://a:2379\",\"https://b:2379\""),
         "spec.etcdEndpoints[1]: Invalid value: must have the same scheme as the first endpoint\n"},
        {URLS("\"https://a:2379\""),
         "spec.clientTLSSecret: Required value: https endpoints need a client certificate\n"},
        {FROM("\"etcdEndpoints\":[\"https://a:2379\"],\"clientTLSSecret\":\"tls\""), ""},
        {EB(",\"clientTLSSecret\":\"T\",\"authSecret\":\"A\""),
         "spec.clientTLSSecret: Invalid value: \"T\": " SUBDOMAIN
         "spec.authSecret: Invalid value: \"A\": " SUBDOMAIN},
    };
    static const struct change changes[] = {
        {URLS("\"http://b:2379\""), URLS("\"http://a:2379\""),
         "spec.etcdEndpoints: Forbidden: field is immutable (was [\"http://a:2379\"])\n"},
        {FROM("\"clusterRef\":{\"name\":\"b\"}"), FROM("\"clusterRef\":{\"name\":\"a\"}"),
         "spec.clusterRef.name: Forbidden: field is immutable (was \"a\")\n"},
        {EB(",\"clientTLSSecret\":\"b\",\"authSecret\":\"b\""), EB(""), ""},
    };
    (void)state;
    assert_rows(&stw_kind_etcdbackup, rows, STW_COUNT(rows));
    assert_changes(&stw_kind_etcdbackup, changes, STW_COUNT(changes));
}

static void stores(void **state)
{
#define OTHER(type)                                                                                \
    {                                                                                              \
        INTO("\"storageType\":\"" type "\""),                                                      \
            "spec.storageType: Unsupported value: \"" type                                         \
            "\": not supported in this version; use S3 with an S3-compatible endpoint\n"           \
    }
#define BAD_PATH(path)                                                                             \
    {                                                                                              \
        STORE("\"path\":\"" path "\""),                                                            \
            "spec.s3.path: Invalid value: \"" path "\": must be \"bucket/key\"\n"                  \
    }
#define OUTSIDE(path)                                                                              \
    {                                                                                              \
        VOLUME("\"path\":\"" path "\""),                                                           \
            "spec.pvc.path: Invalid value: \"" path "\": must stay inside the volume\n"            \
    }
    static const struct row rows[] = {
        {INTO("\"s3\":{" PATH "}"), "spec.storageType: Required value\n"},
        OTHER("ABS"),
        OTHER("GCS"),
        OTHER("OSS"),
        {INTO("\"storageType\":\"Tape\""), "spec.storageType: Unsupported value: \"Tape\": "
                                           "supported values: \"S3\", \"PVC\"\n"},
        {INTO("\"storageType\":\"S3\""),
         "spec.s3: Required value: s3 is required when storageType is S3\n"},
        {INTO("\"storageType\":\"PVC\""),
         "spec.pvc: Required value: pvc is required when storageType is PVC\n"},
        {EB(",\"pvc\":{\"claimName\":\"a\",\"path\":\"b\"}"),
         "spec.pvc: Forbidden: may not be set when storageType is S3\n"},
        {INTO("\"storageType\":\"PVC\",\"s3\":{" PATH "},\"pvc\":{\"claimName\":\"a\",\"path\":"
              "\"b\"}"),
         "spec.s3: Forbidden: may not be set when storageType is PVC\n"},
        /* S3 */
        {STORE(PATH ",\"awsSecret\":\"aws\",\"endpoint\":\"https://s3.example.com:9000\","
                    "\"forcePathStyle\":true,\"region\":\"eu-central-1\",\"sse\":\"aws:kms\""),
         ""},
        {STORE("\"path\":\"my.bucket/a/b/c.db\""), ""},
        BAD_PATH("bucket"),
        BAD_PATH("bucket/"),
        BAD_PATH("/bucket/key"),
        BAD_PATH("s3://bucket/key"),
        BAD_PATH("bucket//key"),
        BAD_PATH("buc ket/key"),
        BAD_PATH("bucket/k ey"),
        BAD_PATH("../key"),
        BAD_PATH("b"),
        {STORE("\"awsSecret\":\"aws\""),
         "spec.s3.path: Required value\n"
         "spec.s3: Required value: s3 is required when storageType is S3\n"},
        {STORE(PATH ",\"awsSecret\":\"A\""), "spec.s3.awsSecret: Invalid value: \"A\": " SUBDOMAIN},
        {STORE(PATH ",\"endpoint\":\"http://minio:9000\""), PLAIN},
        {STORE(PATH ",\"endpoint\":\"minio:9000\""),
         "spec.s3.endpoint: Invalid value: \"minio:9000\": must be a URL such as "
         "https://s3.example.com:9000\n"},
        {STORE(PATH ",\"endpoint\":\"https://key:secret@minio\""),
         "spec.s3.endpoint: Invalid value: must not hold a user or a password\n"},
        {STORE(PATH ",\"region\":\"a b\""), "spec.s3.region: Invalid value: \"a b\": must consist "
                                            "of letters, digits, '-' and '_'\n"},
        {STORE(PATH ",\"sse\":\"none\""), "spec.s3.sse: Unsupported value: \"none\": supported "
                                          "values: \"AES256\", \"aws:kms\"\n"},
        /* volumes */
        {VOLUME("\"path\":\"etcd/orders\""), ""},
        {VOLUME("\"path\":\"..a/b..\""), ""},
        OUTSIDE("/etcd"),
        OUTSIDE(".."),
        OUTSIDE("../etcd"),
        OUTSIDE("a/../b"),
        OUTSIDE("a/.."),
        OUTSIDE("./a"),
        OUTSIDE("a//b"),
        OUTSIDE("a b"),
        {INTO("\"storageType\":\"PVC\",\"pvc\":{}"),
         "spec.pvc.claimName: Required value\n"
         "spec.pvc.path: Required value\n"
         "spec.pvc: Required value: pvc is required when storageType is PVC\n"},
        /* verification */
        {EB(",\"verify\":\"Hash\""), ""},
        {EB(",\"verify\":\"None\""),
         "W: spec.verify None: it is not known whether such backups can be restored\n"},
        {EB(",\"verify\":\"Restore\""), "spec.verify: Unsupported value: \"Restore\": supported "
                                        "values: \"None\", \"Hash\"\n"},
        {EB(",\"compression\":\"Gzip\""), "W: unknown field \"spec.compression\"\n"},
    };
    (void)state;
    assert_rows(&stw_kind_etcdbackup, rows, STW_COUNT(rows));
}

static void policies(void **state)
{
#define INTERVAL_TEXT "must be 0 or at least 60\n"
#define NEEDS "needs schedule or backupIntervalInSecond\n"
    static const struct row rows[] = {
        {POLICY(""), ""},
        {POLICY("\"timeoutInSecond\":0,\"backupIntervalInSecond\":60,\"maxBackups\":3,"
                "\"maxAgeSeconds\":86400,\"suspend\":true"),
         ""},
        {POLICY("\"schedule\":\"30 2 * * *\",\"timeZone\":\"Europe/Berlin\",\"maxBackups\":3,"
                "\"startingDeadlineSeconds\":10"),
         ""},
        {POLICY("\"timeoutInSecond\":-1"),
         "spec.backupPolicy.timeoutInSecond: Invalid value: -1: must be 0 or more\n"},
        {POLICY("\"backupIntervalInSecond\":59"),
         "spec.backupPolicy.backupIntervalInSecond: Invalid value: 59: " INTERVAL_TEXT},
        {POLICY("\"backupIntervalInSecond\":-1"),
         "spec.backupPolicy.backupIntervalInSecond: Invalid value: -1: " INTERVAL_TEXT},
        {POLICY("\"backupIntervalInSecond\":315360001"),
         "spec.backupPolicy.backupIntervalInSecond: Invalid value: 315360001: must be at most "
         "315360000\n"},
        {POLICY("\"backupIntervalInSecond\":60,\"schedule\":\"@daily\""),
         "spec.backupPolicy.schedule: Forbidden: set only one of backupIntervalInSecond, "
         "schedule\n"},
        {POLICY("\"schedule\":\"30 24 * * *\""), "spec.backupPolicy.schedule: Invalid value: \"30 "
                                                 "24 * * *\": field 2 (hour): 24 is outside "
                                                 "0-23\n"},
        {POLICY("\"schedule\":\"@every 1h\""),
         "spec.backupPolicy.schedule: Invalid value: \"@every 1h\": field 1: \"@every\" is not one "
         "of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly\n"},
        {POLICY("\"schedule\":\"0 0 31 2 *\""), "spec.backupPolicy.schedule: Invalid value: \"0 0 "
                                                "31 2 *\": never matches any date\n"},
        {POLICY("\"schedule\":\"\""),
         "spec.backupPolicy.schedule: Invalid value: \"\": must not be empty\n"},
        {POLICY("\"schedule\":\"* * * * *\""),
         "W: spec.backupPolicy.schedule: backups more often than every 5 minutes\n"},
        {POLICY("\"schedule\":\"@daily\",\"timeZone\":\"Local\""),
         "spec.backupPolicy.timeZone: Invalid value: \"Local\": unknown time zone\n"},
        {POLICY("\"schedule\":\"@daily\",\"startingDeadlineSeconds\":9"),
         "spec.backupPolicy.startingDeadlineSeconds: Invalid value: 9: must be between 10 and "
         "86400\n"},
        {POLICY("\"maxBackups\":1,\"maxAgeSeconds\":1"),
         "spec.backupPolicy.maxBackups: Forbidden: " NEEDS
         "spec.backupPolicy.maxAgeSeconds: Forbidden: " NEEDS},
        {POLICY("\"maxBackups\":-1"),
         "spec.backupPolicy.maxBackups: Invalid value: -1: must be 0 or more\n"},
        {POLICY("\"suspend\":true"),
         "W: spec.backupPolicy.suspend: the one backup is made when this is false\n"},
    };
    static const struct change changes[] = {
        {POLICY("\"backupIntervalInSecond\":120"), POLICY("\"backupIntervalInSecond\":60"), ""},
        {POLICY("\"schedule\":\"@daily\""), POLICY("\"backupIntervalInSecond\":60"), ""},
        {POLICY("\"backupIntervalInSecond\":60"), POLICY(""),
         "spec.backupPolicy.backupIntervalInSecond: Forbidden: field is immutable (was 0)\n"},
        {POLICY("\"backupIntervalInSecond\":0"), POLICY("\"backupIntervalInSecond\":60"),
         "spec.backupPolicy.backupIntervalInSecond: Forbidden: field is immutable (was 60)\n"},
        {POLICY("\"schedule\":\"@daily\""), EB(""),
         "spec.backupPolicy.schedule: Forbidden: field is immutable (was not set)\n"},
        {EB(""), POLICY("\"schedule\":\"@daily\""),
         "spec.backupPolicy.schedule: Forbidden: field is immutable (was set)\n"},
    };
    (void)state;
    assert_rows(&stw_kind_etcdbackup, rows, STW_COUNT(rows));
    assert_changes(&stw_kind_etcdbackup, changes, STW_COUNT(changes));
}

/* The destination of a one-shot backup is immutable. */
static void places(void **state)
{
#define BY_CLOCK ",\"backupPolicy\":{\"backupIntervalInSecond\":60}"
    static const struct change changes[] = {
        {STORE("\"path\":\"b/c\""), STORE("\"path\":\"b/a\""),
         "spec.s3.path: Forbidden: field is immutable (was \"b/a\")\n"},
        {STORE(PATH ",\"endpoint\":\"http://a\""), STORE(PATH),
         "spec.s3.endpoint: Forbidden: field is immutable (was not set)\n" PLAIN},
        /* an explicit default is not a change; other credentials do not change the destination */
        {STORE(PATH ",\"region\":\"us-east-1\",\"awsSecret\":\"b\""),
         STORE(PATH ",\"awsSecret\":\"a\""), ""},
        {VOLUME("\"path\":\"b\""), VOLUME("\"path\":\"a\""),
         "spec.pvc.path: Forbidden: field is immutable (was \"a\")\n"},
        {INTO("\"storageType\":\"S3\",\"s3\":{\"path\":\"b/b\"}" BY_CLOCK),
         INTO("\"storageType\":\"S3\",\"s3\":{\"path\":\"b/a\"}" BY_CLOCK), ""},
        {INTO("\"storageType\":\"PVC\",\"pvc\":{\"claimName\":\"a\",\"path\":\"b\"}" BY_CLOCK),
         INTO(S3 BY_CLOCK), "spec.storageType: Forbidden: field is immutable (was \"S3\")\n"},
    };
    (void)state;
    assert_changes(&stw_kind_etcdbackup, changes, STW_COUNT(changes));
}

/* --- EtcdRestore */

#define CLUSTER "\"etcdCluster\":{\"name\":\"nightly\"}"
#define BACKUP "\"backupRef\":{\"name\":\"nightly\"}"
#define ER(members) OBJECT(CLUSTER "," members)
#define TEMPLATE(members) ER(BACKUP ",\"template\":{" members "}")

static void restore_sources(void **state)
{
#define ONE_OF "set exactly one of s3, pvc, backupRef\n"
    static const struct row rows[] = {
        {ER(BACKUP), ""},
        {ER("\"backupRef\":{\"name\":\"nightly\",\"uri\":\"s3://b/k\"}"), ""},
        {ER("\"backupStorageType\":\"S3\",\"s3\":{" PATH ",\"awsSecret\":\"aws\"}"), ""},
        {ER("\"s3\":{" PATH "}"), ""},
        {ER("\"pvc\":{\"claimName\":\"a\",\"path\":\"b\"}"), ""},
        {ER("\"mode\":\"New\""), "spec.backupRef: Required value: " ONE_OF},
        {ER("\"s3\":{" PATH "}," BACKUP), "spec.backupRef: Forbidden: " ONE_OF},
        {ER("\"s3\":{" PATH "},\"pvc\":{\"claimName\":\"a\",\"path\":\"b\"}," BACKUP),
         "spec.pvc: Forbidden: " ONE_OF "spec.backupRef: Forbidden: " ONE_OF},
        {ER("\"backupStorageType\":\"S3\""),
         "spec.s3: Required value: s3 is required when backupStorageType is S3\n"},
        {ER("\"backupStorageType\":\"PVC\",\"s3\":{" PATH "}"),
         "spec.s3: Forbidden: may not be set when backupStorageType is PVC\n"
         "spec.pvc: Required value: pvc is required when backupStorageType is PVC\n"},
        {ER("\"backupStorageType\":\"GCS\",\"s3\":{" PATH "}"),
         "spec.backupStorageType: Unsupported value: \"GCS\": not supported in this version; use "
         "S3 with an S3-compatible endpoint\n"},
        {ER("\"backupRef\":{\"name\":\"a\",\"uri\":\"/x\"}"),
         "spec.backupRef.uri: Invalid value: \"/x\": must be the uri of an artifact in the "
         "EtcdBackup's status\n"},
        {ER("\"backupRef\":{\"name\":\"A\"}"),
         "spec.backupRef.name: Invalid value: \"A\": " SUBDOMAIN},
        /* the cluster */
        {OBJECT(BACKUP), "spec.etcdCluster: Required value\n"},
        {OBJECT(BACKUP ",\"etcdCluster\":{}"), "spec.etcdCluster.name: Required value\n"},
        {OBJECT(BACKUP ",\"etcdCluster\":{\"name\":\"1st\"}"),
         "spec.etcdCluster.name: Invalid value: \"1st\": must start with a letter and hold only "
         "a-z, 0-9 and '-', because a Service gets this name\n"
         "W: metadata.name differs from spec.etcdCluster.name; the cluster gets the latter name\n"},
        {OBJECT(BACKUP ",\"etcdCluster\":{\"name\":"
                       "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyza\"}"),
         "spec.etcdCluster.name: Invalid value: "
         "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyza\": must be at most 52 "
         "characters\n"
         "W: metadata.name differs from spec.etcdCluster.name; the cluster gets the latter name\n"},
        /* the rest */
        {ER(BACKUP ",\"mode\":\"Replace\""),
         "spec.mode: Unsupported value: \"Replace\": supported values: \"New\"\n"},
        {ER(BACKUP ",\"bumpRevision\":-1"),
         "spec.bumpRevision: Invalid value: -1: must be 0 or more\n"},
        {ER(BACKUP ",\"keepOldVolumesSeconds\":-1"),
         "spec.keepOldVolumesSeconds: Invalid value: -1: must be 0 or more\n"},
    };
#define FIXED(field, was) "spec." field ": Forbidden: field is immutable (was " was ")\n"
    static const struct change changes[] = {
        {ER(BACKUP ",\"keepOldVolumesSeconds\":1"), ER(BACKUP),
         "W: spec.keepOldVolumesSeconds is ignored: in mode New no volume becomes an old one\n"},
        {ER(BACKUP ",\"keepOldVolumesSeconds\":0"), ER(BACKUP), ""},
        {ER(BACKUP ",\"mode\":\"New\",\"bumpRevision\":1000000000,\"markCompacted\":true"),
         ER(BACKUP), ""},
        {ER(BACKUP ",\"bumpRevision\":5,\"markCompacted\":false,\"template\":{}"), ER(BACKUP),
         FIXED("template", "not set") FIXED("bumpRevision", "not set")
             FIXED("markCompacted", "not set")},
        {ER("\"backupRef\":{\"name\":\"b\"}"), ER("\"backupRef\":{\"name\":\"a\"}"),
         FIXED("backupRef.name", "\"a\"")},
        {ER("\"s3\":{\"path\":\"b/b\"}"), ER("\"s3\":{\"path\":\"b/a\"}"),
         FIXED("s3.path", "\"b/a\"")},
        {ER("\"pvc\":{\"claimName\":\"a\",\"path\":\"b\"}"),
         ER("\"pvc\":{\"claimName\":\"a\",\"path\":\"a\"}"), FIXED("pvc.path", "\"a\"")},
        {ER("\"s3\":{" PATH ",\"awsSecret\":\"b\"}"), ER("\"s3\":{" PATH ",\"awsSecret\":\"a\"}"),
         ""},
    };
    (void)state;
    assert_rows(&stw_kind_etcdrestore, rows, STW_COUNT(rows));
    assert_changes(&stw_kind_etcdrestore, changes, STW_COUNT(changes));
}

/* A template is validated like the spec that it becomes. */
static void templates(void **state)
{
#define TOO_OLD                                                                                    \
    "W: etcd before 3.5.10 can neither raise revisions nor mark them compacted: clients that "     \
    "watch must be restarted\n"
    static const struct row rows[] = {
        {TEMPLATE(""), ""},
        {TEMPLATE("\"size\":1,\"version\":\"3.5.21\",\"storage\":{\"size\":\"8Gi\"}"), ""},
        {TEMPLATE("\"size\":9,\"version\":\"3.5.1\",\"repository\":\"etcd:3\",\"pod\":{\"labels\":{"
                  "\"app\":\"x\"}}"),
         "spec.template.version: Invalid value: \"3.5.1\": has a known data corruption bug\n"
         "spec.template.size: Invalid value: 9: must be between 1 and 7\n"
         "spec.template.repository: Invalid value: \"etcd:3\": must not hold a tag; use "
         "spec.version\n"
         "spec.template.pod.labels[app]: Forbidden: reserved label app\n" TOO_OLD},
        {TEMPLATE("\"size\":4"), "W: even size 4 tolerates no more failures than 3\n"},
        {TEMPLATE("\"size\":0"), "spec.template.size: Invalid value: 0: must be at least 1 when "
                                 "the cluster is made\n"},
        {TEMPLATE("\"storage\":{\"medium\":\"EmptyDir\"}"),
         "spec.template.storage.medium: Forbidden: restore needs persistent storage\n"
         "W: spec.template.storage.medium EmptyDir: data is lost when all members stop\n"},
        {TEMPLATE("\"version\":\"3.5.10\""), ""},
        {TEMPLATE("\"version\":\"3.5.9\""), TOO_OLD},
        {ER(BACKUP ",\"bumpRevision\":0,\"markCompacted\":false,\"template\":{\"version\":"
                   "\"3.5.9\"}"),
         ""},
        {TEMPLATE("\"sice\":3"),
         "W: unknown field \"spec.template.sice\"; did you mean \"size\"?\n"},
        {ER(BACKUP ",\"template\":[]"), "spec.template: Invalid value: []: must be an object\n"},
    };
    (void)state;
    assert_rows(&stw_kind_etcdrestore, rows, STW_COUNT(rows));
}

/* --- lookups */

static int has_some(void *ctx, const char *plural, const char *key)
{
    const char *there = ctx;
    assert_true(stw_streq(plural, "etcdclusters") || stw_streq(plural, "etcdbackups"));
    if (stw_streq(key, "shop/unknown"))
        return -1;
    return strstr(there, key) && strstr(there, plural) ? 1 : 0;
}

static int no_secret(void *ctx, const char *ns, const char *name, const char *key,
                     struct stw_secret_facts *ret)
{
    (void)ctx, (void)ns;
    *ret = (struct stw_secret_facts){.secret_there = !stw_streq(name, "none"),
                                     .key_there = !stw_streq(key, "password")};
    return 0;
}

static void look_ups(void **state)
{
    static char there[] = "etcdclusters shop/nightly etcdbackups shop/nightly", nothing[] = "";
    const struct stw_lookup full = {.ctx = there, .has = has_some, .secret = no_secret};
    const struct stw_lookup empty = {.ctx = nothing, .has = has_some, .secret = no_secret};
    const struct stw_env rich = {.lookup = &full}, poor = {.lookup = &empty};
    const struct stw_kind *eb = &stw_kind_etcdbackup, *er = &stw_kind_etcdrestore;
    (void)state;
    /* the source of a backup, and its Secrets */
    assert_answer(eb, FROM("\"clusterRef\":{\"name\":\"nightly\"}"), NULL, &rich, "");
    assert_answer(eb, FROM("\"clusterRef\":{\"name\":\"unknown\"}"), NULL, &poor, "");
    assert_answer(eb, EB(""), NULL, &poor,
                  "W: EtcdCluster \"orders\" not found; backups are made when it is there\n");
    assert_answer(eb, EB(""), EB(",\"authSecret\":\"a\""), &poor, "");
    assert_answer(eb,
                  FROM("\"clusterRef\":{\"name\":\"nightly\"},\"clientTLSSecret\":\"none\","
                       "\"authSecret\":\"some\""),
                  NULL, &rich,
                  "W: Secret \"none\" not found; backups are made when it appears\n"
                  "W: Secret \"some\" has no key \"password\"; backups are made when it appears\n");
    assert_answer(eb, STORE(PATH ",\"awsSecret\":\"none\""), STORE(PATH), &rich,
                  "W: Secret \"none\" not found; backups are made when it appears\n");
    /* what a restore is made from, and whether there is a cluster already */
    assert_answer(er, ER(BACKUP), NULL, &poor,
                  "spec.template: Required value: no EtcdCluster \"nightly\" to copy; give "
                  "template\n");
    assert_answer(er, ER(BACKUP ",\"template\":{}"), NULL, &poor,
                  "W: EtcdBackup \"nightly\" not found; the restore begins when it is there\n");
    assert_answer(er, ER(BACKUP), NULL, &rich,
                  "W: EtcdCluster \"nightly\" exists and is not touched: nothing is restored until "
                  "it is deleted\n");
    assert_answer(er, ER("\"s3\":{" PATH ",\"awsSecret\":\"none\"},\"template\":{}"), NULL, &poor,
                  "W: Secret \"none\" not found; the restore begins when it appears\n");
    /* updates do not look it up again */
    assert_answer(er, ER(BACKUP), ER(BACKUP ",\"keepOldVolumesSeconds\":5"), &poor, "");
}

static int no_zone(const char *name, size_t max, char **ret, size_t *ret_len, struct stw_error *err)
{
    (void)max, (void)ret, (void)ret_len;
    return stw_fail(err, STW_ERR_NOT_FOUND, "no zone %s", name);
}

static void time_zones(void **state)
{
    struct stw_zones *zones = stw_zones_create(no_zone);
    const struct stw_product product = {.zones = zones};
    const struct stw_env env = {.product = &product};
    (void)state;
    assert_non_null(zones);
    assert_answer(&stw_kind_etcdbackup,
                  POLICY("\"schedule\":\"@daily\",\"timeZone\":\"Europe/Nowhere\""), NULL, &env,
                  "spec.backupPolicy.timeZone: Invalid value: \"Europe/Nowhere\": unknown time "
                  "zone: this program has no time zones but UTC, as there are none in "
                  "/usr/share/zoneinfo (Debian's package tzdata)\n");
    stw_zones_destroy(zones);
}

/* --- defaults and decoding */

static void defaulting(void **state)
{
    (void)state;
    assert_defaults(&stw_kind_etcdbackup, EB(",\"backupPolicy\":{}"),
                    "/spec/s3/forcePathStyle=false\n/spec/s3/region=\"us-east-1\"\n"
                    "/spec/backupPolicy/timeoutInSecond=60\n"
                    "/spec/backupPolicy/backupIntervalInSecond=0\n"
                    "/spec/backupPolicy/timeZone=\"Etc/UTC\"\n"
                    "/spec/backupPolicy/startingDeadlineSeconds=3600\n"
                    "/spec/backupPolicy/suspend=false\n/spec/backupPolicy/maxBackups=0\n"
                    "/spec/backupPolicy/maxAgeSeconds=0\n/spec/verify=\"Hash\"\n");
    assert_defaults(&stw_kind_etcdrestore, ER(BACKUP),
                    "/spec/mode=\"New\"\n/spec/bumpRevision=1000000000\n"
                    "/spec/markCompacted=true\n");
    /* the defaults of the schema; the version is set when the cluster is created */
    assert_defaults(&stw_kind_etcdrestore, TEMPLATE("\"size\":1,\"storage\":{}"),
                    "/spec/template/repository=\"quay.io/coreos/etcd\"\n"
                    "/spec/template/paused=false\n/spec/template/storage/medium=\"Auto\"\n"
                    "/spec/template/storage/size=\"8Gi\"\n"
                    "/spec/template/quorumLossPolicy=\"Manual\"\n"
                    "/spec/template/progressDeadlineSeconds=600\n"
                    "/spec/mode=\"New\"\n/spec/bumpRevision=1000000000\n"
                    "/spec/markCompacted=true\n");
}

static void decoding(void **state)
{
    struct question q;
    struct stw_etcdbackup b;
    struct stw_etcdrestore r;
    struct stw_etcdcluster c;
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    (void)state;
    ask(&q, &stw_kind_etcdbackup, EB(""), NULL, NULL);
    assert_int_equal(stw_kind_decode(q.a.kind, stw_json_get(q.a.object, "spec"), arena, &b, NULL),
                     0);
    assert_string_equal(b.cluster, "orders");
    assert_string_equal(b.s3.path, "bucket/orders");
    assert_string_equal(b.s3.region, "us-east-1");
    assert_null(b.s3.endpoint);
    assert_null(b.s3.sse);
    assert_null(b.pvc.claim);
    assert_null(b.policy.schedule);
    assert_int_equal(b.policy.timeout_s, 60);
    assert_int_equal(b.policy.starting_deadline_s, 3600);
    assert_string_equal(b.policy.time_zone, "Etc/UTC");
    assert_string_equal(b.verify, "Hash");
    ask_done(&q);
    ask(&q, &stw_kind_etcdrestore, TEMPLATE("\"size\":5,\"version\":\"v3.5.16\""), NULL, NULL);
    assert_int_equal(stw_kind_decode(q.a.kind, stw_json_get(q.a.object, "spec"), arena, &r, NULL),
                     0);
    assert_string_equal(r.cluster, "nightly");
    assert_string_equal(r.backup.name, "nightly");
    assert_null(r.backup.uri);
    assert_null(r.s3.path);
    assert_string_equal(r.mode, "New");
    assert_int_equal(r.bump_revision, 1000000000);
    assert_true(r.mark_compacted);
    assert_int_equal(r.keep_old_volumes_s, 0);
    assert_int_equal(stw_kind_decode(&stw_kind_etcdcluster, r.template, arena, &c, NULL), 0);
    assert_int_equal(c.size, 5);
    assert_string_equal(c.version, "3.5.16");
    ask_done(&q);
}

static void test_request_for_an_object_of_one_backup_is_warned_of(void **state)
{
    static const char once[] =
        "{\"metadata\":{\"name\":\"nightly\",\"annotations\":{\"steward.dev/backup-at\":\"x\"}},"
        "\"spec\":{\"clusterRef\":{\"name\":\"orders\"},\"storageType\":\"PVC\",\"pvc\":{"
        "\"claimName\":\"c\",\"path\":\"p\"}%s}}";
    const struct stw_env env = {.op = &stw_operator_steward};
    char text[sizeof(once) + 80];
    (void)state;
    (void)snprintf(text, sizeof(text), once, "");
    assert_answer(&stw_kind_etcdbackup, text, NULL, &env,
                  "W: annotation steward.dev/backup-at: ignored, because this object makes one "
                  "backup only; create another one\n");
    (void)snprintf(text, sizeof(text), once, ",\"backupPolicy\":{\"schedule\":\"@daily\"}");
    assert_answer(&stw_kind_etcdbackup, text, NULL, &env, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_for_an_object_of_one_backup_is_warned_of),
        cmocka_unit_test(sources),
        cmocka_unit_test(stores),
        cmocka_unit_test(policies),
        cmocka_unit_test(places),
        cmocka_unit_test(templates),
        cmocka_unit_test(restore_sources),
        cmocka_unit_test(look_ups),
        cmocka_unit_test(time_zones),
        cmocka_unit_test(defaulting),
        cmocka_unit_test(decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
