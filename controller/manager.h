/* SPDX-License-Identifier: Apache-2.0
 *
 * The manager: informers, leader election, and one queue with its workers for each kind.  Every
 * replica keeps its caches filled; only the leader reconciles. */
#ifndef STW_CONTROLLER_MANAGER_H
#define STW_CONTROLLER_MANAGER_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/operator.h"
#include "base/util.h"
#include "kube/client.h"
#include "schema/kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_manager;

/* The Lease of the printed manifests (stw_operator_text); their rules grant access to no other. */
#define STW_MANAGER_LEASE "{operator}.{domain}"

struct stw_manager_config {
    const struct stw_operator *op; /* borrowed, as long as the manager exists */
    struct stw_client *client;
    const struct stw_clock *clock;
    struct stw_metrics *metrics;
    const char *const *namespaces; /* ended by NULL; NULL: all */
    uint32_t workers;              /* of each kind; 0: 4 */
    bool update_templates;         /* apply pod templates of a new version at once (template.h) */
    bool leader_elect;             /* false: reconcile without an election */
    bool webhook_only; /* do not reconcile; keep only the caches that admission rules read */
    const char *lease_ns, *identity;
    uint32_t resync_ms;                /* 0: 10 hours, with jitter */
    const struct stw_product *product; /* what the kinds share; passed through; or NULL */
    /* Reports what would be written, with a client that writes nothing (kube/owned/shadow.h): each object
     * is reconciled once, and again when it changes, but failed runs are not repeated. */
    bool shadow;
    /* A command that grants the rights which this program needs, for messages; or NULL. */
    const char *grant_command;
};

int stw_manager_create(const struct stw_manager_config *config, struct stw_manager **ret,
                       struct stw_error *err) STW_MUST_CHECK;
/* Returns at once. */
int stw_manager_start(struct stw_manager *m, struct stw_error *err) STW_MUST_CHECK;
bool stw_manager_synced(struct stw_manager *m, char *why, size_t why_size); /* readiness */
bool stw_manager_alive(struct stw_manager *m, char *why,
                       size_t why_size); /* no reconcile hangs > 10 min */
/* In shadow mode: every object has been reconciled, and no change is waiting. */
bool stw_manager_settled(struct stw_manager *m);
/* The clock of the configuration was moved by a test: runs that are due by it begin now.  On any thread. */
void stw_manager_clock_moved(struct stw_manager *m);
/* Objects whose last run failed, or in shadow mode depended on what is not asked; returns the number
 * of others that were not kept (queue/failures.h). */
struct stw_failure;
uint64_t stw_manager_each_failure(struct stw_manager *m,
                                  void (*each)(void *ctx, const struct stw_kind *kind,
                                               const struct stw_failure *one),
                                  void *ctx);
/* Appends the members of a JSON object: queues, caches, leases, the last errors of objects.  No
 * secrets; at most some hundred KiB.  Any thread. */
void stw_manager_facts(struct stw_manager *m, struct stw_buf *out);
/* Look-ups in the caches for admission rules.  Valid as long as the manager. */
const struct stw_lookup *stw_manager_lookup(struct stw_manager *m);
/* Waits up to timeout_ms for running reconciles, stops the workers and releases the lease. */
void stw_manager_stop(struct stw_manager *m, uint32_t timeout_ms);
void stw_manager_destroy(struct stw_manager *m);

#endif
