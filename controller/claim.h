/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims on what only one object of a kind can have, such as a port or an account: the older object
 * has it. */
#ifndef STW_CONTROLLER_CLAIM_H
#define STW_CONTROLLER_CLAIM_H

#include "controller/object.h"

/* True if the claim of `other` comes before that of `own`; `older`: `other` was created before
 * `own`, or at the same time and its key sorts before. */
typedef bool stw_claim_fn(const struct stw_object *other, const struct stw_object *own, bool older);

/* Finds another object of the run's kind with the index key whose claim comes before that of `own`.
 * `before` is NULL if each older object that is not being deleted comes before. */
bool stw_claim_find(const struct stw_run *run, const struct stw_object *own, const char *index_key,
                    stw_claim_fn *before, char ret_key[STW_KEY_LEN]);

#endif
