/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the snapshots that EtcdBackups request, and removes old ones. */
#ifndef STW_KINDS_ETCDBACKUP_RECONCILE_H
#define STW_KINDS_ETCDBACKUP_RECONCILE_H

#include "kinds/etcdcluster/backups.h"

extern const struct stw_controller stw_controller_etcdbackup;

extern const struct ec_backups eb_of_cluster;

#endif
