/* SPDX-License-Identifier: Apache-2.0
 *
 * A certificate with its key and the CAs to trust, in a Secret of a user.  Two forms of keys are read:
 * "<prefix>.crt", "<prefix>.key" and "<prefix>-ca.crt", or those that cert-manager writes: tls.crt,
 * tls.key and ca.crt. */
#ifndef STW_KINDS_COMMON_CERTIFICATE_H
#define STW_KINDS_COMMON_CERTIFICATE_H

#include "base/util.h"

#include <stdbool.h>

struct stw_secret;

#define STW_CERTIFICATE_MAX (256u << 10) /* bytes of one value */

/* In PEM; stw_certificate_done wipes them. */
struct stw_certificate {
    char *cert, *key, *ca;
    bool common; /* from tls.crt, tls.key and ca.crt */
};

/* Takes the first form of which all keys have a value.  0; or -1 and nothing in `ret`:
 * STW_ERR_NOT_FOUND: the text names each key that is missing; STW_ERR_INVALID: a value has a NUL, no
 * certificate where there must be one, or among CAs anything else (stw_bundle_check);
 * STW_ERR_TOO_LARGE.  `name` of the Secret is for these texts. */
int stw_certificate_read(const struct stw_secret *s, const char *name, const char *prefix,
                         struct stw_certificate *ret, struct stw_error *err) STW_MUST_CHECK;
/* As stw_bundle_check.  What is too large for it is not looked at to its end: 0, since those who read the
 * file have no such limit. */
int stw_certificate_check_authorities(const char *pem, struct stw_error *err) STW_MUST_CHECK;
void stw_certificate_done(struct stw_certificate *c);

#endif
