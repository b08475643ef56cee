/* SPDX-License-Identifier: Apache-2.0
 *
 * Finalizers of steward's on the objects of its kinds, for `steward uninstall`: without a steward
 * nobody would take them away, and namespaces with such objects could not be deleted. */
#ifndef STW_CMD_UNINSTALL_H
#define STW_CMD_UNINSTALL_H

#include "cmd/remote.h"
#include "kinds/kind.h"

#include <stdint.h>

/* Objects of a kind: all of them, and those that have our finalizer. */
struct stw_held {
    uint64_t all, held;
    char first[512]; /* the key of one that has it */
};

/* A kind whose CRD is not there has none. */
int stw_held_count(const struct stw_remote *r, const struct stw_kind *kind, struct stw_held *ret,
                   struct stw_error *err);
/* Takes our finalizer, and no other, from each object of a kind. */
int stw_held_release(const struct stw_remote *r, const struct stw_kind *kind,
                     struct stw_error *err);
/* Deletes each object that has it; a running steward cleans up and takes it away. */
int stw_held_delete(const struct stw_remote *r, const struct stw_kind *kind, struct stw_error *err);

#endif
