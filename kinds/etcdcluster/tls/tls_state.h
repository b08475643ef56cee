/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the certificates of a cluster. */
#ifndef STW_KINDS_ETCDCLUSTER_TLS_STATE_H
#define STW_KINDS_ETCDCLUSTER_TLS_STATE_H

#include "base/error.h"
#include "base/hex.h"

enum ec_tls_state {
    EC_TLS_NONE, /* no TLS */
    EC_TLS_READY,
    EC_TLS_MISSING,  /* a Secret, or a key in it, is missing */
    EC_TLS_BAD,      /* does not parse, or key and certificate do not match */
    EC_TLS_SAN,      /* does not cover the names of the members */
    EC_TLS_EXPIRING, /* soon */
    EC_TLS_EXPIRED,
    EC_TLS_OLD,    /* a member still serves another certificate */
    EC_TLS_LOST,   /* our authority, and a certificate in use that it had signed */
    EC_TLS_FAILED, /* see `err` */
    EC_TLS_STATES
};

struct ec_tls {
    bool peer, client; /* TLS wanted: between members; for clients, including steward */
    bool own;          /* certificates from steward's CA */
    bool peer_common, server_common; /* the Secret has the keys of type kubernetes.io/tls */
    char ca_secret[300], peer_secret[300], server_secret[300], operator_secret[300];
    char trust_hash[STW_HASH_LEN]; /* of the CA bundles, which etcd reads only at its start */
    enum ec_tls_state state;
    char text[400];
    char served[65];    /* fingerprint of the certificate that members should serve; or "" */
    int64_t not_after;  /* seconds since the epoch, of the first that expires; 0: not known */
    int64_t look_again; /* when one of our authorities or certificates needs a step */
    int64_t changed_at; /* when `served` was found changed */
    struct stw_error err;
};

void ec_tls_set_state(struct ec_tls *t, enum ec_tls_state state, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds an authority bundle to t->trust_hash. */
void ec_tls_trust(struct ec_tls *t, const char *bundle);

#endif
