/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of EtcdCluster and by EtcdRestore, whose template is an EtcdCluster's
 * spec. */
#ifndef STW_KINDS_ETCDCLUSTER_SPEC_RULES_H
#define STW_KINDS_ETCDCLUSTER_SPEC_RULES_H

#include "base/util.h"
#include "kinds/etcdcluster/spec.h"

/* The input of the rules. */
struct ec_scene {
    const struct stw_admission *a;
    const char *at;       /* path of the spec: "spec", "spec.template" */
    struct stw_json json; /* the spec as it was sent */
    const struct ec_spec *now;
    const struct ec_spec *old; /* NULL: there is no old spec to compare with */
    struct stw_json status;    /* of the existing cluster */
    struct stw_findings *f;
};

/* Findings at a path below the spec, such as "pod.labels[app]". */
void ec_forbid(const struct ec_scene *s, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses an option of etcd, or a variable for it, that is reserved; `use`: the field for it, or
 * NULL. */
void ec_forbid_option(const struct ec_scene *s, const char *path, const char *name,
                      const char *use);
void ec_require(const struct ec_scene *s, const char *path, const char *text);
void ec_refuse_int(const struct ec_scene *s, const char *path, int64_t value, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void ec_refuse_text(const struct ec_scene *s, const char *path, const char *value, const char *fmt,
                    ...) __attribute__((format(printf, 4, 5)));
void ec_refuse_node(const struct ec_scene *s, const char *path, struct stw_json value,
                    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
struct ec_path {
    char text[512];
};
struct ec_path ec_path(const struct ec_scene *s, const char *path);

/* The rules by part. */
void ec_check(const struct ec_scene *s); /* all of them */
void ec_check_version(const struct ec_scene *s);
/* The version of a cluster whose spec names none: the one that a running upgrade leads to, since
 * another one would be refused.  Absent if the status has none; it may have any text. */
struct stw_json ec_version_of_status(struct stw_json status);
void ec_check_pod(const struct ec_scene *s);
void ec_check_agent_pod(const struct ec_scene *s); /* only ec_agent_pod_fields */
void ec_check_storage(const struct ec_scene *s);
void ec_check_tls(const struct ec_scene *s);
void ec_check_maintenance(const struct ec_scene *s);
/* For `check` of a percentage. */
const char *ec_check_percent(const char *text);

/* Options of etcd as named on its command line, and the field of the spec to use instead.  Every
 * option that steward passes to etcd must be here: etcd exits at once when an option is given
 * twice. */
#define EC_RESERVED_OPTIONS(X)                                                                     \
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

/* A reserved option as a regular expression, for the rules in CEL. */
#define EC_FORM_WHOLE(text) "^(experimental-)?" text "$|"
#define EC_FORM_BEGIN(text) "^(experimental-)?" text "|"
#define EC_FORM_WITHIN(text) text "|"
#define EC_FORM_END(text) text "$|"
#define EC_FORM(match, text, use) EC_FORM_##match(text)
#define EC_RESERVED_FORM EC_RESERVED_OPTIONS(EC_FORM) "^$"

#define EC_VERSION_MAX (STW_SEMVER_LEN - 1) /* bytes of spec.version */

/* For `check` of a field table row. */
const char *ec_check_version_text(const char *version);

/* Warns about a Secret that is missing or lacks one of the keys (NULL-terminated); `then` is what
 * happens when it appears: "the members start".  Costs requests: only for a name that is new or
 * changed. */
void ec_advise_on_secret(const struct stw_admission *a, const char *name, const char *const *keys,
                         const char *then, struct stw_findings *f);
/* The same for a Secret with the certificate, its key and its CA: without the first of the keys it may
 * have tls.crt, tls.key and ca.crt. */
void ec_advise_on_certificate(const struct stw_admission *a, const char *name,
                              const char *const *keys, const char *then, struct stw_findings *f);

/* Of the kind. */
void ec_default_more(const struct stw_admission *a, struct stw_json spec, struct stw_defaults *d);
void ec_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                 struct stw_findings *f);
void ec_advise_delete(const struct stw_admission *a, struct stw_findings *f);

#endif
