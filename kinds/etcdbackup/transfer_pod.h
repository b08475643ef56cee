/* SPDX-License-Identifier: Apache-2.0
 *
 * Transfers by a pod, to a volume.  -1 of prepare: `why` or e->stalled. */
#ifndef STW_KINDS_ETCDBACKUP_TRANSFER_POD_H
#define STW_KINDS_ETCDBACKUP_TRANSFER_POD_H

#include "base/error.h"
#include "base/util.h"
#include "kinds/etcdbackup/runtime.h"
#include "kinds/etcdbackup/snapshot.h"

struct eb;

enum eb_transfer eb_agent_look(struct eb *e);
int eb_agent_prepare(struct eb *e, struct eb_snapshot *why);
bool eb_agent_has_image(struct eb *e); /* or e->stalled */
int eb_agent_start(struct eb *e, struct stw_error *err) STW_MUST_CHECK;
void eb_agent_forget(struct eb *e);

#endif
