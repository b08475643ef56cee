/* SPDX-License-Identifier: Apache-2.0
 *
 * Fingerprints of passwords for statuses: HMAC-SHA-256 under a key in a Secret of steward's own,
 * which all replicas share and nobody else may read.  They tell whether two passwords of one object
 * are the same, and nothing more: without the key no guess can be tried.  Any thread. */
#ifndef STW_CONTROLLER_FINGERPRINT_H
#define STW_CONTROLLER_FINGERPRINT_H

#include "controller/controller.h"

#define STW_FINGERPRINT_SECRET "steward-fingerprint-key"
#define STW_FINGERPRINT_LEN 33

struct stw_fingerprints;

struct stw_fingerprints *stw_fingerprints_create(const char *ns); /* NULL: no memory */
void stw_fingerprints_destroy(struct stw_fingerprints *f);        /* NULL is fine */

/* The key is read at the first call, and made when there is none. */
int stw_fingerprint(struct stw_fingerprints *f, const struct stw_run *run, const char *uid,
                    const char *password, size_t len, char ret[STW_FINGERPRINT_LEN],
                    struct stw_error *err);

/* The computation alone, under a key of 32 bytes. */
#define STW_FINGERPRINT_KEY_BYTES 32
int stw_fingerprint_under(const unsigned char key[STW_FINGERPRINT_KEY_BYTES], const char *uid,
                          const char *password, size_t len, char ret[STW_FINGERPRINT_LEN]);

#endif
