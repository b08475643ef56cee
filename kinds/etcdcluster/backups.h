/* SPDX-License-Identifier: Apache-2.0
 *
 * What the EtcdBackups of a cluster contribute to its status.  EtcdBackup is a user of this kind, so
 * the program hands these functions down (kinds/common/product.h). */
#ifndef STW_KINDS_ETCDCLUSTER_BACKUPS_H
#define STW_KINDS_ETCDCLUSTER_BACKUPS_H

#include "controller/controller.h"

#include <jansson.h>

struct stw_conditions;

/* `key`: "namespace/name" of the cluster. */
struct ec_backups {
    /* Sets BackupReady from the EtcdBackups with a schedule or an interval; does nothing if there
     * are none. */
    void (*set_condition)(const struct stw_run *run, const char *key, struct stw_conditions *c);
    /* status.lastBackup: {name, time, revision, verified} of the newest backup, owned by the caller;
     * NULL: none. */
    json_t *(*newest)(const struct stw_run *run, const char *key);
    /* A snapshot is being taken, and for no longer than it may take with a database of this size. */
    bool (*sending)(const struct stw_run *run, const char *key, int64_t db_size);
};

#endif
