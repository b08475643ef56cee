/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of an EtcdCluster in CEL.  Each stands for a C rule in spec_rules.c, spec_pod.c,
 * spec_storage.c or spec_version.c, and has its message.  EtcdRestore uses them for its template. */
#include "kinds/etcdcluster/spec_rules.h"
#include "schema/core.h"
#include "schema/names.h"

const struct stw_cel stw_ec_cel_version[] = {
    {"!self.matches(r'^v?([0-2]|3\\.0)\\.')", "versions before 3.1 are not supported"},
    {"!self.matches(r'^v?3\\.5\\.[0-2]$')", "has a known data corruption bug"},
    {0},
};

const struct stw_cel stw_ec_cel_repository[] = {
    {"!self.matches(r'@|:[^/]*$')", "must not hold a tag; use spec.version"},
    {"self.matches(r'@|:[^/]*$') || self.matches(r'^([a-zA-Z0-9.-]+(:[0-9]+)?/|\\[[0-9a-fA-F:]+\\]"
     "(:[0-9]+)?/)?[a-z0-9]+([-._/]+[a-z0-9]+)*$')",
     "not a valid image reference"},
    {0},
};

/* --- storage */

#define HAS_POD(object) "has(" object ".pod)"
#define HAS_CLAIM(object) "(has(" object ".pod) && has(" object ".pod.persistentVolumeClaimSpec))"
#define CLAIM(object) object ".pod.persistentVolumeClaimSpec"
#define HAS_CLAIM_SIZE(object)                                                                     \
    "(" HAS_CLAIM(object) " && has(" CLAIM(object) ".resources) && has(" CLAIM(                    \
        object) ".resources.requests) && 'storage' in " CLAIM(object) ".resources.requests)"
#define CLAIM_SIZE(object) CLAIM(object) ".resources.requests['storage']"
/* The size of a cluster without a claim. */
#define SIZE(object) "(has(" object ".storage) ? string(" object ".storage.size) : '8Gi')"

#define AT_LEAST(value, least)                                                                     \
    "(!isQuantity(" value ") || !quantity(" value ").isLessThan(quantity('" least "')))"
#define NOT_SMALLER(now, was)                                                                      \
    "(!isQuantity(" now ") || !isQuantity(" was ") || !quantity(" now ").isLessThan(quantity(" was \
    ")))"
#define MEDIUM(object)                                                                             \
    "(" HAS_CLAIM(object) " ? 'Persistent' : has(" object ".storage) ? " object                    \
                          ".storage.medium : 'Auto')"
#define LATCHED                                                                                    \
    "has(oldObject.status) && has(oldObject.status.storage) && "                                   \
    "has(oldObject.status.storage.medium) && oldObject.status.storage.medium != ''"

#define CLAIM_FIELD(object, field) HAS_CLAIM(object) " && has(" CLAIM(object) "." field ")"
#define FIXED_IN_CLAIM(field)                                                                      \
    {                                                                                              \
        .at = "pod.persistentVolumeClaimSpec." field, .type = STW_CEL_TRANSITION,                  \
        .code = STW_FORBIDDEN, .message = "field is immutable",                                    \
        .rule = "!" HAS_CLAIM("self") " || !" HAS_CLAIM("oldSelf") " || (has(" CLAIM(              \
            "self") "." field                                                                      \
                    ") ? has(" CLAIM("oldSelf") "." field ") && " CLAIM(                           \
                        "self") "." field                                                          \
                                " == " CLAIM("oldSelf") "." field                                  \
                                                        " : !has(" CLAIM("oldSelf") "." field      \
                                                                                    "))",          \
    }

/* --- TLS */

#define HAS_TLS(object, what) "(has(" object ".TLS) && has(" object ".TLS." what "))"
#define HAS_STATIC(object, what)                                                                   \
    "(" HAS_TLS(object, "static") " && has(" object ".TLS.static." what "))"
#define HAS_MEMBER(object, what)                                                                   \
    "(" HAS_STATIC(object, "member") " && has(" object ".TLS.static.member." what "))"
#define PEER(object) "(" HAS_TLS(object, "auto") " || " HAS_MEMBER(object, "peerSecret") ")"
#define CLIENT(object) "(" HAS_TLS(object, "auto") " || " HAS_MEMBER(object, "serverSecret") ")"

/* --- options */

/* A reserved option, as a regular expression. */
#define RE_WHOLE(text) "^(experimental-)?" text "$|"
#define RE_BEGIN(text) "^(experimental-)?" text "|"
#define RE_WITHIN(text) text "|"
#define RE_END(text) text "$|"
#define RE_OPTION(match, text, use) RE_##match(text)
#define RE_RESERVED STW_ETCD_RESERVED_OPTIONS(RE_OPTION) "^$"

#define HAS_OPTIONS "has(self.options)"
#define HAS_ARGS "has(self.options) && has(self.options.extraArgs)"
#define OF_ARGS(code_, condition, text)                                                            \
    {                                                                                              \
        .at = "options.extraArgs", .type = STW_CEL_ENTRIES, .code = (code_), .message = (text),    \
        .rule = "!(" HAS_ARGS ") || self.options.extraArgs.all(k, " condition ")",                 \
    }

/* --- variables */

#define HAS_ENV "has(self.pod) && has(self.pod.etcdEnv)"

/* --- versions */

#define RE_VERSION "^v?[0-9]{1,5}\\.[0-9]{1,5}\\.[0-9]{1,5}$"
#define PLAIN(version) version ".replace('v', '')"
#define PART(version, i) "int(" PLAIN(version) ".split('.')[" i "])"
#define MINOR(version) PART(version, "1")
#define PATCH(version) PART(version, "2")
#define KNOWS(field)                                                                               \
    "(has(oldObject.status) && has(oldObject.status." field ") && size(oldObject.status." field    \
    ") <= 20 && oldObject.status." field ".matches(r'" RE_VERSION "'))"
#define CURRENT "oldObject.status.currentVersion"
#define TARGET "oldObject.status.targetVersion"
#define HAVE_VERSIONS                                                                              \
    "has(self.version) && has(oldSelf.version) && self.version.matches(r'" RE_VERSION              \
    "') && oldSelf.version.matches(r'" RE_VERSION                                                  \
    "') && " PLAIN("self.version") " != " PLAIN("oldSelf.version")
#define MOVES                                                                                      \
    "(" KNOWS("currentVersion") " && " KNOWS("targetVersion") " && " PLAIN(CURRENT) " != " PLAIN(  \
        TARGET) ")"
#define FROM "(" KNOWS("currentVersion") " ? " CURRENT " : oldSelf.version)"
#define OLDER(a, b)                                                                                \
    "(" MINOR(a) " < " MINOR(b) " || (" MINOR(a) " == " MINOR(b) " && " PATCH(a) " < " PATCH(b) "))"
/* No cluster is made of a version before 3.4; or no member has run. */
#define NEVER_RAN                                                                                  \
    "(!" KNOWS("currentVersion") " && (" MINOR(                                                    \
        "oldSelf.version") " < 4 || (has(oldObject.status) && has(oldObject.status.neverRan) && "  \
                           "oldObject.status.neverRan && !has(oldObject.status.clusterID))))"
/* Some member already runs a newer version. */
#define HAS_MOVED                                                                                  \
    "(has(oldObject.status.memberList) && oldObject.status.memberList.exists(m, has(m.version) "   \
    "&& "                                                                                          \
    "m.version.matches(r'" RE_VERSION "') && " OLDER(CURRENT, "m.version") "))"
/* A step from a version that all members run. */
#define STEP(condition, text)                                                                      \
    {                                                                                              \
        .at = "version", .type = STW_CEL_TRANSITION, .code = STW_INVALID, .message = (text),       \
        .rule = "!(" HAVE_VERSIONS ") || " MOVES " || " NEVER_RAN " || " condition,                \
    }

const struct stw_cel_rule stw_ec_cel[] = {
    {.at = "storage.size",
     .code = STW_INVALID,
     .rule = "!has(self.storage) || " HAS_CLAIM("self") " || " AT_LEAST("string(self.storage.size)",
                                                                        "1Gi"),
     .message = "must be at least 1Gi"},
    {.at = "pod.persistentVolumeClaimSpec",
     .type = STW_CEL_ENTRIES,
     .code = STW_REQUIRED,
     .rule = "!" HAS_CLAIM("self") " || " HAS_CLAIM_SIZE("self"),
     .message = "resources.requests.storage is required"},
    {.at = "pod.persistentVolumeClaimSpec.resources.requests",
     .type = STW_CEL_ENTRIES,
     .code = STW_INVALID,
     .rule = "!" HAS_CLAIM_SIZE("self") " || " AT_LEAST("string(" CLAIM_SIZE("self") ")", "1Gi"),
     .message = "must be at least 1Gi"},
    {.at = "pod.persistentVolumeClaimSpec",
     .type = STW_CEL_ENTRIES,
     .code = STW_FORBIDDEN,
     .rule = "!" HAS_CLAIM("self") " || !has(self.storage)",
     .message = "set only one of storage, pod.persistentVolumeClaimSpec"},
    {.at = "options.quotaBackendBytes",
     .code = STW_INVALID,
     .rule = "!" HAS_OPTIONS " || " AT_LEAST("string(self.options.quotaBackendBytes)", "64Mi"),
     .message = "must be at least 64Mi"},
    {.at = "options.autoCompactionRetention",
     .code = STW_INVALID,
     .rule = "!" HAS_OPTIONS " || self.options.autoCompactionMode != 'revision' || "
             "self.options.autoCompactionRetention.matches('^[0-9]+$')",
     .message = "must be a number of revisions when autoCompactionMode is revision"},
    {.at = "options.autoCompactionRetention",
     .code = STW_INVALID,
     .rule = "!" HAS_OPTIONS " || self.options.autoCompactionMode == 'revision' || "
             "self.options.autoCompactionRetention.matches('^[0-9]+([hms][0-9]+)*[hms]?$')",
     .message = "must be a duration such as 1h or 30m, or a number of hours"},
    {.at = "options.electionTimeoutMs",
     .code = STW_INVALID,
     .rule = "!" HAS_OPTIONS " || (has(self.options.electionTimeoutMs) ? "
             "self.options.electionTimeoutMs : 1000) >= 5 * "
             "(has(self.options.heartbeatIntervalMs) ? self.options.heartbeatIntervalMs : 100)",
     .message = "must be at least five times heartbeatIntervalMs"},
    OF_ARGS(STW_INVALID, "k.matches('^[a-z0-9-]+$')",
            "must be names of etcd's options, such as max-request-bytes"),
    OF_ARGS(STW_INVALID, "!k.startsWith('-')", "must be without dashes before it"),
    OF_ARGS(STW_FORBIDDEN, "!k.matches('" RE_RESERVED "')", "is set by the operator"),
    {.at = "options.extraArgs",
     .type = STW_CEL_ENTRIES,
     .code = STW_FORBIDDEN,
     .rule = "!(" HAS_ARGS ") || !('feature-gates' in self.options.extraArgs) || "
             "!self.options.extraArgs['feature-gates'].contains('InitialCorruptCheck')",
     .message = "InitialCorruptCheck is set by the operator"},
    {.at = "options.extraArgs",
     .type = STW_CEL_ENTRIES,
     .code = STW_FORBIDDEN,
     .rule = "!(" HAS_ARGS ") || !has(self.version) || "
             "!self.version.matches(r'^v?3\\.([7-9]|[1-9][0-9]+)\\.') || "
             "self.options.extraArgs.all(k, !k.startsWith('experimental-'))",
     .message = "this etcd has no options that begin with experimental-, and would not start"},
    STW_EC_CEL_AGENT_POD,
    {.at = "pod.etcdEnv",
     .type = STW_CEL_ENTRIES,
     .code = STW_FORBIDDEN,
     .rule = "!(" HAS_ENV
             ") || self.pod.etcdEnv.all(e, !has(e.name) || !(e.name in ['INITIAL_CLUSTER', "
             "'INITIAL_CLUSTER_STATE']) && (!e.name.startsWith('ETCD_') || "
             "!e.name.lowerAscii().replace('etcd_', '', 1).replace('_', '-')"
             ".matches('^feature-gates$|" RE_RESERVED "')))",
     .message = "is set by the operator"},
    STW_CEL_ENV(HAS_ENV, "self.pod.etcdEnv", "pod.etcdEnv"),
    {.at = "pod.antiAffinity",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.pod) || !self.pod.antiAffinity || !has(self.pod.affinity)",
     .message = "set only one of antiAffinity, affinity"},
    {.at = "TLS.static.operatorSecret",
     .code = STW_REQUIRED,
     .rule = "!" HAS_MEMBER("self", "serverSecret") " || " HAS_STATIC("self", "operatorSecret"),
     .message = "operatorSecret and member.serverSecret must be set together"},
    {.at = "TLS.static.member.serverSecret",
     .code = STW_REQUIRED,
     .rule = "!" HAS_STATIC("self", "operatorSecret") " || " HAS_MEMBER("self", "serverSecret"),
     .message = "operatorSecret and member.serverSecret must be set together"},
    {.at = "TLS.auto",
     .code = STW_FORBIDDEN,
     .rule = "!" HAS_TLS("self", "auto") " || !(" HAS_STATIC(
         "self",
         "operatorSecret") " || " HAS_MEMBER("self",
                                             "serverSecret") " || " HAS_MEMBER("self",
                                                                               "peerSecret") ")",
     .message = "set only one of static, auto"},
    {.at = "TLS.auto.renewBeforeDays",
     .code = STW_INVALID,
     .rule =
         "!" HAS_TLS("self", "auto") " || "
                                     "self.TLS.auto.renewBeforeDays < self.TLS.auto.validityDays",
     .message = "must be less than validityDays"},

    /* changes */
    {.at = "TLS",
     .type = STW_CEL_TRANSITION,
     .code = STW_FORBIDDEN,
     .rule = PEER("self") " == " PEER("oldSelf") " && " CLIENT("self") " == " CLIENT("oldSelf"),
     .message = "cannot be switched on a running cluster"},
    {.at = "storage.size",
     .type = STW_CEL_TRANSITION,
     .code = STW_INVALID,
     .rule = HAS_CLAIM("self") " || " HAS_CLAIM("oldSelf") " || " NOT_SMALLER(SIZE("self"),
                                                                              SIZE("oldSelf")),
     .message = "storage cannot shrink"},
    {.at = "pod.persistentVolumeClaimSpec.resources.requests",
     .type = STW_CEL_TRANSITION,
     .code = STW_INVALID,
     .rule = "!" HAS_CLAIM_SIZE("self") " || !" HAS_CLAIM_SIZE("oldSelf") " || " NOT_SMALLER(
         "string(" CLAIM_SIZE("self") ")", "string(" CLAIM_SIZE("oldSelf") ")"),
     .message = "storage cannot shrink"},
    {.at = "storage.medium",
     .type = STW_CEL_TRANSITION,
     .code = STW_FORBIDDEN,
     .rule = "!(" LATCHED ") || " MEDIUM("self") " == " MEDIUM("oldSelf") " || " MEDIUM(
         "self") " in ['Auto', oldObject.status.storage.medium]",
     .message = "field is immutable"},
    {.at = "pod.persistentVolumeClaimSpec",
     .type = STW_CEL_TRANSITION,
     .code = STW_FORBIDDEN,
     .rule = HAS_CLAIM("self") " || !" HAS_CLAIM("oldSelf"),
     .message = "field is immutable (was set)"},
    {.at = "pod.persistentVolumeClaimSpec",
     .type = STW_CEL_TRANSITION,
     .code = STW_FORBIDDEN,
     .rule = "!" HAS_CLAIM("self") " || " HAS_CLAIM("oldSelf"),
     .message = "field is immutable (was not set)"},
    FIXED_IN_CLAIM("accessModes"),
    FIXED_IN_CLAIM("selector"),
    FIXED_IN_CLAIM("storageClassName"),
    FIXED_IN_CLAIM("volumeMode"),
    {.at = "version",
     .type = STW_CEL_TRANSITION,
     .code = STW_FORBIDDEN,
     .rule = "!(" HAVE_VERSIONS ") || " NEVER_RAN " || self.size == oldSelf.size",
     .message = "change size and version in separate steps"},
    STEP("(" MINOR("self.version") " <= " MINOR(FROM) " + 1)", "upgrade one minor at a time"),
    STEP("(" MINOR("self.version") " >= " MINOR(FROM) " - 1)", "downgrade one minor at a time"),
    STEP("(" MINOR("self.version") " > " MINOR(FROM) " || (" MINOR("self.version") " == " MINOR(
             FROM) " ? " PATCH("self.version") " >= " PATCH(FROM) " : " MINOR(FROM) " >= 6))",
         "downgrade is not supported"),
    STEP("(" MINOR("self.version") " != 6 || " MINOR(FROM) " != 5 || " PATCH(FROM) " >= 20)",
         "upgrade to 3.5.20 or newer first"),
    STEP("(" MINOR("self.version") " != 7 || " MINOR(FROM) " != 6 || " PATCH(FROM) " >= 11)",
         "upgrade to 3.6.11 or newer first"),
    STEP("(" MINOR("self.version") " != 6 || " MINOR(FROM) " != 7 || " PATCH(
             "self.version") " >= 11)",
         "downgrade to 3.6.11 or newer"),
    STEP("(" MINOR("self.version") " != 5 || " MINOR(FROM) " != 6 || " PATCH(
             "self.version") " >= 20)",
         "downgrade to 3.5.20 or newer"),
    {.at = "version",
     .type = STW_CEL_TRANSITION,
     .code = STW_INVALID,
     .rule =
         "!(" HAVE_VERSIONS ") || !" MOVES
         " || " PLAIN("self.version") " == " PLAIN(TARGET) " || (" PLAIN(
             "self."
             "version") " == " PLAIN(CURRENT) " ? " OLDER(TARGET,
                                                          CURRENT) " || !" HAS_MOVED
                                                                   " : " MINOR(
                                                                       "self."
                                                                       "version") " == " MINOR(TARGET) " && (!" OLDER("self.version",
                                                                                                                      TARGET) " || "
                                                                                                                              "(!" OLDER(
                                                                                                                                  TARGET,
                                                                                                                                  CURRENT) " && "
                                                                                                                                           "!" HAS_MOVED
                                                                                                                                           ")))",
     .message = "an upgrade or downgrade is still running"},
    {0},
};
