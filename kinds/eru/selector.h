/* SPDX-License-Identifier: Apache-2.0
 *
 * spec.selector of an Eru: a label selector over the workloads of its namespace. */
#ifndef STW_KINDS_ERU_SELECTOR_H
#define STW_KINDS_ERU_SELECTOR_H

#include "base/buf.h"
#include "base/json.h"
#include "schema/finding.h"

struct eru_spec_selector {
    struct stw_json labels, expressions; /* absent: none */
};

/* Rules beyond the fields. */
void eru_check_selector(const struct eru_spec_selector *s, struct stw_findings *f);
/* Appends it as the API server takes it in the query labelSelector, not escaped. */
void eru_selector_query(const struct eru_spec_selector *s, struct stw_buf *out);

#endif
