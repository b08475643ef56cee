/* SPDX-License-Identifier: Apache-2.0
 *
 * A small snapshot: some pages and their SHA-256. */
#ifndef STW_TESTS_ETCD_SNAPSHOT_FIXTURE_H
#define STW_TESTS_ETCD_SNAPSHOT_FIXTURE_H

#include <openssl/evp.h>
#include <stdlib.h>

#define PAGES_BYTES 1024u
#define WHOLE_BYTES (PAGES_BYTES + 32u)

static inline void snapshot_make(unsigned char out[WHOLE_BYTES])
{
    for (unsigned i = 0; i < PAGES_BYTES; i++)
        out[i] = (unsigned char)(i * 7 + i / 256);
    if (EVP_Digest(out, PAGES_BYTES, out + PAGES_BYTES, NULL, EVP_sha256(), NULL) != 1)
        abort();
}

#endif
