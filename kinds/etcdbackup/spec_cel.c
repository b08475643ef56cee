/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of an EtcdBackup, and of where snapshots are stored, in CEL.  Each stands for a C rule
 * in spec_rules.c or spec_store.c, and has its message. */
#include "kinds/etcdbackup/spec_rules.h"

#include "kinds/etcdcluster/spec_rules.h"
#include "schema/core.h"
#include "schema/names.h"

const struct stw_cel stw_etcd_cel_path[] = {
    {"self.matches(r'^[a-zA-Z0-9_-][a-zA-Z0-9._-]*/[^/\\x00-\\x20\\x7f][^\\x00-\\x20\\x7f]*$')",
     "must be \"bucket/key\""},
    {0},
};

const struct stw_cel stw_etcd_cel_region[] = {
    {"self.matches('^[a-zA-Z0-9_-]*$')", "must consist of letters, digits, '-' and '_'"}, {0}};

const struct stw_cel stw_etcd_cel_folder[] = {
    {"!self.matches(r'^/|[\\x00-\\x20\\x7f]|//|(^|/)\\.\\.?(/|$)')", "must stay inside the volume"},
    {0},
};

#define HAS_POLICY(object) "has(" object ".backupPolicy)"
#define BY_CLOCK(object)                                                                           \
    "(" HAS_POLICY(object) " && (" object                                                          \
                           ".backupPolicy.backupIntervalInSecond != 0 || has(" object              \
                           ".backupPolicy.schedule)))"
#define INTERVAL(object)                                                                           \
    "(" HAS_POLICY(object) " ? " object ".backupPolicy.backupIntervalInSecond : 0)"
#define KEEPS(field)                                                                               \
    {                                                                                              \
        .at = "backupPolicy." field, .code = STW_FORBIDDEN,                                        \
        .rule =                                                                                    \
            "!" HAS_POLICY("self") " || self.backupPolicy." field " <= 0 || " BY_CLOCK("self"),    \
        .message = "needs schedule or backupIntervalInSecond",                                     \
    }
#define OF_ENDPOINTS(condition, text)                                                              \
    {                                                                                              \
        .at = "etcdEndpoints", .type = STW_CEL_ENTRIES, .code = STW_INVALID,                       \
        .rule = "!has(self.etcdEndpoints) || self.etcdEndpoints.all(e, " condition ")",            \
        .message = (text),                                                                         \
    }

const struct stw_cel_rule stw_etcdbackup_cel[] = {
    {.at = "clusterRef",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.etcdEndpoints) || !has(self.clusterRef)",
     .message = "set exactly one of etcdEndpoints, clusterRef"},
    {.at = "clusterRef",
     .code = STW_REQUIRED,
     .rule = "has(self.etcdEndpoints) || has(self.clusterRef)",
     .message = "set exactly one of etcdEndpoints, clusterRef"},
    OF_ENDPOINTS("!e.contains('@')", "must not hold a user or a password"),
    OF_ENDPOINTS("e.contains('@') || e.matches(r'" STW_RE_ETCD_URL "')",
                 "must be a URL such as https://host:2379"),
    OF_ENDPOINTS("e.startsWith('https://') == self.etcdEndpoints[0].startsWith('https://')",
                 "must have the same scheme as the first endpoint"),
    {.at = "clientTLSSecret",
     .code = STW_REQUIRED,
     .rule = "!has(self.etcdEndpoints) || self.etcdEndpoints.size() == 0 || "
             "!self.etcdEndpoints[0].startsWith('https://') || has(self.clientTLSSecret)",
     .message = "https endpoints need a client certificate"},
    STW_CEL_STORES("storageType", "false"),
    STW_CEL_S3_ENDPOINT,
    {.at = "backupPolicy.backupIntervalInSecond",
     .code = STW_INVALID,
     .rule = "!" HAS_POLICY("self") " || self.backupPolicy.backupIntervalInSecond == 0 || "
                                    "self.backupPolicy.backupIntervalInSecond >= 60",
     .message = "must be 0 or at least 60"},
    {.at = "backupPolicy.schedule",
     .code = STW_FORBIDDEN,
     .rule = "!" HAS_POLICY("self") " || self.backupPolicy.backupIntervalInSecond == 0 || "
                                    "!has(self.backupPolicy.schedule)",
     .message = "set only one of backupIntervalInSecond, schedule"},
    KEEPS("maxBackups"),
    KEEPS("maxAgeSeconds"),
    STW_EC_CEL_AGENT_POD,

    /* changes */
    {.at = "backupPolicy.backupIntervalInSecond",
     .type = STW_CEL_TRANSITION,
     .code = STW_FORBIDDEN,
     .rule = BY_CLOCK("self") " == " BY_CLOCK("oldSelf") " || " INTERVAL("self") " == " INTERVAL(
         "oldSelf"),
     .message = "field is immutable"},
    {.at = "backupPolicy.schedule",
     .type = STW_CEL_TRANSITION,
     .code = STW_FORBIDDEN,
     .rule = BY_CLOCK("self") " == " BY_CLOCK("oldSelf") " || " INTERVAL("self") " != " INTERVAL(
         "oldSelf"),
     .message = "field is immutable"},
    STW_CEL_SAME_STORE(BY_CLOCK("oldSelf")),
    {0},
};
