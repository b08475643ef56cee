/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the snapshots that EtcdBackups request, and removes old ones. */
#ifndef STW_CONTROLLER_ETCDBACKUP_H
#define STW_CONTROLLER_ETCDBACKUP_H

#include "controller/condition.h"
#include "controller/controller.h"

extern const struct stw_controller stw_controller_etcdbackup;

/* Sets BackupReady of the EtcdCluster `key` ("namespace/name") from the EtcdBackups with a schedule
 * or an interval that reference it.  Does nothing if there are none. */
void stw_etcdbackup_tell_cluster(const struct stw_run *run, const char *key,
                                 struct stw_conditions *c);
/* Its status.lastBackup: {name, time, revision, verified} of the newest backup; NULL: none. */
json_t *stw_etcdbackup_last(const struct stw_run *run, const char *key);

#endif
