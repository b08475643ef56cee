/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of core/v1 that several kinds take over as they are. */
#ifndef STW_KINDS_CORE_H
#define STW_KINDS_CORE_H

#include "kinds/field.h"
#include "kinds/finding.h"

extern const struct stw_field stw_core_resources[]; /* ResourceRequirements: limits, requests */
extern const struct stw_field stw_core_pull_secret; /* LocalObjectReference, as `item` of a list */
extern const char *const stw_core_pull_secret_keys[]; /* its list_keys */

extern const struct stw_field stw_core_env;       /* EnvVar, as `item` of a list */
extern const char *const stw_core_env_keys[];     /* its list_keys */
extern const struct stw_field stw_core_text_item; /* a value of a map of strings */

/* Types of the members of what is passed on as it is: rows for `known`, and `item`s of lists. */
extern const struct stw_field stw_core_affinity[], stw_core_label_selector[],
    stw_core_security_context[], stw_core_pod_security_context[], stw_core_env_source[];
extern const struct stw_field stw_core_toleration, stw_core_spread;

#define STW_CORE_ENV_NAME_MAX 253 /* as a key of a ConfigMap */
const char *stw_core_check_env_name(const char *name);
/* value and valueFrom of each variable exclude each other; `path` is that of the list. */
void stw_core_check_env(struct stw_json env, const char *path, struct stw_findings *f);

/* A key in a Secret or a ConfigMap, as rows of field tables want it. */
const char *stw_core_check_key(const char *key);

/* Rules beyond the table: known resource names, more than 0, requests within limits, no memory
 * limit below 4Mi.  `path` is that of `resources`. */
void stw_core_check_resources(struct stw_json resources, const char *path, struct stw_findings *f);

/* Annotations or labels of a child: keys that the API server takes, and for labels such values;
 * annotations are limited in total.  `path` is that of the map. */
void stw_core_check_annotations(struct stw_json annotations, const char *path,
                                struct stw_findings *f);
void stw_core_check_labels(struct stw_json labels, const char *path, struct stw_findings *f);

#endif
