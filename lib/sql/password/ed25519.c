/* SPDX-License-Identifier: Apache-2.0
 *
 * The verifier of MariaDB's plugin ed25519: the Ed25519 public key (RFC 8032, section 5.1.5) whose
 * secret is not a seed of 32 bytes but the password, of any length.  OpenSSL and libsodium make
 * keys only of a seed, but libsodium also exports the multiplication of the base point. */
#include "sql/password/password.h"

#include "base/base64.h"
#include "base/util.h"

#include <sodium.h>

#define STACK_BYTES 4096 /* more than libsodium's functions below use */

int stw_ed25519_make(const struct stw_sql_secret *p, struct stw_buf *out)
{
    unsigned char digest[crypto_hash_sha512_BYTES], key[crypto_scalarmult_ed25519_BYTES];
    if (!p->data || p->len == 0 || sodium_init() < 0)
        return -1;
    int rc = crypto_hash_sha512(digest, (const unsigned char *)p->data, p->len);
    if (rc == 0)
        rc = crypto_scalarmult_ed25519_base(key, digest); /* sets and clears the bits of 5.1.5 */
    stw_wipe(digest, sizeof(digest));
    sodium_stackzero(STACK_BYTES); /* the scalar's digits */
    if (rc != 0)
        return -1;
    stw_base64_encode(key, sizeof(key), out);
    if (out->len > 0 && !out->failed)
        out->data[--out->len] = '\0'; /* 32 bytes end in one "=" */
    return out->failed ? -1 : 0;
}
