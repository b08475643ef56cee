/* SPDX-License-Identifier: Apache-2.0
 *
 * The webhook's certificate, from one of two places:
 *  - a folder with tls.crt and tls.key (cert-manager's layout), watched for the `..data` swap; or
 *  - steward's own CA and leaf, kept in a Secret that all replicas share, rotated with overlap: a
 *    new CA is in every caBundle before a certificate of it serves, the old one leaves after its
 *    last.
 *
 * A pair that is broken is refused, said in log and metric, and the old one kept.  Time is looked
 * at by the wall clock each minute, so that a suspended machine or a stepped clock costs at most
 * that. */
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

/* Names that the shipped manifests use; the rights below are for just these. */
#define STW_CERTS_SECRET "steward-webhook-server-cert"
#define STW_CERTS_MUTATING "steward-mutating-webhook-configuration"
#define STW_CERTS_VALIDATING "steward-validating-webhook-configuration"

/* What the Secret mode needs; ended by a NULL resource. */
extern const struct stw_rule stw_certs_rules[];

/* Takes a pair into service; -1 keeps the old one.  On the certificate thread. */
typedef int stw_certs_use_fn(void *ctx, const char *cert_pem, const char *key_pem,
                             struct stw_error *err);

struct stw_certs_config {
    const char *folder; /* set: this mode */
    const char *label;  /* static, of its metric; NULL: "serving" */

    struct stw_client *client; /* set: Secret mode, with all of the below */
    const char *ns, *secret;
    /* Ended by NULL: "steward-webhook-service.steward-system.svc", ...; "127.0.0.1", "::1". */
    const char *const *dns_names;
    const char *const *ip_addresses;
    const char *mutating, *validating; /* webhook configurations that get the caBundle, or NULL */
    uint32_t ca_days, leaf_days;       /* 0: 3650, 90; renewed when a third of its life is left */
    /* In a rotation: how long every caBundle is seen holding the new CA before a leaf of it is
     * issued (0: 10), and how long the old CA stays in them after that (0: 3600). */
    uint32_t settle_seconds, overlap_seconds;

    stw_certs_use_fn *use;
    void *ctx;
};

/* Copies the config; `client`, `clock` and `metrics` (may be NULL) are borrowed. */
int stw_certs_create(const struct stw_certs_config *config, const struct stw_clock *clock,
                     struct stw_metrics *metrics, struct stw_certs **ret, struct stw_error *err);
/* Folder mode: loads the pair now and fails when it is not usable.  Secret mode: starts, and works
 * on it in the background until it has one (a missing webhook configuration is waited for). */
int stw_certs_start(struct stw_certs *c, struct stw_error *err);
/* Serving a valid pair (and, in Secret mode, the caBundles hold its CA).  `why` says what is
 * missing. */
bool stw_certs_ready(struct stw_certs *c, char *why, size_t why_size);
void stw_certs_poke(struct stw_certs *c); /* look now: the clock was stepped, the Secret changed */
/* Stops the thread; NULL is fine.  Waits for the request in flight: cancel the client before. */
void stw_certs_destroy(struct stw_certs *c);

#endif
