/* SPDX-License-Identifier: Apache-2.0
 *
 * steward's finalizers on objects of its kinds, for `steward uninstall`. Without steward no
 * controller removes them, and namespaces with such objects cannot be deleted. */
#ifndef STW_OPERATOR_UNINSTALL_H
#define STW_OPERATOR_UNINSTALL_H

#include "base/util.h"
#include "operator/installed/remote.h"
#include "schema/kind.h"

#include <stdint.h>

/* Number of objects of a kind, and of those with our finalizer. */
struct stw_held {
    uint64_t all, held;
    char first[512]; /* the key of one that has it */
};

/* "databaseuser" for one of them, else "databaseusers". */
static inline const char *stw_held_noun(const struct stw_held *h, const struct stw_kind *kind)
{
    return h->all == 1 ? kind->singular : kind->plural;
}

/* If the CRD does not exist, both counts are 0. */
int stw_held_count(const struct stw_remote *r, const struct stw_kind *kind, struct stw_held *ret,
                   struct stw_error *err) STW_MUST_CHECK;
/* Removes only our finalizer from each object of a kind. */
int stw_held_release(const struct stw_remote *r, const struct stw_kind *kind,
                     struct stw_error *err) STW_MUST_CHECK;
/* Deletes each object that has it. A running steward cleans up and removes the finalizer. */
int stw_held_delete(const struct stw_remote *r, const struct stw_kind *kind,
                    struct stw_error *err) STW_MUST_CHECK;

/* Removes the webhooks of the kinds of r->op from a configuration and leaves the others. */
int stw_hooks_remove(const struct stw_remote *r, const struct stw_resource *configuration,
                     const char *name, struct stw_error *err) STW_MUST_CHECK;
/* Fails if the Deployment runs, or some of its pods still run, with one of the kinds of r->op. */
int stw_kinds_are_out(const struct stw_remote *r, const struct stw_operator *all, const char *ns,
                      struct stw_error *err) STW_MUST_CHECK;

#endif
