/* SPDX-License-Identifier: Apache-2.0
 *
 * The verifier of MariaDB's plugin ed25519: the Ed25519 public key (RFC 8032, section 5.1.5) whose
 * secret is not a seed of 32 bytes but the password, of any length, so that OpenSSL's own key
 * functions cannot make it.  Speed and constant time do not matter here: no client can time
 * steward's arithmetic over the network, and it runs once per lookup. */
#include "sql/password.h"

#include "base/base64.h"
#include "base/util.h"

#include <openssl/bn.h>
#include <openssl/evp.h>

/* Extended coordinates (section 5.1.4): x = X/Z, y = Y/Z, T = X*Y/Z. */
struct point {
    BIGNUM *x, *y, *z, *t;
};

struct curve {
    BN_CTX *ctx;
    BIGNUM *p, *d2; /* the prime; twice the curve's constant */
    BIGNUM *v[8];   /* scratch space */
    bool failed;
};

static const char prime[] = "7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFED";
static const char constant[] = "52036CEE2B6FFE738CC740797779E89800700A4D4141D8AB75EB4DCA135978A3";
static const char base_x[] = "216936D3CD6E53FEC0A4E231FDD6DC5C692CC7609525A7B2C9562D608F25D51A";
static const char base_y[] = "6666666666666666666666666666666666666666666666666666666666666658";

static void multiply_modulo(struct curve *c, BIGNUM *r, const BIGNUM *a, const BIGNUM *b)
{
    c->failed |= !BN_mod_mul(r, a, b, c->p, c->ctx);
}

static void add_modulo(struct curve *c, BIGNUM *r, const BIGNUM *a, const BIGNUM *b)
{
    c->failed |= !BN_mod_add(r, a, b, c->p, c->ctx);
}

static void subtract_modulo(struct curve *c, BIGNUM *r, const BIGNUM *a, const BIGNUM *b)
{
    c->failed |= !BN_mod_sub(r, a, b, c->p, c->ctx);
}

/* r = r + q, also when both are the same point. */
static void add_point(struct curve *c, struct point *r, const struct point *q)
{
    BIGNUM **v = c->v;
    subtract_modulo(c, v[0], r->y, r->x);
    subtract_modulo(c, v[1], q->y, q->x);
    multiply_modulo(c, v[0], v[0], v[1]); /* A */
    add_modulo(c, v[1], r->y, r->x);
    add_modulo(c, v[2], q->y, q->x);
    multiply_modulo(c, v[1], v[1], v[2]); /* B */
    multiply_modulo(c, v[2], r->t, q->t);
    multiply_modulo(c, v[2], v[2], c->d2); /* C */
    multiply_modulo(c, v[3], r->z, q->z);
    add_modulo(c, v[3], v[3], v[3]);      /* D */
    subtract_modulo(c, v[4], v[1], v[0]); /* E */
    subtract_modulo(c, v[5], v[3], v[2]); /* F */
    add_modulo(c, v[6], v[3], v[2]);      /* G */
    add_modulo(c, v[7], v[1], v[0]);      /* H */
    multiply_modulo(c, r->x, v[4], v[5]);
    multiply_modulo(c, r->y, v[6], v[7]);
    multiply_modulo(c, r->t, v[4], v[7]);
    multiply_modulo(c, r->z, v[5], v[6]);
}

static BIGNUM *parse_hex_number(struct curve *c, const char *hex)
{
    BIGNUM *n = BN_CTX_get(c->ctx);
    c->failed |= !n || !BN_hex2bn(&n, hex);
    return n;
}

static struct point make_point(struct curve *c, const char *x, const char *y, const char *z)
{
    struct point q = {parse_hex_number(c, x), parse_hex_number(c, y), parse_hex_number(c, z),
                      parse_hex_number(c, "0")};
    if (!c->failed)
        multiply_modulo(c, q.t, q.x, q.y);
    return q;
}

/* y in 32 bytes, little-endian, with the lowest bit of x as the highest bit. */
static void encode_point(struct curve *c, const struct point *q, unsigned char out[32])
{
    BIGNUM **v = c->v;
    c->failed |= !BN_mod_inverse(v[0], q->z, c->p, c->ctx);
    multiply_modulo(c, v[1], q->x, v[0]);
    multiply_modulo(c, v[2], q->y, v[0]);
    c->failed |= BN_bn2lebinpad(v[2], out, 32) != 32;
    out[31] |= BN_is_odd(v[1]) ? 0x80 : 0;
}

static void multiply_base_point(struct curve *c, const unsigned char scalar[32],
                                unsigned char out[32])
{
    c->p = parse_hex_number(c, prime);
    c->d2 = parse_hex_number(c, constant);
    for (size_t i = 0; i < STW_COUNT(c->v); i++)
        c->v[i] = parse_hex_number(c, "0");
    struct point sum = make_point(c, "0", "1", "1"), base = make_point(c, base_x, base_y, "1");
    if (c->failed)
        return;
    add_modulo(c, c->d2, c->d2, c->d2);
    for (int bit = 255; bit >= 0 && !c->failed; bit--) {
        add_point(c, &sum, &sum);
        if (scalar[bit / 8] >> (bit % 8) & 1)
            add_point(c, &sum, &base);
    }
    encode_point(c, &sum, out);
}

int stw_ed25519_make(const struct stw_sql_secret *p, struct stw_buf *out)
{
    unsigned char digest[64], key[32] = {0};
    struct curve c = {.ctx = BN_CTX_secure_new()};
    if (!p->data || p->len == 0 || !c.ctx ||
        EVP_Digest(p->data, p->len, digest, NULL, EVP_sha512(), NULL) != 1) {
        BN_CTX_free(c.ctx);
        return -1;
    }
    digest[0] &= 0xf8;
    digest[31] = (unsigned char)((digest[31] & 0x7f) | 0x40);
    BN_CTX_start(c.ctx);
    multiply_base_point(&c, digest, key);
    BN_CTX_end(c.ctx);
    BN_CTX_free(c.ctx);
    stw_wipe(digest, sizeof(digest));
    if (c.failed)
        return -1;
    stw_base64_encode(key, sizeof(key), out);
    if (out->len > 0 && !out->failed)
        out->data[--out->len] = '\0'; /* 32 bytes end in one "=" */
    return out->failed ? -1 : 0;
}
