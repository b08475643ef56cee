/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of `steward doctor` that only steward has. */
#ifndef STW_CMD_DOCTOR_TARGETS_H
#define STW_CMD_DOCTOR_TARGETS_H

#include "base/error.h"
#include "kube/pages.h"

struct doctor;
struct stw_targets;

void stw_doctor_targets(struct doctor *d);
/* Reports DatabaseUsers that are invalid with these targets. */
void stw_doctor_users(struct doctor *d, struct stw_targets *targets);
/* Calls `fn` with each stored DatabaseUser of the managed namespaces. */
int stw_doctor_each_user(struct doctor *d, stw_page_fn *fn, void *ctx,
                         struct stw_error *err) STW_MUST_CHECK;
/* Asks the server of each target. */
void stw_doctor_servers(struct doctor *d, struct stw_targets *targets);

#endif
