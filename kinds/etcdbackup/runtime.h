/* SPDX-License-Identifier: Apache-2.0
 *
 * State of the controller in addition to the caches: transfers on their own threads. */
#ifndef STW_KINDS_ETCDBACKUP_RUNTIME_H
#define STW_KINDS_ETCDBACKUP_RUNTIME_H

#include "base/error.h"
#include "base/util.h"
#include "controller/manager.h"
#include "kinds/etcdbackup/snapshot.h"

struct eb_job;
struct eb_runtime;

int eb_runtime_open(struct stw_manager *m, const struct stw_manager_config *config,
                    void **ret_state, struct stw_error *err) STW_MUST_CHECK;
void eb_runtime_cancel(void *state);
void eb_runtime_pause(void *state); /* the lease was lost */
void eb_runtime_close(void *state);
enum eb_transfer { EB_NO_TRANSFER, EB_TRANSFERS, EB_TRANSFERRED };
/* The state of the transfer of `key` for the object `uid`. */
enum eb_transfer eb_runtime_look(struct eb_runtime *k, const char *key, const char *uid,
                                 bool *ret_verifying, struct eb_snapshot *ret);
/* True: `key` has one of the places, until eb_runtime_start or eb_runtime_leave.  False: its run follows
 * when it is its turn. */
bool eb_runtime_come(struct eb_runtime *k, const char *key) STW_MUST_CHECK;
/* Gives a place back that was not used; the key goes on waiting if it has none. */
void eb_runtime_leave(struct eb_runtime *k, const char *key);
/* How many transfers there are at a time: of one namespace, and in all. */
void eb_runtime_limits(const struct eb_runtime *k, unsigned *ret_of_namespace, unsigned *ret_all);
/* Takes ownership of `job`, also when it fails. */
int eb_runtime_start(struct eb_runtime *k, const char *key, const char *uid, struct eb_job *job,
                     struct stw_error *err) STW_MUST_CHECK;
/* Cancels the transfer if it is still running, and drops it. */
void eb_runtime_forget(struct eb_runtime *k, const char *key);
void eb_runtime_remove(struct eb_runtime *k, const char *key); /* also its gauge */
void eb_runtime_count(struct eb_runtime *k, bool succeeded);
/* Sets the gauge: time of the newest verified backup of this etcd by the object `key`; `at` is in
 * seconds. */
void eb_runtime_verified(struct eb_runtime *k, const char *key, const char *ns, const char *cluster,
                         int64_t at);

#endif
