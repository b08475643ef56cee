/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the controller between runs: opened with it, and closed after its last run. */
#ifndef STW_KINDS_DATABASEUSER_STATE_H
#define STW_KINDS_DATABASEUSER_STATE_H

#include "base/error.h"
#include "controller/manager.h"

int dbu_state_open(struct stw_manager *m, const struct stw_manager_config *config, void **ret,
                   struct stw_error *err) STW_MUST_CHECK;
void dbu_state_cancel(void *state);
void dbu_state_close(void *state);
void dbu_state_pause(void *state);
void dbu_state_tidy(void *state);
/* The Secret "namespace/name" has changed: retries failed logins of admins that use it. */
void dbu_state_secret_changed(void *state, const char *key);

#endif
