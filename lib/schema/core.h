/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of core/v1 that several kinds use unchanged. */
#ifndef STW_SCHEMA_CORE_H
#define STW_SCHEMA_CORE_H

#include "schema/field.h"
#include "schema/finding.h"

extern const struct stw_field stw_core_resources[]; /* ResourceRequirements: limits, requests */
extern const struct stw_field stw_core_pull_secret; /* LocalObjectReference, as `item` of a list */
extern const char *const stw_core_pull_secret_keys[]; /* its list_keys */

extern const struct stw_field stw_core_env;       /* EnvVar, as `item` of a list */
extern const char *const stw_core_env_keys[];     /* its list_keys */
extern const struct stw_field stw_core_text_item; /* a value of a map of strings */

/* Types of the members of objects that are passed on unchanged: rows for `known`, and `item`s of
 * lists. */
extern const struct stw_field stw_core_affinity[], stw_core_label_selector[],
    stw_core_security_context[], stw_core_pod_security_context[], stw_core_env_source[],
    stw_core_pod_template[];
extern const struct stw_field stw_core_toleration, stw_core_spread;

#define STW_CORE_ENV_NAME_MAX 253 /* as a key of a ConfigMap */
const char *stw_core_check_env_name(const char *name);
/* `value` and `valueFrom` of a variable exclude each other; `path` is the path of the list. */
void stw_core_check_env(struct stw_json env, const char *path, struct stw_findings *f);

/* Checks a key of a Secret or a ConfigMap; for `check` of a field table row. */
const char *stw_core_check_key(const char *key);

/* Rules beyond the table: known resource names, quantities above 0, requests within limits, memory
 * limits of at least 4Mi.  `path` is the path of `resources`. */
void stw_core_check_resources(struct stw_json resources, const char *path, struct stw_findings *f);

/* Annotations or labels of a child: the API server must accept the keys and, for labels, the
 * values.  The total size of annotations is limited.  `path` is the path of the map. */
void stw_core_check_annotations(struct stw_json annotations, const char *path,
                                struct stw_findings *f);
void stw_core_check_labels(struct stw_json labels, const char *path, struct stw_findings *f);

#endif
