/* SPDX-License-Identifier: Apache-2.0
 *
 * steward's own authority of a cluster, and what it signs. */
#ifndef STW_KINDS_ETCDCLUSTER_AUTHORITY_H
#define STW_KINDS_ETCDCLUSTER_AUTHORITY_H

#include "base/buf.h"
#include "base/error.h"
#include "certs/issue.h"

#include <stdbool.h>
#include <stdint.h>

/* Certificate, key and CA bundle of a Secret, in PEM.  ec_pem_done wipes them. */
struct ec_pem {
    char *cert, *key, *ca;
    bool common; /* from tls.crt, tls.key and ca.crt */
};
void ec_pem_done(struct ec_pem *p);

struct ec_authority {
    struct stw_pem_pair now, next; /* key and certificate; next: NULLs while there is none */
    char *previous;                /* certificates, or NULL */
    struct stw_buf bundle;         /* certificates of all that are trusted */
    /* A certificate of the members, and what they trust; NULL: no member runs.  Borrowed. */
    const struct ec_pem *in_use;
};
void ec_authority_done(struct ec_authority *a);
/* `now` is missing or damaged, and has not merely expired. */
bool ec_authority_lost(const struct ec_authority *a, int64_t now_us);
/* Whether every member has been started with this bundle. */
typedef bool ec_trusted_fn(void *ctx, const char *bundle);
/* Takes the next step of its life cycle, if one is due, and sets its bundle.  1: it changed and
 * must be written, 0: unchanged, -1. */
int ec_authority_advance(struct ec_authority *a, const char *name, int64_t now_us,
                         ec_trusted_fn *trusted, void *ctx, struct stw_error *err);
/* Seconds since the epoch at which a step may be due; INT64_MAX: not known. */
int64_t ec_authority_look(const struct ec_authority *a, int64_t now_us);
/* End of the certificate, in seconds since the epoch; INT64_MAX: NULL, or it cannot be read. */
int64_t ec_cert_end(const char *cert);
/* Key, names and signature are right, and it does not expire within `early_s` seconds. */
bool ec_leaf_is_good(const struct ec_pem *p, const char *ca, const char *const *names,
                     int64_t early_s, int64_t now_us);

#endif
