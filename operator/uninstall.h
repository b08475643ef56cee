/* SPDX-License-Identifier: Apache-2.0
 *
 * steward's finalizers on objects of its kinds, for `steward uninstall`. Without steward no
 * controller removes them, and namespaces with such objects cannot be deleted. */
#ifndef STW_OPERATOR_UNINSTALL_H
#define STW_OPERATOR_UNINSTALL_H

#include "base/util.h"
#include "operator/remote.h"
#include "schema/kind.h"

#include <stdint.h>

/* Number of objects of a kind, and of those with our finalizer. */
struct stw_held {
    uint64_t all, held;
    char first[512]; /* the key of one that has it */
};

/* If the CRD does not exist, both counts are 0. */
int stw_held_count(const struct stw_remote *r, const struct stw_kind *kind, struct stw_held *ret,
                   struct stw_error *err) STW_MUST_CHECK;
/* Removes only our finalizer from each object of a kind. */
int stw_held_release(const struct stw_remote *r, const struct stw_kind *kind,
                     struct stw_error *err) STW_MUST_CHECK;
/* Deletes each object that has it. A running steward cleans up and removes the finalizer. */
int stw_held_delete(const struct stw_remote *r, const struct stw_kind *kind,
                    struct stw_error *err) STW_MUST_CHECK;

#endif
