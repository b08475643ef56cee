/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pods of a workload read. */
#ifndef STW_KINDS_ERU_INPUTS_H
#define STW_KINDS_ERU_INPUTS_H

#include "base/error.h"
#include "base/util.h"

struct eru;
struct eru_inputs;

int eru_inputs_read(struct eru *e, const char *name, struct eru_inputs *ret,
                    struct stw_error *err) STW_MUST_CHECK;

#endif
