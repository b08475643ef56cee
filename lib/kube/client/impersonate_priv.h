/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_KUBE_IMPERSONATE_PRIV_H
#define STW_KUBE_IMPERSONATE_PRIV_H

#include "base/error.h"
#include "base/json.h"
#include "base/util.h"

#define STW_IMPERSONATION_MAX_BYTES (64u << 10)

/* The headers, each a line that ends with '\n'; `*ret` stays as it is when there are none. */
int stw_impersonation_parse(struct stw_json user, char **ret, struct stw_error *err) STW_MUST_CHECK;

#endif
