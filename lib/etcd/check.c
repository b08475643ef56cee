/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot ends with the SHA-256 of all bytes before it.  The end is known only when it is
 * reached, so the last 32 bytes are always held back from the digest. */
#include "base/hex.h"
#include "base/util.h"
#include "etcd/etcd.h"

#include <openssl/evp.h>

#define HASH_BYTES 32
#define PAGE_BYTES 512 /* a database is a whole number of these */

struct stw_etcd_check {
    EVP_MD_CTX *body;  /* of all but the last 32 bytes */
    EVP_MD_CTX *whole; /* of all bytes: to verify what a store returns */
    unsigned char tail[HASH_BYTES];
    size_t tail_len;
    uint64_t size;
};

struct stw_etcd_check *stw_etcd_check_create(void)
{
    struct stw_etcd_check *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->body = EVP_MD_CTX_new();
    c->whole = EVP_MD_CTX_new();
    if (!c->body || !c->whole || EVP_DigestInit_ex(c->body, EVP_sha256(), NULL) != 1 ||
        EVP_DigestInit_ex(c->whole, EVP_sha256(), NULL) != 1) {
        stw_etcd_check_destroy(c);
        return NULL;
    }
    return c;
}

void stw_etcd_check_destroy(struct stw_etcd_check *c)
{
    if (!c)
        return;
    EVP_MD_CTX_free(c->body);
    EVP_MD_CTX_free(c->whole);
    free(c);
}

/* Digests the oldest bytes of the tail, so that it has at most 32 bytes together with `len` more.
 */
static int pass_on(struct stw_etcd_check *c, size_t len)
{
    size_t room = HASH_BYTES - c->tail_len;
    size_t n = len > room ? STW_MIN(len - room, c->tail_len) : 0;
    if (n == 0)
        return 0;
    if (EVP_DigestUpdate(c->body, c->tail, n) != 1)
        return -1;
    memmove(c->tail, c->tail + n, c->tail_len - n);
    c->tail_len -= n;
    return 0;
}

int stw_etcd_check_add(struct stw_etcd_check *c, const void *data, size_t len)
{
    const unsigned char *p = data;
    if (len == 0)
        return 0;
    size_t first = len > HASH_BYTES ? len - HASH_BYTES : 0;
    if (pass_on(c, len) != 0 || EVP_DigestUpdate(c->whole, p, len) != 1 ||
        EVP_DigestUpdate(c->body, p, first) != 1)
        return -1;
    memcpy(c->tail + c->tail_len, p + first, len - first);
    c->tail_len += len - first;
    c->size += len;
    return 0;
}

int stw_etcd_check_end(struct stw_etcd_check *c, uint64_t *ret_size, char ret_sha256[65],
                       struct stw_error *err)
{
    unsigned char body[HASH_BYTES], whole[HASH_BYTES];
    if (c->size <= HASH_BYTES)
        return stw_fail(
            err, STW_ERR_INVALID,
            "the snapshot is cut: %llu bytes are too few for a database and its SHA-256",
            (unsigned long long)c->size);
    if (c->size % PAGE_BYTES == 0)
        return stw_fail(err, STW_ERR_INVALID,
                        "the snapshot does not end with its SHA-256, so it cannot be checked");
    if (EVP_DigestFinal_ex(c->body, body, NULL) != 1 ||
        EVP_DigestFinal_ex(c->whole, whole, NULL) != 1)
        return stw_fail(err, STW_ERR_INTERNAL, "the SHA-256 cannot be computed");
    if (c->size % PAGE_BYTES != HASH_BYTES || memcmp(body, c->tail, HASH_BYTES) != 0)
        return stw_fail(err, STW_ERR_INVALID,
                        "the snapshot is damaged: its SHA-256 is not that of "
                        "the %llu bytes before it",
                        (unsigned long long)(c->size - HASH_BYTES));
    *ret_size = c->size;
    stw_hex_encode(whole, sizeof(whole), STW_HEX_LOWER, ret_sha256);
    return 0;
}
