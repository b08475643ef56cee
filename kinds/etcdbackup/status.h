/* SPDX-License-Identifier: Apache-2.0
 *
 * The status and the events of an EtcdBackup. */
#ifndef STW_KINDS_ETCDBACKUP_STATUS_H
#define STW_KINDS_ETCDBACKUP_STATUS_H

#include "controller/verdict.h"

#include <jansson.h>

struct eb;

void eb_judge(struct eb *e, struct stw_verdict *v, json_t **ret_status);
void eb_tell(struct eb *e);

#endif
