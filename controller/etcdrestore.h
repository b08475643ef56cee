/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates EtcdClusters from snapshots: fetches and verifies first, then acts. */
#ifndef STW_CONTROLLER_ETCDRESTORE_H
#define STW_CONTROLLER_ETCDRESTORE_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_etcdrestore;

#endif
