/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the API server would accept a write: the request passes validation, quotas and admission,
 * and nothing is stored (dryRun=All).  They block like the verbs of kube/client.h, and return 0, or -1 with
 * the server's refusal in `err`.  What is passed is borrowed. */
#ifndef STW_KUBE_DRY_RUN_H
#define STW_KUBE_DRY_RUN_H

#include "kube/client.h"

int stw_dry_run_create(struct stw_client *c, const struct stw_resource *r, const char *ns,
                       const json_t *object, struct stw_error *err) STW_MUST_CHECK;
int stw_dry_run_apply(struct stw_client *c, const struct stw_place *at, const json_t *object,
                      const char *manager, struct stw_error *err) STW_MUST_CHECK;
int stw_dry_run_json_patch(struct stw_client *c, const struct stw_place *at, const char *patch,
                           const char *manager, struct stw_error *err) STW_MUST_CHECK;

#endif
