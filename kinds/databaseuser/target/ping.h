/* SPDX-License-Identifier: Apache-2.0
 *
 * The ping of a target: whether its server takes the admin's login, so that this is known while no object
 * changes.  Like a sweep (end/sweep.h) it is a run of the controller whose key is of no object: the leader's, one at a
 * time for each target.  A target without objects is not pinged.
 *
 * When a server can no longer be used, its objects are woken a few at a time, so that their conditions say so;
 * when it can be again, all of them are (pools.h). */
#ifndef STW_KINDS_DATABASEUSER_PING_H
#define STW_KINDS_DATABASEUSER_PING_H

#include "controller/controller.h"

struct dbu_pings;

/* `workers`: those of the controller, of which pings take a part.  NULL: no memory. */
struct dbu_pings *dbu_pings_create(uint32_t workers) STW_MUST_CHECK;
void dbu_pings_destroy(struct dbu_pings *p); /* `p` may be NULL */

/* Pings a target soon: its name, in any case. */
void dbu_ping_wake(struct stw_manager *m, const char *target);
/* Runs a target, by its name in any case, soon: `ns` is the namespace of such keys, which no object has. */
void dbu_target_wake(struct stw_manager *m, const char *ns, const char *target);
/* In a run of a target: the keys of its objects, as stw_informer_keys. */
#define DBU_TARGET_USERS_MAX_BYTES ((size_t)64 << 20)
void dbu_target_users(const struct stw_run *run, struct stw_buf *out);
/* A run whose key is not of an object. */
void dbu_ping(struct stw_run *run, struct stw_result *result);

#endif
