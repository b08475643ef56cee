/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the snapshots that EtcdBackups ask for, and takes the old ones away. */
#ifndef STW_CONTROLLER_ETCDBACKUP_H
#define STW_CONTROLLER_ETCDBACKUP_H

#include "controller/condition.h"
#include "controller/controller.h"

extern const struct stw_controller stw_controller_etcdbackup;

/* BackupReady of the EtcdCluster `key` ("namespace/name"), by the EtcdBackups with a schedule or an
 * interval that name it; nothing where there are none. */
void stw_etcdbackup_tell_cluster(const struct stw_run *run, const char *key,
                                 struct stw_conditions *c);
/* status.lastBackup of it: {name, time, revision, verified} of the newest; NULL: none. */
json_t *stw_etcdbackup_last(const struct stw_run *run, const char *key);

#endif
