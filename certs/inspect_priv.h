/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of issue.h for a parsed certificate: parsing is the expensive part (a tenth of a
 * millisecond; a third for a key). */
#ifndef STW_CERTS_INSPECT_PRIV_H
#define STW_CERTS_INSPECT_PRIV_H

#include "base/util.h"
#include "certs/issue.h"
#include "ssl_priv.h"

int stw_x509_info(const X509 *cert, struct stw_cert_info *ret,
                  struct stw_error *err) STW_MUST_CHECK;
/* Neither expired nor not yet valid. */
int stw_x509_check_times(const X509 *cert, int64_t now_us, struct stw_error *err) STW_MUST_CHECK;
int stw_x509_check_key(X509 *cert, const char *key_pem, struct stw_error *err) STW_MUST_CHECK;
bool stw_x509_is_ca(X509 *cert);
bool stw_x509_covers(X509 *cert, const char *const *dns_names, const char *const *ip_addresses);
bool stw_x509_signed_by(X509 *cert, X509 *ca);

#endif
