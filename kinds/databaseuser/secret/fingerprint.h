/* SPDX-License-Identifier: Apache-2.0
 *
 * Fingerprints of passwords, for statuses: HMAC-SHA-256 with a key in a Secret of steward, which
 * all replicas share and no other client may read.  They show only whether two passwords of one
 * object are equal: without the key no guess can be checked.  Any thread. */
#ifndef STW_KINDS_DATABASEUSER_FINGERPRINT_H
#define STW_KINDS_DATABASEUSER_FINGERPRINT_H

#include "base/util.h"
#include "controller/controller.h"

#define DBU_FINGERPRINT_SECRET "steward-fingerprint-key"
#define DBU_FINGERPRINT_LEN 33

struct dbu_fingerprints;

/* NULL: no memory. */
struct dbu_fingerprints *dbu_fingerprints_create(const char *ns) STW_MUST_CHECK;
void dbu_fingerprints_destroy(struct dbu_fingerprints *f); /* `f` may be NULL */

/* The first call reads the key, or creates it. */
int dbu_fingerprint(struct dbu_fingerprints *f, const struct stw_run *run, const char *uid,
                    const char *password, size_t len, char ret[DBU_FINGERPRINT_LEN],
                    struct stw_error *err) STW_MUST_CHECK;

/* Only computes it, with a key of 32 bytes. */
#define DBU_FINGERPRINT_KEY_BYTES 32
int dbu_fingerprint_under(const unsigned char key[DBU_FINGERPRINT_KEY_BYTES], const char *uid,
                          const char *password, size_t len, char ret[DBU_FINGERPRINT_LEN]);

#endif
