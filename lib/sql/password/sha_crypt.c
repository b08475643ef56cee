/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 crypt, "Unix crypt using SHA-256 and SHA-512", Ulrich Drepper, version 0.6: the digest of
 * MySQL's caching_sha2_password and sha256_password.  crypt(3) cannot be used: MySQL's salts are
 * longer than it accepts, and have any byte. */
#include "sql/password/password.h"

#include "base/util.h"

#include <openssl/evp.h>

#define LEN 32

struct crypt_sum {
    EVP_MD_CTX *ctx;
    bool failed;
};

static void start_digest(struct crypt_sum *s)
{
    s->failed |= EVP_DigestInit_ex(s->ctx, EVP_sha256(), NULL) != 1;
}

static void add_to_digest(struct crypt_sum *s, const void *data, size_t len)
{
    s->failed |= EVP_DigestUpdate(s->ctx, data, len) != 1;
}

static void finish_digest(struct crypt_sum *s, unsigned char out[LEN])
{
    s->failed |= EVP_DigestFinal_ex(s->ctx, out, NULL) != 1;
}

/* Adds `len` bytes of the repeated digest. */
static void add_repeated(struct crypt_sum *s, const unsigned char digest[LEN], size_t len)
{
    for (; len > LEN; len -= LEN)
        add_to_digest(s, digest, LEN);
    add_to_digest(s, digest, len);
}

/* Steps 1 to 12. */
static void first_digest(struct crypt_sum *s, const char *key, size_t key_len, const char *salt,
                         size_t salt_len, unsigned char a[LEN])
{
    unsigned char b[LEN];
    start_digest(s);
    add_to_digest(s, key, key_len);
    add_to_digest(s, salt, salt_len);
    add_to_digest(s, key, key_len);
    finish_digest(s, b);
    start_digest(s);
    add_to_digest(s, key, key_len);
    add_to_digest(s, salt, salt_len);
    add_repeated(s, b, key_len);
    for (size_t n = key_len; n > 0; n >>= 1)
        if (n & 1)
            add_to_digest(s, b, LEN);
        else
            add_to_digest(s, key, key_len);
    finish_digest(s, a);
    stw_wipe(b, sizeof(b));
}

/* Steps 13 to 20: the bytes that replace key and salt in the rounds. */
static void digest_repeated(struct crypt_sum *s, const char *text, size_t len, size_t times,
                            unsigned char out[LEN])
{
    start_digest(s);
    for (size_t i = 0; i < times; i++)
        add_to_digest(s, text, len);
    finish_digest(s, out);
}

/* Step 21. */
static void rounds_of(struct crypt_sum *s, unsigned rounds, const unsigned char p[LEN],
                      size_t key_len, const unsigned char q[LEN], size_t salt_len,
                      unsigned char a[LEN])
{
    for (unsigned i = 0; i < rounds; i++) {
        start_digest(s);
        if (i & 1)
            add_repeated(s, p, key_len);
        else
            add_to_digest(s, a, LEN);
        if (i % 3)
            add_repeated(s, q, salt_len);
        if (i % 7)
            add_repeated(s, p, key_len);
        if (i & 1)
            add_to_digest(s, a, LEN);
        else
            add_repeated(s, p, key_len);
        finish_digest(s, a);
    }
}

/* Step 22: three bytes at a time, in a fixed order, six bits a letter. */
static void write_digest(const unsigned char a[LEN], char out[44])
{
    static const char letters[] =
        "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const unsigned char order[][3] = {
        {0, 10, 20}, {21, 1, 11}, {12, 22, 2}, {3, 13, 23}, {24, 4, 14},
        {15, 25, 5}, {6, 16, 26}, {27, 7, 17}, {18, 28, 8}, {9, 19, 29},
    };
    for (size_t i = 0; i < STW_COUNT(order); i++) {
        unsigned v =
            (unsigned)a[order[i][0]] << 16 | (unsigned)a[order[i][1]] << 8 | a[order[i][2]];
        for (int k = 0; k < 4; k++, v >>= 6)
            *out++ = letters[v & 63];
    }
    unsigned v = (unsigned)a[31] << 8 | a[30];
    for (int k = 0; k < 3; k++, v >>= 6)
        *out++ = letters[v & 63];
    *out = '\0';
}

int stw_sha256_crypt(const char *key, size_t key_len, const char *salt, size_t salt_len,
                     unsigned rounds, char out[44])
{
    unsigned char a[LEN] = {0}, p[LEN], q[LEN];
    struct crypt_sum s = {.ctx = EVP_MD_CTX_new()};
    /* Step 14 is quadratic in the length. */
    if (!s.ctx || key_len > 4096) {
        EVP_MD_CTX_free(s.ctx);
        return -1;
    }
    first_digest(&s, key, key_len, salt, salt_len, a);
    digest_repeated(&s, key, key_len, key_len, p);
    digest_repeated(&s, salt, salt_len, 16u + a[0], q);
    rounds_of(&s, rounds, p, key_len, q, salt_len, a);
    EVP_MD_CTX_free(s.ctx);
    write_digest(a, out);
    stw_wipe(a, sizeof(a));
    stw_wipe(p, sizeof(p));
    stw_wipe(q, sizeof(q));
    return s.failed ? -1 : 0;
}
