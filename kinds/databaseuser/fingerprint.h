/* SPDX-License-Identifier: Apache-2.0
 *
 * Fingerprints of passwords, for statuses: HMAC-SHA-256 with a key in a Secret of steward, which
 * all replicas share and no other client may read.  They show only whether two passwords of one
 * object are equal: without the key no guess can be checked.  Any thread. */
#ifndef STW_KINDS_DATABASEUSER_FINGERPRINT_H
#define STW_KINDS_DATABASEUSER_FINGERPRINT_H

#include "base/util.h"
#include "controller/controller.h"

#define STW_FINGERPRINT_SECRET "steward-fingerprint-key"
#define STW_FINGERPRINT_LEN 33

struct stw_fingerprints;

/* NULL: no memory. */
struct stw_fingerprints *stw_fingerprints_create(const char *ns) STW_MUST_CHECK;
void stw_fingerprints_destroy(struct stw_fingerprints *f); /* `f` may be NULL */

/* The first call reads the key, or creates it. */
int stw_fingerprint(struct stw_fingerprints *f, const struct stw_run *run, const char *uid,
                    const char *password, size_t len, char ret[STW_FINGERPRINT_LEN],
                    struct stw_error *err) STW_MUST_CHECK;

/* Only computes it, with a key of 32 bytes. */
#define STW_FINGERPRINT_KEY_BYTES 32
int stw_fingerprint_under(const unsigned char key[STW_FINGERPRINT_KEY_BYTES], const char *uid,
                          const char *password, size_t len, char ret[STW_FINGERPRINT_LEN]);

#endif
