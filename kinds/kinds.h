/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the kinds of this program.  The framework gets it passed in. */
#ifndef STW_KINDS_KINDS_H
#define STW_KINDS_KINDS_H

#include "controller/controller.h"
#include "schema/kind.h"

/* Each kind, and its controller at the same index; ended by NULL. */
extern const struct stw_kind *const stw_kinds[];
extern const struct stw_controller *const stw_controllers[];
/* NULL: there is no such kind. */
const struct stw_kind *stw_kind_find(const char *group, const char *version, const char *kind);

#endif
