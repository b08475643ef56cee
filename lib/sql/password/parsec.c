/* SPDX-License-Identifier: Apache-2.0
 *
 * The verifier of MariaDB's plugin parsec (11.6 and later): "P", a digit, ":", a salt, ":", a key.
 * The key is the Ed25519 public key whose seed is PBKDF2-HMAC-SHA-512 of the password with the
 * salt; the digit 0 is 1,024 iterations, and each further one doubles them. */
#include "sql/password/password.h"

#include "base/base64.h"
#include "base/util.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sodium.h>

#define SALT_BYTES 18
#define SALT_LEN 24      /* in base64 */
#define KEY_LEN 43       /* in base64, without its "=" */
#define HEAD_LEN 3       /* "P0:" */
#define ITERATIONS 1024  /* of the digit 0, with which the server makes passwords */
#define STACK_BYTES 4096 /* more than libsodium's functions below use */

static int derive_key(const struct stw_sql_secret *p, const unsigned char *salt, unsigned digit,
                      unsigned char key[crypto_sign_PUBLICKEYBYTES])
{
    unsigned char seed[crypto_sign_SEEDBYTES], secret[crypto_sign_SECRETKEYBYTES];
    if (p->len >= INT32_MAX || sodium_init() < 0)
        return -1;
    bool done = PKCS5_PBKDF2_HMAC(p->data, (int)p->len, salt, SALT_BYTES, ITERATIONS << digit,
                                  EVP_sha512(), sizeof(seed), seed) == 1 &&
                crypto_sign_seed_keypair(key, secret, seed) == 0;
    stw_wipe(seed, sizeof(seed));
    stw_wipe(secret, sizeof(secret));
    sodium_stackzero(STACK_BYTES);
    return done ? 0 : -1;
}

static int write_verifier(const struct stw_sql_secret *p, const unsigned char *salt, unsigned digit,
                          struct stw_buf *out)
{
    unsigned char key[crypto_sign_PUBLICKEYBYTES];
    if (derive_key(p, salt, digit, key) != 0)
        return -1;
    stw_buf_addf(out, "P%u:", digit);
    stw_base64_encode(salt, SALT_BYTES, out);
    stw_buf_addc(out, ':');
    stw_base64_encode(key, sizeof(key), out);
    if (out->len > 0 && !out->failed)
        out->data[--out->len] = '\0'; /* 32 bytes end in one "=" */
    return out->failed ? -1 : 0;
}

int stw_parsec_make(const struct stw_sql_secret *p, struct stw_buf *out)
{
    unsigned char salt[SALT_BYTES];
    if (!p->data || p->len == 0 || RAND_bytes(salt, sizeof(salt)) != 1)
        return -1;
    return write_verifier(p, salt, 0, out);
}

enum stw_password_state stw_parsec_check(const char *v, size_t len, const struct stw_sql_secret *p)
{
    stw_autobuf struct stw_buf salt = STW_BUF_INIT(256), made = STW_BUF_INIT(256);
    if (len != HEAD_LEN + SALT_LEN + 1 + KEY_LEN || v[0] != 'P' || v[1] < '0' || v[1] > '9' ||
        v[2] != ':' || v[HEAD_LEN + SALT_LEN] != ':' ||
        stw_base64_decode(v + HEAD_LEN, SALT_LEN, &salt) != 0 || salt.len != SALT_BYTES)
        return STW_PASSWORD_DIFFERS;
    if (write_verifier(p, (const unsigned char *)salt.data, (unsigned)(v[1] - '0'), &made) != 0)
        return STW_PASSWORD_UNKNOWN;
    return made.len == len && CRYPTO_memcmp(made.data, v, len) == 0 ? STW_PASSWORD_SAME
                                                                    : STW_PASSWORD_DIFFERS;
}
