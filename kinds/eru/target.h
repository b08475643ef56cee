/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and stamps workloads. */
#ifndef STW_KINDS_ERU_TARGET_H
#define STW_KINDS_ERU_TARGET_H

#include "kinds/eru/run_priv.h"

extern const struct eru_ops eru_ops;

#endif
