/* SPDX-License-Identifier: Apache-2.0
 *
 * spec.selector of an Eru: a label selector over the workloads of its namespace. */
#ifndef STW_KINDS_ERU_SELECTOR_H
#define STW_KINDS_ERU_SELECTOR_H

#include "base/buf.h"
#include "base/json.h"
#include "schema/field.h"
#include "schema/finding.h"

struct stw_eru_selector {
    struct stw_json labels, expressions; /* absent: none */
};

extern const struct stw_field stw_eru_selector_fields[];

/* Messages of these rules, also in CEL. */
#define STW_ERU_SELECTOR_EMPTY "needs matchLabels or matchExpressions"
#define STW_ERU_VALUES_NEEDED "In and NotIn need values"
#define STW_ERU_VALUES_REFUSED "Exists and DoesNotExist have no values"

/* Rules beyond the fields. */
void stw_eru_check_selector(const struct stw_eru_selector *s, struct stw_findings *f);
/* Appends it as the API server takes it in the query labelSelector, not escaped. */
void stw_eru_selector_query(const struct stw_eru_selector *s, struct stw_buf *out);

#endif
