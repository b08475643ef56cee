/* SPDX-License-Identifier: Apache-2.0
 *
 * The webhook's certificate, from one of two places:
 *  - a folder with tls.crt and tls.key (cert-manager's layout), watched for the `..data` swap; or
 *  - the operator's own CA and leaf, kept in a Secret that all replicas share, rotated with overlap: a
 *    new CA is in every caBundle before a certificate signed by it serves, and the old CA is
 *    removed after its last certificate.
 *
 * A broken pair is refused, reported by log and metric, and the old one stays in use.  The wall
 * clock is checked each minute, so a suspended machine or a stepped clock is noticed within that
 * time. */
#ifndef STW_CERTS_CERTS_H
#define STW_CERTS_CERTS_H

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/metrics.h"
#include "base/operator.h"
#include "base/util.h"
#include "kube/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_certs;

/* Names in the printed manifests (stw_operator_text); the rights below are limited to these. */
#define STW_CERTS_SECRET "{operator}-webhook-server-cert"
#define STW_CERTS_MUTATING "{operator}-mutating-webhook-configuration"
#define STW_CERTS_VALIDATING "{operator}-validating-webhook-configuration"

#define STW_CERTS_CRDS_MAX 8

/* The rights that Secret mode needs, besides STW_CERTS_CRD_VERBS on its CRDs; ended by a NULL
 * resource. */
#define STW_CERTS_CRD_VERBS "get,list,watch,patch"
extern const struct stw_rule stw_certs_rules[];

/* Whether an entry of a webhook configuration asks about a kind, by its name. */
bool stw_webhook_is_of(struct stw_json hook, const struct stw_kind *kind);

/* Takes a pair into service; -1 keeps the old one.  On the certificate thread. */
typedef int stw_certs_use_fn(void *ctx, const char *cert_pem, const char *key_pem,
                             struct stw_error *err);

struct stw_certs_config {
    const char *folder; /* set: folder mode */
    const char *label;  /* static, label of its metric; NULL: "serving" */

    struct stw_client *client;     /* set: Secret mode, with all of the below */
    const struct stw_operator *op; /* borrowed */
    const char *ns, *secret;
    /* Ended by NULL: "steward-webhook-service.steward-system.svc", ...; "127.0.0.1", "::1". */
    const char *const *dns_names;
    const char *const *ip_addresses;
    /* Webhook configurations, or NULL; the entries of the kinds of `op` get the caBundle. */
    const char *mutating, *validating;
    /* CRDs whose conversion webhooks get it: up to STW_CERTS_CRDS_MAX, ended by NULL; or NULL. */
    const char *const *crds;
    uint32_t ca_days, leaf_days; /* 0: 3650, 90; renewed with a third of the life left */
    /* In a rotation: how long every caBundle must have contained the new CA before it issues a leaf
     * (0: 10), and how long the old CA stays in them after that (0: 3600). */
    uint32_t settle_seconds, overlap_seconds;

    stw_certs_use_fn *use;
    void *ctx;
};

/* Copies the config; `client`, `clock` and `metrics` (may be NULL) are borrowed. */
int stw_certs_create(const struct stw_certs_config *config, const struct stw_clock *clock,
                     struct stw_metrics *metrics, struct stw_certs **ret,
                     struct stw_error *err) STW_MUST_CHECK;
/* Folder mode: loads the pair now and fails when it is not usable.  Secret mode: starts the thread,
 * which obtains a pair in the background (it waits for a missing webhook configuration). */
int stw_certs_start(struct stw_certs *c, struct stw_error *err) STW_MUST_CHECK;
/* Whether a valid pair is served (and, in Secret mode, the caBundles contain its CA).  `why` gets
 * what is missing. */
bool stw_certs_ready(struct stw_certs *c, char *why, size_t why_size);
void stw_certs_poke(struct stw_certs *c); /* check now: the clock was stepped, the Secret changed */
/* Stops the thread; NULL is allowed.  Waits for the request in flight: cancel the client first. */
void stw_certs_destroy(struct stw_certs *c);

#endif
