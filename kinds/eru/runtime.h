/* SPDX-License-Identifier: Apache-2.0
 *
 * State of the controller in addition to the caches. */
#ifndef STW_KINDS_ERU_RUNTIME_H
#define STW_KINDS_ERU_RUNTIME_H

#include "base/util.h"
#include "controller/controller.h"
#include "kinds/eru/state.h"

struct eru_runtime;
int eru_runtime_open(struct stw_manager *m, const struct stw_controller *c,
                     const struct stw_manager_config *config, void **ret_state,
                     struct stw_error *err) STW_MUST_CHECK;
void eru_runtime_close(void *state);
struct eru_rollouts;
struct eru_rollouts *eru_runtime_rollouts(struct eru_runtime *k); /* NULL for NULL */
void eru_runtime_count(struct eru_runtime *k, enum eru_result result);

#endif
