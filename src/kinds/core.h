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

/* A key in a Secret or a ConfigMap, as rows of field tables want it. */
const char *stw_core_check_key(const char *key);

/* Rules beyond the table: known resource names, more than 0, requests within limits, no memory
 * limit below 4Mi.  `path` is that of `resources`. */
void stw_core_check_resources(struct stw_json resources, const char *path, struct stw_findings *f);

#endif
