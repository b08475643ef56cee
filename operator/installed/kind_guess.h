/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that look like one of the operator's kinds and are none: a misspelt kind, a wrong version. */
#ifndef STW_OPERATOR_KIND_GUESS_H
#define STW_OPERATOR_KIND_GUESS_H

#include "operator/installed/manifests.h"
#include "schema/finding.h"

#include <stdbool.h>

struct stw_kind;

/* For an object whose type stw_operator_kind does not find.  True when the API server cannot know it
 * either: its group is one of ours, or it has the name of one of our kinds and no group, or a
 * group that is almost ours.  The finding then says what may be meant.  False: another product's.
 * `kinds` ends with NULL. */
bool stw_kind_guess(const struct stw_kind *const *kinds, const struct stw_manifest *m,
                    struct stw_findings *f);
/* Refuses an object whose kind is one of `others`, which may be NULL.  False: it is not. */
bool stw_kind_refuse_other(const struct stw_kind *const *others, const struct stw_manifest *m,
                           struct stw_findings *f);

#endif
