/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that a serving steward has to read after its start. */
#ifndef STW_CMD_CONFINE_H
#define STW_CMD_CONFINE_H

#include "cmd/settings.h"
#include "kinds/databaseuser/targets.h"
#include "kube/kubeconfig.h"

/* Enters the sandbox, unless --sandbox=off, and logs it. Call before any thread is created.
 * `kubeconfig` and `targets` may be NULL. */
void stw_confine(const struct stw_settings *s, const struct stw_kubeconfig *kubeconfig,
                 struct stw_target_store *targets);

#endif
