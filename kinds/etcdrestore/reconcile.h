/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates EtcdClusters from snapshots: fetches and verifies first, then acts. */
#ifndef STW_KINDS_ETCDRESTORE_RECONCILE_H
#define STW_KINDS_ETCDRESTORE_RECONCILE_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_etcdrestore;

#endif
