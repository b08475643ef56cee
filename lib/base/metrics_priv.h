/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_BASE_METRICS_PRIV_H
#define STW_BASE_METRICS_PRIV_H

#include "base/buf.h"

/* The shortest decimal form that reads back as the same double: 0.005, 1, 1e+20, +Inf, NaN. */
void stw_metrics_add_number(struct stw_buf *out, double v);

#endif
