/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdcluster/spec.h"

#include "support/judge.h"

/* A valid object with some spec members; RUNNING adds the stored status. */
#define EC(members) "{\"metadata\":{\"name\":\"orders\"},\"spec\":{" members "}}"
#define RUNNING(members, status)                                                                   \
    "{\"metadata\":{\"name\":\"orders\"},\"spec\":{" members "},\"status\":{" status "}}"
#define POD(members) EC("\"pod\":{" members "}")
#define CLAIM_REST(members, rest)                                                                  \
    POD("\"persistentVolumeClaimSpec\":{\"resources\":{\"requests\":{\"storage\":\"8Gi\"}"         \
        "}" members "}" rest)
#define CLAIM(members) CLAIM_REST(members, "")
#define OPTIONS(members) EC("\"options\":{" members "}")
#define TLS(members) EC("\"TLS\":{" members "}")

#define SUBDOMAIN                                                                                  \
    "must consist of lower case alphanumeric characters, '-' or '.', and must start and end with " \
    "an alphanumeric character\n"
#define KEY_TEXT                                                                                   \
    "must be a name such as example.com/name: at most 63 letters, digits, '-', '_' and '.', with " \
    "a letter or digit at both ends, after an optional DNS subdomain and '/'\n"
#define OPTION_TEXT "must be names of etcd's options, such as max-request-bytes\n"

struct row {
    const char *object, *want;
};
struct change {
    const char *object, *old, *want;
};

static void assert_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_answer(&stw_kind_etcdcluster, rows[i].object, NULL, NULL, rows[i].want);
}

static void assert_changes(const struct change *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_answer(&stw_kind_etcdcluster, rows[i].object, rows[i].old, NULL, rows[i].want);
}

static void names(void **state)
{
#define NAMED(name) "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{}}"
#define FIFTY "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
    static const struct row rows[] = {
        {NAMED("orders"), ""},
        {NAMED(FIFTY), ""},
        {NAMED(FIFTY "a"),
         "metadata.name: Invalid value: \"" FIFTY "a\": must be at most 52 characters\n"},
        {NAMED("1st"), "metadata.name: Invalid value: \"1st\": must start with a letter and hold "
                       "only a-z, 0-9 and '-', because a Service gets this name\n"},
        {NAMED("a.b"), "metadata.name: Invalid value: \"a.b\": must start with a letter and hold "
                       "only a-z, 0-9 and '-', because a Service gets this name\n"},
        {NAMED("a-"), "metadata.name: Invalid value: \"a-\": must end with a letter or a digit\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void sizes(void **state)
{
    static const struct row rows[] = {
        {EC(""), ""},
        {EC("\"size\":1"), ""},
        {EC("\"size\":7"), ""},
        {EC("\"size\":8"), "spec.size: Invalid value: 8: must be between 1 and 7\n"},
        {EC("\"size\":-1"), "spec.size: Invalid value: -1: must be between 1 and 7\n"},
        {EC("\"size\":\"3\""), "spec.size: Invalid value: \"3\": must be an integer\n"},
        {EC("\"size\":2"), "W: even size 2 tolerates no more failures than 1\n"},
        {EC("\"size\":6"), "W: even size 6 tolerates no more failures than 5\n"},
        {EC("\"size\":0"),
         "spec.size: Invalid value: 0: must be at least 1 when the cluster is made\n"},
        {EC("\"size\":0,\"storage\":{\"medium\":\"EmptyDir\"}"),
         "spec.size: Invalid value: 0: 0 (hibernate) needs persistent storage, or the data is "
         "lost\n"
         "W: spec.storage.medium EmptyDir: data is lost when all members stop\n"},
    };
    static const struct change changes[] = {
        {EC("\"size\":5"), EC("\"size\":3"), ""},
        {EC("\"size\":0"), EC("\"size\":3"),
         "spec.size: Invalid value: 0: 0 (hibernate) is not supported in this version; the last "
         "member stays until the cluster is deleted\n"},
        /* the medium latched in the status counts */
        {EC("\"size\":0"), RUNNING("\"size\":3", "\"storage\":{\"medium\":\"EmptyDir\"}"),
         "spec.size: Invalid value: 0: 0 (hibernate) needs persistent storage, or the data is "
         "lost\n"},
        {EC("\"size\":5,\"version\":\"3.5.22\""), EC("\"size\":3,\"version\":\"3.5.21\""),
         "spec.version: Forbidden: change size and version in separate steps\n"},
        /* 3 is also the default */
        {EC("\"size\":3,\"version\":\"3.5.22\""), EC("\"version\":\"3.5.21\""), ""},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
    assert_changes(changes, STW_COUNT(changes));
}

#define VERSION(v) EC("\"version\":\"" v "\"")
#define NO_VERSION(v)                                                                              \
    "spec.version: Invalid value: \"" v "\": must be a version like " STW_ETCD_VERSION "\n"
#define NO_RELEASE(v)                                                                              \
    "spec.version: Invalid value: \"" v "\": must be a release such as " STW_ETCD_VERSION          \
    ", not a pre-release or a build\n"

static void versions(void **state)
{
    static const struct row rows[] = {
        {VERSION("3.5.21"), ""},
        {VERSION("v3.5.21"), ""},
        {VERSION("3.6.0"), ""},
        {VERSION("3.5"), NO_VERSION("3.5")},
        {VERSION("latest"), NO_VERSION("latest")},
        {VERSION("3.5.21-rc.1"), NO_RELEASE("3.5.21-rc.1")},
        {VERSION("v3.7.0+local"), NO_RELEASE("v3.7.0+local")},
        {VERSION("3.7-rc.1"), NO_VERSION("3.7-rc.1")},
        {VERSION(STW_ETCD_TESTED), ""},
        {VERSION("3.7.99"), "W: etcd 3.7.99 is newer than " STW_ETCD_TESTED
                            ", the newest version that this steward was tested with\n"},
        {VERSION("4.0.0"), "W: etcd 4.0.0 is newer than " STW_ETCD_TESTED
                           ", the newest version that this steward was tested with\n"},
        {VERSION(""), NO_VERSION("")},
        {VERSION("3.5.2111111111111111111111111"), NO_VERSION("3.5.2111111111111111111111111")},
        {EC("\"version\":3.5"), "spec.version: Invalid value: 3.5: must be a string\n"},
        {VERSION("3.0.17"), "spec.version: Invalid value: \"3.0.17\": versions before 3.1 are not "
                            "supported\n"},
        {VERSION("2.3.8"), "spec.version: Invalid value: \"2.3.8\": versions before 3.1 are not "
                           "supported\n"},
        {VERSION("3.5.0"),
         "spec.version: Invalid value: \"3.5.0\": has a known data corruption bug\n"},
        {VERSION("3.5.2"),
         "spec.version: Invalid value: \"3.5.2\": has a known data corruption bug\n"},
        {VERSION("3.5.3"), ""},
        {VERSION("3.4.23"), "W: etcd 3.4 is out of support\n"},
        {VERSION("3.2.13"), "W: no new cluster is made of a version before 3.4.0: members are "
                            "added as learners, which it does not have\n"
                            "W: etcd 3.2 is out of support\n"},
        /* a single member */
        {EC("\"size\":1,\"version\":\"3.5.4\""), "W: a single member of a version before 3.5.5 can "
                                                 "lose writes that it has acknowledged\n"},
        {EC("\"size\":1,\"version\":\"3.5.5\""), ""},
        {EC("\"size\":1,\"version\":\"3.4.23\""), "W: etcd 3.4 is out of support\n"},
        {EC("\"size\":1,\"version\":\"3.4.20\""),
         "W: etcd 3.4 is out of support\n"
         "W: a single member of a version before 3.5.5 can lose writes that it has acknowledged\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

#define RUNS(spec, current)                                                                        \
    RUNNING("\"version\":\"" spec "\"", "\"currentVersion\":\"" current "\"")
#define WAITS(spec, more) RUNNING("\"version\":\"" spec "\"", "\"neverRan\":true" more)
#define UPGRADES(from, to, members)                                                                \
    RUNNING("\"version\":\"" to "\"", "\"currentVersion\":\"" from "\",\"targetVersion\":\"" to    \
                                      "\",\"memberList\":[" members "]")
#define IS(v) "{\"name\":\"a\",\"version\":\"" v "\"}"
#define OLD_LINE "W: etcd 3.4 is out of support\n"

#define GIVES_UP(line) "W: etcd drops data that only " line " supports; take a backup first\n"

static void upgrades(void **state)
{
    static const struct change changes[] = {
        /* compared with the old spec */
        {VERSION("3.5.22"), VERSION("3.5.21"), ""},
        {VERSION("3.5.21"), VERSION("v3.5.21"), ""},
        {VERSION("3.5.20"), VERSION("3.5.21"),
         "spec.version: Invalid value: \"3.5.20\": downgrade from 3.5.21 is not supported\n"},
        {VERSION("3.4.23"), VERSION("3.5.16"),
         "spec.version: Invalid value: \"3.4.23\": downgrade from 3.5.16 is not "
         "supported\n" OLD_LINE},
        {VERSION("3.5.16"), VERSION("3.4.23"), ""},
        {VERSION("3.6.0"), VERSION("3.4.23"),
         "spec.version: Invalid value: \"3.6.0\": upgrade one minor at a time: next is 3.5\n"},
        {VERSION("4.0.0"), VERSION("3.6.0"),
         "spec.version: Invalid value: \"4.0.0\": upgrade one minor at a time: next is 3.7\n"
         "W: etcd 4.0.0 is newer than " STW_ETCD_TESTED
         ", the newest version that this steward was tested with\n"},
        {VERSION("3.6.0"), VERSION("3.5.19"),
         "spec.version: Invalid value: \"3.6.0\": upgrade to 3.5.20 or newer first\n"},
        {VERSION("3.6.0"), VERSION("3.5.20"),
         "W: upgrade to 3.5.24 or newer first: members that "
         "were promoted once may come back as learners in "
         "3.6\n"},
        {VERSION("3.6.0"), VERSION("3.5.24"), ""},
        {VERSION("3.7.3"), VERSION("3.6.10"),
         "spec.version: Invalid value: \"3.7.3\": upgrade to 3.6.11 or newer first\n"},
        {VERSION("3.7.3"), VERSION("3.6.11"), ""},
        {VERSION("3.7.3"), VERSION("3.5.24"),
         "spec.version: Invalid value: \"3.7.3\": upgrade one minor at a time: next is 3.6\n"},
        {VERSION("3.5.1"), VERSION("3.4.23"),
         "spec.version: Invalid value: \"3.5.1\": has a known data corruption bug\n"},
        {VERSION("new"), VERSION("3.4.23"), NO_VERSION("new")},
        /* no cluster was made of it: there is nothing to upgrade */
        {VERSION("3.5.24"), VERSION("3.2.13"), ""},
        {VERSION("3.7.3"), VERSION("3.3.27"), ""},
        {VERSION("3.6.0"), RUNS("3.3.27", "3.3.27"),
         "spec.version: Invalid value: \"3.6.0\": upgrade one minor at a time: next is 3.4\n"},
        /* its image does not exist: no member has run, and there is no data */
        {VERSION("3.6.16"), WAITS("3.4.99", ""), ""},
        {VERSION("3.6.16"), WAITS("3.6.99", ""), ""},
        {EC("\"version\":\"3.6.16\",\"size\":5"), WAITS("3.4.99", ""), ""},
        {VERSION("3.6.16"), RUNNING("\"version\":\"3.4.99\"", "\"neverRan\":false"),
         "spec.version: Invalid value: \"3.6.16\": upgrade one minor at a time: next is 3.5\n"},
        {VERSION("3.6.16"), VERSION("3.6.99"),
         "spec.version: Invalid value: \"3.6.16\": downgrade from 3.6.99 is not supported\n"},
        {VERSION("3.6.16"), WAITS("3.4.99", ",\"clusterID\":\"abcd\""),
         "spec.version: Invalid value: \"3.6.16\": upgrade one minor at a time: next is 3.5\n"},
        {VERSION("3.6.16"), WAITS("3.4.99", ",\"currentVersion\":\"3.4.23\""),
         "spec.version: Invalid value: \"3.6.16\": upgrade one minor at a time: next is 3.5\n"},
        /* the old spec names none: its default is the same version */
        {EC("\"version\":\"3.6.16\",\"size\":5"),
         RUNNING("\"size\":3", "\"currentVersion\":\"3.6.16\""), ""},
        {EC("\"version\":\"3.6.16\",\"size\":5"),
         RUNNING("\"size\":3", "\"currentVersion\":\"3.5.24\",\"targetVersion\":\"3.6.16\""), ""},
        /* compared with the running version */
        {VERSION("3.5.16"), RUNS("3.4.23", "3.5.21"),
         "spec.version: Invalid value: \"3.5.16\": downgrade from 3.5.21 is not supported\n"},
        {VERSION("3.6.1"), RUNS("3.5.24", "3.4.23"),
         "spec.version: Invalid value: \"3.6.1\": upgrade one minor at a time: next is 3.5\n"},
        {VERSION("3.5.22"), RUNS("3.5.21", "rubbish"), ""},
        /* during an upgrade: unchanged, on to a later patch, or back if no member has moved */
        {VERSION("3.5.16"), UPGRADES("3.4.23", "3.5.16", IS("3.4.23")), ""},
        {VERSION("3.5.17"), UPGRADES("3.4.23", "3.5.16", IS("3.4.23") "," IS("3.5.16")), ""},
        {VERSION("3.5.15"), UPGRADES("3.4.23", "3.5.16", IS("3.4.23") "," IS("3.5.16")),
         "spec.version: Invalid value: \"3.5.15\": upgrade to 3.5.16 is still running\n"},
        {VERSION("3.5.15"), UPGRADES("3.4.23", "3.5.16", IS("3.4.23")), ""},
        {VERSION("3.4.23"), UPGRADES("3.4.23", "3.5.16", IS("3.4.23")), OLD_LINE},
        {VERSION("3.4.23"), UPGRADES("3.4.23", "3.5.16", IS("3.4.23") "," IS("3.5.16")),
         "spec.version: Invalid value: \"3.4.23\": upgrade to 3.5.16 is still running\n" OLD_LINE},
        {VERSION("3.4.24"), UPGRADES("3.4.23", "3.5.16", IS("3.4.23")),
         "spec.version: Invalid value: \"3.4.24\": upgrade to 3.5.16 is still running\n" OLD_LINE},
        {VERSION("3.6.0"), UPGRADES("3.4.23", "3.5.16", IS("3.5.16")),
         "spec.version: Invalid value: \"3.6.0\": upgrade to 3.5.16 is still running\n"},
        /* a downgrade */
        {VERSION("3.5.24"), VERSION("3.6.16"), GIVES_UP("3.6")},
        {VERSION("3.6.16"), RUNS("3.7.3", "3.7.3"), GIVES_UP("3.7")},
        {VERSION("3.6.10"), VERSION("3.7.3"),
         "spec.version: Invalid value: \"3.6.10\": downgrade to 3.6.11 or newer\n"},
        {VERSION("3.6.16"), UPGRADES("3.6.16", "3.5.24", IS("3.6.16") "," IS("3.5.24")), ""},
        {VERSION("3.5.25"), UPGRADES("3.6.16", "3.5.24", IS("3.6.16")), GIVES_UP("3.6")},
        {VERSION("3.5.23"), UPGRADES("3.6.16", "3.5.24", IS("3.6.16")),
         "spec.version: Invalid value: \"3.5.23\": downgrade to 3.5.24 is still running\n"},
        {VERSION("3.6.17"), UPGRADES("3.6.16", "3.5.24", IS("3.6.16")),
         "spec.version: Invalid value: \"3.6.17\": downgrade to 3.5.24 is still running\n"},
        /* a finished upgrade */
        {VERSION("3.5.17"),
         RUNNING("\"version\":\"3.5.16\"",
                 "\"currentVersion\":\"3.5.16\",\"targetVersion\":\"3.5.16\""),
         ""},
        /* left out, it does not change: the webhook sets it again */
        {EC("\"paused\":true"), VERSION("3.6.1"), ""},
        /* it was invalid before, and another field changes */
        {EC("\"version\":\"3.5.1\",\"paused\":true"), VERSION("3.5.1"),
         "W: spec.version: Invalid value: \"3.5.1\": has a known data corruption bug; not refused, "
         "because it has not changed\n"},
    };
    (void)state;
    assert_changes(changes, STW_COUNT(changes));
}

static void step_check(void **state)
{
    static const struct {
        struct stw_semver from, to;
        const char *want;
    } rows[] = {
        {{3, 4, 23}, {3, 5, 16}, ""},
        {{3, 5, 16}, {3, 5, 16}, ""},
        {{3, 5, 16}, {3, 5, 15}, "downgrade from 3.5.16 is not supported"},
        {{3, 6, 16}, {3, 6, 15}, "downgrade from 3.6.16 is not supported"},
        {{3, 5, 35}, {3, 4, 23}, "downgrade from 3.5.35 is not supported"},
        {{3, 6, 16}, {3, 5, 20}, ""},
        {{3, 6, 0}, {3, 5, 19}, "downgrade to 3.5.20 or newer"},
        {{3, 7, 3}, {3, 6, 11}, ""},
        {{3, 7, 3}, {3, 6, 10}, "downgrade to 3.6.11 or newer"},
        {{3, 7, 3}, {3, 5, 35}, "downgrade one minor at a time: next is 3.6"},
        {{4, 0, 0}, {3, 7, 0}, "downgrade from 4.0.0 is not supported"},
        {{3, 4, 23}, {3, 6, 0}, "upgrade one minor at a time: next is 3.5"},
        {{3, 5, 19}, {3, 6, 0}, "upgrade to 3.5.20 or newer first"},
        {{3, 5, 20}, {3, 6, 4}, ""},
        {{3, 6, 10}, {3, 7, 0}, "upgrade to 3.6.11 or newer first"},
        {{3, 6, 11}, {3, 7, 0}, ""},
        {{3, 7, 0}, {3, 8, 0}, ""},
        {{2, 3, 8}, {3, 0, 0}, "upgrade one minor at a time: next is 2.4"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {0};
        int rc = stw_etcd_step_check(rows[i].from, rows[i].to, &err);
        assert_int_equal(rc, *rows[i].want ? -1 : 0);
        assert_string_equal(rc ? err.text : "", rows[i].want);
    }
}

static void repository(void **state)
{
    static const struct row rows[] = {
        {EC("\"repository\":\"registry.example.com:5000/team/etcd\""), ""},
        {EC("\"repository\":\"etcd\""), ""},
        {EC("\"repository\":\"quay.io/coreos/etcd:v3.5.21\""),
         "spec.repository: Invalid value: \"quay.io/coreos/etcd:v3.5.21\": must not hold a tag; "
         "use "
         "spec.version\n"},
        {EC("\"repository\":\"etcd@sha256:0\""), "spec.repository: Invalid value: "
                                                 "\"etcd@sha256:0\": must not hold a tag; use "
                                                 "spec.version\n"},
        {EC("\"repository\":\"No Image\""),
         "spec.repository: Invalid value: \"No Image\": not a valid image reference\n"},
        {EC("\"repository\":\"\""), "spec.repository: Invalid value: \"\": must not be empty\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void pods(void **state)
{
    static const struct row rows[] = {
        {POD("\"labels\":{\"tier\":\"db\",\"example.com/a\":\"\"}"), ""},
        {POD("\"labels\":{\"app\":\"x\"}"),
         "spec.pod.labels[app]: Forbidden: reserved label app\n"},
        {POD("\"labels\":{\"etcd_cluster\":\"x\"}"),
         "spec.pod.labels[etcd_cluster]: Forbidden: reserved label etcd_cluster\n"},
        {POD("\"labels\":{\"app.kubernetes.io/name\":\"x\"}"),
         "spec.pod.labels[app.kubernetes.io/name]: Forbidden: reserved label "
         "app.kubernetes.io/name\n"},
        {POD("\"labels\":{\"a b\":\"x\"}"),
         "spec.pod.labels[a b]: Invalid value: \"a b\": " KEY_TEXT},
        {POD("\"labels\":{\"a\":\"b/c\"}"),
         "spec.pod.labels[a]: Invalid value: \"b/c\": must be at most 63 letters, digits, '-', '_' "
         "and '.', with a letter or digit at both ends\n"},
        {POD("\"labels\":{\"a\":1}"), "spec.pod.labels[a]: Invalid value: 1: must be a string\n"},
        {POD("\"annotations\":{\"app\":\"x\",\"example.com/a\":\"b c\"}"), ""},
        {POD("\"annotations\":{\"etcd.database.coreos.com/initial-cluster\":\"x\"}"),
         "spec.pod.annotations[etcd.database.coreos.com/initial-cluster]: Forbidden: reserved "
         "annotation etcd.database.coreos.com/initial-cluster\n"},
        {POD("\"annotations\":{\"-\":\"x\"}"),
         "spec.pod.annotations[-]: Invalid value: \"-\": " KEY_TEXT},
        {POD("\"nodeSelector\":{\"disk\":\"ssd\"}"), ""},
        {POD("\"nodeSelector\":{\"a\":\"b c\"}"),
         "spec.pod.nodeSelector[a]: Invalid value: \"b c\": must be at most 63 letters, digits, "
         "'-', '_' and '.', with a letter or digit at both ends\n"},
        {POD("\"affinity\":{\"x\":1},\"tolerations\":[{\"x\":1}],\"topologySpreadConstraints\":[{"
             "\"x\":1}],\"securityContext\":{\"x\":1},\"priorityClassName\":\"high\","
             "\"serviceAccountName\":\"etcd\",\"imagePullSecrets\":[{\"name\":\"a\"}]"),
         ""},
        {POD("\"priorityClassName\":\"High\""),
         "spec.pod.priorityClassName: Invalid value: \"High\": " SUBDOMAIN},
        {POD("\"resources\":{\"requests\":{\"cpu\":\"2\"},\"limits\":{\"cpu\":\"1\"}}"),
         "spec.pod.resources.requests[cpu]: Invalid value: \"2\": must be less than or equal to "
         "cpu "
         "limit\n"},
        {POD("\"antiAffinity\":true"), "W: spec.pod.antiAffinity is deprecated; use affinity or "
                                       "topologySpreadConstraints\n"},
        {POD("\"antiAffinity\":true,\"affinity\":{}"),
         "spec.pod.antiAffinity: Forbidden: set only one of antiAffinity, affinity\n"},
        {POD("\"busyboxImage\":\"busybox:1.28\",\"DNSTimeoutInSecond\":5"),
         "W: spec.pod.busyboxImage is ignored\nW: spec.pod.DNSTimeoutInSecond is ignored\n"},
        {POD("\"DNSTimeoutInSecond\":-1"),
         "spec.pod.DNSTimeoutInSecond: Invalid value: -1: must be 0 or more\n"
         "W: spec.pod.DNSTimeoutInSecond is ignored\n"},
        {POD("\"ClusterDomain\":\"cluster.local\""), ""},
        {POD("\"ClusterDomain\":\".local\""),
         "spec.pod.ClusterDomain: Invalid value: \".local\": " SUBDOMAIN},
        {POD("\"clusterDomain\":\"cluster.local\""),
         "W: unknown field \"spec.pod.clusterDomain\"; did you mean \"ClusterDomain\"?\n"},
    };
    static const struct change changes[] = {
        {POD("\"ClusterDomain\":\"b\""), POD("\"ClusterDomain\":\"a\""),
         "spec.pod.ClusterDomain: Forbidden: field is immutable (was \"a\")\n"},
        {POD("\"ClusterDomain\":\"b\""), EC(""),
         "spec.pod.ClusterDomain: Forbidden: field is immutable (was not set)\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
    assert_changes(changes, STW_COUNT(changes));
}

#define ENV(name) POD("\"etcdEnv\":[{\"name\":\"" name "\",\"value\":\"x\"}]")
#define RESERVED_FOR(name, use)                                                                    \
    {                                                                                              \
        ENV(name), "spec.pod.etcdEnv[0].name: Forbidden: " name " is set by the operator" use "\n" \
    }
#define RESERVED(name) RESERVED_FOR(name, "")

static void environment(void **state)
{
    static const struct row rows[] = {
        {ENV("ETCD_LOG_LEVEL"), ""},
        {ENV("ETCD_MAX_REQUEST_BYTES"), ""},
        {ENV("GOGC"), ""},
        {ENV("NAME"), ""},
        RESERVED("ETCD_NAME"),
        RESERVED("ETCD_DATA_DIR"),
        RESERVED("ETCD_WAL_DIR"),
        RESERVED_FOR("ETCD_CONFIG_FILE", "; use spec.options.extraArgs"),
        RESERVED("ETCD_LISTEN_PEER_URLS"),
        RESERVED("ETCD_LISTEN_METRICS_URLS"),
        RESERVED("ETCD_INITIAL_ADVERTISE_PEER_URLS"),
        RESERVED("ETCD_ADVERTISE_CLIENT_URLS"),
        RESERVED("ETCD_INITIAL_CLUSTER_STATE"),
        RESERVED_FOR("ETCD_CERT_FILE", "; use spec.TLS"),
        RESERVED_FOR("ETCD_PEER_KEY_FILE", "; use spec.TLS"),
        RESERVED_FOR("ETCD_TRUSTED_CA_FILE", "; use spec.TLS"),
        RESERVED_FOR("ETCD_AUTO_TLS", "; use spec.TLS"),
        RESERVED_FOR("ETCD_PEER_AUTO_TLS", "; use spec.TLS"),
        RESERVED_FOR("ETCD_CLIENT_CERT_AUTH", "; use spec.TLS"),
        RESERVED("ETCD_STRICT_RECONFIG_CHECK"),
        RESERVED("ETCD_PRE_VOTE"),
        RESERVED("ETCD_FORCE_NEW_CLUSTER"),
        RESERVED("ETCD_LOGGER"),
        RESERVED("ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION"),
        RESERVED("ETCD_DISCOVERY_SRV"),
        RESERVED("ETCD_ENABLE_GRPC_GATEWAY"),
        RESERVED_FOR("ETCD_QUOTA_BACKEND_BYTES", "; use spec.options.quotaBackendBytes"),
        RESERVED_FOR("ETCD_AUTO_COMPACTION_MODE", "; use spec.options.autoCompactionMode"),
        RESERVED_FOR("ETCD_SNAPSHOT_COUNT", "; use spec.options.snapshotCount"),
        RESERVED_FOR("ETCD_HEARTBEAT_INTERVAL", "; use spec.options.heartbeatIntervalMs"),
        RESERVED_FOR("ETCD_ELECTION_TIMEOUT", "; use spec.options.electionTimeoutMs"),
        RESERVED("ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK"),
        RESERVED_FOR("ETCD_FEATURE_GATES", "; use spec.options.extraArgs[feature-gates]"),
        RESERVED("INITIAL_CLUSTER"),
        RESERVED("INITIAL_CLUSTER_STATE"),
        {POD("\"etcdEnv\":[{\"name\":\"A\"},{\"name\":\"A\"}]"),
         "spec.pod.etcdEnv[1]: Duplicate value: {\"name\":\"A\"}\n"},
        {POD("\"etcdEnv\":[{\"name\":\"A\",\"value\":\"x\",\"valueFrom\":{}}]"),
         "spec.pod.etcdEnv[0].valueFrom: Invalid value: may not be specified when `value` is not "
         "empty\n"},
        {POD("\"etcdEnv\":[{}]"), "spec.pod.etcdEnv[0].name: Required value\n"},
        {POD("\"etcdEnv\":[1]"), "spec.pod.etcdEnv[0]: Invalid value: 1: must be an object\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void storage(void **state)
{
#define SMALL                                                                                      \
    " is less than three times options.quotaBackendBytes: a full database may not leave the room " \
    "to defragment it\n"
#define STORAGE(members) EC("\"storage\":{" members "}")
    static const struct row rows[] = {
        {STORAGE("\"medium\":\"Persistent\",\"size\":\"6Gi\",\"storageClassName\":\"fast\""), ""},
        {STORAGE("\"size\":\"6143Mi\""), "W: spec.storage.size" SMALL},
        {EC("\"options\":{\"quotaBackendBytes\":\"4Gi\"}"), "W: spec.storage.size" SMALL},
        {EC("\"options\":{\"quotaBackendBytes\":\"1Gi\"},\"storage\":{\"size\":\"3Gi\"}"), ""},
        {STORAGE("\"size\":\"1023Mi\""),
         "spec.storage.size: Invalid value: \"1023Mi\": must be at least 1Gi\n"},
        {STORAGE("\"size\":\"-8Gi\""),
         "spec.storage.size: Invalid value: \"-8Gi\": must be at least 1Gi\n"},
        {STORAGE("\"size\":0"), "spec.storage.size: Invalid value: 0: must be at least 1Gi\n"},
        {STORAGE("\"size\":\"big\""), "spec.storage.size: Invalid value: \"big\": must be a "
                                      "quantity such as 100m, \"0.1\" or 64Mi\n"},
        {STORAGE("\"medium\":\"Tape\""),
         "spec.storage.medium: Unsupported value: \"Tape\": supported values: \"Auto\", "
         "\"Persistent\", \"EmptyDir\"\n"},
        {STORAGE("\"medium\":\"EmptyDir\""),
         "W: spec.storage.medium EmptyDir: data is lost when all members stop\n"},
        {STORAGE("\"storageClassName\":\"Fast\""),
         "spec.storage.storageClassName: Invalid value: \"Fast\": " SUBDOMAIN},
        /* the field of the old API */
        {CLAIM(""), ""},
        {CLAIM(",\"accessModes\":[\"ReadWriteOnce\"],\"storageClassName\":\"fast\","
               "\"volumeMode\":\"Filesystem\",\"selector\":{\"x\":1}"),
         ""},
        {CLAIM(",\"accessModes\":[\"ReadWriteMany\"]"),
         "spec.pod.persistentVolumeClaimSpec.accessModes[0]: Unsupported value: "
         "\"ReadWriteMany\": supported values: \"ReadWriteOnce\", \"ReadWriteOncePod\"\n"},
        {CLAIM(",\"accessModes\":[]"),
         "spec.pod.persistentVolumeClaimSpec.accessModes: Invalid value: []: must not be empty\n"},
        {CLAIM(",\"volumeMode\":\"Block\""),
         "spec.pod.persistentVolumeClaimSpec.volumeMode: Unsupported value: \"Block\": supported "
         "values: \"Filesystem\"\n"},
        {CLAIM(",\"volumeName\":\"one\""),
         "W: unknown field \"spec.pod.persistentVolumeClaimSpec.volumeName\"; did you mean "
         "\"volumeMode\"?\n"},
        {POD("\"persistentVolumeClaimSpec\":{}"),
         "spec.pod.persistentVolumeClaimSpec.resources.requests[storage]: Required value\n"},
        {POD("\"persistentVolumeClaimSpec\":{\"resources\":{\"requests\":{\"storage\":\"100Mi\"}}"
             "}"),
         "spec.pod.persistentVolumeClaimSpec.resources.requests[storage]: Invalid value: "
         "\"100Mi\": must be at least 1Gi\n"},
        {POD("\"persistentVolumeClaimSpec\":{\"resources\":{\"requests\":{\"storage\":\"2Gi\"}}}"),
         "W: spec.pod.persistentVolumeClaimSpec.resources.requests[storage]" SMALL},
        {EC("\"storage\":{\"size\":\"8Gi\"},\"pod\":{\"persistentVolumeClaimSpec\":{\"resources\":"
            "{\"requests\":{\"storage\":\"8Gi\"}}}}"),
         "spec.pod.persistentVolumeClaimSpec: Forbidden: set only one of storage, "
         "pod.persistentVolumeClaimSpec\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void storage_stays(void **state)
{
#define GROWS                                                                                      \
    ": volumes are expanded one at a time where their StorageClass allows it; the condition "      \
    "Resizing names those that cannot be\n"
#define SIZED(n) STORAGE("\"size\":\"" n "\"")
#define ON(medium, members) RUNNING(members, "\"storage\":{\"medium\":\"" medium "\"}")
#define CLAIMED(n)                                                                                 \
    POD("\"persistentVolumeClaimSpec\":{\"resources\":{\"requests\":{\"storage\":\"" n "\"}}}")
    static const struct change changes[] = {
        {SIZED("10Gi"), SIZED("10240Mi"), ""},
        {SIZED("20Gi"), SIZED("10Gi"), "W: spec.storage.size" GROWS},
        {SIZED("20Gi"),
         RUNNING("\"storage\":{\"size\":\"10Gi\"}", "\"storage\":{\"medium\":\"EmptyDir\"}"), ""},
        {SIZED("1Gi"), STORAGE("\"size\":2147483648"),
         "spec.storage.size: Invalid value: \"1Gi\": storage cannot shrink (was 2147483648)\n"
         "W: spec.storage.size" SMALL},
        {SIZED("9Gi"), SIZED("10Gi"),
         "spec.storage.size: Invalid value: \"9Gi\": storage cannot shrink (was 10Gi)\n"},
        {SIZED("7Gi"), EC(""),
         "spec.storage.size: Invalid value: \"7Gi\": storage cannot shrink (was 8Gi)\n"},
        {CLAIMED("7Gi"), CLAIMED("8Gi"),
         "spec.pod.persistentVolumeClaimSpec.resources.requests[storage]: Invalid value: \"7Gi\": "
         "storage cannot shrink (was 8Gi)\n"},
        {CLAIMED("9Gi"), CLAIMED("8Gi"),
         "W: spec.pod.persistentVolumeClaimSpec.resources.requests[storage]" GROWS},
        {CLAIM(",\"storageClassName\":\"b\""), CLAIM(",\"storageClassName\":\"a\""),
         "spec.pod.persistentVolumeClaimSpec.storageClassName: Forbidden: field is immutable\n"},
        {CLAIM(",\"accessModes\":[\"ReadWriteOncePod\"]"),
         CLAIM(",\"accessModes\":[\"ReadWriteOnce\"]"),
         "spec.pod.persistentVolumeClaimSpec.accessModes: Forbidden: field is immutable\n"},
        {CLAIM(""), EC(""),
         "spec.pod.persistentVolumeClaimSpec: Forbidden: field is immutable (was not set)\n"},
        {EC(""), CLAIM(""),
         "spec.pod.persistentVolumeClaimSpec: Forbidden: field is immutable (was set)\n"},
        {STORAGE("\"storageClassName\":\"b\""), STORAGE("\"storageClassName\":\"a\""),
         "spec.storage.storageClassName: Forbidden: field is immutable (was \"a\")\n"},
        /* the medium may change until it is latched */
        {STORAGE("\"medium\":\"Persistent\""), EC(""), ""},
        {STORAGE("\"medium\":\"Persistent\""), ON("Persistent", ""), ""},
        {EC(""), ON("EmptyDir", "\"storage\":{\"medium\":\"EmptyDir\"}"), ""},
        {STORAGE("\"medium\":\"Persistent\""), ON("EmptyDir", ""),
         "spec.storage.medium: Forbidden: field is immutable (was \"EmptyDir\")\n"},
        {STORAGE("\"medium\":\"EmptyDir\""), ON("Persistent", ""),
         "spec.storage.medium: Forbidden: field is immutable (was \"Persistent\")\n"
         "W: spec.storage.medium EmptyDir: data is lost when all members stop\n"},
        {CLAIM(""), ON("EmptyDir", ""),
         "spec.pod.persistentVolumeClaimSpec: Forbidden: field is immutable (was \"EmptyDir\")\n"
         "spec.pod.persistentVolumeClaimSpec: Forbidden: field is immutable (was not set)\n"},
    };
    (void)state;
    assert_changes(changes, STW_COUNT(changes));
}

#define STATIC                                                                                     \
    "\"static\":{\"member\":{\"peerSecret\":\"p\",\"serverSecret\":\"s\"},\"operatorSecret\":"     \
    "\"o\"}"
#define AUTO(members) "\"auto\":{\"provider\":\"Steward\"" members "}"

static void tls(void **state)
{
    static const struct row rows[] = {
        {TLS(STATIC), ""},
        {TLS("\"static\":{\"member\":{\"peerSecret\":\"p\"}}"), ""},
        {TLS("\"static\":{\"member\":{\"serverSecret\":\"s\"}}"),
         "spec.TLS.static.operatorSecret: Required value: operatorSecret and member.serverSecret "
         "must be set together\n"},
        {TLS("\"static\":{\"operatorSecret\":\"s\"}"),
         "spec.TLS.static.member.serverSecret: Required value: operatorSecret and "
         "member.serverSecret must be set together\n"},
        {TLS("\"static\":{\"member\":{\"peerSecret\":\"P\"}}"),
         "spec.TLS.static.member.peerSecret: Invalid value: \"P\": " SUBDOMAIN},
        {TLS(AUTO("")), ""},
        {TLS(AUTO(",\"validityDays\":31,\"renewBeforeDays\":30")), ""},
        {TLS(AUTO(",\"validityDays\":30,\"renewBeforeDays\":30")),
         "spec.TLS.auto.renewBeforeDays: Invalid value: 30: must be less than validityDays\n"},
        {TLS(AUTO(",\"validityDays\":20")),
         "spec.TLS.auto.renewBeforeDays: Invalid value: 30: must be less than validityDays\n"},
        {TLS(AUTO(",\"renewBeforeDays\":0")),
         "spec.TLS.auto.renewBeforeDays: Invalid value: 0: must be between 1 and 3649\n"},
        {TLS("\"auto\":{}"), "spec.TLS.auto.provider: Required value\n"},
        {TLS("\"auto\":{\"provider\":\"CertManager\"}"),
         "spec.TLS.auto.provider: Unsupported value: \"CertManager\": supported values: "
         "\"Steward\"\n"},
        {TLS(STATIC "," AUTO("")), "spec.TLS.auto: Forbidden: set only one of static, auto\n"},
    };
#define SWITCHED "spec.TLS: Forbidden: cannot be switched on a running cluster\n"
    static const struct change changes[] = {
        {TLS(STATIC), EC(""), SWITCHED},
        {EC(""), TLS(STATIC), SWITCHED},
        {TLS(AUTO("")), EC(""), SWITCHED},
        {TLS("\"static\":{\"member\":{\"peerSecret\":\"p\"}}"), TLS(STATIC), SWITCHED},
        {TLS(AUTO("")), TLS(STATIC), ""},
        {TLS("\"static\":{\"member\":{\"peerSecret\":\"p2\",\"serverSecret\":\"s2\"},"
             "\"operatorSecret\":\"o2\"}"),
         TLS(STATIC), ""},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
    assert_changes(changes, STW_COUNT(changes));
}

static void options(void **state)
{
    static const struct row rows[] = {
        {OPTIONS("\"quotaBackendBytes\":\"64Mi\",\"autoCompactionMode\":\"revision\","
                 "\"autoCompactionRetention\":\"1000\",\"snapshotCount\":10000,"
                 "\"heartbeatIntervalMs\":200,\"electionTimeoutMs\":1000,\"extraArgs\":{\"max-"
                 "request-bytes\":\"1000000\"}"),
         ""},
        {OPTIONS("\"quotaBackendBytes\":\"63Mi\""),
         "spec.options.quotaBackendBytes: Invalid value: \"63Mi\": must be at least 64Mi\n"},
        {OPTIONS("\"quotaBackendBytes\":2147483648"), ""},
        {EC("\"options\":{\"quotaBackendBytes\":\"9Gi\"},\"storage\":{\"size\":\"27Gi\"}"),
         "W: spec.options.quotaBackendBytes is above etcd's suggested maximum of 8Gi\n"},
        {OPTIONS("\"autoCompactionMode\":\"never\""),
         "spec.options.autoCompactionMode: Unsupported value: \"never\": supported values: "
         "\"periodic\", \"revision\"\n"},
        {OPTIONS("\"autoCompactionRetention\":\"1h30m\""), ""},
        {OPTIONS("\"autoCompactionRetention\":\"0\""), ""},
        {OPTIONS("\"autoCompactionRetention\":\"h\""),
         "spec.options.autoCompactionRetention: Invalid value: \"h\": must be a duration such as "
         "1h or 30m, or a number of hours\n"},
        {OPTIONS("\"autoCompactionRetention\":\"1d\""),
         "spec.options.autoCompactionRetention: Invalid value: \"1d\": must be a duration such as "
         "1h or 30m, or a number of hours\n"},
        {OPTIONS("\"autoCompactionMode\":\"revision\""),
         "spec.options.autoCompactionRetention: Invalid value: \"1h\": must be a number of "
         "revisions when autoCompactionMode is revision\n"},
        {OPTIONS("\"electionTimeoutMs\":499"), "spec.options.electionTimeoutMs: Invalid value: "
                                               "499: must be at least five times "
                                               "heartbeatIntervalMs\n"},
        {OPTIONS("\"electionTimeoutMs\":500"), ""},
        {OPTIONS("\"heartbeatIntervalMs\":201"), "spec.options.electionTimeoutMs: Invalid value: "
                                                 "1000: must be at least five times "
                                                 "heartbeatIntervalMs\n"},
        {OPTIONS("\"electionTimeoutMs\":50001"),
         "spec.options.electionTimeoutMs: Invalid value: 50001: must be between 1 and 50000\n"},
        {OPTIONS("\"snapshotCount\":0"),
         "spec.options.snapshotCount: Invalid value: 0: must be between 1 and 100000000\n"},
        {OPTIONS("\"extraArgs\":{\"data-dir\":\"/x\"}"),
         "spec.options.extraArgs[data-dir]: Forbidden: data-dir is set by the operator\n"},
        {OPTIONS("\"extraArgs\":{\"experimental-initial-corrupt-check\":\"true\"}"),
         "spec.options.extraArgs[experimental-initial-corrupt-check]: Forbidden: "
         "experimental-initial-corrupt-check is set by the operator\n"},
        {OPTIONS("\"extraArgs\":{\"snapshot-count\":\"5\"}"),
         "spec.options.extraArgs[snapshot-count]: Forbidden: snapshot-count is set by the "
         "operator; "
         "use spec.options.snapshotCount\n"},
        {OPTIONS("\"extraArgs\":{\"feature-gates\":\"CompactHashCheck=true\"}"), ""},
        {OPTIONS("\"extraArgs\":{\"feature-gates\":\"A=true,InitialCorruptCheck=false\"}"),
         "spec.options.extraArgs[feature-gates]: Forbidden: InitialCorruptCheck is set by the "
         "operator\n"},
        {EC("\"version\":\"3.6.16\",\"options\":{\"extraArgs\":{"
            "\"experimental-memory-mlock\":\"true\"}}"),
         ""},
        {EC("\"version\":\"3.7.0\",\"options\":{\"extraArgs\":{"
            "\"experimental-memory-mlock\":\"true\"}}"),
         "spec.options.extraArgs[experimental-memory-mlock]: Forbidden: etcd 3.7 has no options "
         "that "
         "begin with experimental-, and would not start; see `etcd --help` for its name, or for "
         "its "
         "gate in feature-gates\n"},
        {OPTIONS("\"extraArgs\":{\"--log-level\":\"debug\"}"),
         "spec.options.extraArgs[--log-level]: Invalid value: \"--log-level\": must be without "
         "dashes before it\n"},
        {OPTIONS("\"extraArgs\":{\"Log Level\":\"debug\"}"),
         "spec.options.extraArgs: Invalid value: \"Log Level\": " OPTION_TEXT},
        {OPTIONS("\"extraArgs\":{\"\":\"debug\"}"),
         "spec.options.extraArgs: Invalid value: \"\": " OPTION_TEXT},
        {OPTIONS("\"extraArgs\":{\"log-level\":1}"),
         "spec.options.extraArgs[log-level]: Invalid value: 1: must be a string\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

static void keeping(void **state)
{
    static const struct row rows[] = {
        {EC("\"failover\":{\"enabled\":false,\"unhealthySeconds\":60,\"maxPerHour\":10},"
            "\"quorumLossPolicy\":\"Manual\",\"upgrade\":{\"pauseBetweenSeconds\":0},"
            "\"pdb\":{\"enabled\":false},\"volumeRetention\":{\"whenDeleted\":\"Delete\","
            "\"whenScaled\":\"Retain\"},\"progressDeadlineSeconds\":60,\"paused\":true"),
         ""},
        {EC("\"failover\":{\"unhealthySeconds\":59,\"maxPerHour\":11}"),
         "spec.failover.unhealthySeconds: Invalid value: 59: must be between 60 and 86400\n"
         "spec.failover.maxPerHour: Invalid value: 11: must be between 1 and 10\n"},
        {EC("\"quorumLossPolicy\":\"Guess\""), "spec.quorumLossPolicy: Unsupported value: "
                                               "\"Guess\": supported values: \"Manual\"\n"},
        {EC("\"upgrade\":{\"pauseBetweenSeconds\":-1}"),
         "spec.upgrade.pauseBetweenSeconds: Invalid value: -1: must be between 0 and 86400\n"},
        {EC("\"volumeRetention\":{\"whenDeleted\":\"Keep\"}"),
         "spec.volumeRetention.whenDeleted: Unsupported value: \"Keep\": supported values: "
         "\"Retain\", \"Delete\"\n"},
        {EC("\"progressDeadlineSeconds\":59"),
         "spec.progressDeadlineSeconds: Invalid value: 59: must be between 60 and 86400\n"},
        /* planned fields, still unknown */
        {EC("\"defrag\":{},\"upgrade\":{\"requireBackupWithinSeconds\":1},\"TLS\":{\"auto\":{"
            "\"provider\":\"Steward\",\"issuerRef\":{}}}"),
         "W: unknown field \"spec.TLS.auto.issuerRef\"\n"
         "W: unknown field \"spec.upgrade.requireBackupWithinSeconds\"\n"
         "W: unknown field \"spec.defrag\"\n"},
    };
    (void)state;
    assert_rows(rows, STW_COUNT(rows));
}

/* --- lookups */

static unsigned looks;

static int no_secret(void *ctx, const char *ns, const char *name, const char *key,
                     struct stw_secret_facts *ret)
{
    (void)ctx, (void)key;
    looks++;
    assert_string_equal(ns, "shop");
    *ret = (struct stw_secret_facts){.secret_there = !stw_streq(name, "p"),
                                     .key_there = !stw_streq(key, "server-ca.crt")};
    return stw_streq(name, "unknown") ? -1 : 0;
}

static void secrets(void **state)
{
    static const struct stw_lookup lookup = {.secret = no_secret};
    static const struct stw_env env = {.lookup = &lookup};
    (void)state;
    assert_answer(&stw_kind_etcdcluster, TLS(STATIC), NULL, &env,
                  "W: Secret \"p\" not found; the members start when it appears\n"
                  "W: Secret \"s\" has no key \"server-ca.crt\"; the members start when it "
                  "appears\n");
    /* only newly chosen Secrets are looked up */
    looks = 0;
    assert_answer(&stw_kind_etcdcluster, TLS(STATIC), TLS(STATIC), &env, "");
    assert_int_equal(looks, 0);
    assert_answer(&stw_kind_etcdcluster,
                  TLS("\"static\":{\"member\":{\"peerSecret\":\"unknown\"}}"), NULL, &env, "");
    /* a refused object causes no lookup */
    looks = 0;
    assert_answer(&stw_kind_etcdcluster, TLS(STATIC "," AUTO("")), NULL, &env,
                  "spec.TLS.auto: Forbidden: set only one of static, auto\n");
    assert_int_equal(looks, 0);
}

#define FORCED(value, status)                                                                      \
    "{\"metadata\":{\"name\":\"orders\",\"annotations\":{\"etcd.database.coreos.com/"              \
    "force-new-cluster\":\"" value "\"}},\"spec\":{},\"status\":{" status "}}"
#define LOST(truth) "\"conditions\":[{\"type\":\"QuorumLost\",\"status\":\"" truth "\"}]"
#define IGNORED                                                                                    \
    "W: annotation etcd.database.coreos.com/force-new-cluster ignored: cluster has quorum\n"

static void forcing(void **state)
{
    static const struct change changes[] = {
        {FORCED("orders-a", ""), EC(""), IGNORED},
        {FORCED("orders-a", LOST("False")), RUNNING("", LOST("False")), IGNORED},
        {FORCED("orders-a", LOST("True")), RUNNING("", LOST("True")), ""},
        /* the warning comes once */
        {FORCED("orders-a", ""), FORCED("orders-a", ""), ""},
        {FORCED("orders-b", ""), FORCED("orders-a", ""), IGNORED},
    };
    (void)state;
    assert_changes(changes, STW_COUNT(changes));
}

static void deleting(void **state)
{
#define DELETES "\"volumeRetention\":{\"whenDeleted\":\"Delete\"}"
    static const struct row rows[] = {
        {EC(""), ""},
        {EC(DELETES), "W: volumeRetention.whenDeleted is Delete: the data goes with the cluster, "
                      "and there is no verified backup of it\n"},
        {RUNNING(DELETES, "\"lastBackup\":{\"verified\":false}"),
         "W: volumeRetention.whenDeleted is Delete: the data goes with the cluster, and there is "
         "no "
         "verified backup of it\n"},
        {RUNNING(DELETES, "\"lastBackup\":{\"verified\":true}"), ""},
        {RUNNING("", "\"storage\":{\"medium\":\"EmptyDir\"}"),
         "W: storage.medium is EmptyDir: the data goes with the cluster, and there is no verified "
         "backup of it\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct question q;
        ask(&q, &stw_kind_etcdcluster, rows[i].object, NULL, NULL);
        q.a.operation = STW_DELETE;
        q.a.old_object = q.a.object;
        q.a.object = (struct stw_json){0};
        stw_autofree char *got = answer(&q.a);
        assert_string_equal(got, rows[i].want);
        ask_done(&q);
    }
}

/* --- defaults */

#define REST                                                                                       \
    "/spec/repository=\"quay.io/coreos/etcd\"\n/spec/paused=false\n"                               \
    "/spec/quorumLossPolicy=\"Manual\"\n/spec/progressDeadlineSeconds=600\n"

static void assert_update_defaults(const char *object, const char *old, const char *want)
{
    struct question q;
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
    struct stw_defaults d = {.add = list_default, .ctx = &out};
    ask(&q, &stw_kind_etcdcluster, object, old, NULL);
    stw_kind_default(&q.a, &d);
    assert_string_equal(stw_buf_str(&out), want);
    ask_done(&q);
}

static void defaulting(void **state)
{
    (void)state;
    assert_defaults(&stw_kind_etcdcluster, EC(""),
                    "/spec/size=3\n" REST "/spec/version=\"" STW_ETCD_VERSION "\"\n");
    assert_defaults(&stw_kind_etcdcluster, EC("\"size\":1,\"version\":\"v3.4.23\""), REST);
    assert_defaults(&stw_kind_etcdcluster,
                    EC("\"size\":1,\"version\":\"3.4.23\",\"storage\":{},\"TLS\":{},\"pod\":{},"
                       "\"failover\":null"),
                    "/spec/repository=\"quay.io/coreos/etcd\"\n/spec/paused=false\n"
                    "/spec/pod/antiAffinity=false\n/spec/pod/DNSTimeoutInSecond=0\n"
                    "/spec/storage/medium=\"Auto\"\n/spec/storage/size=\"8Gi\"\n"
                    "/spec/quorumLossPolicy=\"Manual\"\n/spec/progressDeadlineSeconds=600\n");
    /* a version that was removed from the spec stays that of the cluster, whichever is the default
     * now */
    assert_update_defaults(EC("\"size\":1"), EC("\"size\":1,\"version\":\"3.4.23\""),
                           REST "/spec/version=\"3.4.23\"\n");
    assert_update_defaults(EC("\"size\":1"), RUNNING("", "\"currentVersion\":\"3.4.22\""),
                           REST "/spec/version=\"3.4.22\"\n");
    /* another version than the one that an upgrade leads to would be refused, and a status may have
     * any text */
    assert_update_defaults(
        EC("\"size\":1"), RUNNING("", "\"currentVersion\":\"3.4.23\",\"targetVersion\":\"3.5.16\""),
        REST "/spec/version=\"3.5.16\"\n");
    assert_update_defaults(EC("\"size\":1"), RUNNING("", "\"currentVersion\":\"rubbish\""), REST);
    assert_update_defaults(EC("\"size\":1"), EC(""), REST);
    assert_update_defaults(EC("\"size\":1"), EC("\"version\":7"), REST);
}

static void decoding(void **state)
{
    struct question q;
    struct stw_etcdcluster c;
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    (void)state;
    ask(&q, &stw_kind_etcdcluster,
        EC("\"version\":\"v3.4.23\",\"TLS\":{" AUTO("") "},\"pod\":{\"ClusterDomain\":\"a.b\"}"),
        NULL, NULL);
    assert_int_equal(stw_kind_decode(q.a.kind, stw_json_get(q.a.object, "spec"), arena, &c, NULL),
                     0);
    assert_int_equal(c.size, 3);
    assert_string_equal(c.version, "3.4.23");
    assert_string_equal(c.repository, STW_ETCDCLUSTER_REPOSITORY);
    assert_string_equal(c.pod.cluster_domain, "a.b");
    assert_string_equal(c.storage.medium, "Auto");
    assert_null(c.storage.storage_class);
    assert_null(c.tls.static_.member.peer_secret);
    assert_string_equal(c.tls.auto_.provider, "Steward");
    assert_int_equal(c.tls.auto_.validity_days, 90);
    assert_int_equal(c.tls.auto_.renew_before_days, 30);
    assert_string_equal(c.options.auto_compaction_mode, "periodic");
    assert_string_equal(c.options.auto_compaction_retention, "1h");
    assert_int_equal(c.options.election_timeout_ms, 0);
    assert_true(c.failover.enabled);
    assert_int_equal(c.failover.unhealthy_s, 300);
    assert_int_equal(c.failover.max_per_hour, 2);
    assert_int_equal(c.upgrade.pause_between_s, 30);
    assert_true(c.pdb.enabled);
    assert_string_equal(c.volume_retention.when_deleted, "Retain");
    assert_string_equal(c.volume_retention.when_scaled, "Delete");
    assert_int_equal(c.progress_deadline_s, 600);
    ask_done(&q);
    /* without `auto` there is no own CA */
    ask(&q, &stw_kind_etcdcluster, EC(""), NULL, NULL);
    assert_int_equal(stw_kind_decode(q.a.kind, stw_json_get(q.a.object, "spec"), arena, &c, NULL),
                     0);
    assert_null(c.tls.auto_.provider);
    assert_string_equal(c.version, STW_ETCD_VERSION);
    ask_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),      cmocka_unit_test(sizes),
        cmocka_unit_test(versions),   cmocka_unit_test(upgrades),
        cmocka_unit_test(step_check), cmocka_unit_test(repository),
        cmocka_unit_test(pods),       cmocka_unit_test(environment),
        cmocka_unit_test(storage),    cmocka_unit_test(storage_stays),
        cmocka_unit_test(tls),        cmocka_unit_test(options),
        cmocka_unit_test(keeping),    cmocka_unit_test(secrets),
        cmocka_unit_test(forcing),    cmocka_unit_test(deleting),
        cmocka_unit_test(defaulting), cmocka_unit_test(decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
