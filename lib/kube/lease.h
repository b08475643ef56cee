/* SPDX-License-Identifier: Apache-2.0
 *
 * Leader election by a Lease (coordination.k8s.io/v1), with the algorithm and times of client-go:
 * 15 s lease, 10 s to renew, an attempt every 2 s, with jitter.  A replica that loses the lease
 * stops working and becomes a candidate again; the process continues. */
#ifndef STW_KUBE_LEASE_H
#define STW_KUBE_LEASE_H

#include "base/fence.h"
#include "base/util.h"
#include "kube/client.h"

struct stw_lease;

struct stw_lease_config {
    const char *ns, *name;                    /* of the Lease */
    const char *identity;                     /* host name, "_", random */
    uint32_t duration_ms, renew_ms, retry_ms; /* 0: 15000, 10000, 2000 */
    /* On the lease's own thread.  started: we lead from now on.  stopped: we must have stopped
     * writing when it returns. */
    void (*started)(void *ctx);
    void (*stopped)(void *ctx);
    void *ctx;
    /* Open while we lead, until renew_ms after the last renewal began; or NULL.  It is opened
     * before started() and closed before stopped(). */
    struct stw_fence *fence;
};

/* Copies the strings.  Sets leader_election_master_status{name}. */
int stw_lease_create(struct stw_client *client, const struct stw_lease_config *config,
                     const struct stw_clock *clock, struct stw_metrics *metrics,
                     struct stw_lease **ret, struct stw_error *err) STW_MUST_CHECK;
int stw_lease_start(struct stw_lease *l, struct stw_error *err) STW_MUST_CHECK;
bool stw_lease_held(const struct stw_lease *l);
/* Calls stopped() when we lead, then releases the Lease (holderIdentity "") so that another replica
 * takes over at once; joins the thread. */
void stw_lease_stop(struct stw_lease *l);
void stw_lease_destroy(struct stw_lease *l);

#endif
