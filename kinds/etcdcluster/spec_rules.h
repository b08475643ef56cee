/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of EtcdCluster and by EtcdRestore, whose template is an EtcdCluster's
 * spec. */
#ifndef STW_KINDS_ETCDCLUSTER_SPEC_RULES_H
#define STW_KINDS_ETCDCLUSTER_SPEC_RULES_H

#include "base/util.h"
#include "kinds/etcdcluster/spec.h"

extern const struct stw_field stw_ec_spec_fields[];
extern const struct stw_field stw_ec_pod_fields[];       /* of struct stw_etcd_pod */
extern const struct stw_field stw_ec_agent_pod_fields[]; /* those that a pod of a backup has */
extern const struct stw_field stw_ec_status_fields[];
extern const struct stw_column stw_ec_columns[];

/* The input of the rules. */
struct stw_ec_scene {
    const struct stw_admission *a;
    const char *at;       /* path of the spec: "spec", "spec.template" */
    struct stw_json json; /* the spec as it was sent */
    const struct stw_etcdcluster *now;
    const struct stw_etcdcluster *old; /* NULL: there is no old spec to compare with */
    struct stw_json status;            /* of the existing cluster */
    struct stw_findings *f;
};

/* Findings at a path below the spec, such as "pod.labels[app]". */
void stw_ec_forbid(const struct stw_ec_scene *s, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses an option of etcd, or a variable for it, that is reserved; `use`: the field for it, or
 * NULL. */
void stw_ec_forbid_option(const struct stw_ec_scene *s, const char *path, const char *name,
                          const char *use);
void stw_ec_require(const struct stw_ec_scene *s, const char *path, const char *text);
void stw_ec_refuse_int(const struct stw_ec_scene *s, const char *path, int64_t value,
                       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void stw_ec_refuse_text(const struct stw_ec_scene *s, const char *path, const char *value,
                        const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void stw_ec_refuse_node(const struct stw_ec_scene *s, const char *path, struct stw_json value,
                        const char *fmt, ...) __attribute__((format(printf, 4, 5)));
struct stw_ec_path {
    char text[512];
};
struct stw_ec_path stw_ec_path(const struct stw_ec_scene *s, const char *path);

/* The rules by part. */
void stw_ec_check(const struct stw_ec_scene *s); /* all of them */
void stw_ec_check_version(const struct stw_ec_scene *s);
/* The version of a cluster whose spec names none: the one that a running upgrade leads to, since
 * another one would be refused.  Absent if the status has none; it may have any text. */
struct stw_json stw_ec_version_of_status(struct stw_json status);
void stw_ec_check_pod(const struct stw_ec_scene *s);
void stw_ec_check_agent_pod(const struct stw_ec_scene *s); /* only stw_ec_agent_pod_fields */
void stw_ec_check_storage(const struct stw_ec_scene *s);
void stw_ec_check_tls(const struct stw_ec_scene *s);

/* Options of etcd as named on its command line, and the field of the spec to use instead.  Every
 * option that steward passes to etcd must be here: etcd exits at once when an option is given
 * twice. */
#define STW_ETCD_RESERVED_OPTIONS(X)                                                               \
    X(WHOLE, "name", NULL)                                                                         \
    X(WHOLE, "data-dir", NULL)                                                                     \
    X(WHOLE, "wal-dir", NULL)                                                                      \
    X(WHOLE, "config-file", "options.extraArgs")                                                   \
    X(BEGIN, "listen-", NULL)                                                                      \
    X(BEGIN, "initial-", NULL)                                                                     \
    X(BEGIN, "discovery", NULL)                                                                    \
    X(WITHIN, "advertise", NULL)                                                                   \
    X(END, "cert-file", "TLS")                                                                     \
    X(END, "key-file", "TLS")                                                                      \
    X(END, "ca-file", "TLS")                                                                       \
    X(END, "auto-tls", "TLS")                                                                      \
    X(END, "client-cert-auth", "TLS")                                                              \
    X(WHOLE, "strict-reconfig-check", NULL)                                                        \
    X(WHOLE, "pre-vote", NULL)                                                                     \
    X(WHOLE, "peer-skip-client-san-verification", NULL)                                            \
    X(WHOLE, "logger", NULL)                                                                       \
    X(WHOLE, "force-new-cluster", NULL)                                                            \
    X(WHOLE, "proxy", NULL)                                                                        \
    X(WHOLE, "enable-grpc-gateway", NULL)                                                          \
    X(WHOLE, "quota-backend-bytes", "options.quotaBackendBytes")                                   \
    X(WHOLE, "auto-compaction-mode", "options.autoCompactionMode")                                 \
    X(WHOLE, "auto-compaction-retention", "options.autoCompactionRetention")                       \
    X(WHOLE, "snapshot-count", "options.snapshotCount")                                            \
    X(WHOLE, "heartbeat-interval", "options.heartbeatIntervalMs")                                  \
    X(WHOLE, "election-timeout", "options.electionTimeoutMs")

/* The rules in CEL; the first ones are those of stw_ec_check_agent_pod. */
#define STW_EC_CEL_HAS_MAP(name) "has(self.pod) && has(self.pod." name ")"
#define STW_EC_CEL_OF_MAP(name, condition, text)                                                   \
    {                                                                                              \
        .at = "pod." name, .type = STW_CEL_ENTRIES, .code = STW_FORBIDDEN, .message = (text),      \
        .rule = "!(" STW_EC_CEL_HAS_MAP(name) ") || self.pod." name ".all(k, " condition ")",      \
    }
#define STW_EC_CEL_NOT_OURS                                                                        \
    "!k.startsWith('{domain}/') && !k.startsWith('etcd.database.coreos.com/')"
#define STW_EC_CEL_AGENT_POD                                                                       \
    STW_EC_CEL_OF_MAP("labels",                                                                    \
                      "k != 'app' && !k.startsWith('etcd_') && "                                   \
                      "!k.startsWith('app.kubernetes.io/') && " STW_EC_CEL_NOT_OURS,               \
                      "reserved label"),                                                           \
        STW_EC_CEL_OF_MAP("annotations", STW_EC_CEL_NOT_OURS, "reserved annotation"),              \
        STW_CEL_LABELS(STW_EC_CEL_HAS_MAP("labels"), "self.pod.labels", "pod.labels"),             \
        STW_CEL_KEYS(STW_EC_CEL_HAS_MAP("annotations"), "self.pod.annotations",                    \
                     "pod.annotations"),                                                           \
        STW_CEL_LABELS(STW_EC_CEL_HAS_MAP("nodeSelector"), "self.pod.nodeSelector",                \
                       "pod.nodeSelector"),                                                        \
        STW_CEL_RESOURCES("has(self.pod) && has(self.pod.resources)", "self.pod.resources",        \
                          "pod.resources")
extern const struct stw_cel stw_ec_cel_version[], stw_ec_cel_repository[];
extern const struct stw_cel_rule stw_ec_cel[];

/* For `check` of a field table row. */
const char *stw_ec_check_version_text(const char *version);

/* Warns about a Secret that is missing or lacks one of the keys (NULL-terminated); `then` is what
 * happens when it appears: "the members start".  Costs requests: only for a name that is new or
 * changed. */
void stw_ec_advise_on_secret(const struct stw_admission *a, const char *name,
                             const char *const *keys, const char *then, struct stw_findings *f);

void stw_ec_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                     struct stw_findings *f);
void stw_ec_advise_delete(const struct stw_admission *a, struct stw_findings *f);

#endif
