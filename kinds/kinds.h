/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the kinds of this program, and its names.  The framework gets them passed in. */
#ifndef STW_KINDS_KINDS_H
#define STW_KINDS_KINDS_H

#include "base/operator.h"
#include "controller/controller.h"
#include "schema/kind.h"

/* Each kind, and its controller at the same index; ended by NULL. */
extern const struct stw_kind *const stw_kinds[];
extern const struct stw_controller *const stw_controllers[];
/* The names of steward; the program adds its commands to them. */
extern const struct stw_operator stw_operator_steward;
/* NULL: there is no such kind. */
const struct stw_kind *stw_kind_find(const char *group, const char *version, const char *kind);

#endif
