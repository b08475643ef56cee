/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by EtcdBackup and EtcdRestore: where snapshots are stored. */
#ifndef STW_KINDS_ETCDBACKUP_SPEC_RULES_H
#define STW_KINDS_ETCDBACKUP_SPEC_RULES_H

#include "kinds/etcdbackup/spec.h"

extern const struct stw_field stw_etcd_s3_fields[];  /* of struct stw_etcd_s3 */
extern const struct stw_field stw_etcd_pvc_fields[]; /* of struct stw_etcd_pvc */
extern const char *const stw_etcd_storage_types[];   /* "S3", "PVC" */

/* In CEL: the rules of EtcdBackup, and those of a store that EtcdRestore has, too. */
extern const struct stw_cel stw_etcd_cel_path[], stw_etcd_cel_region[], stw_etcd_cel_folder[];
extern const struct stw_cel_rule stw_etcdbackup_cel[];

#define STW_CEL_S3_ENDPOINT                                                                        \
    {                                                                                              \
        .at = "s3.endpoint",                                                                       \
        .code = STW_INVALID,                                                                       \
        .rule = "!has(self.s3) || !has(self.s3.endpoint) || !self.s3.endpoint.contains('@')",      \
        .message = "must not hold a user or a password",                                           \
    },                                                                                             \
    {                                                                                              \
        .at = "s3.endpoint", .code = STW_INVALID,                                                  \
        .rule = "!has(self.s3) || !has(self.s3.endpoint) || self.s3.endpoint.contains('@') || "    \
                "self.s3.endpoint.matches(r'" STW_RE_ETCD_URL "')",                                \
        .message = "must be a URL such as https://s3.example.com:9000",                            \
    }
#define STW_RE_ETCD_URL "^https?://[^/?#\\\\\\x00-\\x20\\x7f]+/?$"

/* The block that the type asks for, and not the other one.  `unless` excepts objects. */
#define STW_CEL_STORE(field, type, block, unless)                                                  \
    {                                                                                              \
        .at = (block), .code = STW_REQUIRED,                                                       \
        .rule = "!has(self." field ") || self." field " != '" type "' || " unless                  \
                " || has(self." block ")",                                                         \
        .message = block " is required when " field " is " type,                                   \
    }
#define STW_CEL_NO_STORE(field, type, block, unless)                                               \
    {                                                                                              \
        .at = (block), .code = STW_FORBIDDEN,                                                      \
        .rule = "!has(self." field ") || self." field " != '" type "' || " unless                  \
                " || !has(self." block ")",                                                        \
        .message = "may not be set when " field " is " type,                                       \
    }
#define STW_CEL_STORES(field, unless)                                                              \
    STW_CEL_STORE(field, "S3", "s3", unless), STW_CEL_STORE(field, "PVC", "pvc", unless),          \
        STW_CEL_NO_STORE(field, "S3", "pvc", unless), STW_CEL_NO_STORE(field, "PVC", "s3", unless)

/* A field of a store that an UPDATE may not change. */
#define STW_CEL_HAS_FIXED(object, block, field)                                                    \
    "(has(" object "." block ") && has(" object "." block "." field "))"
#define STW_CEL_FIXED(block, field, unless)                                                        \
    {                                                                                              \
        .at = block "." field, .type = STW_CEL_TRANSITION, .code = STW_FORBIDDEN,                  \
        .message = "field is immutable",                                                           \
        .rule = unless " || (" STW_CEL_HAS_FIXED("self", block, field) " ? " STW_CEL_HAS_FIXED(    \
            "oldSelf", block, field) " && self." block "." field " == oldSelf." block "." field    \
                                     " : !" STW_CEL_HAS_FIXED("oldSelf", block, field) ")",        \
    }
#define STW_CEL_SAME_STORE(unless)                                                                 \
    STW_CEL_FIXED("s3", "path", unless), STW_CEL_FIXED("s3", "endpoint", unless),                  \
        STW_CEL_FIXED("s3", "forcePathStyle", unless), STW_CEL_FIXED("s3", "region", unless),      \
        STW_CEL_FIXED("s3", "sse", unless), STW_CEL_FIXED("pvc", "claimName", unless),             \
        STW_CEL_FIXED("pvc", "path", unless)

/* For `check` of a field table row. */
const char *stw_etcd_check_storage_type(const char *type);

/* Requires the block of the storage type and forbids the other one; `field` is the type's field. */
void stw_etcd_check_store(const char *field, const char *type, bool s3, bool pvc,
                          struct stw_findings *f);
/* Checks the endpoint.  Warns about plain HTTP, and about a newly named Secret that is missing;
 * `then` is what happens when it appears. */
void stw_etcd_check_s3(const struct stw_admission *a, const struct stw_etcd_s3 *now,
                       const struct stw_etcd_s3 *old, const char *then, struct stw_findings *f);
/* On an UPDATE: refuses a change of the store; only the credentials for it may change. */
void stw_etcd_check_same_store(const struct stw_admission *a, struct stw_findings *f);
/* A URL must have a scheme, a host and a port, and never credentials. */
void stw_etcd_check_url(const char *path, const char *url, const char *example,
                        struct stw_findings *f);

void stw_etcdbackup_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                             struct stw_findings *f);

#endif
