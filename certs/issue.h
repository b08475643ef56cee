/* SPDX-License-Identifier: Apache-2.0
 *
 * X.509 with OpenSSL: a P-256 CA, leaves signed by it, and checks of PEM texts. */
#ifndef STW_CERTS_ISSUE_H
#define STW_CERTS_ISSUE_H

#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

#define STW_TRUST_MAX_CERTS 256

/* Both are PEM and owned by the caller (stw_pem_pair_done wipes the key before it frees it). */
struct stw_pem_pair {
    char *cert, *key;
};
void stw_pem_pair_done(struct stw_pem_pair *p);

int stw_issue_ca(const char *common_name, int64_t now_us, uint32_t days, struct stw_pem_pair *ret,
                 struct stw_error *err) STW_MUST_CHECK;
int stw_issue_leaf(const struct stw_pem_pair *ca, const char *const *dns_names,
                   const char *const *ip_addresses, int64_t now_us, uint32_t days,
                   struct stw_pem_pair *ret, struct stw_error *err) STW_MUST_CHECK;

/* The same for a server that is also a client, such as an etcd member; without a common name. */
int stw_issue_both(const struct stw_pem_pair *ca, const char *const *dns_names,
                   const char *const *ip_addresses, int64_t now_us, uint32_t days,
                   struct stw_pem_pair *ret, struct stw_error *err) STW_MUST_CHECK;

struct stw_cert_info {
    int64_t not_before_us, not_after_us;
    char serial[64];
    char fingerprint[65]; /* SHA-256, hex */
};
/* Of the first certificate in the PEM. */
int stw_cert_info(const char *cert_pem, struct stw_cert_info *ret,
                  struct stw_error *err) STW_MUST_CHECK;
/* The key matches the first certificate, all parse, not expired at now_us and not valid only in the
 * future (25 h of clock skew are allowed).  0 or -1; the text has the reason. */
int stw_pair_check(const char *cert_pem, const char *key_pem, int64_t now_us,
                   struct stw_error *err) STW_MUST_CHECK;
/* Every block of the PEM is a certificate that can be read, at least one and at most
 * STW_TRUST_MAX_CERTS; text between blocks is a comment.  etcd does not start with a CA file that
 * has a private key, or a block that is not a certificate; one that cannot be decoded it passes over, and
 * we do not.  STW_ERR_INVALID: the text says which block it is; STW_ERR_TOO_LARGE. */
int stw_bundle_check(const char *bundle_pem, struct stw_error *err) STW_MUST_CHECK;
/* The first certificate is a CA certificate and valid at now_us. */
int stw_ca_check(const char *cert_pem, int64_t now_us, struct stw_error *err) STW_MUST_CHECK;
/* The leaf's SANs include every requested name and address. */
bool stw_cert_covers(const char *cert_pem, const char *const *dns_names,
                     const char *const *ip_addresses);
/* The leaf was signed by one of the CAs in the bundle. */
bool stw_cert_signed_by(const char *cert_pem, const char *ca_bundle_pem);

#endif
