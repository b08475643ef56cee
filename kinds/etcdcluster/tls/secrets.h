/* SPDX-License-Identifier: Apache-2.0
 *
 * The Secrets with an EtcdCluster's certificates. */
#ifndef STW_KINDS_ETCDCLUSTER_SECRETS_H
#define STW_KINDS_ETCDCLUSTER_SECRETS_H

#include "base/error.h"

#include <stddef.h>

struct ec;
struct ec_pem;

/* Reads the certificate of a Secret (kinds/common/certificate.h).
 * 1: read; without a usable one all of `ret` is NULL and `err` says why.  0: there is no such Secret, -1. */
int ec_secret_read(struct ec *e, const char *name, const char *prefix, struct ec_pem *ret,
                   struct stw_error *err);
/* Creates the Secrets of steward's own authority, and renews them when due.  -1: `err`, or e->tls
 * is EC_TLS_LOST and nothing was written. */
int ec_secrets_ensure(struct ec *e, struct stw_error *err);
/* The generation, and the resourceVersions of all Secrets in use, from the cache. */
void ec_secrets_versions(struct ec *e, char *out, size_t size);

#endif
