/* SPDX-License-Identifier: Apache-2.0
 *
 * The housekeeping: informers, one queue and its workers a kind, leader election.  Every replica
 * keeps its caches warm; the leader reconciles. */
#ifndef STW_CONTROLLER_MANAGER_H
#define STW_CONTROLLER_MANAGER_H

#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "kinds/kind.h"
#include "kube/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_manager;

/* The Lease of the shipped manifests; the rights are for just this one. */
#define STW_MANAGER_LEASE "steward.steward.dev"

struct stw_controller; /* controller.h: what a reconciler is */

struct stw_manager_config {
    const struct stw_controller *const *controllers; /* ended by NULL */
    struct stw_client *client;
    const struct stw_clock *clock;
    struct stw_metrics *metrics;
    const char *const *namespaces; /* ended by NULL; NULL: all */
    uint32_t workers;              /* a kind; 0: 4 */
    bool leader_elect;             /* false: reconcile at once */
    bool door_only; /* reconcile nothing, and keep only the caches that admission rules ask */
    const char *lease_ns, *lease_name, *identity;
    uint32_t resync_ms;                /* 0: 10 hours, with jitter */
    const struct stw_product *product; /* what the kinds share; passed through; or NULL */
};

int stw_manager_create(const struct stw_manager_config *config, struct stw_manager **ret,
                       struct stw_error *err);
int stw_manager_start(struct stw_manager *m, struct stw_error *err);        /* returns at once */
bool stw_manager_synced(struct stw_manager *m, char *why, size_t why_size); /* a probe */
bool stw_manager_alive(struct stw_manager *m, char *why,
                       size_t why_size); /* no reconcile hangs > 10 min */
/* Look-ups over the caches for admission rules; lives as long as the manager. */
const struct stw_lookup *stw_manager_lookup(struct stw_manager *m);
/* Lets running reconciles end (at most timeout_ms), stops the workers, gives the lease back. */
void stw_manager_stop(struct stw_manager *m, uint32_t timeout_ms);
void stw_manager_destroy(struct stw_manager *m);

#endif
