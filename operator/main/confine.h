/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that a serving steward has to read after its start. */
#ifndef STW_OPERATOR_CONFINE_H
#define STW_OPERATOR_CONFINE_H

#include "operator/extension.h"
#include "operator/main/settings.h"

/* Enters the sandbox, unless --sandbox=off, and logs it. Call before any thread is created.
 * host->kubeconfig may be NULL. */
void stw_confine(const struct stw_settings *s, const struct stw_host *host);

#endif
