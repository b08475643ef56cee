/* SPDX-License-Identifier: Apache-2.0
 *
 * The webhook's certificate, from one of two places:
 *  - a folder with tls.crt and tls.key (cert-manager's layout), watched for the `..data` swap; or
 *  - steward's own CA and leaf, kept in a Secret that all replicas share, rotated with CA overlap: a new
 *    CA is in every caBundle before a certificate of it serves, the old one leaves after its last.
 * A pair that is broken is refused, said in log and metric, and the old one kept.  Time is looked at
 * by the wall clock each minute, so that a suspended machine or a stepped clock costs at most that. */
#ifndef STW_CERTS_CERTS_H
#define STW_CERTS_CERTS_H

#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "kube/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_certs;

/* Takes a pair into service; -1 keeps the old one.  On the certificate thread. */
typedef int stw_certs_use_fn(void *ctx, const char *cert_pem, const char *key_pem,
                             struct stw_error *err);

struct stw_certs_config {
    const char *folder; /* set: this mode */

    struct stw_client *client; /* set: Secret mode, with all of the below */
    const char *ns, *secret;
    const char *const *dns_names; /* ended by NULL: "steward-webhook-service.steward-system.svc", ... */
    const char *const *ip_addresses; /* ended by NULL: "127.0.0.1", "::1" */
    const char *mutating, *validating; /* names of the webhook configurations that get the caBundle */
    uint32_t ca_days, leaf_days; /* 0: 3650, 90; renewed when a third of its life is left */

    stw_certs_use_fn *use;
    void *ctx;
};

/* Copies the config. */
int stw_certs_create(const struct stw_certs_config *config, const struct stw_clock *clock,
                     struct stw_metrics *metrics, struct stw_certs **ret, struct stw_error *err);
/* Folder mode: loads the pair now and fails when it is not usable.  Secret mode: starts, and works on it in
 * the background until it has one (a missing webhook configuration is waited for). */
int stw_certs_start(struct stw_certs *c, struct stw_error *err);
/* Serving a valid pair (and, in Secret mode, the caBundles hold its CA).  `why` says what is missing. */
bool stw_certs_ready(struct stw_certs *c, char *why, size_t why_size);
void stw_certs_poke(struct stw_certs *c); /* look now: the clock was stepped, the Secret changed */
void stw_certs_destroy(struct stw_certs *c); /* stops the thread; NULL is fine */

#endif
