/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes EtcdClusters from snapshots: fetch and verify first, then act. */
#ifndef STW_CONTROLLER_ETCDRESTORE_H
#define STW_CONTROLLER_ETCDRESTORE_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_etcdrestore;

#endif
