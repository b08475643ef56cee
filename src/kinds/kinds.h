/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the kinds of this program.  The framework gets it passed in. */
#ifndef STW_KINDS_KINDS_H
#define STW_KINDS_KINDS_H

#include "kinds/kind.h"

extern const struct stw_kind *const stw_kinds[]; /* ended by NULL */
/* NULL: there is no such kind. */
const struct stw_kind *stw_kind_find(const char *group, const char *version, const char *kind);

#endif
